//! The value of the User Timeout Option (RFC 5482 §3.3).

use core::num::NonZeroU16;
use core::time::Duration;

/// The option's granularity bit: minutes, not seconds (§3.3).
const MINUTES: u16 = 1 << 15;

/// A user time-out as the option says it: 1 to 32 767 seconds or minutes (RFC 5482 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised(NonZeroU16);

impl Advertised {
    /// The time-out in whole seconds, or where those are too many in minutes; rounded up, at most
    /// 32 767 minutes.
    // RFC 5482 §3.3.
    pub fn new(time: Duration) -> Self {
        let seconds = time.as_nanos().div_ceil(1_000_000_000).max(1);
        let field = u16::try_from(seconds).ok().filter(|seconds| *seconds < MINUTES);
        let minutes =
            || MINUTES | u16::try_from(seconds.div_ceil(60)).map_or(MINUTES - 1, |n| n.min(MINUTES - 1));
        Self(NonZeroU16::new(field.unwrap_or_else(minutes)).unwrap_or(NonZeroU16::MIN))
    }

    /// The option's sixteen bits; `None` for a time of zero, which is reserved and means nothing (§3.4).
    // RFC 5482 §3.4.
    pub(crate) fn from_bits(bits: u16) -> Option<Self> {
        NonZeroU16::new(bits).filter(|bits| bits.get() & !MINUTES != 0).map(Self)
    }

    pub(crate) const fn bits(self) -> u16 {
        self.0.get()
    }

    /// What it stands for.
    pub const fn duration(self) -> Duration {
        let unit = if self.0.get() & MINUTES == 0 { 1 } else { 60 };
        Duration::from_secs((self.0.get() & !MINUTES) as u64 * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    // RFC 5482 §3.3.
    #[test]
    fn times_are_said_in_seconds_or_minutes_and_rounded_up() {
        let said = |time| (Advertised::new(time).bits(), Advertised::new(time).duration());
        assert_eq!(said(Duration::ZERO), (1, secs(1)));
        assert_eq!(said(Duration::from_millis(90_001)), (91, secs(91)));
        assert_eq!(said(secs(32_767)), (0x7fff, secs(32_767)));
        assert_eq!(said(secs(32_768)), (0x8000 | 547, secs(547 * 60)));
        assert_eq!(said(Duration::MAX), (0xffff, secs(32_767 * 60)));
    }

    // RFC 5482 §3.4.
    #[test]
    fn a_time_of_zero_is_reserved() {
        assert_eq!([0, 0x8000].map(Advertised::from_bits), [None, None]);
        assert_eq!(Advertised::from_bits(0x8002).map(Advertised::duration), Some(secs(120)));
    }
}
