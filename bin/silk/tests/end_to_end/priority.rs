//! A program reads and sets the priorities of its own paths (SILK §5.3), and its thread follows.

use crate::host::Silk;
use crate::programs::{skipped, text, within};
use crate::service;
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, Running, SERVER};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const ASKING: &str = include_str!("asking.py");
const ORDERING: &str = include_str!("ordering.py");

/// A daemon whose standard class may be raised to 1, with a server on it.
pub fn start() -> Option<(Silk, Running)> {
    let silk = daemon()?;
    silk.write("asking.py", ASKING);
    let server = silk.serve("python3", &["asking.py", "serve", "7"], 7);
    Some((silk, server))
}

fn daemon() -> Option<Silk> {
    let classes = format!(
        "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\nmax_priority = 1\ndefault = true\n"
    );
    Silk::start_with(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"), &classes)
}

/// A client from `source` that says these commands.
pub fn client(silk: &Silk, source: Ipv4Addr, commands: &[&str]) -> Command {
    let mut client = silk.on_peer("python3");
    client.args(["asking.py", "ask", &SERVER.to_string(), "7", &source.to_string()]).args(commands);
    client
}

/// What the server answers to them.
fn answers(silk: &Silk, source: Ipv4Addr, commands: &[&str]) -> Vec<String> {
    text(&mut client(silk, source, commands)).lines().map(str::to_owned).collect()
}

/// Whether the machine lets the daemon schedule threads in real time; loudly where it does not.
pub fn has_real_time(silk: &Silk) -> bool {
    !silk.log("silkd").contains("cannot be scheduled") || skipped("no real-time priorities").unwrap_or(false)
}

#[test]
fn a_program_raises_its_path_as_far_as_its_class_allows() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["get", "set 1", "get", "set 2", "get", "set -1", "set 0", "get"];
    assert_eq!(answers(&silk, CLIENT, &commands), ["0", "ok", "1", "EPERM", "1", "EINVAL", "ok", "0"]);
    assert!(silk.log("python3").contains("listener: ENOTSUP"), "{}", silk.log("python3"));
}

#[test]
fn lowering_and_going_back_need_nobodys_leave() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["get", "set 0", "get", "set 2", "get", "set 3", "get"];
    assert_eq!(answers(&silk, PREFERRED, &commands), ["2", "ok", "0", "ok", "2", "EPERM", "2"]);
}

#[test]
fn the_thread_follows_its_path_and_is_let_go_with_it() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["scheduling", "set 1", "scheduling", "wait"];
    let client = silk.start_logged(&mut client(&silk, CLIENT, &commands), "client");
    silk.until_says("client", "waiting");
    let shown: Vec<_> = silk.connections().iter().map(|path| path["priority"].clone()).collect();
    assert_eq!(shown, [1]);
    if has_real_time(&silk) {
        assert_eq!(silk.log("client").lines().collect::<Vec<_>>(), ["0 0", "ok", "1 12", "waiting"]);
    }
    drop(client);
    assert_eq!(answers(&silk, CLIENT, &["scheduling", "get"]), ["0 0", "0"]);
}

#[test]
fn a_thread_that_does_not_sleep_loses_its_priority() {
    let Some((silk, _server)) = start() else { return };
    let said = answers(&silk, PREFERRED, &["work 10", "scheduling"]);
    if has_real_time(&silk) {
        assert_eq!(said, ["demoted", "0 0"]);
        // Whether for not sleeping or for the share of a CPU, depends on who looks first.
        let demoted = |thread: &serde_json::Value| thread["demoted"] != "";
        assert!(silk.report()["threads"].as_array().unwrap().iter().any(demoted), "{}", silk.report());
    }
    // The next connection raises it again.
    assert_eq!(answers(&silk, PREFERRED, &["get"]), ["2"]);
}

#[test]
fn what_a_programs_thread_uses_is_charged_to_the_path_it_serves() {
    let Some((silk, _server)) = start() else { return };
    let client = silk.start_logged(&mut client(&silk, PREFERRED, &["work 0.05", "wait"]), "client");
    silk.until_says("client", "waiting");
    let used = |path: &serde_json::Value| path["cpu_program_ns"].as_u64().unwrap();
    let shown: Vec<_> = silk.connections().iter().map(used).collect();
    assert_eq!(shown.len(), 1);
    let least = if has_real_time(&silk) { 40_000_000 } else { 4_000_000 };
    assert!(shown[0] > least, "{shown:?}");
    drop(client);
    let of_class = |report: &serde_json::Value| report["classes"][0]["cpu_program_ns"].as_u64().unwrap();
    assert!(within(Duration::from_secs(10), || silk.connections().is_empty()));
    assert!(of_class(&silk.report()) > least, "{}", silk.report());
}

#[test]
fn what_a_raised_thread_makes_or_becomes_is_ordinary() {
    let Some((silk, _server)) = start() else { return };
    let said = answers(&silk, PREFERRED, &["scheduling", "makes", "scheduling", "executes"]);
    if has_real_time(&silk) {
        assert_eq!(said, ["1 14", "0 0, 0 0", "1 14", "0"]);
    }
}

#[test]
fn a_connection_in_the_place_of_one_that_was_shared_is_its_processs_own() {
    let Some((silk, _server)) = start() else { return };
    for _ in 0..3 {
        // A child has had it, too.
        assert_eq!(answers(&silk, PREFERRED, &["set 0", "makes"])[0], "ok");
        assert_eq!(answers(&silk, PREFERRED, &["set 0", "get"]), ["ok", "0"]);
    }
}

/// A thread that has no descriptor left when somebody comes, looks at another listener, and polls the first.
const FULL: &str = "import errno, os, resource, select, socket
here, other = (socket.create_server(('0.0.0.0', port)) for port in (7, 8))
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
last = os.dup(0)
os.close(last)
resource.setrlimit(resource.RLIMIT_NOFILE, (last, limits[1]))
print('listens', flush=True)
try:
    here.accept()
    said = 'accepted'
except OSError as error:
    said = errno.errorcode[error.errno]
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(said, flush=True)
other.setblocking(False)
try:
    other.accept()
    print('another is accepted', flush=True)
except BlockingIOError:
    print('nobody is there', flush=True)
poll = select.poll()
poll.register(here, select.POLLIN)
print(len(poll.poll(10000)), 'is told', flush=True)
end, _ = here.accept()
end.sendall(b'welcome')
end.close()
";

#[test]
fn who_cannot_be_taken_by_the_thread_that_was_called_is_told_to_who_looks() {
    let Some(silk) = daemon() else { return };
    let _server = silk.start_logged(silk.on_paths("python3").args(["-c", FULL]), "server");
    silk.until_says("server", "listens");
    let ask = "import socket, sys
with socket.create_connection((sys.argv[1], 7), 20, (sys.argv[2], 0)) as end:
    print(end.recv(100).decode())
";
    let (here, from) = (SERVER.to_string(), PREFERRED.to_string());
    let said = text(silk.on_peer("python3").args(["-c", ask, &here, &from]));
    let log = silk.log("server");
    assert_eq!(said, "welcome\n", "{log}");
    assert!(log.ends_with("listens\nEMFILE\nnobody is there\n1 is told\n"), "{log}");
}

/// Gives a datagram socket a priority, then a peer, another, and none, and tells what priority it has.
const LEADING: &str = "import socket, sys
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(('0.0.0.0', 4060))
def priority(): return end.getsockopt(0x5117, 1)
said = [priority()]
end.setsockopt(0x5117, 1, 1)
said.append(priority())
for port in (9, 10):
    end.connect((sys.argv[1], port))
    said.append(priority())
print(*said)
";

#[test]
fn a_datagram_socket_keeps_its_priority_when_it_gets_a_peer() {
    let Some(silk) = daemon() else { return };
    let said = text(silk.on_paths("python3").args(["-c", LEADING, &CLIENT.to_string()]));
    assert_eq!(said, "0 1 1 1\n");
}

/// There its threads have other numbers.
#[test]
fn in_a_pid_namespace_of_its_own_a_program_is_raised_and_charged_for_too() {
    let Some(silk) = daemon() else { return };
    is_raised_alone(&silk);
}

#[test]
fn in_a_pid_namespace_of_its_own_it_is_raised_by_a_daemon_with_less_rights_too() {
    let Some(silk) = service::start() else { return };
    is_raised_alone(&silk);
}

fn is_raised_alone(silk: &Silk) {
    silk.write("asking.py", ASKING);
    let alone = ["--pid", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child"];
    let _server = silk.serve("unshare", &[&alone[..], &["python3", "asking.py", "serve", "7"]].concat(), 7);
    let said = answers(silk, PREFERRED, &["get", "work 0.05", "scheduling"]);
    if has_real_time(silk) {
        assert_eq!(said, ["2", "worked", "1 14"]);
        let report = silk.report();
        assert!(report["classes"][0]["cpu_program_ns"].as_u64().unwrap() > 40_000_000, "{report}");
    }
}

#[test]
fn a_preferred_path_that_is_lowered_takes_its_thread_along() {
    let Some((silk, _server)) = start() else { return };
    let commands = ["scheduling", "set 0", "scheduling", "set 2", "scheduling"];
    let said = answers(&silk, PREFERRED, &commands);
    if has_real_time(&silk) {
        assert_eq!(said, ["1 14", "ok", "0 0", "ok", "1 14"]);
    }
}

#[test]
fn an_event_set_tells_of_the_preferred_first_and_of_few_others_at_a_time() {
    let Some(silk) = daemon() else { return };
    silk.write("ordering.py", ORDERING);
    let _server = silk.serve("python3", &["ordering.py", "serve", "7", "7"], 7);
    let (preferred, standard) = (PREFERRED.to_string(), CLIENT.to_string());
    let sources = [&standard, &standard, &standard, &standard, &standard, &preferred, &standard];
    let mut client = silk.on_peer("python3");
    client.args(["ordering.py", "write", &SERVER.to_string(), "7"]).args(sources);
    text(&mut client);
    let told = silk.log("python3");
    let answers: Vec<Vec<&str>> = told.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(answers[0], [preferred.as_str()], "{told}");
    assert!(answers[1..].iter().all(|answer| answer.len() <= 4), "{told}");
    assert_eq!(answers.iter().flatten().filter(|source| **source == standard).count(), 6, "{told}");
}

#[test]
fn a_thread_that_waits_for_events_follows_who_wakes_it() {
    let Some(silk) = daemon() else { return };
    silk.write("ordering.py", ORDERING);
    for (how, port) in [("epoll", 7), ("poll", 8), ("poll with a pipe", 9)] {
        let at = port.to_string();
        let _server = silk.serve("python3", &["ordering.py", "follow", how, &at], port);
        let (preferred, standard) = (PREFERRED.to_string(), CLIENT.to_string());
        let mut client = silk.on_peer("python3");
        client.args(["ordering.py", "ask", &SERVER.to_string(), &at]);
        client.args([&standard, &preferred, &standard, &preferred, &preferred, &standard]);
        let said = text(&mut client);
        if has_real_time(&silk) {
            let said: Vec<_> = said.lines().collect();
            assert_eq!(said, ["0 0", "1 14", "0 0", "1 14", "1 14", "0 0"], "{how}");
        }
    }
}

#[test]
fn a_thread_that_waits_for_datagrams_has_the_priority_of_their_class() {
    let classes = "[[class]]\nname = \"calls\"\npriority = 2\nlocal_port = 4070\n\n\
                   [[class]]\nname = \"standard\"\ndefault = true\n";
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    silk.write("ordering.py", ORDERING);
    let ports = [("4070", "1 14"), ("4071", "0 0")];
    for how in ["recv", "epoll", "poll", "select", "select with a pipe"] {
        for (port, expected) in ports {
            let mut server = silk.on_paths("python3");
            let server = silk.start_logged(server.args(["ordering.py", "answer", how, port]), port);
            silk.until_says(port, "bound");
            let mut client = silk.on_peer("python3");
            let said = text(client.args(["ordering.py", "say", &SERVER.to_string(), port, "3"]));
            if has_real_time(&silk) {
                assert_eq!(said, format!("{expected}\n").repeat(3), "{how}, port {port}");
            }
            drop(server);
        }
    }
}
