//! Options that are set before a socket is connected: what the first packets show, and what accepted
//! connections inherit.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, Running, SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn start() -> Option<Silk> {
    let silk = Silk::start()?;
    silk.write("wishing.py", include_str!("wishing.py"));
    Some(silk)
}

/// The command with what it is to do.
fn doing(mut command: Command, what: &[&str]) -> Command {
    command.arg("wishing.py").args(what);
    command
}

/// Starts a server and waits until it listens.
fn serving(silk: &Silk, command: Command, what: &[&str]) -> Running {
    let server = silk.start_logged(&mut doing(command, what), "serving");
    silk.until_says("serving", "listening");
    server
}

/// Whether the server has said this behind its greeting.
fn said(silk: &Silk, what: &str) -> bool {
    within(PATIENCE, || silk.log("serving").lines().skip(1).collect::<Vec<_>>().join("; ") == what)
}

#[test]
fn the_syn_shows_what_a_program_wished_before_it_connected() {
    let Some(silk) = start() else { return };
    let _server = serving(&silk, silk.on_peer("python3"), &["answer", "7"]);
    let connect = ["connect", &CLIENT.to_string(), "7"];
    // 588 octets of text and 12 of timestamps are a segment of 600.
    assert_eq!(text(&mut doing(silk.on_paths("python3"), &connect)), "588 reno 5\n0\n");
    assert!(said(&silk, "5 72 600"), "{}", silk.log("serving"));
    silk.linux_saw_nothing();
}

#[test]
fn a_connection_inherits_what_its_listener_wished() {
    let Some(silk) = start() else { return };
    let _server = serving(&silk, silk.on_paths("python3"), &["listen", "7"]);
    let reach = ["reach", &SERVER.to_string(), "7"];
    assert_eq!(text(&mut doing(silk.on_peer("python3"), &reach)), "688 hello\n");
    assert!(said(&silk, "688 reno 5"), "{}", silk.log("serving"));
}

#[test]
fn a_syn_is_sent_again_as_often_as_was_wished() {
    let Some(silk) = start() else { return };
    // The peer hears the SYN, and what it answers gets nowhere.
    silk.rig.client.ip(["route", "add", "blackhole", &format!("{SERVER}/32")]).unwrap();
    let give_up = ["give-up", &CLIENT.to_string(), "7"];
    assert_eq!(text(&mut doing(silk.on_paths("python3"), &give_up)), "ETIMEDOUT\n");
}

#[test]
fn a_datagram_socket_knows_where_it_was_reached_and_sends_as_it_was_told() {
    let Some(silk) = start() else { return };
    let _server = serving(&silk, silk.on_paths("python3"), &["echo", "7"]);
    let ping = ["ping", &SERVER.to_string(), "7"];
    let _asking = silk.start_logged(&mut doing(silk.on_peer("python3"), &ping), "asking");
    assert!(said(&silk, &format!("eth0 {SERVER}; EMSGSIZE")), "{}", silk.log("serving"));
    assert!(within(PATIENCE, || silk.log("asking") == "1472 3\n"), "{}", silk.log("asking"));
}

#[test]
fn a_datagram_leaves_from_the_address_that_its_program_says() {
    let Some(mut silk) = Silk::start() else { return };
    silk.write("sending_from.py", include_str!("sending_from.py"));
    // Both of either IP are silk's, the second as good as the first.
    let [more, more6] = ["10.99.0.77", "fd99::77"];
    silk.rig.server.ip(["addr", "add", &format!("{more}/24"), "dev", INTERFACE]).unwrap();
    silk.rig.server.ip(["addr", "add", &format!("{more6}/64"), "dev", INTERFACE, "nodad"]).unwrap();
    silk.restart_daemon(PATIENCE);
    let mut python = silk.on_paths("python3");
    let _server = silk.start_logged(python.args(["sending_from.py", "serve", "7"]), "serving");
    silk.until_says("serving", "listening");
    assert!(silk.log("serving").starts_with("of another IP: Invalid argument"), "{}", silk.log("serving"));
    let all = [SERVER.to_string(), more.into(), SERVER6.to_string(), more6.into()];
    let mut python = silk.on_peer("python3");
    let said = text(python.args(["sending_from.py", "ask", "7"]).args(&all));
    assert_eq!(said, all.each_ref().map(|address| format!("{address} whole\n")).concat());
    silk.linux_saw_nothing();
    // Its own machine, over Linux.
    let all = ["127.0.0.1", "127.0.0.9", &all[0], more, "::1", &all[2], more6];
    let mut python = silk.on_linux("python3");
    let said = text(python.args(["sending_from.py", "ask", "7"]).args(all));
    assert_eq!(said, all.map(|address| format!("{address} whole\n")).concat());
}
