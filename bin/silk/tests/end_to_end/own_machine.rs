//! A server on paths and its own machine: Linux's programs there reach it over loopback and by silk's
//! address, and programs on paths reach their neighbours.

use crate::apache::apache;
use crate::files::{Slowly, content, fetch_all, fetch_each, hammer, hammer_from, site};
use crate::host::Silk;
use crate::iperf;
use crate::programs::{bytes, said, text, within};
use crate::redis::redis;
use silk_testkit::netns::{CLIENT, PREFERRED, Running, SERVER, signal};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[test]
fn every_file_arrives_at_every_address_while_remote_clients_are_served() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    // Apache asks itself, too, with another method, to wake children of which there are too many.
    let log = "LogFormat \"%m %a %A\" ends\nCustomLog ends.log ends\nMaxRequestWorkers 64";
    let server = apache(&silk, "prefork", log);
    std::thread::scope(|scope| {
        let remote = scope.spawn(|| {
            fetch_all(&silk, 80);
            hammer(&silk, 80);
        });
        for _ in 0..3 {
            fetch_each(|| silk.on_linux("curl"), LOOPBACK, 80);
            fetch_each(|| silk.on_linux("curl"), SERVER, 80);
        }
        hammer_from(silk.on_linux("ab"), LOOPBACK, 80);
        remote.join().unwrap();
    });
    server.stop(Duration::from_secs(5));
    let log = fs::read_to_string(silk.path("ends.log")).unwrap();
    let count = |peer, here| log.lines().filter(|line| *line == format!("GET {peer} {here}")).count();
    assert_eq!(count(LOOPBACK, LOOPBACK), 2024, "the true addresses of both ends");
    assert_eq!(count(SERVER, SERVER), 24);
    assert!(count(CLIENT, SERVER) > 2000);
}

#[test]
fn a_client_on_paths_reaches_its_own_machine() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "event", "StartServers 1");
    for at in [LOOPBACK, SERVER, Ipv4Addr::UNSPECIFIED] {
        fetch_each(|| silk.on_paths("curl"), at, 80);
    }
    hammer_from(silk.on_paths("ab"), SERVER, 80);
    server.stop(Duration::from_secs(5));
}

/// Tcl binds each of its sockets before it connects them, and so does whoever wants a port of his choice.
#[test]
fn a_client_on_paths_reaches_its_own_machine_with_sockets_that_it_has_bound() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", include_str!("echo_server.py"));
    silk.write("bound_here.py", include_str!("bound_here.py"));
    let _server = silk.serve("python3", &["echo_server.py", "7"], 7);
    for at in [LOOPBACK, SERVER] {
        let mut client = silk.on_paths("python3");
        client.args(["bound_here.py", &at.to_string(), "7", &CLIENT.to_string()]);
        let said = said(&mut client);
        let log = || format!("{}{}", said.errors, silk.report());
        assert_eq!((said.ok, &said.bytes[..]), (true, &b"all came back\n"[..]), "{}", log());
    }
    // Nothing of theirs is left: not even the ports are held.
    assert!(within(Duration::from_secs(10), || silk.connections().is_empty()), "{}", silk.report());
}

#[test]
fn what_a_thread_sets_while_another_connects_a_bound_socket_to_its_own_machine_counts() {
    let Some(silk) = Silk::start() else { return };
    silk.write("echo_server.py", include_str!("echo_server.py"));
    silk.write("set_at_once.py", include_str!("set_at_once.py"));
    let _server = silk.serve("python3", &["echo_server.py", "7"], 7);
    let mut client = silk.on_paths("python3");
    let said = text(client.args(["set_at_once.py", &SERVER.to_string(), "7"]));
    assert_eq!(said, "600 of 600\n");
}

/// Apache's parent ends a spare child by connecting to itself.
#[test]
fn prefork_ends_its_spare_processes() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "prefork", "StartServers 8\nMinSpareServers 1\nMaxSpareServers 2");
    let children = || {
        let listed = said(silk.on_linux("pgrep").args(["-P", &server.id().to_string()]));
        listed.bytes.iter().filter(|byte| **byte == b'\n').count()
    };
    assert!(within(Duration::from_secs(40), || children() <= 2), "{} children are left", children());
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    server.stop(Duration::from_secs(5));
}

#[test]
fn large_values_and_many_requests_pass_over_loopback() {
    let Some(silk) = Silk::start() else { return };
    let server = redis(&silk);
    let value = silk.write("value", content(3_000_000));
    let ask = |words: &[&str]| {
        let mut client = silk.on_linux("redis-cli");
        client.args(words);
        client
    };
    assert_eq!(text(ask(&["-x", "set", "key"]).stdin(File::open(value).unwrap())).trim(), "OK");
    let mut got = bytes(&mut ask(&["--raw", "get", "key"]));
    assert_eq!(got.pop(), Some(b'\n'));
    assert!(got == content(3_000_000), "{} bytes came back, not the right ones", got.len());
    let mut benchmark = silk.on_linux("redis-benchmark");
    let report = text(benchmark.args(["-n", "20000", "-c", "50", "-t", "set,get,lrange_300", "--csv"]));
    assert!(!report.contains("rror") && report.contains("\"GET\""), "{report}");
    server.stop(Duration::from_secs(5));
}

#[test]
fn long_streams_pass_over_loopback_in_both_directions() {
    let Some(silk) = Silk::start() else { return };
    iperf::stream(&silk, silk.on_paths("iperf3"), silk.on_linux("iperf3"), LOOPBACK, false);
    iperf::stream(&silk, silk.on_paths("iperf3"), silk.on_linux("iperf3"), LOOPBACK, true);
}

#[test]
fn a_slow_reader_gets_all_of_it() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    let server = apache(&silk, "prefork", "");
    Slowly::fetch(&silk, silk.on_linux("python3"), LOOPBACK, 80).ends_well(&silk);
    server.stop(Duration::from_secs(5));
}

/// Serves one client as much as is taken without a pause, closes and ends.
const GIVES: &str = "
import socket, time
s = socket.create_server(('', 7))
print('listening', flush=True)
c, _ = s.accept()
c.setblocking(False)
sent = quiet = 0
while quiet < 5:
    try:
        sent += c.send(bytes(1 << 20))
        quiet = 0
    except BlockingIOError:
        time.sleep(0.1)
        quiet += 1
c.close()
print(sent)
";
/// Connects, and reads all once it is told to.
const READS: &str = "
import os, socket, sys, time
c = socket.create_connection((sys.argv[1], 7))
print('connected', flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
total = 0
while part := c.recv(1 << 20):
    total += len(part)
print(total)
";

#[test]
fn what_a_program_has_written_is_read_though_nothing_is_left_of_it() {
    let Some(silk) = Silk::start() else { return };
    let mut server = silk.start_logged(silk.on_paths("python3").args(["-c", GIVES]), "server");
    silk.until_says("server", "listening");
    let go = silk.path("go").display().to_string();
    let mut client = silk.on_linux("python3");
    let mut client = silk.start_logged(client.args(["-c", READS, &LOOPBACK.to_string(), &go]), "client");
    silk.until_says("client", "connected");
    assert!(server.wait(Duration::from_secs(60)).is_some_and(|status| status.success()));
    assert!(within(Duration::from_secs(10), || silk.over_linux().iter().all(|path| path["pid"] == 0)));
    assert_eq!(silk.over_linux().len(), 1, "{}", silk.report());
    silk.write("go", "");
    assert!(
        client.wait(Duration::from_secs(60)).is_some_and(|status| status.success()),
        "{}",
        silk.log("client")
    );
    let last = |name| silk.log(name).lines().last().map(str::to_owned);
    assert_eq!(last("client"), last("server"));
}

/// A server that keeps its connections and a client that waits on one, and on another from far away.
fn waiting(silk: &Silk, at: Ipv4Addr) -> (Running, Running) {
    silk.write("holder.py", include_str!("holder.py"));
    let server = silk.start_logged(silk.on_paths("python3").args(["holder.py", "serve", "7"]), "server");
    silk.until_says("server", "listening");
    let mut client = silk.on_linux("python3");
    let client = silk.start_logged(client.args(["holder.py", "wait", "7", &at.to_string()]), "client");
    silk.until_says("client", "connected");
    (server, client)
}

#[test]
fn the_path_is_shown_with_its_modules_and_ends() {
    let Some(silk) = Silk::start() else { return };
    let (_server, client) = waiting(&silk, SERVER);
    assert!(within(Duration::from_secs(10), || silk.over_linux().len() == 1), "{}", silk.report());
    let [path] = &silk.over_linux()[..] else { panic!("{}", silk.report()) };
    assert_eq!(path["modules"], serde_json::json!(["host", "socket"]));
    assert_eq!(path["state"], "ESTABLISHED");
    assert_eq!(path["class"], "standard");
    assert_eq!(path["local"], format!("{SERVER}:7"));
    assert!(path["peer"].as_str().unwrap().starts_with(&format!("{SERVER}:")), "{path}");
    signal(&[client.id()], "KILL");
    assert!(within(Duration::from_secs(10), || silk.over_linux()[0]["state"] == "CLOSE-WAIT"));
}

#[test]
fn the_class_is_that_of_the_peers_address() {
    let Some(silk) = Silk::start_with(
        "kind = \"xdp\"\ninterface = \"eth0\"\n",
        &format!(
            "[[class]]\nname = \"local\"\npriority = 2\nsource = [\"{PREFERRED}/32\", \"127.0.0.0/8\"]\n\n\
             [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
        ),
    ) else {
        return;
    };
    let (server, mut client) = waiting(&silk, LOOPBACK);
    let class = || silk.over_linux().iter().map(|path| path["class"].clone()).collect::<Vec<_>>();
    assert!(within(Duration::from_secs(10), || class() == ["local"]), "{}", silk.report());
    signal(&[server.id()], "KILL");
    assert!(client.wait(Duration::from_secs(10)).is_some(), "the peer waits for ever");
}

#[test]
fn a_killed_programs_peer_is_reset_and_its_memory_returns() {
    let Some(silk) = Silk::start() else { return };
    let before = silk.kept();
    for at in [LOOPBACK, SERVER] {
        let (server, mut client) = waiting(&silk, at);
        assert!(within(Duration::from_secs(10), || silk.over_linux().len() == 1));
        signal(&[server.id()], "KILL");
        assert!(client.wait(Duration::from_secs(10)).is_some(), "the peer waits for ever");
        assert!(silk.log("client").contains("ConnectionResetError"), "{}", silk.log("client"));
        let returned = within(Duration::from_secs(10), || silk.kept() == before);
        assert!(returned, "{before:?} before, {:?} after", silk.kept());
    }
}

#[test]
fn a_killed_daemons_peers_and_port_are_let_go() {
    let Some(mut silk) = Silk::start() else { return };
    let (_server, mut client) = waiting(&silk, LOOPBACK);
    let daemon = silk.daemon().id();
    signal(&[daemon], "KILL");
    assert!(client.wait(Duration::from_secs(10)).is_some(), "the peer waits for ever");
    let refused = said(silk.on_linux("curl").args(["-sS", &format!("http://{LOOPBACK}:7/")]));
    assert!(refused.errors.contains("onnect"), "{}", refused.errors);
}

/// A server with room for two, and twelve neighbours that want to be served; it accepts once there is a
/// file called `go`.
fn late_server(silk: &Silk) -> Running {
    silk.write("late_accepting.py", include_str!("late_accepting.py"));
    let mut server = silk.on_paths("python3");
    // As on Linux, one more than was asked for may wait.
    let server = silk.start_logged(server.args(["late_accepting.py", "1", "12"]), "server");
    silk.until_says("server", "listening");
    server
}

/// Twelve clients, for whom it has room for two.
fn crowd_of(silk: &Silk) -> Running {
    silk.write("crowd.py", include_str!("crowd.py"));
    let mut crowd = silk.on_linux("python3");
    let crowd = silk.start_logged(crowd.args(["crowd.py", &LOOPBACK.to_string(), "12"]), "crowd");
    assert!(within(Duration::from_secs(10), || silk.over_linux().len() == 2));
    crowd
}

fn all_were_served(silk: &Silk, mut crowd: Running) {
    let ended = crowd.wait(Duration::from_secs(60));
    assert!(ended.is_some_and(|status| status.success()), "{}", silk.log("crowd"));
    assert_eq!(silk.log("crowd"), "12 of 12 were served\n");
}

#[test]
fn a_full_backlog_lets_neighbours_wait_until_there_is_room() {
    let Some(silk) = Silk::start() else { return };
    let _server = late_server(&silk);
    let crowd = crowd_of(&silk);
    silk.write("go", "");
    all_were_served(&silk, crowd);
}

#[test]
fn a_daemon_without_descriptors_lets_neighbours_wait() {
    let Some(mut silk) = Silk::start() else { return };
    let daemon = silk.daemon().id();
    let limit = |most: usize| {
        text(Command::new("prlimit").args([format!("--pid={daemon}"), format!("--nofile={most}:")]));
    };
    let open = || -> BTreeMap<usize, String> {
        let numbers = fs::read_dir(format!("/proc/{daemon}/fd")).unwrap();
        let numbers = numbers.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        // What is closed meanwhile leads nowhere.
        let link = |n: usize| fs::read_link(format!("/proc/{daemon}/fd/{n}")).ok();
        numbers.filter_map(|n| Some((n, link(n)?.display().to_string()))).collect()
    };
    // The daemon may not have closed its end of the last question yet.
    let settled = || {
        let mut before = open();
        let is_settled = || {
            before = open();
            (0..10).all(|_| {
                std::thread::sleep(Duration::from_millis(100));
                open() == before
            })
        };
        assert!(within(Duration::from_secs(20), is_settled));
        before
    };
    let _server = late_server(&silk);
    let before = settled();
    let crowd = crowd_of(&silk);
    let now = settled();
    // Two have their descriptors; when they are gone, there is none for a third.
    let is_new = |link: &String| link.starts_with("socket:") && !before.values().any(|known| known == link);
    let connections: Vec<_> = now.iter().filter(|(_, link)| is_new(link)).collect();
    assert!(connections.len() >= 2, "{connections:?}");
    let lowest = (0..).find(|n| !now.contains_key(n) || connections.iter().any(|(number, _)| *number == n));
    limit(lowest.unwrap());
    silk.write("go", "");
    let are_gone = || connections.iter().all(|(_, link)| !open().values().any(|known| known == *link));
    assert!(within(Duration::from_secs(20), are_gone), "{connections:?}");
    std::thread::sleep(Duration::from_millis(500));
    limit(1024);
    all_were_served(&silk, crowd);
    assert!(silk.report().to_string().contains("host: no descriptor"), "{}", silk.report());
}

#[test]
fn a_port_has_one_owner() {
    let Some(silk) = Silk::start() else { return };
    silk.write("holder.py", include_str!("holder.py"));
    let serve = ["holder.py", "serve", "7"];
    let linux = silk.start_logged(silk.on_linux("python3").args(serve), "linux");
    silk.until_says("linux", "listening");
    let second = said(silk.on_paths("python3").args(serve));
    assert!(!second.ok && second.errors.contains("already in use"), "{}", second.errors);
    assert!(second.errors.contains("a program on Linux's own stack has it"), "{}", second.errors);
    drop(linux);
    let _server = silk.start_logged(silk.on_paths("python3").args(serve), "server");
    silk.until_says("server", "listening");
    let taken =
        || said(silk.on_linux("python3").args(["-c", "import socket; socket.create_server(('', 7))"]));
    assert!(within(Duration::from_secs(10), || taken().errors.contains("already in use")));
}

#[test]
fn what_listens_on_silks_address_alone_is_not_at_loopback() {
    let Some(silk) = Silk::start() else { return };
    let code = "import socket; s = socket.create_server(('10.99.0.1', 7)); print('listening', flush=True)\n\
                while True: s.accept()[0].send(b'here')";
    let _server = silk.start_logged(silk.on_paths("python3").args(["-c", code]), "server");
    silk.until_says("server", "listening");
    let ask = |at: Ipv4Addr| {
        let code = format!("import socket; print(socket.create_connection(('{at}', 7)).recv(9))");
        said(silk.on_linux("python3").args(["-c", &code]))
    };
    assert!(ask(LOOPBACK).errors.contains("ConnectionRefused"));
    assert_eq!(ask(SERVER).bytes, b"b'here'\n");
}

#[test]
fn servers_that_share_a_port_take_turns_and_the_last_one_keeps_it() {
    let Some(silk) = Silk::start() else { return };
    silk.write("sharing.py", include_str!("sharing.py"));
    let serve = |name: &str| {
        let server = silk.start_logged(silk.on_paths("python3").args(["sharing.py", "serve", name]), name);
        silk.until_says(name, "listening");
        server
    };
    let answers = || text(silk.on_linux("python3").args(["sharing.py", "ask", &LOOPBACK.to_string()]));
    let (first, _second) = (serve("first"), serve("second"));
    assert!(within(Duration::from_secs(10), || answers() == "first second\n"), "{}", answers());
    signal(&[first.id()], "KILL");
    assert!(within(Duration::from_secs(10), || answers() == "second\n"), "{}", answers());
}

#[test]
fn a_deferred_accept_waits_for_data() {
    let Some(silk) = Silk::start() else { return };
    silk.write("deferring.py", include_str!("deferring.py"));
    silk.write("silent_first.py", include_str!("silent_first.py"));
    let _server = silk.start_logged(silk.on_paths("python3").arg("deferring.py"), "server");
    let listens = || silk.report().to_string().contains("LISTEN");
    assert!(within(Duration::from_secs(10), listens), "{}", silk.log("server"));
    text(silk.on_linux("python3").args(["silent_first.py", &LOOPBACK.to_string()]));
    let accepted = || silk.log("server") == "second\nfirst\n";
    assert!(within(Duration::from_secs(10), accepted), "{}", silk.log("server"));
}
