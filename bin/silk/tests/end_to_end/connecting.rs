//! Programs that connect often have sockets made ready for them (docs/design/spares.md): the right bytes come
//! back whoever connects, and what nobody wants any more is Linux's and the arena's again.

use crate::host::Silk;
use crate::programs::within;
use silk_testkit::netns::{CLIENT, Running, signal};
use std::fs;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon, an echo server at the peer, and who connects to it often, who is paused.
fn start() -> Option<(Silk, Running, Running)> {
    let silk = Silk::start()?;
    silk.write("echo_server.py", include_str!("echo_server.py"));
    silk.write("connecting.py", include_str!("connecting.py"));
    let server = silk.serve_on_peer("python3", &["echo_server.py", "7"], 7);
    let client = connect(&silk);
    Some((silk, server, client))
}

/// Who has connected often, and pauses.
fn connect(silk: &Silk) -> Running {
    let mut client = silk.on_paths("python3");
    client.args(["connecting.py", &CLIENT.to_string(), "7", "150"]);
    let client = silk.start_logged(&mut client, "client");
    silk.until_says("client", "paused");
    client
}

/// How many descriptors the daemon has.
fn descriptors(silk: &mut Silk) -> usize {
    let folder = format!("/proc/{}/fd", silk.daemon().id());
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn who_connects_often_gets_what_it_asked_for_in_threads_and_children_too() {
    let Some((silk, _server, mut client)) = start() else { return };
    silk.write("go", "");
    let done = within(PATIENCE, || silk.log("client").contains("all") || client.ended().is_some());
    assert!(done && silk.log("client") == "paused\nall\n", "{}", silk.log("client"));
    silk.linux_saw_nothing();
}

/// Their ports rest for a second at most where nobody has a connection from them.
#[test]
fn who_is_gone_keeps_the_ports_of_connections_that_their_peer_has_not_closed() {
    const KEEPING: &str = "import socket
ends = []
listener = socket.create_server(('0.0.0.0', 7), backlog=256)
while True:
    ends.append(listener.accept()[0])
";
    const LEAVING: &str = "import socket, sys
for n in range(100):
    socket.create_connection((sys.argv[1], 7), timeout=20)
";
    let Some(silk) = Silk::start() else { return };
    silk.write("keeping.py", KEEPING);
    silk.write("leaving.py", LEAVING);
    let _peer = silk.serve_on_peer("python3", &["keeping.py"], 7);
    let mut lost = String::new();
    for turn in 1..=3 {
        let said = silk.on_paths("python3").args(["leaving.py", &CLIENT.to_string()]).output().unwrap();
        lost += &String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{turn}: {lost}");
        let left = || {
            let report = silk.report();
            report["paths"].as_array().unwrap().iter().filter(|path| path["state"] == "FIN-WAIT-2").count()
        };
        assert!(within(PATIENCE, || left() == turn * 100), "{turn}: {}", left());
        // As long as a port rests that nobody has any more.
        std::thread::sleep(Duration::from_millis(1_100));
    }
}

#[test]
fn what_was_made_ready_and_nobody_wants_is_taken_back() {
    let Some((mut silk, _server, mut client)) = start() else { return };
    // It has all that it had asked for, and nothing open. On a busy machine that may be gone before anybody looks.
    let has_some = (0..10).any(|again| {
        if again > 0 {
            client = connect(&silk);
        }
        silk.kept().2 > 0
    });
    assert!(has_some, "{:?}", silk.kept());
    assert!(within(PATIENCE, || silk.kept().2 == 0), "{:?}", silk.kept());
    let before = descriptors(&mut silk);
    signal(&[client.id()], "KILL");
    assert!(within(PATIENCE, || descriptors(&mut silk) < before));
}

#[test]
fn who_is_killed_leaves_nothing_that_was_made_ready() {
    let Some((mut silk, _server, client)) = start() else { return };
    silk.write("go", "");
    // Now it and its children are in the middle of it.
    assert!(within(PATIENCE, || !silk.connections().is_empty()));
    signal(&[client.id()], "KILL");
    drop(client);
    assert!(within(PATIENCE, || silk.kept().2 == 0 && silk.connections().is_empty()), "{:?}", silk.kept());
    assert!(within(PATIENCE, || descriptors(&mut silk) < 64), "{}", descriptors(&mut silk));
}
