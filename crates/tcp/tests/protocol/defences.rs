//! What an attacker who sees nothing, or an old duplicate, cannot do: RFC 5961, RFC 7323 §5, RFC
//! 9293 §3.10.7.4.

use std::time::Duration;

use silk_tcp::{DropReason, Flags, Options, Progress, Segment, SeqNumber, State};

use crate::solo::{
    OURS, Solo, THEIRS, ack, flagged, plain, sacked, stamped, text, with_sack, with_timestamps,
};

const SECOND: Duration = Duration::from_secs(1);

/// The one acknowledgement that a refused segment is answered with.
fn is_challenged(solo: &mut Solo) -> bool {
    let sent = solo.sent();
    let expected = (OURS, THEIRS, Flags::ACK, 0);
    sent.len() == 1
        && sent.iter().all(|t| (t.header.seq.raw(), t.header.ack.raw(), t.header.flags, t.len) == expected)
}

#[test]
fn a_reset_at_the_expected_number_is_believed() {
    let mut solo = Solo::established(&plain());
    assert_eq!(solo.arrive(flagged(Flags::RST, THEIRS)), Ok(Progress::RESET | Progress::CLOSED));
    assert_eq!((solo.sent(), solo.connection.poll_timeout()), (vec![], None));
}

// RFC 5961 §3.2.
#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    let mut solo = Solo::established(&plain());
    for seq in [THEIRS + 1, THEIRS + 9_999] {
        assert_eq!(solo.arrive(flagged(Flags::RST, seq)), Err(DropReason::BlindReset));
        assert!(is_challenged(&mut solo));
    }
    assert_eq!(solo.state(), State::Established);
}

// RFC 5961 §3.2.
#[test]
fn a_reset_outside_the_window_is_ignored() {
    let mut solo = Solo::established(&plain());
    for seq in [THEIRS - 1, THEIRS + 10_001, THEIRS.wrapping_add(1 << 31)] {
        assert_eq!(solo.arrive(flagged(Flags::RST, seq)), Err(DropReason::ResetOutOfWindow));
    }
    assert_eq!(solo.sent(), []);
}

// RFC 5961 §4.2.
#[test]
fn a_syn_is_challenged_wherever_it_is() {
    let mut solo = Solo::established(&plain());
    for seq in [THEIRS, THEIRS + 500] {
        assert_eq!(solo.arrive(flagged(Flags::SYN, seq)), Err(DropReason::UnexpectedSyn));
        assert!(is_challenged(&mut solo));
    }
    assert_eq!(solo.arrive(flagged(Flags::SYN, THEIRS + 50_000)), Err(DropReason::OutOfWindow));
    assert!(is_challenged(&mut solo));
    // Who has started anew may have no timestamps any more.
    let mut solo = Solo::established(&with_timestamps());
    for seq in [THEIRS, THEIRS + 50_000] {
        assert_eq!(solo.arrive(flagged(Flags::SYN, seq)), Err(DropReason::UnexpectedSyn));
        assert!(is_challenged(&mut solo));
    }
}

// RFC 5961 §7.
#[test]
fn challenges_are_limited() {
    for (seq, why) in [(THEIRS, DropReason::UnexpectedSyn), (THEIRS + 50_000, DropReason::OutOfWindow)] {
        let mut solo = Solo::established(&plain());
        let challenged = |solo: &mut Solo| {
            let all = (0..100).filter(|_| {
                assert_eq!(solo.arrive(flagged(Flags::SYN, seq)), Err(why));
                !solo.sent().is_empty()
            });
            all.count()
        };
        assert_eq!(challenged(&mut solo), 10);
        solo.after(6 * SECOND);
        assert_eq!(challenged(&mut solo), 10);
    }
}

// RFC 5961 §5.2.
#[test]
fn an_acknowledgement_of_what_was_never_sent_is_challenged() {
    let mut solo = Solo::established(&plain());
    let seg = Segment { payload: b"inject", ..ack(OURS + 1) };
    assert_eq!(solo.arrive(seg), Err(DropReason::AckOfUnsent));
    assert!(is_challenged(&mut solo) && solo.rx.held.is_empty());
}

// RFC 5961 §5.2.
#[test]
fn an_acknowledgement_of_the_far_past_is_challenged() {
    let mut solo = Solo::established(&plain());
    let oldest = OURS - 20_000_u32.min(OURS);
    let near = Segment { payload: b"ok", ..ack(oldest) };
    assert_eq!(solo.arrive(near), Ok(Progress::READABLE));
    solo.sent();
    let far =
        Segment { payload: b"inject", seq: SeqNumber::new(THEIRS + 2), ..ack(OURS.wrapping_sub(20_001)) };
    assert_eq!(solo.arrive(far), Err(DropReason::AckTooOld));
    assert_eq!(solo.rx.read(), b"ok");
}

#[test]
fn text_without_an_acknowledgement_is_not_taken() {
    let mut solo = Solo::established(&plain());
    let seg = Segment { flags: Flags::PSH, ..text(THEIRS, b"x") };
    assert_eq!((solo.arrive(seg), solo.rx.held.len()), (Err(DropReason::NoAck), 0));
}

#[test]
fn text_outside_the_window_is_cut_off() {
    let mut solo = Solo::established(&plain());
    assert_eq!(solo.arrive(text(THEIRS + 10_001, b"beyond")), Err(DropReason::OutOfWindow));
    assert!(is_challenged(&mut solo));
    solo.arrive(text(THEIRS, &[1; 12_000])).unwrap();
    assert_eq!((solo.rx.held.len(), solo.acks_sent()), (10_000, vec![THEIRS + 10_000]));
}

#[test]
fn old_text_is_acknowledged_again_every_time() {
    let mut solo = Solo::established(&plain());
    solo.arrive(text(THEIRS, b"abc")).unwrap();
    solo.sent();
    for _ in 0..20 {
        assert_eq!(solo.arrive(text(THEIRS, b"abc")), Err(DropReason::Duplicate));
        assert_eq!(solo.acks_sent(), [THEIRS + 3]);
    }
    assert_eq!(solo.arrive(text(THEIRS, b"abcd")), Ok(Progress::READABLE));
    assert_eq!(solo.rx.read(), b"abcd");
}

// RFC 7323 §5.3.
#[test]
fn paws_refuses_an_older_timestamp_and_answers() {
    let mut solo = Solo::established(&with_timestamps());
    solo.arrive(stamped(text(THEIRS, b"abc"), 200)).unwrap();
    solo.sent();
    let old = stamped(text(THEIRS + 3, b"old"), 199);
    assert_eq!(solo.arrive(old), Err(DropReason::OldTimestamp));
    assert_eq!((solo.acks_sent(), solo.rx.read()), (vec![THEIRS + 3], b"abc".to_vec()));
    assert_eq!(solo.arrive(stamped(text(THEIRS + 3, b"new"), 200)), Ok(Progress::READABLE));
}

// RFC 5961 §5.2.
#[test]
fn the_timestamp_of_a_segment_whose_acknowledgement_is_refused_is_not_taken() {
    let mut solo = Solo::established(&with_timestamps());
    let forged = |ack: u32| {
        let ack = SeqNumber::new(ack);
        Segment { ack, ..stamped(text(THEIRS, b"inject"), 100 + (1 << 30)) }
    };
    assert_eq!(solo.arrive(forged(OURS + 1)), Err(DropReason::AckOfUnsent));
    assert_eq!(solo.arrive(forged(OURS.wrapping_sub(20_001))), Err(DropReason::AckTooOld));
    let silent = Segment { flags: Flags::NONE, ..forged(OURS) };
    assert_eq!(solo.arrive(silent), Err(DropReason::NoAck));
    assert_eq!(solo.arrive(stamped(text(THEIRS, b"true"), 101)), Ok(Progress::READABLE));
}

// RFC 7323 §3.2.
#[test]
fn a_reset_needs_no_timestamp_and_everything_else_does() {
    let mut solo = Solo::established(&with_timestamps());
    assert_eq!(solo.arrive(text(THEIRS, b"abc")), Err(DropReason::MissingTimestamp));
    assert_eq!(solo.arrive(flagged(Flags::RST, THEIRS)), Ok(Progress::RESET | Progress::CLOSED));
}

// RFC 7323 §5.5.
#[test]
fn after_half_a_circle_of_the_fastest_clock_an_older_timestamp_is_taken() {
    let half = i32::MAX.unsigned_abs() / 1_000_000;
    for (idle, answer) in [(half, Err(DropReason::OldTimestamp)), (half + 1, Ok(Progress::READABLE))] {
        let mut solo = Solo::established(&with_timestamps());
        solo.after(idle * SECOND);
        assert_eq!(solo.arrive(stamped(text(THEIRS, b"abc"), 1)), answer);
    }
}

// RFC 9293 MUST-5; RFC 7323 §4.3.
#[test]
fn what_is_echoed_is_the_timestamp_of_the_text_that_is_acknowledged() {
    let mut solo = Solo::established(&with_timestamps());
    // RFC 7323 §4.3: the earliest unacknowledged segment's, so that the delay is measured too.
    solo.arrive(stamped(text(THEIRS, b"abc"), 150)).unwrap();
    solo.arrive(stamped(text(THEIRS + 3, b"def"), 160)).unwrap();
    let echo = solo.sent()[0].header.options.timestamp.map(|stamp| stamp.1);
    assert_eq!(echo, Some(150));
}

#[test]
fn sack_blocks_about_anything_but_outstanding_text_are_not_believed() {
    let mut solo = Solo::established(&with_sack());
    solo.write(5_000);
    solo.sent();
    let lies = [(OURS, OURS + 1_000), (OURS + 4_000, OURS + 6_000), (OURS + 3_000, OURS + 2_000), (1, 2)];
    solo.arrive(sacked(ack(OURS), &lies)).unwrap();
    assert_eq!(solo.connection.info().sacked, 0);
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 2_000)])).unwrap();
    assert_eq!(solo.connection.info().sacked, 1_000);
}

#[test]
fn congestion_bits_are_no_obstacle() {
    let mut solo = Solo::established(&plain());
    let seg = Segment { flags: Flags::ACK | Flags::ECE | Flags::CWR, ..text(THEIRS, b"abc") };
    assert_eq!(solo.arrive(seg), Ok(Progress::READABLE));
}

#[test]
fn a_closed_connection_takes_nothing() {
    let mut solo = Solo::established(&plain());
    solo.connection.abort();
    solo.sent();
    assert_eq!(solo.arrive(text(THEIRS, b"abc")), Err(DropReason::Closed));
    assert_eq!(solo.sent(), []);
}

// RFC 8201 §4; RFC 8899 §4.6.1.
#[test]
fn an_icmp_message_is_believed_only_about_outstanding_text() {
    let mut solo = Solo::established(&plain());
    solo.write(1_000);
    solo.sent();
    let believed = [OURS - 1, OURS, OURS + 999, OURS + 1_000]
        .map(|seq| solo.connection.is_outstanding(SeqNumber::new(seq)));
    assert_eq!(believed, [false, true, true, false]);
}

#[test]
fn tiny_pieces_out_of_order_cannot_use_up_memory() {
    let mut solo = Solo::established(&with_sack());
    let mut full = 0;
    for n in 1..5_000 {
        full += usize::from(solo.arrive(text(THEIRS + 2 * n, b"x")) == Err(DropReason::ReassemblyFull));
        solo.sent();
    }
    assert!(full > 0);
    // What such a segment acknowledges counts all the same.
    solo.write(10);
    solo.sent();
    let last = Segment { ack: SeqNumber::new(OURS + 10), ..text(THEIRS + 9_999, b"x") };
    assert_eq!(solo.arrive(last), Ok(Progress::WRITABLE));
    assert!(solo.connection.memory() < 2 * 10_000 + 4_096 + 2_048, "{}", solo.connection.memory());
    // The gap still gets filled.
    let stream: Vec<u8> = vec![b'x'; 9_000];
    assert_eq!(solo.arrive(text(THEIRS, &stream)), Ok(Progress::READABLE));
    assert_eq!(solo.rx.read(), stream);
}

#[test]
fn the_options_of_a_segment_never_exceed_the_header() {
    let mut solo = Solo::established(&silk_tcp::Config { sack: true, ..with_timestamps() });
    for n in [9, 7, 5, 3, 1] {
        solo.arrive(stamped(text(THEIRS + 100 * n, b"x"), 100)).unwrap();
        let sent = solo.sent();
        assert!(sent.iter().all(|t| t.header.options.encoded_len() <= Options::MAX_BYTES));
    }
    let blocks = {
        solo.arrive(stamped(text(THEIRS + 1_100, b"x"), 100)).unwrap();
        solo.sent()[0].header.options.sack
    };
    let starts: Vec<_> = blocks.iter().map(|block| (block.0.raw() - THEIRS) / 100).collect();
    assert_eq!(starts, [11, 1, 3]);
}
