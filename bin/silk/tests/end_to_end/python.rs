//! Python's servers: asyncio, which waits in epoll, and http.server, which waits in select.

use crate::files::{fetch_all, hammer, site};
use crate::host::{Silk, text};
use silk_testkit::netns::SERVER;
use std::time::Duration;

const ECHO: &str = include_str!("echo_server.py");
const CLIENTS: &str = include_str!("echo_clients.py");

#[test]
fn http_server_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_all(&silk, 80);
    hammer(&silk, 80);
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn an_asyncio_server_echoes_many_clients_at_once() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    let server = silk.serve("python3", &["echo_server.py", "7"], 7);
    let said = text(silk.on_peer("python3").args(["echo_clients.py", &SERVER.to_string(), "7"]));
    assert_eq!(said.trim(), "64 of 64 came back");
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn asyncio_clients_on_paths_are_echoed() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    let _server = silk.serve_on_peer("python3", &["echo_server.py", "7"], 7);
    let peer = silk_testkit::netns::CLIENT.to_string();
    let said = text(silk.on_paths("python3").args(["echo_clients.py", &peer, "7"]));
    assert_eq!(said.trim(), "64 of 64 came back");
    silk.linux_saw_nothing();
}
