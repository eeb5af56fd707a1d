//! Datagram sockets that share a port. With `SO_REUSEPORT` each hears its part of the peers, a peer always the
//! same one, over silk's device and over Linux, and what one had goes to the others when it ends. With `SO_REUSEADDR` the
//! latest hears all who have none of their own.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, PREFERRED, PREFERRED6, Running, SERVER, SERVER6, signal};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn start() -> Option<Silk> {
    let silk = Silk::start()?;
    silk.write("sharing_datagrams.py", include_str!("sharing_datagrams.py"));
    Some(silk)
}

/// Starts sockets of these names that share the port; none of them has an error.
fn serve(silk: &Silk, at: impl Into<IpAddr>, names: &[&str]) -> Running {
    serve_by(silk, silk.on_paths("python3"), "serve", at, names)
}

fn serve_by(silk: &Silk, mut python: Command, how: &str, at: impl Into<IpAddr>, names: &[&str]) -> Running {
    let (at, log) = (at.into().to_string(), names[0]);
    let server = silk.start_logged(python.args(["sharing_datagrams.py", how, &at]).args(names), log);
    silk.until_says(log, "ready");
    assert_eq!(silk.log(log), "ready [] []\n");
    server
}

/// Who answers each port of the peer at `from`.
fn ask(mut python: Command, from: impl Into<IpAddr>, at: impl Into<IpAddr>) -> Vec<String> {
    let ends = [from.into(), at.into()].map(|end| end.to_string());
    let said = text(python.args(["sharing_datagrams.py", "ask"]).args(&ends));
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
}

/// One of the sockets is told something.
fn tell(silk: &Silk, what: &str) {
    let at = SERVER.to_string();
    let said = text(silk.on_peer("python3").args(["sharing_datagrams.py", "tell", &at, what]));
    assert_ne!(said, "nobody\n");
}

fn names(said: &[String]) -> BTreeSet<&str> {
    said.iter().map(String::as_str).collect()
}

#[test]
fn each_hears_its_part_and_what_one_had_goes_to_the_others() {
    let Some(silk) = start() else { return };
    let server = serve(&silk, SERVER, &["a", "b", "c"]);
    let from_peer = |from| ask(silk.on_peer("python3"), from, SERVER);
    let before = from_peer(CLIENT);
    assert_eq!(names(&before), ["a", "b", "c"].into());
    assert_eq!(from_peer(CLIENT), before);
    // Those of another class come to another domain's ring first.
    assert_eq!(names(&from_peer(PREFERRED)), ["a", "b", "c"].into());
    tell(&silk, "close a");
    let after = from_peer(CLIENT);
    assert_eq!(names(&after), ["b", "c"].into());
    assert!(before.iter().zip(&after).all(|(was, is)| was == "a" || was == is), "{before:?}, {after:?}");
    tell(&silk, "connect b");
    assert_eq!(names(&from_peer(CLIENT)), ["c"].into(), "one that has a peer hears no other");
    tell(&silk, "close b");
    assert_eq!(names(&from_peer(PREFERRED)), ["c"].into());
    tell(&silk, "close c");
    drop(server);
    let bind = "import socket; socket.socket(type=socket.SOCK_DGRAM).bind(('', 7000))";
    let is_free = || silk.on_linux("python3").args(["-c", bind]).status().is_ok_and(|ended| ended.success());
    assert!(within(PATIENCE, is_free), "the last one ends the port");
    assert!(!silk.log("silkd").contains("no path"), "{}", silk.log("silkd"));
}

#[test]
fn those_at_every_address_share_what_comes_over_both_ips_and_over_linux() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, Ipv6Addr::UNSPECIFIED, &["a", "b", "c"]);
    let all = || {
        [
            ask(silk.on_peer("python3"), CLIENT, SERVER),
            ask(silk.on_peer("python3"), CLIENT6, SERVER6),
            ask(silk.on_linux("python3"), LOOPBACK, LOOPBACK),
            ask(silk.on_linux("python3"), Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
        ]
    };
    let before = all();
    before.iter().for_each(|said| assert_eq!(names(said), ["a", "b", "c"].into()));
    // The one that has looked at Linux's socket for all.
    tell(&silk, "close a");
    for (before, after) in before.iter().zip(all()) {
        assert_eq!(names(&after), ["b", "c"].into());
        assert!(before.iter().zip(&after).all(|(was, is)| was == "a" || was == is), "{before:?}, {after:?}");
    }
}

#[test]
fn what_is_sent_to_a_group_or_to_everyone_all_hear_once() {
    let Some(silk) = start() else { return };
    let heard = |server: Running| {
        let calls: [(IpAddr, &str); 5] = [
            (CLIENT.into(), "10.99.0.255"),
            (PREFERRED.into(), "10.99.0.255"),
            (CLIENT.into(), "255.255.255.255"),
            (CLIENT6.into(), "ff15::99"),
            (PREFERRED6.into(), "ff15::99"),
        ];
        let heard = calls.map(|(from, to)| {
            let mut python = silk.on_peer("python3");
            text(python.args(["sharing_datagrams.py", "call", &from.to_string(), to]))
        });
        drop(server);
        heard
    };
    let linux =
        heard(serve_by(&silk, silk.on_linux("python3"), "serve", Ipv6Addr::UNSPECIFIED, &["a", "b", "c"]));
    assert_eq!(linux, ["a b c\n"; 5]);
    let silks = heard(serve(&silk, Ipv6Addr::UNSPECIFIED, &["d", "e", "f"]));
    assert_eq!(silks, ["d e f\n"; 5]);
}

#[test]
fn with_reuseaddr_the_latest_hears_as_on_linux() {
    let Some(silk) = start() else { return };
    for python in [Silk::on_linux, Silk::on_paths] {
        let _server = serve_by(&silk, python(&silk, "python3"), "latest", SERVER, &["a", "b", "c"]);
        let heard = || ask(silk.on_peer("python3"), CLIENT, SERVER);
        assert_eq!(names(&heard()), ["c"].into());
        tell(&silk, "connect c");
        assert_eq!(names(&heard()), ["b"].into());
        tell(&silk, "close b");
        assert_eq!(names(&heard()), ["a"].into());
    }
}

#[test]
fn a_server_connects_a_socket_to_each_peer_and_binds_the_next() {
    let Some(silk) = start() else { return };
    let each: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    for at in [Ipv4Addr::UNSPECIFIED, SERVER] {
        for python in [Silk::on_linux, Silk::on_paths] {
            let _server = serve_by(&silk, python(&silk, "python3"), "meet", at, &["server"]);
            assert_eq!(ask(silk.on_peer("python3"), CLIENT, SERVER), each, "{}", silk.log("server"));
        }
    }
}

#[test]
fn a_program_takes_over_from_another_that_is_killed() {
    let Some(silk) = start() else { return };
    let first = serve(&silk, Ipv4Addr::UNSPECIFIED, &["old"]);
    let _second = serve(&silk, Ipv4Addr::UNSPECIFIED, &["new"]);
    let answers = || {
        let said =
            [ask(silk.on_peer("python3"), CLIENT, SERVER), ask(silk.on_linux("python3"), LOOPBACK, LOOPBACK)];
        said.concat().into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(answers(), ["new".into(), "old".into()].into());
    signal(&[first.id()], "KILL");
    assert!(within(PATIENCE, || answers() == ["new".into()].into()), "{:?}", answers());
}

#[test]
fn a_port_is_free_as_soon_as_its_socket_is_closed() {
    const AGAIN: &str = "import socket
for n in range(2000):
    six = n % 3 == 0
    end = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(('::' if six else '0.0.0.0', 4090))
    end.close()
print('each had it')
";
    let Some(silk) = Silk::start() else { return };
    assert_eq!(text(silk.on_paths("python3").args(["-c", AGAIN])), "each had it\n");
}

/// Sends back what comes to either port.
const ECHO: &str = "import select, socket, sys
ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
[end.bind((sys.argv[1], 4071 + n)) for n, end in enumerate(ends)]
print('bound', flush=True)
while True:
    for end in select.select(ends, [], [])[0]:
        end.sendto(*end.recvfrom(100))
";

const TWICE_CONNECTED: &str = "import socket, sys
own, peer = sys.argv[1:]
def bound():
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    end.bind((own, 4090))
    end.settimeout(10)
    return end
second = bound()
second.sendto(b'before', (peer, 4072))
print(second.recv(100))
first = bound()
first.connect((peer, 4071))
try:
    second.connect((peer, 4071))
    # It is told late.
    second.send(b'?')
    print(second.recv(100))
except OSError as error:
    print(error.errno)
second.connect((peer, 4072))
for word in (b'one', b'two'):
    second.send(word)
    print(second.recv(100))
";

/// What is documented as a difference: of two that are connected to one peer the second is told so.
#[test]
fn who_could_not_be_connected_is_connected_to_another() {
    let Some(silk) = start() else { return };
    let _echo = silk.start_logged(silk.on_peer("python3").args(["-c", ECHO, &CLIENT.to_string()]), "echo");
    silk.until_says("echo", "bound");
    let [own, peer] = [SERVER, CLIENT].map(|end| end.to_string());
    let said = text(silk.on_paths("python3").args(["-c", TWICE_CONNECTED, &own, &peer]));
    assert_eq!(said, "b'before'\n99\nb'one'\nb'two'\n");
}
