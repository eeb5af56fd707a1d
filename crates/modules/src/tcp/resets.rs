//! How many resets may be sent for segments that belong to no connection (RFC 9293 §3.10.7.1).
//! A flood of such segments would otherwise be answered one for one, which costs us as much as
//! receiving it, and whoever's address its sender has forged. A peer that gets no reset tries
//! again, or times out. FreeBSD does the same (`net.inet.icmp.icmplim`).

use core::time::Duration;
use silk_instant::Instant;

/// As many resets may be sent in one [`PERIOD`]: far above what mistaken peers ask for.
const ALLOWED: u16 = 1000;
const PERIOD: Duration = Duration::from_secs(1);

/// A budget of resets, one for each domain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resets {
    since: Instant,
    sent: u16,
}

impl Resets {
    /// Whether another may be sent now; it then counts as sent.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        if now - self.since >= PERIOD {
            *self = Self { since: now, sent: 0 };
        }
        let allowed = self.sent < ALLOWED;
        self.sent += u16::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_in_a_second_and_then_a_thousand_more() {
        let mut resets = Resets::default();
        let count = |resets: &mut Resets, now| (0..5000).filter(|_| resets.allow(now)).count();
        assert_eq!(count(&mut resets, Instant::from_millis(1000)), 1000);
        assert_eq!(count(&mut resets, Instant::from_millis(1999)), 0);
        assert_eq!(count(&mut resets, Instant::from_millis(2000)), 1000);
    }
}
