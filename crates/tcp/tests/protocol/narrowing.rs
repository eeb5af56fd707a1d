//! Paths that take less than the link does: RFC 4821, RFC 8899.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use silk_tcp::{Algorithm, Config, MtuProbing, Progress, Repair};
use silk_testkit::emulator::Conditions;

use crate::link::Weather;
use crate::pair::{Pair, pattern};
use crate::solo::{OURS, Solo, ack, sacked, with_sack};

const SECOND: Duration = Duration::from_secs(1);
/// What a frame has before TCP's options and text.
const HEADERS: u64 = 14 + 20 + 20;

/// A way that takes segments of so many octets, options included.
fn narrow(mss: u64) -> Conditions {
    Conditions { longest: NonZeroU64::new(mss + HEADERS), ..Weather::FAIR.into() }
}

fn with(mtu_probing: MtuProbing) -> Config {
    Config { mtu_probing, ..Config::default() }
}

/// The client sends so many octets.
fn sending(config: &Config, way: Conditions, octets: usize) -> Pair {
    let ways = [way, Weather::FAIR.into()];
    let mut pair = Pair::over(&[config.clone(), config.clone()], &ways, 1);
    pair.client.program.to_write = pattern(octets, 3);
    pair.client.program.send_buffer = 1 << 20;
    pair
}

/// Runs until the server has all of it; how long that took.
fn finish(pair: &mut Pair, octets: usize, limit: Duration) -> Duration {
    let began = pair.now;
    pair.drive_until(limit, |pair| pair.server.program.received.len() == octets);
    assert!(pair.server.program.received.iter().eq(&pattern(octets, 3)), "{}", pair.describe());
    pair.now - began
}

/// How large segments are now.
fn path_mss(pair: &mut Pair) -> u16 {
    pair.client.connection().info().path_mss
}

// RFC 4821 §7.7; RFC 8899 §4.3.
#[test]
fn a_black_hole_is_got_over_in_a_second_and_the_path_is_measured() {
    let mut pair = sending(&Config::default(), narrow(1_360), 4_000_000);
    let took = finish(&mut pair, 4_000_000, 60 * SECOND);
    // Two time-outs, of 200 and 400 ms; the rest is the text and some twenty round trips of 10 ms.
    assert!(took < 2 * SECOND, "{took:?}");
    let info = pair.client.connection().info();
    assert!((1_345..=1_360).contains(&info.path_mss), "{info:?}");
    assert_eq!((info.timeouts, info.fast_recoveries), (2, 0), "no probe cost a window: {info:?}");
}

#[test]
fn without_probing_a_black_hole_takes_everything() {
    let mut pair = sending(&with(MtuProbing::Off), narrow(1_360), 100_000);
    pair.drive_for(3_600 * SECOND);
    assert!(pair.client.progress.contains(Progress::TIMED_OUT) && pair.server.program.received.is_empty());
}

// RFC 4821 §7.7.
#[test]
fn a_path_that_takes_less_than_the_base_is_got_over_too() {
    let mut pair = sending(&Config::default(), narrow(600), 2_000_000);
    let took = finish(&mut pair, 2_000_000, 60 * SECOND);
    assert!(took < 10 * SECOND, "{took:?}");
    assert!((585..=600).contains(&path_mss(&mut pair)), "{}", pair.describe());
}

#[test]
fn an_outage_that_looked_like_a_black_hole_costs_one_probe() {
    let mut pair = sending(&Config::default(), narrow(9_000), 3_000_000);
    let outage = pair.now + SECOND / 20..pair.now + SECOND;
    pair.drive_for(SECOND / 20);
    pair.to_server.lose = Box::new(|_, _| true);
    pair.drive_for(outage.end - outage.start);
    assert_eq!(path_mss(&mut pair), 1_140);
    pair.to_server.lose = Box::new(|_, _| false);
    finish(&mut pair, 3_000_000, 60 * SECOND);
    assert_eq!(path_mss(&mut pair), 1_460);
}

#[test]
fn a_path_that_narrows_and_widens_in_mid_flow_is_followed() {
    let mut pair = sending(&Config::default(), narrow(1_460), 0);
    let more = |pair: &mut Pair, octets| {
        let before = pair.server.program.received.len();
        pair.client.program.to_write = pattern(octets, 3);
        let began = pair.now;
        pair.drive_until(60 * SECOND, |pair| pair.server.program.received.len() == before + octets);
        (pair.client.connection().info().path_mss, pair.now - began)
    };
    assert_eq!(more(&mut pair, 500_000).0, 1_460);
    pair.to_server.set_longest(NonZeroU64::new(1_260 + HEADERS));
    let (mss, took) = more(&mut pair, 12_000_000);
    assert!((1_245..=1_260).contains(&mss) && took < 3 * SECOND, "{mss} after {took:?}");
    pair.to_server.set_longest(None);
    assert_eq!(more(&mut pair, 500_000).0, mss, "nobody looks before it is time");
    pair.drive_for(601 * SECOND);
    assert_eq!(more(&mut pair, 500_000).0, 1_460);
}

// RFC 4821 §7.2; RFC 8899 §5.1.2.
#[test]
fn who_always_probes_begins_small_and_finds_large_packets() {
    // A window that is smaller than what the program has written.
    let config = Config { mss: 8_960, receive_window_max: 256 << 10, ..with(MtuProbing::Always) };
    let mut pair = sending(&config, narrow(4_000), 20_000_000);
    finish(&mut pair, 20_000_000, 60 * SECOND);
    let info = pair.client.connection().info();
    assert!((3_985..=4_000).contains(&info.path_mss) && info.timeouts == 0, "{info:?}");
    let mut wide = sending(&config, narrow(8_960), 4_000_000);
    finish(&mut wide, 4_000_000, 60 * SECOND);
    assert_eq!(path_mss(&mut wide), 8_960);
}

#[test]
fn without_sack_a_black_hole_is_got_over_too() {
    let config = Config { sack: false, timestamps: false, ..Config::default() };
    let mut pair = sending(&config, narrow(1_360), 3_000_000);
    let took = finish(&mut pair, 3_000_000, 60 * SECOND);
    assert!(took < 5 * SECOND, "{took:?}");
    assert!((1_345..=1_360).contains(&path_mss(&mut pair)), "{}", pair.describe());
}

/// A probe of 1 500 octets and segments of 1 140 are outstanding; where the probe ends.
fn probing() -> (Solo, u32) {
    let config = Config { mss: 1_500, mtu_probing: MtuProbing::Always, ..with_sack() };
    let mut solo = Solo::established(&config);
    assert_eq!(solo.connection.info().mss, 1_140);
    solo.write(20_000);
    let sent = solo.text_sent();
    assert_eq!(sent[0], (OURS, 1_500), "a probe comes first: {sent:?}");
    assert!(sent[1..].iter().all(|(_, len)| *len == 1_140), "{sent:?}");
    (solo, OURS + 1_500)
}

// RFC 4821 §7.6.2; RFC 8899 §3.
#[test]
fn a_probe_that_is_lost_alone_costs_no_window_and_is_sent_again_in_pieces() {
    let (mut solo, end) = probing();
    let before = solo.connection.info();
    solo.now += Duration::from_millis(10);
    solo.arrive(sacked(ack(OURS), &[(end, end + 3 * 1_140)])).unwrap();
    let again = solo.text_sent();
    assert_eq!(again[..2], [(OURS, 1_140), (OURS + 1_140, 360)], "{again:?}");
    let info = solo.connection.info();
    assert_eq!((info.cwnd, info.ssthresh), (before.cwnd, before.ssthresh));
    assert_eq!((info.fast_recoveries, info.timeouts), (0, 0));
    solo.now += Duration::from_millis(10);
    let outstanding = solo.connection.info().in_flight;
    solo.arrive(ack(OURS + outstanding)).unwrap();
    assert_eq!(solo.connection.info().repair, Repair::Open);
}

// RFC 4821 §7.6.2.
#[test]
fn what_is_lost_beside_a_probe_costs_window() {
    let (mut solo, end) = probing();
    let before = solo.connection.info();
    solo.now += Duration::from_millis(10);
    solo.arrive(sacked(ack(OURS), &[(end + 1_140, end + 5 * 1_140)])).unwrap();
    solo.sent();
    let info = solo.connection.info();
    assert!(info.ssthresh < before.ssthresh && info.fast_recoveries == 1, "{info:?}");
    assert_eq!(info.mss, 1_140);
}

#[test]
fn a_loss_that_is_seen_while_a_probe_is_repaired_costs_window() {
    let (mut solo, end) = probing();
    solo.now += Duration::from_millis(10);
    solo.arrive(sacked(ack(OURS), &[(end, end + 3 * 1_140)])).unwrap();
    solo.sent();
    solo.now += Duration::from_millis(1);
    let held = [(end + 4 * 1_140, end + 6 * 1_140), (end, end + 3 * 1_140)];
    solo.arrive(sacked(ack(OURS), &held)).unwrap();
    solo.after(Duration::from_millis(30));
    assert_eq!(solo.connection.info().fast_recoveries, 1, "{:?}", solo.connection.info());
}

#[test]
fn a_probe_that_arrives_makes_segments_larger() {
    let (mut solo, end) = probing();
    solo.now += Duration::from_millis(10);
    solo.arrive(ack(end)).unwrap();
    assert_eq!(solo.connection.info().mss, 1_500);
}

// RFC 1191 §3; RFC 8201 §5.4; RFC 8899 §5.1.1.
#[test]
fn ten_minutes_after_a_router_refused_large_segments_one_is_tried_again() {
    let config = Config { mss: 1_500, ..with_sack() };
    let mut solo = Solo::established(&config);
    solo.write(3_000);
    solo.sent();
    solo.connection.on_packet_too_big(solo.now, 1_200);
    assert_eq!(solo.text_sent()[0], (OURS, 1_200));
    solo.connection.on_packet_too_big(solo.now, 1_200);
    assert_eq!(solo.text_sent(), [], "there is a message for each that was too large");
    solo.arrive(ack(OURS + 3_000)).unwrap();
    solo.after(Duration::from_secs(599));
    solo.write(10_000);
    assert!(solo.text_sent().iter().all(|(_, len)| *len <= 1_200));
    solo.arrive(ack(OURS + 13_000)).unwrap();
    solo.after(Duration::from_secs(2));
    solo.write(10_000);
    assert_eq!(solo.text_sent()[0], (OURS + 13_000, 1_500));
    solo.arrive(ack(OURS + 14_500)).unwrap();
    assert_eq!(solo.connection.info().path_mss, 1_500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the path takes, when that changes, and what else it does: the stream arrives.
    #[test]
    fn any_path(
        (narrow_at, first, then, wide_at) in (0u64..2_000, 600u64..1_600, 600u64..1_600, 0u64..20_000),
        (loss, reordering, seed) in (0u64..100, 0u64..200, any::<u64>()),
        (sack, timestamps, always) in any::<(bool, bool, bool)>(),
        congestion in prop::sample::select(vec![Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr]),
        octets in 0usize..400_000,
    ) {
        let mtu_probing = if always { MtuProbing::Always } else { MtuProbing::BlackHoles };
        let config = Config {
            sack, timestamps, congestion, mtu_probing, retries: 60, syn_retries: 20, syn_ack_retries: 20,
            max_rto: 10 * SECOND, ..Config::default()
        };
        let way = Conditions { ..Weather { loss, reordering, ..Weather::FAIR }.into() };
        let mut pair = Pair::over(&[config.clone(), config], &[way, Weather::FAIR.into()], seed);
        pair.client.program.to_write = pattern(octets, 3);
        for (millis, longest) in [(narrow_at, Some(first)), (wide_at, Some(then)), (5_000, None)] {
            pair.drive_for(Duration::from_millis(millis));
            pair.to_server.set_longest(longest.and_then(NonZeroU64::new));
        }
        finish(&mut pair, octets, 3_600 * SECOND);
    }
}

/// The peer takes less than the path does, and was told so little by a router, or the path fell silent.
// RFC 9293 MUST-16.
#[test]
fn no_probe_is_larger_than_what_the_peer_takes() {
    for (refused, silent) in [(Some(1_300), false), (Some(2_000), true), (None, true)] {
        let client = Config { mss: 8_960, ..Config::default() };
        let ways = [narrow(8_960), Weather::FAIR.into()];
        let mut pair = Pair::over(&[client, Config::default()], &ways, 1);
        pair.drive_for(SECOND);
        let now = pair.now;
        if let Some(mss) = refused {
            pair.client.connection().on_packet_too_big(now, mss);
        }
        let sent = Rc::new(Cell::new(0));
        let largest = sent.clone();
        let mut lost = 0;
        pair.to_server.lose = Box::new(move |_, packet| {
            largest.set(largest.get().max(packet.text.len() + packet.header.options.encoded_len()));
            lost += usize::from(silent);
            (1..14).contains(&lost)
        });
        for _ in 0..2 {
            pair.client.program.to_write = pattern(1_000_000, 3);
            pair.drive_for(601 * SECOND);
        }
        assert_eq!(pair.server.program.received.len(), 2_000_000, "{}", pair.describe());
        assert_eq!(
            (sent.get(), pair.client.connection().info().mss),
            (1_460, 1_448),
            "{refused:?}, {silent}"
        );
    }
}

// RFC 8899 §5.1.2.
#[test]
fn a_size_whose_probes_end_in_time_outs_is_given_up_too() {
    let config = Config { mss: 1_500, mtu_probing: MtuProbing::Always, ..with_sack() };
    let mut solo = Solo::established(&config);
    let (mut end, mut probes) = (OURS, vec![]);
    for _ in 0..100 {
        solo.write(20_000);
        let mut sent = solo.text_sent();
        let probe = sent.iter().map(|(_, len)| *len).find(|len| *len > 1_140);
        if probe.is_some() {
            // It is lost, and so is all that follows it.
            let before = solo.connection.info().timeouts;
            while solo.connection.info().timeouts == before {
                solo.next_timeout().expect("a deadline");
                sent.extend(solo.text_sent());
            }
        }
        probes.extend(probe);
        end = sent.iter().map(|(seq, len)| seq + *len as u32).fold(end, u32::max);
        solo.after(Duration::from_millis(10));
        solo.arrive(ack(end)).unwrap();
        if probes.last().is_some_and(|len| *len < 1_500) {
            break;
        }
    }
    assert_eq!(probes, [1_500, 1_500, 1_500, 1_320]);
}
