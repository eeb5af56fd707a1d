//! A host without an address of IPv4: what is served over IPv6 is as beside one, what programs ask of IPv4 is
//! answered as over Linux, and an address of IPv4 that comes later is served from then on.

use crate::files::{fetch_each, site};
use crate::host::Silk;
use crate::programs::{said, text, within};
use silk_testkit::netns::{CLIENT6, INTERFACE, Running, SERVER, SERVER6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

/// Silk's own address, which Linux does not have.
const OWN: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);
/// The same behind a tap.
const BEHIND: Ipv6Addr = Ipv6Addr::new(0xfd98, 0, 0, 0, 0, 0, 0, 9);
const CLASSES: &str = "[[class]]\nname = \"all\"\ndefault = true\n";
const WORDS: [&str; 6] = ["http.server", "80", "--directory", "site", "--bind", "::"];

/// Hosts with a running daemon on an interface of which IPv4's address is taken away before.
fn start(device: &str) -> Option<Silk> {
    let mut silk = Silk::without_daemon(device, CLASSES)?;
    silk.rig.server.ip(["address", "del", &format!("{SERVER}/24"), "dev", INTERFACE]).unwrap();
    silk.start_daemon();
    silk.write("both_families.py", include_str!("both_families.py"));
    site(&silk);
    Some(silk)
}

fn shared() -> Option<Silk> {
    start(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"))
}

/// A web server at both IPs, as far as there are both, that the peer reaches at this address.
fn serve(silk: &Silk, at: impl Into<IpAddr>) -> Running {
    silk.serve_at("python3", &["-m"].iter().chain(&WORDS).collect::<Vec<_>>(), at, 80)
}

/// What `both_families.py` says with these words, run by this command.
fn both(mut python: Command, words: &[&str]) -> String {
    text(python.arg("both_families.py").args(words))
}

#[test]
fn a_server_of_both_ips_is_served_over_the_one_there_is_and_so_are_clients() {
    let Some(silk) = shared() else { return };
    let _server = serve(&silk, SERVER6);
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    let words = ["-m", "http.server", "80", "--directory", "site", "--bind", "::"];
    let _there = silk.start_logged(silk.on_peer("python3").args(words), "there");
    let url = format!("http://[{CLIENT6}]/1");
    let up = || said(silk.on_peer("curl").args(["-sf", "--globoff", &url])).ok;
    assert!(within(Duration::from_secs(10), up), "{}", silk.log("there"));
    fetch_each(|| silk.on_paths("curl"), CLIENT6, 80);
    silk.linux_saw_nothing();
}

#[test]
fn the_machine_itself_is_served_over_both() {
    let Some(silk) = shared() else { return };
    let _server = serve(&silk, SERVER6);
    let here: [IpAddr; 3] = [SERVER6.into(), Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
    for at in here {
        fetch_each(|| silk.on_linux("curl"), at, 80);
        fetch_each(|| silk.on_paths("curl"), at, 80);
    }
}

#[test]
fn a_program_sees_what_it_sees_over_linux_and_ipv4_is_as_far_away() {
    let Some(silk) = shared() else { return };
    let at = SERVER6.to_string();
    assert_eq!(
        both(silk.on_paths("python3"), &["look", &at]),
        both(silk.on_linux("python3"), &["look", &at])
    );
    let ask = |mut python: Command| said(python.args(["both_families.py", "ask", "10.99.0.2", "7"])).errors;
    let (over_silk, over_linux) = (ask(silk.on_paths("python3")), ask(silk.on_linux("python3")));
    let last = |errors: &str| errors.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&over_silk), last(&over_linux), "{over_silk}");
    assert!(over_linux.contains("unreachable"), "{over_linux}");
}

#[test]
fn an_address_of_ipv4_that_comes_later_is_served_by_who_serves_already() {
    let Some(silk) = shared() else { return };
    let _server = serve(&silk, SERVER6);
    let mut python = silk.on_paths("python3");
    let _datagrams =
        silk.start_logged(python.args(["both_families.py", "datagrams", "0.0.0.0", "7"]), "datagrams");
    silk.rig.server.ip(["address", "add", &format!("{SERVER}/24"), "dev", INTERFACE]).unwrap();
    let told = format!("{SERVER} is an address of silk's now");
    silk.until_says("silkd", &told);
    silk.until_says("datagrams", "ready");
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    let said = both(silk.on_peer("python3"), &["send", &SERVER.to_string(), "7"]);
    assert_eq!(said.trim(), "10.99.0.2 hello");
    silk.linux_saw_nothing();
}

/// A device of silk's own: it finds its neighbours, is found by them, and sockets of IPv4 are Linux's.
fn is_served_alone(silk: &Silk, curl: impl Fn() -> Command, python: impl Fn() -> Command, own: Ipv6Addr) {
    let mut command = silk.on_paths("python3");
    let server = silk.start_logged(command.arg("-m").args(WORDS), "python3");
    let url = format!("http://[{own}]/1");
    let up = || said(curl().args(["-sf", "--globoff", &url])).ok;
    assert!(within(Duration::from_secs(20), up), "{}{}", silk.log("python3"), silk.log("silkd"));
    fetch_each(&curl, own, 80);
    let mut datagrams = silk.on_paths("python3");
    let _datagrams =
        silk.start_logged(datagrams.args(["both_families.py", "datagrams", "::", "7"]), "datagrams");
    silk.until_says("datagrams", "ready");
    assert!(both(python(), &["send", &own.to_string(), "7"]).ends_with(" hello\n"));
    server.stop(Duration::from_secs(5));
    // Loopback leads to no socket of silk's, where the device is its own.
    let four = "import socket; s = socket.create_server(('', 0)); \
                c = socket.create_connection(('127.0.0.1', s.getsockname()[1]), 5); print(s.accept()[1][0])";
    assert_eq!(text(silk.on_paths("python3").args(["-c", four])), "127.0.0.1\n");
}

#[test]
fn a_packet_device_needs_no_address_of_ipv4() {
    let device = format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress6 = \"{OWN}/64\"\n");
    let Some(silk) = start(&device) else { return };
    is_served_alone(&silk, || silk.on_peer("curl"), || silk.on_peer("python3"), OWN);
}

#[test]
fn a_tap_needs_no_address_of_ipv4() {
    let device = format!("kind = \"tap\"\ninterface = \"silk0\"\naddress6 = \"{BEHIND}/64\"\n");
    let Some(silk) = start(&device) else { return };
    silk.rig.server.ip(["address", "add", "fd98::2/64", "dev", "silk0", "nodad"]).unwrap();
    silk.rig.server.ip(["link", "set", "silk0", "up"]).unwrap();
    is_served_alone(&silk, || silk.on_linux("curl"), || silk.on_linux("python3"), BEHIND);
}
