//! Linux's rules, which say whose packets are led by which of its routing tables: to a VPN that takes everything, or by the
//! router of the provider whose address they carry.

use crate::files::{fetch_each, site};
use crate::host::Silk;
use crate::programs::{said, text, within};
use crate::routes::{ANSWER, ASK, FAR, FAR6, answered_by, be_far, serve, serve_there};
use silk_testkit::netns::{CLIENT, CLIENT_B, CLIENT6, INTERFACE, SERVER};
use std::net::Ipv4Addr;
use std::time::Duration;

/// An address of the server's that has rules of its own.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);

#[test]
fn a_vpn_that_takes_everything_is_not_gone_around() {
    let Some(mut silk) = Silk::start() else { return };
    silk.rig.add_second().unwrap();
    site(&silk);
    be_far(&silk);
    silk.write("ask.py", ASK);
    silk.write("answer.py", ANSWER);
    let near = &silk.rig.server;
    near.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    near.ip(["-6", "route", "add", "default", "via", &CLIENT6.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT6} over IPv6"));
    let _there = serve_there(&silk, silk.on_peer("python3"), "peer");
    fetch_each(|| silk.on_paths("curl"), FAR, 8080);
    silk.linux_saw_nothing();
    // As `wg-quick` does it. The second peer is the VPN's other end, and knows the far address, too.
    silk.rig.second.as_ref().unwrap().ip(["addr", "add", &format!("{FAR}/32"), "dev", "lo"]).unwrap();
    near.ip(["route", "add", "default", "via", &CLIENT_B.to_string(), "table", "51820"]).unwrap();
    near.ip(["rule", "add", "not", "fwmark", "51820", "lookup", "51820"]).unwrap();
    near.ip(["rule", "add", "lookup", "main", "suppress_prefixlength", "0"]).unwrap();
    near.ip(["-6", "rule", "add", "not", "fwmark", "51820", "prohibit"]).unwrap();
    near.ip(["-6", "rule", "add", "lookup", "main", "suppress_prefixlength", "0"]).unwrap();
    silk.until_says("silkd", "no default route of IPv4 leads over the interface");
    silk.until_says("silkd", "no default route of IPv6 leads over the interface");
    let _tunnel = serve_there(&silk, silk.on_second("python3"), "tunnel");
    let _answerer = silk.start_logged(silk.on_second("python3").arg("answer.py"), "answerer");
    silk.until_says("answerer", "ready");
    let before = silk.log("peer");
    fetch_each(|| silk.on_paths("curl"), FAR, 8080);
    // It answers from the address of its end of the tunnel.
    let asked = text(silk.on_paths("python3").args(["ask.py", &FAR.to_string()]));
    assert_eq!(asked, format!("{CLIENT_B}\n{CLIENT_B}\n"));
    assert_eq!(silk.log("peer"), before, "nothing went around the tunnel");
    let six = format!("http://[{FAR6}]:8080/1449");
    assert!(!said(silk.on_paths("curl").args(["-sf", "--globoff", "--max-time", "5", &six])).ok);
    fetch_each(|| silk.on_paths("curl"), CLIENT, 8080);
    assert!(silk.log("peer").len() > before.len(), "who is near is reached as ever");
}

#[test]
fn what_carries_an_address_goes_by_the_router_that_its_rules_name() {
    let Some(silk) = Silk::start() else { return };
    site(&silk);
    be_far(&silk);
    // One that is bound to no address has none when its answer is led.
    silk.write("answer.py", ANSWER.replace("('', 7)", &format!("('{OTHER}', 7)")));
    let near = &silk.rig.server;
    near.ip(["addr", "add", &format!("{OTHER}/32"), "dev", INTERFACE]).unwrap();
    near.ip(["route", "add", "default", "via", &CLIENT.to_string(), "table", "100"]).unwrap();
    silk.rig.client.ip(["route", "add", &format!("{OTHER}/32"), "via", &SERVER.to_string()]).unwrap();
    silk.until_says("silkd", &format!("{OTHER} is an address of silk's now"));
    let (_here, _there) = (serve(&silk), serve_there(&silk, silk.on_peer("python3"), "peer"));
    let _answerer = silk.start_logged(silk.on_paths("python3").arg("answer.py"), "answerer");
    silk.until_says("answerer", "ready");
    assert!(!answered_by(&silk, OTHER, 80), "there is no way back");
    near.ip(["rule", "add", "from", &OTHER.to_string(), "lookup", "100"]).unwrap();
    assert!(within(Duration::from_secs(10), || answered_by(&silk, OTHER, 80)), "{}", silk.log("silkd"));
    assert!(!answered_by(&silk, SERVER, 80), "what carries another address has no way still");
    let asked = "import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.bind((sys.argv[1], 0))
s.sendto(b'hello', (sys.argv[2], 7))
print(s.recvfrom(9)[1][0])
";
    silk.write("asked.py", asked);
    let asked = text(silk.on_peer("python3").args(["asked.py", &FAR.to_string(), &OTHER.to_string()]));
    assert_eq!(asked, format!("{OTHER}\n"));
    let bound = || {
        let mut curl = silk.on_paths("curl");
        curl.args(["--interface", &OTHER.to_string()]);
        curl
    };
    fetch_each(bound, FAR, 8080);
    assert!(silk.log("peer").contains(&format!("{OTHER} - -")), "{}", silk.log("peer"));
    let url = format!("http://{FAR}:8080/1449");
    assert!(!said(silk.on_paths("curl").args(["-sf", "--max-time", "5", &url])).ok, "no address, no rule");
    silk.linux_saw_nothing();
}

#[test]
fn that_a_rule_is_not_followed_is_said_once() {
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let classes = "[[class]]\nname = \"standard\"\ndefault = true\n";
    let Some(mut silk) = Silk::without_daemon(&device, classes) else { return };
    silk.rig.server.ip(["rule", "add", "uidrange", "7-7", "lookup", "100"]).unwrap();
    silk.start_daemon();
    // What is there at the start has been looked at once more by then.
    silk.rig.server.ip(["route", "add", "default", "via", &CLIENT.to_string()]).unwrap();
    silk.until_says("silkd", &format!("what is far is reached by {CLIENT} over IPv4"));
    let log = silk.log("silkd");
    assert_eq!(log.matches("1 of Linux's rules").count(), 1, "{log}");
}
