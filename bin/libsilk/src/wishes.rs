//! The options that few programs set, of TCP and of IP: each is checked as Linux checks it, kept
//! as a word of the socket's wishes ([`silk_stream::wish`]), and read back as Linux would tell it.

use crate::errno::Answer;
use crate::family;
use crate::settings::{Settings, flag};
use crate::socket::{Role, Socket, shape};
use silk_stream::{Slot, Usual, wish};
use std::ffi::c_int;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// `TCP_CA_NAME_MAX` of Linux.
const NAME: usize = 16;
/// Linux's bounds of `TCP_MAXSEG`, `TCP_LINGER2` and `TCP_SYNCNT`.
const LEAST_SEGMENT: c_int = 88;
const MOST_SEGMENT: c_int = 32_767;
const LONGEST_LINGER: c_int = 120;
const MOST_SYNS: c_int = 127;
/// The time to live of packets that nobody wished otherwise for.
const USUAL_TTL: c_int = 64;
/// That of packets to groups.
const USUAL_GROUP_TTL: c_int = 1;

/// The algorithms of the daemon, by their numbers (`silk_tcp::Algorithm`).
const ALGORITHMS: [&[u8]; 3] = [b"cubic", b"reno", b"bbr"];

/// The word of a wish that is a number; `None` for other options.
pub fn place(level: c_int, name: c_int) -> Option<usize> {
    Some(match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => wish::USER_TIMEOUT,
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => wish::SYN_RETRIES,
        (libc::IPPROTO_TCP, libc::TCP_LINGER2) => wish::LINGER,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => wish::MAX_SEGMENT,
        (libc::IPPROTO_TCP, libc::TCP_QUICKACK) => wish::QUICK_ACK,
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT) => wish::NOT_SENT,
        (libc::IPPROTO_IP, libc::IP_TTL) => wish::TTL,
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) => wish::DISCOVERY,
        (libc::IPPROTO_IP, libc::IP_RECVERR) => wish::SOFT_ERRORS,
        (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL) => wish::GROUP_TTL,
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => wish::SOFT_ERRORS6,
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => wish::DISCOVERY6,
        (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => wish::HOPS,
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS) => wish::GROUP_HOPS,
        _ => return None,
    })
}

/// The word that `number` becomes.
///
/// # Errors
/// `EINVAL` where Linux would say so.
pub fn word(place: usize, number: c_int) -> Answer<u32> {
    let within = |low: c_int, high: c_int| {
        let fits = (low..=high).contains(&number);
        fits.then_some(number.unsigned_abs()).ok_or(libc::EINVAL)
    };
    match place {
        wish::USER_TIMEOUT => within(0, c_int::MAX),
        wish::SYN_RETRIES => within(1, MOST_SYNS),
        wish::LINGER if number < 0 => Ok(1),
        wish::LINGER if number == 0 => Ok(0),
        wish::LINGER => Ok(number.min(LONGEST_LINGER).unsigned_abs() + 1),
        wish::MAX_SEGMENT if number == 0 => Ok(0),
        wish::MAX_SEGMENT => within(LEAST_SEGMENT, MOST_SEGMENT),
        wish::QUICK_ACK | wish::SOFT_ERRORS | wish::SOFT_ERRORS6 => Ok(match (place, number != 0) {
            (wish::QUICK_ACK, on) => 1 + u32::from(on),
            (_, on) => u32::from(on),
        }),
        wish::TTL | wish::HOPS | wish::GROUP_TTL | wish::GROUP_HOPS if number == -1 => Ok(0),
        wish::HOPS | wish::GROUP_TTL | wish::GROUP_HOPS => within(0, 255).map(|word| word + 1),
        wish::TTL => within(1, 255),
        wish::DISCOVERY | wish::DISCOVERY6 => {
            within(libc::IP_PMTUDISC_DO - 2, libc::IP_PMTUDISC_PROBE + 2).map(|word| word + 1)
        }
        _ => Ok(number.cast_unsigned()),
    }
}

/// What a program is told that has set `word`, or nothing (0).
pub fn number(place: usize, word: u32, usual: Option<&Usual>) -> c_int {
    let signed = |n: u32| c_int::try_from(n).unwrap_or(c_int::MAX);
    let or = |usual: c_int| if word == 0 { usual } else { signed(word) };
    let configured =
        |pick: fn(&Usual) -> &AtomicU32| usual.map_or(0, |usual| signed(pick(usual).load(Relaxed)));
    match (place, word) {
        (wish::SYN_RETRIES, _) => or(configured(|usual| &usual.syn_retries)),
        (wish::LINGER, 0) => configured(|usual| &usual.linger),
        (wish::LINGER, 1) => -1,
        (wish::LINGER, _) => signed(word - 1),
        // As with Linux, whose sockets begin with quick acknowledgements.
        (wish::QUICK_ACK, _) => c_int::from(word != 1),
        (wish::TTL, _) => or(USUAL_TTL),
        (wish::HOPS, 0) => USUAL_TTL,
        (wish::GROUP_TTL | wish::GROUP_HOPS, 0) => USUAL_GROUP_TTL,
        (wish::DISCOVERY | wish::DISCOVERY6, 0) => libc::IP_PMTUDISC_WANT,
        (wish::HOPS | wish::GROUP_TTL | wish::GROUP_HOPS | wish::DISCOVERY | wish::DISCOVERY6, _) => {
            signed(word - 1)
        }
        _ => word.cast_signed(),
    }
}

/// `TCP_CONGESTION`: remembers the algorithm of this name, which ends at a zero or where the
/// value does.
///
/// # Errors
/// `ENOENT` when there is none; `EINVAL` for no name at all.
pub fn set_congestion(settings: &Settings, name: &[u8]) -> Answer<()> {
    if name.is_empty() {
        return Err(libc::EINVAL);
    }
    let name = name.get(..NAME - 1).unwrap_or(name);
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let number = ALGORITHMS.iter().position(|known| *known == name).ok_or(libc::ENOENT)?;
    settings.wishes[wish::CONGESTION].store(number as u32 + 1, Relaxed);
    Ok(())
}

/// The name of a socket's congestion control, with zeroes up to Linux's length: what the
/// connection has; before there is one what was wished, or the daemon's default.
pub fn congestion(socket: &Socket, slot: Option<&Slot>) -> [u8; NAME] {
    let wished = socket.settings.wishes[wish::CONGESTION].load(Relaxed);
    let has = slot.filter(|_| socket.role() == Role::Stream).map_or(0, |slot| slot.congestion.load(Relaxed));
    // What was just wished the daemon may not have seen yet.
    let number = [wished, has].into_iter().find_map(|word| word.checked_sub(1));
    let number = number.or_else(|| Some(usual()?.congestion.load(Relaxed))).unwrap_or(0);
    let mut name = [0; NAME];
    let known = ALGORITHMS.get(number as usize).copied().unwrap_or_default();
    name.iter_mut().zip(known).for_each(|(to, from)| *to = *from);
    name
}

/// `SO_MAX_PACING_RATE`: remembers a rate in bytes per second.
pub fn set_pacing_rate(settings: &Settings, rate: u64) {
    let inverted = !rate;
    settings.wishes[wish::PACING_LOW].store(inverted as u32, Relaxed);
    settings.wishes[wish::PACING_HIGH].store((inverted >> 32) as u32, Relaxed);
}

/// The rate; `u64::MAX` for none.
pub fn pacing_rate(settings: &Settings) -> u64 {
    let [low, high] = [wish::PACING_LOW, wish::PACING_HIGH]
        .map(|at| settings.wishes.get(at).map_or(0, |cell| cell.load(Relaxed)));
    !(u64::from(high) << 32 | u64::from(low))
}

/// Bytes of the headers of IP and UDP.
pub fn headers(v6: bool) -> usize {
    if v6 { 48 } else { 28 }
}

/// The most bytes of IP that a datagram of this socket may be (`IP_MTU_DISCOVER`): what the path takes
/// as far as it is known, or the link, where nobody may cut it up; else anything.
pub fn most_of_packet(socket: &Socket, slot: &Slot, v6: bool, whole: bool) -> usize {
    if socket.is(shape::SCOUT) {
        return usize::MAX;
    }
    let place = if v6 { wish::DISCOVERY6 } else { wish::DISCOVERY };
    let wished = socket.settings.wish(place).checked_sub(1).map(u32::cast_signed);
    match wished {
        Some(libc::IP_PMTUDISC_PROBE | INTERFACE) => link_mtu(),
        Some(libc::IP_PMTUDISC_DO) => path_mtu(socket, slot),
        _ if whole || v6 && socket.settings.has_flag(flag::WHOLE6) => path_mtu(socket, slot),
        _ => usize::MAX,
    }
}

/// `IP_PMTUDISC_INTERFACE`.
const INTERFACE: c_int = 4;

/// The MTU of the way to a connected socket's peer, as far as it is known.
pub fn path_mtu(socket: &Socket, slot: &Slot) -> usize {
    let known = slot.path_mtu.load(Relaxed);
    if known > 0 && socket.is(shape::CONNECTED) { link_mtu().min(known as usize) } else { link_mtu() }
}

fn link_mtu() -> usize {
    usual().map(|usual| usual.mtu.load(Relaxed) as usize).filter(|mtu| *mtu > 0).unwrap_or(usize::MAX)
}

/// What the daemon gives to sockets that wish nothing.
pub fn usual() -> Option<&'static Usual> {
    family::joined().map(|family| &family.arena.header().usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a number that was set.
    fn told(place: usize, number_set: c_int) -> Answer<c_int> {
        word(place, number_set).map(|word| number(place, word, None))
    }

    #[test]
    fn what_is_set_is_told_within_linuxs_bounds() {
        assert_eq!([told(wish::USER_TIMEOUT, 5), told(wish::USER_TIMEOUT, -1)], [Ok(5), Err(libc::EINVAL)]);
        assert_eq!([told(wish::SYN_RETRIES, 0), told(wish::SYN_RETRIES, 127)], [Err(libc::EINVAL), Ok(127)]);
        assert_eq!([-5, 1, 120, 121].map(|n| told(wish::LINGER, n)), [Ok(-1), Ok(1), Ok(120), Ok(120)]);
        assert_eq!(
            [0, 87, 88, 32_768].map(|n| told(wish::MAX_SEGMENT, n).is_ok()),
            [true, false, true, false]
        );
        assert_eq!([-1, 0, 1, 256].map(|n| told(wish::TTL, n).ok()), [Some(64), None, Some(1), None]);
        assert_eq!(
            [-1, 0, 3, 5, 6].map(|n| told(wish::DISCOVERY, n).ok()),
            [None, Some(0), Some(3), Some(5), None]
        );
        assert_eq!([0, 7].map(|n| told(wish::QUICK_ACK, n)), [Ok(0), Ok(1)]);
        assert_eq!(told(wish::NOT_SENT, -1), Ok(-1));
    }

    #[test]
    fn what_was_never_set_is_linuxs_default() {
        let usual = Usual::default();
        usual.syn_retries.store(6, Relaxed);
        usual.linger.store(60, Relaxed);
        let all =
            [wish::SYN_RETRIES, wish::LINGER, wish::QUICK_ACK, wish::TTL, wish::DISCOVERY, wish::NOT_SENT];
        assert_eq!(all.map(|place| number(place, 0, Some(&usual))), [6, 60, 1, 64, 1, 0]);
    }

    #[test]
    fn an_algorithm_is_known_by_its_name() {
        let settings = Settings::new();
        let set = |name: &[u8]| set_congestion(&settings, name);
        assert_eq!(
            [set(b"reno"), set(b"bbr\0junk"), set(b"cubik"), set(b"")],
            [Ok(()), Ok(()), Err(libc::ENOENT), Err(libc::EINVAL)]
        );
        assert_eq!(settings.wishes[wish::CONGESTION].load(Relaxed), 3);
    }

    #[test]
    fn no_pacing_rate_is_the_largest() {
        let settings = Settings::new();
        assert_eq!(pacing_rate(&settings), u64::MAX);
        for rate in [0, 1, 1 << 40] {
            set_pacing_rate(&settings, rate);
            assert_eq!(pacing_rate(&settings), rate);
        }
    }
}
