//! A reset behind an answer: what a program has written before it resets a connection leaves first, as by Linux,
//! which sends it when it is written.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::SERVER;
use std::process::Command;

fn served(silk: &Silk, mut client: Command) -> String {
    silk.write("resetting.py", include_str!("resetting.py"));
    let _server = silk.serve("python3", &["resetting.py", "serve", "7"], 7);
    text(client.args(["resetting.py", "ask", &SERVER.to_string(), "7"]))
}

#[test]
fn an_answer_leaves_before_the_reset_that_follows_it() {
    let Some(silk) = Silk::start() else { return };
    let each = "unread answer ConnectionResetError\nlingering answer ConnectionResetError\n";
    assert_eq!(served(&silk, silk.on_peer("python3")), each.repeat(20));
}

#[test]
fn from_the_machine_itself_too() {
    let Some(silk) = Silk::start() else { return };
    let each = "unread answer ConnectionResetError\nlingering answer ConnectionResetError\n";
    assert_eq!(served(&silk, silk.on_linux("python3")), each.repeat(20));
}
