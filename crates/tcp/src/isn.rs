//! Initial sequence numbers (RFC 6528 §3): a clock of 4 µs plus a keyed hash of the connection's
//! addresses and ports, so that nobody outside can guess them and a new incarnation still comes
//! after the old. The secret comes from the caller, once, from good randomness.

use core::hash::{Hash, Hasher};

use silk_instant::Instant;

use crate::seq::SeqNumber;
use crate::siphash::SipHasher;

/// The secret key of a machine's initial sequence numbers.
#[derive(Clone, Copy)]
pub struct IsnSecret([u64; 2]);

impl IsnSecret {
    /// The secret; 128 random bits.
    pub const fn new(key: [u64; 2]) -> Self {
        Self(key)
    }

    /// ISN = M + F(localip, localport, remoteip, remoteport, secret).
    // RFC 9293 MUST-8, MUST-9, SHLD-1; RFC 6528 §3.
    pub fn iss<K: Hash>(&self, now: Instant, four_tuple: &K) -> SeqNumber {
        SeqNumber::new(clock(now).wrapping_add(self.hash(four_tuple) as u32))
    }

    /// A keyed hash of anything, for tables of this machine.
    pub fn hash<K: Hash>(&self, key: &K) -> u64 {
        let mut hasher = SipHasher::new(self.0);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl core::fmt::Debug for IsnSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("IsnSecret(..)")
    }
}

/// M: ticks of 4 µs, modulo 2³².
fn clock(now: Instant) -> u32 {
    (now.nanos() / 4_000) as u32
}

/// The offset of a connection's timestamp clock (RFC 7323 §7.1): as unpredictable as its ISN, and
/// the same for every incarnation with the same addresses and ports, so that timestamps go on
/// growing from one to the next (RFC 6191 relies on it).
pub(crate) fn timestamp_offset(iss: SeqNumber, now: Instant) -> u32 {
    let tuple_hash = iss.raw().wrapping_sub(clock(now));
    // A fixed permutation, so that the timestamp does not show the hash that the ISN is made of.
    let mut hasher = SipHasher::new([0x7469_6d65_7374_616d, 0x7073_206f_6666_7365]);
    hasher.write_u32(tuple_hash);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: IsnSecret = IsnSecret::new([1, 2]);

    // RFC 9293 MUST-8.
    #[test]
    fn numbers_of_one_tuple_follow_the_clock() {
        let first = SECRET.iss(Instant::ZERO, &(1, 2));
        let later = SECRET.iss(Instant::from_millis(1_000), &(1, 2));
        assert_eq!(later - first, 250_000);
    }

    // RFC 9293 MUST-9, SHLD-1; RFC 6528 §3.
    #[test]
    fn numbers_of_different_tuples_and_secrets_are_unrelated() {
        let iss = |secret: IsnSecret, tuple| secret.iss(Instant::ZERO, &tuple);
        assert_ne!(iss(SECRET, (1, 2)), iss(SECRET, (1, 3)));
        assert_ne!(iss(SECRET, (1, 2)), iss(IsnSecret::new([1, 3]), (1, 2)));
    }

    // RFC 7323 §7.1.
    #[test]
    fn the_timestamp_offset_is_the_tuples_own_at_any_time() {
        let at = |millis, tuple: (u8, u8)| {
            let now = Instant::from_millis(millis);
            timestamp_offset(SECRET.iss(now, &tuple), now)
        };
        assert_eq!(at(0, (1, 2)), at(777, (1, 2)));
        assert_ne!(at(0, (1, 2)), at(0, (1, 3)));
    }

    #[test]
    fn the_secret_does_not_print() {
        assert_eq!(alloc::format!("{SECRET:?}"), "IsnSecret(..)");
    }
}
