//! The peer's window and ours: RFC 9293 §3.8.6, RFC 7323 §2.

use std::time::Duration;

use silk_tcp::{Config, Flags, Options, Progress, Segment, SeqNumber};

use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, plain, text};

const SECOND: Duration = Duration::from_secs(1);

fn window(octets: u16, acked: u32) -> Segment<'static> {
    Segment { window: octets, ..ack(acked) }
}

// RFC 9293 MUST-35, MUST-36, MUST-37, SHLD-29, SHLD-30.
#[test]
fn a_closed_window_is_probed_with_back_off_for_as_long_as_the_peer_answers() {
    let mut solo = Solo::established(&plain());
    solo.arrive(window(0, OURS)).unwrap();
    solo.write(500);
    let mut waits = vec![];
    for _ in 0..40 {
        assert_eq!(solo.text_sent(), []);
        let (waited, progress) = solo.next_timeout().expect("a probe is due");
        assert_eq!(progress, Progress::NONE);
        let probes: Vec<_> =
            solo.sent().iter().map(|t| (t.header.seq.raw(), t.len, t.header.flags)).collect();
        assert_eq!(probes, [(OURS - 1, 0, Flags::ACK)]);
        waits.push(waited.as_millis());
        solo.arrive(window(0, OURS)).unwrap();
    }
    assert_eq!(waits[..5], [210, 420, 840, 1_680, 3_360]);
    assert_eq!(waits[39], 120_000);
    solo.arrive(window(5_000, OURS)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS, 500)]);
}

#[test]
fn a_peer_that_does_not_answer_probes_is_given_up() {
    let mut solo = Solo::established(&plain());
    solo.arrive(window(0, OURS)).unwrap();
    solo.write(500);
    solo.sent();
    let mut probes = 0;
    while let Some((_, progress)) = solo.next_timeout()
        && !progress.contains(Progress::TIMED_OUT)
    {
        probes += solo.sent().len();
    }
    assert_eq!(probes, 15);
}

#[test]
fn a_user_timeout_ends_the_wait_for_a_window_though_the_peer_answers() {
    let limit = 5 * SECOND;
    let mut solo = Solo::established(&Config { user_timeout: Some(limit), ..plain() });
    solo.arrive(window(0, OURS)).unwrap();
    solo.write(500);
    solo.sent();
    let (first, _) = solo.next_timeout().expect("a probe is due");
    let began = solo.now;
    let mut progress = Progress::NONE;
    while progress == Progress::NONE {
        solo.sent();
        solo.arrive(window(0, OURS)).unwrap();
        progress = solo.next_timeout().expect("it ends").1;
    }
    assert_eq!((progress, first.as_millis()), (Progress::TIMED_OUT | Progress::CLOSED, 210));
    assert_eq!(solo.now - began, limit);
    // A window that opens in time begins the wait anew.
    let mut solo = Solo::established(&Config { user_timeout: Some(limit), ..plain() });
    for _ in 0..10 {
        solo.arrive(window(0, solo.connection.info().octets_acked as u32 + OURS)).unwrap();
        solo.write(500);
        for _ in 0..3 {
            solo.sent();
            assert_eq!(solo.next_timeout().expect("a probe is due").1, Progress::NONE);
        }
        solo.arrive(window(5_000, solo.connection.info().octets_acked as u32 + OURS)).unwrap();
        solo.sent();
        solo.arrive(window(5_000, solo.connection.info().octets_acked as u32 + OURS + 500)).unwrap();
    }
}

// RFC 9293 MUST-38.
#[test]
fn a_window_that_opens_a_little_is_left_alone_until_it_is_worth_a_segment() {
    let mut solo = Solo::established(&plain());
    solo.arrive(window(0, OURS)).unwrap();
    solo.write(5_000);
    assert_eq!(solo.text_sent(), []);
    solo.arrive(window(100, OURS)).unwrap();
    assert_eq!(solo.text_sent(), []);
    // The override time-out: something is better than nothing for ever.
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(OURS, 100)]);
    solo.arrive(window(1_500, OURS + 100)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 100, 1_000)]);
}

// RFC 9293 MUST-60.
#[test]
fn a_window_that_opens_a_little_after_long_probing_is_used_soon() {
    let mut solo = Solo::established(&plain());
    solo.arrive(window(0, OURS)).unwrap();
    solo.write(5_000);
    for _ in 0..10 {
        solo.sent();
        solo.next_timeout();
        solo.arrive(window(0, OURS)).unwrap();
    }
    solo.sent();
    solo.arrive(window(100, OURS)).unwrap();
    assert_eq!(solo.text_sent(), []);
    assert_eq!(solo.next_timeout().map(|timeout| timeout.0), Some(Duration::from_millis(200)));
    assert_eq!(solo.text_sent(), [(OURS, 100)]);
}

#[test]
fn a_peer_with_a_tiny_buffer_is_sent_half_of_it() {
    let mut solo = Solo::opening(&plain());
    let options = Options { mss: Some(1_000), ..Options::default() };
    let syn_ack = Segment { window: 600, ..solo.syn_ack(options) };
    solo.arrive(syn_ack).unwrap();
    solo.write(5_000);
    assert_eq!(solo.text_sent(), [(0, 0), (OURS, 600)][1..]);
    solo.arrive(window(300, OURS + 600)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 600, 300)]);
    solo.arrive(window(299, OURS + 900)).unwrap();
    assert_eq!(solo.text_sent(), []);
}

// RFC 9293 MUST-34, SHLD-15, SHLD-16.
#[test]
fn a_window_that_shrinks_behind_what_was_sent_stops_new_text_only() {
    let mut solo = Solo::established(&plain());
    solo.write(8_000);
    solo.sent();
    solo.write(2_000);
    solo.arrive(window(0, OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent(), []);
    // The oldest octet is still sent again, as a probe.
    solo.next_timeout();
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 1)]);
    // When the window opens it is known to have been refused.
    solo.arrive(window(20_000, OURS + 1_000)).unwrap();
    assert_eq!(solo.text_sent(), [(OURS + 1_000, 1_000)]);
}

#[test]
fn a_fin_needs_its_place_in_the_window() {
    let mut solo = Solo::established(&plain());
    solo.arrive(window(300, OURS)).unwrap();
    solo.write(300);
    solo.connection.shutdown_write();
    assert_eq!(solo.flags_sent(), [Flags::ACK | Flags::PSH]);
    solo.arrive(window(0, OURS + 300)).unwrap();
    assert_eq!(solo.sent(), []);
    // Until there is one the window is probed.
    solo.next_timeout();
    assert_eq!(solo.sent()[0].header.seq, SeqNumber::new(OURS + 299));
    solo.arrive(window(1, OURS + 300)).unwrap();
    assert_eq!(solo.flags_sent(), [Flags::ACK | Flags::FIN]);
}

// RFC 9293 SHLD-17.
#[test]
fn a_peer_that_closed_its_window_on_outstanding_text_and_answers_is_not_given_up() {
    let mut solo = Solo::established(&plain());
    solo.write(1_000);
    solo.sent();
    for _ in 0..40 {
        solo.arrive(window(0, OURS)).unwrap();
        let (_, progress) = solo.next_timeout().unwrap();
        assert_eq!(progress, Progress::NONE);
        solo.sent();
    }
    solo.arrive(window(1_000, OURS + 1_000)).unwrap();
    assert_eq!(solo.connection.info().in_flight, 0);
}

// RFC 9293 MUST-37.
#[test]
fn what_a_closed_window_refused_is_no_reason_to_give_up_when_it_is_open_again() {
    let mut solo = Solo::established(&Config { mss: 1_400, retries: 3, ..plain() });
    solo.write(5_000);
    solo.sent();
    for _ in 0..10 {
        solo.arrive(window(0, OURS)).unwrap();
        assert_eq!(solo.next_timeout().expect("it is sent again").1, Progress::NONE);
        assert_eq!(solo.text_sent(), [(OURS, 1)]);
    }
    // Nor do large segments vanish on the way.
    assert_eq!(solo.connection.info().mss, 1_400);
    solo.arrive(window(5_000, OURS)).unwrap();
    // What is sent from now on is lost. The first time-out is counted, too.
    for _ in 0..2 {
        assert_eq!(solo.sent().len(), 1);
        assert_eq!(solo.next_timeout().expect("it is sent again").1, Progress::NONE);
    }
    solo.sent();
    assert_eq!(solo.next_timeout().expect("it ends").1, Progress::TIMED_OUT | Progress::CLOSED);
}

#[test]
fn acknowledgements_count_while_our_window_is_closed() {
    let mut solo = Solo::established(&plain());
    solo.write(500);
    solo.sent();
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    assert_eq!(solo.sent()[0].header.window, 0);
    let seg = Segment { seq: SeqNumber::new(THEIRS + 10_000), ..ack(OURS + 500) };
    assert_eq!(solo.arrive(seg), Ok(Progress::WRITABLE));
    // Also one that comes with text we cannot take.
    solo.write(500);
    solo.sent();
    let seg = Segment { seq: SeqNumber::new(THEIRS + 10_000), payload: b"x", ..ack(OURS + 1_000) };
    assert_eq!(solo.arrive(seg), Ok(Progress::WRITABLE));
    assert_eq!((solo.acks_sent(), solo.rx.held.len()), (vec![THEIRS + 10_000], 10_000));
}

#[test]
fn a_fin_is_taken_when_the_window_is_closed() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    solo.sent();
    let fin = Segment { seq: SeqNumber::new(THEIRS + 10_000), flags: Flags::FIN | Flags::ACK, ..ack(OURS) };
    assert_eq!(solo.arrive(fin), Ok(Progress::PEER_FIN));
    assert_eq!(solo.acks_sent(), [THEIRS + 10_001]);
}

#[test]
fn the_peer_is_told_when_the_program_has_read_enough() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    solo.sent();
    solo.rx.held.drain(..900);
    assert!(!solo.connection.on_read(solo.now, &solo.rx));
    solo.rx.held.drain(..100);
    assert!(solo.connection.on_read(solo.now, &solo.rx));
    assert_eq!(solo.sent().iter().map(|t| t.header.window).collect::<Vec<_>>(), [1_000]);
    solo.rx.held.drain(..500);
    assert!(!solo.connection.on_read(solo.now, &solo.rx));
    solo.rx.held.clear();
    assert!(solo.connection.on_read(solo.now, &solo.rx));
    assert_eq!(solo.sent()[0].header.window, 10_000);
}

/// The peer's text is lost and sent again, with an acknowledgement and a window that are newer than those of what it sent
/// behind: its right edge has not moved. (Found by `fuzz/fuzz_targets/tcp_legal.rs`.)
#[test]
fn a_window_that_comes_with_text_that_is_sent_again_is_the_newer_one() {
    let mut solo = Solo::established(&Config { nodelay: true, ..plain() });
    solo.write(20_000);
    solo.arrive(Segment { window: 6_000, ..text(THEIRS + 100, &[1; 100]) }).unwrap();
    solo.sent();
    solo.arrive(Segment { ack: SeqNumber::new(OURS + 2_000), window: 4_000, ..text(THEIRS, &[1; 100]) })
        .unwrap();
    let sent = solo.text_sent();
    let edge = sent.iter().map(|(seq, len)| seq + *len as u32).max().unwrap_or(0);
    assert!(edge <= OURS + 6_000, "sends {sent:?}, may up to {}", OURS + 6_000);
}

#[test]
fn a_window_update_that_was_lost_is_found_by_probing() {
    let mut pair =
        Pair::established(&Config { receive_window: 4_000, receive_window_max: 4_000, ..Config::default() });
    pair.server.program.reads = false;
    let all = pattern(20_000, 5);
    pair.client.program.to_write = all.clone();
    pair.drive_for(2 * SECOND);
    assert_eq!(pair.server.rx.held.len(), 4_000);
    pair.to_client.lose = {
        let mut lost = 0;
        Box::new(move |_, _| {
            lost += 1;
            lost <= 1
        })
    };
    pair.server.program.reads = true;
    pair.drive_for(30 * SECOND);
    assert!(all == pair.server.program.received);
}

#[test]
fn a_fast_reader_gets_a_larger_window_and_a_slow_one_does_not() {
    let config = Config { receive_window: 16 << 10, receive_window_max: 1 << 20, ..Config::default() };
    let mut pair = Pair::established(&config);
    pair.client.program.to_write = pattern(3_000_000, 1);
    pair.drive_for(20 * SECOND);
    assert_eq!(pair.server.program.received.len(), 3_000_000);
    assert!(pair.server.connection().wanted_window() > 64 << 10, "{}", pair.describe());
    let mut pair = Pair::established(&config);
    pair.server.program.reads = false;
    pair.client.program.to_write = pattern(3_000_000, 1);
    pair.drive_for(20 * SECOND);
    assert_eq!(pair.server.connection().wanted_window(), 16 << 10);
}

#[test]
fn the_peers_tiny_segments_do_not_make_us_promise_what_we_do_not_have() {
    let mut solo = Solo::established(&plain());
    for n in 0..2_000 {
        solo.arrive(text(THEIRS + n, b"x")).unwrap();
        let promised = solo.sent().iter().map(|t| usize::from(t.header.window)).max().unwrap_or(0);
        assert!(promised <= 10_000 - solo.rx.held.len(), "after {n}");
    }
}
