//! Socket addresses between their three forms: C's `sockaddr`, Rust's `SocketAddr` (IPv4
//! never mapped), and the shared form in a slot (IPv4 always mapped, RFC 4291 §2.5.5.2).

use crate::errno::Answer;
use crate::family;
use libc::{c_int, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use silk_stream::SharedAddress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;

/// Whether a program has given an address at all, whatever is in it.
///
/// # Errors
/// `EINVAL` when it has no room for a family or is longer than any, `EFAULT` when there is none.
pub fn is_there(addr: *const sockaddr, len: socklen_t) -> Answer<()> {
    match len as usize {
        len if len == 0 || len > size_of::<sockaddr_storage>() => Err(libc::EINVAL),
        _ if addr.is_null() => Err(libc::EFAULT),
        len if len < size_of::<sa_family_t>() => Err(libc::EINVAL),
        _ => Ok(()),
    }
}

/// Reads a program's address of `len` bytes.
///
/// # Errors
/// As Linux: `EINVAL` when it is too short or longer than any, `EAFNOSUPPORT` when it is of another family,
/// `EFAULT` when there is none.
///
/// # Safety
/// `addr` is null or points to `len` readable bytes.
pub unsafe fn parse(addr: *const sockaddr, len: socklen_t) -> Answer<SocketAddr> {
    is_there(addr, len)?;
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
/// # Errors
/// `EINVAL` where less than nothing fits; `EFAULT` where there is no length, or no room where something fits.
///
/// # Safety
/// `len` is null or points to a length, and `out` is null or points to as many writable bytes.
pub unsafe fn give(address: SocketAddr, inet6: bool, out: *mut sockaddr, len: *mut socklen_t) -> Answer<()> {
    let (bytes, size) = bytes(address, inet6);
    // SAFETY: as the caller promises.
    unsafe { give_bytes(bytes.get(..size).unwrap_or_default(), out, len) }
}

/// The same of who has sent something, if the program wants to know; of nobody an address without length.
///
/// # Errors
/// As [`give`].
///
/// # Safety
/// As [`give`].
pub unsafe fn give_sender(
    sender: Option<SocketAddr>,
    inet6: bool,
    out: *mut sockaddr,
    len: *mut socklen_t,
) -> Answer<()> {
    match sender {
        _ if out.is_null() => Ok(()),
        // SAFETY: as the caller promises.
        Some(address) => unsafe { give(address, inet6, out, len) },
        // SAFETY: as the caller promises.
        None => unsafe { give_bytes(&[], out, len) },
    }
}

/// Gives a program these bytes of an address, as [`give`] does.
///
/// # Safety
/// As [`give`].
unsafe fn give_bytes(bytes: &[u8], out: *mut sockaddr, len: *mut socklen_t) -> Answer<()> {
    if len.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises. To Linux it is a signed number.
    let room = unsafe { len.read_unaligned() }.cast_signed();
    let fits = usize::try_from(room).map_err(|_| libc::EINVAL)?.min(bytes.len());
    if fits > 0 && out.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: `out` has room for `fits` bytes, of which no more are written.
    unsafe {
        if fits > 0 {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), fits);
        }
        len.write_unaligned(bytes.len() as socklen_t);
    }
    Ok(())
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
            assert_eq!(give(address, inet6, out.as_mut_ptr().cast(), &mut len), Ok(()));
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
    fn no_room_is_no_fault_and_less_is_one() {
        let (mut out, address) = ([7u8; 28], "10.0.0.1:80".parse().unwrap_or(ANY));
        let told = |sender, room: i32, out: Option<&mut [u8; 28]>| {
            let mut len = room.cast_unsigned();
            let out = out.map_or(std::ptr::null_mut(), |out| out.as_mut_ptr().cast());
            // SAFETY: no more bytes fit than there are, or none are written.
            unsafe { give_sender(sender, false, out, &mut len) }.map(|()| len)
        };
        for sender in [Some(address), None] {
            assert_eq!(told(sender, -1, Some(&mut out)), Err(libc::EINVAL));
            assert_eq!(out, [7; 28]);
            assert_eq!(told(sender, -1, None), Ok(u32::MAX));
        }
        assert_eq!([told(Some(address), 0, Some(&mut out)), told(None, 28, Some(&mut out))], [Ok(16), Ok(0)]);
        assert_eq!(out, [7; 28]);
        let (nowhere, mut none, mut some) = (std::ptr::null_mut(), 0, 1);
        // SAFETY: where there is no room nothing is written.
        unsafe {
            let no_length = std::ptr::null_mut();
            assert_eq!(give(address, false, out.as_mut_ptr().cast(), no_length), Err(libc::EFAULT));
            assert_eq!(give(address, false, nowhere, &mut some), Err(libc::EFAULT));
            assert_eq!(give(address, false, nowhere, &mut none), Ok(()));
        }
        assert_eq!(none, 16);
    }

    #[test]
    fn short_and_foreign_addresses_are_refused() {
        let unix = [1u8, 0, b'/', 0];
        // SAFETY: the lengths are those of the arrays.
        unsafe {
            assert_eq!(parse(unix.as_ptr().cast(), 4), Err(libc::EAFNOSUPPORT));
            assert_eq!(parse([2u8, 0, 0, 80].as_ptr().cast(), 4), Err(libc::EINVAL));
            assert_eq!(parse(std::ptr::null(), 16), Err(libc::EFAULT));
            assert_eq!([0, 129].map(|len| parse(std::ptr::null(), len)), [Err(libc::EINVAL); 2]);
            assert_eq!(parse([2u8, 0].as_ptr().cast(), 1), Err(libc::EINVAL));
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
