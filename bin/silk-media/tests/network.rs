//! Video between two hosts in network namespaces: a source on one, a player over XDP on the other. Needs
//! root and ffmpeg; where one is missing the tests say SKIPPED. What is late on a busy machine is missed,
//! so pictures are counted however they ended; none may be lost.

use serde_json::Value;
use silk_testkit::netns::{
    CLIENT, CLIENT6, Host, INTERFACE, PREFERRED, Rig, Running, SERVER, SERVER6, signal,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_silk-media");
/// Pictures of the clip, of which each third is one that others need.
const PICTURES: u64 = 90;

struct Stage {
    rig: Rig,
    folder: TempDir,
}

impl Stage {
    /// Two hosts and a clip, or nothing where that cannot be.
    fn set() -> Option<Self> {
        let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
        let folder = tempfile::tempdir().unwrap();
        let arguments = "-nostdin -v error -f lavfi -i testsrc2=s=176x144:r=30 -frames:v 90 -c:v mpeg2video \
                         -g 15 -bf 2 -b:v 2M -ps 1000";
        let clip = folder.path().join("clip.m2v");
        let made = Command::new("ffmpeg").args(arguments.split_whitespace()).arg(clip).status();
        if !root || !made.is_ok_and(|status| status.success()) {
            silk_testkit::skip("needs root and ffmpeg");
            return None;
        }
        Some(Self { rig: Rig::new().unwrap(), folder })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A player on the server, which has opened its device.
    fn player(&self, arguments: &[&str]) -> Running {
        self.player_onto(&["--headless"], arguments)
    }

    /// As [`Self::player`], with such screens.
    fn player_onto(&self, screen: &[&str], arguments: &[&str]) -> Running {
        // What an earlier player has said is not this one's.
        let _ = fs::remove_file(self.file("played.json"));
        let mut command = self.rig.server.command(PROGRAM);
        command.args(["play", "--interface", INTERFACE, "--json"]).arg(self.file("played.json")).args(screen);
        let said = self.file("said");
        command.args(arguments).stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap());
        let player = Running::start(&mut command).unwrap();
        wait(|| fs::read_to_string(&said).unwrap().contains("waits for"));
        player
    }

    /// The graph of a player that takes commands from the client.
    fn graph(&self) -> String {
        let graph = self.file("video.toml");
        let controllers = format!("name = \"shell\"\ncontrollers = [\"{CLIENT}/32\", \"{CLIENT6}/128\"]");
        fs::write(&graph, silk_player::GRAPH.replace("name = \"shell\"", &controllers)).unwrap();
        graph.to_str().unwrap().to_owned()
    }

    /// Sends the clip from the client, to its end.
    fn send(&self, arguments: &[&str]) -> Output {
        let mut command = self.rig.client.command(PROGRAM);
        command.arg("send").arg(self.file("clip.m2v")).args(arguments).output().unwrap()
    }

    /// What the player has said at its end.
    fn played(&self) -> Value {
        let text = fs::read_to_string(self.file("played.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

fn wait(until: impl Fn() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came to be");
        sleep(Duration::from_millis(20));
    }
}

/// Whether an XDP program is on the host's interface.
fn has_program(host: &Host) -> bool {
    host.run("ip", ["link", "show", INTERFACE]).unwrap().contains("xdp")
}

fn end(mut player: Running) -> ExitStatus {
    signal(&[player.id()], "INT");
    player.wait(Duration::from_secs(30)).expect("Ctrl-C ends it")
}

/// All pictures that came, however they ended.
fn came(stream: &Value) -> u64 {
    ["shown", "missed", "overflowed"].iter().map(|figure| stream[figure].as_u64().unwrap()).sum()
}

#[test]
fn every_picture_comes_by_mflow_and_the_player_ends_with_the_stream() {
    let Some(stage) = Stage::set() else { return };
    let player = stage.player(&[]);
    comes_whole(&stage, player, &SERVER.to_string());
    let stream = &stage.played()["streams"][0];
    // It was promised what memory it needs, and needed no more.
    let memory = |figure: &str| stream[figure].as_u64().unwrap();
    assert_eq!((memory("no_memory"), memory("memory_limit")), (0, memory("memory_promised")), "{stream}");
    assert!(memory("memory_peak") <= memory("memory_promised"), "{stream}");
    assert!(!has_program(&stage.rig.server), "its program stays on the interface");
}

#[test]
fn a_player_that_receives_itself_is_steered_its_packets_and_leaves_the_interface_as_it_was() {
    let Some(stage) = Stage::set() else { return };
    let file = format!("/sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus");
    let mask = || {
        let told = stage.rig.server.run("cat", [&file]).unwrap();
        u32::from_str_radix(told.trim().rsplit(',').next().unwrap(), 16).unwrap()
    };
    assert_eq!(mask(), 0);
    let mut player = stage.player(&["--receive-here", "--cpu", "0"]);
    assert_eq!(mask(), 1, "CPU 0 is not who receives");
    stage.send(&["--to", &SERVER.to_string()]);
    assert!(player.wait(Duration::from_secs(60)).is_some(), "the player goes on after the stream's end");
    let stream = &stage.played()["streams"][0];
    assert_eq!((came(stream), stream["lost"].as_u64()), (PICTURES, Some(0)), "{stream}");
    assert_eq!(mask(), 0, "it leaves the packets steered");
}

#[test]
fn checksums_are_verified_while_the_data_are_read_and_on_their_own() {
    let Some(stage) = Stage::set() else { return };
    // Else the cable hands packets over without sums.
    if stage.rig.client.run("ethtool", ["-K", INTERFACE, "tx", "off"]).is_err() {
        silk_testkit::skip("there is no ethtool");
        return;
    }
    for how in [&[][..], &["--ilp"]] {
        println!("with {how:?}");
        comes_whole(&stage, stage.player(how), &SERVER.to_string());
    }
}

#[test]
fn of_each_third_the_rest_is_discarded_where_it_is_classified() {
    let Some(stage) = Stage::set() else { return };
    let from = format!("{CLIENT}:6000");
    // A stream by RTP belongs to whoever sends first, where nobody is named.
    for (over, whom) in [
        (&["--rtp"][..], &["--rtp", "5004", "--from", &from][..]),
        (&["--rtp"], &["--rtp", "5004"]),
        (&[], &["--from", &from]),
    ] {
        let mut player = stage.player(&[&["--every", "3"], whom].concat());
        stage.send(&[&["--to", &SERVER.to_string(), "--port", "6000"][..], over].concat());
        assert!(player.wait(Duration::from_secs(60)).is_some(), "the player goes on after the stream's end");
        let stream = &stage.played()["streams"][0];
        // RTP tells nobody that it ends, so its last picture is not known to be whole.
        assert!((PICTURES / 3 - 1..=PICTURES / 3).contains(&came(stream)), "{stream}");
        assert!(stream["discarded"].as_u64().unwrap() > 20, "{stream}");
        assert_eq!(stream["lost"].as_u64(), Some(0), "{stream}");
    }
}

/// What GStreamer made of these words says, when it is on the client and sends by RTP.
fn gstreamer(stage: &Stage, pipeline: &str) -> bool {
    let mut gst = stage.rig.client.command("gst-launch-1.0");
    gst.arg("-q").args(pipeline.split_whitespace());
    gst.args(["!", "rtpmpvpay", "!", "udpsink", &format!("host={SERVER}"), "port=5004"]);
    let sent = gst.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !sent {
        silk_testkit::skip(format_args!("GStreamer has not what `{pipeline}` needs"));
    }
    sent
}

#[test]
fn what_gstreamer_sends_is_decoded_and_placed_however_it_is_stamped() {
    let Some(stage) = Stage::set() else { return };
    // Alive, stamped in the order of coding; and a file, all pictures stamped alike and sent at once.
    let alive = "videotestsrc is-live=true num-buffers=75 ! video/x-raw,width=176,height=144,framerate=25/1 ! \
                 videoconvert ! mpeg2enc format=3 b-per-refframe=2 ! mpegvideoparse";
    let file = format!("filesrc location={} ! mpegvideoparse", stage.file("clip.m2v").display());
    for (pipeline, pictures) in [(alive, 75), (&file, PICTURES)] {
        let player = stage.player(&["--rtp", "5004"]);
        let sent = gstreamer(&stage, pipeline);
        // What came at once is shown at its own rate.
        sleep(Duration::from_secs(4));
        end(player);
        if !sent {
            continue;
        }
        let stream = &stage.played()["streams"][0];
        // The last picture is not known to be whole; pictures that fell on one place would be missing.
        assert!((pictures - 4..=pictures).contains(&came(stream)), "{pipeline}: {stream}");
        assert!(stream["lost"].as_u64().unwrap() <= 2, "{pipeline}: {stream}");
        assert_eq!(stream["repeated"].as_u64(), Some(0), "{pipeline}: {stream}");
        assert_eq!(stream["cut_at_slices"].as_bool(), Some(false), "GStreamer does not: {stream}");
    }
}

#[test]
fn ffmpeg_is_a_source_with_and_without_slices_that_fit_packets() {
    let Some(stage) = Stage::set() else { return };
    let other = stage.file("other.m2v");
    let arguments = "-nostdin -v error -f lavfi -i testsrc2=s=352x288:r=30 -frames:v 90 -c:v mpeg2video -g 15 -bf 2 \
         -q:v 2";
    assert!(Command::new("ffmpeg").args(arguments.split(' ')).arg(&other).status().unwrap().success());
    for (clip, cut) in [(stage.file("clip.m2v"), true), (other, false)] {
        let player = stage.player(&["--rtp", "5004"]);
        let mut ffmpeg = stage.rig.client.command("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "quiet", "-re", "-i"]).arg(&clip);
        ffmpeg.args(["-c:v", "copy", "-f", "rtp", &format!("rtp://{SERVER}:5004?pkt_size=1400")]);
        assert!(ffmpeg.stdout(Stdio::null()).status().unwrap().success());
        sleep(Duration::from_secs(1));
        end(player);
        let stream = &stage.played()["streams"][0];
        assert!(came(stream) >= PICTURES - 3, "{}: {stream}", clip.display());
        assert_eq!(stream["cut_at_slices"].as_bool(), Some(cut), "{}: {stream}", clip.display());
    }
}

#[test]
fn a_session_description_brings_the_parameters_that_the_stream_leaves_out() {
    let Some(stage) = Stage::set() else { return };
    let (clip, description) = (stage.file("clip.mp4"), stage.file("clip.sdp"));
    let arguments = "-nostdin -v error -f lavfi -i testsrc2=s=176x144:r=25 -frames:v 75 -pix_fmt yuv420p \
                     -c:v libx264 -g 25 -bf 2";
    let made = Command::new("ffmpeg").args(arguments.split_whitespace()).arg(&clip).status().unwrap();
    assert!(made.success());
    let send = |arguments: &[&str]| {
        let mut ffmpeg = stage.rig.client.command("ffmpeg");
        ffmpeg
            .args(["-nostdin", "-v", "quiet", "-re", "-i"])
            .arg(&clip)
            .args(["-c:v", "copy"])
            .args(arguments);
        ffmpeg.args(["-f", "rtp", &format!("rtp://{SERVER}:5010?pkt_size=1400")]);
        assert!(ffmpeg.stdout(Stdio::null()).status().unwrap().success());
    };
    send(&["-t", "0.1", "-sdp_file", description.to_str().unwrap()]);
    let player = stage.player(&["--sdp", description.to_str().unwrap()]);
    send(&[]);
    sleep(Duration::from_secs(1));
    end(player);
    let stream = &stage.played()["streams"][0];
    // The decoder still keeps pictures that are shown after others, when the player is ended.
    assert!((65..=75).contains(&came(stream)), "{stream}");
    assert_eq!(stream["lost"].as_u64(), Some(0), "{stream}");
    fs::write(&description, "v=0\no=- 0 0 IN IP4 10.0.0.1\ns=-\nt=0 0\nm=audio 5004 RTP/AVP 0\n").unwrap();
    let refused = Command::new(PROGRAM).args(["play", "--sdp"]).arg(&description).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("describes no video"));
}

#[test]
fn what_is_h264_is_decoded_as_that_whoever_sends_it() {
    let Some(stage) = Stage::set() else { return };
    let clip = stage.file("clip.264");
    let arguments = "-nostdin -v error -f lavfi -i testsrc2=s=176x144:r=25 -frames:v 75 -pix_fmt yuv420p \
                     -c:v libx264 -g 25 -bf 2";
    let made = Command::new("ffmpeg").args(arguments.split_whitespace()).arg(&clip).status().unwrap();
    assert!(made.success());
    for over in [&["--rtp"][..], &[]] {
        let player = stage.player(if over.is_empty() { &[] } else { &["--rtp", "5004"] });
        let mut source = stage.rig.client.command(PROGRAM);
        source.arg("send").arg(&clip).args(["--to", &SERVER.to_string()]).args(over);
        assert!(source.stdout(Stdio::null()).status().unwrap().success());
        sleep(Duration::from_secs(1));
        end(player);
        let stream = &stage.played()["streams"][0];
        assert!((65..=75).contains(&came(stream)), "{stream}");
    }
}

#[test]
fn the_shell_obeys_its_controllers_and_answers_nobody_else() {
    let Some(stage) = Stage::set() else { return };
    let player = stage.player(&["--appliance", "--graph", &stage.graph()]);
    let over_four = [SERVER.to_string(), CLIENT.to_string()];
    is_obeyed(&stage, &over_four, "one");
    is_obeyed(&stage, &[SERVER6.to_string(), format!("[{CLIENT6}]")], "two");
    // Another address of the same host is no controller.
    let stranger = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                    s.bind(('FROM', 0)); s.settimeout(1); s.sendto(b'7 list' + b' ' * 200, ('TO', 5540))\n\
                    try: print(s.recv(500))\nexcept TimeoutError: print('silence')";
    let stranger = stranger.replace("FROM", &PREFERRED.to_string()).replace("TO", &SERVER.to_string());
    assert_eq!(stage.rig.client.run("python3", ["-c", &stranger]).unwrap(), "silence\n");
    assert!(end(player).success(), "pictures were shown");
    let played = stage.played();
    let told = |figure: fn(&Value) -> Value| -> Vec<Value> {
        played["streams"].as_array().unwrap().iter().map(figure).collect()
    };
    assert_eq!(told(|stream| stream["name"].clone()), ["one", "two"], "what was stopped is reported");
    assert!(!told(|stream| stream["shown"].clone()).contains(&0.into()), "{played}");
}

/// Whoever has the second address has a stream played, by commands to the player's, the first.
fn is_obeyed(stage: &Stage, [player, controller]: &[String; 2], name: &str) {
    let tell = |command: &str| {
        let mut shell = stage.rig.client.command(PROGRAM);
        let Output { stdout, stderr, .. } =
            shell.arg("shell").arg(player).args(command.split(' ')).output().unwrap();
        String::from_utf8([stdout, stderr].concat()).unwrap()
    };
    assert_eq!(tell("list"), "nothing is playing\n");
    assert!(tell(&format!("mpeg_decode {controller}:6000 name={name}")).starts_with("ok "));
    assert!(
        tell(&format!("mpeg_decode {controller}:6001 name={name} port=5600"))
            .starts_with("error: there is a stream")
    );
    let mut source = stage.rig.client.command(PROGRAM);
    source.arg("send").arg(stage.file("clip.m2v")).args(["--to", player, "--port", "6000", "--loop"]);
    let mut source = Running::start(source.stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
    wait(|| {
        let listed = tell("list");
        listed.contains(&format!(" {name} ")) && !listed.contains(" 0 shown ")
    });
    assert!(tell("stop three").starts_with("error: no such stream"));
    assert!(tell("dance").starts_with("error: "));
    assert!(tell(&format!("stop {name}")).starts_with("ok"));
    assert!(source.wait(Duration::from_secs(30)).is_some(), "the source is told to stop");
}

/// Every picture is sent to this address and comes.
fn comes_whole(stage: &Stage, mut player: Running, to: &str) {
    let sent = stage.send(&["--to", to]);
    let said = String::from_utf8(sent.stdout).unwrap();
    assert!(said.contains("the player has taken all"), "{said}{}", String::from_utf8_lossy(&sent.stderr));
    assert!(player.wait(Duration::from_secs(60)).is_some(), "the player goes on after the stream's end");
    let stream = &stage.played()["streams"][0];
    assert_eq!((came(stream), stream["lost"].as_u64()), (PICTURES, Some(0)), "{stream}");
}

#[test]
fn a_stream_comes_over_ipv6_where_that_is_meant_and_where_it_is_all_there_is() {
    let Some(stage) = Stage::set() else { return };
    comes_whole(&stage, stage.player(&["--ipv6"]), &SERVER6.to_string());
    stage.rig.server.ip(["address", "del", &format!("{SERVER}/24"), "dev", INTERFACE]).unwrap();
    comes_whole(&stage, stage.player(&[]), &SERVER6.to_string());
    comes_whole(&stage, stage.player(&["--device", "packet", "--address", "fd99::9/64"]), "fd99::9");
}

/// A player that takes commands from the client, which may use so many percent of the processor.
fn commanded(stage: &Stage, share: &str, more: &[&str]) -> Running {
    let graph = stage.graph();
    let arguments = ["--appliance", "--graph", &graph, "--share", share];
    stage.player(&[&arguments[..], more].concat())
}

/// What the player answers to this order of the clip, as a stream from port 6000 + `number`.
fn order(stage: &Stage, number: u16, words: &str, options: &[&str]) -> String {
    let mut shell = stage.rig.client.command(PROGRAM);
    shell.arg("shell").arg("--clip").arg(stage.file("clip.m2v")).args(options).arg(SERVER.to_string());
    let port = 6000 + number;
    shell.args(["mpeg_decode", &format!("{CLIENT}:{port}"), &format!("port={port}")]).args(words.split(' '));
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

#[test]
fn an_order_that_is_too_large_gets_an_offer_that_is_accepted_and_kept() {
    const SHARE: f64 = 1.0;
    let Some(stage) = Stage::set() else { return };
    let player = commanded(&stage, &SHARE.to_string(), &[]);
    let send = |number: u16| {
        let port = (6000 + number).to_string();
        stage.send(&["--to", &format!("{SERVER}:{port}"), "--port", &port])
    };
    // The first teaches what pictures cost here.
    assert!(order(&stage, 0, "name=teacher", &[]).starts_with("ok "));
    send(0);
    let told = order(&stage, 2, "name=probe fps=10", &[]);
    let cpu: f64 = told.split("cpu=").nth(1).unwrap().split('%').next().unwrap().parse().unwrap();
    assert!(cpu > 0.0 && told.starts_with("ok "), "{told}");
    let mut shell = stage.rig.client.command(PROGRAM);
    assert!(shell.args(["shell", &SERVER.to_string(), "stop", "probe"]).output().unwrap().status.success());
    // A fifth more than fits.
    let fps = format!("fps={:.3}", (1.2 * SHARE / cpu * 10.0).min(900.0));
    let offered = order(&stage, 4, &format!("name=one {fps}"), &[]);
    let less = offered.strip_prefix("offer ").unwrap_or_else(|| panic!("{offered}")).trim_end();
    assert!(less.starts_with("every=") || less == "without=b", "{offered}");
    let accepted = order(&stage, 4, &format!("name=one {fps} {less}"), &[]);
    assert!(accepted.starts_with("ok ") && accepted.contains("cpu="), "{accepted}");
    send(4);
    sleep(Duration::from_secs(1));
    // What is left of the processor now is still less; who takes what there is gets that at once.
    let other = order(&stage, 6, &format!("name=two {fps}"), &["--accept"]);
    assert!(other.starts_with("ok "), "{other}");
    end(player);
    let streams = stage.played();
    let one = streams["streams"].as_array().unwrap().iter().find(|stream| stream["name"] == "one").unwrap();
    // Of those that are late some are discarded where they are classified, and count as lost.
    let wanted = came(one) + one["lost"].as_u64().unwrap();
    assert!((PICTURES / 3 - 2..=PICTURES / 2 + 1).contains(&wanted), "{less}: {one}");
    assert_eq!(one["no_memory"].as_u64(), Some(0), "{one}");
    assert!(one["cpu_share_promised"].as_f64().unwrap() <= SHARE / 100.0, "{one}");
}

#[test]
fn a_stream_of_which_nothing_was_told_is_tried_and_ended_or_reduced() {
    let Some(stage) = Stage::set() else { return };
    for accepts in [false, true] {
        let accept = if accepts { &["--accept"][..] } else { &[] };
        let mut player = stage.player(&[&["--share", "0.1"][..], accept].concat());
        let mut source = stage.rig.client.command(PROGRAM);
        source.arg("send").arg(stage.file("clip.m2v")).args(["--to", &SERVER.to_string(), "--loop"]);
        let said = fs::File::create(stage.file("sent")).unwrap();
        let mut source = Running::start(source.stdout(said).stderr(Stdio::null())).unwrap();
        if accepts {
            sleep(Duration::from_secs(6));
            end(player);
        } else {
            assert!(player.wait(Duration::from_secs(60)).is_some_and(|status| !status.success()));
        }
        assert!(source.wait(Duration::from_secs(30)).is_some(), "the source goes on");
        let sent = fs::read_to_string(stage.file("sent")).unwrap();
        assert!(sent.contains("the player wanted no more"), "it is not told to stop: {sent}");
        let stream = &stage.played()["streams"][0];
        assert_eq!(stream["refused"].as_bool(), Some(!accepts), "{stream}");
        assert_eq!(stream["with"] != "", accepts, "{stream}");
        assert!(came(stream) > 60, "{stream}");
    }
}

/// How many pictures of the clip are in a file that the player wrote.
fn raw_pictures(file: &Path) -> usize {
    let bytes = fs::read(file).unwrap_or_default();
    bytes.len() / (b"FRAME\n".len() + 176 * 144 * 3 / 2)
}

#[test]
fn several_streams_are_written_to_files_of_their_own() {
    let Some(stage) = Stage::set() else { return };
    let out = stage.file("out.y4m");
    let onto = ["--y4m", out.to_str().unwrap()];
    let mut player = stage.player_onto(&onto, &["--streams", "2"]);
    for port in [5544, 5546] {
        stage.send(&["--to", &format!("{SERVER}:{port}")]);
    }
    assert!(player.wait(Duration::from_secs(60)).is_some(), "the player goes on after the streams' end");
    let played = stage.played();
    let shown = [0, 1].map(|number| played["streams"][number]["shown"].as_u64().unwrap() as usize);
    let written = ["out-stream1.y4m", "out-stream2.y4m"].map(|name| raw_pictures(&stage.file(name)));
    assert_eq!(written, shown, "{played}");
    assert!(!out.exists());
    // What was written stays, and an order that is refused leaves nothing.
    let graph = stage.graph();
    let player = stage.player_onto(&onto, &["--appliance", "--graph", &graph]);
    let tell = |command: &str| {
        let mut shell = stage.rig.client.command(PROGRAM);
        shell.args(["shell", &SERVER.to_string()]).args(command.split(' '));
        String::from_utf8(shell.output().unwrap().stdout).unwrap()
    };
    assert!(tell("mpeg_decode 203.0.113.9:6000 name=stream1").starts_with("error: "));
    assert!(tell(&format!("mpeg_decode {CLIENT}:6000 name=stream2")).starts_with("ok "));
    // The port is another's.
    assert!(tell(&format!("mpeg_decode {CLIENT}:6000 name=stream3")).starts_with("error: "));
    end(player);
    let again = ["out-stream1-2.y4m", "out-stream2-2.y4m", "out-stream3.y4m"];
    assert_eq!(again.map(|name| stage.file(name).exists()), [false, true, false]);
    assert_eq!(raw_pictures(&stage.file("out-stream2.y4m")), shown[1]);
}

#[test]
fn memory_is_granted_before_a_path_is_made() {
    let Some(stage) = Stage::set() else { return };
    let player = commanded(&stage, "95", &["--memory", "2"]);
    let refused = order(&stage, 0, "name=one", &[]);
    assert!(refused.starts_with("error: there is not enough memory"), "{refused}");
    assert!(order(&stage, 0, "name=one queue=1", &[]).starts_with("ok "), "a shorter queue would fit");
    end(player);
}

#[test]
fn a_player_says_why_and_one_that_is_killed_leaves_linux_its_packets() {
    let Some(stage) = Stage::set() else { return };
    let socket = stage.file("play.sock");
    let mut player = stage.player(&["--control", socket.to_str().unwrap()]);
    let why = || {
        let asked = Command::new(PROGRAM).args(["why", "--control"]).arg(&socket).output().unwrap();
        String::from_utf8(asked.stdout).unwrap()
    };
    // It answers before it has begun its stream.
    wait(|| !why().is_empty());
    assert_eq!(why(), "stream: no deadline was missed\n");
    signal(&[player.id()], "KILL");
    assert!(player.wait(Duration::from_secs(30)).is_some());
    wait(|| !has_program(&stage.rig.server));
    assert!(stage.rig.client.run("ping", ["-c", "1", "-W", "5", &SERVER.to_string()]).is_ok());
    let asked = Command::new(PROGRAM).args(["why", "--control"]).arg(&socket).output().unwrap();
    assert_eq!(asked.status.code(), Some(1));
    assert!(String::from_utf8(asked.stderr).unwrap().contains("no player answers"));
    // And the next one begins in its place.
    let again = stage.player(&["--control", socket.to_str().unwrap()]);
    end(again);
    assert!(!Path::new(&socket).exists());
}

#[test]
fn a_player_ends_when_it_is_told_to_and_numbers_that_are_too_large_do_not_end_it() {
    let Some(stage) = Stage::set() else { return };
    let told = end(stage.player(&["--seconds", &u64::MAX.to_string()]));
    // In order: it says what it has played, which was nothing.
    assert_eq!(told.code(), Some(1));
    stage.played();
    let mut player = stage.player(&["--seconds", "1"]);
    assert!(player.wait(Duration::from_secs(60)).is_some(), "where nothing comes it never ends");
    let mut command = stage.rig.server.command(PROGRAM);
    command.args(["play", "--interface", INTERFACE, "--headless", "--rtp", "65534", "--streams", "3"]);
    let refused = command.output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("there are not so many ports"), "{said}");
}

#[test]
fn a_source_without_a_player_says_so() {
    let Some(stage) = Stage::set() else { return };
    let sent = stage.send(&["--to", &SERVER.to_string()]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(String::from_utf8(sent.stderr).unwrap().contains("no player answers at 10.99.0.1:5544"));
}
