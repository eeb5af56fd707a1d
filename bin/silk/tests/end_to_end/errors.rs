//! What datagram sockets hear of the network: ports where nobody listens, hops that run out, and ways
//! that are too narrow. The same program says the same over Linux's own stack and over silk.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::{CLIENT, CLIENT6, SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

/// Behind the peer, over a link that takes 1300 bytes.
const BEYOND: &str = "10.98.0.5";
const BEYOND6: &str = "fd98::5";

/// Hosts of which the peer is a router to a narrow link, and the daemon knows it.
fn start() -> Option<Silk> {
    let mut silk = Silk::start()?;
    let peer = &silk.rig.client;
    peer.run("sysctl", ["-q", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]).unwrap();
    // As many errors as the tests make.
    peer.run("sysctl", ["-q", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"]).unwrap();
    peer.ip(["link", "add", "narrow", "mtu", "1300", "type", "veth", "peer", "name", "wide"]).unwrap();
    peer.ip(["link", "set", "narrow", "up"]).unwrap();
    peer.ip(["link", "set", "wide", "up"]).unwrap();
    peer.ip(["address", "add", "10.98.0.1/24", "dev", "narrow"]).unwrap();
    peer.ip(["address", "add", "fd98::1/64", "dev", "narrow", "nodad"]).unwrap();
    // One that is narrower than packets are made for what a router says.
    peer.ip(["link", "add", "strait", "mtu", "300", "type", "veth", "peer", "name", "open"]).unwrap();
    peer.ip(["link", "set", "strait", "up"]).unwrap();
    peer.ip(["link", "set", "open", "up"]).unwrap();
    peer.ip(["address", "add", "10.96.0.1/24", "dev", "strait"]).unwrap();
    silk.rig.server.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    silk.rig.server.ip(["route", "add", "default", "via", &CLIENT6.to_string()]).unwrap();
    // The daemon learns of routes when it starts.
    silk.restart_daemon(Duration::from_secs(5));
    silk.write("errors.py", include_str!("errors.py"));
    Some(silk)
}

fn heard(mut command: Command, to: &[&str]) -> Vec<String> {
    text(command.arg("errors.py").args(to)).lines().map(str::to_owned).collect()
}

/// Linux forgets what it has learnt of the way, so that it learns it again.
fn forget(silk: &Silk) {
    silk.rig.server.ip(["route", "flush", "cache"]).unwrap();
    silk.rig.server.ip(["-6", "route", "flush", "cache"]).unwrap();
}

fn compare(peer: &str, beyond: &str) {
    let Some(silk) = start() else { return };
    // The first packet to a neighbour may be lost before it is known.
    let answers = || silk.rig.server.run("ping", ["-q", "-c", "1", "-W", "1", peer]).is_ok();
    assert!((0..10).any(|_| answers()), "{peer} does not answer");
    let linux = heard(silk.on_linux("python3"), &[peer, beyond]);
    forget(&silk);
    let ours = heard(silk.on_paths("python3"), &[peer, beyond]);
    assert!(linux.len() > 8, "{linux:?}");
    assert_eq!(ours, linux);
}

#[test]
fn a_datagram_socket_hears_what_it_would_on_linux() {
    compare(&CLIENT.to_string(), BEYOND);
}

#[test]
fn over_ipv6_too() {
    compare(&CLIENT6.to_string(), BEYOND6);
}

#[test]
fn and_of_its_own_machine() {
    let Some(silk) = start() else { return };
    for own in [SERVER.to_string(), SERVER6.to_string()] {
        let linux = heard(silk.on_linux("python3"), &[&own]);
        assert_eq!(linux.len(), 6, "{linux:?}");
        assert_eq!(heard(silk.on_paths("python3"), &[&own]), linux, "{own}");
    }
}
