//! Addresses and routes of a shared interface that change while the daemon runs.

use crate::files::{Slowly, content, fetch_each, site};
use crate::host::{Silk, bytes, said, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, SERVER};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Addresses that come later, of silk's host and of its peer.
const LATER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
/// An address of the peer's beyond its router, which it is too.
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// Waits until the daemon has said that.
fn hears(silk: &Silk, what: &str) {
    assert!(within(Duration::from_secs(10), || silk.log("silkd").contains(what)), "{}", silk.log("silkd"));
}

fn add(silk: &Silk) {
    silk.rig.client.ip(["addr", "add", &format!("{PEER}/24"), "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    hears(silk, &format!("{LATER} is an address of silk's now"));
}

#[test]
fn an_address_that_comes_later_is_served_and_connected_from() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    add(&silk);
    fetch_each(|| silk.on_peer("curl"), LATER, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    let _there = silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
    fetch_each(|| silk.on_paths("curl"), PEER, 8080);
    fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
    let from = silk.log("python3");
    assert!(from.contains("10.98.0.1 - -") && from.contains("10.99.0.1 - -"), "{from}");
    silk.linux_saw_nothing();
}

#[test]
fn an_address_that_goes_is_connected_from_no_more_and_may_come_back() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    add(&silk);
    silk.rig.server.ip(["addr", "del", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    hears(&silk, &format!("{LATER} is gone from the interface"));
    let url = format!("http://{PEER}:8080/1");
    let _there = silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
    assert!(!said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url])).ok, "there is no way there");
    silk.rig.server.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    let again = || said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url])).ok;
    assert!(within(Duration::from_secs(10), again), "{}", silk.log("silkd"));
}

#[test]
fn the_default_route_is_followed_by_new_connections_and_by_those_that_exist() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let (near, far) = (&silk.rig.server, &silk.rig.client);
    far.ip(["addr", "add", &format!("{FAR}/32"), "dev", "lo"]).unwrap();
    let _there = silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
    near.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    hears(&silk, &format!("what is far is reached by {CLIENT} over IPv4"));
    let slow = Slowly::fetch(&silk, silk.on_paths("python3"), FAR, 8080);
    assert!(within(Duration::from_secs(10), || silk.connections().len() == 1), "{}", silk.log("slow"));
    // The router becomes another station, that of the same host: an interface on top of its own.
    far.ip(["link", "add", "link", INTERFACE, "name", "router", "type", "macvlan"]).unwrap();
    far.set(&format!("/proc/sys/net/ipv4/conf/{INTERFACE}/arp_ignore"), "1").unwrap();
    far.ip(["addr", "add", &format!("{PEER}/24"), "dev", "router"]).unwrap();
    far.ip(["link", "set", "router", "up"]).unwrap();
    near.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    near.ip(["route", "replace", "default", "via", &PEER.to_string()]).unwrap();
    hears(&silk, &format!("what is far is reached by {PEER} over IPv4"));
    let received = || {
        let counted = far.run("cat", ["/sys/class/net/router/statistics/rx_packets"]).unwrap();
        counted.trim().parse::<u64>().unwrap()
    };
    let before = received();
    assert!(within(Duration::from_secs(10), || received() > before + 20), "what exists follows");
    slow.ends_well(&silk);
    let url = format!("http://{FAR}:8080/1449");
    let got = bytes(silk.on_paths("curl").args(["-sSf", "--max-time", "20", &url]));
    assert!(got == content(1449));
    near.ip(["route", "del", "default"]).unwrap();
    hears(&silk, "no default route of IPv4 leads over the interface");
    let lost = said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url]));
    assert!(!lost.ok, "{}", text(silk.on_linux("ip").arg("route")));
}
