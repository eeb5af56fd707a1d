//! IPv6: servers of both IPs at one socket and at two, clients, datagrams, the classes of IPv6
//! networks, the machine itself, and a device whose neighbours silk finds itself.

use crate::apache::apache_at;
use crate::files::{fetch_each, site};
use crate::host::Silk;
use crate::nginx::nginx_at;
use crate::programs::{said, text, within};
use silk_testkit::netns::{CLIENT6, INTERFACE, PREFERRED6, SERVER, SERVER6};
use std::net::Ipv6Addr;
use std::process::Command;
use std::time::Duration;

const BOTH: &str = include_str!("both_families.py");
/// Silk's own address, which Linux does not have.
const OWN: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

/// A daemon that shares the interface, with a class for an IPv6 network.
fn start() -> Option<Silk> {
    let silk = Silk::start_with(
        &format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"),
        &format!(
            "[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED6}/128\"]\n\n\
             [[class]]\nname = \"standard\"\ndefault = true\n"
        ),
    )?;
    silk.write("both_families.py", BOTH);
    Some(silk)
}

/// What `both_families.py` says with these words, run by this command.
fn both(mut python: Command, words: &[&str]) -> String {
    text(python.arg("both_families.py").args(words))
}

/// Starts it as a server on silk's host and waits until it is ready.
fn serve(silk: &Silk, words: &[&str]) -> silk_testkit::netns::Running {
    let mut python = silk.on_paths("python3");
    let server = silk.start_logged(python.arg("both_families.py").args(words), "server");
    silk.until_says("server", "ready");
    server
}

/// The peer gets every file over either IP, and Linux on silk's host has seen nothing of it.
fn fetch_over_both(silk: &Silk) {
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    silk.linux_saw_nothing();
}

#[test]
fn one_socket_of_python_serves_both() {
    let Some(silk) = start() else { return };
    site(&silk);
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let server = silk.serve("python3", &words, 80);
    fetch_over_both(&silk);
    server.stop(Duration::from_secs(5));
    let log = silk.log("python3");
    assert!(log.contains(&format!("{CLIENT6} - -")) && log.contains("::ffff:10.99.0.2 - -"), "{log}");
}

#[test]
fn one_socket_of_apache_serves_both() {
    let Some(silk) = start() else { return };
    site(&silk);
    let server = apache_at(&silk, "80", "prefork", "StartServers 4");
    fetch_over_both(&silk);
    server.stop(Duration::from_secs(5));
}

#[test]
fn two_sockets_of_nginx_serve_one_each() {
    let Some(silk) = start() else { return };
    site(&silk);
    let server = nginx_at(&silk, "listen 80; listen [::]:80;", 2);
    fetch_over_both(&silk);
    server.stop(Duration::from_secs(5));
}

#[test]
fn a_client_on_paths_fetches_over_ipv6() {
    let Some(silk) = start() else { return };
    site(&silk);
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve_on_peer("python3", &words, 80);
    fetch_each(|| silk.on_paths("curl"), CLIENT6, 80);
    silk.linux_saw_nothing();
}

#[test]
fn a_network_of_ipv6_is_a_class() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, &["hold", "7"]);
    let mut waiting = Vec::new();
    for (source, name) in [(CLIENT6, "ordinary"), (PREFERRED6, "important")] {
        let mut client = silk.on_peer("python3");
        let (from, to) = (source.to_string(), SERVER6.to_string());
        waiting.push(silk.start_logged(client.args(["both_families.py", "wait", &to, "7", &from]), name));
        silk.until_says(name, "waiting");
    }
    let shown = || {
        let paths = silk.connections();
        let of = |path: &serde_json::Value| (path["peer"].to_string(), path["class"].to_string());
        let mut all: Vec<_> = paths.iter().map(of).collect();
        all.sort();
        all
    };
    assert!(within(Duration::from_secs(10), || shown().len() == 2));
    let shown = shown();
    assert!(shown[0].0.contains("[fd99::2]") && shown[0].1.contains("standard"), "{shown:?}");
    assert!(shown[1].0.contains("[fd99::3]") && shown[1].1.contains("preferred"), "{shown:?}");
}

#[test]
fn datagrams_of_both_come_to_one_socket_and_go_back() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, &["datagrams", "::", "7"]);
    for (at, seen) in [(SERVER.to_string(), "::ffff:10.99.0.2"), (SERVER6.to_string(), "fd99::2")] {
        assert_eq!(both(silk.on_peer("python3"), &["send", &at, "7"]).trim(), format!("{seen} hello"));
    }
}

#[test]
fn datagrams_from_paths_are_answered() {
    let Some(silk) = start() else { return };
    let mut python = silk.on_peer("python3");
    let _server = silk.start_logged(python.args(["both_families.py", "datagrams", "::", "7"]), "server");
    silk.until_says("server", "ready");
    let said = both(silk.on_paths("python3"), &["send", &CLIENT6.to_string(), "7"]);
    assert_eq!(said.trim(), format!("{SERVER6} hello"));
}

/// What a program learns of its sockets is what Linux would have told it.
#[test]
fn a_program_sees_the_same_addresses_and_options_as_over_linux() {
    let Some(silk) = start() else { return };
    let linux = both(silk.on_linux("python3"), &["look", &SERVER6.to_string()]);
    let silks = both(silk.on_paths("python3"), &["look", &SERVER6.to_string()]);
    assert_eq!(silks, linux);
}

#[test]
fn a_socket_of_ipv6_alone_leaves_the_port_of_ipv4_to_another() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, &["apart", "7"]);
    for (at, name) in [(SERVER6.to_string(), "six"), (SERVER.to_string(), "four")] {
        assert_eq!(both(silk.on_peer("python3"), &["ask", &at, "7"]).trim(), name);
    }
    silk.linux_saw_nothing();
}

/// For a server at both IPs Linux's socket hears at both, and it goes on for those that shared the port.
#[test]
fn those_that_share_a_port_are_asked_by_the_machine_itself_each_at_its_own_ip() {
    let Some(silk) = start() else { return };
    let begin = |name: &str, port: &str| {
        let (mut python, log) = (silk.on_paths("python3"), format!("{name} at {port}"));
        let server = silk.start_logged(python.args(["both_families.py", "beside", name, port]), &log);
        silk.until_says(&log, "ready");
        server
    };
    let who = |at: &str, port: &str| both(silk.on_linux("python3"), &["who", at, port]);
    let becomes = |at: &str, port: &str, expected: &str| {
        assert!(within(Duration::from_secs(60), || who(at, port) == expected), "{}", who(at, port));
    };
    let is_refused = |at: &str, port: &str| {
        let mut python = silk.on_linux("python3");
        !said(python.args(["both_families.py", "ask", at, port])).ok
    };
    let [whole, _four, six] = ["both", "four", "six"].map(|name| begin(name, "7"));
    assert_eq!(who("127.0.0.1", "7"), "both four\nboth four\n");
    assert_eq!(who("::1", "7"), "both six\nboth six\n");
    drop(whole);
    becomes("127.0.0.1", "7", "four\nfour\n");
    becomes("::1", "7", "six\nsix\n");
    drop(six);
    assert!(within(Duration::from_secs(60), || is_refused("::1", "7")));
    assert!((0..3).all(|_| is_refused("::1", "7")), "it is not the other's");
    becomes("127.0.0.1", "7", "four\nfour\n");

    let [whole, _six] = ["both", "six"].map(|name| begin(name, "9"));
    drop(whole);
    becomes("::1", "9", "six\nsix\n");
}

#[test]
fn nobody_listens_and_linux_says_so() {
    let Some(silk) = start() else { return };
    let said =
        said(silk.on_peer("curl").args(["-sS", "--max-time", "5", "--globoff", "http://[fd99::1]:81/"]));
    assert!(!said.ok && said.errors.contains("curl: (7)"), "{}", said.errors);
}

#[test]
fn the_machine_itself_is_served_over_both() {
    let Some(silk) = start() else { return };
    site(&silk);
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve("python3", &words, 80);
    fetch_each(|| silk.on_linux("curl"), Ipv6Addr::LOCALHOST, 80);
    fetch_each(|| silk.on_linux("curl"), SERVER6, 80);
    fetch_each(|| silk.on_linux("curl"), SERVER, 80);
}

#[test]
fn the_machine_itself_is_served_at_its_link_local_address() {
    let Some(silk) = start() else { return };
    silk.write("link_local.py", include_str!("link_local.py"));
    assert_eq!(text(silk.on_paths("python3").arg("link_local.py")), "all were served\n");
}

/// A device whose address is silk's alone: it finds its neighbours, is found by them, and answers
/// pings, also longer ones than a packet.
#[test]
fn silk_finds_its_own_neighbours_where_the_address_is_its_own() {
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"10.99.0.9/24\"\naddress6 = \"{OWN}/64\"\n"
    );
    let Some(silk) = Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n") else { return };
    site(&silk);
    let words = ["-m", "http.server", "80", "--bind", "::", "--directory", "site"];
    let _server = silk.serve_at("python3", &words, OWN, 80);
    fetch_each(|| silk.on_peer("curl"), OWN, 80);
    for size in ["56", "4000"] {
        text(silk.on_peer("ping").args([
            "-6",
            "-c",
            "2",
            "-i",
            "0.2",
            "-W",
            "5",
            "-s",
            size,
            &OWN.to_string(),
        ]));
    }
    silk.linux_saw_nothing();
}
