//! Groups and broadcasts: joined and left, heard and sent to, and the leave that speaking with everyone
//! takes. The same program says the same over Linux's own stack and over silk.

use crate::host::Silk;
use crate::programs::{is_left_to_linux, within};
use silk_testkit::netns::{INTERFACE, SERVER, SERVER6};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

const TWO: &str = "10.99.0.2";
const THREE: &str = "10.99.0.3";

/// The listener's own address, of the IP that is sent by.
const HERE: &str = "here";

/// What is sent when the listener is ready for it, and whereto: an address and a port; and from where.
const SAID: [(&str, &str, &str, &str); 48] = [
    ("group", "239.1.2.3", "4300", TWO),
    ("other", "239.1.2.4", "4300", TWO),
    ("everyone", "255.255.255.255", "4300", TWO),
    ("network", "10.99.0.255", "4300", TWO),
    ("group-again", "239.1.2.3", "4300", TWO),
    ("other-again", "239.1.2.4", "4300", TWO),
    ("early", "239.1.2.5", "4301", TWO),
    ("executed", "239.1.2.5", "4310", TWO),
    ("six", "ff15::99", "4302", "fd99::2"),
    ("two-alone", "232.1.2.6", "4303", TWO),
    ("three-not", "232.1.2.6", "4303", THREE),
    ("three-too", "232.1.2.6", "4303", THREE),
    ("two-no-more", "232.1.2.6", "4303", TWO),
    ("three-still", "232.1.2.6", "4303", THREE),
    ("all-but-two", "232.1.2.6", "4303", TWO),
    ("three-of-all", "232.1.2.6", "4303", THREE),
    ("two-again", "232.1.2.6", "4303", TWO),
    ("two-early", "232.1.2.7", "4304", TWO),
    ("three-early", "232.1.2.7", "4304", THREE),
    ("two-blocked-early", "239.1.3.5", "4309", TWO),
    ("three-of-the-last", "239.1.3.5", "4309", THREE),
    ("six-two", "ff35::98", "4305", "fd99::2"),
    ("six-three", "ff35::98", "4305", "fd99::3"),
    ("six-all-but-two", "ff35::98", "4305", "fd99::2"),
    ("six-three-of-all", "ff35::98", "4305", "fd99::3"),
    ("six-two-again", "ff35::98", "4305", "fd99::2"),
    ("others", "239.1.2.8", "4306", TWO),
    ("others-not", "239.1.2.8", "4306", TWO),
    ("own", "239.1.2.9", "4306", TWO),
    ("six-others", "ff15::97", "4307", "fd99::2"),
    ("six-others-not", "ff15::97", "4307", "fd99::2"),
    ("nobody-joined", "239.1.2.10", "4308", TWO),
    ("to-both", "239.1.2.10", "4308", TWO),
    ("to-another", "239.1.2.11", "4308", TWO),
    ("to-one", HERE, "4308", TWO),
    ("to-it-alone", "239.1.2.10", "4308", TWO),
    ("not-to-another", "239.1.2.11", "4308", TWO),
    ("not-to-one", HERE, "4308", TWO),
    ("nobody-any-more", "239.1.2.10", "4308", TWO),
    ("it-again", "239.1.2.10", "4308", TWO),
    ("of-the-peer", "239.1.2.10", "4308", "10.99.0.2/4999"),
    ("of-another-port", "239.1.2.10", "4308", TWO),
    ("its-network", "10.99.0.255", "4308", TWO),
    ("not-everyone", "255.255.255.255", "4308", TWO),
    ("all", "255.255.255.255", "4308", TWO),
    ("not-the-network", "10.99.0.255", "4308", TWO),
    ("six-bound", "ff15::96", "4308", "fd99::2"),
    ("not-to-one-six", HERE, "4308", "fd99::2"),
];

/// What the listener says, and what the peer hears of it.
fn heard(silk: &Silk, mut listener: Command, here: [&str; 2]) -> (String, String) {
    silk.write("groups.py", include_str!("groups.py"));
    // Linux sends nothing to a group that no route leads to.
    silk.rig.server.ip(["route", "replace", "224.0.0.0/4", "dev", INTERFACE]).unwrap();
    let _listener = silk.start_logged(listener.args(["groups.py", "listen", here[0], here[1]]), "listener");
    let ready =
        |step: &str| within(PATIENCE, || silk.log("listener").contains(&format!("ready for {step}\n")));
    let mut peer = None;
    for (number, (step, to, port, from)) in SAID.into_iter().enumerate() {
        assert!(ready(step), "{step}: {}", silk.log("listener"));
        if number + 1 == SAID.len() {
            // What the listener says after it must find somebody who hears.
            peer = Some(silk.start_logged(silk.on_peer("python3").args(["groups.py", "hear"]), "peer"));
            silk.until_says("peer", "ready");
        }
        let own = here[usize::from(from.contains(':'))];
        let to = if to == HERE { own } else { to };
        let said = silk.on_peer("python3").args(["groups.py", "say", to, port, step, from]).status();
        assert!(said.is_ok_and(|status| status.success()), "{step}");
    }
    assert!(ready("word"), "{}", silk.log("listener"));
    assert!(within(PATIENCE, || silk.log("peer").lines().count() == 4), "{}", silk.log("peer"));
    silk.until_says("listener", "from a group's");
    drop(peer);
    assert!(!is_left_to_linux(&silk.log("listener")), "{}", silk.log("listener"));
    // The library says to people why a port is refused.
    let said: Vec<_> = silk
        .log("listener")
        .lines()
        .filter(|line| !line.starts_with("libsilk: "))
        .map(String::from)
        .collect();
    (said.join("\n"), silk.log("peer"))
}

#[test]
fn groups_and_broadcasts_are_what_they_are_on_linux() {
    let Some(silk) = Silk::start() else { return };
    let here = [&*SERVER.to_string(), &*SERVER6.to_string()];
    let linux = heard(&silk, silk.on_linux("python3"), here);
    assert!(linux.0.contains("group from"), "{linux:?}");
    assert_eq!(heard(&silk, silk.on_paths("python3"), here), linux);
    assert_eq!(silk.unserved().trim(), "nothing was left to Linux");
}

#[test]
fn over_a_packet_socket_they_are_too() {
    let Some(silk) = on_packet_socket() else { return };
    let linux = heard(&silk, silk.on_linux("python3"), [&*SERVER.to_string(), &*SERVER6.to_string()]);
    let ours = heard(&silk, silk.on_paths("python3"), ["10.99.0.9", "fd99::9"]);
    assert_eq!((ours.0, ours.1.replace("10.99.0.9", "10.99.0.1")), linux);
}

#[test]
fn routers_hear_of_groups_from_whoever_owns_the_interface() {
    let all = "allowed 10.0.0.1; allowed 10.0.0.2; blocked 10.0.0.1; blocked 10.0.0.2; chose 10.0.0.2; hears; joined; left";
    let six = "allowed 2001:db8::1; blocked 2001:db8::1; chose 2001:db8::1; hears; joined; left";
    let expected = format!("four {all}; six {six}");
    let Some(own) = on_packet_socket() else {
        return;
    };
    assert_eq!(reported(&own, "10.99.0.9"), expected, "silk's own interface");
    drop(own);
    let Some(shared) = Silk::start() else { return };
    assert_eq!(reported(&shared, &SERVER.to_string()), expected, "Linux's interface");
}

/// A daemon with an address of its own behind a packet socket.
fn on_packet_socket() -> Option<Silk> {
    let device = format!(
        "kind = \"packet\"\ninterface = \"{INTERFACE}\"\naddress = \"10.99.0.9/24\"\naddress6 = \"fd99::9/64\"\n"
    );
    Silk::start_with(&device, "[[class]]\nname = \"all\"\ndefault = true\n")
}

/// What the link is told by `address` of the groups of a program that joins and ends, in order of the words.
fn reported(silk: &Silk, address: &str) -> String {
    silk.write("reports.py", include_str!("reports.py"));
    let mut watcher =
        silk.start_logged(silk.on_peer("python3").args(["reports.py", "watch", address]), "watcher");
    silk.until_says("watcher", "watching");
    let joiner = silk.start_logged(silk.on_paths("python3").args(["reports.py", "join"]), "joiner");
    let words = ["hears four", "hears six", "chose 10.0.0.2 four", "chose 2001:db8::1 six"];
    let heard = || words.iter().all(|words| silk.log("watcher").contains(words));
    assert!(within(PATIENCE * 2, heard), "{}", silk.log("watcher"));
    joiner.stop(Duration::from_secs(5));
    assert!(within(PATIENCE * 2, || watcher.ended().is_some()), "{}", silk.log("watcher"));
    let log = silk.log("watcher");
    let of = |family: &str| {
        let mut said: Vec<_> = log
            .lines()
            .filter_map(|line| line.rsplit_once(' ').filter(|(_, which)| *which == family))
            .collect();
        said.sort_unstable();
        format!("{family} {}", said.iter().map(|(said, _)| *said).collect::<Vec<_>>().join("; "))
    };
    format!("{}; {}", of("four"), of("six"))
}
