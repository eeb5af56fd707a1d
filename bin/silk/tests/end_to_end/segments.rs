//! Several datagrams in one call (`UDP_SEGMENT`, `UDP_GRO`), with Linux's own stack on the other side.

use crate::host::{MODES, Silk};
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, INTERFACE, SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

/// What arrives, whoever sends and over whatever.
const WHOLE: &str = "[(20, 1), (100, 1), (300, 3), (1200, 1), (1400, 44)] 5b66cabf";
/// What the sender's calls answer.
const SENT: &str = "60000 1400 20\n1000\nEMSGSIZE 1400\n";

/// A receiver at `address`, a sender on the other host, and what the former says.
fn carry(silk: &Silk, receiver: Command, sender: Command, address: &str, how: &[&str]) -> String {
    let mut receiver = receiver;
    receiver.args(["segments.py", "receive", address, "4100"]).args(how);
    let mut receiver = silk.start_logged(&mut receiver, "receiver");
    silk.until_says("receiver", "ready");
    let mut sender = sender;
    assert_eq!(text(sender.args(["segments.py", "send", address, "4100"])), SENT);
    let over = within(Duration::from_secs(25), || receiver.ended().is_some());
    assert!(over, "{}", silk.log("receiver"));
    silk.log("receiver").lines().last().unwrap_or_default().to_owned()
}

/// Both directions, on silk's addresses `here`.
fn both_ways(silk: &Silk, here: [&str; 2]) {
    silk.write("segments.py", include_str!("segments.py"));
    let single = format!("{WHOLE} one by one");
    for (ours, peers) in here.into_iter().zip([CLIENT.to_string(), CLIENT6.to_string()]) {
        let (paths, peer) = (|| silk.on_paths("python3"), || silk.on_peer("python3"));
        assert_eq!(carry(silk, peer(), paths(), &peers, &[]), single, "to {peers}");
        assert_eq!(carry(silk, paths(), peer(), ours, &[]), single, "to {ours}");
        // How many there are when the program looks is a matter of time.
        let together = carry(silk, paths(), peer(), ours, &["together"]);
        assert!(together.starts_with(WHOLE), "to {ours}: {together}");
    }
}

#[test]
fn several_datagrams_in_a_call_cross_the_wire_as_single_ones() {
    for mode in MODES {
        let Some(silk) = Silk::start_in(mode) else { return };
        both_ways(&silk, [&SERVER.to_string(), &SERVER6.to_string()]);
    }
}

#[test]
fn so_they_do_over_a_packet_socket() {
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"10.99.0.9/24\"\naddress6 = \"fd99::9/64\"\n"
    );
    let Some(silk) = Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n") else { return };
    both_ways(&silk, ["10.99.0.9", "fd99::9"]);
}
