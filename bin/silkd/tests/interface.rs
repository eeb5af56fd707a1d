//! What `silkd` says of an interface that it cannot serve: which one, and what to do.

use std::fs;
use std::process::Command;

/// What it says, started on this interface with a device of this kind.
fn said(kind: &str, interface: &str) -> String {
    said_by(&mut Command::new(env!("CARGO_BIN_EXE_silkd")), kind, interface)
}

/// The same of one that this command starts.
fn said_by(silkd: &mut Command, kind: &str, interface: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("silk.toml");
    let address = if kind == "xdp" { "" } else { "address = \"10.99.0.9/24\"\n" };
    let socket = folder.path().join("control.sock");
    let text = format!(
        "[device]\nkind = \"{kind}\"\ninterface = \"{interface}\"\n{address}[control]\nsocket = \"{}\"\n",
        socket.display()
    );
    fs::write(&config, text).unwrap();
    let ended = silkd.arg("--config").arg(&config).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn one_that_is_not_there_is_named() {
    for kind in ["packet", "xdp"] {
        let said = said(kind, "nosuch0");
        assert_eq!(
            said, "silkd: there is no interface `nosuch0` here: `ip link` lists those there are\n",
            "{kind}"
        );
    }
}

/// So are tunnels of IP (tun, WireGuard, PPP); every machine has this one.
#[test]
fn one_that_is_not_ethernets_is_refused() {
    for kind in ["packet", "xdp"] {
        let said = said(kind, "lo");
        assert!(said.starts_with("silkd: `lo` is no Ethernet interface"), "{kind}: {said}");
    }
}

/// The kernel calls it an invalid argument.
#[test]
fn one_that_is_there_and_no_tap_is_not_taken_for_one() {
    let said = said("tap", "lo");
    assert!(said.starts_with("silkd: `lo` is there already and is no tap"), "{said}");
    assert!(said.contains("`silk0`"), "{said}");
}

/// As in a container that was given none.
#[test]
fn a_machine_without_taps_is_said_to_be_one() {
    let mut alone = Command::new("unshare");
    let hide = "mount -t tmpfs none /dev/net && exec \"$0\" \"$@\"";
    alone.args(["--map-root-user", "--mount", "sh", "-c", hide, env!("CARGO_BIN_EXE_silkd")]);
    let said = said_by(&mut alone, "tap", "silk0");
    assert!(said.starts_with("silkd: there is no /dev/net/tun here: `modprobe tun`"), "{said}");
}
