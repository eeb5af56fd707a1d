//! ffmpeg as a peer. A file in SDP says what comes; it counts by its own report of progress.

use super::Reception;
use silk_media::Coding;
use std::fs;
use std::io;
use std::process::Command;

/// Adds the program and its arguments, and writes the SDP file.
pub(super) fn arguments(command: &mut Command, reception: &Reception<'_>) -> io::Result<()> {
    let session = reception.scratch.join(format!("ffmpeg-{}.sdp", reception.port));
    fs::write(&session, sdp(reception.port, reception.coding))?;
    command.args(["ffmpeg", "-nostdin", "-loglevel", "error", "-nostats", "-progress", "pipe:1"]);
    command.args(["-protocol_whitelist", "file,udp,rtp", "-threads", "1"]);
    if reception.paced {
        command.arg("-re");
    }
    command.arg("-i").arg(session).args(["-map", "0:v", "-fps_mode", "passthrough"]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_counts() {
        let said = "frame=12\nfps=0.0\ndrop_frames=0\nprogress=continue\nframe=140\nfps=29\ndrop_frames=2\n";
        assert_eq!(counts(said), Some((140, 2)));
        assert_eq!(counts("x.sdp: Invalid data found when processing input"), None);
    }
}
