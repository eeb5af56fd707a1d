//! Python's servers: asyncio, which waits in epoll, and http.server, which waits in select.

use crate::files::{fetch_all, site};
use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, SERVER};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

pub const ECHO: &str = include_str!("echo_server.py");
pub const CLIENTS: &str = include_str!("echo_clients.py");

#[test]
fn http_server_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_all(&silk, 80);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

/// Many small conversations at once, then two large ones.
pub fn echo(mut clients: impl FnMut() -> Command, address: Ipv4Addr) {
    for (count, step) in [("64", "5000"), ("2", "20000000")] {
        let said = text(clients().args(["echo_clients.py", &address.to_string(), "7", count, step]));
        assert_eq!(said.trim(), format!("{count} of {count} came back"));
    }
}

#[test]
fn an_asyncio_server_echoes_what_it_gets() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    let server = silk.serve("python3", &["echo_server.py", "7"], 7);
    echo(|| silk.on_peer("python3"), SERVER);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn connections_and_a_listening_socket_are_passed_to_other_processes() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("passing.py", include_str!("passing.py"));
    silk.write("echo_clients.py", CLIENTS);
    let server = silk.serve("python3", &["passing.py", "7"], 7);
    for _ in 0..2 {
        echo(|| silk.on_peer("python3"), SERVER);
    }
    assert_eq!(silk.report()["unserved"], serde_json::json!([]));
    // The listening socket, and no connection: whoever was passed one has let go of it.
    assert!(within(Duration::from_secs(5), || silk.connections().is_empty()));
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn who_has_given_up_its_rights_is_served_and_has_no_low_port() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("unprivileged.py", include_str!("unprivileged.py"));
    silk.write("echo_clients.py", CLIENTS);
    let server = silk.serve("python3", &["unprivileged.py", "7000"], 7000);
    let clients = |count, step| {
        text(silk.on_peer("python3").args(["echo_clients.py", &SERVER.to_string(), "7000", count, step]))
    };
    assert_eq!(clients("16", "5000").trim(), "16 of 16 came back");
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn asyncio_clients_on_paths_are_echoed() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    let _server = silk.serve_on_peer("python3", &["echo_server.py", "7"], 7);
    echo(|| silk.on_paths("python3"), CLIENT);
    silk.linux_saw_nothing();
}

#[test]
fn what_clients_had_is_there_for_the_next() {
    // Rings for a dozen sockets.
    let classes = "[memory]\narena = \"8M\"\n\n[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::start_with("interface = \"eth0\"\n", classes) else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("many_times.py", include_str!("many_times.py"));
    let _server = silk.serve_on_peer("python3", &["echo_server.py", "7"], 7);
    let said = text(silk.on_paths("python3").args(["many_times.py", &CLIENT.to_string(), "7", "300"]));
    assert_eq!(said.trim(), "all");
    assert!(within(Duration::from_secs(5), || silk.kept().2 == 0), "{:?}", silk.kept());
    silk.linux_saw_nothing();
}
