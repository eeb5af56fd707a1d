//! What programs on one machine hear of what they say to groups and to everyone, on silk and beside it, and by which
//! interface it leaves. The same as over Linux's own stack.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{INTERFACE, INTERFACE_B, SERVER, SERVER_B};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// What is said in turn: the family, the word, the wishes.
const SAID: [(&str, &str, &[&str]); 15] = [
    ("four", "plain", &[]),
    ("four", "silent", &["loop=0"]),
    ("four", "aloud", &["loop=1"]),
    ("four", "bound", &["at=10.99.0.1"]),
    ("four", "in-group", &["at=239.1.2.44"]),
    ("four", "by-number", &["link=eth1"]),
    ("four", "by-address", &["from=10.97.0.1"]),
    ("four", "connected", &["connect=1"]),
    ("four", "everyone", &["to=255.255.255.255"]),
    ("four", "network", &["to=10.99.0.255"]),
    ("six", "plain", &["link=eth0"]),
    ("six", "silent", &["loop=0", "link=eth0"]),
    ("six", "in-group", &["at=ff15::44", "link=eth0"]),
    ("six", "by-number", &["link=eth1"]),
    ("six", "connected", &["connect=1", "link=eth0"]),
];

/// What the speakers hear, and what is heard by others here and by the peer on each interface.
fn heard(silk: &Silk, program: impl Fn() -> Command) -> String {
    let mut hearers = Vec::new();
    let mut hear = |mut python: Command, name: &str, family: &str, at: &str| {
        let log = format!("{name}-{family}");
        let hearer =
            silk.start_logged(python.args(["groups_here.py", "hear", family, name, INTERFACE, at]), &log);
        silk.until_says(&log, "ready");
        hearers.push((hearer, log));
    };
    for (family, group) in [("four", "239.1.2.44"), ("six", "ff15::44")] {
        hear(program(), "other", family, "");
        hear(program(), "grouped", family, group);
        hear(silk.on_peer("python3"), "first", family, "");
        hear(silk.on_second("python3"), "second", family, "");
    }
    let mut all = String::new();
    for (family, word, wishes) in SAID {
        let said = text(program().args(["groups_here.py", "say", family, word]).args(wishes));
        all += &format!("{family} {word}: {}\n", said.trim().replace('\n', ", "));
    }
    for family in ["four", "six"] {
        for link in [INTERFACE, INTERFACE_B] {
            text(program().args(["groups_here.py", "say", family, "end", &format!("link={link}")]));
        }
    }
    for (hearer, log) in &mut hearers {
        within(PATIENCE, || hearer.ended().is_some());
        all += &silk.log(log);
    }
    all
}

fn start() -> Option<Silk> {
    let mut silk = Silk::start()?;
    silk.rig.add_second().unwrap();
    silk.write("groups_here.py", include_str!("groups_here.py"));
    // Linux sends nothing to a group, nor to everyone, that no route leads to.
    silk.rig.server.ip(["route", "replace", "default", "dev", INTERFACE]).unwrap();
    assert_eq!((SERVER.to_string(), SERVER_B.to_string()), ("10.99.0.1".into(), "10.97.0.1".into()));
    Some(silk)
}

#[test]
fn what_is_said_to_a_group_or_to_everyone_is_heard_here_too() {
    let Some(silk) = start() else { return };
    let linux = heard(&silk, || silk.on_linux("python3"));
    assert!(linux.contains("other hears plain from 10.99.0.1"), "{linux}");
    assert!(linux.contains("second hears by-number"), "{linux}");
    let ours = heard(&silk, || silk.on_paths("python3"));
    assert!(ours == linux, "Linux:\n{linux}\nsilk:\n{ours}");
}

#[test]
fn a_server_on_silk_hears_what_programs_on_linux_say_to_its_group() {
    let Some(silk) = start() else { return };
    let arguments = ["groups_here.py", "hear", "four", "server", INTERFACE];
    let mut server = silk.start_logged(silk.on_paths("python3").args(arguments), "server");
    silk.until_says("server", "ready");
    let say = "import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        for word in (b'hello', b'end'): s.sendto(word, ('239.1.2.44', 4400))\n";
    text(silk.on_linux("python3").args(["-c", say]));
    assert!(within(PATIENCE, || server.ended().is_some()), "{}", silk.log("server"));
    assert_eq!(
        silk.log("server"),
        "ready\nserver hears hello from 10.99.0.1\nserver hears end from 10.99.0.1\n"
    );
}

#[test]
fn where_no_route_leads_to_a_group_silks_interface_does() {
    let Some(silk) = start() else { return };
    silk.rig.server.ip(["route", "del", "default"]).unwrap();
    let hear = ["groups_here.py", "hear", "four", "first", INTERFACE];
    let mut hearer = silk.start_logged(silk.on_peer("python3").args(hear), "first");
    silk.until_says("first", "ready");
    for (word, wishes) in [("group", &[][..]), ("everyone", &["to=255.255.255.255"]), ("end", &[])] {
        let said = text(silk.on_paths("python3").args(["groups_here.py", "say", "four", word]).args(wishes));
        assert_eq!(said, format!("it hears {word} from 10.99.0.1 at True\n"));
    }
    assert!(within(PATIENCE, || hearer.ended().is_some()), "{}", silk.log("first"));
    let all = ["group", "everyone", "end"].map(|word| format!("first hears {word} from 10.99.0.1\n"));
    assert_eq!(silk.log("first"), format!("ready\n{}", all.concat()));
}

#[test]
fn what_comes_over_the_link_is_heard_once_wherever_packets_are_told_apart() {
    for mode in ["native", "generic", "ingress"] {
        let Some(silk) = Silk::start_in(mode) else { return };
        silk.write("groups_here.py", include_str!("groups_here.py"));
        let arguments = ["groups_here.py", "hear", "four", "server", INTERFACE];
        let mut server = silk.start_logged(silk.on_paths("python3").args(arguments), "server");
        silk.until_says("server", "ready");
        for (word, wishes) in
            [("group", &["link=eth0"][..]), ("network", &["to=10.99.0.255"]), ("end", &["link=eth0"])]
        {
            text(silk.on_peer("python3").args(["groups_here.py", "say", "four", word]).args(wishes));
        }
        assert!(within(PATIENCE, || server.ended().is_some()), "{}", silk.log("server"));
        let all = ["group", "network", "end"].map(|word| format!("server hears {word} from 10.99.0.2\n"));
        assert_eq!(silk.log("server"), format!("ready\n{}", all.concat()), "{mode}");
    }
}
