//! Path MTUs (RFC 1191): what routers said about destinations, for a while. Bounded; a forged
//! report can make packets small, but never absurdly so.

use alloc::collections::BTreeMap;
use core::net::Ipv4Addr;
use core::time::Duration;
use silk_instant::Instant;

/// No path is taken to be narrower: below, a report is an attack rather than a link.
pub(crate) const LEAST: u16 = 552;
/// How long a report counts (RFC 1191 §6.3).
const LIFE: Duration = Duration::from_secs(600);
/// Destinations kept.
const MOST: usize = 1024;

/// What is known of destinations.
#[derive(Default)]
pub(crate) struct PathMtus(BTreeMap<Ipv4Addr, (u16, Instant)>);

impl PathMtus {
    /// Takes a report in; answers what is to be believed.
    pub fn learn(&mut self, now: Instant, destination: Ipv4Addr, mtu: u16) -> u16 {
        let mtu = mtu.max(LEAST);
        if self.0.len() >= MOST && !self.0.contains_key(&destination) {
            self.make_room(now);
        }
        self.0.insert(destination, (mtu, now + LIFE));
        mtu
    }

    /// The path MTU to `destination`, where a router said one.
    pub fn of(&self, now: Instant, destination: Ipv4Addr) -> Option<u16> {
        self.0.get(&destination).filter(|(_, until)| *until > now).map(|(mtu, _)| *mtu)
    }

    /// Drops what has expired, and when that is nothing, the entry that expires first.
    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, (_, until)| *until > now);
        if self.0.len() >= MOST
            && let Some(first) = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(to, _)| *to)
        {
            self.0.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_for_ten_minutes_and_has_a_floor() {
        let (mut mtus, there) = (PathMtus::default(), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(mtus.learn(Instant::ZERO, there, 1400), 1400);
        assert_eq!(mtus.of(Instant::from_millis(599_999), there), Some(1400));
        assert_eq!(mtus.of(Instant::from_millis(600_000), there), None);
        assert_eq!(mtus.learn(Instant::ZERO, there, 0), LEAST);
    }

    #[test]
    fn the_cache_is_bounded_and_drops_what_expires_first() {
        let mut mtus = PathMtus::default();
        for n in 0..MOST as u32 + 5 {
            mtus.learn(Instant::from_millis(n.into()), Ipv4Addr::from(n), 1000);
        }
        assert_eq!(mtus.0.len(), MOST);
        let now = Instant::from_millis(9999);
        assert_eq!((mtus.of(now, Ipv4Addr::from(4)), mtus.of(now, Ipv4Addr::from(5))), (None, Some(1000)));
    }
}
