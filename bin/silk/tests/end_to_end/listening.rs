//! From when on a socket is served, and what a listening one is told after it has begun to listen.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, SERVER};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_deferred_accept_waits_for_data_even_if_it_was_asked_for_late() {
    let Some(silk) = Silk::start() else { return };
    silk.write("deferring.py", include_str!("deferring.py"));
    silk.write("silent_first.py", include_str!("silent_first.py"));
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.arg("deferring.py"), "server");
    let listens =
        || silk.report()["paths"].as_array().is_some_and(|p| p.iter().any(|p| p["state"] == "LISTEN"));
    assert!(within(Duration::from_secs(10), listens), "{}", silk.log("server"));
    text(silk.on_peer("python3").args(["silent_first.py", &SERVER.to_string()]));
    assert!(
        within(Duration::from_secs(10), || silk.log("server") == "second\nfirst\n"),
        "{}",
        silk.log("server")
    );
}

/// More peers come to a server that does not accept yet than there is room for: all are served in the end.
fn all_are_served_in_the_end(silk: &Silk, (backlog, full): (&str, &str), peers: &str) {
    silk.write("late_accepting.py", include_str!("late_accepting.py"));
    silk.write("crowd.py", include_str!("crowd.py"));
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["late_accepting.py", backlog, peers]), "server");
    silk.until_says("server", "listening");
    let mut crowd = silk.on_peer("python3");
    let mut crowd = silk.start_logged(crowd.args(["crowd.py", &SERVER.to_string(), peers]), "crowd");
    // Drops of the listening path show that it was full when the server begins to accept.
    let is_full = || silk.report()["paths"].to_string().contains(full);
    assert!(within(Duration::from_secs(20), is_full), "{}", silk.report());
    silk.write("go", "");
    assert!(
        crowd.wait(Duration::from_secs(60)).is_some_and(|status| status.success()),
        "{}",
        silk.log("crowd")
    );
    assert_eq!(silk.log("crowd"), format!("{peers} of {peers} were served\n"));
}

#[test]
fn a_full_backlog_lets_peers_try_again_instead_of_resetting_them() {
    let Some(silk) = Silk::start() else { return };
    all_are_served_in_the_end(&silk, ("2", "accept queue full"), "12");
}

#[test]
fn full_memory_does_so_too() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[memory]\narena = \"8M\"\n\n[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    all_are_served_in_the_end(&silk, ("100", "memory limit"), "24");
}

#[test]
fn so_does_the_memory_of_all_programs_until_there_is_some_again() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[memory]\ntotal = \"8M\"\n\n[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    silk.write("hoarding.py", include_str!("hoarding.py"));
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["hoarding.py", "serve"]), "server");
    silk.until_says("server", "listening");
    let mut peers = silk.on_peer("python3");
    let mut peers = silk.start_logged(peers.args(["hoarding.py", "visit", &SERVER.to_string()]), "peers");
    silk.until_says("peers", "let in");
    silk.write("go", "");
    assert!(
        peers.wait(Duration::from_secs(60)).is_some_and(|status| status.success()),
        "{}",
        silk.log("peers")
    );
    assert!(silk.report()["paths"].to_string().contains("memory limit"));
    // Each that was let in has 128 KB that the server has not read.
    let held: u64 = silk.log("peers").split(' ').next().and_then(|n| n.parse().ok()).unwrap();
    assert!((40..=128).contains(&held), "{}", silk.log("peers"));
    assert!(silk.log("peers").ends_with("then served again\n"), "{}", silk.log("peers"));
}

/// Thirty connections over which nobody reads would fill 19 MB of rings.
#[test]
fn connections_that_are_there_get_by_with_little_while_memory_is_short() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[memory]\ntotal = \"8M\"\n\n[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    silk.write("short_memory.py", include_str!("short_memory.py"));
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["short_memory.py", "serve"]), "server");
    silk.until_says("server", "listening");
    let mut peers = silk.on_peer("python3");
    let _peers = silk.start_logged(peers.args(["short_memory.py", "visit", &SERVER.to_string()]), "peers");
    let logs = || silk.log("server") + &silk.log("peers") + &silk.log("silkd");
    let say =
        |what| silk.log("peers").contains(what) && (what != "all came" || silk.log("server").contains(what));
    assert!(within(Duration::from_secs(30), || say("all there")), "{}", logs());
    let used = || silk.report()["arena_used"].as_u64().unwrap();
    silk.until_says("silkd", "each stream gets 16 KB");
    assert!((6 << 20..8 << 20).contains(&used()), "{}", used());
    silk.write("go", "");
    assert!(within(Duration::from_secs(60), || say("all came")), "{}", logs());
    // The connections stay, and what was in their rings does not.
    assert!(within(Duration::from_secs(15), || used() <= 4 << 20), "{}", used());
    silk.until_says("silkd", "fill their rings again");
}

/// Rounds of each kind, every one on a port of its own.
const ROUNDS: &str = "100";

/// Peers of both classes come to a hundred ports, each the moment the program has it; none is refused and
/// nothing of theirs is lost.
fn served_at_once(kind: &str) {
    let Some(silk) = Silk::start() else { return };
    silk.write("at_once.py", include_str!("at_once.py"));
    text(silk.on_linux("mkfifo").args(["ports", "peers"]));
    let mut peers = silk.on_peer("python3");
    peers.args(["at_once.py", "visit", kind]).args([SERVER, CLIENT, PREFERRED].map(|at| at.to_string()));
    let mut peers = silk.start_logged(&mut peers, "peers");
    let mut server = silk.on_paths("python3");
    let mut server = silk.start_logged(server.args(["at_once.py", "serve", kind, ROUNDS]), "server");
    let ended = server.wait(Duration::from_secs(60)).is_some_and(|status| status.success());
    assert!(ended, "{}{}", silk.log("server"), silk.log("peers"));
    peers.wait(Duration::from_secs(20));
    assert_eq!((silk.log("server"), silk.log("peers")), ("100 rounds\n".into(), "100 visits\n".into()));
}

#[test]
fn whoever_comes_the_moment_a_program_listens_is_served() {
    served_at_once("listen");
}

#[test]
fn a_datagram_to_a_port_that_was_just_bound_arrives() {
    served_at_once("bind");
}

#[test]
fn a_datagram_of_a_peer_that_was_just_connected_to_arrives() {
    served_at_once("connect");
}

#[test]
fn who_has_no_descriptor_left_accepts_the_connection_when_he_has() {
    const FULL: &str = "import errno, os, resource, socket
listener = socket.create_server(('0.0.0.0', 9))
print('listening', flush=True)
listener.accept()[0].close()
# The second is there, and there is no room for it.
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
try:
    while True:
        held.append(os.open('/dev/null', os.O_RDONLY))
except OSError as error:
    assert error.errno == errno.EMFILE
for blocking in (True, False):
    listener.setblocking(blocking)
    try:
        listener.accept()
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
os.close(held.pop())
connection = listener.accept()[0]
connection.sendall(connection.recv(16))
";
    const VISITS: &str = "import socket, sys
first, second = (socket.create_connection((sys.argv[1], 9), timeout=20) for _ in range(2))
second.sendall(b'text')
print(first.recv(16), second.recv(16))
";
    let Some(silk) = Silk::start() else { return };
    silk.write("full.py", FULL);
    silk.write("visits.py", VISITS);
    let mut server = silk.start_logged(silk.on_paths("python3").arg("full.py"), "server");
    silk.until_says("server", "listening");
    let said = text(silk.on_peer("python3").args(["visits.py", &SERVER.to_string()]));
    assert_eq!(said, "b'' b'text'\n", "{}", silk.log("server"));
    assert!(within(PATIENCE, || server.ended().is_some()));
    assert_eq!(silk.log("server"), "listening\nEMFILE\nEMFILE\n");
}
