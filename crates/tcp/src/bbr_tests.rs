//! Tests of BBR's phases.

use super::*;

const MSS: u32 = 1_000;
const RTT: Duration = Duration::from_millis(100);

/// A path that delivers ten segments in each round trip of 100 ms, and says what it lost.
struct Rounds {
    bbr: Bbr,
    now: Instant,
}

impl Rounds {
    fn new() -> Self {
        Self { bbr: Bbr::new(10 * MSS), now: Instant::from_millis(1_000) }
    }

    /// Sends and delivers ten segments; answers the phase after that.
    fn round(&mut self, rtt: Duration, lost: u32) -> Phase {
        self.round_of(10 * MSS, rtt, lost)
    }

    /// The same with as many as the window lets go.
    fn fill(&mut self, lost: u32) -> Phase {
        self.round_of(self.bbr.cwnd, RTT, lost)
    }

    fn round_of(&mut self, delivered: u32, rtt: Duration, lost: u32) -> Phase {
        let sent_at = self.now;
        self.bbr.on_sent(sent_at, 0, delivered);
        self.now += rtt;
        let delivery = Delivery { now: self.now, delivered, lost, sent_at, rtt, pipe: 0, mss: MSS, seed: 7 };
        self.bbr.on_delivery(&delivery);
        self.bbr.phase
    }
}

#[test]
fn it_is_not_paced_before_the_first_sample_and_then_well_above_it() {
    let mut rounds = Rounds::new();
    assert_eq!(rounds.bbr.pacing_rate(), None);
    rounds.round(RTT, 0);
    // The initial window in the first round trip, 100 000 octets per second, times 2.77.
    assert_eq!((rounds.bbr.pacing_rate(), rounds.bbr.window()), (Some(277_000), 20_000));
}

#[test]
fn three_rounds_without_a_quarter_more_bandwidth_end_the_startup() {
    let mut rounds = Rounds::new();
    let phases: alloc::vec::Vec<_> = (0..5).map(|_| rounds.round(RTT, 0)).collect();
    // With nothing in the network the queue is drained at once.
    let drained = Phase::ProbeDown;
    let cruising = Phase::ProbeCruise;
    assert_eq!(phases, [Phase::Startup, Phase::Startup, Phase::Startup, drained, cruising]);
    assert_eq!(rounds.bbr.pacing_rate(), Some(99_000));
}

#[test]
fn a_path_that_stood_still_is_tried_with_a_segment_a_second() {
    let mut rounds = Rounds::new();
    // Ten segments in ten minutes: 17 octets a second.
    for _ in 0..12 {
        rounds.round(Duration::from_secs(600), 0);
        assert_eq!(rounds.bbr.pacing_rate(), Some(u64::from(MSS)));
    }
    assert!(rounds.bbr.full_bw_reached && rounds.bbr.model.max_bw() < 20, "{:?}", rounds.bbr);
}

#[test]
fn a_probe_for_bandwidth_follows_and_ends() {
    let mut rounds = Rounds::new();
    let mut seen = alloc::vec![];
    for _ in 0..40 {
        let phase = rounds.round(RTT, 0);
        if seen.last() != Some(&phase) {
            seen.push(phase);
        }
    }
    let cycle = [Phase::ProbeCruise, Phase::ProbeRefill, Phase::ProbeUp, Phase::ProbeDown];
    assert_eq!(seen[..2], [Phase::Startup, Phase::ProbeDown]);
    assert_eq!(seen[2..6], cycle);
}

#[test]
fn a_probe_goes_on_while_only_its_own_bound_holds_it_back() {
    let mut rounds = Rounds::new();
    while rounds.round(RTT, 0) != Phase::ProbeRefill {}
    rounds.bbr.model.inflight_hi = u64::from(100 * MSS);
    rounds.bbr.cwnd = 100 * MSS;
    // The path has come to take whatever is sent.
    let mut bounds = alloc::vec![];
    for _ in 0..8 {
        assert_eq!(rounds.fill(0), Phase::ProbeUp);
        bounds.push(rounds.bbr.model.inflight_hi / u64::from(MSS));
    }
    assert_eq!(bounds, [100, 102, 106, 114, 130, 162, 226, 354]);
    // A program with little to send is no reason.
    let little = rounds.bbr.cwnd / 2;
    rounds.round_of(little, RTT, 0);
    assert_eq!(rounds.bbr.model.inflight_hi, u64::from(354 * MSS));
    // With nothing in the network the queue is drained at once.
    assert_eq!(rounds.fill(20 * MSS), Phase::ProbeCruise);
}

#[test]
fn a_loss_among_the_little_that_a_program_had_to_send_is_no_bound() {
    let bound_after = |is_limited: bool| {
        let mut rounds = Rounds::new();
        while rounds.round(RTT, 0) != Phase::ProbeRefill {}
        if is_limited {
            rounds.bbr.on_app_limited(0);
        }
        let phase = rounds.round(RTT, 2 * MSS);
        assert!(matches!(phase, Phase::ProbeDown | Phase::ProbeCruise), "{phase:?}");
        rounds.bbr.model.inflight_hi
    };
    assert_eq!(bound_after(true), u64::MAX);
    assert!(bound_after(false) < u64::MAX);
}

/// A connection that cruises, and whose whole flight a time-out has given up.
fn timed_out() -> (Rounds, u32) {
    let mut rounds = Rounds::new();
    while rounds.round(RTT, 0) != Phase::ProbeCruise {}
    let before = rounds.bbr.window();
    rounds.bbr.on_timeout(10 * MSS, MSS, true);
    rounds.bbr.on_lost_by_timer(10 * MSS);
    // The round that ends with the first segment's acknowledgement lost nearly all.
    rounds.round_of(MSS, RTT, 0);
    (rounds, before)
}

#[test]
fn a_window_that_is_being_repaired_is_no_measure_of_what_the_path_takes() {
    let (mut rounds, before) = timed_out();
    rounds.bbr.on_recovered();
    rounds.round(RTT, 0);
    let window = rounds.bbr.window();
    assert!(window >= before * 6 / 10, "{window} of {before}");
}

#[test]
fn a_time_out_by_mistake_leaves_no_bounds() {
    let (mut rounds, before) = timed_out();
    assert!(rounds.bbr.model.inflight_lo < u64::MAX);
    rounds.bbr.on_spurious();
    assert_eq!((rounds.bbr.window(), rounds.bbr.model.inflight_lo), (before, u64::MAX));
}

#[test]
fn the_round_trip_is_looked_for_when_it_was_not_seen_for_five_seconds() {
    let mut rounds = Rounds::new();
    rounds.round(RTT, 0);
    let mut delivery = Delivery {
        now: rounds.now + Duration::from_secs(6),
        delivered: MSS,
        lost: 0,
        sent_at: rounds.now,
        rtt: 2 * RTT,
        pipe: 9 * MSS,
        mss: MSS,
        seed: 7,
    };
    rounds.bbr.on_delivery(&delivery);
    assert_eq!((rounds.bbr.phase, rounds.bbr.window()), (Phase::ProbeRtt, 5_000));
    // Once little is in the network it stays so for 200 ms and a round.
    delivery.pipe = 2 * MSS;
    for millis in [0, 100, 201] {
        delivery.now += Duration::from_millis(millis);
        rounds.bbr.on_sent(delivery.now, 2 * MSS, MSS);
        delivery.sent_at = delivery.now;
        rounds.bbr.on_delivery(&delivery);
    }
    assert_ne!(rounds.bbr.phase, Phase::ProbeRtt);
    assert!(rounds.bbr.window() >= 20_000, "{}", rounds.bbr.window());
}

#[test]
fn losses_while_cruising_lower_the_window_until_the_next_probe() {
    let mut rounds = Rounds::new();
    while rounds.round(RTT, 0) != Phase::ProbeCruise {}
    let before = rounds.bbr.window();
    rounds.round(RTT, 2 * MSS);
    let after = rounds.bbr.window();
    assert!(after < before && after >= 10 * MSS, "{before}, then {after}");
    while rounds.round(RTT, 0) != Phase::ProbeRefill {}
    assert!(rounds.bbr.window() > after);
}

#[test]
fn a_time_out_leaves_one_segment_and_forgets_nothing() {
    let mut rounds = Rounds::new();
    (0..5).for_each(|_| _ = rounds.round(RTT, 0));
    let before = rounds.bbr.window();
    rounds.bbr.on_timeout(10 * MSS, MSS, true);
    assert_eq!(rounds.bbr.window(), MSS);
    let mut recovered = rounds.bbr.clone();
    recovered.on_recovered();
    assert_eq!(recovered.window(), before);
    (0..3).for_each(|_| _ = rounds.round(RTT, 0));
    assert_eq!(rounds.bbr.window(), before);
}
