//! The program as people use it: what it plays, where to, what it says, and its exit status. Clips are
//! made by ffmpeg for each run, windows are opened on a virtual X server; where these are missing the
//! tests say SKIPPED.

use silk_testkit::netns::{Running, signal};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn silk_media(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk-media"));
    command.args(arguments).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("SDL_VIDEODRIVER");
    command
}

fn said(output: &Output) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A clip of a test picture in a folder of its own; `None` without ffmpeg.
fn clip(name: &str, arguments: &str) -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    let source = "-nostdin -v error -f lavfi -i smptebars=s=176x144:r=25 -frames:v 25 -pix_fmt yuv420p";
    let Ok(status) = Command::new("ffmpeg")
        .args(source.split(' '))
        .args(arguments.split(' ').filter(|argument| !argument.is_empty()))
        .arg(&file)
        .status()
    else {
        silk_testkit::skip("there is no ffmpeg");
        return None;
    };
    assert!(status.success());
    Some((folder, file.to_str().unwrap().to_owned()))
}

#[test]
fn a_file_is_played_at_its_rate_and_the_report_counts() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg1video -bf 2") else { return };
    let output = silk_media(&["play", "--file", &file, "--headless"]).output().unwrap();
    let (status, out, err) = said(&output);
    assert_eq!((status, err), (0, ""));
    assert!(out.starts_with("25 pictures of 176 × 144 in "), "{out}");
}

#[test]
fn every_container_and_coding_gives_all_pictures_and_equal_streams_equal_sums() {
    let sum = |file: &str| {
        let output = silk_media(&["play", "--file", file, "--sum", "--fast"]).output().unwrap();
        let (status, out, err) = said(&output);
        assert_eq!((status, err), (0, ""), "{file}");
        assert!(out.starts_with("25 pictures of 176 × 144"), "{file}: {out}");
        out.rsplit_once("sum ").unwrap().1.to_owned()
    };
    for (names, coding) in
        [(["a.mpg", "a.m2v", "a.ts"], "-c:v mpeg2video -bf 2"), (["b.mp4", "b.mkv", "b.ts"], "-c:v libx264")]
    {
        let mut sums = Vec::new();
        for name in names {
            let Some((_folder, file)) = clip(name, &format!("{coding} -threads 1")) else { return };
            sums.push(sum(&file));
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{names:?}: {sums:?}");
    }
}

#[test]
fn raw_pictures_in_a_file_are_what_ffmpeg_reads_from_the_clip() {
    let Some((folder, file)) = clip("clip.mpg", "-c:v mpeg2video -bf 2") else { return };
    let raw = folder.path().join("clip.y4m");
    let output = silk_media(&["play", "--file", &file, "--y4m", raw.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let pictures = |file: &Path| {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-i"]).arg(file).args([
            "-fps_mode",
            "passthrough",
            "-f",
            "rawvideo",
            "-",
        ]);
        command.output().unwrap().stdout
    };
    let read = pictures(&raw);
    assert_eq!(read.len(), 25 * 176 * 144 * 3 / 2);
    assert!(read == pictures(Path::new(&file)));
}

#[test]
fn every_third_picture_becomes_a_png_of_the_right_colours() {
    let Some((folder, file)) = clip("clip.mpg", "-c:v mpeg2video -q:v 2") else { return };
    let pngs = folder.path().join("pngs");
    let arguments = ["play", "--file", &file, "--every", "3", "--png", pngs.to_str().unwrap()];
    assert_eq!(silk_media(&arguments).output().unwrap().status.code(), Some(0));
    let mut names: Vec<PathBuf> = fs::read_dir(&pngs).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 9);
    let file = std::io::BufReader::new(fs::File::open(&names[8]).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (176, 144));
    // The sixth of the seven bars is red, at three quarters of its strength.
    let red = &pixels[(40 * 176 + 138) * 3..][..3];
    assert!(red[0].abs_diff(191) < 12 && red[1] < 12 && red[2] < 12, "{red:?}");
}

/// A second of silence as a WAV file: 8 000 samples of 16 bits.
fn silence() -> Vec<u8> {
    let rate: u32 = 8000;
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    let format = [&b"WAVEfmt "[..], &numbers(&[16, 1 | 1 << 16, rate, 2 * rate, 2 | 16 << 16])].concat();
    let data = [&b"data"[..], &numbers(&[2 * rate]), &vec![0; 2 * rate as usize]].concat();
    [&b"RIFF"[..], &numbers(&[(format.len() + data.len()) as u32]), &format, &data].concat()
}

#[test]
fn what_cannot_be_played_is_told_and_the_status_is_2() {
    let Some((folder, other)) = clip("other.avi", "-c:v mpeg4") else { return };
    let [text, sound] = ["text.mpg", "sound.wav"].map(|name| folder.path().join(name));
    fs::write(&sound, silence()).unwrap();
    fs::write(&text, "no video at all\n".repeat(100)).unwrap();
    for (file, why) in [
        ("/nonexistent/clip.mpg", "cannot be read: No such file"),
        (text.to_str().unwrap(), "is not a video file"),
        (sound.to_str().unwrap(), "there is no video in"),
        (other.as_str(), "is coded as mpeg4; paths carry MPEG-1, MPEG-2 and H.264. To convert it:"),
    ] {
        let output = silk_media(&["play", "--headless", "--file", file]).output().unwrap();
        let (status, out, err) = said(&output);
        assert_eq!((status, out), (2, ""), "{err}");
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn a_file_of_which_no_picture_comes_out_says_why() {
    for (name, coding, why) in [
        (
            "wide.mpg",
            "-c:v mpeg2video -pix_fmt yuv422p",
            "the stream is of a kind that this player does not take",
        ),
        ("large.mpg", "-c:v mpeg2video -s 2048x1152", "a picture is larger than this player takes"),
        ("large.mp4", "-c:v libx264 -s 2048x1152", "a picture is larger than this player takes"),
    ] {
        let Some((_folder, file)) = clip(name, coding) else { return };
        let output = silk_media(&["play", "--headless", "--file", &file]).output().unwrap();
        let (status, out, err) = said(&output);
        assert_eq!((status, out), (2, ""), "{err}");
        assert!(err.contains("can be decoded: ") && err.contains(why), "{err}");
    }
}

#[test]
fn what_only_xdp_has_is_asked_of_no_other_device() {
    for flag in [&["--receive-here"][..], &["--linux-packets", "9"]] {
        let arguments =
            ["play", "--headless", "--interface", "lo", "--device", "tap", "--address", "10.9.9.9/24"];
        let output = silk_media(&[&arguments, flag].concat()).output().unwrap();
        let (status, out, err) = said(&output);
        assert_eq!((status, out), (2, ""), "{err}");
        assert!(err.contains(&format!("only `--device xdp` has {}", flag[0])), "{err}");
    }
}

#[test]
fn a_playlist_may_not_make_the_player_ask_other_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let list = folder.path().join("list.m3u8");
    let entry = format!("http://{}/clip.ts", listener.local_addr().unwrap());
    fs::write(&list, format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{entry}\n#EXT-X-ENDLIST\n"))
        .unwrap();
    let output = silk_media(&["play", "--headless", "--file", list.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video") else { return };
    let output = silk_media(&["play", "--file", &file, "--y4m", "/nonexistent/a.y4m"]).output().unwrap();
    let (status, out, err) = said(&output);
    assert_eq!((status, out), (1, ""));
    assert!(err.contains("`/nonexistent/a.y4m` cannot be written: No such file"), "{err}");
}

#[test]
fn pictures_are_not_written_over_their_clip() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video") else { return };
    let before = fs::read(&file).unwrap();
    let output = silk_media(&["play", "--file", &file, "--y4m", &file]).output().unwrap();
    let (status, out, err) = said(&output);
    assert_eq!((status, out), (2, ""));
    assert!(err.contains("would be written over it"), "{err}");
    assert!(fs::read(&file).unwrap() == before);
}

#[test]
fn a_port_that_is_none_is_refused() {
    for which in ["--rtp", "--listen"] {
        let output = silk_media(&["play", "--headless", which, "0"]).output().unwrap();
        let (status, _, err) = said(&output);
        assert_eq!(status, 2, "{err}");
        assert!(err.contains("1..=65535"), "{err}");
    }
}

/// A player that waits for long, started by `env` with this argument, once it catches SIGINT; and which signals it
/// catches, as `/proc/PID/status` tells: the lowest bit is signal 1.
fn waiting_player(file: &str, argument: &str) -> (Running, u64) {
    let mut command = Command::new("env");
    command.args([argument, env!("CARGO_BIN_EXE_silk-media")]);
    command.args(["play", "--file", file, "--headless", "--fps", "0.001"]).stdout(Stdio::null());
    let player = Running::start(&mut command).unwrap();
    let (mine, start) = (format!("/proc/{}/status", player.id()), Instant::now());
    let caught = || {
        let status = fs::read_to_string(&mine).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap()
    };
    while caught() & 2 == 0 && start.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(10));
    }
    let caught = caught();
    (player, caught)
}

#[test]
fn a_player_that_waits_for_long_is_interrupted_by_a_person_and_by_a_terminal_that_goes() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video") else { return };
    for name in ["INT", "HUP"] {
        let (mut player, _) = waiting_player(&file, "--default-signal=HUP");
        signal(&[player.id()], name);
        let status = player.wait(Duration::from_secs(60)).expect("the signal ends it");
        assert!(status.code().is_some(), "{name}: {status}");
    }
}

#[test]
fn a_player_that_is_to_outlive_its_terminal_does() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video") else { return };
    let (_player, caught) = waiting_player(&file, "--ignore-signal=HUP");
    assert_eq!(caught & 3, 2, "of SIGHUP and SIGINT the second");
}

#[test]
fn rtp_that_is_sent_slowly_has_the_stamps_of_the_clips_own_rate() {
    let Some((_folder, file)) = clip("clip.m2v", "-c:v mpeg2video -q:v 30 -frames:v 3") else { return };
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let to = receiver.local_addr().unwrap().to_string();
    let mut sender = silk_media(&["send", &file, "--to", &to, "--rtp", "--fps", "2"]).spawn().unwrap();
    let (mut bytes, mut stamps) = ([0; 2000], Vec::new());
    while stamps.len() < 3 {
        receiver.recv(&mut bytes).unwrap();
        let stamp = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        if !stamps.contains(&stamp) {
            stamps.push(stamp);
        }
    }
    assert!(sender.wait().unwrap().success());
    // Of RTP's clock for video, of 90 kHz.
    assert_eq!([1, 2].map(|n| stamps[n].wrapping_sub(stamps[n - 1])), [3600; 2]);
}

#[test]
fn results_that_cannot_be_written_are_told_before_anything_is_measured() {
    for arguments in
        [&["bench", "video", "--json", "/nonexistent/a"][..], &["demo", "--html", "/nonexistent/a"]]
    {
        let output = silk_media(arguments).output().unwrap();
        let why = "silk: `/nonexistent/a` cannot be written: No such file or directory (os error 2)\n";
        assert_eq!(said(&output), (1, "", why));
    }
}

#[test]
fn programs_that_a_row_needs_are_named_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let clips = folder.path().join("clips");
    let arguments = ["bench", "video", "--only", "third,deadlines", "--clips", clips.to_str().unwrap()];
    let output = silk_media(&arguments).env("PATH", folder.path()).output().unwrap();
    let why =
        "silk: not in PATH: ip, setpriv, taskset, apache2, ab, ss. `make setup` installs what is needed\n";
    assert_eq!(said(&output), (1, "", why));
    assert!(!clips.exists());
}

#[test]
fn without_a_screen_a_window_is_refused() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video") else { return };
    let output = silk_media(&["play", "--file", &file, "--window"]).output().unwrap();
    let (status, _, err) = said(&output);
    assert_eq!(status, 1);
    assert!(err.contains("no window can be opened: ") && err.contains("--headless"), "{err}");
}

/// A virtual X server; it ends with this.
struct Display(Child, String);

impl Display {
    /// Starts one on a number of its own choice; `None` where there is none.
    fn start() -> Option<Self> {
        let mut server = Command::new("Xvfb");
        server.args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"]);
        let Ok(mut server) = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            silk_testkit::skip("there is no Xvfb");
            return None;
        };
        let (mut out, mut number) = (server.stdout.take().unwrap(), String::new());
        let mut byte = [0];
        while out.read_exact(&mut byte).is_ok() && byte[0] != b'\n' {
            number.push(char::from(byte[0]));
        }
        Some(Self(server, format!(":{number}")))
    }

    /// What the screen shows at a place: red, green, blue.
    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let output = Command::new("ffmpeg")
            .args([
                "-v",
                "error",
                "-f",
                "x11grab",
                "-draw_mouse",
                "0",
                "-video_size",
                "800x600",
                "-i",
                &self.1,
            ])
            .args(["-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
            .output()
            .unwrap();
        output.stdout.get((y * 800 + x) * 3..).map_or([0; 3], |pixel| [pixel[0], pixel[1], pixel[2]])
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_window_shows_pictures_with_odd_sides() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg1video -vf crop=175:143:0:0:exact=1") else {
        return;
    };
    let Some(display) = Display::start() else { return };
    let output =
        silk_media(&["play", "--file", &file, "--window"]).env("DISPLAY", &display.1).output().unwrap();
    let (status, out, err) = said(&output);
    assert_eq!((status, err), (0, ""));
    assert!(out.starts_with("25 pictures of 175 × 143 in "), "{out}");
}

#[test]
fn a_window_shows_the_picture_until_the_player_is_interrupted() {
    let Some((_folder, file)) = clip("clip.mpg", "-c:v mpeg2video -q:v 2") else { return };
    let Some(display) = Display::start() else { return };
    let mut player = silk_media(&["play", "--file", &file, "--window", "--fps", "1"])
        .env("DISPLAY", &display.1)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // 352 × 288 in the middle of 800 × 600: the red bar is about x 251 to 301 of the window.
    let is_red = |[red, green, blue]: [u8; 3]| red.abs_diff(191) < 16 && green < 16 && blue < 16;
    let start = Instant::now();
    let mut seen = false;
    while !seen && start.elapsed() < Duration::from_secs(60) {
        seen = is_red(display.pixel(224 + 276, 156 + 100));
        sleep(Duration::from_millis(100));
    }
    Command::new("kill").args(["-INT", &player.id().to_string()]).status().unwrap();
    let status = player.wait().unwrap();
    assert!(seen, "the picture was not on the screen");
    assert_eq!(status.code(), Some(0));
}
