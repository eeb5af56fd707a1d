//! A link of silk's own where a router of IPv6 advertises itself: silk makes an address of its prefix, is reached
//! by it, and reaches by the router what is far.

use crate::host::Silk;
use crate::programs::within;
use crate::python::CLIENTS;
use silk_testkit::netns::{INTERFACE, Running};
use std::process::Command;
use std::time::Duration;

/// Where everybody on the link is, and somebody far away.
const PREFIX: &str = "2001:db8:7::";
const FAR: &str = "2001:db8:99::1";
/// A network that the router leads to though it does not lead everywhere, and somebody there.
const NETWORK: &str = "2001:db8:55::";
const THERE: &str = "2001:db8:55::1";
/// An echo server of IPv6.
const SERVER: &str = "import asyncio, sys\n\
    async def echo(reader, writer):\n\
    \x20   while data := await reader.read(65536):\n\
    \x20       writer.write(data)\n\
    \x20       await writer.drain()\n\
    \x20   writer.close()\n\
    async def main():\n\
    \x20   async with await asyncio.start_server(echo, sys.argv[1], 7) as server:\n\
    \x20       print('ready', flush=True)\n\
    \x20       await server.serve_forever()\n\
    asyncio.run(main())\n";

/// Tells how many hops a datagram had left.
const HOPS: &str = "import socket, struct, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
s.bind((sys.argv[1], 9))
print('ready', flush=True)
print('hops', struct.unpack('i', s.recvmsg(9, 99)[1][0][2])[0], flush=True)
";
/// Sends one, and tells the MTU of its way (`IPV6_MTU`).
const MTU: &str = "import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 9))
s.send(b'far')
print(s.getsockopt(socket.IPPROTO_IPV6, 24))
";

/// Binds a socket to an address and connects one to another, and tells what came of it.
const USES: &str = "import errno, socket, sys
for call, end in ('bind', (sys.argv[1], 0)), ('connect', (sys.argv[2], 7)):
    s = socket.socket(socket.AF_INET6)
    s.settimeout(5)
    try:
        getattr(s, call)(end)
        print(call, s.getsockname()[0])
    except OSError as error:
        print(call, errno.errorcode.get(error.errno, error))
";

fn start(more: &str) -> Option<Silk> {
    start_without_four(&format!("address = \"10.99.0.9/24\"\n{more}"))
}

fn start_without_four(more: &str) -> Option<Silk> {
    let device = format!("kind = \"packet\"\ninterface = \"{INTERFACE}\"\n{more}\n");
    let silk = Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n")?;
    silk.rig.client.ip(["address", "add", &format!("{PREFIX}1/64"), "dev", INTERFACE, "nodad"]).unwrap();
    for far in [FAR, THERE] {
        silk.rig.client.ip(["address", "add", &format!("{far}/128"), "dev", "lo", "nodad"]).unwrap();
    }
    silk.write("advertise.py", include_str!("advertise.py"));
    silk.write("server.py", SERVER);
    silk.write("echo_clients.py", CLIENTS);
    Some(silk)
}

fn advertise(silk: &Silk, lifetime: &str) -> Running {
    let arguments = ["advertise.py", INTERFACE, PREFIX, lifetime, NETWORK];
    silk.start_logged(silk.on_peer("python3").args(arguments), "router")
}

fn serve(silk: &Silk, mut python: Command, address: &str, name: &str) -> Running {
    let server = silk.start_logged(python.args(["server.py", address]), name);
    silk.until_says(name, "ready");
    server
}

fn all_come_back(mut python: Command, address: &str) {
    let said = crate::programs::text(python.args(["echo_clients.py", address, "7", "4", "50000"]));
    assert_eq!(said.trim(), "4 of 4 came back");
}

/// With Linux's own Ethernet address it would be Linux's address too.
const HEEDED: &str = "router_advertisements = true\nmac = \"02:00:00:00:00:5a\"";

#[test]
fn an_address_and_a_router_come_by_advertisement_and_go() {
    let Some(silk) = start(HEEDED) else { return };
    come_and_go(&silk);
}

#[test]
fn what_is_advertised_may_be_all_there_is() {
    let Some(silk) = start_without_four(HEEDED) else { return };
    // A port of any address is silk's before there is one to speak from.
    let port = "import socket; s = socket.create_server(('::', 0), family=socket.AF_INET6); \
                print(s.getsockname()[1] > 0)";
    assert_eq!(crate::programs::text(silk.on_paths("python3").args(["-c", port])), "True\n");
    come_and_go(&silk);
}

fn come_and_go(silk: &Silk) {
    let router = advertise(silk, "60");
    silk.until_says("silkd", "is an address of silk's now");
    silk.until_says("silkd", "what is far is reached by fe80::");
    assert!(!silk.log("silkd").contains("IPv4"), "{}", silk.log("silkd"));
    let said = silk.log("silkd");
    let ours = said.lines().find_map(|line| line.strip_suffix(" is an address of silk's now"));
    let ours = ours.and_then(|line| line.strip_prefix("silkd: ")).expect("it was said");
    assert_eq!(ours, "2001:db8:7::ff:fe00:5a");
    let _ours = serve(silk, silk.on_paths("python3"), "::", "ours");
    all_come_back(silk.on_peer("python3"), ours);
    // Who asks who is there hears of silk, too (RFC 4443 §4.2), beside Linux, which has an address of its own.
    let all = format!("ff02::1%{INTERFACE}");
    let is_heard = || {
        let pings = silk.rig.client.run("ping", ["-6", "-c", "3", "-i", "0.2", "-W", "1", &all]);
        pings.is_ok_and(|said| said.contains("from fe80::ff:fe00:5a"))
    };
    assert!(within(Duration::from_secs(20), is_heard), "a ping to all nodes");
    let _far = serve(silk, silk.on_peer("python3"), FAR, "far");
    all_come_back(silk.on_paths("python3"), FAR);
    // What begins now is sent as far and as wide as the router says.
    let hops = silk.start_logged(silk.on_peer("python3").args(["-c", HOPS, FAR]), "hops");
    silk.until_says("hops", "ready");
    assert_eq!(crate::programs::text(silk.on_paths("python3").args(["-c", MTU, FAR])).trim(), "1400");
    silk.until_says("hops", "hops 33");
    drop(hops);
    router.stop(Duration::from_secs(5));
    let _router = advertise(silk, "0");
    silk.until_says("silkd", "no default route of IPv6");
    // The prefix is still there, and so is the network that the router leads to.
    all_come_back(silk.on_peer("python3"), ours);
    silk.until_says("silkd", &format!("{NETWORK}/48 is reached by fe80::"));
    let _there = serve(silk, silk.on_peer("python3"), THERE, "there");
    all_come_back(silk.on_paths("python3"), THERE);
}

// RFC 4862 §5.4.5.
#[test]
fn an_address_that_another_station_has_is_given_up_and_that_is_said_once() {
    let Some(silk) = start(HEEDED) else { return };
    let ours = "2001:db8:7::ff:fe00:5a";
    // Linux has no way there either.
    let heeds = format!("net.ipv6.conf.{INTERFACE}.accept_ra=0");
    assert!(silk.rig.server.command("sysctl").args(["-qw", &heeds]).status().unwrap().success());
    silk.rig.client.ip(["address", "add", &format!("{ours}/64"), "dev", INTERFACE, "nodad"]).unwrap();
    let router = advertise(&silk, "60");
    silk.until_says("silkd", &format!("has silk's address {ours}, which silk therefore gives up"));
    let said = crate::programs::text(silk.on_paths("python3").args(["-c", USES, ours, FAR]));
    assert_eq!(said, "bind EADDRNOTAVAIL\nconnect ENETUNREACH\n");
    // Routers go on with the prefix, and it does not come back.
    router.stop(Duration::from_secs(5));
    let _router = advertise(&silk, "0");
    silk.until_says("silkd", "no default route of IPv6");
    let log = silk.log("silkd");
    assert_eq!(log.matches(ours).count(), 2, "that it is silk's, and that it is not:\n{log}");
}

#[test]
fn who_is_not_to_heed_routers_does_not() {
    let Some(silk) = start("address6 = \"2001:db8:7::9/64\"") else { return };
    let _router = advertise(&silk, "60");
    // What comes behind it shows that it has come.
    silk.until_says("router", "advertised");
    let _ours = serve(&silk, silk.on_paths("python3"), "::", "ours");
    all_come_back(silk.on_peer("python3"), "2001:db8:7::9");
    assert!(!silk.log("silkd").contains("is an address of silk's now"), "{}", silk.log("silkd"));
}
