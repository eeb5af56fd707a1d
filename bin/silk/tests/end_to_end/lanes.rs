//! A datagram socket that clients of several classes ask: each more important class gets a lane, rings and a path of its own. What it asks does
//! not wait behind others' questions, and is answered at its own priority.

use crate::host::Silk;
use crate::priority::has_real_time;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, PREFERRED6, Running, SERVER, SERVER6, signal};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

const PORT: &str = "4080";
/// More questions than are passed on before there is a lane.
const FEW: [&str; 12] = ["?"; 12];

fn start() -> Option<Silk> {
    let classes = format!(
        "[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}\", \"{PREFERRED6}\"]\n\n\
         [[class]]\nname = \"standard\"\ndefault = true\n"
    );
    let silk = Silk::start_with(&format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n"), &classes)?;
    silk.write("lanes.py", include_str!("lanes.py"));
    Some(silk)
}

fn serve(silk: &Silk, how: &str, at: &str) -> Running {
    server(silk, &["answer", how, at, PORT])
}

/// Several sockets that share the port.
fn serve_shared(silk: &Silk, option: &str, count: &str) -> Running {
    server(silk, &["share", option, "0.0.0.0", PORT, count])
}

fn server(silk: &Silk, words: &[&str]) -> Running {
    let server = silk.start_logged(silk.on_paths("python3").arg("lanes.py").args(words), "server");
    silk.until_says("server", "bound");
    server
}

/// What is said to these words.
fn ask(silk: &Silk, from: impl Into<IpAddr>, words: &[&str]) -> Vec<String> {
    let from = from.into();
    let to = if from.is_ipv4() { IpAddr::from(SERVER) } else { SERVER6.into() };
    let mut python = silk.on_peer("python3");
    python.args(["lanes.py", "ask", &from.to_string(), &to.to_string(), PORT]).args(words);
    text(&mut python).lines().map(String::from).collect()
}

/// The hops with which so many answers to a word are sent.
fn hops(silk: &Silk, from: impl Into<IpAddr>, word: &str, count: &str) -> Vec<String> {
    let mut python = silk.on_peer("python3");
    let (from, to) = (from.into().to_string(), SERVER.to_string());
    python.args(["lanes.py", "hops", &from, &to, PORT, word, count]);
    text(&mut python).lines().map(String::from).collect()
}

/// Sends what takes the server long, and waits for nothing.
fn flood(silk: &Silk, count: &str) {
    let mut python = silk.on_peer("python3");
    text(python.args(["lanes.py", "flood", &CLIENT.to_string(), &SERVER.to_string(), PORT, count]));
}

/// The datagram paths of a class.
fn paths(silk: &Silk, class: &str) -> usize {
    let report = silk.report();
    let at_port =
        |path: &&serde_json::Value| path["local"].as_str().is_some_and(|local| local.ends_with(PORT));
    report["paths"].as_array().unwrap().iter().filter(at_port).filter(|path| path["class"] == class).count()
}

#[test]
fn who_is_preferred_does_not_wait_behind_others_and_is_answered_at_its_priority() {
    let Some(silk) = start() else { return };
    for how in ["recv", "epoll", "edge"] {
        let server = serve(&silk, how, "0.0.0.0");
        assert_eq!((ask(&silk, PREFERRED, &FEW).len(), ask(&silk, CLIENT, &FEW).len()), (12, 12));
        assert_eq!((paths(&silk, "preferred"), paths(&silk, "standard")), (1, 1), "{how}");
        flood(&silk, "300");
        let said = ask(&silk, PREFERRED, &["?", "?"]);
        let slow = |said: &String| said.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        // Who is not preferred is answered behind all that.
        let all = slow(&ask(&silk, CLIENT, &["?"])[0]);
        assert!(said.iter().all(|said| slow(said) < all), "{how}: {said:?}, {all}");
        if has_real_time(&silk) {
            assert_eq!(ask(&silk, PREFERRED, &["?", "?"]), vec![format!("1 14 {all}"); 2], "{how}");
            assert_eq!(ask(&silk, CLIENT, &["?", "?"]), vec![format!("0 0 {all}"); 2], "{how}");
        }
        drop(server);
        assert!(within(Duration::from_secs(10), || paths(&silk, "preferred") == 0), "{}", silk.report());
    }
    silk.linux_saw_nothing();
}

#[test]
fn what_was_looked_at_is_what_is_taken() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, "peek", "0.0.0.0");
    assert_eq!(ask(&silk, PREFERRED, &FEW).len(), 12);
    flood(&silk, "100");
    for _ in 0..20 {
        assert_eq!(ask(&silk, PREFERRED, &["?", "?"]).len(), 2, "{}", silk.log("server"));
    }
    assert_eq!(paths(&silk, "preferred"), 1);
}

#[test]
fn over_both_ips_from_one_socket_too() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, "epoll", "::");
    for from in [IpAddr::from(PREFERRED), PREFERRED6.into()] {
        assert_eq!(ask(&silk, from, &FEW).len(), 12);
        if has_real_time(&silk) {
            assert_eq!(ask(&silk, from, &["?", "?"]), ["1 14 0"; 2], "{from}");
        }
    }
    assert_eq!((paths(&silk, "preferred"), paths(&silk, "standard")), (2, 2));
}

#[test]
fn a_socket_that_has_a_peer_or_is_in_a_group_has_none() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, "recv", "0.0.0.0");
    let heard = |count| {
        assert_eq!(ask(&silk, PREFERRED, &FEW).len(), 12);
        assert_eq!(paths(&silk, "preferred"), count);
    };
    heard(1);
    assert_eq!(ask(&silk, PREFERRED, &["peer", "?", "all"]).len(), 3);
    heard(1);
    assert_eq!(ask(&silk, CLIENT, &["peer", "?", "all", "?"]).len(), 4);
    heard(1);
    assert_eq!(ask(&silk, PREFERRED, &["join", "?"]).len(), 2);
    heard(0);
}

/// Datagrams that Linux has received for its own sockets.
fn heard_by_linux(silk: &Silk) -> u32 {
    let counters = silk.rig.server.run("cat", ["/proc/net/snmp"]).unwrap();
    let mut lines = counters.lines().filter(|line| line.starts_with("Udp:")).map(|line| line.split(' '));
    let mut columns = lines.next().unwrap().zip(lines.next().unwrap());
    columns.find(|(name, _)| *name == "InDatagrams").unwrap().1.parse().unwrap()
}

/// Which of several sockets has answered so many questions from one port; all by the same one.
fn who_answers(silk: &Silk, from: impl Into<IpAddr>) -> String {
    let said = ask(silk, from, &FEW);
    let numbers: Vec<&str> = said.iter().map(|said| said.split(' ').next().unwrap()).collect();
    assert!(numbers.len() == FEW.len() && numbers.iter().all(|number| *number == numbers[0]), "{said:?}");
    numbers[0].to_owned()
}

#[test]
fn those_that_share_a_port_have_one_each_and_a_peer_keeps_its_socket_from_its_first_question_on() {
    let Some(silk) = start() else { return };
    let _server = serve_shared(&silk, "SO_REUSEPORT", "3");
    let seen = || (0..24).map(|_| who_answers(&silk, PREFERRED)).collect::<BTreeSet<_>>();
    assert_eq!(seen().into_iter().collect::<Vec<_>>(), ["0", "1", "2"]);
    assert_eq!(paths(&silk, "preferred"), 3);
    flood(&silk, "300");
    let said = ask(&silk, PREFERRED, &["?"; 2]);
    let slow = |said: &String| said.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    // One thread serves them all, and those of the flood have one socket.
    assert!(said.iter().all(|said| slow(said) < 200), "{said:?}");
    assert_eq!(ask(&silk, CLIENT, &["more"]).len(), 1);
    assert_eq!(paths(&silk, "preferred"), 4);
    assert_eq!(seen().into_iter().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert_eq!(heard_by_linux(&silk), 0);
}

#[test]
fn of_those_that_share_an_address_the_last_hears() {
    let Some(silk) = start() else { return };
    let _server = serve_shared(&silk, "SO_REUSEADDR", "2");
    for last in ["1", "2"] {
        for from in [PREFERRED, CLIENT, PREFERRED] {
            assert_eq!(who_answers(&silk, from), last);
        }
        assert_eq!(ask(&silk, PREFERRED, &["more"]).len(), 1);
    }
    assert_eq!(paths(&silk, "preferred"), 4);
}

#[test]
fn while_one_of_them_is_in_a_group_none_has_any_and_all_are_silks() {
    let Some(silk) = start() else { return };
    let _server = serve_shared(&silk, "SO_REUSEPORT", "2");
    who_answers(&silk, PREFERRED);
    assert_eq!(paths(&silk, "preferred"), 2);
    assert_eq!(ask(&silk, CLIENT, &["join"]).len(), 1);
    let before = heard_by_linux(&silk);
    for from in [PREFERRED, CLIENT] {
        who_answers(&silk, from);
    }
    assert_eq!((paths(&silk, "preferred"), heard_by_linux(&silk)), (0, before));
}

#[test]
fn what_a_socket_wishes_counts_behind_a_datagram_with_hops_of_its_own() {
    let Some(silk) = start() else { return };
    let _server = serve(&silk, "epoll", "0.0.0.0");
    assert_eq!(ask(&silk, PREFERRED, &FEW).len(), 12);
    for from in [PREFERRED, CLIENT] {
        assert_eq!(hops(&silk, from, "near", "1"), ["9"]);
        // As many as there are when the executor has its turn are sent together.
        assert_eq!(hops(&silk, from, "far", "10"), ["77", "9"].repeat(5), "{from}");
    }
    assert_eq!((paths(&silk, "preferred"), paths(&silk, "standard")), (1, 1));
}

#[test]
fn the_next_socket_has_the_port_and_a_lane_of_its_own() {
    let Some(silk) = start() else { return };
    let mut python = silk.on_paths("python3");
    let count = FEW.len().to_string();
    let mut server = silk.start_logged(python.args(["lanes.py", "again", "0.0.0.0", PORT, &count]), "server");
    for number in 0..5 {
        silk.until_says("server", &format!("bound {number}"));
        assert_eq!(ask(&silk, PREFERRED, &FEW), FEW);
    }
    let ended = server.wait(Duration::from_secs(10));
    assert!(ended.is_some_and(|status| status.success()), "{}", silk.log("server"));
    assert!(within(Duration::from_secs(10), || paths(&silk, "preferred") == 0), "{}", silk.report());
}

#[test]
fn it_goes_with_a_program_that_is_killed() {
    let Some(silk) = start() else { return };
    let before = silk.report()["arena_used"].clone();
    for _ in 0..3 {
        let server = serve(&silk, "epoll", &SERVER.to_string());
        assert_eq!(ask(&silk, PREFERRED, &FEW).len(), 12);
        assert_eq!(paths(&silk, "preferred"), 1);
        signal(&[server.id()], "KILL");
        assert!(
            within(Duration::from_secs(10), || silk.report()["arena_used"] == before),
            "{}",
            silk.report()
        );
    }
}
