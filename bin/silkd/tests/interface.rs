//! What `silkd` says of an interface that it cannot serve: which one, and what to do.

use std::fs;
use std::process::Command;

/// What it says, started on this interface with a device of this kind.
fn said(kind: &str, interface: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("silk.toml");
    let address = if kind == "packet" { "address = \"10.99.0.9/24\"\n" } else { "" };
    let socket = folder.path().join("control.sock");
    let text = format!(
        "[device]\nkind = \"{kind}\"\ninterface = \"{interface}\"\n{address}[control]\nsocket = \"{}\"\n",
        socket.display()
    );
    fs::write(&config, text).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_silkd")).arg("--config").arg(&config).output().unwrap();
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
