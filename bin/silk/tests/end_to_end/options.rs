//! Socket options that reach the path: what TCP knows of a connection, buffer sizes, service bits.

use crate::host::{Silk, text, within};
use crate::priority::{client, start};
use silk_testkit::netns::CLIENT;
use std::collections::BTreeMap;
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
    let waits = || silk.log("client").contains("waiting");
    assert!(within(Duration::from_secs(20), waits), "{}", silk.log("client"));
    let log = silk.log("client");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines[2]), ("500000", "1448"));
    let info = numbers(lines[1]);
    assert_eq!(
        (info["state"], info["options"] & 7, info["mss"], info["pmtu"]),
        (1, 7, 1448, 1500),
        "{info:?}"
    );
    assert!((1..1_000_000).contains(&info["rtt"]) && info["rttvar"] > 0, "{info:?}");
    assert!(info["cwnd"] >= 10 && info["rto"] >= 200_000 && info["unacked"] == 0, "{info:?}");
    let paths = silk.connections();
    assert_eq!((paths.len(), &paths[0]["mss"]), (1, &1448.into()));
    assert!(paths[0]["rtt_us"].as_u64() > Some(0) && paths[0]["cwnd"].as_u64() >= Some(14_480), "{paths:?}");
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
    let said =
        answers(&silk, &["long 200000", "info", "receive 8192", "long 200000", "info", "long 2000000"]);
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
