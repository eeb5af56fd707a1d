//! ffmpeg as a peer. A file in SDP says what comes; it counts by its own report of progress. It has no display
//! whose clock it would follow: whether a picture is late is found out from when it was ready.

use super::Reception;
use silk_media::Coding;
use std::fs;
use std::io;
use std::process::Command;

/// Filters that tell of each picture its stamp, in ticks, and then the time, in microseconds.
const READY: &str = "showinfo=checksum=0,settb=1/1000000,setpts=RTCTIME,showinfo=checksum=0";
/// RTP's ticks in a second.
const TICKS: i64 = 90_000;
/// How long after the first picture was ready a display would begin, microseconds: half of a queue of 16 pictures at
/// 30 a second, as silk's.
const AHEAD: i64 = 8_000_000 / 30;

/// Adds the program and its arguments, and writes the SDP file.
pub(super) fn arguments(command: &mut Command, reception: &Reception<'_>) -> io::Result<()> {
    let session = reception.scratch.join(format!("ffmpeg-{}.sdp", reception.port));
    fs::write(&session, sdp(reception.port, reception.coding))?;
    let level = if reception.paced { "info" } else { "error" };
    command.args([
        "ffmpeg",
        "-nostdin",
        "-hide_banner",
        "-loglevel",
        level,
        "-nostats",
        "-progress",
        "pipe:1",
    ]);
    command.args(["-protocol_whitelist", "file,udp,rtp", "-threads", "1"]);
    command.arg("-i").arg(session).args(["-map", "0:v", "-fps_mode", "passthrough"]);
    if reception.paced {
        command.args(["-vf", READY]);
    }
    command.args(["-frames:v", &reception.pictures.to_string(), "-f", "null", "-"]);
    Ok(())
}

/// A session of one video stream (RFC 8866; payload types of RFC 3551 §6).
fn sdp(port: u16, coding: Coding) -> String {
    let stream = match coding {
        Coding::Mpeg => format!("m=video {port} RTP/AVP 32\r\n"),
        Coding::H264 => format!(
            "m=video {port} RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n"
        ),
    };
    format!("v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=silk\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n{stream}")
}

/// Pictures shown and dropped, as its last report says.
pub(super) fn counts(said: &str) -> Option<(u64, u64)> {
    let last = |key: &str| said.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some((last("frame=")?, last("drop_frames=").unwrap_or(0)))
}

/// Pictures that were ready after they were due, had a display shown the first `AHEAD` after it was ready.
pub(super) fn late(said: &str) -> u64 {
    let stamps = said.lines().filter_map(|line| told(line, "Parsed_showinfo_0"));
    let times = said.lines().filter_map(|line| told(line, "Parsed_showinfo_3"));
    let mut pictures = stamps.zip(times);
    let Some((stamp, time)) = pictures.next() else { return 0 };
    let due =
        |at: i64| time.saturating_add(AHEAD).saturating_add((at - stamp).saturating_mul(1_000_000) / TICKS);
    pictures.filter(|(stamp, ready)| *ready > due(*stamp)).count() as u64
}

/// Reads `[Parsed_showinfo_0 @ 0x55…] n:   3 pts:   9000 pts_time:0.1 …`.
fn told(line: &str, filter: &str) -> Option<i64> {
    let (_, rest) = line.split_once(filter)?.1.split_once(" pts:")?;
    let value = rest.split_whitespace().next()?.parse().ok()?;
    // Stamps have 33 bits, times are those of this century.
    Some(value).filter(|value: &i64| (0..1 << 52).contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_late_when_it_was_ready_after_a_display_would_have_shown_it() {
        let picture = |stamp: i64, millis: i64| {
            format!(
                "[Parsed_showinfo_0 @ 0x1] n: 0 pts: {stamp} pts_time:0\n[Parsed_showinfo_0 @ 0x1]  side data - x\n\
                 [Parsed_showinfo_3 @ 0x2] n: 0 pts:{} pts_time:1.7e+09\n",
                1_795_316_170_000_000 + millis * 1000
            )
        };
        let said = [picture(0, 0), picture(3000, 299), picture(6000, 334), picture(9000, 300)].concat();
        assert_eq!(late(&said), 1);
        assert_eq!(late("[Parsed_showinfo_0 @ 0x1] n: 0 pts: NOPTS\n"), 0);
    }

    #[test]
    fn the_last_report_counts() {
        let said = "frame=12\nfps=0.0\ndrop_frames=0\nprogress=continue\nframe=140\nfps=29\ndrop_frames=2\n";
        assert_eq!(counts(said), Some((140, 2)));
        assert_eq!(counts("x.sdp: Invalid data found when processing input"), None);
    }
}
