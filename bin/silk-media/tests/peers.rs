//! The peers of the experiments decode a clip that comes over RTP, between two hosts in network
//! namespaces. Needs root, GStreamer and ffmpeg; where one is missing the test says SKIPPED.

use std::process::{Command, Stdio};

fn is_installed(program: &str, version: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

#[test]
fn both_peers_decode_what_comes_and_say_what_it_cost() {
    let missing = [("gst-launch-1.0", "--version"), ("ffmpeg", "-version")]
        .into_iter()
        .find(|(program, version)| !is_installed(program, version));
    if !is_root() || missing.is_some() {
        silk_testkit::skip("needs root, GStreamer and ffmpeg");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, coding) in [("clip.mpg", "-c:v mpeg1video -bf 2 -ps 1000"), ("clip.mp4", "-c:v libx264 -g 10")]
    {
        let clip = folder.path().join(name);
        let source = "-nostdin -v error -f lavfi -i testsrc2=s=176x144:r=25 -frames:v 60 -pix_fmt yuv420p";
        let mut ffmpeg = Command::new("ffmpeg");
        assert!(
            ffmpeg.args(source.split(' ')).args(coding.split(' ')).arg(&clip).status().unwrap().success()
        );
        let mut measure = Command::new(env!("CARGO_BIN_EXE_silk-media"));
        let output =
            measure.args(["measure", "peers", "--speed", "1", "--cpu", "0"]).arg(&clip).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 2, "{out}{}", String::from_utf8_lossy(&output.stderr));
        for (line, peer) in lines.iter().zip(["GStreamer", "ffmpeg"]) {
            assert!(line.starts_with(&format!("{peer}: 52 of 60 pictures, 0 dropped, ")), "{line}");
        }
    }
}
