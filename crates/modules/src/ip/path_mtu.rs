//! Path MTUs (RFC 1191, RFC 8201): what routers said about destinations, for a while. Bounded; a forged
//! report can make packets small, but never absurdly so: where a path is narrower than that, they may be cut up.

use super::{Address, Routes};
use alloc::collections::BTreeMap;
use core::time::Duration;
use silk_instant::Instant;

/// Packets over IPv4 are never made smaller for what a router says, as with Linux: below, it is an attack rather than a
/// link.
pub(crate) const LEAST: u16 = 552;
/// How long a report counts (RFC 1191 §6.3, RFC 8201 §4, §5.3).
const LIFE: Duration = Duration::from_secs(600);
/// Destinations kept.
const MOST: usize = 1024;

/// What is known of destinations.
pub(crate) struct PathMtus<A> {
    // What was said, and until when it counts.
    known: BTreeMap<A, (u16, Instant)>,
    least: u16,
}

impl<A: Copy + Ord> PathMtus<A> {
    /// Nothing is known; packets are never made smaller than `least` bytes.
    pub fn new(least: u16) -> Self {
        Self { known: BTreeMap::new(), least }
    }

    /// Takes a report in.
    // RFC 1191 §3; RFC 8201 §4, §5.2; RFC 4821 §5.2.
    pub fn learn(&mut self, now: Instant, destination: A, mtu: u16) {
        // That something larger is too large, too, is no news.
        if self.said(now, destination).is_some_and(|(known, _)| known <= mtu) {
            return;
        }
        if self.known.len() >= MOST && !self.known.contains_key(&destination) {
            self.make_room(now);
        }
        self.known.insert(destination, (mtu, now + LIFE));
    }

    fn said(&self, now: Instant, destination: A) -> Option<(u16, Instant)> {
        self.known.get(&destination).copied().filter(|(_, until)| *until > now)
    }

    /// The path MTU to `destination`, where a router said one.
    pub fn of(&self, now: Instant, destination: A) -> Option<u16> {
        self.said(now, destination).map(|(mtu, _)| mtu.max(self.least))
    }

    /// Until when that counts.
    pub fn until(&self, now: Instant, destination: A) -> Option<Instant> {
        self.said(now, destination).map(|(_, until)| until)
    }

    /// Whether the path is narrower than packets are made, so that they must let themselves be cut up.
    pub fn is_narrower(&self, now: Instant, destination: A) -> bool {
        self.said(now, destination).is_some_and(|(mtu, _)| mtu < self.least)
    }

    /// How large packets to `destination` may be, by what routers and its route say.
    pub fn to(&self, now: Instant, destination: A, routes: &Routes<A>) -> u16
    where
        A: Address,
    {
        let routed = routes.mtu_to(destination).map(|mtu| mtu.max(A::LEAST_MTU));
        self.of(now, destination).into_iter().chain(routed).min().unwrap_or(u16::MAX)
    }

    /// Drops what has expired, and when that is nothing, the entry that expires first.
    fn make_room(&mut self, now: Instant) {
        self.known.retain(|_, (_, until)| *until > now);
        if self.known.len() >= MOST
            && let Some(first) = self.known.iter().min_by_key(|(_, (_, until))| *until).map(|(to, _)| *to)
        {
            self.known.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    // RFC 1191 §3; RFC 8201 §4, §5.2, §5.3.
    #[test]
    fn a_report_counts_for_ten_minutes_and_has_a_floor() {
        let (mut mtus, there) = (PathMtus::new(LEAST), Ipv4Addr::new(10, 0, 0, 2));
        let mut known = |said: Option<u16>, millis| {
            let now = Instant::from_millis(millis);
            said.into_iter().for_each(|mtu| mtus.learn(now, there, mtu));
            (mtus.of(now, there), mtus.is_narrower(now, there))
        };
        assert_eq!(known(Some(1400), 0), (Some(1400), false));
        assert_eq!(known(None, 599_999), (Some(1400), false));
        assert_eq!(known(None, 600_000), (None, false));
        assert_eq!(known(Some(0), 0), (Some(LEAST), true));
        // A larger one does not count before the smaller one has expired.
        assert_eq!(known(Some(1000), 599_999), (Some(LEAST), true));
        assert_eq!(known(Some(1000), 600_000), (Some(1000), false));
        assert_eq!(known(Some(LEAST), 600_000), (Some(LEAST), false));
    }

    #[test]
    fn the_cache_is_bounded_and_drops_what_expires_first() {
        let mut mtus = PathMtus::new(LEAST);
        for n in 0..MOST as u32 + 5 {
            mtus.learn(Instant::from_millis(n.into()), Ipv4Addr::from(n), 1000);
        }
        assert_eq!(mtus.known.len(), MOST);
        let now = Instant::from_millis(9999);
        assert_eq!((mtus.of(now, Ipv4Addr::from(4)), mtus.of(now, Ipv4Addr::from(5))), (None, Some(1000)));
    }
}
