//! UDP: dig against a small name server, each of them on either side.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{CLIENT, SERVER};
use std::process::Command;

const NAMESERVER: &str = include_str!("nameserver.py");

/// Asks `questions` names and compares every answer; one of them needs more than 512 bytes.
fn exchange(silk: &Silk, mut server: Command, client: impl Fn() -> Command, address: &str) {
    silk.write("nameserver.py", NAMESERVER);
    let _server = silk.start_logged(server.args(["nameserver.py", address]), "nameserver");
    silk.until_says("nameserver", "ready");
    let at = format!("@{address}");
    for number in 1..=20 {
        let name = format!("host{number}.example");
        let answer = text(client().args([&at, "+short", "+tries=1", "+time=5", &name, "A"]));
        assert_eq!(answer.trim(), format!("192.0.2.{number}"));
    }
    let long =
        text(client().args([&at, "+short", "+tries=1", "+time=5", "+bufsize=1400", "long.example", "TXT"]));
    let expected: Vec<String> = (0..5).map(|part| format!("\"{}\"", part.to_string().repeat(200))).collect();
    assert_eq!(long.trim(), expected.join(" "));
}

/// Datagrams that Linux's own UDP on silk's host has received or sent.
fn linux_datagrams(silk: &Silk) -> Vec<String> {
    let snmp = silk.rig.server.run("cat", ["/proc/net/snmp"]).unwrap();
    let udp: Vec<&str> = snmp.lines().filter(|line| line.starts_with("Udp:")).collect();
    udp[1].split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn dig_asks_a_server_on_paths() {
    let Some(silk) = Silk::start() else { return };
    exchange(&silk, silk.on_paths("python3"), || silk.on_peer("dig"), &SERVER.to_string());
    let [received, .., sent] = &linux_datagrams(&silk)[..4] else { panic!("no UDP counters") };
    assert_eq!((received.as_str(), sent.as_str()), ("0", "0"), "datagrams went over Linux's own stack");
}

#[test]
fn dig_on_paths_asks_a_server() {
    let Some(silk) = Silk::start() else { return };
    exchange(&silk, silk.on_peer("python3"), || silk.on_paths("dig"), &CLIENT.to_string());
    let [received, .., sent] = &linux_datagrams(&silk)[..4] else { panic!("no UDP counters") };
    assert_eq!((received.as_str(), sent.as_str()), ("0", "0"), "datagrams went over Linux's own stack");
}
