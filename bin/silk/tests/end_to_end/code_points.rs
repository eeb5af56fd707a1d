//! Code points: the class of a connection by that of its peer, and the service bits and probes of a listening socket
//! before anybody has taken the connection.

use crate::host::Silk;
use crate::programs::within;
use silk_testkit::netns::{INTERFACE, SERVER, SERVER6};
use std::net::IpAddr;
use std::time::Duration;

const CLASSES: &str = "[[class]]\nname = \"calls\"\npriority = 2\ndscp = \"ef\"\n\n\
                       [[class]]\nname = \"bulk\"\ndscp = [8]\n\n\
                       [[class]]\nname = \"standard\"\ndefault = true\n";

/// The class of a connection from a client with these service bits, and what the client heard before anybody took it.
fn opened(silk: &Silk, (to, port): (IpAddr, &str), service: u8) -> (String, String) {
    let name = format!("client {to} {port} {service}");
    let mut client = silk.on_peer("python3");
    client.args(["code_points.py", "open", &to.to_string(), port, &service.to_string(), INTERFACE]);
    let client = silk.start_logged(&mut client, &name);
    silk.until_says(&name, "open");
    let class = silk.connections()[0]["class"].as_str().unwrap().to_owned();
    drop(client);
    (class, silk.log(&name))
}

#[test]
fn a_connection_is_of_the_class_of_its_peers_code_point_and_bears_its_listeners() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let Some(silk) = Silk::start_with(&device, CLASSES) else { return };
    silk.write("code_points.py", include_str!("code_points.py"));
    let mut server = silk.on_paths("python3");
    let _server = silk.start_logged(server.args(["code_points.py", "listen", "4100", "72", "40"]), "server");
    silk.until_says("server", "ready");
    for (to, borne) in [(IpAddr::from(SERVER), 72), (IpAddr::from(SERVER6), 40)] {
        for (service, port, class) in [
            (0, "4100", "standard"),
            (0xb8, "4101", "calls"),
            (0x20, "4100", "bulk"),
            (0x24, "4101", "standard"),
        ] {
            let heard = format!("the answer: {borne}\na probe: {borne}\nopen\n");
            assert_eq!(opened(&silk, (to, port), service), (class.into(), heard), "{to}, {port}, {service}");
            assert!(within(Duration::from_secs(20), || silk.connections().is_empty()), "the client is gone");
        }
    }
}
