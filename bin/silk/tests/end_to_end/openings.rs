//! How many connections a class may open (`[class.limits] openings`): what is more is dropped where it arrives,
//! seen in `silk paths`, and no other class notices.

use crate::files::{content, site};
use crate::host::Silk;
use crate::programs::{bytes, text};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, SERVER};
use std::net::Ipv4Addr;
use std::process::Command;

/// What `silk paths` calls it.
const BEYOND: &str = "device: beyond the openings of its class";

/// Begins to connect as often as it is told, and waits for none of them.
const MANY: &str = "import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[2]))]
for one in sockets:
    one.setblocking(False)
    one.connect_ex((sys.argv[1], 80))
";

#[test]
fn a_class_that_opens_too_many_loses_them_at_the_device_and_the_other_class_none() {
    let classes = format!(
        "[[class]]\nname = \"preferred\"\npriority = 2\nsource = \"{PREFERRED}\"\n\n\
         [[class]]\nname = \"standard\"\ndefault = true\n[class.limits]\nopenings = 30\n"
    );
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let Some(silk) = Silk::start_with(&device, &classes) else { return };
    site(&silk);
    let _server = silk.serve("python3", &["-m", "http.server", "80", "--directory", "site"], 80);
    let before = dropped(&silk);
    text(silk.on_peer("python3").args(["-c", MANY, &SERVER.to_string(), "500"]));
    let after = dropped(&silk);
    assert!(after - before > 300, "{} of 500 were dropped", after - before);
    assert!(shown(&silk).contains(BEYOND), "{}", shown(&silk));
    (0..20).for_each(|_| fetch(&silk, PREFERRED));
    assert_eq!(dropped(&silk), after, "preferred connections were counted with the standard ones");
    // Its segments are sent again, as over a network that loses some.
    fetch(&silk, CLIENT);
    silk.linux_saw_nothing();
}

/// A file from the server to this client.
fn fetch(silk: &Silk, client: Ipv4Addr) {
    let mut curl = silk.on_peer("curl");
    curl.args(["-sSf", "--max-time", "20", "--interface", &client.to_string()]);
    let got = bytes(curl.arg(format!("http://{SERVER}/1449")));
    assert!(got == content(1449), "{} bytes arrived, not the right ones", got.len());
}

/// Segments that were dropped since the daemon began, as the report counts them.
fn dropped(silk: &Silk) -> u64 {
    let report = silk.report();
    let drops = report["drops"].as_array().unwrap();
    drops.iter().filter(|drop| drop["reason"] == BEYOND).map(|drop| drop["count"].as_u64().unwrap()).sum()
}

/// What a person sees.
fn shown(silk: &Silk) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
    text(command.env("SILK_SOCKET", silk.path("control.sock")).arg("paths"))
}
