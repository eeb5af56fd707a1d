//! The rig itself, on the real kernel: it connects, it counts, and it leaves nothing behind.

use silk_testkit::netns::{PREFERRED, Rig, Running, SERVER, output};
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn rig() -> Option<Rig> {
    Rig::for_test(1)
}

fn namespaces() -> String {
    output(Command::new("ip").args(["netns", "list"])).unwrap()
}

#[test]
fn both_addresses_of_the_client_reach_the_server() {
    let Some(rig) = rig() else { return };
    let server = SERVER.to_string();
    rig.client.run("ping", ["-c1", "-W5", &server]).unwrap();
    rig.client.run("ping", ["-c1", "-W5", "-I", &PREFERRED.to_string(), &server]).unwrap();
}

#[test]
fn a_rig_takes_its_processes_and_its_names_with_it() {
    let Some(rig) = rig() else { return };
    let name = rig.server.namespace().to_owned();
    let mut forker = rig.server.spawn("sh", ["-c", "sleep 1000 & echo $!; sleep 1000"]).unwrap();
    assert!(namespaces().contains(&name));
    // Who has not entered the host yet is not in it.
    let inside = || output(Command::new("ip").args(["netns", "pids", &name])).unwrap().lines().count();
    let start = Instant::now();
    while inside() < 2 {
        assert!(start.elapsed() < PATIENCE, "the shell and its child never entered the host");
    }
    drop(rig);
    assert!(!namespaces().contains(&name));
    // A process that ends leaves its namespace a moment before its parent can know.
    assert!(forker.wait(PATIENCE).is_some(), "the shell outlived its host");
}

#[test]
fn what_a_killed_maker_left_is_removed_by_the_next_rig() {
    let Some(_rig) = rig() else { return };
    let gone = Running::start(&mut Command::new("true")).unwrap().id();
    let stale = format!("silk-{gone}-0-server");
    output(Command::new("ip").args(["netns", "add", &stale])).unwrap();
    let _next = Rig::new().unwrap();
    assert!(!namespaces().contains(&stale));
}

#[test]
fn a_setting_is_written_inside_the_host_only() {
    let Some(rig) = rig() else { return };
    let file = "/proc/sys/net/ipv4/ip_default_ttl";
    let outside = std::fs::read_to_string(file).unwrap();
    rig.server.set(file, "33").unwrap();
    assert_eq!(rig.server.run("cat", [file]).unwrap().trim(), "33");
    assert_eq!(std::fs::read_to_string(file).unwrap(), outside);
}
