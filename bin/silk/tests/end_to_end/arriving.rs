//! What a program is told of how datagrams arrived over silk's device, and from the machine itself.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, CLIENT6, SERVER, SERVER6};
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn start() -> Option<Silk> {
    let silk = Silk::start()?;
    silk.write("arriving.py", include_str!("arriving.py"));
    Some(silk)
}

/// What a program on silk that asks with these options is told of two datagrams that this host sends it.
fn told(silk: &Silk, sender: Command, at: (&str, IpAddr), options: &[&str]) -> Vec<String> {
    told_to(silk, silk.on_paths("python3"), (sender, "send"), at, options)
}

/// What this host is told of two datagrams that another sends it so.
fn told_to(
    silk: &Silk,
    mut hearing: Command,
    (mut sending, how): (Command, &str),
    (any, to): (&str, IpAddr),
    options: &[&str],
) -> Vec<String> {
    hearing.args(["arriving.py", "hear", any, "7"]).args(options);
    let _server = silk.start_logged(&mut hearing, "hearing");
    let lines = || silk.log("hearing").lines().map(String::from).collect::<Vec<_>>();
    assert!(within(PATIENCE, || lines() == ["listening"]), "{}", silk.log("hearing"));
    text(sending.args(["arriving.py", how, &to.to_string(), "7"]));
    assert!(within(PATIENCE, || lines().len() == 3), "{}", silk.log("hearing"));
    lines().split_off(1)
}

#[test]
fn the_hops_and_the_service_of_datagrams_are_told() {
    let Some(silk) = start() else { return };
    let four = told(&silk, silk.on_peer("python3"), ("0.0.0.0", SERVER.into()), &["ttl", "tos"]);
    assert_eq!(four, ["9 72 0", "9 72 0"]);
    let six = told(&silk, silk.on_peer("python3"), ("::", SERVER6.into()), &["hops", "class"]);
    assert_eq!(six, ["9 72 0", "9 72 0"]);
    silk.linux_saw_nothing();
}

#[test]
fn hops_and_service_may_be_said_with_a_single_datagram() {
    let Some(silk) = start() else { return };
    let told = |at, options: &[&str]| {
        told_to(&silk, silk.on_peer("python3"), (silk.on_paths("python3"), "send-one"), at, options)
    };
    assert_eq!(told(("0.0.0.0", CLIENT.into()), &["ttl", "tos"]), ["9 72 0", "64 0 0"]);
    assert_eq!(told(("::", CLIENT6.into()), &["hops", "class"]), ["9 72 0", "64 0 0"]);
    silk.linux_saw_nothing();
}

#[test]
fn when_datagrams_came_and_where_they_were_sent_to_is_told() {
    let Some(silk) = start() else { return };
    let four = told(&silk, silk.on_peer("python3"), ("0.0.0.0", SERVER.into()), &["time", "target"]);
    assert_eq!(four, vec![format!("recent {SERVER} 7 0"); 2]);
    let six = told(&silk, silk.on_peer("python3"), ("::", SERVER6.into()), &["nanos", "target6"]);
    assert_eq!(six, vec![format!("recent {SERVER6} 7 0"); 2]);
    silk.linux_saw_nothing();
}

#[test]
fn of_what_comes_from_the_machine_itself_the_same_is_told() {
    let Some(silk) = start() else { return };
    let four = ["nanos", "target", "ttl", "tos"];
    let four = told(&silk, silk.on_linux("python3"), ("0.0.0.0", SERVER.into()), &four);
    assert_eq!(four, vec![format!("recent {SERVER} 7 9 72 0"); 2]);
}

#[test]
fn at_which_of_all_its_addresses_a_socket_was_reached_is_told() {
    let Some(silk) = start() else { return };
    let four = told(&silk, silk.on_peer("python3"), ("0.0.0.0", SERVER.into()), &["info"]);
    assert_eq!(four, vec![format!("{SERVER} {SERVER} 0"); 2]);
    let six = told(&silk, silk.on_peer("python3"), ("::", SERVER6.into()), &["info6"]);
    assert_eq!(six, vec![format!("{SERVER6} 0"); 2]);
    let mapped = told(&silk, silk.on_peer("python3"), ("::", SERVER.into()), &["info6"]);
    assert_eq!(mapped, vec![format!("::ffff:{SERVER} 0"); 2]);
}
