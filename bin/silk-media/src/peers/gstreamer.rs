//! GStreamer as a peer. It counts by `fpsdisplaysink`, which says every 50 ms what it has rendered;
//! often enough to know, and seldom enough to cost nothing.

use super::Reception;
use silk_media::Coding;
use std::process::Command;

/// Adds the program and its pipeline.
pub(super) fn arguments(command: &mut Command, reception: &Reception<'_>) {
    let [encoding, payload, decoding] = match reception.coding {
        Coding::Mpeg => ["MPV", "32", "rtpmpvdepay ! mpegvideoparse ! avdec_mpeg2video max-threads=1"],
        Coding::H264 => ["H264", "96", "rtph264depay ! h264parse ! avdec_h264 max-threads=1"],
    };
    // It ends with the picture after so many.
    let limit = reception.pictures.saturating_sub(1);
    let paced = reception.paced;
    let lateness = if paced { "max-lateness=0 qos=true" } else { "qos=false" };
    command.args(["gst-launch-1.0", "-e", "-v", "udpsrc"]);
    command.arg(format!("port={}", reception.port)).arg("buffer-size=4194304").arg(format!(
        "caps=application/x-rtp,media=(string)video,encoding-name=(string){encoding},clock-rate=(int)90000,\
         payload=(int){payload}"
    ));
    command.args(["!", "rtpjitterbuffer", "!"]).args(decoding.split(' '));
    command.args(["!", "fpsdisplaysink", "text-overlay=false", "fps-update-interval=50"]);
    command.arg(format!("sync={paced}"));
    command.arg(format!("video-sink=\"fakesink num-buffers={limit} {lateness}\""));
}

/// Pictures rendered and dropped, as its last message says. One that ended by itself has rendered all
/// that it was to, which the message before that cannot know.
pub(super) fn counts(said: &str, complete: Option<u64>) -> Option<(u64, u64)> {
    let last = said.lines().rev().find_map(message);
    match (complete, last) {
        (Some(all), last) => Some((all, last.map_or(0, |(_, dropped)| dropped))),
        (None, last) => last,
    }
}

/// Reads `… last-message = "rendered: 139, dropped: 0, current: 30.02, average: 29.97"`.
fn message(line: &str) -> Option<(u64, u64)> {
    let (_, counts) = line.split_once("rendered: ")?;
    let (rendered, rest) = counts.split_once(", dropped: ")?;
    let dropped = rest.split(',').next()?;
    Some((rendered.parse().ok()?, dropped.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Setting pipeline to PLAYING ...\n\
        /GstPipeline:pipeline0/GstFPSDisplaySink:f: last-message = rendered: 2, dropped: 0, current: 29.0\n\
        /GstPipeline:pipeline0/GstFPSDisplaySink:f: last-message = rendered: 137, dropped: 4, current: 29.98\n\
        Got EOS from element \"pipeline0\".\n";

    #[test]
    fn the_last_message_counts() {
        assert_eq!(counts(SAID, None), Some((137, 4)));
        assert_eq!(counts(SAID, Some(140)), Some((140, 4)));
        assert_eq!(counts("ERROR: pipeline could not be constructed", None), None);
    }
}
