//! Datagrams that come another way than over silk's device: from the machine itself, over an interface that is
//! Linux's, and in fragments. A socket on paths hears and answers them as it does all others.

use crate::host::Silk;
use crate::programs::{said, text, within};
use silk_testkit::netns::{CLIENT, CLIENT_B, CLIENT6, CLIENT6_B, Running, SERVER, SERVER_B, SERVER6, signal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

const PORT: u16 = 7000;
const PATIENCE: Duration = Duration::from_secs(10);

fn start() -> Option<Silk> {
    let silk = Silk::start()?;
    silk.write("here.py", include_str!("here.py"));
    Some(silk)
}

/// Starts whoever sends all back.
fn serve(silk: &Silk, mut python: Command, at: impl Into<IpAddr>) -> Running {
    python.args(["here.py", "serve", &at.into().to_string(), &PORT.to_string()]);
    let server = silk.start_logged(&mut python, "server");
    silk.until_says("server", "ready");
    server
}

/// Sends datagrams of all lengths to `at` and compares what comes back.
fn ask(silk: &Silk, mut python: Command, at: impl Into<IpAddr>, how: &str) {
    python.args(["here.py", "ask", &at.into().to_string(), &PORT.to_string(), how]);
    let said = said(&mut python);
    let heard = || format!("{}the server heard:\n{}{}", said.errors, silk.log("server"), silk.report());
    assert_eq!((said.ok, &said.bytes[..]), (true, &b"all came back\n"[..]), "{}", heard());
}

#[test]
fn a_server_is_asked_by_its_own_machine_at_every_address() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, silk.on_paths("python3"), Ipv6Addr::UNSPECIFIED);
    assert_eq!(silk.over_linux().len(), 0, "made when it is needed");
    let here: [IpAddr; 4] =
        [Ipv4Addr::LOCALHOST.into(), SERVER.into(), Ipv6Addr::LOCALHOST.into(), SERVER6.into()];
    for at in here {
        ask(&silk, silk.on_linux("python3"), at, "plain");
        ask(&silk, silk.on_linux("python3"), at, "connected");
        ask(&silk, silk.on_paths("python3"), at, "plain");
    }
    ask(&silk, silk.on_peer("python3"), SERVER, "plain");
    let [path] = &silk.over_linux()[..] else { panic!("{}", silk.report()) };
    assert_eq!(path["modules"], serde_json::json!(["host", "socket"]), "{path}");
    // Six at least of each who asks here, and the three that came to the device in fragments; those are answered there.
    let packets: [u64; 2] = serde_json::from_value(path["packets"].clone()).unwrap();
    assert!(packets[0] >= packets[1] + 3 && packets[1] >= 12 * 6, "{path}");
    assert!(!silk.log("silkd").contains("panic"), "{}", silk.log("silkd"));
}

#[test]
fn a_peer_at_an_interface_of_linuxs_asks_and_is_answered_there() {
    let Some(mut silk) = start() else { return };
    silk.rig.add_second().unwrap();
    let _server = serve(&silk, silk.on_paths("python3"), Ipv4Addr::UNSPECIFIED);
    ask(&silk, silk.on_second("python3"), SERVER_B, "connected");
    ask(&silk, silk.on_peer("python3"), SERVER, "connected");
}

#[test]
fn a_bound_socket_asks_a_peer_at_an_interface_of_linuxs() {
    let Some(mut silk) = start() else { return };
    silk.rig.add_second().unwrap();
    let there: [IpAddr; 2] = [CLIENT_B.into(), CLIENT6_B.into()];
    for at in there {
        let _server = serve(&silk, silk.on_second("python3"), at);
        for how in ["plain", "bound", "connected", "both"] {
            ask(&silk, silk.on_paths("python3"), at, how);
        }
    }
    assert!(!silk.log("silkd").contains("no path") && !silk.log("silkd").contains("one IP only"));
}

#[test]
fn fragments_of_a_peer_are_heard_whoever_asks() {
    let Some(silk) = start() else { return };
    let server = serve(&silk, silk.on_paths("python3"), SERVER);
    ask(&silk, silk.on_peer("python3"), SERVER, "plain");
    drop(server);
    let server = serve(&silk, silk.on_peer("python3"), CLIENT);
    for how in ["plain", "bound", "connected", "both"] {
        ask(&silk, silk.on_paths("python3"), CLIENT, how);
    }
    drop(server);
    let _server = serve(&silk, silk.on_peer("python3"), CLIENT6);
    for how in ["plain", "bound", "connected", "both"] {
        ask(&silk, silk.on_paths("python3"), CLIENT6, how);
    }
}

#[test]
fn a_bound_socket_asks_its_own_machine() {
    let Some(silk) = start() else { return };
    let server = serve(&silk, silk.on_linux("python3"), Ipv4Addr::LOCALHOST);
    for how in ["bound", "both"] {
        ask(&silk, silk.on_paths("python3"), Ipv4Addr::LOCALHOST, how);
    }
    drop(server);
    let _server = serve(&silk, silk.on_paths("python3"), SERVER);
    for how in ["bound", "both"] {
        ask(&silk, silk.on_paths("python3"), SERVER, how);
    }
}

/// Connects a datagram socket that is bound to all addresses to each that it is told, lets go of it, and says what
/// address it had each time.
const NAMES: &str = "import ctypes, socket, sys
for there in sys.argv[1:]:
    six = ':' in there
    end = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(('::' if six else '0.0.0.0', 0))
    port = end.getsockname()[1]
    end.connect((there, 9))
    name = end.getsockname()
    nobody = ctypes.CDLL(None).connect(end.fileno(), bytes(28), 28)
    print(there, name[0], name[1] == port, nobody, end.getsockname()[0])
";

#[test]
fn a_bound_socket_that_connects_over_linux_is_told_the_address_that_linux_speaks_from() {
    let Some(mut silk) = start() else { return };
    silk.rig.add_second().unwrap();
    silk.write("names.py", NAMES);
    let there: [IpAddr; 7] = [
        Ipv4Addr::LOCALHOST.into(),
        Ipv4Addr::new(127, 0, 0, 5).into(),
        SERVER.into(),
        SERVER_B.into(),
        CLIENT_B.into(),
        Ipv6Addr::LOCALHOST.into(),
        CLIENT6_B.into(),
    ];
    let told = |mut python: Command| text(python.arg("names.py").args(there.map(|at| at.to_string())));
    let linux = told(silk.on_linux("python3"));
    assert!(linux.contains(&format!("{CLIENT_B} {SERVER_B} True 0 0.0.0.0\n")), "{linux}");
    assert_eq!(told(silk.on_paths("python3")), linux);
}

#[test]
fn a_program_that_dies_leaves_neither_path_nor_port() {
    let Some(silk) = start() else { return };
    let before = silk.kept();
    let server = serve(&silk, silk.on_paths("python3"), Ipv4Addr::UNSPECIFIED);
    ask(&silk, silk.on_linux("python3"), Ipv4Addr::LOCALHOST, "plain");
    let bind = format!("import socket; socket.socket(type=socket.SOCK_DGRAM).bind(('', {PORT}))");
    let taken = || !said(silk.on_linux("python3").args(["-c", &bind])).ok;
    assert!(taken());
    signal(&[server.id()], "KILL");
    assert!(within(PATIENCE, || silk.kept() == before), "{:?} instead of {before:?}", silk.kept());
    assert!(within(PATIENCE, || !taken()));
}
