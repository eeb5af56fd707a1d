//! Programs of the Go language, which make their system calls themselves: Debian's caddy, as a server, as a client of its
//! upstream, and as the child of another.

use crate::files::{content, fetch_all, hammer, site};
use crate::host::{Silk, bytes, within};
use silk_testkit::netns::{CLIENT, Running, SERVER, signal};
use std::path::PathBuf;
use std::time::Duration;

const FILES: u16 = 80;
const PROXY: u16 = 81;
const UPSTREAM: u16 = 82;

/// Its configuration: files at one port, and what the peer serves at another.
fn configuration(silk: &Silk) -> PathBuf {
    let folder = silk.path("");
    let folder = folder.display();
    let server = |port: u16, handler: String| {
        format!(
            r#"{{"listen":["{SERVER}:{port}"],"automatic_https":{{"disable":true}},"routes":[{{"handle":[{handler}]}}]}}"#
        )
    };
    let files = server(FILES, format!(r#"{{"handler":"file_server","root":"{folder}/site"}}"#));
    let upstream = format!(r#"{{"dial":"{CLIENT}:{UPSTREAM}"}}"#);
    let proxy = server(PROXY, format!(r#"{{"handler":"reverse_proxy","upstreams":[{upstream}]}}"#));
    let whole = format!(
        r#"{{"admin":{{"disabled":true,"config":{{"persist":false}}}},
            "storage":{{"module":"file_system","root":"{folder}"}},
            "apps":{{"http":{{"servers":{{"files":{files},"proxy":{proxy}}}}}}}}}"#
    );
    silk.write("caddy.json", whole)
}

fn caddy(silk: &Silk) -> Running {
    site(silk);
    silk.serve("caddy", &["run", "--config", &configuration(silk).to_string_lossy()], FILES)
}

#[test]
fn caddy_serves_every_file_as_it_is() {
    let Some(silk) = Silk::start() else { return };
    let server = caddy(&silk);
    fetch_all(&silk, FILES);
    hammer(&silk, FILES);
    assert!(silk.log("caddy").contains("serving initial configuration"), "{}", silk.log("caddy"));
    server.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

#[test]
fn caddy_asks_its_upstream_over_silk() {
    let Some(silk) = Silk::start() else { return };
    let server = caddy(&silk);
    let folder = silk.path("site").display().to_string();
    let port = UPSTREAM.to_string();
    let upstream = ["-m", "http.server", "--bind", &CLIENT.to_string(), "--directory", &folder, &port];
    let upstream = silk.serve_on_peer("python3", &upstream, UPSTREAM);
    fetch_all(&silk, PROXY);
    server.stop(Duration::from_secs(5));
    upstream.stop(Duration::from_secs(5));
    silk.linux_saw_nothing();
}

/// `caddy start` executes itself, hears from the child over 127.0.0.1 that it serves, and ends.
#[test]
fn a_child_of_a_go_program_serves_on() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let (config, pid) = (configuration(&silk), silk.path("caddy.pid"));
    let mut start = silk.on_paths("caddy");
    let mut parent =
        silk.start_logged(start.args(["start", "--config"]).arg(config).arg("--pidfile").arg(&pid), "caddy");
    assert!(within(Duration::from_secs(20), || parent.ended().is_some()), "{}", silk.log("caddy"));
    assert!(silk.log("caddy").contains("Successfully started"), "{}", silk.log("caddy"));
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let got =
        bytes(silk.on_peer("curl").args(["-sSf", "--max-time", "20", &format!("http://{SERVER}/50000")]));
    assert_eq!(got, content(50_000));
    // (That the child was heard of over 127.0.0.1 is Linux's.)
    assert!(listens(&silk));
    signal(&[pid], "TERM");
    assert!(within(Duration::from_secs(10), || !listens(&silk)), "{}", silk.report());
}

/// Whether silk has listening sockets.
fn listens(silk: &Silk) -> bool {
    silk.report()["paths"].as_array().is_some_and(|paths| paths.iter().any(|path| path["state"] == "LISTEN"))
}
