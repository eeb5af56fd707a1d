//! Another station has an address that is silk's own (RFC 5227).

use crate::host::Silk;
use crate::programs::{beside, said, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, SERVER, SERVER6};
use std::time::Duration;

/// Silk's own address.
const OWN: &str = "10.99.0.9";
/// Binds to an address, and to any.
const BINDS: &str = "
import errno, socket, sys
for address in sys.argv[1:]:
    try:
        socket.socket().bind((address, 4000))
        print('bound')
    except OSError as error:
        print(errno.errorcode[error.errno])
";
/// Says over an interface that this address is its own.
const CLAIMS: &str = "
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
link.bind((sys.argv[1], 0))
us, ours = link.getsockname()[4], socket.inet_aton(sys.argv[2])
link.send(b'\\xff' * 6 + us + b'\\x08\\x06' + b'\\0\\1\\x08\\0\\6\\4\\0\\1' + us + ours + bytes(6) + ours)
";

/// A daemon with an address of its own; before it, what is done on the peer.
fn start(peer: impl FnOnce(&Silk)) -> Option<Silk> {
    let device = format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"{OWN}/24\"\n");
    let mut silk =
        Silk::without_daemon(&device, "[[class]]\nname = \"all\"\npriority = 0\ndefault = true\n")?;
    peer(&silk);
    silk.start_daemon();
    Some(silk)
}

fn claim(silk: &Silk) {
    text(silk.on_peer("python3").args(["-c", CLAIMS, INTERFACE, OWN]));
}

// RFC 5227 §2.1.1.
#[test]
fn an_address_that_another_station_has_is_given_up() {
    let takes = |silk: &Silk| {
        silk.rig.client.ip(["address", "add", &format!("{OWN}/32"), "dev", INTERFACE]).unwrap();
    };
    let Some(silk) = start(takes) else { return };
    silk.until_says("silkd", &format!("has silk's address {OWN}, which silk therefore gives up"));
    assert_eq!(text(silk.on_paths("python3").args(["-c", BINDS, OWN])), "EADDRNOTAVAIL\n");
    // When nobody has it any more, silk does not answer for it either.
    silk.rig.client.ip(["address", "del", &format!("{OWN}/32"), "dev", INTERFACE]).unwrap();
    let pings = silk.rig.client.run("ping", ["-c", "1", "-W", "2", OWN]);
    assert!(pings.is_err(), "{pings:?}");
    assert_eq!(silk.log("silkd").matches(OWN).count(), 1, "{}", silk.log("silkd"));
}

// RFC 5227 §2.4.
#[test]
fn an_address_that_another_station_claims_later_is_kept_and_that_is_said_once() {
    let Some(silk) = start(|_| {}) else { return };
    // Whom it has announced itself to knows it.
    assert_eq!(text(silk.on_paths("python3").args(["-c", BINDS, OWN])), "bound\n");
    let kept = || {
        claim(&silk);
        silk.log("silkd").contains("which silk keeps") || silk.log("silkd").contains("gives up")
    };
    // As soon as it may be objected to no longer.
    std::thread::sleep(Duration::from_secs(2));
    assert!(within(Duration::from_secs(20), kept));
    (0..3).for_each(|_| claim(&silk));
    let pings = || {
        let said = silk.rig.client.run("ping", ["-c", "1", "-W", "1", "-I", &CLIENT.to_string(), OWN]);
        said.is_ok_and(|said| said.contains("1 received"))
    };
    assert!(within(Duration::from_secs(20), pings), "it is still there");
    let said = format!("claims silk's address {OWN}, which silk keeps");
    assert_eq!(silk.log("silkd").matches(&said).count(), 1, "{}", silk.log("silkd"));
}

/// Linux would answer beside silk, and reset what is opened to it; what it sends to its own address never comes to a tap.
#[test]
fn an_address_that_linux_has_on_the_machine_is_refused() {
    let classes = "[[class]]\nname = \"all\"\ndefault = true\n";
    let Some(silk) = Silk::without_daemon("", classes) else { return };
    let devices = [
        ("packet", format!("interface = \"{INTERFACE}\"\naddress = \"{SERVER}/24\"\n"), SERVER.to_string()),
        ("tap", format!("address = \"{OWN}/24\"\naddress6 = \"{SERVER6}/64\"\n"), SERVER6.to_string()),
    ];
    for (kind, keys, address) in devices {
        let socket = silk.path("control.sock");
        let text = format!(
            "[device]\nkind = \"{kind}\"\n{keys}\n[control]\nsocket = \"{}\"\n\n{classes}",
            socket.display()
        );
        let config = silk.write("silk.toml", text);
        let mut daemon = silk.rig.server.command("timeout");
        let ended = said(daemon.arg("20").arg(beside("silkd")).arg("--config").arg(config));
        let why = format!("silkd: Linux has the address {address} too, on `{INTERFACE}`");
        assert!(!ended.ok && ended.errors.starts_with(&why), "{}", ended.errors);
    }
}
