//! Explicit congestion notification (RFC 3168 §6.1) between two ends.

use std::time::Duration;

use silk_tcp::{Algorithm, Codepoint, Config, Ecn, Flags, Options, Segment, SeqNumber};

use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, plain, sacked, text, with_sack};

const MILLI: Duration = Duration::from_millis(1);

fn config(ecn: Ecn) -> Config {
    Config { ecn, ..Config::default() }
}

/// A pair whose client and server think so of ECN, after the handshake.
fn pair(client: Ecn, server: Ecn) -> Pair {
    let mut pair = Pair::with(&config(client), &config(server), Weather::FAIR, 1);
    pair.drive_for(100 * MILLI);
    pair
}

/// A connection that agreed on ECN, with ten segments outstanding.
fn ten_outstanding() -> Solo {
    let mut solo = Solo::established(&Config { ecn: Ecn::Ask, ..plain() });
    solo.write(10_000);
    assert!(solo.sent().iter().all(|transmit| transmit.ecn == Codepoint::Ect0));
    solo
}

fn echo(number: u32) -> Segment<'static> {
    Segment { flags: Flags::ACK | Flags::ECE, ..ack(number) }
}

// RFC 9293 SHLD-8; RFC 3168 §6.1.1.
#[test]
fn it_is_used_when_one_asks_and_the_other_accepts() {
    let agreed = |client, server| {
        let mut pair = pair(client, server);
        (pair.client.connection().info().ecn, pair.server.connection().info().ecn)
    };
    assert_eq!(agreed(Ecn::Ask, Ecn::Accept), (true, true));
    assert_eq!(agreed(Ecn::Ask, Ecn::Off), (false, false));
    assert_eq!(agreed(Ecn::Accept, Ecn::Accept), (false, false));
    assert_eq!(agreed(Ecn::Off, Ecn::Ask), (false, false));
}

// RFC 3168 §6.1.1.
#[test]
fn a_syn_that_was_lost_does_not_ask_again() {
    let mut pair = Pair::with(&config(Ecn::Ask), &config(Ecn::Accept), Weather::FAIR, 1);
    pair.to_server.lose = Box::new(|_, packet| packet.header.flags.contains(Flags::ECE));
    pair.drive_for(2_000 * MILLI);
    let syns: Vec<_> = pair.client.sent.iter().take(2).map(|sent| sent.1.flags).collect();
    assert_eq!(syns, [Flags::SYN | Flags::ECE | Flags::CWR, Flags::SYN]);
    assert!(!pair.client.connection().info().ecn);
}

// RFC 3168 §6.1.1.

// RFC 3168 §6.1.1.
#[test]
fn an_agreement_to_the_first_syn_that_comes_after_the_second_lets_marks_be_heeded() {
    let mut solo = Solo::opening(&Config { ecn: Ecn::Ask, ..plain() });
    solo.next_timeout();
    assert_eq!(solo.flags_sent(), [Flags::SYN]);
    let answer = solo.syn_ack(Options::default());
    solo.arrive(Segment { flags: answer.flags | Flags::ECE, ..answer }).unwrap();
    solo.sent();
    solo.arrive(Segment { ecn: Codepoint::Ce, ..text(THEIRS, b"marked") }).unwrap();
    solo.write(500);
    let sent = solo.sent();
    assert!(sent[0].header.flags.contains(Flags::ECE));
    assert_eq!((sent[0].len, sent[0].ecn), (500, Codepoint::NotEct));
}

// RFC 3168 §6.1.1.
#[test]
fn in_a_simultaneous_open_both_must_have_asked() {
    let crossed = |ours| {
        let mut solo = Solo::opening(&Config { ecn: ours, ..plain() });
        let syn = Segment {
            seq: SeqNumber::new(THEIRS - 1),
            flags: Flags::SYN | Flags::ECE | Flags::CWR,
            ack: SeqNumber::default(),
            ..ack(OURS)
        };
        solo.arrive(syn).unwrap();
        solo.flags_sent()
    };
    let answer = Flags::SYN | Flags::ACK;
    assert_eq!(crossed(Ecn::Ask), [answer | Flags::ECE]);
    assert_eq!(crossed(Ecn::Accept), [answer]);
}

// RFC 3168 §6.1.2.
#[test]
fn acknowledgements_that_tell_of_a_mark_open_no_window() {
    let mut solo = ten_outstanding();
    solo.arrive(echo(OURS + 1_000)).unwrap();
    let reduced = solo.connection.info().cwnd;
    for n in 2..=9 {
        solo.arrive(echo(OURS + n * 1_000)).unwrap();
        assert_eq!(solo.connection.info().cwnd, reduced, "{n}");
    }
    solo.arrive(ack(OURS + 10_000)).unwrap();
    solo.write(20_000);
    let sent: usize = solo.sent().iter().map(|transmit| transmit.len).sum();
    solo.after(10 * MILLI);
    solo.arrive(ack(OURS + 10_000 + sent as u32)).unwrap();
    assert!(solo.connection.info().cwnd > reduced);
}

// RFC 3168 §6.1.2; RFC 9438 §4.6.
#[test]
fn marks_reduce_the_window_to_one_segment_and_no_further() {
    for congestion in [Algorithm::Cubic, Algorithm::Reno] {
        let mut solo = Solo::established(&Config { ecn: Ecn::Ask, congestion, ..plain() });
        let mut acknowledged = OURS;
        for _ in 0..12 {
            solo.write(20_000);
            let sent: usize = solo.sent().iter().map(|transmit| transmit.len).sum();
            acknowledged += sent as u32;
            solo.after(10 * MILLI);
            solo.arrive(echo(acknowledged)).unwrap();
        }
        assert_eq!(solo.connection.info().cwnd, 1_000, "{congestion:?}");
    }
}

// RFC 3168 §6.1.4, §6.1.5.
#[test]
fn only_new_text_is_capable() {
    let mut solo = ten_outstanding();
    solo.next_timeout();
    let again = solo.sent();
    assert_eq!((again[0].len, again[0].ecn), (1_000, Codepoint::NotEct));
    solo.arrive(text(THEIRS, b"request")).unwrap();
    solo.after(50 * MILLI);
    let bare = solo.sent();
    assert_eq!((bare[0].len, bare[0].ecn), (0, Codepoint::NotEct));
}

// RFC 3168 §6.1.2.
#[test]
fn who_has_no_answer_to_a_mark_asks_for_none_but_echoes_the_peers() {
    let config = Config { ecn: Ecn::Ask, congestion: Algorithm::Bbr, ..plain() };
    let mut solo = Solo::established(&config);
    solo.write(3_000);
    assert!(solo.connection.info().ecn);
    let codepoints = |solo: &mut Solo| solo.sent().iter().map(|transmit| transmit.ecn).collect::<Vec<_>>();
    assert_eq!(codepoints(&mut solo), [Codepoint::NotEct; 3]);
    solo.arrive(Segment { ecn: Codepoint::Ce, ..text(THEIRS, b"a") }).unwrap();
    solo.after(50 * MILLI);
    assert_eq!(solo.flags_sent(), [Flags::ACK | Flags::ECE]);
    // With another algorithm it asks.
    solo.connection.set_congestion(Algorithm::Reno);
    solo.arrive(Segment { seq: SeqNumber::new(THEIRS + 1), ..ack(OURS + 3_000) }).unwrap();
    solo.write(1_000);
    assert_eq!(codepoints(&mut solo), [Codepoint::Ect0]);
}

// RFC 3168 §6.1.2.
#[test]
fn an_echo_reduces_the_window_once_in_a_round_trip_and_is_confirmed() {
    let mut solo = ten_outstanding();
    solo.offload = 65_000;
    let before = solo.connection.info().cwnd;
    solo.arrive(echo(OURS + 1_000)).unwrap();
    let cwnd = solo.connection.info().cwnd;
    assert!(cwnd < before && solo.connection.info().fast_recoveries == 0);
    for n in 2..=9 {
        solo.arrive(echo(OURS + 1_000 * n)).unwrap();
    }
    assert!(solo.connection.info().cwnd >= cwnd);
    solo.write(5_000);
    let sent: Vec<_> =
        solo.sent().iter().map(|t| (t.len, t.header.flags.contains(Flags::CWR), t.ecn)).collect();
    // One segment says it; the rest may be cut up by a device.
    assert_eq!(sent, [(1_000, true, Codepoint::Ect0), (4_000, false, Codepoint::Ect0)]);
    // All that was outstanding then is acknowledged: another mark is another sign.
    let cwnd = solo.connection.info().cwnd;
    solo.arrive(echo(OURS + 12_000)).unwrap();
    assert!(solo.connection.info().cwnd < cwnd);
}

// RFC 3168 §6.1.3.
#[test]
fn a_mark_is_echoed_until_it_is_confirmed() {
    let mut solo = ten_outstanding();
    let flags = |solo: &mut Solo, seg: Segment| {
        solo.arrive(seg).unwrap();
        solo.after(50 * MILLI);
        solo.flags_sent()
    };
    let marked = Segment { ecn: Codepoint::Ce, ..text(THEIRS, b"a") };
    assert_eq!(flags(&mut solo, marked), [Flags::ACK | Flags::ECE]);
    assert_eq!(flags(&mut solo, text(THEIRS + 1, b"b")), [Flags::ACK | Flags::ECE]);
    let confirmed = text(THEIRS + 2, b"c");
    let confirmed = Segment { flags: confirmed.flags | Flags::CWR, ..confirmed };
    assert_eq!(flags(&mut solo, confirmed), [Flags::ACK]);
}

// RFC 3168 §6.1.5.
#[test]
fn a_mark_outside_of_the_window_is_ignored() {
    let mut solo = ten_outstanding();
    let _ = solo.arrive(Segment { ecn: Codepoint::Ce, ..text(THEIRS + 50_000, b"x") });
    assert_eq!(solo.flags_sent(), [Flags::ACK]);
}

// RFC 3168 §6.1.2.
#[test]
fn a_loss_is_confirmed_as_well() {
    let mut solo = Solo::established(&Config { ecn: Ecn::Ask, ..with_sack() });
    solo.write(20_000);
    solo.sent();
    solo.after(10 * MILLI);
    solo.arrive(sacked(ack(OURS), &[(OURS + 1_000, OURS + 8_000)])).unwrap();
    let sent: Vec<_> = solo.sent().iter().map(|t| (t.offset, t.header.flags.contains(Flags::CWR))).collect();
    assert_eq!(sent[..2], [(0, false), (10_000, true)]);
}

// RFC 3168 §6.1.6.
#[test]
fn a_probe_of_a_closed_window_is_not_capable_and_confirms_nothing() {
    let mut solo = ten_outstanding();
    solo.arrive(Segment { window: 0, ..echo(OURS + 10_000) }).unwrap();
    solo.write(1_000);
    assert_eq!(solo.sent().len(), 0);
    solo.next_timeout();
    let sent = |solo: &mut Solo| {
        solo.sent().iter().map(|t| (t.len, t.header.flags.contains(Flags::CWR), t.ecn)).collect::<Vec<_>>()
    };
    assert_eq!(sent(&mut solo), [(0, false, Codepoint::NotEct)]);
    // The text does, once there is room for it.
    solo.arrive(ack(OURS + 10_000)).unwrap();
    assert_eq!(sent(&mut solo), [(1_000, true, Codepoint::Ect0)]);
}

// RFC 3168 §6.1.6.
#[test]
fn a_mark_on_a_probe_of_our_closed_window_is_echoed() {
    let mut solo = Solo::established(&Config { ecn: Ecn::Ask, ..plain() });
    solo.arrive(text(THEIRS, &[1; 10_000])).unwrap();
    assert_eq!(solo.sent()[0].header.window, 0);
    solo.arrive(Segment { ecn: Codepoint::Ce, ..text(THEIRS + 10_000, b"x") }).unwrap();
    assert_eq!(solo.flags_sent(), [Flags::ACK | Flags::ECE]);
}

#[test]
fn a_marking_network_needs_no_losses() {
    let mut pair = pair(Ecn::Ask, Ecn::Accept);
    // One packet in forty is marked.
    pair.to_server.mark = Box::new(|n, _| n % 41 == 0);
    pair.client.program.to_write = pattern(1 << 20, 1);
    pair.drive_until(Duration::from_secs(20), |pair| pair.server.program.received.len() == 1 << 20);
    let info = pair.client.connection().info();
    assert_eq!((info.segments_again, info.fast_recoveries, info.timeouts), (0, 0, 0));
    assert!(info.ssthresh < 100_000, "{info:?}");
}
