//! Proportional rate reduction (RFC 6937): how much may be sent on each acknowledgement during fast
//! recovery. It lets the amount outstanding sink to ssthresh in proportion to what is delivered,
//! and rise to it no faster than slow start would, so that repairs do not leave as one burst into
//! the queue that just overflowed. It never allows more than ssthresh in the end.

/// The budget of one episode of fast recovery, in octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// prr_delivered.
    delivered: u32,
    /// prr_out.
    out: u32,
    /// RecoverFS: what was outstanding when recovery began.
    flight: u32,
    /// sndcnt: what may still be sent before the next acknowledgement.
    budget: u32,
}

impl Prr {
    /// Recovery begins with `flight` octets outstanding.
    pub(crate) const fn start(flight: u32) -> Self {
        Self { delivered: 0, out: 0, flight, budget: 0 }
    }

    /// An acknowledgement says that `delivered` more octets have left the network; `pipe` are in it
    /// (RFC 6937 §3, with the slow-start reduction bound, as §6 recommends). One that delivers nothing lets nothing go:
    /// where text comes as well, each of its segments is one.
    // RFC 6937 §3, §6.
    // RFC 8985 §9.3.
    pub(crate) fn on_ack(&mut self, delivered: u32, pipe: u32, ssthresh: u32, mss: u32) {
        if delivered == 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(delivered);
        self.budget = if pipe > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let share = u32::try_from(share.div_ceil(u64::from(self.flight.max(1)))).unwrap_or(u32::MAX);
            share.saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered).saturating_add(mss);
            (ssthresh - pipe).min(limit)
        };
    }

    /// Octets were sent, new or again.
    pub(crate) fn on_sent(&mut self, octets: u32) {
        self.out = self.out.saturating_add(octets);
        self.budget = self.budget.saturating_sub(octets);
    }

    /// Octets were found lost without an acknowledgement, so that `pipe` are in the network: as many may leave instead, up to ssthresh.
    pub(crate) fn make_room(&mut self, lost: u32, pipe: u32, ssthresh: u32) {
        self.budget = self.budget.saturating_add(lost).min(ssthresh.saturating_sub(pipe)).max(self.budget);
    }

    /// Octets that may be sent now.
    pub(crate) const fn budget(&self) -> u32 {
        self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;

    // RFC 6937 §3.
    #[test]
    fn above_ssthresh_it_sends_in_proportion_to_what_is_delivered() {
        let mut prr = Prr::start(20 * MSS);
        let sent: u32 = (0..10)
            .map(|n| {
                prr.on_ack(MSS, (19 - n / 2) * MSS, 10 * MSS, MSS);
                let whole = prr.budget() / MSS * MSS;
                prr.on_sent(whole);
                whole
            })
            .sum();
        assert_eq!(sent, 5 * MSS);
    }

    #[test]
    fn what_delivers_nothing_lets_nothing_go() {
        let mut prr = Prr::start(20 * MSS);
        prr.on_ack(10 * MSS, 4 * MSS, 8 * MSS, MSS);
        prr.on_sent(prr.budget());
        for _ in 0..3 {
            prr.on_ack(0, 4 * MSS, 8 * MSS, MSS);
            assert_eq!(prr.budget(), 0);
        }
    }

    // RFC 6675 §5.
    #[test]
    fn what_is_found_lost_without_an_acknowledgement_makes_room_up_to_ssthresh() {
        let mut prr = Prr::start(20 * MSS);
        prr.make_room(3 * MSS, 5 * MSS, 10 * MSS);
        assert_eq!(prr.budget(), 3 * MSS);
        prr.make_room(8 * MSS, MSS, 7 * MSS);
        assert_eq!(prr.budget(), 6 * MSS);
        prr.make_room(MSS, 7 * MSS, 7 * MSS);
        assert_eq!(prr.budget(), 6 * MSS, "what was allowed before stays so");
    }

    // RFC 6937 §3, §6.
    #[test]
    fn below_ssthresh_it_grows_no_faster_than_slow_start() {
        let mut prr = Prr::start(20 * MSS);
        prr.on_ack(MSS, 2 * MSS, 10 * MSS, MSS);
        assert_eq!(prr.budget(), 2 * MSS);
        prr.on_sent(2 * MSS);
        assert_eq!(prr.budget(), 0);
        prr.on_ack(MSS, 9 * MSS, 10 * MSS, MSS);
        assert_eq!(prr.budget(), MSS);
    }
}
