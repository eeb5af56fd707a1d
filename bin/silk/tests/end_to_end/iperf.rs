//! iperf3: long streams in each direction, from and to silk's host, two at a time. Its own report says how
//! much was sent and how much arrived. (It cannot say whether the right bytes did: its `-F` mixes up what it
//! reads over Linux too.)

use crate::host::Silk;
use crate::programs::text;
use serde_json::Value;
use silk_testkit::netns::{CLIENT, SERVER};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

/// Bytes of one run: more than every ring and window together.
const SIZE: u64 = 200_000_000;

/// Sends from client to server, or, with `reverse`, from server to client.
pub fn stream(silk: &Silk, mut server: Command, mut client: Command, address: Ipv4Addr, reverse: bool) {
    let mut server = silk.start_logged(server.args(["-s", "-1", "--forceflush"]), "iperf3");
    silk.until_says("iperf3", "listening");
    client.args(["-c", &address.to_string(), "-n", &SIZE.to_string(), "-P", "2", "-J"]);
    if reverse {
        client.arg("-R");
    }
    let report: Value = serde_json::from_str(&text(&mut client)).unwrap();
    assert_eq!(report.get("error"), None);
    let bytes = |sum| report["end"][sum]["bytes"].as_u64().unwrap();
    let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
    assert!(sent >= SIZE, "only {sent} bytes were sent");
    // The sender stops first; what is on its way then is not counted.
    assert!(received <= sent && received >= SIZE * 8 / 10, "{sent} bytes sent, {received} received");
    assert!(
        server.wait(Duration::from_secs(10)).is_some(),
        "the server did not end:\n{}",
        silk.log("iperf3")
    );
    assert!(!silk.log("iperf3").contains("error"), "{}", silk.log("iperf3"));
}

#[test]
fn a_server_on_paths_receives_a_stream() {
    let Some(silk) = Silk::start() else { return };
    stream(&silk, silk.on_paths("iperf3"), silk.on_peer("iperf3"), SERVER, false);
    silk.linux_saw_nothing();
}

#[test]
fn a_server_on_paths_sends_a_stream() {
    let Some(silk) = Silk::start() else { return };
    stream(&silk, silk.on_paths("iperf3"), silk.on_peer("iperf3"), SERVER, true);
    silk.linux_saw_nothing();
}

#[test]
fn a_client_on_paths_sends_a_stream() {
    let Some(silk) = Silk::start() else { return };
    stream(&silk, silk.on_peer("iperf3"), silk.on_paths("iperf3"), CLIENT, false);
    silk.linux_saw_nothing();
}

#[test]
fn a_client_on_paths_receives_a_stream() {
    let Some(silk) = Silk::start() else { return };
    stream(&silk, silk.on_peer("iperf3"), silk.on_paths("iperf3"), CLIENT, true);
    silk.linux_saw_nothing();
}
