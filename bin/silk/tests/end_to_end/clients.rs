//! curl and wget on silk's host, fetching from a server on the peer.

use crate::files::{SIZES, content, site};
use crate::host::Silk;
use crate::programs::{bytes, said};
use silk_testkit::netns::{CLIENT, Running};
use std::fs;

/// Python's own server, over Linux, on the peer.
fn peer_serves(silk: &Silk) -> Running {
    site(silk);
    silk.serve_on_peer("python3", &["-m", "http.server", "8000", "--directory", "site"], 8000)
}

#[test]
fn curl_on_paths_fetches_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    let _server = peer_serves(&silk);
    for size in SIZES {
        let url = format!("http://{CLIENT}:8000/{size}");
        let got = bytes(silk.on_paths("curl").args(["-sSf", "--max-time", "20", &url]));
        assert!(got == content(size), "{url}: {} bytes arrived, not the right ones", got.len());
    }
    silk.linux_saw_nothing();
}

#[test]
fn curl_on_paths_fetches_many_files_at_once() {
    let Some(silk) = Silk::start() else { return };
    let _server = peer_serves(&silk);
    let url = format!("http://{CLIENT}:8000/700000?[1-16]");
    bytes(silk.on_paths("curl").args(["-sSf", "--max-time", "30", "--parallel", "-o", "got-#1", &url]));
    for number in 1..=16 {
        assert!(fs::read(silk.path(&format!("got-{number}"))).unwrap() == content(700_000), "fetch {number}");
    }
    silk.linux_saw_nothing();
}

#[test]
fn wget_on_paths_fetches_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    let _server = peer_serves(&silk);
    for size in SIZES {
        let url = format!("http://{CLIENT}:8000/{size}");
        bytes(silk.on_paths("wget").args(["-q", "-T", "20", "-t", "1", "-O", "got", &url]));
        assert!(fs::read(silk.path("got")).unwrap() == content(size), "{url}");
    }
    silk.linux_saw_nothing();
}

#[test]
fn a_port_where_nobody_listens_refuses_at_once() {
    let Some(silk) = Silk::start() else { return };
    let connect = format!("import socket; socket.create_connection(('{CLIENT}', 9), timeout=10)");
    let refused = said(silk.on_paths("python3").args(["-c", &connect]));
    assert!(!refused.ok && refused.errors.contains("ConnectionRefusedError"), "{}", refused.errors);
}
