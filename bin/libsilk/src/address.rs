//! Socket addresses between their three forms: C's `sockaddr`, Rust's `SocketAddr` (IPv4
//! never mapped), and the shared form in a slot (IPv4 always mapped, RFC 4291 §2.5.5.2).

use crate::errno::Answer;
use crate::family;
use libc::{c_int, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use silk_stream::SharedAddress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

/// Reads a program's address of `len` bytes.
///
/// # Errors
/// As Linux: `EINVAL` when it is too short or longer than any, `EAFNOSUPPORT` when it is of another family,
/// `EFAULT` when there is none.
///
/// # Safety
/// `addr` is null or points to `len` readable bytes.
pub unsafe fn parse(addr: *const sockaddr, len: socklen_t) -> Answer<SocketAddr> {
    if addr.is_null() {
        return Err(libc::EFAULT);
    }
    if !(size_of::<sa_family_t>()..=size_of::<sockaddr_storage>()).contains(&(len as usize)) {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller gives at least the family's bytes; unaligned reads are allowed here.
    match i32::from(unsafe { addr.cast::<sa_family_t>().read_unaligned() }) {
        libc::AF_INET if len as usize >= size_of::<sockaddr_in>() => {
            // SAFETY: that many bytes are there.
            let v4 = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        // The scope id, the last four bytes, may be left out (RFC 2133's shorter form).
        libc::AF_INET6 if len as usize >= size_of::<sockaddr_in6>() - 4 => {
            // SAFETY: the address and port lie in the bytes that are there.
            let (ip, port) = unsafe {
                let v6 = addr.cast::<sockaddr_in6>();
                (
                    (&raw const (*v6).sin6_addr.s6_addr).read_unaligned(),
                    (&raw const (*v6).sin6_port).read_unaligned(),
                )
            };
            Ok(SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), u16::from_be(port)))
        }
        libc::AF_INET | libc::AF_INET6 => Err(libc::EINVAL),
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// An address of IPv4, whatever family it says.
///
/// # Errors
/// `EINVAL` when it is too short.
///
/// # Safety
/// As [`parse`].
pub unsafe fn parse_as_ip4(addr: *const sockaddr, len: socklen_t) -> Answer<SocketAddr> {
    if (len as usize) < size_of::<sockaddr_in>() {
        return Err(libc::EINVAL);
    }
    // SAFETY: so many bytes are there, by the caller's word.
    let mut address = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
    address.sin_family = libc::AF_INET as sa_family_t;
    // SAFETY: it lives as long as the call.
    unsafe { parse((&raw const address).cast(), size_of::<sockaddr_in>() as socklen_t) }
}

/// Any address, as that of a peer, is this machine: over IPv4 where the socket itself is, if it is at one address.
pub fn of_itself(peer: SocketAddr, own: IpAddr) -> SocketAddr {
    let ip = match peer.ip() {
        IpAddr::V4(any) if any.is_unspecified() && own.is_ipv4() && !own.is_unspecified() => own,
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, peer.port())
}

/// Whether a program's address is of this `family`, whatever else is in it; it names nobody by `AF_UNSPEC`.
///
/// # Safety
/// As [`parse`].
pub unsafe fn is_of(family: c_int, addr: *const sockaddr, len: socklen_t) -> bool {
    // SAFETY: the caller gives `len` bytes, which are looked at where the family is among them.
    !addr.is_null()
        && len as usize >= size_of::<sa_family_t>()
        && i32::from(unsafe { addr.cast::<sa_family_t>().read_unaligned() }) == family
}

/// The link that a program's address of IPv6 names; 0 for none.
///
/// # Safety
/// As [`parse`].
pub unsafe fn scope(addr: *const sockaddr, len: socklen_t) -> u32 {
    if addr.is_null() || (len as usize) < size_of::<sockaddr_in6>() {
        return 0;
    }
    // SAFETY: that many bytes are there.
    let v6 = unsafe { addr.cast::<sockaddr_in6>().read_unaligned() };
    if i32::from(v6.sin6_family) == libc::AF_INET6 { v6.sin6_scope_id } else { 0 }
}

/// The C form: the bytes and how many of them count.
pub fn bytes(address: SocketAddr, inet6: bool) -> ([u8; 28], usize) {
    let mut all = [0; 28];
    let mut put = |at: usize, part: &[u8]| {
        all.iter_mut().skip(at).zip(part).for_each(|(to, from)| *to = *from);
    };
    put(2, &address.port().to_be_bytes());
    match (address.ip(), inet6) {
        (IpAddr::V4(v4), false) => {
            put(0, &(libc::AF_INET as sa_family_t).to_ne_bytes());
            put(4, &v4.octets());
            (all, size_of::<sockaddr_in>())
        }
        (ip, _) => {
            let v6 = match ip {
                IpAddr::V4(v4) if v4.is_unspecified() => Ipv6Addr::UNSPECIFIED,
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            put(0, &(libc::AF_INET6 as sa_family_t).to_ne_bytes());
            put(8, &v6.octets());
            let scope = match address {
                SocketAddr::V6(address) if address.scope_id() != 0 => address.scope_id(),
                _ if v6.is_unicast_link_local() => only_interface(),
                _ => 0,
            };
            put(24, &scope.to_ne_bytes());
            (all, size_of::<sockaddr_in6>())
        }
    }
}

/// The one interface that silk shares with Linux; 0: there are several, or none.
fn only_interface() -> u32 {
    family::joined().and_then(|family| family.arena.header().usual.only_interface()).unwrap_or(0)
}

/// Gives a program an address, in `AF_INET6` form if its socket is of that family. As in
/// Linux `len` says before how much fits and afterwards how long the address is.
///
/// # Safety
/// `out` is null or `len` points to its length and `out` to as many writable bytes.
pub unsafe fn give(address: SocketAddr, inet6: bool, out: *mut sockaddr, len: *mut socklen_t) {
    if out.is_null() || len.is_null() {
        return;
    }
    let (bytes, size) = bytes(address, inet6);
    // SAFETY: `out` has room for `*len` bytes, of which no more are written.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), size.min(*len as usize));
        *len = size as socklen_t;
    }
}

/// The same of who has sent something; of nobody an address without length.
///
/// # Safety
/// As [`give`].
pub unsafe fn give_sender(sender: Option<SocketAddr>, inet6: bool, out: *mut sockaddr, len: *mut socklen_t) {
    match sender {
        // SAFETY: as the caller promises.
        Some(address) => unsafe { give(address, inet6, out, len) },
        // SAFETY: as the caller promises.
        None if !out.is_null() && !len.is_null() => unsafe { *len = 0 },
        None => {}
    }
}

/// The address in a slot.
pub fn shared(address: &SharedAddress) -> SocketAddr {
    let halves = [&address.ip[0], &address.ip[1]].map(|half| u128::from(half.load(Relaxed)));
    let [high, low] = halves;
    let ip = Ipv6Addr::from_bits(high << 64 | low).to_canonical();
    SocketAddr::new(ip, address.port.load(Relaxed) as u16)
}

/// "Any address" with port zero.
pub const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str, inet6: bool) -> (SocketAddr, socklen_t) {
        let address = text.parse().unwrap_or(ANY);
        let mut out = [0u8; 28];
        let mut len = 28;
        // SAFETY: `out` has 28 bytes, as `len` says.
        unsafe {
            give(address, inet6, out.as_mut_ptr().cast(), &mut len);
            (parse(out.as_ptr().cast(), len).unwrap_or(ANY), len)
        }
    }

    #[test]
    fn addresses_survive_the_c_form() {
        assert_eq!(round("10.0.0.1:80", false), ("10.0.0.1:80".parse().unwrap_or(ANY), 16));
        assert_eq!(round("10.0.0.1:80", true), ("10.0.0.1:80".parse().unwrap_or(ANY), 28));
        assert_eq!(round("[fe80::1]:5", true).0.to_string(), "[fe80::1]:5");
        assert_eq!(round("0.0.0.0:9", true).0.to_string(), "[::]:9");
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let unix = [1u8, 0, b'/', 0];
        // SAFETY: the lengths are those of the arrays.
        unsafe {
            assert_eq!(parse(unix.as_ptr().cast(), 4), Err(libc::EAFNOSUPPORT));
            assert_eq!(parse([2u8, 0, 0, 80].as_ptr().cast(), 4), Err(libc::EINVAL));
            assert_eq!(parse(std::ptr::null(), 16), Err(libc::EFAULT));
        }
    }

    #[test]
    fn the_shared_form_is_two_big_endian_halves() {
        let address = SharedAddress::default();
        address.ip[1].store(0xffff_0a00_0001, Relaxed);
        address.port.store(443, Relaxed);
        assert_eq!(shared(&address).to_string(), "10.0.0.1:443");
    }
}
