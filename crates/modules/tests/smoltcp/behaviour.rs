//! What each of the two must understand of the other, on a fair line, one thing at a time. A test runs
//! in every role and over both versions of IP where that can make a difference.

use core::time::Duration;

use silk_path::classify::Protocol;
use silk_path::{Bell, Event};
use smoltcp::socket::tcp::{CongestionControl, State};

use crate::ours;
use crate::pair::{FROM, PORT, Pair, Role, pattern};
use crate::peer::{self, Terms};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// A connection in every role, over both versions of IP.
fn everywhere(terms: &Terms, test: impl Fn(Pair)) {
    for role in [Role::Connects, Role::Listens, Role::Meets] {
        for six in [false, true] {
            test(Pair::connected(role, six, terms));
        }
    }
}

fn arrived(pair: &Pair, octets: [usize; 2]) -> bool {
    pair.peer.program.received.len() >= octets[0] && pair.ours.program.received.len() >= octets[1]
}

/// Both streams, of which silk's comes first, are what was written.
fn assert_streams(pair: &Pair, octets: [usize; 2]) {
    assert!(pattern(octets[0], 0) == pair.peer.program.received, "{}", pair.describe());
    assert!(pattern(octets[1], 1) == pair.ours.program.received, "{}", pair.describe());
}

#[test]
fn a_connection_is_opened_in_every_role() {
    everywhere(&Terms::default(), |pair| {
        assert_eq!(pair.peer.state(), State::Established);
        assert_eq!(pair.ours.events, [Event::Connected], "{}", pair.describe());
    });
}

#[test]
fn both_speak_at_once() {
    everywhere(&Terms::default(), |mut pair| {
        let octets = [100_000, 80_000];
        pair.ours.program.to_write = pattern(octets[0], 0);
        pair.peer.program.to_write = pattern(octets[1], 1);
        pair.until(SECONDS(60), |pair| arrived(pair, octets));
        assert_streams(&pair, octets);
    });
}

#[test]
fn silk_ends_its_stream_and_reads_on() {
    everywhere(&Terms::default(), |mut pair| {
        pair.ours.program.to_write = pattern(10_000, 0);
        pair.ours.program.shuts_down = true;
        pair.until(SECONDS(10), |pair| pair.peer.program.finished);
        assert_eq!((pair.peer.state(), pair.ours.ended), (State::CloseWait, None));
        pair.peer.program.to_write = pattern(50_000, 1);
        pair.peer.program.shuts_down = true;
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some() && pair.peer.state() == State::Closed);
        assert_streams(&pair, [10_000, 50_000]);
        assert_eq!(pair.ours.ended, Some(Event::TimeWait));
    });
}

#[test]
fn smoltcp_ends_its_stream_and_reads_on() {
    everywhere(&Terms::default(), |mut pair| {
        pair.peer.program.to_write = pattern(10_000, 1);
        pair.peer.program.shuts_down = true;
        pair.until(SECONDS(10), |pair| pair.ours.saw(Event::PeerFinished));
        pair.pass(SECONDS(1));
        assert_eq!((pair.peer.state(), pair.ours.ended), (State::FinWait2, None));
        pair.ours.program.to_write = pattern(50_000, 0);
        pair.ours.program.shuts_down = true;
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some() && pair.peer.program.finished);
        assert_streams(&pair, [50_000, 10_000]);
        assert_eq!((pair.ours.ended, pair.peer.state()), (Some(Event::Closed), State::TimeWait));
    });
}

#[test]
fn both_end_at_once() {
    everywhere(&Terms::default(), |mut pair| {
        pair.ours.bell(Bell::Close);
        pair.peer.tcp().close();
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some() && pair.peer.state() == State::TimeWait);
        assert_eq!(pair.ours.ended, Some(Event::TimeWait));
        pair.pass(SECONDS(100));
        assert_eq!((pair.peer.state(), pair.ours.host.tables.flows.count()), (State::Closed, 0));
    });
}

#[test]
fn a_window_that_smoltcp_closes_is_probed_until_it_opens() {
    everywhere(&Terms::default(), |mut pair| {
        pair.peer.program.rests = true;
        pair.ours.program.to_write = pattern(100_000, 0);
        pair.pass(SECONDS(60));
        let info = pair.ours.info().expect("it lives");
        assert_eq!((info.snd_wnd, info.in_flight), (0, 0), "{}", pair.describe());
        let before = pair.sent.len();
        pair.pass(SECONDS(300));
        assert!((2..20).contains(&(pair.sent.len() - before)), "{} probes", pair.sent.len() - before);
        pair.peer.program.rests = false;
        pair.until(SECONDS(200), |pair| arrived(pair, [100_000, 0]));
        assert_streams(&pair, [100_000, 0]);
    });
}

#[test]
fn a_window_that_silk_closes_is_opened_when_its_program_reads() {
    everywhere(&Terms::default(), |mut pair| {
        pair.ours.program.rests = true;
        pair.peer.program.to_write = pattern(3 << 20, 1);
        pair.pass(SECONDS(60));
        // Less than a step of the window field.
        assert!(pair.ours.info().is_some_and(|info| info.rcv_wnd < 128), "{}", pair.describe());
        pair.ours.program.rests = false;
        pair.until(SECONDS(60), |pair| arrived(pair, [0, 3 << 20]));
        assert_streams(&pair, [0, 3 << 20]);
    });
}

#[test]
fn a_reset_by_smoltcp_is_told() {
    everywhere(&Terms::default(), |mut pair| {
        pair.peer.tcp().abort();
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some());
        assert!(pair.ours.saw(Event::Reset), "{}", pair.describe());
        assert_eq!((pair.ours.ended, pair.ours.host.tables.flows.count()), (Some(Event::Closed), 0));
    });
}

#[test]
fn a_reset_by_silk_is_understood() {
    everywhere(&Terms::default(), |mut pair| {
        pair.ours.bell(Bell::Abort);
        pair.until(SECONDS(10), |pair| pair.peer.state() == State::Closed);
    });
}

#[test]
fn a_refusal_by_smoltcp_is_told() {
    for six in [false, true] {
        let mut pair = Pair::fair(&silk_tcp::Config::default(), &Terms::default());
        pair.ours.connect(FROM, ours::at(peer::NUMBER, six, PORT));
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some());
        assert_eq!(pair.ours.events, [Event::Refused, Event::Closed]);
    }
}

#[test]
fn a_refusal_by_silk_is_understood() {
    for six in [false, true] {
        let mut pair = Pair::fair(&silk_tcp::Config::default(), &Terms::default());
        // Silk's is the port, but nobody listens.
        pair.ours.host.tables.own_port(Protocol::Tcp, None, PORT);
        pair.peer.connect(ours::address(ours::NUMBER, six, PORT), FROM);
        pair.pass(SECONDS(1));
        assert_eq!((pair.peer.state(), pair.peer.was_connected), (State::Closed, false));
    }
}

#[test]
fn the_keep_alive_of_smoltcp_is_answered() {
    let terms = Terms { keep_alive: Some(SECONDS(2)), ..Terms::default() };
    everywhere(&terms, |mut pair| {
        // It would give up a peer that does not answer.
        pair.peer.tcp().set_timeout(Some(smoltcp::time::Duration::from_secs(5)));
        pair.pass(SECONDS(120));
        assert_eq!((pair.peer.state(), pair.ours.ended), (State::Established, None));
        assert!(pair.sent.len() >= 50, "{} answers", pair.sent.len());
        // What probes carry is nobody's data.
        assert_eq!(pair.ours.program.received.len(), 0);
    });
}

#[test]
fn the_keep_alive_of_silk_is_answered_until_smoltcp_is_gone() {
    everywhere(&Terms::default(), |mut pair| {
        pair.ours.bell(Bell::KeepAlive(Some((5, 1, 3))));
        pair.pass(SECONDS(120));
        assert_eq!((pair.peer.state(), pair.ours.ended), (State::Established, None));
        pair.cut();
        pair.until(SECONDS(10), |pair| pair.ours.ended.is_some());
        assert!(pair.ours.saw(Event::TimedOut), "{}", pair.describe());
    });
}

#[test]
fn no_segment_is_larger_than_smoltcp_takes() {
    let mut terms = Terms { mtu: 600, ..Terms::default() };
    for six in [false, true] {
        terms.mtu = if six { 1280 } else { 600 };
        for role in [Role::Connects, Role::Listens] {
            let mut pair = Pair::connected(role, six, &terms);
            pair.ours.program.to_write = pattern(50_000, 0);
            pair.until(SECONDS(60), |pair| arrived(pair, [50_000, 0]));
            let longest = pair.sent.iter().map(|(_, frame)| frame.len()).max();
            assert_eq!(longest, Some(terms.mtu + silk_wire::eth::HEADER));
        }
    }
}

#[test]
fn windows_beyond_64_kilobytes_are_understood_both_ways() {
    let terms = Terms { receive_buffer: 400_000, send_buffer: 400_000, ..Terms::default() };
    everywhere(&terms, |mut pair| {
        pair.ours.program.to_write = pattern(1 << 20, 0);
        pair.peer.program.to_write = pattern(1 << 20, 1);
        pair.until(SECONDS(5), |pair| pair.ours.info().is_some_and(|info| info.snd_wnd > 300_000));
        pair.until(SECONDS(60), |pair| arrived(pair, [1 << 20, 1 << 20]));
        assert_streams(&pair, [1 << 20, 1 << 20]);
    });
}

#[test]
fn small_pieces_go_both_ways_however_either_delays() {
    for ack_delay in [None, Some(Duration::from_millis(10)), Some(Duration::from_millis(300))] {
        for nagle in [false, true] {
            for congestion in [CongestionControl::None, CongestionControl::Reno, CongestionControl::Cubic] {
                let terms = Terms { ack_delay, nagle, congestion, ..Terms::default() };
                let mut pair = Pair::connected(Role::Connects, false, &terms);
                pair.ours.bell(Bell::NoDelay(!nagle));
                for n in 0..100 {
                    pair.ours.program.to_write.extend(pattern(3 * (n + 1), 0).range(3 * n..));
                    pair.peer.program.to_write.extend(pattern(5 * (n + 1), 1).range(5 * n..));
                    pair.pass(Duration::from_millis(7));
                }
                pair.until(SECONDS(10), |pair| arrived(pair, [300, 500]));
                assert_streams(&pair, [300, 500]);
            }
        }
    }
}
