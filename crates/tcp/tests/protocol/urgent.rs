//! Urgent data: the pointer of what is sent, and what a program hears of the peer's.

use std::time::Duration;

use silk_tcp::{Flags, Progress, Segment};
use silk_testkit::dice::Dice;
use silk_testkit::emulator::{Conditions, Loss};

use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, plain, text};

fn urgent(seg: Segment, pointer: u16) -> Segment {
    Segment { flags: seg.flags | Flags::URG, urgent: pointer, ..seg }
}

impl Solo {
    /// What leaves now, as (sequence number, octets, urgent pointer if it counts).
    fn pointers_sent(&mut self) -> Vec<(u32, usize, Option<u16>)> {
        let pointer = |header: &silk_tcp::Header| header.flags.contains(Flags::URG).then_some(header.urgent);
        self.sent().iter().map(|sent| (sent.header.seq.raw(), sent.len, pointer(&sent.header))).collect()
    }
}

// RFC 9293 MUST-30, MUST-62.
#[test]
fn the_pointer_points_behind_the_last_urgent_octet_until_that_is_acknowledged() {
    let mut solo = Solo::established(&plain());
    solo.offload = 65_000;
    solo.write(2_500);
    solo.connection.mark_urgent(1_500);
    // One by one, whatever the device could cut, and the small one is not held back.
    let expected = [(OURS, 1_000, Some(1_500)), (OURS + 1_000, 1_000, Some(500)), (OURS + 2_000, 500, None)];
    assert_eq!(solo.pointers_sent(), expected);
    // What is sent again says it again.
    solo.next_timeout();
    assert_eq!(solo.pointers_sent()[0], (OURS, 1_000, Some(1_500)));
    solo.arrive(ack(OURS + 1_500)).unwrap();
    solo.sent();
    solo.arrive(ack(OURS + 2_500)).unwrap();
    solo.write(2_000);
    assert_eq!(solo.pointers_sent(), [(OURS + 2_500, 2_000, None)], "cut by the device again");
}

// RFC 9293 MUST-30.
#[test]
fn urgent_data_is_not_held_back_by_nagle() {
    let mut solo = Solo::established(&plain());
    solo.write(10);
    assert_eq!(solo.text_sent(), [(OURS, 10)]);
    solo.write(1);
    assert_eq!(solo.text_sent(), []);
    solo.write(1);
    solo.connection.mark_urgent(12);
    assert_eq!(solo.pointers_sent(), [(OURS + 10, 2, Some(2))]);
}

// RFC 9293 MUST-31.
#[test]
fn urgent_data_may_be_longer_than_a_pointer_reaches() {
    let mut solo = Solo::established(&plain());
    solo.write(70_000);
    solo.connection.mark_urgent(70_000);
    let (mut acked, mut pointers) = (OURS, vec![]);
    while acked < OURS + 70_000 {
        for (seq, len, pointer) in solo.pointers_sent() {
            pointers.extend((len > 0).then_some((seq, pointer)));
            acked = seq + len as u32;
        }
        solo.arrive(ack(acked)).unwrap();
    }
    assert_eq!(pointers.len(), 70);
    for (seq, pointer) in pointers {
        let left = OURS + 70_000 - seq;
        assert_eq!(pointer, u16::try_from(left).ok(), "at {seq}");
    }
}

// RFC 9293 MUST-66.
#[test]
fn the_pointer_counts_while_our_window_is_closed() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    assert_eq!(solo.sent()[0].header.window, 0);
    assert_eq!(solo.arrive(urgent(text(THEIRS + 10_000, b""), 3)), Ok(Progress::URGENT));
    assert_eq!(solo.rx.marks, [10_002]);
}

#[test]
fn a_closed_window_does_not_hide_that_data_is_urgent() {
    let mut solo = Solo::established(&plain());
    solo.arrive(Segment { window: 0, ..ack(OURS) }).unwrap();
    solo.write(5);
    solo.connection.mark_urgent(5);
    assert_eq!(solo.pointers_sent(), [(OURS, 0, Some(5))]);
}

#[test]
fn what_was_not_written_is_not_urgent() {
    let mut solo = Solo::established(&plain());
    solo.connection.mark_urgent(0);
    solo.write(3);
    assert_eq!(solo.pointers_sent(), [(OURS, 3, None)]);
    solo.connection.shutdown_write();
    solo.sent();
    solo.connection.mark_urgent(3);
    solo.next_timeout();
    assert_eq!(solo.pointers_sent(), [(OURS, 3, None)]);
}

// RFC 9293 MUST-32.
#[test]
fn the_program_hears_where_urgent_data_ends_before_it_can_read_it() {
    let mut solo = Solo::established(&plain());
    assert_eq!(solo.arrive(urgent(text(THEIRS, b"now!"), 3)), Ok(Progress::READABLE | Progress::URGENT));
    assert_eq!((solo.rx.read(), &solo.rx.marks[..]), (b"now!".to_vec(), &[2][..]));
    // An empty segment says that there will be some.
    assert_eq!(solo.arrive(urgent(text(THEIRS + 4, b""), 7)), Ok(Progress::URGENT));
    assert_eq!(solo.arrive(urgent(text(THEIRS + 4, b"abc"), 7)), Ok(Progress::READABLE), "nothing new");
    assert_eq!(solo.arrive(urgent(text(THEIRS + 7, b"defgh"), 5)), Ok(Progress::READABLE | Progress::URGENT));
    assert_eq!(solo.rx.marks, [2, 10, 11]);
    assert_eq!(solo.rx.read(), b"abcdefgh");
}

#[test]
fn a_pointer_to_what_was_received_says_nothing() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"abcd")).unwrap();
    assert_eq!(solo.arrive(urgent(text(THEIRS + 4, b"e"), 0)), Ok(Progress::READABLE | Progress::URGENT));
    solo.arrive(urgent(text(THEIRS, b"abcde"), 4)).unwrap_err();
    assert_eq!(solo.rx.marks, [4], "a pointer of zero means the first octet");
    // Said again when it has been read, it is no news either.
    let again = Segment { seq: text(THEIRS + 2, b"").seq, ..text(THEIRS, b"cdef") };
    assert_eq!(solo.arrive(urgent(again, 3)), Ok(Progress::READABLE));
    assert_eq!((solo.rx.read(), &solo.rx.marks[..]), (b"abcdef".to_vec(), &[4][..]));
}

#[test]
fn urgent_data_behind_the_end_of_the_stream_is_none() {
    let mut solo = Solo::established(&plain());
    let end = Segment { flags: Flags::ACK | Flags::FIN, ..text(THEIRS + 2, b"c") };
    solo.arrive(end).unwrap();
    solo.arrive(urgent(text(THEIRS, b"a"), 4)).unwrap();
    solo.arrive(urgent(text(THEIRS + 1, b"b"), 1)).unwrap();
    assert_eq!((solo.rx.read(), &solo.rx.marks[..]), (b"abc".to_vec(), &[1][..]));
    solo.arrive(urgent(text(THEIRS + 4, b""), 9)).unwrap();
    assert_eq!(solo.rx.marks, [1]);
}

/// A program that marks now and then what it has written, over bad networks: whatever is lost or comes twice, each
/// mark that the other hears of lies where the program put it, they only move ahead, and the last is heard.
#[test]
fn marks_lie_where_they_were_put_whatever_the_network_does() {
    for seed in 0..300 {
        let dice = &mut Dice::new(seed);
        let way = || Conditions {
            loss: Loss::random(0.1),
            duplicate: 0.1,
            reorder: 0.2,
            reorder_by: Duration::from_millis(30),
            delay: Duration::from_millis(10),
            ..Conditions::default()
        };
        let mut pair = Pair::over(&[plain(), plain()], &[way(), way()], seed);
        let all: Vec<u8> = pattern(40_000, 7).into();
        let (mut written, mut marked) = (0, vec![]);
        let deadline = pair.now + Duration::from_secs(600);
        while pair.server.program.received.len() < all.len() {
            assert!(pair.now < deadline, "seed {seed}: {}", pair.describe());
            let part = dice.within(1..=3_000) as usize;
            let part = part.min(all.len() - written);
            if pair.client.progress.contains(Progress::ESTABLISHED) && part > 0 {
                pair.client.tx.0.extend(&all[written..written + part]);
                written += part;
                if dice.falls(0.3) || written == all.len() {
                    let octets = pair.client.tx.0.len();
                    pair.client.connection().mark_urgent(octets);
                    marked.push(written - 1);
                }
            }
            pair.drive_for(Duration::from_millis(dice.within(0..=40)));
        }
        let heard = &pair.server.rx.marks;
        assert_eq!(pair.server.program.received, all, "seed {seed}");
        assert!(heard.iter().all(|mark| marked.contains(mark)), "seed {seed}: {heard:?} of {marked:?}");
        assert!(heard.is_sorted_by(|a, b| a < b), "seed {seed}: {heard:?}");
        assert_eq!(heard.last(), marked.last(), "seed {seed}: {heard:?} of {marked:?}");
    }
}
