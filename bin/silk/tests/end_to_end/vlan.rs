//! A virtual LAN between silk's host and a peer with a VLAN interface of Linux's, over every kind of device,
//! and the alternative: Linux carries the tag, and silk is given its VLAN interface.

use crate::files::{content, fetch_each, site};
use crate::host::{Silk, bytes, said, text, within};
use crate::python::{CLIENTS, ECHO, echo};
use silk_testkit::netns::{CLIENT, CLIENT6, Host, INTERFACE, PREFERRED, Rig, SERVER, SERVER6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The VLAN's interface on both hosts.
const TAGGED: &str = "eth0.100";
/// Silk's own addresses, which Linux does not have.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);
const OWN6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

/// Moves addresses of a host to its interface for VLAN 100.
fn tag(host: &Host, addresses: &[IpAddr]) {
    host.ip(["link", "add", "link", INTERFACE, "name", TAGGED, "type", "vlan", "id", "100"]).unwrap();
    host.set(&format!("/proc/sys/net/ipv6/conf/{TAGGED}/accept_dad"), "0").ok();
    host.ip(["addr", "flush", "dev", INTERFACE]).unwrap();
    for address in addresses {
        let length = if address.is_ipv6() { 64 } else { 24 };
        host.ip(["addr", "add", &format!("{address}/{length}"), "dev", TAGGED]).unwrap();
    }
    host.ip(["link", "set", TAGGED, "up"]).unwrap();
}

/// Both hosts on VLAN 100; the peer writes the tag into its frames, or leaves it beside them.
fn on_a_vlan(rig: &Rig, written: bool) {
    tag(&rig.server, &[SERVER.into(), SERVER6.into()]);
    tag(&rig.client, &[CLIENT.into(), PREFERRED.into(), CLIENT6.into()]);
    let state = if written { "off" } else { "on" };
    rig.client.run("ethtool", ["-K", INTERFACE, "txvlan", state]).unwrap();
}

const CLASSES: &str = "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"10.99.0.3\"\n\n\
                       [[class]]\nname = \"standard\"\ndefault = true\n";

/// A daemon on a VLAN with these keys.
fn start(written: bool, device: &str) -> Option<Silk> {
    let silk = Silk::start_on(|rig| on_a_vlan(rig, written), device, CLASSES)?;
    site(&silk);
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    Some(silk)
}

/// A daemon that shares the interface.
fn shared(mode: &str) -> Option<Silk> {
    start(true, &format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\nvlan = 100\n"))
}

/// A daemon with addresses of its own.
fn own() -> Option<Silk> {
    start(
        true,
        &format!(
            "kind = \"packet\"\ninterface = \"{INTERFACE}\"\nvlan = 100\naddress = \"{OWN}/24\"\n\
             address6 = \"{OWN6}/64\"\n"
        ),
    )
}

/// Files in either role and over either IP, and many conversations at once.
fn serves(silk: &Silk, four: Ipv4Addr, six: Ipv6Addr) {
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve_at("python3", &words, four, 80);
    fetch_each(|| silk.on_peer("curl"), four, 80);
    fetch_each(|| silk.on_peer("curl"), six, 80);
    let _echo = silk.serve_at("python3", &["echo_server.py", "7"], four, 7);
    echo(|| silk.on_peer("python3"), four);
    let _there = silk.serve_on_peer(
        "python3",
        &["-m", "http.server", "8080", "--bind", "::", "--directory", "site"],
        8080,
    );
    fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
    fetch_each(|| silk.on_paths("curl"), CLIENT6, 8080);
    silk.linux_saw_nothing();
}

#[test]
fn an_interface_that_is_shared_in_its_driver() {
    let Some(silk) = shared("native") else { return };
    assert!(silk.log("silkd").contains("ready on eth0 VLAN 100, 2 domains"), "{}", silk.log("silkd"));
    serves(&silk, SERVER, SERVER6);
}

#[test]
fn an_interface_that_is_shared_in_linuxs_receive_path() {
    let Some(silk) = shared("generic") else { return };
    serves(&silk, SERVER, SERVER6);
}

#[test]
fn a_packet_socket() {
    let Some(silk) = own() else { return };
    serves(&silk, OWN, OWN6);
}

#[test]
fn a_tap() {
    let device = "kind = \"tap\"\ninterface = \"silk0\"\naddress = \"10.98.0.9/24\"\nvlan = 100\n";
    let Some(silk) = Silk::start_with(device, CLASSES) else { return };
    site(&silk);
    let host = &silk.rig.server;
    host.ip(["link", "add", "link", "silk0", "name", "silk0.100", "type", "vlan", "id", "100"]).unwrap();
    host.ip(["addr", "add", "10.98.0.2/24", "dev", "silk0.100"]).unwrap();
    host.ip(["addr", "add", "10.97.0.2/24", "dev", "silk0"]).unwrap();
    host.ip(["link", "set", "silk0", "up"]).unwrap();
    host.ip(["link", "set", "silk0.100", "up"]).unwrap();
    let mut server = silk.on_paths("python3");
    let _server =
        silk.start_logged(server.args(["-m", "http.server", "80", "--directory", "site"]), "server");
    let own = Ipv4Addr::new(10, 98, 0, 9);
    let answers = || said(silk.on_linux("curl").args(["-sf", &format!("http://{own}/1")])).ok;
    assert!(within(Duration::from_secs(10), answers), "{}", silk.log("server"));
    fetch_each(|| silk.on_linux("curl"), own, 80);
    // A question after a neighbour without the tag.
    said(silk.on_linux("ping").args(["-c", "1", "-W", "1", "-I", "silk0", "10.97.0.9"]));
    let counted = || {
        let report = silk.report();
        report["drops"].as_array().unwrap().iter().any(|drop| drop["reason"] == "eth: of another VLAN")
    };
    assert!(within(Duration::from_secs(10), counted), "{}", silk.report());
}

#[test]
fn the_untagged_and_other_vlans_do_not_reach_it() {
    let Some(silk) = own() else { return };
    let _server = silk.serve_at("python3", &["-m", "http.server", "80", "--directory", "site"], OWN, 80);
    let peer = &silk.rig.client;
    peer.ip(["link", "add", "link", INTERFACE, "name", "eth0.101", "type", "vlan", "id", "101"]).unwrap();
    peer.ip(["link", "set", "eth0.101", "up"]).unwrap();
    for (interface, reaches) in [(INTERFACE, false), ("eth0.101", false), (TAGGED, true)] {
        peer.ip(["route", "replace", "10.99.0.9/32", "dev", interface]).unwrap();
        let curl = ["-sf", "--max-time", "5", "http://10.99.0.9/1449"];
        let got = said(silk.on_peer("curl").args(curl));
        assert_eq!(got.ok, reaches, "{interface}");
        assert!(!reaches || got.bytes == content(1449));
    }
}

/// Where the tag is beside the frame XDP does not see it: Linux's TCP serves, and nothing is lost.
#[test]
fn tags_that_xdp_cannot_see_leave_packets_to_linux() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nvlan = 100\n");
    let Some(silk) = start(false, &device) else { return };
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    let snmp = silk.rig.server.run("nstat", ["-asz", "TcpPassiveOpens"]).unwrap();
    assert!(!snmp.contains(" 0 "), "{snmp}");
}

#[test]
fn without_an_interface_of_linuxs_the_daemon_says_what_to_do() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let Some(silk) = Silk::start_with(&device, CLASSES) else { return };
    let config = std::fs::read_to_string(silk.path("silk.toml")).unwrap();
    let config = config.replace("control.sock", "other.sock").replace("[device]", "[device]\nvlan = 100");
    silk.write("other.toml", config.replace(INTERFACE, "dummy0"));
    silk.rig.server.ip(["link", "add", "dummy0", "type", "veth"]).unwrap();
    let done = said(
        silk.rig.server.command(crate::host::beside("silkd")).arg("--config").arg(silk.path("other.toml")),
    );
    assert!(
        !done.ok && done.errors.contains("`ip link add link dummy0 name dummy0.100 type vlan id 100`"),
        "{}",
        done.errors
    );
}

/// Linux carries the tag, and silk is given Linux's interface, which needs nothing switched off.
#[test]
fn linuxs_own_interface_shared_in_its_receive_path() {
    let device = format!("kind = \"xdp\"\ninterface = \"{TAGGED}\"\nmode = \"generic\"\n");
    let Some(silk) = start(false, &device) else { return };
    serves(&silk, SERVER, SERVER6);
}

#[test]
fn linuxs_own_interface_and_a_packet_socket() {
    let device = format!(
        "kind = \"packet\"\ninterface = \"{TAGGED}\"\naddress = \"{OWN}/24\"\naddress6 = \"{OWN6}/64\"\n"
    );
    let Some(silk) = start(false, &device) else { return };
    serves(&silk, OWN, OWN6);
}

#[test]
fn a_preferred_client_has_its_class_on_a_vlan() {
    let Some(silk) = shared("native") else { return };
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    let url = format!("http://{SERVER}/5000000");
    let from = PREFERRED.to_string();
    let slow = ["-sSf", "--limit-rate", "500k", "--max-time", "20", "--interface", &from, &url];
    let mut curl = silk.on_peer("curl");
    let _curl = silk.start_logged(curl.args(slow).args(["-o", "/dev/null"]), "curl");
    let shown = || silk.connections().iter().any(|path| path["class"] == "preferred");
    assert!(within(Duration::from_secs(10), shown), "{}", text(silk.on_peer("ss").arg("-tin")));
    let got = bytes(silk.on_peer("curl").args(["-sSf", &format!("http://{SERVER}/1449")]));
    assert!(got == content(1449));
}
