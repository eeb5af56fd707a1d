//! How many are sent of what strangers make us send: ICMP must never be what an attacker sends through us (RFC 1122
//! §3.2.2, RFC 4443 §2.4 f), nor questions for neighbours.

use silk_instant::Instant;

/// A bucket of tokens: how many may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    // In a second, and at once.
    rate: u64,
    burst: u64,
    // What may be sent now, in nanoseconds' worth.
    credit: u64,
    last: Instant,
}

impl Limit {
    /// At most `rate` errors in a second, 50 at once.
    pub fn new(rate: u32) -> Self {
        Self::bursting(rate, 50)
    }

    /// At most `rate` in a second, `burst` at once.
    pub fn bursting(rate: u32, burst: u32) -> Self {
        Self { rate: rate.into(), burst: burst.into(), credit: u64::MAX, last: Instant::ZERO }
    }

    /// Takes a token, when there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(cost) = 1_000_000_000u64.checked_div(self.rate) else { return false };
        let earned = now.since(self.last).as_nanos() as u64;
        self.last = now;
        self.credit = self.credit.saturating_add(earned).min(self.burst.saturating_mul(cost));
        let paid = self.credit >= cost;
        self.credit -= if paid { cost } else { 0 };
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_limited_in_a_second_and_at_once() {
        let mut limit = Limit::new(100);
        let taken =
            |limit: &mut Limit, at: u64| (0..1000).filter(|_| limit.take(Instant::from_millis(at))).count();
        assert_eq!(taken(&mut limit, 0), 50);
        assert_eq!(taken(&mut limit, 100), 10);
        assert_eq!(taken(&mut limit, 60_000), 50);
        assert_eq!(taken(&mut Limit::new(0), 0), 0);
    }
}
