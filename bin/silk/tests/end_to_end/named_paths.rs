//! Sockets of `PF_SCOUT`: programs build paths of the daemon's graph by their names (SILK §3.1), byte streams
//! that listen and that connect, and messages.

use crate::host::Silk;
use crate::programs::{text, within};
use crate::python::{CLIENTS, ECHO};
use silk_testkit::netns::{CLIENT, PREFERRED, SERVER};
use std::time::Duration;

/// A server's graph, with paths that have names: to these ports of the peer.
pub fn graph([home, nobody, question]: [u16; 3]) -> String {
    let path = |name: &str, attributes: &str| {
        let attributes = attributes.replace("PEER", &CLIENT.to_string());
        format!("\n[[path]]\nname = \"{name}\"\nmodule = \"socket\"\n{attributes}\n")
    };
    [
        include_str!("../../../../graphs/web.toml").to_owned(),
        path("echo", "protocol = 6\nlocal_port = 4200"),
        path("home", &format!("protocol = 6\nremote = \"PEER:{home}\"\npriority = 2")),
        path("nobody", &format!("protocol = 6\nremote = \"PEER:{nobody}\"")),
        path("question", &format!("protocol = 17\nlocal_port = 4203\nremote = \"PEER:{question}\"")),
        path("anybody", "protocol = 17\nlocal_port = 4205"),
        path("low", "protocol = 17\nlocal_port = 7"),
        path("questions", &format!("protocol = 17\nlocal_port = 0\nremote = \"PEER:{question}\"")),
    ]
    .concat()
}

fn start() -> Option<Silk> {
    let mut silk = Silk::start()?;
    silk.write("graph.toml", graph([4201, 4299, 4202]));
    silk.write("named_paths.py", include_str!("named_paths.py"));
    silk.restart_daemon(Duration::from_secs(10));
    Some(silk)
}

/// What the program says of what it did on paths.
fn told(silk: &Silk, arguments: &[&str]) -> String {
    text(silk.on_paths("python3").arg("named_paths.py").args(arguments))
}

#[test]
fn a_named_byte_stream_listens() {
    let Some(silk) = start() else { return };
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["named_paths.py", "serve", "echo"]), "server");
    silk.until_says("server", "ready");
    assert_eq!(silk.log("server").trim(), "built 0 0 ready");
    silk.write("echo_clients.py", CLIENTS);
    let said =
        text(silk.on_peer("python3").args(["echo_clients.py", &SERVER.to_string(), "4200", "3", "300000"]));
    assert_eq!(said.trim(), "3 of 3 came back");
    silk.linux_saw_nothing();
}

#[test]
fn a_named_byte_stream_connects_with_its_priority() {
    let Some(silk) = start() else { return };
    silk.write("echo_server.py", ECHO);
    let _server = silk.serve_on_peer("python3", &["echo_server.py", "4201"], 4201);
    for _ in 0..2 {
        assert_eq!(told(&silk, &["call", "home"]), "built 0 priority 2\ncame back\n");
    }
    silk.linux_saw_nothing();
}

#[test]
fn who_connects_often_by_name_is_connected_each_time_and_leaves_nothing() {
    let Some(silk) = start() else { return };
    silk.write("echo_server.py", ECHO);
    let _server = silk.serve_on_peer("python3", &["echo_server.py", "4201"], 4201);
    let before = silk.kept();
    assert_eq!(told(&silk, &["often", "home"]).trim(), ["0"; 12].join(" "));
    assert!(within(Duration::from_secs(10), || silk.kept() == before), "{}", silk.report());
}

#[test]
fn a_named_path_carries_messages() {
    let Some(silk) = start() else { return };
    let answer = "\
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 4202))
print('ready', flush=True)
for _ in range(3):
    said, whose = s.recvfrom(99)
    s.sendto(said + b' of port %d' % whose[1], whose)
";
    let _server = silk.start_logged(silk.on_peer("python3").args(["-c", answer]), "server");
    silk.until_says("server", "ready");
    assert_eq!(told(&silk, &["ask", "question"]), "built 0 question of port 4203\n");
    // One that names no port has a free one each time.
    let said = told(&silk, &["ask", "questions", "questions"]);
    let port =
        |line: &str| line.strip_prefix("built 0 question of port ").and_then(|port| port.parse::<u16>().ok());
    let ports: Vec<_> = said.lines().filter_map(port).collect();
    assert!(ports.len() == 2 && ports[0] != ports[1] && !ports.contains(&0), "{said}");
}

#[test]
fn a_named_path_of_messages_without_a_peer_hears_everybody() {
    let Some(silk) = start() else { return };
    let mut listener = silk.on_paths("python3");
    let _listener = silk.start_logged(listener.args(["named_paths.py", "hear", "anybody"]), "listener");
    silk.until_says("listener", "built 0");
    let say = "import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind((sys.argv[1], 0))
    s.sendto(sys.argv[1].encode(), (sys.argv[2], 4205))
";
    // Of either class, whichever domain has the path.
    for from in [CLIENT, PREFERRED, CLIENT].map(|from| from.to_string()) {
        text(silk.on_peer("python3").args(["-c", say, &from, &SERVER.to_string()]));
        let heard = || silk.log("listener").lines().last() == Some(&from);
        assert!(within(Duration::from_secs(10), heard), "{from}: {}{}", silk.log("listener"), silk.report());
    }
}

#[test]
fn what_cannot_be_built_is_said_and_leaves_nothing() {
    let Some(silk) = start() else { return };
    let before = silk.kept();
    let said = told(&silk, &["refusals"]);
    let expected = "home EPROTOTYPE\nquestion EPROTOTYPE\nnowhere EADDRNOTAVAIL\nnobody ECONNREFUSED\n\
                    echo 0 EADDRINUSE 0\n";
    assert_eq!(said, expected);
    assert!(within(Duration::from_secs(10), || silk.kept() == before), "{}", silk.report());
}

#[test]
fn a_low_port_is_no_more_anybodys_by_a_name_than_by_its_number() {
    let Some(silk) = start() else { return };
    assert_eq!(told(&silk, &["build", "low"]), "0\n");
    let without = ["--bounding-set", "-net_bind_service", "python3", "named_paths.py", "build", "low"];
    assert_eq!(text(silk.on_paths("setpriv").args(without)), "EACCES\n");
}
