//! Linux's routing table, which decides for silk too: who is behind a router of its own, who is beyond an interface
//! of Linux's, and who is not to be sent to. With an address of silk's own the configuration says so.

use crate::files::{Slowly, fetch_each, site};
use crate::host::Silk;
use crate::programs::{said, text, within};
use silk_testkit::netns::{CLIENT, CLIENT_B, CLIENT6, INTERFACE, Running, SERVER, SERVER6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

/// Addresses of the peer's beyond its link.
pub const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
pub const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9);
/// The networks that they are of.
pub const NETWORK: &str = "192.0.2.0/24";
const NETWORK6: &str = "2001:db8:9::/48";
/// Python's server of files.
const SITE: [&str; 6] = ["-u", "-m", "http.server", "--bind", "::", "--directory"];
/// Sends a datagram to each address, from a socket that is bound and from one that is not, and tells who answers.
pub const ASK: &str = "import socket, sys
for port in (0, 7000):
    for to in sys.argv[1:]:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(3)
        if port:
            s.bind(('', port))
        s.sendto(b'hello', (to, 7))
        print(s.recvfrom(9)[1][0], flush=True)
        s.close()
";
/// Answers datagrams.
pub const ANSWER: &str = "import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 7))
print('ready', flush=True)
while True:
    s.sendto(*s.recvfrom(9))
";

/// Tells how large segments and packets to an address are.
const SIZES: &str = "import socket, sys
s = socket.create_connection((sys.argv[1], 8080))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.connect((sys.argv[1], 9))
print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), u.getsockopt(socket.IPPROTO_IP, 14))
";

/// Tells a host that what it sends to another is better given to a third: FROM TO FAR HOP.
const REDIRECT: &str = "import socket, struct, sys
here, to, far, hop = map(socket.inet_aton, sys.argv[1:])
quoted = struct.pack('!BBHHHBBH', 0x45, 0, 28, 0, 0, 64, 6, 0) + to + far + bytes(8)
def message(checksum):
    return struct.pack('!BBH', 5, 1, checksum) + hop + quoted
words = sum(struct.unpack('!%dH' % (len(message(0)) // 2), message(0)))
words = (words >> 16) + (words & 0xffff)
words += words >> 16
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.bind((sys.argv[1], 0))
s.sendto(message(~words & 0xffff), (sys.argv[2], 0))
";

/// Starts the server of files on silk, over both IPs.
pub fn serve(silk: &Silk) -> Running {
    silk.serve("python3", &[&SITE[..], &["site", "80"]].concat(), 80)
}

/// Starts it on a peer.
pub fn serve_there(silk: &Silk, mut python: Command, name: &str) -> Running {
    let server = silk.start_logged(python.args(SITE).args(["site", "8080"]), name);
    silk.until_says(name, "Serving");
    server
}

/// Whether the peer gets an answer that asks from `FAR`.
fn answered(silk: &Silk, port: u16) -> bool {
    answered_by(silk, SERVER, port)
}

/// The same of an address of the server's.
pub fn answered_by(silk: &Silk, server: Ipv4Addr, port: u16) -> bool {
    let url = format!("http://{server}:{port}/1449");
    said(silk.on_peer("curl").args(["-sf", "--max-time", "3", "--interface", &FAR.to_string(), &url])).ok
}

/// The peer is far away, too.
pub fn be_far(silk: &Silk) {
    for far in [IpAddr::from(FAR), IpAddr::from(FAR6)] {
        let prefix = if far.is_ipv6() { 128 } else { 32 };
        silk.rig.client.ip(["addr", "add", &format!("{far}/{prefix}"), "dev", "lo"]).unwrap();
    }
}

#[test]
fn who_is_behind_a_router_of_its_own_is_reached_and_served() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    be_far(&silk);
    let near = &silk.rig.server;
    near.ip(["route", "add", NETWORK, "via", &CLIENT.to_string()]).unwrap();
    near.ip(["-6", "route", "add", NETWORK6, "via", &CLIENT6.to_string()]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK} is reached by {CLIENT} now"));
    silk.until_says("silkd", &format!("{NETWORK6} is reached by {CLIENT6} now"));
    let (_here, _there) = (serve(&silk), serve_there(&silk, silk.on_peer("python3"), "peer"));
    fetch_each(|| silk.on_paths("curl"), FAR, 8080);
    fetch_each(|| silk.on_paths("curl"), FAR6, 8080);
    let from = |far: IpAddr| {
        let mut curl = silk.on_peer("curl");
        curl.args(["--interface", &far.to_string()]);
        curl
    };
    fetch_each(|| from(FAR.into()), SERVER, 80);
    fetch_each(|| from(FAR6.into()), SERVER6, 80);
    silk.linux_saw_nothing();
    near.ip(["route", "del", NETWORK]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK} is reached by {CLIENT} no longer"));
    assert!(!answered(&silk, 80), "there is no way back");
}

#[test]
fn the_source_is_that_of_the_route_or_the_one_most_like_the_destination() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    be_far(&silk);
    let near = &silk.rig.server;
    near.ip(["addr", "add", "10.98.0.1/32", "dev", INTERFACE]).unwrap();
    near.ip(["addr", "add", "2001:db8:5::1/64", "dev", INTERFACE, "nodad"]).unwrap();
    near.ip(["addr", "add", "fd55::1/64", "dev", INTERFACE, "nodad"]).unwrap();
    // This one is most like the destination, but deprecated.
    near.ip(["addr", "add", "2001:db8:9::1/128", "dev", INTERFACE, "nodad", "preferred_lft", "0"]).unwrap();
    near.ip(["route", "add", NETWORK, "via", &CLIENT.to_string(), "src", "10.98.0.1"]).unwrap();
    near.ip(["-6", "route", "add", "default", "via", &CLIENT6.to_string()]).unwrap();
    let back = [("10.98.0.1/32", SERVER.to_string()), ("2001:db8:5::/64", SERVER6.to_string())];
    for (network, by) in &back {
        silk.rig.client.ip(["route", "add", network, "via", by]).unwrap();
    }
    silk.until_says("silkd", "fd55::1 is an address of silk's now");
    silk.until_says("silkd", "2001:db8:9::1 is an address of silk's now");
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT6} over IPv6"));
    let _there = serve_there(&silk, silk.on_peer("python3"), "peer");
    fetch_each(|| silk.on_paths("curl"), FAR, 8080);
    fetch_each(|| silk.on_paths("curl"), FAR6, 8080);
    let log = silk.log("peer");
    assert!(log.contains("10.98.0.1 - -") && log.contains("2001:db8:5::1 - -"), "{log}");
    silk.linux_saw_nothing();
}

#[test]
fn packets_are_no_larger_than_their_route_says() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    be_far(&silk);
    silk.write("sizes.py", SIZES);
    let near = &silk.rig.server;
    near.ip(["route", "add", NETWORK, "via", &CLIENT.to_string(), "mtu", "1400"]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK} is reached by {CLIENT} now"));
    let _there = serve_there(&silk, silk.on_peer("python3"), "peer");
    let sizes = |program: Command| {
        let mut program = program;
        text(program.args(["sizes.py", &FAR.to_string()]))
    };
    assert_eq!(sizes(silk.on_paths("python3")), sizes(silk.on_linux("python3")));
    let near = text(silk.on_paths("python3").args(["sizes.py", &CLIENT.to_string()]));
    assert_eq!(near, "1448 1500\n");
}

#[test]
fn what_is_beyond_an_interface_of_linuxs_is_linuxs_to_reach_and_is_answered_where_it_came_from() {
    let Some(mut silk) = Silk::start() else { return };
    silk.rig.add_second().unwrap();
    site(&silk);
    be_far(&silk);
    silk.write("ask.py", ASK);
    silk.write("answer.py", ANSWER);
    let near = &silk.rig.server;
    near.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    near.ip(["route", "add", NETWORK, "via", &CLIENT_B.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    silk.until_says("silkd", &format!("{NETWORK} is beyond an interface of Linux's now"));
    let (_here, _there) = (serve(&silk), serve_there(&silk, silk.on_second("python3"), "second"));
    // Silk's own default route leads to nobody who knows of them.
    fetch_each(|| silk.on_paths("curl"), CLIENT_B, 8080);
    let answerer = silk.start_logged(silk.on_second("python3").arg("answer.py"), "answerer");
    silk.until_says("answerer", "ready");
    let asked = text(silk.on_paths("python3").args(["ask.py", &CLIENT_B.to_string()]));
    assert_eq!(asked, format!("{CLIENT_B}\n{CLIENT_B}\n"));
    drop(answerer);
    assert!(answered(&silk, 80), "the peer came over silk's interface: {}", silk.log("silkd"));
}

#[test]
fn nobody_answers_those_who_are_not_to_be_sent_to() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    be_far(&silk);
    let near = &silk.rig.server;
    near.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    let _here = serve(&silk);
    assert!(answered(&silk, 80));
    near.ip(["route", "add", "blackhole", NETWORK]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK} is not to be sent to now"));
    assert!(!answered(&silk, 80));
    let url = format!("http://{FAR}:8080/1449");
    let refused = said(silk.on_paths("curl").args(["-sS", "--max-time", "5", &url]));
    assert!(!refused.ok);
    near.ip(["route", "del", "blackhole", NETWORK]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK} is not to be sent to no longer"));
    assert!(answered(&silk, 80));
}

#[test]
fn who_sends_a_datagram_where_no_way_leads_is_told_as_on_linux() {
    let Some(silk) = Silk::start() else { return };
    silk.write("nowhere.py", include_str!("nowhere.py"));
    let near = &silk.rig.server;
    near.ip(["addr", "add", "fd99:5::1/64", "dev", "lo"]).unwrap();
    near.ip(["route", "add", "blackhole", "198.51.100.0/25"]).unwrap();
    near.ip(["route", "add", "unreachable", "198.51.100.128/25"]).unwrap();
    near.ip(["route", "add", "prohibit", "203.0.113.0/24"]).unwrap();
    near.ip(["-6", "route", "add", "prohibit", NETWORK6]).unwrap();
    silk.until_says("silkd", &format!("{NETWORK6} is not to be sent to now"));
    let [near4, near6] = [CLIENT.to_string(), CLIENT6.to_string()];
    let far = [FAR.to_string(), FAR6.to_string(), "2001:db8:10::1".to_owned()];
    let others = ["198.51.100.1", "198.51.100.200", "203.0.113.1", "127.0.0.1", "::1", "fd99:5::1"];
    let to: Vec<&str> = [&near4, &near6].into_iter().chain(&far).map(String::as_str).chain(others).collect();
    let told = |mut program: Command| text(program.arg("nowhere.py").args(&to));
    let same = || {
        let (linux, ours) = (told(silk.on_linux("python3")), told(silk.on_paths("python3")));
        assert_eq!(ours, linux);
        ours
    };
    let count = |said: &str, what: &str| said.matches(what).count();
    let nowhere = same();
    assert!(count(&nowhere, "ENETUNREACH") >= 20 && count(&nowhere, "sent") >= 40, "{nowhere}");
    near.ip(["route", "add", "default", "via", &near4]).unwrap();
    near.ip(["-6", "route", "add", "default", "via", &near6]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT6} over IPv6"));
    assert_eq!(count(&same(), "ENETUNREACH"), 0, "a way has come");
}

#[test]
fn routes_are_configured_where_the_address_is_silks_own() {
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"10.99.0.9/24\"\n\
         [[device.route]]\nto = \"{NETWORK}\"\nvia = \"{CLIENT}\"\n"
    );
    let Some(silk) = Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n") else { return };
    site(&silk);
    be_far(&silk);
    let _there = serve_there(&silk, silk.on_peer("python3"), "peer");
    fetch_each(|| silk.on_paths("curl"), FAR, 8080);
    fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
    let elsewhere = said(silk.on_paths("curl").args(["-sS", "--max-time", "5", "http://198.51.100.1/"]));
    assert!(!elsewhere.ok);
    silk.write("nowhere.py", include_str!("nowhere.py"));
    let told = text(silk.on_paths("python3").args(["nowhere.py", "198.51.100.1", &CLIENT.to_string()]));
    let [nowhere, there] = [
        "ENETUNREACH ".repeat(3) + "EMSGSIZE ENETUNREACH ENETUNREACH",
        "sent ".repeat(3) + "EMSGSIZE sent sent",
    ];
    let lines = |address: &str, said: &str| format!("{address} any {said}\n{address} any of both {said}\n");
    assert_eq!(told, lines("198.51.100.1", &nowhere) + &lines(&CLIENT.to_string(), &there));
    silk.linux_saw_nothing();
}

/// A daemon whose router may say who is better. What the peer has received by way of another router, which it is too.
fn redirected(heeds: bool) -> Option<(u64, u64)> {
    let keys = format!("address = \"10.99.0.9/24\"\ngateway = \"{CLIENT}\"\nredirects = {heeds}\n");
    let device = format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\n{keys}");
    let silk = Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n")?;
    site(&silk);
    be_far(&silk);
    silk.write("redirect.py", REDIRECT);
    let far = &silk.rig.client;
    far.ip(["link", "add", "link", INTERFACE, "name", "router", "type", "macvlan"]).unwrap();
    // Each answers for its own address alone.
    far.set("/proc/sys/net/ipv4/conf/all/arp_ignore", "1").unwrap();
    far.ip(["addr", "add", &format!("{BETTER}/24"), "dev", "router"]).unwrap();
    far.ip(["link", "set", "router", "up"]).unwrap();
    let _there = serve_there(&silk, silk.on_peer("python3"), "peer");
    let slow = Slowly::fetch(&silk, silk.on_paths("python3"), FAR, 8080);
    assert!(within(Duration::from_secs(10), || silk.connections().len() == 1), "{}", silk.log("slow"));
    let received = || {
        let counted = far.run("cat", ["/sys/class/net/router/statistics/rx_packets"]).unwrap();
        counted.trim().parse::<u64>().unwrap()
    };
    let before = received();
    let arguments = [CLIENT, Ipv4Addr::new(10, 99, 0, 9), FAR, BETTER].map(|address| address.to_string());
    assert!(said(silk.on_peer("python3").arg("redirect.py").args(&arguments)).ok);
    within(Duration::from_secs(3), || received() > before + 20);
    let after = received();
    slow.ends_well(&silk);
    Some((before, after))
}

/// The other router.
const BETTER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 77);

#[test]
fn a_router_that_knows_a_better_one_is_believed_where_it_is_to_be() {
    let Some((before, after)) = redirected(true) else { return };
    assert!(after > before + 20, "{before} {after}");
    let Some((before, after)) = redirected(false) else { return };
    assert!(after < before + 20, "{before} {after}");
}
