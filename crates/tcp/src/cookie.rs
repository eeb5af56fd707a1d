//! SYN cookies (RFC 4987 §3.6): when the table of half-open connections is full, everything that
//! must be known of one is put into the sequence number of the SYN-ACK, signed, and comes back with
//! the peer's acknowledgement. A peer that sent a timestamp gets the options it offered into ours,
//! which it echoes; without one there are no options but the MSS. A cookie is good for one to two
//! minutes. It is not sent again when it is lost: the peer's SYN is.

use core::hash::Hash;

use silk_instant::Instant;

use crate::agree::{Agreed, syn_options};
use crate::config::Config;
use crate::ecn::Ecn;
use crate::isn::{IsnSecret, timestamp_offset};
use crate::listen::{Established, SynTable};
use crate::options::Options;
use crate::segment::{Flags, Header, Segment};
use crate::seq::SeqNumber;
use crate::stamps::Timestamps;

/// The MSS that a cookie can say, in three bits; the peer's is rounded down.
const MSS: [u16; 8] = [216, 536, 1220, 1300, 1400, 1440, 1460, 8960];
/// How long the counter in a cookie stands still, in ns, and for how many of them it is good.
const TICK: u64 = 64_000_000_000;
const GOOD_FOR: u32 = 2;

/// The low bits of a timestamp: the peer's window scale, and whether it offered SACK and ECN.
const STAMP_BITS: u32 = 6;
const SCALE: u32 = 0xf;
const NO_SCALE: u32 = 0xf;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;

fn tick(now: Instant) -> u32 {
    (now.nanos() / TICK) as u32
}

/// The part of a cookie that hides the counter, and the one that signs it.
fn masks<K: Hash>(secret: &IsnSecret, key: &K, irs: SeqNumber, tick: u32) -> (u32, u32) {
    let hidden = secret.hash(&("cookie", key)) as u32;
    let signature = secret.hash(&("signature", key, irs, tick)) as u32;
    (hidden.wrapping_add(irs.raw()), signature)
}

/// The cookie for a peer's SYN; none when its MSS is too small to be said.
fn bake<K: Hash>(secret: &IsnSecret, now: Instant, key: &K, irs: SeqNumber, mss: u16) -> Option<SeqNumber> {
    let index = MSS.iter().rposition(|said| *said <= mss)? as u32;
    let (hidden, signature) = masks(secret, key, irs, tick(now));
    let signed = signature.wrapping_add(index) & 0xff_ffff;
    Some(SeqNumber::new(hidden.wrapping_add(tick(now) << 24 | signed)))
}

/// The MSS that a cookie says, when it is one of ours and not too old.
fn taste<K: Hash>(
    secret: &IsnSecret,
    now: Instant,
    key: &K,
    irs: SeqNumber,
    cookie: SeqNumber,
) -> Option<u16> {
    let (hidden, _) = masks(secret, key, irs, 0);
    let plain = cookie.raw().wrapping_sub(hidden);
    let age = tick(now).wrapping_sub(plain >> 24) & 0xff;
    if age >= GOOD_FOR {
        return None;
    }
    let (_, signature) = masks(secret, key, irs, tick(now).wrapping_sub(age));
    let index = plain.wrapping_sub(signature) & 0xff_ffff;
    MSS.get(index as usize).copied()
}

/// A timestamp that says what was agreed: not later than `value`, and no more than 63 ticks before.
fn stamp(value: u32, agreed: &Agreed) -> u32 {
    let scale = agreed.shifts.map_or(NO_SCALE, |(peer, _)| u32::from(peer));
    let bits = scale | if agreed.sack { SACK } else { 0 } | if agreed.ecn { ECN } else { 0 };
    let stamped = value >> STAMP_BITS << STAMP_BITS | bits;
    if stamped > value { stamped.wrapping_sub(1 << STAMP_BITS) } else { stamped }
}

/// What an echoed timestamp says was agreed, as far as we would agree to it now.
fn agreed(config: &Config, peer_mss: u16, echo: Option<u32>) -> Agreed {
    let bits = echo.unwrap_or(NO_SCALE);
    let peer = (bits & SCALE != NO_SCALE && config.window_scaling).then_some((bits & SCALE) as u8);
    Agreed {
        peer_mss,
        shifts: peer.map(|peer| (peer, config.window_shift())),
        sack: config.sack && bits & SACK != 0,
        timestamps: echo.is_some(),
        ecn: config.ecn != Ecn::Off && bits & ECN != 0,
    }
}

impl<K: Hash + Eq + Copy> SynTable<K> {
    fn cookie_stamps(&self, now: Instant, key: &K, on: bool) -> Timestamps {
        Timestamps::new(on, timestamp_offset(self.secret.iss(now, key), now))
    }

    /// The SYN-ACK for a SYN that finds no room.
    // RFC 4987 §3.6, §3.7.
    pub(crate) fn bake(&mut self, now: Instant, key: &K, seg: &Segment) -> Option<Header> {
        let ecn = self.config.ecn.agrees_to_syn(seg.flags);
        let mut offered = Agreed::new(&syn_options(&self.config), &seg.options, ecn);
        if !offered.timestamps {
            (offered.shifts, offered.sack, offered.ecn) = (None, false, false);
        }
        let seq = bake(&self.secret, now, key, seg.seq, offered.peer_mss)?;
        let stamps = self.cookie_stamps(now, key, offered.timestamps);
        let echo = seg.options.timestamp.map_or(0, |(value, _)| value);
        let options = Options {
            timestamp: stamps.option(now).map(|(value, _)| (stamp(value, &offered), echo)),
            ..self.answer(&offered)
        };
        self.baked_at = Some(now);
        let flags = Flags::SYN | Flags::ACK | if offered.ecn { Flags::ECE } else { Flags::NONE };
        Some(Header { seq, ack: seg.seq + 1, flags, window: self.syn_window(), urgent: 0, options })
    }

    /// The connection whose handshake an acknowledgement completes, when that brings a cookie back.
    pub(crate) fn redeem(&self, now: Instant, key: &K, seg: &Segment) -> Option<Established> {
        let fresh = self.baked_at.is_some_and(|at| (now - at).as_nanos() < u128::from(TICK * 2));
        if !fresh || seg.flags.syn() || seg.flags.rst() {
            return None;
        }
        let (iss, irs) = (seg.ack - 1, seg.seq - 1);
        let peer_mss = taste(&self.secret, now, key, irs, iss)?;
        let stamp = seg.options.timestamp.filter(|_| self.config.timestamps);
        let agreed = agreed(&self.config, peer_mss, stamp.map(|(_, echo)| echo));
        let stamps = self.cookie_stamps(now, key, agreed.timestamps);
        Some(Established {
            iss,
            irs,
            window: u32::from(seg.window) << agreed.shifts.map_or(0, |(peer, _)| peer),
            stamp_offset: stamps.offset,
            stamp_recent: stamp.map_or(0, |(value, _)| value),
            agreed,
            round_trip: None,
            // Up to 63 ms too long, which is better than none.
            echoed: stamp.and_then(|(_, echo)| stamps.round_trip(now, echo)),
            answered_again: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::time::Duration;

    const SECRET: IsnSecret = IsnSecret::new([1, 2]);
    const NOW: Instant = Instant::from_millis(1_000_000);
    const IRS: SeqNumber = SeqNumber::new(77);

    fn everything(peer_shift: u8) -> Agreed {
        Agreed { peer_mss: 1460, shifts: Some((peer_shift, 7)), sack: true, timestamps: true, ecn: true }
    }

    #[test]
    fn the_mss_comes_back_rounded_down() {
        let said = |mss| {
            let cookie = bake(&SECRET, NOW, &5u8, IRS, mss)?;
            taste(&SECRET, NOW, &5u8, IRS, cookie)
        };
        let seen = [100, 216, 600, 1459, 1460, 9000].map(said);
        assert_eq!(seen, [None, Some(216), Some(536), Some(1440), Some(1460), Some(8960)]);
    }

    #[test]
    fn a_cookie_is_good_for_its_own_peer_and_a_minute_or_two() {
        let cookie = bake(&SECRET, NOW, &5u8, IRS, 1460).unwrap();
        let good = |key: u8, irs, seconds| {
            taste(&SECRET, NOW + Duration::from_secs(seconds), &key, irs, cookie).is_some()
        };
        assert!(good(5, IRS, 0) && good(5, IRS, 64));
        assert!(!good(5, IRS, 128) && !good(6, IRS, 0) && !good(5, IRS + 1, 0));
        assert!(taste(&IsnSecret::new([1, 3]), NOW, &5u8, IRS, cookie).is_none());
    }

    #[test]
    fn guessing_one_is_as_hard_as_its_bits() {
        let cookie = bake(&SECRET, NOW, &5u8, IRS, 1460).unwrap();
        let hits: Vec<u32> =
            (0..100_000).filter(|n| taste(&SECRET, NOW, &5u8, IRS, cookie + n * 8 + 8).is_some()).collect();
        assert_eq!(hits, []);
    }

    #[test]
    fn a_timestamp_says_what_was_agreed_and_is_never_late() {
        for value in [0x1000, 0x103f, 0x1037, 63] {
            let stamped = stamp(value, &everything(9));
            assert!(value.wrapping_sub(stamped) < 64, "{value:x}");
            let config = Config::default();
            assert_eq!(agreed(&config, 1460, Some(stamped)), everything(9));
        }
        let nothing = Agreed { shifts: None, sack: false, ecn: false, ..everything(0) };
        assert_eq!(agreed(&Config::default(), 1460, Some(stamp(5_000, &nothing))), nothing);
    }

    #[test]
    fn without_an_echo_nothing_but_the_mss_is_known() {
        let nothing = Agreed { peer_mss: 536, shifts: None, sack: false, timestamps: false, ecn: false };
        assert_eq!(agreed(&Config::default(), 536, None), nothing);
    }
}
