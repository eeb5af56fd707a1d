//! What Linux's descriptor of a socket is told of groups and their sources, where it shares silk's interface.

use super::{ADD, BLOCK, Call, DROP, GROUP_AT, GROUP_SOURCE, JOIN6, LEAVE6, SOURCE_AT, UNBLOCK};
use crate::address;
use crate::errno::{Answer, check};
use crate::real;
use crate::wishes;
use libc::socklen_t;
use silk_control::Membership;
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

/// Changes it with the socket's descriptor of Linux's, on the interface of silk's that the program named, or its
/// first, where they share it.
///
/// # Errors
/// As Linux.
pub fn in_linux(fd: c_int, asked: &Call) -> Answer<()> {
    let interface = wishes::usual().map_or(0, |usual| usual.interface());
    if interface == 0 {
        return Ok(());
    }
    let (by_address, number) = asked.at;
    let interface = if number == 0 { interface } else { number };
    let by_address = by_address.filter(|_| number == 0);
    let mut value = [0; GROUP_SOURCE];
    let (level, name, len) = match asked.change.source() {
        Some(source) => source_request(asked, source, by_address, interface, &mut value),
        None => group_request(asked, by_address, interface, &mut value),
    };
    // SAFETY: the value has at least `len` bytes.
    check(unsafe { real::setsockopt(fd, level, name, value.as_ptr().cast(), len) }).map(drop)
}

/// Writes a part of an option's value.
fn put(value: &mut [u8], at: usize, part: &[u8]) {
    value.iter_mut().skip(at).zip(part).for_each(|(to, from)| *to = *from);
}

/// The option that joins or leaves, its value and that one's length.
fn group_request(
    asked: &Call,
    by_address: Option<IpAddr>,
    interface: u32,
    value: &mut [u8],
) -> (c_int, c_int, socklen_t) {
    let join = asked.change == Membership::Join;
    match asked.group {
        IpAddr::V4(group) => {
            put(value, 0, &group.octets());
            match by_address {
                Some(IpAddr::V4(at)) => put(value, 4, &at.octets()),
                _ => put(value, 8, &interface.to_ne_bytes()),
            }
            let name = if join { libc::IP_ADD_MEMBERSHIP } else { libc::IP_DROP_MEMBERSHIP };
            (libc::IPPROTO_IP, name, 12)
        }
        IpAddr::V6(group) => {
            put(value, 0, &group.octets());
            put(value, 16, &interface.to_ne_bytes());
            (libc::IPPROTO_IPV6, if join { JOIN6 } else { LEAVE6 }, 20)
        }
    }
}

/// The same of one that names a source.
pub fn source_request(
    asked: &Call,
    source: IpAddr,
    by_address: Option<IpAddr>,
    interface: u32,
    value: &mut [u8],
) -> (c_int, c_int, socklen_t) {
    let [old, new] = match asked.change {
        Membership::Join | Membership::Add(_) => [libc::IP_ADD_SOURCE_MEMBERSHIP, ADD],
        Membership::Leave | Membership::Drop(_) => [libc::IP_DROP_SOURCE_MEMBERSHIP, DROP],
        Membership::Block(_) => [libc::IP_BLOCK_SOURCE, BLOCK],
        Membership::Unblock(_) => [libc::IP_UNBLOCK_SOURCE, UNBLOCK],
    };
    if let (IpAddr::V4(group), Some(IpAddr::V4(at)), IpAddr::V4(source)) = (asked.group, by_address, source) {
        [group, at, source].iter().enumerate().for_each(|(n, address)| put(value, 4 * n, &address.octets()));
        return (libc::IPPROTO_IP, old, 12);
    }
    put(value, 0, &interface.to_ne_bytes());
    for (at, ip) in [(GROUP_AT, asked.group), (SOURCE_AT, source)] {
        put(value, at, &address::bytes(SocketAddr::new(ip, 0), false).0);
    }
    let level = if asked.group.is_ipv6() { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
    (level, new, GROUP_SOURCE as socklen_t)
}
