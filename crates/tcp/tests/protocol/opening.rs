//! Opening: RFC 9293 §3.5 and §3.10.7.3.

use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::listen::{Admission, SynTable};
use silk_tcp::{
    Codepoint, Config, Connection, DropReason, Ecn, Flags, Header, IsnSecret, Options, Progress, Segment,
    SeqNumber, State,
};

use crate::buffers::{Rx, Tx};
use crate::link::{Packet, Weather};
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, THEIRS, ack, flagged, plain, text, with_timestamps};

const SECOND: Duration = Duration::from_secs(1);

// RFC 9293 MUST-14, SHLD-5.
#[test]
fn three_segments_open_a_connection_with_every_option() {
    let mut pair = Pair::new(&Config::default(), Weather::FAIR, 1);
    pair.drive_for(SECOND);
    let (client, server) = (pair.client.connection().info(), pair.server.connection().info());
    assert_eq!((client.state, server.state), (State::Established, State::Established));
    assert!(client.timestamps && client.sack && server.timestamps && server.sack);
    assert_eq!((client.window_shifts, server.window_shifts), ((7, 7), (7, 7)));
    assert_eq!((client.mss, server.mss), (1448, 1448));
    assert_eq!((client.srtt, server.srtt), (Duration::from_millis(10), Duration::from_millis(10)));
    assert_eq!((pair.client.sent.len(), pair.server.sent.len()), (2, 1));
}

// RFC 7323 §2.2.
#[test]
fn an_option_only_one_side_offers_is_not_used() {
    let old = Config { sack: false, timestamps: false, window_scaling: false, ..Config::default() };
    for (ours, theirs) in [(&Config::default(), &old), (&old, &Config::default())] {
        let mut pair = Pair::with(ours, theirs, Weather::FAIR, 1);
        pair.drive_for(SECOND);
        for info in [pair.client.connection().info(), pair.server.connection().info()] {
            assert_eq!((info.timestamps, info.sack, info.window_shifts), (false, false, (0, 0)));
        }
    }
}

// RFC 9293 MUST-14, MUST-16.
#[test]
fn the_smaller_mss_counts() {
    let small = Config { mss: 600, timestamps: false, ..Config::default() };
    let mut pair = Pair::with(&Config::default(), &small, Weather::FAIR, 1);
    pair.drive_for(SECOND);
    assert_eq!((pair.client.connection().info().mss, pair.server.connection().info().mss), (600, 600));
}

// RFC 9293 MUST-22.
#[test]
fn an_unanswered_syn_is_repeated_with_back_off_and_then_given_up() {
    let mut solo = Solo::opening(&plain());
    let mut waits = vec![];
    let last = loop {
        let (waited, progress) = solo.next_timeout().expect("a deadline");
        waits.push(waited.as_secs());
        if progress.contains(Progress::CLOSED) {
            break progress;
        }
        assert_eq!(solo.flags_sent(), [Flags::SYN]);
    };
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64]);
    assert!(last.contains(Progress::TIMED_OUT));
    assert_eq!((solo.state(), solo.connection.poll_timeout()), (State::Closed, None));
}

#[test]
fn after_a_lost_syn_one_segment_starts_and_three_seconds_are_waited() {
    let mut solo = Solo::opening(&plain());
    solo.after(SECOND);
    assert_eq!(solo.flags_sent(), [Flags::SYN]);
    solo.arrive(solo.syn_ack(Options { mss: Some(1_000), ..Options::default() })).unwrap();
    let info = solo.connection.info();
    // RFC 6298 §5.7, RFC 6928 §2; and by Karn the round trip was not measured.
    assert_eq!((info.cwnd, info.rto, info.srtt), (1_000, Duration::from_secs(3), Duration::ZERO));
}

#[test]
fn a_lost_syn_ack_is_repeated_by_the_listener() {
    let mut pair = Pair::new(&Config { initial_rto: 2 * SECOND, ..Config::default() }, Weather::FAIR, 1);
    pair.to_client.lose = Box::new(|nth, _| nth == 1);
    pair.drive_for(5 * SECOND);
    assert_eq!((pair.client.state(), pair.server.state()), (State::Established, State::Established));
}

/// It sends nothing, and so is told of a round trip by the handshake alone.
// RFC 6298 §3; RFC 7323 §4.1.
#[test]
fn a_server_that_only_reads_opens_its_window_also_where_its_syn_ack_was_lost() {
    let read = |config: &Config| {
        let mut pair = Pair::new(config, Weather::FAIR, 1);
        pair.to_client.lose = Box::new(|nth, _| nth == 1);
        pair.client.program.to_write = pattern(2_000_000, 1);
        pair.drive_for(5 * SECOND);
        assert_eq!(pair.server.program.received.len(), 2_000_000);
        (pair.server.connection().info().srtt, pair.server.connection().wanted_window())
    };
    let config = Config { initial_rto: 2 * SECOND, ..Config::default() };
    let (round_trip, window) = read(&config);
    assert_eq!(round_trip, Duration::from_millis(10));
    assert!(window > 2 * config.receive_window, "{window}");
    // Without timestamps nobody knows.
    let (round_trip, window) = read(&Config { timestamps: false, ..config.clone() });
    assert_eq!(round_trip, Duration::ZERO);
    assert!(window > 2 * config.receive_window, "{window}");
}

// RFC 9293 MUST-11.
#[test]
fn a_reset_refuses_the_connection_only_if_it_acknowledges_the_syn() {
    let mut solo = Solo::opening(&plain());
    let reset = Flags::RST | Flags::ACK;
    let other = Segment { ack: SeqNumber::new(OURS + 1), ..flagged(reset, 0) };
    assert_eq!(solo.arrive(other), Err(DropReason::BadHandshake));
    assert_eq!(solo.arrive(flagged(Flags::RST, 0)), Err(DropReason::ResetOutOfWindow));
    assert_eq!((solo.sent(), solo.state()), (vec![], State::SynSent));
    assert_eq!(solo.arrive(flagged(reset, 0)), Ok(Progress::REFUSED | Progress::CLOSED));
    assert_eq!((solo.sent(), solo.state()), (vec![], State::Closed));
}

#[test]
fn an_acknowledgement_of_an_older_connection_is_reset_and_the_open_goes_on() {
    let mut solo = Solo::opening(&plain());
    let stale = Segment { ack: SeqNumber::new(777), ..ack(OURS) };
    assert_eq!(solo.arrive(stale), Err(DropReason::BadHandshake));
    let sent = |solo: &mut Solo| -> Vec<(u32, Flags)> {
        solo.sent().iter().map(|sent| (sent.header.seq.raw(), sent.header.flags)).collect()
    };
    // The SYN follows the reset at once.
    assert_eq!(sent(&mut solo), [(777, Flags::RST), (OURS - 1, Flags::SYN)]);
    assert_eq!(solo.state(), State::SynSent);
    // But once: who answers so for ever is asked again by the clock.
    assert_eq!(solo.arrive(stale), Err(DropReason::BadHandshake));
    assert_eq!(sent(&mut solo), [(777, Flags::RST)]);
    assert_eq!(solo.arrive(ack(OURS)), Err(DropReason::BadHandshake));
    solo.arrive(solo.syn_ack(Options::default())).unwrap();
    // Nothing was lost.
    let info = solo.connection.info();
    assert_eq!((solo.state(), info.cwnd > u32::from(info.mss)), (State::Established, true));
}

/// SYNs that were sent again for another reason than a time-out: which of them was answered nobody knows, but by a timestamp.
// RFC 9293 MUST-18.
#[test]
fn a_syn_that_was_sent_again_at_once_is_not_measured() {
    const ROUND_TRIP: Duration = Duration::from_millis(100);
    let stale = Segment { ack: SeqNumber::new(777), ..ack(OURS) };
    let crossing = Segment {
        options: Options { mss: Some(1_000), ..Options::default() },
        ..flagged(Flags::SYN, THEIRS - 1)
    };
    let measured = |first: Segment| {
        let mut solo = Solo::opening(&plain());
        solo.after(ROUND_TRIP);
        _ = solo.arrive(first);
        assert!(solo.flags_sent().last().is_some_and(|flags| flags.syn()));
        assert_eq!(solo.connection.info().last_sent, solo.now);
        solo.after(ROUND_TRIP);
        solo.arrive(solo.syn_ack(Options::default())).unwrap();
        solo.connection.info().srtt
    };
    assert_eq!([stale, crossing].map(measured), [Duration::ZERO; 2]);
    let mut solo = Solo::opening(&with_timestamps());
    solo.after(ROUND_TRIP);
    _ = solo.arrive(stale);
    let value = solo.sent()[1].header.options.timestamp.map(|stamp| stamp.0).unwrap();
    solo.after(ROUND_TRIP);
    let options = Options { timestamp: Some((100, value)), ..Options::default() };
    solo.arrive(solo.syn_ack(options)).unwrap();
    assert_eq!(solo.connection.info().srtt, ROUND_TRIP);
}

// RFC 9293 MUST-10.
#[test]
fn simultaneous_opens_meet_in_one_connection() {
    let now = Instant::from_millis(1);
    let mut ends = [100, 900].map(|iss| Connection::connect(&Config::default(), SeqNumber::new(iss), now));
    let (mut tx, mut rx) = (Tx::default(), Rx::new(1 << 22));
    // Each round every end sends all it has, and then everything arrives: the SYNs cross.
    for _ in 0..4 {
        let sent = ends.each_mut().map(|end| {
            core::iter::from_fn(|| end.poll_transmit(now, &tx, &rx, 0)).map(|t| t.header).collect::<Vec<_>>()
        });
        for (from, headers) in sent.iter().enumerate() {
            for header in headers {
                let Header { seq, ack, flags, window, urgent, options } = *header;
                let seg = Segment {
                    seq,
                    ack,
                    flags,
                    window,
                    urgent,
                    ecn: Codepoint::NotEct,
                    options,
                    payload: &[],
                };
                let _ = ends[1 - from].on_segment(now, &seg, &mut tx, &mut rx);
            }
        }
    }
    assert_eq!(ends.each_ref().map(Connection::state), [State::Established; 2]);
    assert!(ends.iter().all(|end| end.info().sack && end.info().timestamps));
}

#[test]
fn a_simultaneous_open_with_a_plain_acknowledgement_works_too() {
    let mut solo = Solo::opening(&plain());
    let syn = Segment {
        options: Options { mss: Some(900), ..Options::default() },
        ..flagged(Flags::SYN, THEIRS - 1)
    };
    assert_eq!(solo.arrive(syn), Ok(Progress::NONE));
    assert_eq!((solo.flags_sent(), solo.state()), (vec![Flags::SYN | Flags::ACK], State::SynReceived));
    let wrong = solo.arrive(ack(OURS + 5));
    assert_eq!(wrong, Err(DropReason::BadHandshake));
    assert_eq!(solo.flags_sent(), [Flags::RST]);
    assert_eq!(solo.arrive(ack(OURS)), Ok(Progress::ESTABLISHED));
    assert_eq!(solo.connection.info().mss, 900);
}

#[test]
fn the_text_of_the_last_handshake_segment_is_taken() {
    let mut pair = Pair::new(&Config::default(), Weather::FAIR, 1);
    // The client's bare acknowledgement is lost; its request does the work.
    pair.to_server.lose = Box::new(|_, packet| packet.text.is_empty() && !packet.header.flags.syn());
    pair.client.program.to_write = b"GET /".to_vec().into();
    pair.drive_for(Duration::from_millis(50));
    assert_eq!(pair.server.program.received, b"GET /");
}

#[test]
fn text_on_a_syn_ack_is_left_for_later() {
    let mut solo = Solo::opening(&plain());
    let seg = Segment { payload: b"early", ..solo.syn_ack(Options::default()) };
    assert_eq!(solo.arrive(seg), Ok(Progress::ESTABLISHED));
    assert_eq!(solo.acks_sent(), [THEIRS]);
    assert_eq!(solo.arrive(text(THEIRS, b"early")), Ok(Progress::READABLE));
}

// RFC 7323 §2.2.
#[test]
fn the_window_of_a_syn_ack_is_not_scaled_but_later_ones_are() {
    let mut solo = Solo::opening(&Config { window_scaling: true, ..plain() });
    let options = Options { window_scale: Some(4), ..Options::default() };
    solo.arrive(solo.syn_ack(options)).unwrap();
    assert_eq!(solo.connection.info().snd_wnd, 20_000);
    solo.arrive(text(THEIRS, b"x")).unwrap();
    assert_eq!(solo.connection.info().snd_wnd, 20_000 << 4);
}

// RFC 7323 §2.2.
#[test]
fn nor_is_the_window_of_a_syn_ack_that_crossed_our_own() {
    let options = Options { mss: Some(1_000), window_scale: Some(4), ..Options::default() };
    let half_open = || {
        let mut solo = Solo::opening(&Config { window_scaling: true, ..plain() });
        solo.arrive(Segment { options, ..flagged(Flags::SYN, THEIRS - 1) }).unwrap();
        assert_eq!(solo.flags_sent(), [Flags::SYN | Flags::ACK]);
        solo
    };
    let mut solo = half_open();
    assert_eq!(solo.arrive(solo.syn_ack(options)), Ok(Progress::ESTABLISHED));
    assert_eq!(solo.connection.info().snd_wnd, 20_000);
    // That of a plain acknowledgement is.
    let mut solo = half_open();
    assert_eq!(solo.arrive(ack(OURS)), Ok(Progress::ESTABLISHED));
    assert_eq!(solo.connection.info().snd_wnd, 20_000 << 4);
}

#[test]
fn a_program_may_say_how_often_its_syn_is_sent_again() {
    let mut solo = Solo::opening(&plain());
    solo.connection.set_syn_retries(1);
    assert_eq!(solo.next_timeout(), Some((SECOND, Progress::NONE)));
    assert_eq!(solo.flags_sent(), [Flags::SYN]);
    assert_eq!(solo.next_timeout(), Some((2 * SECOND, Progress::TIMED_OUT | Progress::CLOSED)));
}

#[test]
fn a_connection_is_small_and_needs_little_memory_elsewhere_without_loss() {
    let mut solo = Solo::established(&Config::default());
    assert!(size_of::<Connection>() <= 608, "{} bytes", size_of::<Connection>());
    assert_eq!(solo.connection.memory(), size_of::<Connection>());
    solo.write(5_000);
    solo.sent();
    // Room for four stretches of what is outstanding.
    assert_eq!(solo.connection.memory(), size_of::<Connection>() + 64);
}

// RFC 4987 §3.6.
#[test]
fn a_connection_from_a_cookie_is_a_connection_like_others() {
    let mut pair = Pair::new(&Config { ecn: Ecn::Ask, ..Config::default() }, Weather::FAIR, 1);
    let mut table = SynTable::new(Config::default(), IsnSecret::new([5, 6]), 1);
    let stranger = Packet { header: strangers_syn(), ecn: Codepoint::NotEct, text: vec![] };
    table.on_segment(pair.now, 9, &stranger.segment(), Admission::default());
    pair.server.listener = Some(table);
    pair.client.program.to_write = pattern(30_000, 1);
    pair.drive_for(Duration::from_millis(500));
    assert_eq!(pair.server.program.received.len(), 30_000);
    let info = pair.server.connection().info();
    assert_eq!((info.sack, info.timestamps, info.ecn, info.window_shifts), (true, true, true, (7, 7)));
    // A cookie remembers no time, but its timestamp says when it left, to 64 ms.
    let most = Duration::from_millis(10 + 63);
    assert!((Duration::from_millis(10)..=most).contains(&info.srtt), "{:?}", info.srtt);
    assert!(pair.server.drops.is_empty());
}

/// The SYN of somebody who will never answer.
fn strangers_syn() -> Header {
    let (seq, ack, options) = (SeqNumber::new(5), SeqNumber::new(0), Options::default());
    Header { seq, ack, flags: Flags::SYN, window: 1_000, urgent: 0, options }
}
