//! Challenge acknowledgements and their limit (RFC 5961 §7). The limit is each connection's own: a
//! limit shared between connections would tell an attacker of one about another (CVE-2016-5696).

use silk_instant::Instant;

/// As many challenges may be sent in one `PERIOD`, in seconds.
const ALLOWED: u8 = 10;
const PERIOD: u32 = 5;

/// A budget of challenge acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Challenges {
    /// The second in which the period began.
    since: u32,
    sent: u8,
}

impl Challenges {
    pub(crate) const fn new() -> Self {
        Self { since: 0, sent: 0 }
    }

    /// Whether another may be sent now; it then counts as sent.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        let second = (now.nanos() / 1_000_000_000) as u32;
        if second.wrapping_sub(self.since) >= PERIOD {
            *self = Self { since: second, sent: 0 };
        }
        let allowed = self.sent < ALLOWED;
        self.sent += u8::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_five_seconds_and_then_ten_more() {
        let mut challenges = Challenges::new();
        let count = |challenges: &mut Challenges, now| (0..50).filter(|_| challenges.allow(now)).count();
        assert_eq!(count(&mut challenges, Instant::from_millis(1)), 10);
        assert_eq!(count(&mut challenges, Instant::from_millis(4_999)), 0);
        assert_eq!(count(&mut challenges, Instant::from_millis(5_000)), 10);
    }
}
