//! The search for the path MTU by probing (RFC 4821 §7, RFC 8899 §5): which sizes are known to get
//! through, which is tried next, and what an answer teaches. All sizes are those of segments, options
//! included: the MTU less the headers of IP and TCP. It sends nothing and looks at no segment;
//! `path_mtu` does.

use core::time::Duration;

use silk_instant::Instant;

use crate::seq::SeqNumber;

/// BASE_PLPMTU (RFC 8899 §5.1.2), which nearly every path takes: packets of 1 200 octets over IPv6,
/// 1 180 over IPv4.
// RFC 4821 §7.2.
pub(crate) const BASE: u16 = 1_140;
/// MIN_PLPMTU: where not even the base gets through. Packets of 552 octets over IPv4, the least that
/// a router is believed to say, too.
pub(crate) const LEAST: u16 = 512;
/// MAX_PROBES (RFC 8899 §5.1.2): so many probes of one size must be lost before it is too large.
const MAX_PROBES: u8 = 3;
/// PMTU_RAISE_TIMER (RFC 8899 §5.1.1): the way may have become wider after this.
// RFC 1191 §3.
const RAISE: Duration = Duration::from_secs(600);
/// A search ends when it can gain no more than this.
const NEAR: u16 = 16;

/// When the path MTU is searched by probing (Linux's `tcp_mtu_probing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MtuProbing {
    /// Never: what routers say is all that is known.
    Off,
    /// When segments vanish that may be too large, and ten minutes after a router has said that
    /// some were.
    #[default]
    BlackHoles,
    /// On every connection, which begins with small segments, whatever the link takes.
    Always,
}

/// A segment that is larger than what is known to get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) start: SeqNumber,
    pub(crate) end: SeqNumber,
    /// PROBED_SIZE.
    pub(crate) size: u16,
}

/// What is known of a path's MTU. `low <= high <= most`.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// PLPMTU: the largest that is taken to get through (search_low of RFC 4821 §7.1).
    low: u16,
    /// The largest that may (search_high).
    high: u16,
    /// MAX_PLPMTU: what the link and the peer take.
    most: u16,
    /// What is tried next; 0 when the search is over.
    size: u16,
    /// PROBE_COUNT: probes of that size that were lost.
    lost: u8,
    /// When to search again from the top; `FAR` while searching.
    raise_at: Instant,
    /// The probe that is outstanding.
    pub(crate) probe: Option<Probe>,
    /// Where the lost probe ended that is being sent again, and nothing else is.
    pub(crate) repaired: Option<SeqNumber>,
}

impl Search {
    /// `low` gets through, and `high` may. The first to be tried is `high` itself: what looked like a
    /// narrow path may have been an outage.
    pub(crate) fn new(now: Instant, low: u16, high: u16, most: u16) -> Self {
        let high = high.max(low);
        let raise_at = Instant::FAR;
        let mut search = Self {
            low,
            high,
            most: most.max(high),
            size: high,
            lost: 0,
            raise_at,
            probe: None,
            repaired: None,
        };
        if high == low {
            search.complete(now);
        }
        search
    }

    /// PLPMTU.
    pub(crate) const fn low(&self) -> u16 {
        self.low
    }

    /// MAX_PLPMTU.
    pub(crate) const fn most(&self) -> u16 {
        self.most
    }

    /// What to try at `now`, if anything.
    pub(crate) fn wanted(&mut self, now: Instant) -> Option<u16> {
        if now >= self.raise_at && self.low < self.most {
            (self.high, self.size, self.raise_at) = (self.most, self.most, Instant::FAR);
        }
        (self.size > 0 && self.probe.is_none()).then_some(self.size)
    }

    /// The probe has arrived; PLPMTU is its size.
    pub(crate) fn succeed(&mut self, now: Instant) {
        if let Some(probe) = self.probe.take()
            && probe.size <= self.high
        {
            self.low = self.low.max(probe.size);
            self.choose(now);
        }
    }

    /// The probe is lost. One loss may be chance.
    pub(crate) fn fail(&mut self, now: Instant) {
        if self.probe.take().is_some_and(|probe| probe.size == self.size) {
            self.lost += 1;
            if self.lost >= MAX_PROBES {
                self.high = self.size - 1;
                self.choose(now);
            }
        }
    }

    /// A router on the way takes no more than `size` (RFC 8899 §4.6.2).
    pub(crate) fn limit(&mut self, now: Instant, size: u16) {
        if size <= self.low {
            (self.low, self.high) = (size, size);
            self.complete(now);
        } else if size < self.high {
            self.high = size;
            self.choose(now);
        }
    }

    // RFC 4821 §7.3; RFC 8899 §5.3.2.
    fn choose(&mut self, now: Instant) {
        let gain = self.high - self.low;
        if gain < NEAR {
            return self.complete(now);
        }
        (self.size, self.lost) = (self.low + gain.div_ceil(2), 0);
    }

    fn complete(&mut self, now: Instant) {
        (self.size, self.lost, self.raise_at) = (0, 0, now + RAISE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Instant = Instant::from_millis(5);

    fn probe(search: &mut Search, now: Instant) -> Option<u16> {
        let size = search.wanted(now)?;
        let start = SeqNumber::new(1);
        search.probe = Some(Probe { start, end: start + u32::from(size), size });
        Some(size)
    }

    /// Searches on a path that takes `real`; how many probes that took.
    fn search_on(search: &mut Search, now: Instant, real: u16) -> u32 {
        let mut probes = 0;
        while let Some(size) = probe(search, now) {
            probes += 1;
            if size <= real { search.succeed(now) } else { search.fail(now) }
        }
        probes
    }

    #[test]
    fn one_probe_shows_that_an_outage_was_no_black_hole() {
        let mut search = Search::new(NOW, BASE, 1_460, 1_460);
        assert_eq!((search_on(&mut search, NOW, 1_460), search.low()), (1, 1_460));
    }

    // RFC 8899 §5.1.2.
    #[test]
    fn a_size_is_given_up_after_three_losses_in_a_row() {
        let mut search = Search::new(NOW, BASE, 1_460, 1_460);
        for _ in 0..2 {
            assert_eq!(probe(&mut search, NOW), Some(1_460));
            search.fail(NOW);
        }
        assert_eq!(probe(&mut search, NOW), Some(1_460));
        assert_eq!(search.wanted(NOW), None, "one probe at a time");
        search.fail(NOW);
        assert_eq!(search.wanted(NOW), Some(1_300));
    }

    // RFC 8899 §5.1.1.
    #[test]
    fn ten_minutes_after_a_search_the_next_begins_from_the_top() {
        let mut search = Search::new(NOW, BASE, 1_460, 1_460);
        search_on(&mut search, NOW, 1_360);
        let found = search.low();
        assert!(probe(&mut search, NOW + (RAISE - Duration::from_millis(1))).is_none());
        assert_eq!((search_on(&mut search, NOW + RAISE, 1_460), search.low()), (1, 1_460));
        assert!((1_345..=1_360).contains(&found), "{found}");
    }

    // RFC 8899 §4.6.2.
    #[test]
    fn a_router_that_takes_less_ends_the_search_and_one_between_narrows_it() {
        let mut search = Search::new(NOW, BASE, 1_460, 1_460);
        search.limit(NOW, 1_400);
        assert_eq!(search.wanted(NOW), Some(1_270));
        search.limit(NOW, 1_450);
        assert_eq!(search.wanted(NOW), Some(1_270), "a larger one says nothing");
        search.limit(NOW, 900);
        assert_eq!((search.low(), search.wanted(NOW)), (900, None));
    }

    #[test]
    fn a_probe_of_a_size_that_was_given_up_meanwhile_says_nothing() {
        let mut search = Search::new(NOW, BASE, 1_460, 1_460);
        probe(&mut search, NOW);
        search.limit(NOW, 1_200);
        search.succeed(NOW);
        assert_eq!(search.low(), BASE);
    }

    proptest! {
        /// What is found gets through, is near the truth, and is found in a bounded number of probes.
        // RFC 4821 §7.3; RFC 8899 §5.3.2.
        #[test]
        fn a_search_ends_near_the_truth(low in 48u16..2_000, more in 0u16..63_000, real in 48u16..65_000) {
            let high = low + more;
            let mut search = Search::new(NOW, low, high, high);
            let probes = search_on(&mut search, NOW, real);
            let best = real.clamp(low, high);
            prop_assert!(search.low() <= best && best - search.low() < NEAR, "{search:?}");
            prop_assert!(probes <= 50, "{probes} probes");
        }
    }
}
