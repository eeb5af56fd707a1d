//! Groups that a datagram socket joins and leaves, and sources of theirs that it chooses (RFC 3678):
//! `IP_ADD_MEMBERSHIP`, `IPV6_JOIN_GROUP`, `MCAST_JOIN_GROUP`, `IP_ADD_SOURCE_MEMBERSHIP`,
//! `MCAST_JOIN_SOURCE_GROUP`, `IP_BLOCK_SOURCE`, `MCAST_BLOCK_SOURCE` and their opposites. The daemon lets
//! packets to the group come; where Linux shares
//! the interface, the socket's descriptor of Linux's joins too, so that Linux tells routers of it, and
//! leaves when the last copy of it is closed.

mod call;
pub mod early;
mod in_linux;
mod leaving_by;

use crate::address;
use crate::errno::Answer;
use crate::family;
use crate::naming_turn::NamingTurn;
use crate::socket::{Socket, shape};
use crate::wishes;
use libc::socklen_t;
use silk_control::{Membership, Reply, Request};
use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

use call::Call;
use in_linux::in_linux;
pub use leaving_by::{link, names_link};

/// `MCAST_JOIN_GROUP` and `MCAST_LEAVE_GROUP`.
const JOIN: c_int = 42;
const LEAVE: c_int = 45;
/// `MCAST_BLOCK_SOURCE`, `MCAST_UNBLOCK_SOURCE`, `MCAST_JOIN_SOURCE_GROUP`, `MCAST_LEAVE_SOURCE_GROUP`.
const BLOCK: c_int = 43;
const UNBLOCK: c_int = 44;
const ADD: c_int = 46;
const DROP: c_int = 47;
/// `IPV6_JOIN_GROUP` and `IPV6_LEAVE_GROUP`.
const JOIN6: c_int = 20;
const LEAVE6: c_int = 21;
/// Where the group's address stands in Linux's `struct group_req` and `group_source_req`, and the source's in the latter.
const GROUP_AT: usize = 8;
const SOURCE_AT: usize = GROUP_AT + STORAGE;
/// Bytes of a `struct group_source_req`.
const GROUP_SOURCE: usize = SOURCE_AT + STORAGE;
/// Bytes of a `struct sockaddr_storage`.
const STORAGE: usize = size_of::<libc::sockaddr_storage>();

/// Reads what a program asks; `None`: the option is no such.
///
/// # Errors
/// `EINVAL` for a value that is too short or no group's, `EFAULT` for none.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn read(level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> Option<Answer<Call>> {
    let sort = sort(level, name)?;
    if value.is_null() {
        return Some(Err(libc::EFAULT));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len as usize) };
    let asked = parse((level, name), sort, bytes).filter(|asked| asked.group.is_multicast());
    Some(asked.ok_or(libc::EINVAL))
}

/// What an option changes, its source still to be read.
#[derive(Clone, Copy)]
enum Sort {
    Whole(Membership),
    Source(fn(IpAddr) -> Membership),
}

fn sort(level: c_int, name: c_int) -> Option<Sort> {
    let (whole, source) = (|change| Some(Sort::Whole(change)), |change| Some(Sort::Source(change)));
    match (level, name) {
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP) | (libc::IPPROTO_IPV6, JOIN6) => whole(Membership::Join),
        (libc::IPPROTO_IP, libc::IP_DROP_MEMBERSHIP) | (libc::IPPROTO_IPV6, LEAVE6) => {
            whole(Membership::Leave)
        }
        (libc::IPPROTO_IP, libc::IP_ADD_SOURCE_MEMBERSHIP) => source(Membership::Add),
        (libc::IPPROTO_IP, libc::IP_DROP_SOURCE_MEMBERSHIP) => source(Membership::Drop),
        (libc::IPPROTO_IP, libc::IP_BLOCK_SOURCE) => source(Membership::Block),
        (libc::IPPROTO_IP, libc::IP_UNBLOCK_SOURCE) => source(Membership::Unblock),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, JOIN) => whole(Membership::Join),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, LEAVE) => whole(Membership::Leave),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, ADD) => source(Membership::Add),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, DROP) => source(Membership::Drop),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, BLOCK) => source(Membership::Block),
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, UNBLOCK) => source(Membership::Unblock),
        _ => None,
    }
}

fn parse((level, name): (c_int, c_int), sort: Sort, bytes: &[u8]) -> Option<Call> {
    let four = |at: usize| Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
    let address = |at: usize| {
        let sockaddr = bytes.get(at..)?.chunks(STORAGE).next()?;
        // SAFETY: so many bytes are there.
        let ip = unsafe { address::parse(sockaddr.as_ptr().cast(), sockaddr.len() as socklen_t) }.ok()?;
        Some(ip.ip()).filter(|ip| ip.is_ipv6() == (level == libc::IPPROTO_IPV6))
    };
    let by_address = |at: Ipv4Addr| Some(IpAddr::from(at)).filter(|at| !at.is_unspecified());
    let (group, at, source) = match (level, name, sort) {
        (_, BLOCK | UNBLOCK | ADD | DROP, _) => (
            address(GROUP_AT)?,
            (None, number(0)?),
            address(SOURCE_AT).filter(|_| bytes.len() >= GROUP_SOURCE),
        ),
        (_, JOIN | LEAVE, _) if bytes.len() < SOURCE_AT => return None,
        (_, JOIN | LEAVE, _) => (address(GROUP_AT)?, (None, number(0)?), None),
        (libc::IPPROTO_IPV6, ..) => {
            let group = Ipv6Addr::from(*bytes.first_chunk::<16>()?);
            (group.into(), (None, number(16)?), None)
        }
        // `struct ip_mreq_source`.
        (_, _, Sort::Source(_)) => (four(0)?.into(), (by_address(four(4)?), 0), four(8).map(IpAddr::from)),
        // `struct ip_mreq`, or with the interface's number behind it `struct ip_mreqn`.
        _ => (four(0)?.into(), (by_address(four(4)?), number(8).unwrap_or(0)), None),
    };
    let change = match sort {
        Sort::Whole(change) => change,
        Sort::Source(change) => change(source?),
    };
    Some(Call { group, at, change })
}

/// Joins or leaves, with a socket that silk serves. `None`: it is for another interface, and Linux's.
///
/// # Errors
/// As Linux.
pub fn change(socket: &Socket, fd: c_int, asked: Call) -> Answer<Option<()>> {
    if !socket.is(shape::DATAGRAM) || socket.is(shape::SCOUT) {
        return Err(libc::ENOPROTOOPT);
    }
    let (slot, generation) = socket.name();
    let tell = |Call { group, at, change }: Call| {
        family::ask(&Request::Group { slot, generation, group, at, change }, &[])
    };
    if tell(asked)? == Reply::NotOurs {
        return Ok(None);
    }
    if let Err(errno) = in_linux(fd, &asked) {
        // Neither has it then; what comes of taking it back is of no use to anybody.
        let _ = tell(Call { change: asked.change.inverse(), ..asked });
        return Err(errno);
    }
    Ok(Some(()))
}

/// Another thread has named the socket while it joined or left as one that nobody serves: Linux's part has, and it is remembered. So the
/// daemon may know already, which it says then.
///
/// # Errors
/// `EBADF`: another thread has closed it meanwhile.
pub fn tell_late(socket: &'static Socket, fd: c_int, asked: Call) -> Answer<()> {
    // Whatever is told of what was remembered has been told by then.
    let _turn = NamingTurn::begin(socket, fd)?;
    let (slot, generation) = socket.name();
    let Call { group, at, change } = asked;
    let _ = family::ask(&Request::Group { slot, generation, group, at, change }, &[]);
    Ok(())
}

/// Whether silk's interface is its own, and not one that Linux has too.
pub fn is_interface_silks_own() -> bool {
    family::join().is_ok() && wishes::usual().is_some_and(|usual| usual.interface() == 0)
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
    use super::in_linux::source_request;
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    #[test]
    fn every_form_names_group_and_interface() {
        let parse = |level, name, bytes: &[u8]| {
            let asked = parse((level, name), sort(level, name).unwrap(), bytes)?;
            Some((asked.group, asked.at))
        };
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
        let new = [&3u32.to_ne_bytes()[..], &[0; 4], &sockaddr, &vec![0; STORAGE - sockaddr.len()]].concat();
        assert_eq!(parse(libc::IPPROTO_IP, JOIN, &new), Some((group, (None, 3))));
        assert_eq!(parse(libc::IPPROTO_IP, JOIN, &new[1..]), None);
        assert_eq!(parse(libc::IPPROTO_IPV6, JOIN, &new), None);
    }

    #[test]
    fn both_forms_name_a_source() {
        let (group, source) = (ip("239.1.2.3"), ip("192.0.2.5"));
        let parse = |level, name, bytes: &[u8]| parse((level, name), sort(level, name).unwrap(), bytes);
        let old = [239, 1, 2, 3, 10, 0, 0, 1, 192, 0, 2, 5];
        let at = (Some(ip("10.0.0.1")), 0);
        let asked = |at, change| Some(Call { group, at, change });
        let four = libc::IPPROTO_IP;
        assert_eq!(parse(four, libc::IP_ADD_SOURCE_MEMBERSHIP, &old), asked(at, Membership::Add(source)));
        assert_eq!(parse(four, libc::IP_BLOCK_SOURCE, &old), asked(at, Membership::Block(source)));
        assert_eq!(parse(four, libc::IP_UNBLOCK_SOURCE, &old[..11]), None);
        for change in [Membership::Add(source), Membership::Drop(source), Membership::Unblock(source)] {
            // What Linux is told reads back.
            let (Some(wanted), mut value) = (asked((None, 3), change), [0; GROUP_SOURCE]) else { return };
            let (level, name, len) = source_request(&wanted, source, None, 3, &mut value);
            assert_eq!(parse(level, name, &value[..len as usize]), Some(wanted));
            assert_eq!(parse(level, name, &value[..len as usize - 1]), None);
            let (level, name, len) = source_request(&wanted, source, at.0, 3, &mut value);
            assert_eq!(parse(level, name, &value[..len as usize]), asked(at, change));
        }
    }
}
