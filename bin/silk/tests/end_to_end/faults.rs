//! What happens when somebody dies: a program, or the daemon, in the middle of serving.

use crate::files::{content, fetch_all, site};
use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, Running, SERVER, signal};
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const HOLDER: &str = include_str!("holder.py");

/// A server that answers nothing and keeps its connections, and a client that waits on one of them and
/// writes down how the wait ends.
fn waiting(silk: &Silk) -> (Running, Running) {
    silk.write("holder.py", HOLDER);
    let server = silk.serve("python3", &["holder.py", "serve", "7"], 7);
    let mut client = silk.on_peer("python3");
    client.args(["holder.py", "wait", "7", &SERVER.to_string()]);
    let client = silk.start_logged(&mut client, "client");
    silk.until_says("client", "connected");
    (server, client)
}

#[test]
fn a_killed_programs_peers_are_reset() {
    let Some(silk) = Silk::start() else { return };
    let (server, mut client) = waiting(&silk);
    signal(&[server.id()], "KILL");
    assert!(client.wait(Duration::from_secs(10)).is_some(), "the peer waits for ever");
    assert!(silk.log("client").contains("ConnectionResetError"), "{}", silk.log("client"));
}

#[test]
fn a_killed_programs_memory_returns() {
    let Some(silk) = Silk::start() else { return };
    let before = silk.kept();
    let (server, _client) = waiting(&silk);
    let during = silk.kept();
    assert!(during.0 > before.0 && during.2 > before.2, "{before:?}, then {during:?}");
    signal(&[server.id()], "KILL");
    let returned = within(Duration::from_secs(10), || silk.kept() == before);
    assert!(returned, "{before:?} before, {:?} after", silk.kept());
}

#[test]
fn a_killed_programs_port_serves_again() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    for _ in 0..3 {
        let server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
        fetch_all(&silk, 80);
        signal(&[server.id()], "KILL");
        drop(server);
    }
}

#[test]
fn a_killed_daemon_leaves_its_programs_an_error_and_linux_its_interface() {
    let Some(mut silk) = Silk::start() else { return };
    silk.write("holder.py", HOLDER);
    let mut peer = silk.on_peer("python3");
    let _peer = silk.start_logged(peer.args(["holder.py", "serve", "7"]), "peer");
    silk.until_says("peer", "listening");
    let mut program = silk.on_paths("python3");
    let address = CLIENT.to_string();
    let mut program = silk.start_logged(program.args(["holder.py", "wait", "7", &address]), "program");
    silk.until_says("program", "connected");
    let daemon = silk.daemon().id();
    signal(&[daemon], "KILL");
    assert!(program.wait(Duration::from_secs(10)).is_some(), "the program waits for ever");
    assert!(silk.log("program").contains("ConnectionResetError"), "{}", silk.log("program"));
    let link = silk.rig.server.run("ip", ["-d", "link", "show", INTERFACE]).unwrap();
    assert!(!link.contains("xdp"), "the XDP program is still attached: {link}");
    silk.rig.client.run("ping", ["-c1", "-W5", &SERVER.to_string()]).unwrap();
}

#[test]
fn who_comes_when_the_daemon_has_no_descriptor_left_is_turned_away() {
    let Some(mut silk) = Silk::start() else { return };
    let (_server, mut client) = waiting(&silk);
    let daemon = silk.daemon().id();
    let limit = |most: usize| {
        text(Command::new("prlimit").args([format!("--pid={daemon}"), format!("--nofile={most}:")]))
    };
    let open = fs::read_dir(format!("/proc/{daemon}/fd")).unwrap();
    let open: Vec<usize> =
        open.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    limit((0..).find(|number| !open.contains(number)).unwrap());
    let asking = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        command.env("SILK_SOCKET", silk.path("control.sock")).arg("paths");
        command
    };
    for round in 0..3 {
        let mut asks = silk.start_logged(&mut asking(), &format!("asks-{round}"));
        let ended = asks.wait(Duration::from_secs(10));
        assert!(ended.is_some_and(|status| !status.success()), "{}", silk.log(&format!("asks-{round}")));
    }
    assert_eq!(silk.log("silkd").matches("turned away").count(), 3, "{}", silk.log("silkd"));
    limit(1024);
    text(&mut asking());
    assert!(client.ended().is_none(), "{}", silk.log("client"));
}

#[test]
fn servers_that_try_again_when_the_daemon_is_gone_are_not_answered_all_the_time() {
    let Some(mut silk) = Silk::start() else { return };
    silk.write("trying_again.py", include_str!("trying_again.py"));
    let mut program = silk.on_paths("python3");
    let mut program = silk.start_logged(program.arg("trying_again.py"), "program");
    silk.until_says("program", "listening");
    let daemon = silk.daemon().id();
    signal(&[daemon], "KILL");
    assert!(program.wait(Duration::from_secs(20)).is_some(), "{}", silk.log("program"));
    let log = silk.log("program");
    let times: Vec<u32> = log.lines().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect();
    assert!(times.len() == 4 && times.iter().all(|times| (1..500).contains(times)), "{log}");
    assert!(log.ends_with("forked afterwards: ENETDOWN\n"), "{log}");
}

#[test]
fn linux_keeps_what_no_path_owns() {
    let Some(silk) = Silk::start() else { return };
    silk.rig.client.run("ping", ["-c3", "-i0.2", "-W5", &SERVER.to_string()]).unwrap();
    site(&silk);
    let mut server = silk.rig.server.command("python3");
    server.current_dir(silk.path("")).args(["-m", "http.server", "8080", "--directory", "site"]);
    let _server = silk.start_logged(&mut server, "linux");
    let url = format!("http://{SERVER}:8080/700000");
    let fetch = || {
        let mut curl = silk.on_peer("curl");
        curl.args([
            "-sS",
            "--retry",
            "20",
            "--retry-connrefused",
            "--retry-delay",
            "1",
            "--max-time",
            "30",
            &url,
        ]);
        curl
    };
    assert!(text(&mut fetch()).len() > 1, "nothing came over Linux");
    assert!(crate::programs::bytes(&mut fetch()) == content(700_000));
}

/// Serves one client, and says how its thread is scheduled: as it does, and once it has heard that the daemon is gone.
const SCHEDULED: &str = "import os, socket
end = socket.socket()
end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
end.bind(('0.0.0.0', 7))
end.listen()
print('ready', flush=True)
with end.accept()[0] as connection:
    connection.recv(100)
    print('serves at', os.sched_getparam(0).sched_priority, flush=True)
    try:
        connection.recv(100)
    except ConnectionResetError:
        print('reset, at', os.sched_getparam(0).sched_priority, flush=True)
";

#[test]
fn a_killed_daemon_leaves_no_thread_the_priority_of_a_path() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[[class]]\nname = \"preferred\"\npriority = 2\ndefault = true\n";
    let Some(mut silk) = Silk::start_with(&device, classes) else { return };
    if silk.log("silkd").contains("cannot be scheduled") {
        silk_testkit::skip("no real-time priorities");
        return;
    }
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["-c", SCHEDULED]), "server");
    silk.until_says("server", "ready");
    let connect = format!("exec 3<>/dev/tcp/{SERVER}/7; echo hello >&3; sleep 1000");
    let _client = silk.start_logged(silk.on_peer("bash").args(["-c", &connect]), "client");
    silk.until_says("server", "serves at 14");
    let daemon = silk.daemon().id();
    signal(&[daemon], "KILL");
    silk.until_says("server", "reset, at 0");
}

#[test]
fn a_daemon_starts_again_after_it_was_killed() {
    let Some(mut silk) = Silk::start() else { return };
    site(&silk);
    let daemon = silk.daemon().id();
    signal(&[daemon], "KILL");
    silk.daemon().wait(Duration::from_secs(5));
    silk.start_daemon();
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    fetch_all(&silk, 80);
    silk.linux_saw_nothing();
}

#[test]
fn a_low_class_that_takes_all_the_memory_leaves_some_to_the_preferred() {
    let classes = format!(
        "[memory]\narena = \"16M\"\n\n[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\ndefault = true\n"
    );
    let Some(silk) = Silk::start_with(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"), &classes)
    else {
        return;
    };
    silk.write("holder.py", HOLDER);
    let _server = silk.serve("python3", &["holder.py", "greet", "7"], 7);
    let kept = |source: Ipv4Addr, name, count: &str| {
        let mut client = silk.on_peer("python3");
        client.args(["holder.py", "many", "7", &SERVER.to_string(), &source.to_string(), count]);
        let client = silk.start_logged(&mut client, name);
        // Python writes its words one by one.
        let told = || silk.log(name).contains("kept ") && silk.log(name).ends_with('\n');
        assert!(within(Duration::from_secs(20), told), "{}", silk.log(name));
        (silk.log(name).trim().to_owned(), client)
    };
    // Twelve megabytes for rings of 640 KB, of which each four hold six; the connection that asked
    // whether the server listens is kept as well.
    let (standard, _standing) = kept(CLIENT, "standard", "40");
    assert_eq!(standard, "kept 17");
    let (preferred, _preferred) = kept(PREFERRED, "preferred", "6");
    assert_eq!(preferred, "kept 6");
    assert!(silk.report().to_string().contains("memory limit"), "{}", silk.report());
}
