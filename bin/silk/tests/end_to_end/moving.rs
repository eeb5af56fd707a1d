//! Addresses and routes of a shared interface, and its Ethernet address, that change while the daemon runs.

use crate::files::{Slowly, content, fetch_each, site};
use crate::host::{MODES, Silk};
use crate::programs::{bytes, said, text, within};
use silk_testkit::netns::{CLIENT, CLIENT_B, INTERFACE, INTERFACE_B, SERVER, SERVER6};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Addresses that come later, of silk's host and of its peer.
const LATER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
/// An address of the peer's beyond its router, which it is too.
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// Says from which Ethernet address a segment from port 80 comes.
const FROM: &str = "import socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
print('ready', flush=True)
while True:
    frame, about = wire.recvfrom(100)
    if about[2] != socket.PACKET_OUTGOING and frame[23] == 6 and frame[34:36] == bytes([0, 80]):
        print(':'.join(f'{byte:02x}' for byte in frame[6:12]), flush=True)
        break
";

/// Answers each datagram with one that is as long as an ordinary link takes.
const ECHO: &str = "import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(('0.0.0.0', 7))
print('ready', flush=True)
while True:
    end.sendto(bytes(1472), end.recvfrom(100)[1])
";
const ASK: &str = "import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.settimeout(2)
    end.sendto(b'how long?', (sys.argv[1], 7))
    assert len(end.recv(2000)) == 1472
";

fn add(silk: &Silk) {
    silk.rig.client.ip(["addr", "add", &format!("{PEER}/24"), "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    silk.until_says("silkd", &format!("{LATER} is an address of silk's now"));
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
    silk.until_says("silkd", &format!("{LATER} is gone from the interface"));
    let url = format!("http://{PEER}:8080/1");
    let _there = silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
    assert!(!said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url])).ok, "there is no way there");
    silk.rig.server.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    let again = || said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url])).ok;
    assert!(within(Duration::from_secs(10), again), "{}", silk.log("silkd"));
}

/// Says whenever something else becomes of a datagram to an address, without the leave to speak with everyone.
const SPEAK: &str = "import errno, socket, sys, time
end, before = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), None
end.bind(('0.0.0.0', 0))
while True:
    try:
        end.sendto(b'hello', (sys.argv[1], 9))
        now = 'sent'
    except OSError as error:
        now = errno.errorcode[error.errno]
    if now != before:
        print(now, flush=True)
    before = now
    time.sleep(0.05)
";
/// Says that it listens at an address, and what it hears first.
const LISTEN: &str = "import socket, sys
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind((sys.argv[1], 4444))
print('listens', flush=True)
print(end.recv(100).decode(), flush=True)
end.recv(100)
";
/// Says a word to everyone on a network again and again.
const CALL: &str = "import socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
while True:
    end.sendto(sys.argv[2].encode(), (sys.argv[1], 4444))
    time.sleep(0.1)
";

#[test]
fn everyone_on_a_network_that_comes_is_spoken_to_by_leave_and_heard_and_goes_with_it() {
    let Some(silk) = Silk::start() else { return };
    let _speaker = silk.start_logged(silk.on_paths("python3").args(["-c", SPEAK, "10.98.0.255"]), "speaker");
    silk.until_says("speaker", "ENETUNREACH");
    add(&silk);
    silk.until_says("speaker", "EACCES");
    let listens = |at: &str, mut python: std::process::Command, name: &str| {
        let listener = silk.start_logged(python.args(["-c", LISTEN, at]), name);
        silk.until_says(name, "listens");
        let _caller = silk.start_logged(silk.on_peer("python3").args(["-c", CALL, at, name]), "caller");
        silk.until_says(name, name);
        listener
    };
    let _listener = listens("10.98.0.255", silk.on_paths("python3"), "ours");
    silk.rig.server.ip(["addr", "del", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    silk.until_says("silkd", &format!("{LATER} is gone from the interface"));
    let is_no_network = || silk.log("speaker").ends_with("EACCES\nENETUNREACH\n");
    assert!(within(Duration::from_secs(10), is_no_network), "{}", silk.log("speaker"));
    // Whoever has the place of what has gone has nothing of it.
    silk.rig.client.ip(["addr", "add", "10.97.0.2/24", "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["addr", "add", "10.97.0.1/24", "dev", INTERFACE]).unwrap();
    silk.until_says("silkd", "10.97.0.1 is an address of silk's now");
    let _linux = listens("10.97.0.255", silk.on_linux("python3"), "linux");
    // And it may come back.
    drop(_listener);
    silk.rig.server.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    let back = |log: &str| log.matches(&format!("{LATER} is an address of silk's now")).count() == 2;
    assert!(within(Duration::from_secs(10), || back(&silk.log("silkd"))));
    let _again = listens("10.98.0.255", silk.on_paths("python3"), "again");
    assert_eq!(silk.unserved().trim(), "nothing was left to Linux");
}

/// Routers of IPv6 tell a host its addresses once its interface is up; that may be after its programs have begun.
#[test]
fn a_first_address_of_ipv6_that_comes_later_is_served_by_who_serves_already() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[[class]]\nname = \"standard\"\ndefault = true\n";
    let Some(mut silk) = Silk::without_daemon(&device, classes) else { return };
    let switch = format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6");
    silk.rig.server.set(&switch, "1").unwrap();
    silk.start_daemon();
    site(&silk);
    silk.write("both_families.py", include_str!("both_families.py"));
    let arguments = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve("python3", &arguments, 80);
    let mut python = silk.on_paths("python3");
    let _datagrams =
        silk.start_logged(python.args(["both_families.py", "datagrams", "::", "7"]), "datagrams");
    silk.until_says("datagrams", "ready");
    silk.rig.server.set(&switch, "0").unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{SERVER6}/64"), "dev", INTERFACE, "nodad"]).unwrap();
    silk.until_says("silkd", &format!("{SERVER6} is an address of silk's now"));
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    for at in [SERVER6.to_string(), SERVER.to_string()] {
        let said = text(silk.on_peer("python3").args(["both_families.py", "send", &at, "7"]));
        assert!(said.ends_with(" hello\n"), "{said}");
    }
    silk.linux_saw_nothing();
}

/// A bond takes over a card, a virtual machine moves, somebody writes it down.
#[test]
fn another_ethernet_address_is_taken_over_by_new_connections_and_by_those_that_exist() {
    const ANOTHER: &str = "02:00:00:00:00:77";
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let arguments = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve("python3", &arguments, 80);
    let slow = Slowly::fetch(&silk, silk.on_peer("python3"), SERVER, 80);
    assert!(within(Duration::from_secs(10), || silk.connections().len() == 1), "{}", silk.log("slow"));
    silk.rig.server.ip(["link", "set", INTERFACE, "address", ANOTHER]).unwrap();
    silk.rig.client.ip(["neigh", "flush", "dev", INTERFACE]).unwrap();
    slow.ends_well(&silk);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    let mut listener = silk.on_peer("python3");
    let _listener = silk.start_logged(listener.args(["-c", FROM]), "from");
    silk.until_says("from", "ready");
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    silk.until_says("from", ANOTHER);
    silk.linux_saw_nothing();
}

/// It may go to a container. The kernel leaves the program where it is, and closes the sockets that it gives packets to.
#[test]
fn an_interface_that_goes_to_another_namespace_takes_no_program_along_and_is_linuxs_when_it_is_back() {
    for mode in MODES {
        let Some(mut silk) = Silk::start_in(mode) else { return };
        site(&silk);
        let server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
        fetch_each(|| silk.on_peer("curl"), SERVER, 80);
        silk.linux_saw_nothing();
        let elsewhere = silk.rig.bystander().unwrap();
        let near = &silk.rig.server;
        near.ip(["link", "set", INTERFACE, "netns", elsewhere.namespace(), "name", "moved"]).unwrap();
        elsewhere.ip(["link", "set", "moved", "netns", near.namespace(), "name", INTERFACE]).unwrap();
        silk.until_says("silkd", &format!("the interface `{INTERFACE}` is gone"));
        let told = near.run("ip", ["-details", "link", "show", "dev", INTERFACE]).unwrap();
        assert!(!told.contains("xdp"), "{mode}: {told}");
        near.ip(["addr", "add", &format!("{SERVER}/24"), "dev", INTERFACE]).unwrap();
        near.ip(["link", "set", INTERFACE, "up"]).unwrap();
        fetch_each(|| silk.on_peer("curl"), SERVER, 80);
        let _there =
            silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
        fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
        assert!(silk.daemon().ended().is_none());
        drop(server);
    }
}

/// The kernel says nothing of such a route.
#[test]
fn a_route_that_goes_with_its_interface_or_with_its_next_hop_is_gone() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[[class]]\nname = \"standard\"\ndefault = true\n";
    let Some(mut silk) = Silk::without_daemon(&device, classes) else { return };
    silk.rig.add_second().unwrap();
    let near = &silk.rig.server;
    near.set(&format!("/proc/sys/net/ipv6/conf/{INTERFACE_B}/disable_ipv6"), "1").unwrap();
    near.ip(["route", "add", "default", "via", &CLIENT_B.to_string(), "metric", "10"]).unwrap();
    near.ip(["route", "add", "default", "via", &CLIENT.to_string(), "metric", "100"]).unwrap();
    silk.start_daemon();
    // So all that is told of before has been looked at.
    add(&silk);
    silk.rig.server.ip(["link", "set", INTERFACE_B, "down"]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    let (beyond, by) = ("172.24.0.0/16", CLIENT.to_string());
    silk.rig.server.ip(["nexthop", "add", "id", "1", "via", &by, "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["route", "add", beyond, "nhid", "1"]).unwrap();
    silk.until_says("silkd", &format!("{beyond} is reached by {CLIENT} now"));
    silk.rig.server.ip(["nexthop", "del", "id", "1"]).unwrap();
    silk.until_says("silkd", &format!("{beyond} is reached by {CLIENT} no longer"));
}

#[test]
fn an_interface_that_is_gone_is_told_of_once() {
    let Some(silk) = Silk::start() else { return };
    silk.rig.server.ip(["link", "delete", INTERFACE]).unwrap();
    let said = format!("the interface `{INTERFACE}` is gone");
    silk.until_says("silkd", &said);
    // Another of its name is looked at, and is another.
    silk.rig.server.ip(["link", "add", INTERFACE, "type", "veth", "peer", "name", "other"]).unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{SERVER}/24"), "dev", INTERFACE]).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(silk.log("silkd").matches(&said).count(), 1, "{}", silk.log("silkd"));
}

#[test]
fn a_link_that_becomes_narrower_is_not_given_what_it_does_not_take() {
    let Some(silk) = Silk::start() else { return };
    let mut echo = silk.on_paths("python3");
    let _server = silk.start_logged(echo.args(["-c", ECHO]), "echo");
    silk.until_says("echo", "ready");
    let asks = || said(silk.on_peer("python3").args(["-c", ASK, &SERVER.to_string()])).ok;
    assert!(asks(), "{}", silk.log("echo"));
    silk.rig.server.ip(["link", "set", INTERFACE, "mtu", "1300"]).unwrap();
    // The daemon hears of it within a second.
    assert!(within(Duration::from_secs(10), asks), "{}", silk.log("silkd"));
    let lost = silk.report()["drops"].clone();
    assert!(asks(), "{}", silk.log("silkd"));
    assert_eq!(silk.report()["drops"], lost);
}

#[test]
fn the_default_route_is_followed_by_new_connections_and_by_those_that_exist() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let (near, far) = (&silk.rig.server, &silk.rig.client);
    far.ip(["addr", "add", &format!("{FAR}/32"), "dev", "lo"]).unwrap();
    let _there = silk.serve_on_peer("python3", &["-m", "http.server", "8080", "--directory", "site"], 8080);
    near.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    let slow = Slowly::fetch(&silk, silk.on_paths("python3"), FAR, 8080);
    assert!(within(Duration::from_secs(10), || silk.connections().len() == 1), "{}", silk.log("slow"));
    // The router becomes another station, that of the same host: an interface on top of its own.
    far.ip(["link", "add", "link", INTERFACE, "name", "router", "type", "macvlan"]).unwrap();
    far.set(&format!("/proc/sys/net/ipv4/conf/{INTERFACE}/arp_ignore"), "1").unwrap();
    far.ip(["addr", "add", &format!("{PEER}/24"), "dev", "router"]).unwrap();
    far.ip(["link", "set", "router", "up"]).unwrap();
    near.ip(["addr", "add", &format!("{LATER}/24"), "dev", INTERFACE]).unwrap();
    near.ip(["route", "replace", "default", "via", &PEER.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {PEER} over IPv4"));
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
    silk.until_says("silkd", "no default route of IPv4 leads over the interface");
    let lost = said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url]));
    assert!(!lost.ok, "{}", text(silk.on_linux("ip").arg("route")));
}
