//! Socket options that reach the path: what TCP knows of a connection, buffer sizes, service bits.

use crate::host::Silk;
use crate::priority::{client, start};
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// What the server answers to each command.
fn answers(silk: &Silk, commands: &[&str]) -> Vec<String> {
    text(&mut client(silk, CLIENT, commands)).lines().map(str::to_owned).collect()
}

/// The answer to `info`.
fn numbers(answer: &str) -> BTreeMap<&str, u64> {
    answer.split(' ').filter_map(|word| word.split_once('=')).map(|(k, v)| (k, v.parse().unwrap())).collect()
}

#[test]
fn a_program_learns_what_tcp_knows_of_its_connection() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["fill 500000", "info", "segment", "wait"];
    let _client = silk.start_logged(&mut client(&silk, CLIENT, &commands), "client");
    silk.until_says("client", "waiting");
    let log = silk.log("client");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines[2]), ("500000", "1448"));
    let info = numbers(lines[1]);
    assert_eq!(
        (info["state"], info["options"] & 7, info["mss"], info["pmtu"]),
        (1, 7, 1448, 1500),
        "{info:?}"
    );
    assert!(info["rtt"] > 0 && info["rttvar"] > 0, "{info:?}");
    assert!(info["cwnd"] >= 10 && info["rto"] >= 200_000 && info["unacked"] == 0, "{info:?}");
    let paths = silk.connections();
    assert_eq!((paths.len(), &paths[0]["mss"]), (1, &1448.into()));
    assert!(paths[0]["rtt_us"].as_u64() > Some(0) && paths[0]["cwnd"].as_u64() >= Some(14_480), "{paths:?}");
}

#[test]
fn what_is_counted_is_what_was_sent() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["fill 500000", "counts", "wait"];
    let _client = silk.start_logged(&mut client(&silk, CLIENT, &commands), "client");
    silk.until_says("client", "waiting");
    let log = silk.log("client");
    let counts = numbers(log.lines().nth(1).unwrap());
    assert_eq!((counts["length"], counts["algorithm"]), (248, 16));
    // The answer to `fill` with its end of line; what the client asked until then.
    let asked = "fill 500000\ncounts\n".len() as u64;
    assert_eq!((counts["acked"], counts["received"]), (500_001, asked), "{counts:?}");
    assert_eq!((counts["sent"], counts["unsent"]), (500_001 + counts["again"], 0), "{counts:?}");
    assert!(counts["data_out"] >= 500_001 / 1448 && counts["out"] >= counts["data_out"], "{counts:?}");
    assert!(counts["data_in"] >= 2 && counts["in"] > counts["data_in"], "{counts:?}");
    assert!(counts["least"] > 0 && counts["peers"] > 0 && counts["ours"] > 0, "{counts:?}");
    let tcp = silk.connections()[0]["tcp"].clone();
    assert_eq!(
        (&tcp["congestion"], &tcp["mss"], &tcp["pmtu"]),
        (&"cubic".into(), &1448.into(), &1500.into())
    );
    assert_eq!(tcp["bytes_received"], asked);
    let mut shown = Command::new(env!("CARGO_BIN_EXE_silk"));
    let shown = text(shown.env("SILK_SOCKET", silk.path("control.sock")).args(["paths", "--tcp"]));
    assert!(shown.contains("ts sack cubic wscale:") && shown.contains("bytes_acked:5"), "{shown}");
}

#[test]
fn a_send_buffer_holds_no_more_than_was_asked_for() {
    let Some((silk, _server)) = start() else { return };
    let said = answers(&silk, &["flood", "send 8192", "flood", "send 1", "fill 300000"]);
    let most = [&said[0], &said[2]].map(|said| said.parse::<u32>().unwrap());
    assert!(most[0] > 100_000 && (1..=8192).contains(&most[1]), "{said:?}");
    assert_eq!([&*said[1], &*said[3], &*said[4]], ["16384", "4608", "300000"]);
}

#[test]
fn a_receive_buffer_limits_the_window() {
    let Some((silk, _server)) = start() else { return };
    // What was offered before is taken first, a whole ring that has grown.
    let said =
        answers(&silk, &["long 200000", "info", "receive 8192", "long 2000000", "info", "long 2000000"]);
    assert_eq!([&*said[0], &*said[2], &*said[3], &*said[5]], ["what?", "16384", "what?", "what?"]);
    let windows = [&said[1], &said[4]].map(|said| numbers(said)["window"]);
    assert!(windows[0] > 8192 && (1..=8192).contains(&windows[1]), "{said:?}");
}

// RFC 9293 MUST-48, SHLD-21, SHLD-22.
#[test]
fn service_bits_are_on_the_packets() {
    let Some((silk, _server)) = start() else { return };
    let commands =
        ["get", "services", "service 73", "services", "fill 100000", "services", "service 0", "services"];
    assert_eq!(answers(&silk, &commands), ["0", "0", "ok", "72", "100000", "72", "ok", "0"]);
}

#[test]
fn congestion_control_is_chosen_by_the_class_and_by_the_program() {
    let Some(silk) = Silk::start_with(
        &format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"),
        &format!(
            "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\ncongestion = \"bbr\"\n\n\
             [[class]]\nname = \"standard\"\ndefault = true\n"
        ),
    ) else {
        return;
    };
    silk.write("asking.py", include_str!("asking.py"));
    let _server = silk.serve("python3", &["asking.py", "serve", "7"], 7);
    let ask = |source, commands: &[&str]| {
        text(&mut client(&silk, source, commands)).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = [
        "congestion",
        "fill 300000",
        "model",
        "congestion reno",
        "congestion",
        "fill 300000",
        "congestion x",
    ];
    let mut said = ask(PREFERRED, &commands);
    let model = said.remove(2);
    let expected = |first| [first, "300000", "ok", "reno", "300000", "ENOENT"];
    assert_eq!(said, expected("bbr"));
    // What BBR believes, as `struct tcp_bbr_info`; its bandwidth may be more than 4 GB/s, the gains are above 0.
    let model: Vec<u64> = model.split(' ').map(|word| word.parse().unwrap()).collect();
    assert!(model.len() == 4 && model.iter().all(|number| *number > 0), "{model:?}");
    said = ask(CLIENT, &commands);
    assert_eq!(said.remove(2), "", "CUBIC believes nothing");
    assert_eq!(said, expected("cubic"));
}

#[test]
fn what_is_not_sent_is_limited() {
    let Some((silk, _server)) = start() else { return };
    let said = answers(&silk, &["stuff 0", "fill 10", "stuff 16384", "fill 300000"]);
    let unsent = |said: &str| said.split(' ').next().and_then(|unsent| unsent.parse::<u64>().ok()).unwrap();
    assert!(unsent(&said[0]) > 150_000, "{said:?}");
    // As with Linux one large segment may be taken beyond the limit.
    assert!((16_384..16_384 + 65_536).contains(&unsent(&said[2])), "{said:?}");
    assert!(said[0].ends_with("False") && said[2].ends_with("False"), "{said:?}");
    assert_eq!((&*said[1], &*said[3]), ("10", "300000"));
}

#[test]
fn a_pacing_rate_is_taken_and_told() {
    let Some((silk, _server)) = start() else { return };
    let none = "18446744073709551615 18446744073709551615";
    let said = answers(&silk, &["pace 50000000", "fill 200000", "pace 18446744073709551615", "fill 200000"]);
    assert_eq!(said, ["50000000 50000000", "200000", none, "200000"]);
}

// RFC 9293 MUST-49.
#[test]
fn the_time_to_live_is_on_the_packets() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["get", "hops", "ttl 9", "hops", "fill 100000", "hops", "ttl -1", "hops"];
    assert_eq!(answers(&silk, &commands), ["0", "64", "9", "9", "100000", "9", "64", "64"]);
}

#[test]
fn fast_open_is_refused_aloud() {
    let Some((silk, _server)) = start() else { return };
    assert_eq!(answers(&silk, &["fastopen", "get"]), ["ENOTSUP", "0"]);
    let shown = silk.unserved();
    assert!(shown.contains("setsockopt(TCP_FASTOPEN)"), "{shown}");
}

// RFC 9293 MUST-21, MUST-47, SHLD-25.
#[test]
fn a_peer_that_cannot_be_reached_is_told_and_given_up() {
    let Some((silk, _server)) = start() else { return };
    let _client = silk.start_logged(&mut client(&silk, CLIENT, &["unheard 3000"]), "client");
    // An error that the connection survives; then the program's patience is over, for that reason.
    let story = "first: EHOSTUNREACH False\nnot acknowledged, not sent: 6 0\nthen: EHOSTUNREACH True\n";
    let told = || silk.log("python3").contains(story);
    let log = || format!("{}{}", silk.log("python3"), silk.log("client"));
    assert!(within(Duration::from_secs(20), told), "{}", log());
}
