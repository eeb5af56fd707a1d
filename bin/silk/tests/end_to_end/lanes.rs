//! A datagram socket that clients of several classes ask: each more important class gets a lane, rings and a path of its own. What it asks does
//! not wait behind others' questions, and is answered at its own priority.

use crate::host::Silk;
use crate::priority::has_real_time;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, PREFERRED6, Running, SERVER, SERVER6, signal};
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
    let server =
        silk.start_logged(silk.on_paths("python3").args(["lanes.py", "answer", how, at, PORT]), "server");
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
    for how in ["recv", "epoll"] {
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
