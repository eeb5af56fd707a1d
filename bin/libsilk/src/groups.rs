//! Groups that a datagram socket joins and leaves: `IP_ADD_MEMBERSHIP`, `IPV6_JOIN_GROUP`,
//! `MCAST_JOIN_GROUP` and their opposites. The daemon lets packets to the group come; where Linux shares
//! the interface, the socket's descriptor of Linux's joins too, so that Linux tells routers of it, and
//! leaves when the last copy of it is closed.

use crate::address;
use crate::errno::{Answer, check};
use crate::family;
use crate::real;
use crate::socket::{Socket, shape};
use crate::wishes;
use libc::socklen_t;
use silk_control::{Reply, Request};
use silk_stream::SharedAddress;
use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// `MCAST_JOIN_GROUP` and `MCAST_LEAVE_GROUP`.
const JOIN: c_int = 42;
const LEAVE: c_int = 45;
/// `IPV6_JOIN_GROUP` and `IPV6_LEAVE_GROUP`.
const JOIN6: c_int = 20;
const LEAVE6: c_int = 21;
/// Where the group's address stands in Linux's `struct group_req`.
const GROUP_AT: usize = 8;

/// What a program asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    group: IpAddr,
    // An address of the interface, and its number.
    at: (Option<IpAddr>, u32),
    join: bool,
}

/// Reads what a program asks; `None`: the option is no such.
///
/// # Errors
/// `EINVAL` for a value that is too short, `EFAULT` for none.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn read(
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Option<Answer<Membership>> {
    let join = match (level, name) {
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP) | (libc::IPPROTO_IPV6, JOIN6) => true,
        (libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP) | (libc::IPPROTO_IPV6, LEAVE6) => false,
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, JOIN) => true,
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, LEAVE) => false,
        _ => return None,
    };
    if value.is_null() {
        return Some(Err(libc::EFAULT));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len as usize) };
    Some(parse(level, name, bytes).map(|(group, at)| Membership { group, at, join }).ok_or(libc::EINVAL))
}

type Where = (Option<IpAddr>, u32);

fn parse(level: c_int, name: c_int, bytes: &[u8]) -> Option<(IpAddr, Where)> {
    let four = |at: usize| Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    if matches!(name, JOIN | LEAVE) {
        let sockaddr = bytes.get(GROUP_AT..)?;
        // SAFETY: so many bytes are there.
        let group = unsafe { address::parse(sockaddr.as_ptr().cast(), sockaddr.len() as socklen_t) }.ok()?;
        let fits = group.is_ipv6() == (level == libc::IPPROTO_IPV6);
        return Some((group.ip(), (None, number(0)?))).filter(|_| fits);
    }
    if level == libc::IPPROTO_IPV6 {
        let group = Ipv6Addr::from(*bytes.first_chunk::<16>()?);
        return Some((group.into(), (None, number(16)?)));
    }
    // `struct ip_mreq`, or with the interface's number behind it `struct ip_mreqn`.
    let at = four(4)?;
    let index = number(8).unwrap_or(0);
    Some((four(0)?.into(), (Some(at.into()).filter(|_| !at.is_unspecified()), index)))
}

/// Joins or leaves, with a socket that silk serves. `None`: it is for another interface, and Linux's.
///
/// # Errors
/// As Linux.
pub fn change(socket: &Socket, fd: c_int, asked: Membership) -> Answer<Option<()>> {
    if !socket.is(shape::DATAGRAM) || socket.is(shape::SCOUT) {
        return Err(libc::ENOPROTOOPT);
    }
    let tell = |asked: Membership| {
        let Membership { group, at, join } = asked;
        family::ask(&Request::Group { slot: socket.name().0, group, at, join }, &[])
    };
    if tell(asked)? == Reply::NotOurs {
        return Ok(None);
    }
    if let Err(errno) = in_linux(fd, &asked) {
        // Neither has it then; what comes of taking it back is of no use to anybody.
        let _ = tell(Membership { join: !asked.join, ..asked });
        return Err(errno);
    }
    Ok(Some(()))
}

/// The same with the socket's descriptor of Linux's, on the interface of silk's that the program named, or its
/// first, where they share it.
fn in_linux(fd: c_int, asked: &Membership) -> Answer<()> {
    let interface = wishes::usual().map_or(0, |usual| usual.interface());
    if interface == 0 {
        return Ok(());
    }
    let (by_address, number) = asked.at;
    let interface = if number == 0 { interface } else { number };
    let mut value = [0; 20];
    let (level, name, len) = match asked.group {
        IpAddr::V4(group) => {
            value[..4].copy_from_slice(&group.octets());
            match by_address {
                Some(IpAddr::V4(at)) if number == 0 && !at.is_unspecified() => {
                    value[4..8].copy_from_slice(&at.octets());
                }
                _ => value[8..12].copy_from_slice(&interface.to_ne_bytes()),
            }
            let name = if asked.join { libc::IP_ADD_MEMBERSHIP } else { libc::IP_DROP_MEMBERSHIP };
            (libc::IPPROTO_IP, name, 12)
        }
        IpAddr::V6(group) => {
            value[..16].copy_from_slice(&group.octets());
            value[16..].copy_from_slice(&interface.to_ne_bytes());
            (libc::IPPROTO_IPV6, if asked.join { JOIN6 } else { LEAVE6 }, 20)
        }
    };
    // SAFETY: the value has at least `len` bytes.
    check(unsafe { real::setsockopt(fd, level, name, value.as_ptr().cast(), len) }).map(drop)
}

/// Whether silk's interface is its own, and not one that Linux has too.
pub fn is_interface_silks_own() -> bool {
    family::join().is_ok() && wishes::usual().is_some_and(|usual| usual.interface() == 0)
}

/// Groups that are remembered of a socket before it is decided who serves it.
const EARLY: usize = 4;

/// The groups that a socket has joined before it was decided who serves it: Linux's descriptor has joined
/// them already.
pub struct Early([SharedAddress; EARLY]);

impl Early {
    /// None.
    pub const fn new() -> Self {
        Self(
            [const {
                let ip = [const { AtomicU64::new(0) }; 2];
                SharedAddress { ip, port: AtomicU32::new(0), scope: AtomicU32::new(0) }
            }; EARLY],
        )
    }

    /// Remembers what was asked; `false`: there is no room.
    pub fn note(&self, asked: Membership) -> bool {
        let is = |place: &&SharedAddress| address::shared(place).ip() == asked.group;
        if let Some(place) = self.0.iter().find(is) {
            if !asked.join {
                store(place, Ipv6Addr::UNSPECIFIED, 0);
            }
            return true;
        }
        if !asked.join {
            return false;
        }
        let free =
            self.0.iter().find(|place| place.ip[1].load(Relaxed) == 0 && place.ip[0].load(Relaxed) == 0);
        let group = match asked.group {
            IpAddr::V4(group) => group.to_ipv6_mapped(),
            IpAddr::V6(group) => group,
        };
        free.map(|place| store(place, group, asked.at.1)).is_some()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.iter().for_each(|place| store(place, Ipv6Addr::UNSPECIFIED, 0));
    }

    /// Takes them to the daemon, now that it serves the socket. What it refuses is Linux's alone.
    pub fn tell(&self, socket: &Socket) {
        for place in &self.0 {
            let group = address::shared(place).ip();
            if group.is_multicast() {
                let at = (None, place.scope.load(Relaxed));
                let _ = family::ask(&Request::Group { slot: socket.name().0, group, at, join: true }, &[]);
                store(place, Ipv6Addr::UNSPECIFIED, 0);
            }
        }
    }
}

fn store(place: &SharedAddress, group: Ipv6Addr, interface: u32) {
    place.ip[0].store((group.to_bits() >> 64) as u64, Relaxed);
    place.ip[1].store(group.to_bits() as u64, Relaxed);
    place.scope.store(interface, Relaxed);
}

/// Whether everyone on the link is meant, for which a program must ask (`SO_BROADCAST`).
pub fn is_broadcast(to: SocketAddr) -> bool {
    let IpAddr::V4(to) = to.ip() else { return false };
    let network = || {
        let usual = wishes::usual()?;
        Some(usual.broadcasts.iter().any(|known| known.load(Relaxed) == u32::from(to)))
    };
    to.is_broadcast() || (!to.is_unspecified() && network().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    #[test]
    fn every_form_names_group_and_interface() {
        let parse = |level, name, bytes: &[u8]| parse(level, name, bytes);
        let mut old = vec![239, 1, 2, 3, 10, 0, 0, 1];
        let add = libc::IP_ADD_MEMBERSHIP;
        let group = ip("239.1.2.3");
        assert_eq!(parse(libc::IPPROTO_IP, add, &old), Some((group, (Some(ip("10.0.0.1")), 0))));
        old.extend(7u32.to_ne_bytes());
        assert_eq!(parse(libc::IPPROTO_IP, add, &old), Some((group, (Some(ip("10.0.0.1")), 7))));
        assert_eq!(parse(libc::IPPROTO_IP, add, &old[..7]), None);
        let six = [&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 9).octets()[..], &2u32.to_ne_bytes()].concat();
        assert_eq!(parse(libc::IPPROTO_IPV6, JOIN6, &six), Some((ip("ff02::9"), (None, 2))));
        let sockaddr = address::bytes(SocketAddr::new(group, 0), false).0;
        let new = [&3u32.to_ne_bytes()[..], &[0; 4], &sockaddr].concat();
        assert_eq!(parse(libc::IPPROTO_IP, JOIN, &new), Some((group, (None, 3))));
        assert_eq!(parse(libc::IPPROTO_IPV6, JOIN, &new), None);
    }

    #[test]
    fn what_was_joined_early_is_remembered_until_it_is_left() {
        let early = Early::new();
        let asked = |n, join| Membership { group: IpAddr::from([239, 0, 0, n]), at: (None, 0), join };
        assert!((0..4).all(|n| early.note(asked(n, true))));
        assert!(!early.note(asked(9, true)) && !early.note(asked(9, false)));
        assert!(early.note(asked(1, false)) && early.note(asked(9, true)));
    }
}
