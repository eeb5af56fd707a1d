//! Two interfaces of one daemon, each with a peer of its own: servers and clients over either, answers by the way
//! of the route, and one of them that goes away while the other serves on.

use crate::files::{Slowly, content, fetch_each, site};
use crate::host::Silk;
use crate::programs::{bytes, said, text, within};
use silk_testkit::netns::{
    CLIENT, CLIENT_B, CLIENT6, CLIENT6_B, INTERFACE, INTERFACE_B, Running, SERVER, SERVER_B, SERVER6,
    SERVER6_B,
};
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

const BOTH: &str = include_str!("both_families.py");
const PATIENCE: Duration = Duration::from_secs(10);
/// An address of the second peer's beyond its link.
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// One class for all.
const ONE: &str = "[[class]]\nname = \"standard\"\ndefault = true\n";

/// A daemon on both interfaces, the first with these keys, with these classes, and files to serve.
fn start_with(keys: &str, classes: &str) -> Option<Silk> {
    let of = |interface| format!("[[device]]\nkind = \"xdp\"\ninterface = \"{interface}\"\n");
    let devices = format!("{}{keys}\n{}", of(INTERFACE), of(INTERFACE_B));
    let mut silk = Silk::without_daemon(&devices, classes)?;
    silk.rig.add_second().unwrap();
    silk.start_daemon();
    assert!(silk.log("silkd").contains("ready on eth0, eth1"), "{}", silk.log("silkd"));
    site(&silk);
    silk.write("both_families.py", BOTH);
    Some(silk)
}

fn start() -> Option<Silk> {
    start_with("", ONE)
}

/// Starts Python's server of files over both IPs, on silk.
fn serve(silk: &Silk) -> Running {
    silk.serve("python3", &["-m", "http.server", "80", "--bind", "::", "--directory", "site"], 80)
}

/// Starts the same on a peer.
fn serve_there(silk: &Silk, on: impl Fn(&Silk, &str) -> Command, name: &str) -> Running {
    let mut python = on(silk, "python3");
    python.args(["-u", "-m", "http.server", "8080", "--bind", "::", "--directory", "site"]);
    let server = silk.start_logged(&mut python, name);
    let there = || said(on(silk, "curl").args(["-sf", "-o", "/dev/null", "http://127.0.0.1:8080/0"])).ok;
    assert!(within(PATIENCE, there), "{}", silk.log(name));
    server
}

/// Whether this curl gets one file from there.
fn fetches(mut curl: Command, at: impl Into<IpAddr>, port: u16) -> bool {
    let at = std::net::SocketAddr::new(at.into(), port);
    let got = said(curl.args(["-sSf", "--globoff", "--max-time", "5", &format!("http://{at}/50000")]));
    got.ok && got.bytes == content(50_000)
}

#[test]
fn a_server_is_reached_over_each_interface_and_told_apart_there() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    fetch_each(|| silk.on_second("curl"), SERVER_B, 80);
    fetch_each(|| silk.on_second("curl"), SERVER6_B, 80);
    for (python, at, interface) in
        [(silk.on_peer("python3"), SERVER, INTERFACE), (silk.on_second("python3"), SERVER_B, INTERFACE_B)]
    {
        let slow = Slowly::fetch(&silk, python, at, 80);
        let over = || silk.connections().iter().map(|path| path["device"].clone()).collect::<Vec<_>>();
        assert!(within(PATIENCE, || over() == [interface]), "{:?}", over());
        drop(slow);
        assert!(within(PATIENCE, || silk.connections().is_empty()), "{:?}", silk.connections());
    }
    silk.linux_saw_nothing();
}

#[test]
fn a_server_of_datagrams_is_told_over_which_interface_each_came() {
    let Some(silk) = start() else { return };
    silk.write("over_which.py", include_str!("over_which.py"));
    let serve = |mut python: Command, port: &str| {
        let server = silk.start_logged(python.args(["over_which.py", "serve", port]), port);
        silk.until_says(port, "ready");
        server
    };
    let _servers = (serve(silk.on_paths("python3"), "53"), serve(silk.on_linux("python3"), "54"));
    let ask = |mut python: Command, at: IpAddr, port: &str| {
        text(python.args(["over_which.py", "ask", port, &at.to_string()])).trim().to_owned()
    };
    let asked = |python, at| ask(python, at, "53");
    for (first, second) in
        [(IpAddr::from(SERVER), IpAddr::from(SERVER_B)), (SERVER6.into(), SERVER6_B.into())]
    {
        assert_eq!(asked(silk.on_peer("python3"), first), INTERFACE);
        assert_eq!(asked(silk.on_second("python3"), second), INTERFACE_B);
        // What comes from the machine itself Linux tells silk of.
        for at in [first, second, Ipv4Addr::LOCALHOST.into()] {
            let here = asked(silk.on_linux("python3"), at);
            assert_eq!(here, ask(silk.on_linux("python3"), at, "54"), "{at}");
        }
    }
}

#[test]
fn what_is_far_asks_by_one_interface_and_is_answered_by_it() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk);
    let second = silk.rig.second.as_ref().unwrap();
    second.ip(["addr", "add", &format!("{FAR}/32"), "dev", "lo"]).unwrap();
    silk.rig.server.ip(["route", "add", "default", "via", &CLIENT_B.to_string()]).unwrap();
    let follows = format!("what is far is reached by {CLIENT_B} over IPv4");
    silk.until_says("silkd", &follows);
    let mut curl = silk.on_second("curl");
    curl.args(["--interface", &FAR.to_string()]);
    assert!(fetches(curl, SERVER_B, 80), "{}", silk.log("silkd"));
    // Its packets come over the second interface for the first one's address, as Linux takes them too.
    second.ip(["route", "add", &format!("{SERVER}/32"), "via", &SERVER_B.to_string()]).unwrap();
    let mut curl = silk.on_second("curl");
    curl.args(["--interface", &FAR.to_string()]);
    assert!(fetches(curl, SERVER, 80), "{}", silk.log("silkd"));
    silk.linux_saw_nothing();
}

#[test]
fn clients_reach_the_peers_of_either_network_and_what_is_far_by_the_default_route() {
    let Some(silk) = start() else { return };
    let _first = serve_there(&silk, Silk::on_peer, "first");
    let _second = serve_there(&silk, Silk::on_second, "second");
    fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
    fetch_each(|| silk.on_paths("curl"), CLIENT_B, 8080);
    assert!(fetches(silk.on_paths("curl"), CLIENT6, 8080) && fetches(silk.on_paths("curl"), CLIENT6_B, 8080));
    silk.rig.second.as_ref().unwrap().ip(["addr", "add", &format!("{FAR}/32"), "dev", "lo"]).unwrap();
    silk.rig.server.ip(["route", "add", "default", "via", &CLIENT_B.to_string()]).unwrap();
    let far = || fetches(silk.on_paths("curl"), FAR, 8080);
    assert!(within(PATIENCE, far), "{}", silk.log("silkd"));
    let (first, second) = (silk.log("first"), silk.log("second"));
    assert!(first.contains("10.99.0.1 - -") && !first.contains("10.97"), "{first}");
    assert!(second.contains("10.97.0.1 - -") && !second.contains("10.99"), "{second}");
}

#[test]
fn datagrams_of_both_are_heard_by_one_socket_and_answered_by_the_right_one() {
    let Some(silk) = start() else { return };
    let mut python = silk.on_paths("python3");
    let server = silk.start_logged(python.args(["both_families.py", "datagrams", "::", "53"]), "server");
    silk.until_says("server", "ready");
    let ask = |mut python: Command, at: IpAddr| {
        text(python.args(["both_families.py", "send", &at.to_string(), "53"])).trim().to_owned()
    };
    assert_eq!(ask(silk.on_peer("python3"), SERVER.into()), format!("::ffff:{CLIENT} hello"));
    assert_eq!(ask(silk.on_second("python3"), SERVER_B.into()), format!("::ffff:{CLIENT_B} hello"));
    // Whoever asks is told by which of its addresses: of several of one network, Linux's choice.
    assert!(ask(silk.on_peer("python3"), SERVER6.into()).starts_with("fd99::"));
    assert_eq!(ask(silk.on_second("python3"), SERVER6_B.into()), format!("{CLIENT6_B} hello"));
    drop(server);
    let mut python = silk.on_second("python3");
    let there = silk.start_logged(python.args(["both_families.py", "datagrams", "::", "54"]), "there");
    silk.until_says("there", "ready");
    let mut python = silk.on_paths("python3");
    let answer = text(python.args(["both_families.py", "send", &CLIENT_B.to_string(), "54"]));
    assert_eq!(answer.trim(), format!("::ffff:{SERVER_B} hello"));
    drop(there);
}

#[test]
fn neighbours_are_found_by_addresses_that_mean_something_on_one_link_alone() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk);
    for (interface, on) in
        [(INTERFACE, Silk::on_peer as fn(&Silk, &str) -> Command), (INTERFACE_B, Silk::on_second)]
    {
        let told =
            text(silk.on_linux("ip").args(["-6", "-o", "addr", "show", "dev", interface, "scope", "link"]));
        let address = told.split_whitespace().find(|word| word.starts_with("fe80::")).unwrap();
        let address = address.split('/').next().unwrap();
        let url = format!("http://[{address}%25eth0]/50000");
        let arguments = ["-sSf", "--globoff", "--max-time", "10", &url];
        // Linux makes such an address when a link comes up, in its own time, on either side, and the daemon hears of it.
        let comes = || on(&silk, "curl").args(arguments).output().is_ok_and(|said| said.status.success());
        assert!(within(PATIENCE, comes), "{url}");
        let got = bytes(on(&silk, "curl").args(arguments));
        assert!(got == content(50_000), "{url}");
    }
    silk.linux_saw_nothing();
}

#[test]
fn one_that_is_down_or_gone_leaves_the_other_as_it_is() {
    let Some(mut silk) = start() else { return };
    let server = serve(&silk);
    let (here, there) = (
        |silk: &Silk| fetches(silk.on_peer("curl"), SERVER, 80),
        |silk: &Silk| fetches(silk.on_second("curl"), SERVER_B, 80),
    );
    assert!(here(&silk) && there(&silk));
    let slow = Slowly::fetch(&silk, silk.on_peer("python3"), SERVER, 80);
    silk.rig.server.ip(["link", "set", INTERFACE_B, "down"]).unwrap();
    assert!(here(&silk));
    silk.rig.server.ip(["link", "set", INTERFACE_B, "up"]).unwrap();
    assert!(within(PATIENCE, || there(&silk)), "{}", silk.log("silkd"));
    silk.rig.server.ip(["link", "del", INTERFACE_B]).unwrap();
    let gone = format!("{SERVER_B} is gone from the interface");
    silk.until_says("silkd", &gone);
    slow.ends_well(&silk);
    fetch_each(|| silk.on_peer("curl"), SERVER, 80);
    fetch_each(|| silk.on_peer("curl"), SERVER6, 80);
    assert!(silk.daemon().ended().is_none());
    drop(server);
    silk.linux_saw_nothing();
}

#[test]
fn classes_are_told_apart_on_both() {
    let preferred =
        format!("[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{CLIENT_B}/32\"]\n\n");
    let Some(silk) = start_with("", &format!("{preferred}{ONE}")) else { return };
    let _server = serve(&silk);
    for (python, at, class) in
        [(silk.on_peer("python3"), SERVER, "standard"), (silk.on_second("python3"), SERVER_B, "preferred")]
    {
        let slow = Slowly::fetch(&silk, python, at, 80);
        let classes = || silk.connections().iter().map(|path| path["class"].clone()).collect::<Vec<_>>();
        assert!(within(PATIENCE, || classes() == [class]), "{:?}", classes());
        slow.ends_well(&silk);
    }
    // A datagram socket is in the class of its port; one of its askers is received in the other.
    let mut python = silk.on_paths("python3");
    let _datagrams =
        silk.start_logged(python.args(["both_families.py", "datagrams", "0.0.0.0", "53"]), "server");
    silk.until_says("server", "ready");
    for (mut python, at, from) in
        [(silk.on_peer("python3"), SERVER, CLIENT), (silk.on_second("python3"), SERVER_B, CLIENT_B)]
    {
        let answer = text(python.args(["both_families.py", "send", &at.to_string(), "53"]));
        assert_eq!(answer.trim(), format!("{from} hello"));
    }
    silk.linux_saw_nothing();
}

#[test]
fn each_has_its_own_keys() {
    for mode in crate::host::MODES {
        // At the ingress no queue has a ring of its own.
        let queues = if mode == "ingress" { "" } else { "queues = [0]\n" };
        let Some(silk) = start_with(&format!("mode = \"{mode}\"\n{queues}ring = 512\n"), ONE) else {
            return;
        };
        let _server = serve(&silk);
        fetch_each(|| silk.on_peer("curl"), SERVER, 80);
        fetch_each(|| silk.on_second("curl"), SERVER_B, 80);
        silk.linux_saw_nothing();
    }
}

/// A DHCP server binds a socket to each interface that it serves.
#[test]
fn a_socket_of_an_interface_that_is_not_silks_is_linuxs() {
    const SERVE: &str = "import socket, sys
ends = []
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    end = socket.socket(socket.AF_INET, kind)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
    end.bind(('0.0.0.0', 67))
    ends.append(end)
ends[0].listen()
print('listening', flush=True)
while True:
    ends[0].accept()[0].sendall(ends[1].recvfrom(100)[0])
";
    const ASK: &str = "import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram, socket.socket() as stream:
    stream.settimeout(5)
    stream.connect((sys.argv[1], 67))
    datagram.sendto(b'hello', (sys.argv[1], 67))
    print(stream.recv(100))
";
    let Some(mut silk) = Silk::without_daemon("kind = \"xdp\"\ninterface = \"eth0\"\n", ONE) else { return };
    silk.rig.add_second().unwrap();
    silk.start_daemon();
    let asks = |mut python: Command, at: Ipv4Addr| said(python.args(["-c", ASK, &at.to_string()]));
    let serve = |interface, log| {
        let mut python = silk.on_paths("python3");
        let server = silk.start_logged(python.args(["-c", SERVE, interface]), log);
        silk.until_says(log, "listening");
        server
    };
    let server = serve(INTERFACE, "silks");
    let answer = asks(silk.on_peer("python3"), SERVER);
    assert_eq!(String::from_utf8_lossy(&answer.bytes), "b'hello'\n");
    silk.linux_saw_nothing();
    server.stop(PATIENCE);

    let server = serve(INTERFACE_B, "linuxs");
    let answer = asks(silk.on_second("python3"), SERVER_B);
    assert_eq!(String::from_utf8_lossy(&answer.bytes), "b'hello'\n");
    assert!(!asks(silk.on_peer("python3"), SERVER).ok, "the port is nobody's there");
    let shown = silk.unserved();
    assert!(shown.contains("SO_BINDTODEVICE to an interface that is not silk's"), "{shown}");
    server.stop(PATIENCE);
}
