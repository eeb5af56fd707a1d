//! Classes that are changed while connections live: those keep theirs, and a class that is full keeps no server from listening.

use crate::host::Silk;
use crate::priority::client;
use crate::programs::{text, within};
use serde_json::Value;
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, Running};
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const STANDARD: &str = "[[class]]\nname = \"standard\"\ndefault = true\n";

fn start(classes: &str) -> Option<(Silk, Running)> {
    let silk = Silk::start_with(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"), classes)?;
    silk.write("asking.py", include_str!("asking.py"));
    let server = silk.serve("python3", &["asking.py", "serve", "7"], 7);
    Some((silk, server))
}

/// A client that stays.
fn stay(silk: &Silk, from: Ipv4Addr, name: &str) -> Running {
    let client = silk.start_logged(&mut client(silk, from, &["wait"]), name);
    silk.until_says(name, "waiting");
    client
}

/// From now on there are these classes.
fn reload(silk: &Silk, before: &str, after: &str) {
    let config = std::fs::read_to_string(silk.path("silk.toml")).unwrap();
    assert!(config.contains(before));
    silk.write("silk.toml", config.replace(before, after));
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    let said = text(command.env("SILK_SOCKET", silk.path("control.sock")).arg("reload"));
    assert!(!said.contains("restart"), "{said}");
}

/// The classes of the connections that there are, in alphabetical order.
fn classes(silk: &Silk) -> Vec<String> {
    let of = |path: &Value| path["class"].as_str().unwrap().to_owned();
    let mut classes: Vec<_> = silk.connections().iter().map(of).collect();
    classes.sort();
    classes
}

#[test]
fn connections_keep_their_class_when_others_come_before_it() {
    let Some((silk, _server)) = start(STANDARD) else { return };
    let _standing = stay(&silk, CLIENT, "first");
    let bulk = format!(
        "[[class]]\nname = \"bulk\"\nsource = \"{PREFERRED}\"\n[class.limits]\npaths = 1\n\n{STANDARD}"
    );
    reload(&silk, STANDARD, &bulk);
    assert_eq!(classes(&silk), ["standard"]);
    let _bulk = stay(&silk, PREFERRED, "second");
    let _standard = stay(&silk, CLIENT, "third");
    assert_eq!(classes(&silk), ["bulk", "standard", "standard"]);
    reload(&silk, &bulk, STANDARD);
    assert_eq!(classes(&silk), ["bulk", "standard", "standard"]);
    let _after = stay(&silk, PREFERRED, "fourth");
    assert_eq!(classes(&silk), ["bulk", "standard", "standard", "standard"]);
}

#[test]
fn a_class_that_is_full_keeps_no_server_from_listening() {
    let limits = "[class.limits]\npaths = 1\n";
    let preferred = format!("[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n");
    let Some((silk, server)) = start(&format!("{preferred}{STANDARD}{limits}")) else { return };
    let first = stay(&silk, CLIENT, "first");
    // Nobody can ask whether it serves: a client more is one too many.
    let mut other = silk.on_paths("python3");
    let _other = silk.start_logged(other.args(["asking.py", "serve", "8"]), "other");
    let listens = |path: &Value| path["state"] == "LISTEN" && path["local"] == "0.0.0.0:8";
    let listening = || silk.report()["paths"].as_array().unwrap().iter().filter(|path| listens(path)).count();
    assert!(within(Duration::from_secs(20), || listening() == 2), "{}", silk.report()["paths"]);
    drop((first, server));
    assert!(within(Duration::from_secs(20), || silk.connections().is_empty()));
    let mut again = silk.on_peer("python3");
    let said = text(again.args(["asking.py", "ask", "10.99.0.1", "8", &CLIENT.to_string(), "get"]));
    assert_eq!(said, "0\n");
}
