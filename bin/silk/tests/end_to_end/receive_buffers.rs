//! How many datagrams wait for a program that does not read: as many as it has asked room for (`SO_RCVBUF`).

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::SERVER;
use std::time::Duration;

#[test]
fn datagrams_have_the_room_that_their_program_has_asked_for() {
    let Some(silk) = Silk::start() else { return };
    silk.write("receive_buffers.py", include_str!("receive_buffers.py"));
    let here = SERVER.to_string();
    let mut receiver = silk
        .start_logged(silk.on_paths("python3").args(["receive_buffers.py", "receive", &here]), "receiver");
    for turn in 1..=2 {
        let ready = || silk.log("receiver").matches("ready").count() == turn;
        assert!(within(Duration::from_secs(20), ready), "{}", silk.log("receiver"));
        text(silk.on_peer("python3").args(["receive_buffers.py", "send", &here]));
    }
    assert!(within(Duration::from_secs(20), || receiver.ended().is_some()), "{}", silk.log("receiver"));
    let log = silk.log("receiver");
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u32>>();
    let lines: Vec<_> = log.lines().filter(|line| *line != "ready").map(numbers).collect();
    let [first, second, told] = &lines[..] else { panic!("{log}") };
    for counts in [first, second] {
        let [much, usual, little, forced] = counts[..] else { panic!("{log}") };
        assert_eq!((much, forced), (600, 600), "{log}");
        assert!((60..200).contains(&usual) && (4..9).contains(&little), "{log}");
    }
    assert_eq!(told[..], [2 << 20, 128 << 10, 16 << 10, 2 << 20]);
}
