//! One port of several sockets: at several addresses, at one and at any, and of connections that leave from it.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, INTERFACE, Running, SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const PORT: &str = "53";
const MORE: &str = "10.99.0.77";
const MORE6: &str = "fd99::77";

/// Silk with two addresses of each IP.
fn start() -> Option<Silk> {
    let mut silk = Silk::start()?;
    silk.rig.server.ip(["addr", "add", &format!("{MORE}/24"), "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{MORE6}/64"), "dev", INTERFACE, "nodad"]).unwrap();
    silk.restart_daemon(PATIENCE);
    silk.write("one_port.py", include_str!("one_port.py"));
    Some(silk)
}

fn doing(mut command: Command, what: &str, rest: &[String]) -> Command {
    command.args(["one_port.py", what, PORT]).args(rest);
    command
}

/// A server with a stream and a datagram socket for each, by the names that it answers with.
fn serving(silk: &Silk, command: Command, log: &str, seats: &[(&str, &str)]) -> Running {
    let seats: Vec<String> = seats.iter().map(|(name, address)| format!("{name}={address}")).collect();
    let server = silk.start_logged(&mut doing(command, "serve", &seats), log);
    silk.until_says(log, "listening");
    server
}

/// Asks each of these from the peer, or from the machine itself: each is to answer with its name, by stream and by datagram.
fn asks(command: Command, names: &[(&str, &str)]) {
    let addresses: Vec<String> = names.iter().map(|(_, address)| (*address).into()).collect();
    let expected = names.iter().map(|(name, address)| format!("{address} {name} {name}\n"));
    assert_eq!(text(&mut doing(command, "ask", &addresses)), expected.collect::<String>());
}

#[test]
fn each_address_has_a_port_of_its_own() {
    let Some(silk) = start() else { return };
    let [own, own6] = [SERVER.to_string(), SERVER6.to_string()];
    let here = [("first", &*own), ("six", &*own6), ("other six", MORE6)];
    let server = serving(&silk, silk.on_paths("python3"), "serving", &here);
    // Another program, of silk's too.
    let there = serving(&silk, silk.on_paths("python3"), "other", &[("other", MORE)]);
    let all = [here.as_slice(), &[("other", MORE)]].concat();
    for _ in 0..2 {
        asks(silk.on_peer("python3"), &all);
    }
    silk.linux_saw_nothing();
    asks(silk.on_linux("python3"), &all);
    // One ends, and the other is served as before; Linux may have what it had.
    there.stop(PATIENCE);
    asks(silk.on_peer("python3"), &here);
    let there = serving(&silk, silk.on_linux("python3"), "linux", &[("linux", MORE)]);
    asks(silk.on_peer("python3"), &[here.as_slice(), &[("linux", MORE)]].concat());
    there.stop(PATIENCE);
    server.stop(PATIENCE);
}

#[test]
fn who_is_bound_to_an_address_hears_before_who_is_bound_to_any() {
    let Some(silk) = start() else { return };
    let own = SERVER.to_string();
    let server = serving(
        &silk,
        silk.on_paths("python3"),
        "serving",
        &[("any", "0.0.0.0"), ("one", &own), ("six", "::")],
    );
    let all = [("one", &*own), ("any", MORE), ("six", MORE6)];
    asks(silk.on_peer("python3"), &all);
    silk.linux_saw_nothing();
    asks(silk.on_linux("python3"), &all);
    asks(silk.on_linux("python3"), &[("any", "127.0.0.1"), ("six", "::1")]);
    server.stop(PATIENCE);
}

#[test]
fn connections_to_different_peers_leave_from_one_port() {
    let Some(silk) = start() else { return };
    for (own, peer, more, length) in [
        (SERVER.to_string(), CLIENT.to_string(), "10.99.0.78", 24),
        (SERVER6.to_string(), CLIENT6.to_string(), "fd99::78", 64),
    ] {
        silk.rig.client.ip(["addr", "add", &format!("{more}/{length}"), "dev", INTERFACE]).unwrap();
        let peers = [("first", &*peer), ("second", more)];
        let server = serving(&silk, silk.on_peer("python3"), "serving", &peers);
        // The last is to whom there is a connection from there already.
        let said = text(&mut doing(silk.on_paths("python3"), "leave", &[own, peer.clone(), more.into()]));
        let expected = format!("EADDRNOTAVAIL\nTrue {peer} first\nTrue {more} second\n");
        assert_eq!(said, expected);
        server.stop(PATIENCE);
    }
    silk.linux_saw_nothing();
}

/// As many connections as the system has ports to each peer, not in all.
#[test]
fn where_no_port_is_left_connections_leave_from_those_that_lead_to_others() {
    let Some(silk) = start() else { return };
    let (peer, more) = (CLIENT.to_string(), "10.99.0.78");
    silk.rig.client.ip(["addr", "add", &format!("{more}/24"), "dev", INTERFACE]).unwrap();
    silk.rig.server.run("sysctl", ["-q", "net.ipv4.ip_local_port_range=40000 40015"]).unwrap();
    let peers = [("first", &*peer), ("second", more)];
    let server = serving(&silk, silk.on_peer("python3"), "serving", &peers);
    let opened = |command| text(&mut doing(command, "many", &["16".into(), peer.clone(), more.into()]));
    let expected = format!("{peer} EADDRNOTAVAIL\n{more} EADDRNOTAVAIL\nfirst 16\nsecond 16\nports 16\n");
    assert_eq!(opened(silk.on_paths("python3")), expected);
    silk.linux_saw_nothing();
    // Once these are over others have the ports, after a rest, and then Linux, which counts the same.
    assert!(within(PATIENCE, || silk.connections().is_empty()), "{:?}", silk.connections());
    assert!(within(PATIENCE, || opened(silk.on_paths("python3")) == expected));
    assert!(within(PATIENCE, || opened(silk.on_linux("python3")) == expected));
    server.stop(PATIENCE);
}
