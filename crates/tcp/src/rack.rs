//! Recent acknowledgement (RACK, RFC 8985 §6): text is lost when text that was sent sufficiently
//! later has arrived. "Later" is by the time of transmission, so a retransmission can be seen to be
//! lost too; "sufficiently" is the reordering window, which is nothing until the network is seen to
//! reorder, and grows while the peer reports that it was too small (D-SACK). It is used when both
//! ends speak SACK. It never judges text without an acknowledgement of younger text: that is the
//! tail's probe (`tail`) and the time-out.

use core::time::Duration;

use silk_instant::Instant;

use crate::flight::{Flight, Judgement, Outstanding, Sending};
use crate::minimum::WindowedMin;
use crate::seq::SeqNumber;
use crate::stamps::Echo;

/// RACK.min_RTT is the least of so many seconds (§6.2, step 1).
// RFC 8985 §6.2.
const MIN_RTT_WINDOW: u32 = 300;
/// A larger reordering window lasts for so many recoveries (§6.2, step 4).
const PERSIST: u8 = 16;

/// The clock granularity of the timers of RACK and TLP: none is set nearer than this, for within it
/// the peer's answer is a matter of who is scheduled when. Times of transmission are exact.
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// What is remembered of the most recent acknowledgement (§5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the youngest text that has arrived.
    xmit_ts: Instant,
    end_seq: SeqNumber,
    /// RACK.fack: the end of the highest text that has arrived.
    fack: SeqNumber,
    /// RACK.fack before the acknowledgement that is being taken.
    fack_before: SeqNumber,
    /// RACK.rtt in µs: the round trip of the youngest text that has arrived.
    rtt: u32,
    /// RACK.min_RTT in µs.
    min_rtt: WindowedMin,
    /// RACK.dsack_round: no D-SACK counts before this is acknowledged, while `dsack_seen`.
    dsack_round: SeqNumber,
    dsack_seen: bool,
    /// RACK.reo_wnd_mult: quarters of the least round-trip time.
    reo_wnd_mult: u8,
    /// RACK.reo_wnd_persist: recoveries until the window is small again.
    reo_wnd_persist: u8,
    /// RACK.reordering_seen, counted.
    reordered: u32,
}

/// What a look at all that is outstanding found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detected {
    /// A retransmission made since this recovery began is lost.
    pub(crate) repair_lost: bool,
    /// When to look again at what is late but within the reordering window.
    pub(crate) again_at: Option<Instant>,
}

impl Rack {
    pub(crate) const fn new(iss: SeqNumber) -> Self {
        Self {
            xmit_ts: Instant::ZERO,
            end_seq: iss,
            fack: iss,
            fack_before: iss,
            rtt: 0,
            min_rtt: WindowedMin::new(),
            dsack_round: iss,
            dsack_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: PERSIST,
            reordered: 0,
        }
    }

    /// What was brought until here came before the next acknowledgement. In which order that arrived of which one
    /// acknowledgement tells, nobody knows (§6.2, step 3, goes through it in ascending order).
    // RFC 8985 §6.2.
    pub(crate) fn settle(&mut self) {
        self.fack_before = self.fack;
    }

    /// Text has arrived (§6.2, steps 1 to 3).
    pub(crate) fn on_delivered(&mut self, now: Instant, sending: Sending, echo: Echo) {
        let rtt = micros(now, sending.at);
        if !sending.again {
            self.min_rtt.update(now, rtt, MIN_RTT_WINDOW);
            self.reordered = self.reordered.saturating_add(sending.end.before(self.fack_before).into());
        } else if echo.is_before(sending.at) || rtt < self.min_rtt.get() {
            // It was the first transmission that arrived; nothing is known of this one.
            self.fack = self.fack.max(sending.end);
            return;
        }
        self.fack = self.fack.max(sending.end);
        if (sending.at, sending.end) == (self.xmit_ts, self.end_seq)
            || sent_after((sending.at, sending.end), (self.xmit_ts, self.end_seq))
        {
            (self.xmit_ts, self.end_seq, self.rtt) = (sending.at, sending.end, rtt);
        }
    }

    /// The handshake took so long: as good a round trip as any, and the least where acknowledgements are delayed.
    pub(crate) fn on_handshake(&mut self, now: Instant, round_trip: Duration) {
        self.min_rtt.update(now, round_trip.as_micros().min(u32::MAX.into()) as u32, MIN_RTT_WINDOW);
    }

    /// An acknowledgement came; with a D-SACK it says that the window was too small, which counts
    /// once in a round trip (§6.2, step 4).
    // RFC 8985 §3.3.2, §4.
    pub(crate) fn on_ack(&mut self, dsack: bool, out: Outstanding) {
        self.advance(out.una);
        if dsack && !self.dsack_seen {
            (self.dsack_round, self.dsack_seen) = (out.nxt, true);
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = PERSIST;
        }
    }

    /// SND.UNA is now `una`, which may end the round of a D-SACK. Looked at with every acknowledgement, so that
    /// `dsack_round` never comes to lie half the circle away while it counts.
    pub(crate) fn advance(&mut self, una: SeqNumber) {
        self.dsack_seen &= una.before(self.dsack_round);
    }

    /// A recovery is over (§6.2, step 4).
    pub(crate) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// RACK.reo_wnd (§6.2, step 4). `certain` when losses are being repaired, or enough was held
    /// that they would be by DupThresh.
    // RFC 8985 §3.3.2.
    pub(crate) fn reordering_window(&self, certain: bool, srtt: Duration) -> Duration {
        if certain && self.reordered == 0 {
            return Duration::ZERO;
        }
        let quarters = u64::from(self.min_rtt.get()) * u64::from(self.reo_wnd_mult);
        Duration::from_micros(quarters / 4).min(srtt)
    }

    /// Marks what is lost (§6.2, step 5). `since` is when this recovery began.
    // RFC 8985 §9.2.
    pub(crate) fn detect(
        &self,
        now: Instant,
        window: Duration,
        since: Instant,
        una: SeqNumber,
        flight: &mut Flight,
    ) -> Detected {
        let mut detected = Detected::default();
        let patience = self.rtt() + window;
        flight.judge(una, |sending| {
            if !sent_after((self.xmit_ts, self.end_seq), (sending.at, sending.end)) {
                // What follows is younger still, sent again or not.
                return if sending.again { Judgement::Keep } else { Judgement::Stop };
            }
            let overdue_at = sending.at + patience;
            if overdue_at <= now {
                detected.repair_lost |= sending.again && sending.at >= since;
                return Judgement::Lose;
            }
            let latest = detected.again_at.map_or(overdue_at, |at| at.max(overdue_at));
            detected.again_at = Some(latest.max(now + GRANULARITY));
            Judgement::Keep
        });
        detected
    }

    /// The retransmission timer went off: what was sent long enough ago is lost, whether or not
    /// anything younger arrived (§6.3). What was sent before the time-out that is over is late, however long the last
    /// round trip was: or else a single long one would leave each segment a time-out of its own.
    pub(crate) fn mark_losses_on_timeout(
        &self,
        now: Instant,
        window: Duration,
        timeout: Duration,
        out: Outstanding,
        flight: &mut Flight,
    ) {
        let patience = (self.rtt() + window).min(timeout);
        flight.lose_first(out);
        flight.judge(
            out.una,
            |sending| {
                if sending.at + patience <= now { Judgement::Lose } else { Judgement::Keep }
            },
        );
    }

    /// RACK.min_RTT; zero before the first measurement.
    pub(crate) fn min_rtt(&self) -> Duration {
        Duration::from_micros(self.min_rtt.get().into())
    }

    /// How often text was seen to arrive out of order.
    pub(crate) const fn reordered(&self) -> u32 {
        self.reordered
    }

    /// RACK.xmit_ts and RACK.rtt.
    pub(crate) fn youngest(&self) -> (Instant, Duration) {
        (self.xmit_ts, self.rtt())
    }

    /// RACK.rtt.
    fn rtt(&self) -> Duration {
        Duration::from_micros(self.rtt.into())
    }
}

/// The time from `earlier` to `now` in whole microseconds.
fn micros(now: Instant, earlier: Instant) -> u32 {
    u32::try_from(now.nanos().saturating_sub(earlier.nanos()) / 1_000).unwrap_or(u32::MAX)
}

/// RACK_sent_after() of §6.2: by time, and within one time by sequence number.
fn sent_after((at, end): (Instant, SeqNumber), (other_at, other_end): (Instant, SeqNumber)) -> bool {
    at > other_at || (at == other_at && end.after(other_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(1);

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const fn sending(end: u32, millis: u64, again: bool) -> Sending {
        Sending { end: SeqNumber::new(end), at: at(millis), again }
    }

    const fn out(una: u32, nxt: u32) -> Outstanding {
        Outstanding { una: SeqNumber::new(una), nxt: SeqNumber::new(nxt), mss: 1_000 }
    }

    /// Text up to 2000, sent at 0, has arrived after 40 ms.
    fn rack() -> Rack {
        let mut rack = Rack::new(SeqNumber::new(0));
        rack.on_delivered(at(40), sending(2_000, 0, false), Echo::NONE);
        rack
    }

    // RFC 8985 §3.3.2.
    #[test]
    fn the_window_is_a_quarter_of_the_least_round_trip_and_at_most_the_smoothed_one() {
        assert_eq!(rack().reordering_window(false, LONG), 10 * MILLI);
        assert_eq!(rack().reordering_window(false, 3 * MILLI), 3 * MILLI);
    }

    // RFC 8985 §3.3.2.
    #[test]
    fn it_is_nothing_during_recovery_until_reordering_was_seen() {
        let mut rack = rack();
        assert_eq!(rack.reordering_window(true, LONG), Duration::ZERO);
        rack.on_delivered(at(41), sending(1_000, 0, true), Echo::NONE);
        assert_eq!(rack.reordering_window(true, LONG), Duration::ZERO);
        // One acknowledgement tells of both.
        rack.on_delivered(at(41), sending(1_000, 0, false), Echo::NONE);
        assert_eq!(rack.reordering_window(true, LONG), Duration::ZERO);
        rack.settle();
        rack.on_delivered(at(42), sending(1_000, 0, false), Echo::NONE);
        assert_eq!(rack.reordering_window(true, LONG), 10 * MILLI);
    }

    // RFC 8985 §3.3.2.
    #[test]
    fn a_report_widens_it_once_in_a_round_trip_and_for_sixteen_recoveries() {
        let mut rack = rack();
        let window = |rack: &Rack| rack.reordering_window(false, LONG);
        rack.on_ack(true, out(2_000, 9_000));
        rack.on_ack(true, out(8_999, 12_000));
        assert_eq!(window(&rack), 20 * MILLI);
        rack.on_ack(true, out(9_000, 12_000));
        assert_eq!(window(&rack), 30 * MILLI);
        (0..15).for_each(|_| rack.on_recovered());
        assert_eq!(window(&rack), 30 * MILLI);
        rack.on_recovered();
        assert_eq!(window(&rack), 10 * MILLI);
    }

    #[test]
    fn a_retransmission_that_arrives_too_soon_was_the_first_transmission() {
        let mut rack = rack();
        rack.on_delivered(at(80), sending(1_000, 41, true), Echo::NONE);
        assert_eq!((rack.xmit_ts, rack.rtt()), (at(0), 40 * MILLI));
        rack.on_delivered(at(81), sending(1_000, 41, true), Echo::NONE);
        assert_eq!((rack.xmit_ts, rack.rtt()), (at(41), 40 * MILLI));
    }

    #[test]
    fn the_handshake_tells_how_soon_is_too_soon() {
        // Acknowledgements of text are delayed; that of a tail's probe is not.
        let mut rack = rack();
        rack.on_handshake(at(1_050), 20 * MILLI);
        rack.on_delivered(at(1_130), sending(300, 1_105, true), Echo::NONE);
        assert_eq!(rack.youngest(), (at(1_105), 25 * MILLI));
    }

    #[test]
    fn younger_is_by_time_and_then_by_number() {
        let number = SeqNumber::new;
        assert!(sent_after((at(2), number(1)), (at(1), number(9))));
        assert!(sent_after((at(1), number(9)), (at(1), number(1))));
        assert!(!sent_after((at(1), number(1)), (at(1), number(1))));
    }
}
