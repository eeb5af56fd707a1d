//! `IP_MULTICAST_IF` and `IPV6_MULTICAST_IF`: the interface that what is sent to groups leaves by, as its number, whatever way
//! the program names it.

use crate::errno::Answer;
use libc::socklen_t;
use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;

/// Whether it is such an option.
pub fn names_link(level: c_int, name: c_int) -> bool {
    matches!(
        (level, name),
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) | (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF)
    )
}

/// The number that a value of such an option means; zero: none in particular.
///
/// # Errors
/// `EINVAL` for one that is too short, `EFAULT` for none, `ENOBUFS` for a number that has no place in a socket's wishes.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn link(level: c_int, value: *const c_void, len: socklen_t) -> Answer<u32> {
    if value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len as usize) };
    let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let address = |at: usize| Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let link = if level == libc::IPPROTO_IPV6 {
        number(0).ok_or(libc::EINVAL)?
    } else {
        // A `struct ip_mreqn` or `ip_mreq` begins with a group's address, or it is an interface's alone.
        let named = number(8).unwrap_or(0);
        let at = address(4).or(address(0)).ok_or(libc::EINVAL)?;
        if named == 0 { number_of(at) } else { named }
    };
    u16::try_from(link).map(u32::from).map_err(|_| libc::ENOBUFS)
}

/// The number of the interface that has an address; zero: none has.
pub(super) fn number_of(address: Ipv4Addr) -> u32 {
    let mut first = std::ptr::null_mut();
    // SAFETY: the place for the answer is a local's.
    if address.is_unspecified() || unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return 0;
    }
    let (mut next, mut number) = (first, 0);
    // SAFETY: the list is the C library's until it is given back below; each of its parts is null or whole, and an
    // address of AF_INET is a `sockaddr_in`.
    unsafe {
        while let Some(one) = next.as_ref() {
            if let Some(held) =
                one.ifa_addr.as_ref().filter(|held| c_int::from(held.sa_family) == libc::AF_INET)
            {
                let held = std::ptr::from_ref(held).cast::<libc::sockaddr_in>().read_unaligned();
                if Ipv4Addr::from(u32::from_be(held.sin_addr.s_addr)) == address {
                    number = libc::if_nametoindex(one.ifa_name);
                    break;
                }
            }
            next = one.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(level: c_int, value: &[u8]) -> Answer<u32> {
        // SAFETY: the value is a slice.
        unsafe { link(level, value.as_ptr().cast(), value.len() as socklen_t) }
    }

    #[test]
    fn an_interface_is_named_by_its_number_or_by_an_address_of_it() {
        // SAFETY: the name ends with a zero.
        let lo = unsafe { libc::if_nametoindex(c"lo".as_ptr()) };
        let (here, nobody) = ([127, 0, 0, 1], [192, 0, 2, 77]);
        let request = |address: [u8; 4], number: u32| [&[0; 4], &address[..], &number.to_ne_bytes()].concat();
        assert_eq!(told(libc::IPPROTO_IP, &here), Ok(lo));
        assert_eq!(told(libc::IPPROTO_IP, &request(here, 0)[..8]), Ok(lo));
        assert_eq!(told(libc::IPPROTO_IP, &request(here, 0)), Ok(lo));
        assert_eq!(told(libc::IPPROTO_IP, &request(here, 9)), Ok(9));
        assert_eq!([told(libc::IPPROTO_IP, &nobody), told(libc::IPPROTO_IP, &[0; 4])], [Ok(0); 2]);
        assert_eq!(told(libc::IPPROTO_IP, &[0; 3]), Err(libc::EINVAL));
        assert_eq!(told(libc::IPPROTO_IPV6, &7u32.to_ne_bytes()), Ok(7));
        assert_eq!(told(libc::IPPROTO_IPV6, &70_000u32.to_ne_bytes()), Err(libc::ENOBUFS));
    }
}
