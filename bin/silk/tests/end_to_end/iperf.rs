//! iperf3: a long stream in each direction, from and to silk's host. It sends a file and writes down what
//! arrives, so that the bytes can be compared.

use crate::files::content;
use crate::host::{Silk, text, within};
use silk_testkit::netns::{CLIENT, SERVER};
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

/// More than every ring and window together.
const SIZE: usize = 40_000_000;

/// Sends the file from client to server, or, with `-R`, from server to client.
fn stream(silk: &Silk, mut server: Command, mut client: Command, address: Ipv4Addr, reverse: bool) {
    silk.write("sent", content(SIZE));
    let (serving, asking) = if reverse { ("sent", "got") } else { ("got", "sent") };
    server.args(["-s", "-1", "-F", serving]);
    let mut server = silk.start_logged(&mut server, "iperf3");
    client.args(["-c", &address.to_string(), "-F", asking, "-n", &SIZE.to_string(), "-J"]);
    if reverse {
        client.arg("-R");
    }
    let listening = || silk.log("iperf3").contains("listening");
    assert!(within(Duration::from_secs(10), listening), "{}", silk.log("iperf3"));
    let report = text(&mut client);
    assert!(!report.contains("\"error\""), "{report}");
    assert!(
        server.wait(Duration::from_secs(10)).is_some(),
        "the server did not end:\n{}",
        silk.log("iperf3")
    );
    let got = fs::read(silk.path("got")).unwrap();
    // The receiver stops when the control connection says so; what it has by then is a beginning.
    assert!(got.len() >= SIZE / 2, "only {} bytes arrived", got.len());
    let sent = content(SIZE);
    assert!(got[..] == sent[..got.len()], "what arrived is not what was sent");
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
