//! A virtual LAN between silk's host and a peer over Linux's own stack, over every kind of device. Its tags
//! are written and read by a program of traffic control on the peer's interface (`tag.bpf.c`), for the
//! kernel may have no interfaces for VLANs; what of Linux's is on silk's own host has the same.

use crate::files::{content, fetch_each, site};
use crate::host::Silk;
use crate::programs::{bytes, said, skipped, within};
use crate::python::{CLIENTS, ECHO, echo};
use silk_testkit::netns::{CLIENT, CLIENT6, Host, INTERFACE, PREFERRED, Rig, SERVER, SERVER6};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Silk's own addresses, which Linux does not have.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);
const OWN6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

/// Compiles the program that moves tags, as the crate of devices compiles its own.
fn mover(folder: &Path) -> Option<PathBuf> {
    let (source, object) = (folder.join("tag.bpf.c"), folder.join("tag.o"));
    fs::write(&source, include_str!("tag.bpf.c")).unwrap();
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf"]);
    clang.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    match clang.arg("-c").arg(&source).arg("-o").arg(&object).status() {
        Ok(done) => {
            assert!(done.success(), "clang cannot compile it for BPF");
            Some(object)
        }
        Err(error) => skipped(&format!("there is no clang: {error}")),
    }
}

/// Gives everything that a host sends over this interface the tag, and takes it out of what it receives.
fn tag(host: &Host, interface: &str, mover: &Path) {
    let object = mover.to_str().unwrap();
    host.run("tc", ["qdisc", "add", "dev", interface, "clsact"]).unwrap();
    for (way, section) in [("egress", "tc/push"), ("ingress", "tc/pop")] {
        let words = ["filter", "add", "dev", interface, way, "bpf", "da", "obj", object, "sec", section];
        host.run("tc", words).unwrap();
    }
}

/// Both hosts on VLAN 100; the peer writes the tag into its frames, or leaves it beside them.
fn on_a_vlan(rig: &Rig, mover: &Path, written: bool) {
    tag(&rig.server, INTERFACE, mover);
    tag(&rig.client, INTERFACE, mover);
    let state = if written { "off" } else { "on" };
    rig.client.run("ethtool", ["-K", INTERFACE, "txvlan", state]).unwrap();
}

const CLASSES: &str = "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"10.99.0.3\"\n\n\
                       [[class]]\nname = \"standard\"\ndefault = true\n";

/// A daemon on a VLAN with these keys.
fn start(written: bool, device: &str) -> Option<Silk> {
    let folder = TempDir::with_prefix("silk-tag-").unwrap();
    let mover = mover(folder.path())?;
    let mut silk = Silk::without_daemon(device, CLASSES)?;
    on_a_vlan(&silk.rig, &mover, written);
    silk.start_daemon();
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
    let folder = TempDir::with_prefix("silk-tag-").unwrap();
    let Some(mover) = mover(folder.path()) else { return };
    for written in ["off", "on"] {
        let Some(silk) = Silk::start_with(device, CLASSES) else { return };
        site(&silk);
        let host = &silk.rig.server;
        host.ip(["addr", "add", "10.98.0.2/24", "dev", "silk0"]).unwrap();
        host.run("ethtool", ["-K", "silk0", "txvlan", written]).unwrap();
        host.ip(["link", "set", "silk0", "up"]).unwrap();
        // A question after a neighbour without the tag.
        said(silk.on_linux("ping").args(["-c", "1", "-W", "1", "10.98.0.9"]));
        let counted = || {
            let report = silk.report();
            report["drops"].as_array().unwrap().iter().any(|drop| drop["reason"] == "eth: of another VLAN")
        };
        assert!(within(Duration::from_secs(10), counted), "{}", silk.report());
        tag(host, "silk0", &mover);
        let mut server = silk.on_paths("python3");
        let words = ["-m", "http.server", "80", "--directory", "site"];
        let _server = silk.start_logged(server.args(words), "server");
        let own = Ipv4Addr::new(10, 98, 0, 9);
        let answers = || said(silk.on_linux("curl").args(["-sf", &format!("http://{own}/1")])).ok;
        assert!(within(Duration::from_secs(10), answers), "{}", silk.log("server"));
        fetch_each(|| silk.on_linux("curl"), own, 80);
    }
}

#[test]
fn the_untagged_do_not_reach_it() {
    let Some(silk) = own() else { return };
    let _server = silk.serve_at("python3", &["-m", "http.server", "80", "--directory", "site"], OWN, 80);
    let reaches =
        || said(silk.on_peer("curl").args(["-sf", "--max-time", "5", &format!("http://{OWN}/1449")]));
    let got = reaches();
    assert!(got.ok && got.bytes == content(1449));
    silk.rig.client.run("tc", ["qdisc", "del", "dev", INTERFACE, "clsact"]).unwrap();
    assert!(!reaches().ok);
}

/// Where the tag is beside the frame XDP does not see it: Linux's TCP serves, and nothing is lost.
#[test]
fn tags_that_xdp_cannot_see_leave_packets_to_linux() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"generic\"\nvlan = 100\n");
    let Some(silk) = start(false, &device) else { return };
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    let snmp = silk.rig.server.run("nstat", ["-asz", "TcpPassiveOpens"]).unwrap();
    assert!(!snmp.contains(" 0 "), "{snmp}");
}

/// At the ingress of traffic control it is seen there too.
#[test]
fn tags_beside_the_frame_are_seen_at_the_ingress() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"ingress\"\nvlan = 100\n");
    let Some(silk) = start(false, &device) else { return };
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    silk.linux_saw_nothing();
}

#[test]
fn without_an_interface_of_linuxs_the_daemon_says_whose_addresses_it_takes() {
    let Some(silk) = shared("native") else { return };
    let said = silk.log("silkd");
    assert!(said.contains("`ip link add link eth0 name eth0.100 type vlan id 100`"), "{said}");
}

#[test]
fn a_preferred_client_has_its_class_on_a_vlan() {
    let Some(silk) = shared("native") else { return };
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    // It says nothing, so the server waits for it and the connection stays.
    let silent = format!(
        "import socket; socket.create_connection(('{SERVER}', 80), source_address=('{PREFERRED}', 0)).recv(1)"
    );
    let mut client = silk.on_peer("python3");
    let _client = silk.start_logged(client.args(["-c", &silent]), "client");
    let shown = || silk.connections().iter().any(|path| path["class"] == "preferred");
    assert!(within(Duration::from_secs(10), shown), "{} {}", silk.report(), silk.log("client"));
    let got = bytes(silk.on_peer("curl").args(["-sSf", &format!("http://{SERVER}/1449")]));
    assert!(got == content(1449));
}
