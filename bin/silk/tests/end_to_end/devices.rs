//! Devices beside XDP: packets that Linux hands over, by class to one domain each, or to one domain for
//! all where nobody may load the program that chooses.

use crate::files::{content, fetch_each, site};
use crate::host::Silk;
use crate::programs::{beside, bytes, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const ASKING: &str = include_str!("asking.py");
/// Silk's own address, which Linux does not have.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);

/// A daemon on a packet socket, with two classes.
pub fn start() -> Option<Silk> {
    let silk = Silk::start_with(
        &format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{OWN}/24\"\n"),
        &format!(
            "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
             [[class]]\nname = \"standard\"\ndefault = true\n"
        ),
    )?;
    silk.write("asking.py", ASKING);
    Some(silk)
}

/// The domain of a path of a report: it is part of its id.
fn domain(path: &serde_json::Value) -> u64 {
    path["id"].as_u64().unwrap() >> 24 & 0xff
}

#[test]
fn packets_of_two_classes_arrive_in_two_domains() {
    let Some(silk) = start() else { return };
    assert!(silk.log("silkd").contains("2 domains"), "{}", silk.log("silkd"));
    let _standard = silk.serve_at("python3", &["asking.py", "serve", "8"], OWN, 8);
    let _preferred = silk.serve_at("python3", &["asking.py", "serve", "9"], OWN, 9);
    are_in_two_domains(&silk, [(CLIENT, "8"), (PREFERRED, "9")]);
    silk.linux_saw_nothing();
}

/// Of two clients, each from an address and to a port, the first is a standard one and the second preferred, and each class has
/// a domain.
fn are_in_two_domains(silk: &Silk, clients: [(Ipv4Addr, &str); 2]) {
    let mut waiting = Vec::new();
    for ((source, port), priority) in clients.into_iter().zip(["0", "2"]) {
        let mut client = silk.on_peer("python3");
        client.args(["asking.py", "ask", &OWN.to_string(), port, &source.to_string(), "get", "wait"]);
        let name = format!("client-{source}");
        waiting.push(silk.start_logged(&mut client, &name));
        silk.until_says(&name, "waiting");
        assert_eq!(silk.log(&name), format!("{priority}\nwaiting\n"));
    }
    let mut shown: Vec<_> = silk
        .connections()
        .iter()
        .map(|path| (domain(path), path["class"].as_str().unwrap().to_owned(), path["priority"].as_u64()))
        .collect();
    shown.sort();
    assert_eq!(shown, [(0, "standard".to_owned(), Some(0)), (1, "preferred".to_owned(), Some(2))]);
}

#[test]
fn both_classes_get_every_byte() {
    let Some(silk) = start() else { return };
    site(&silk);
    let _server = silk.serve_at("python3", &["-m", "http.server", "80", "--directory", "site"], OWN, 80);
    for source in [CLIENT, PREFERRED] {
        for size in [0, 1449, 700_000, 5_000_000] {
            let (url, from) = (format!("http://{OWN}:80/{size}"), source.to_string());
            let got =
                bytes(silk.on_peer("curl").args(["-sSf", "--max-time", "20", "--interface", &from, &url]));
            assert!(
                got == content(size),
                "{url} from {from}: {} bytes arrived, not the right ones",
                got.len()
            );
        }
    }
    silk.linux_saw_nothing();
}

#[test]
fn either_domain_finds_its_neighbours() {
    let Some(silk) = start() else { return };
    let mut peer = silk.on_peer("python3");
    let _peer = silk.start_logged(peer.args(["asking.py", "serve", "7"]), "peer");
    silk.until_says("peer", "listener");
    for address in [PREFERRED, CLIENT] {
        let mut program = silk.on_paths("python3");
        program.args([
            "asking.py",
            "ask",
            &address.to_string(),
            "7",
            &OWN.to_string(),
            "scheduling",
            "fill 300000",
        ]);
        assert_eq!(text(&mut program), "0 0\n300000\n");
    }
    silk.linux_saw_nothing();
}

#[test]
fn a_reload_keeps_the_domains() {
    let Some(silk) = start() else { return };
    let changed = std::fs::read_to_string(silk.path("silk.toml")).unwrap().replace("10.99.0.3", "10.99.0.2");
    silk.write("silk.toml", changed);
    let mut reload = Command::new(env!("CARGO_BIN_EXE_silk"));
    text(reload.env("SILK_SOCKET", silk.path("control.sock")).arg("reload"));
    let _first = silk.serve_at("python3", &["asking.py", "serve", "8"], OWN, 8);
    let _second = silk.serve_at("python3", &["asking.py", "serve", "9"], OWN, 9);
    are_in_two_domains(&silk, [(PREFERRED, "8"), (CLIENT, "9")]);
}

/// A server that takes nobody for a second, and many clients at once, on one machine.
const CROWDED: &str = "import socket, sys, threading, time
here = sys.argv[1]
listener = socket.create_server((here, 7), backlog=1)
said = []
def ask():
    try:
        with socket.create_connection((here, 7), 30) as end:
            said.append(end.recv(10).decode())
    except OSError as error:
        said.append(str(error))
clients = [threading.Thread(target=ask) for _ in range(12)]
for client in clients: client.start()
time.sleep(1)
for _ in clients:
    end, _ = listener.accept()
    end.sendall(b'ok')
    end.close()
for client in clients: client.join()
print(*sorted(set(said)), len(said))
";

#[test]
fn clients_on_the_same_machine_wait_where_the_accept_queue_of_another_class_is_full() {
    let classes = "[[class]]\nname = \"served\"\npriority = 2\nlocal_port = 7\n\n\
                   [[class]]\nname = \"standard\"\ndefault = true\n";
    let device = format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{OWN}/24\"\n");
    let Some(silk) = Silk::start_with(&device, classes) else { return };
    let said = text(silk.on_paths("python3").args(["-c", CROWDED, &OWN.to_string()]));
    assert_eq!(said, "ok 12\n");
    silk.linux_saw_nothing();
}

#[test]
fn a_tap_has_a_queue_for_each_class() {
    let classes = "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"10.98.0.3\"\n\n\
                   [[class]]\nname = \"standard\"\ndefault = true\n";
    let device = "kind = \"tap\"\ninterface = \"silk0\"\naddress = \"10.98.0.9/24\"\n";
    let Some(silk) = Silk::start_with(device, classes) else { return };
    assert!(silk.log("silkd").contains("2 domains"), "{}", silk.log("silkd"));
    for address in ["10.98.0.2/24", "10.98.0.3/24"] {
        silk.rig.server.ip(["addr", "add", address, "dev", "silk0"]).unwrap();
    }
    silk.rig.server.ip(["link", "set", "silk0", "up"]).unwrap();
    silk.write("asking.py", ASKING);
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["asking.py", "serve", "7"]), "server");
    silk.until_says("server", "listener");
    for (source, priority) in [("10.98.0.2", "0"), ("10.98.0.3", "2")] {
        let mut client = silk.rig.server.command("python3");
        client.current_dir(silk.path("")).args(["asking.py", "ask", "10.98.0.9", "7", source, "get"]);
        assert_eq!(text(client.args(["fill 300000", "long 300000"])), format!("{priority}\n300000\nwhat?\n"));
    }
}

/// What an ordinary user can have: a network of its own, and no right to load programs into the kernel.
const UNPRIVILEGED: &str = r#"
set -e
ip link add veth0 type veth peer name veth1
ip addr add 10.99.0.2/24 dev veth1
ip addr add 10.99.0.3/24 dev veth1
ip link set veth0 up
ip link set veth1 up
"$SILKD" --config silk.toml > silkd.log 2>&1 & silkd=$!
trap 'kill $server $silkd; wait' EXIT
for _ in $(seq 100); do grep -q ready silkd.log && break; sleep 0.1; done
"$SILK" run -- python3 asking.py serve 7 > server.log 2>&1 & server=$!
for _ in $(seq 100); do grep -q listener server.log && break; sleep 0.1; done
python3 asking.py ask 10.99.0.9 7 10.99.0.2 get "fill 300000" > standard.txt
python3 asking.py ask 10.99.0.9 7 10.99.0.3 get "fill 300000" > preferred.txt
"#;

#[test]
fn without_the_right_to_load_programs_one_domain_serves_all() {
    let Some(silk) = start() else { return };
    let path = |name: &str| silk.path(name);
    std::fs::create_dir(path("alone")).unwrap();
    let config = std::fs::read_to_string(path("silk.toml")).unwrap();
    let socket = path("alone/control.sock");
    let config = config
        .replace(&path("control.sock").display().to_string(), &socket.display().to_string())
        .replace(&format!("\"{INTERFACE}\""), "\"veth0\"");
    silk.write("alone/silk.toml", config);
    silk.write("alone/asking.py", ASKING);
    let mut alone = Command::new("unshare");
    alone.args(["-U", "-r", "-n", "bash", "-c", UNPRIVILEGED]).current_dir(path("alone"));
    alone.env("SILKD", beside("silkd")).env("SILK", env!("CARGO_BIN_EXE_silk")).env("SILK_SOCKET", &socket);
    let done = alone.output().unwrap();
    let read = |name: &str| std::fs::read_to_string(path("alone").join(name)).unwrap_or_default();
    let said =
        format!("{}{}{}", String::from_utf8_lossy(&done.stderr), read("silkd.log"), read("server.log"));
    assert!(done.status.success(), "{said}");
    assert!(said.contains("1 domain,") && said.contains("all classes share one domain"), "{said}");
    assert_eq!(
        (read("standard.txt"), read("preferred.txt")),
        ("0\n300000\n".into(), "2\n300000\n".into()),
        "{said}"
    );
}

/// Nobody but silk's own programs is on such a link, and nobody needs rights for it.
#[test]
fn programs_reach_each_other_over_a_link_that_leads_nowhere() {
    let Some(silk) = Silk::start_with("kind = \"link\"\naddress = \"10.55.0.1/24\"\n", "") else { return };
    site(&silk);
    let mut server = silk.on_paths("python3");
    let words = ["-m", "http.server", "80", "--bind", "10.55.0.1", "--directory", "site"];
    let _server = silk.start_logged(server.args(words), "server");
    let listens = || silk.report()["paths"].as_array().unwrap().iter().any(|path| path["state"] == "LISTEN");
    assert!(within(Duration::from_secs(20), listens), "{}", silk.log("server"));
    fetch_each(|| silk.on_paths("curl"), Ipv4Addr::new(10, 55, 0, 1), 80);
    let mut nobody = silk.on_paths("curl");
    let said = nobody.args(["-s", "--max-time", "5", "http://10.55.0.77/"]).status().unwrap();
    assert!(!said.success(), "nobody is there");
}
