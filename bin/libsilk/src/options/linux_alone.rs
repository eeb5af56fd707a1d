//! Options that change who a socket hears or how it is protected, or that make promises, none of which silk
//! keeps: to take them and serve the socket would be worse than not to serve it.

use crate::control;
use libc::socklen_t;
use std::ffi::{c_int, c_void};

/// What comes of such an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// A socket that is given it before silk serves it is Linux's; one that silk serves is refused it.
    Linuxs,
    /// It is refused: programs do without it.
    Refused,
}

/// Of `<linux/tcp.h>`, `<linux/udp.h>`, `<linux/in.h>` and `<linux/in6.h>`; the libc crate does not have them.
const UDP_ENCAP: c_int = 100;
const TCP_MD5SIG_EXT: c_int = 32;
const TCP_AO_ADD_KEY: c_int = 38;
const TCP_AO_DEL_KEY: c_int = 39;
const TCP_AO_INFO: c_int = 40;
const IP_IPSEC_POLICY: c_int = 16;
const IP_XFRM_POLICY: c_int = 17;
const IP_MINTTL: c_int = 21;
const IPV6_IPSEC_POLICY: c_int = 34;
const IPV6_XFRM_POLICY: c_int = 35;
const IPV6_MINHOPCOUNT: c_int = 73;

/// The number that an option is set to, if its value is one.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn set_to(value: *const c_void, len: socklen_t) -> Option<c_int> {
    let is_number = !value.is_null() && len as usize == size_of::<c_int>();
    // SAFETY: so many bytes are there.
    is_number.then(|| unsafe { value.cast::<c_int>().read_unaligned() })
}

/// What comes of that option; `None`: it is none of these, or `number` puts it out of force.
pub fn alone(level: c_int, name: c_int, number: Option<c_int>) -> Option<Alone> {
    let is_off = if (level, name) == (libc::SOL_SOCKET, libc::SO_PEEK_OFF) {
        number.is_some_and(|number| number < 0)
    } else {
        number == Some(0)
    };
    if is_off {
        return None;
    }
    let (socket, ip, ipv6, tcp) = (libc::SOL_SOCKET, libc::IPPROTO_IP, libc::IPPROTO_IPV6, libc::IPPROTO_TCP);
    let is_linuxs = match level {
        // Whoever sends with MSG_ZEROCOPY waits to be told when its memory is its own again.
        _ if (level, name) == (socket, libc::SO_ZEROCOPY) => return Some(Alone::Refused),
        _ if level == socket => {
            matches!(name, libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF | libc::SO_PEEK_OFF)
        }
        _ if level == ip => {
            matches!(name, libc::IP_TRANSPARENT | IP_IPSEC_POLICY | IP_XFRM_POLICY | IP_MINTTL)
        }
        _ if level == ipv6 => {
            matches!(name, libc::IPV6_TRANSPARENT | IPV6_IPSEC_POLICY | IPV6_XFRM_POLICY | IPV6_MINHOPCOUNT)
        }
        _ if level == tcp => matches!(
            name,
            libc::TCP_MD5SIG
                | TCP_MD5SIG_EXT
                | TCP_AO_ADD_KEY
                | TCP_AO_DEL_KEY
                | TCP_AO_INFO
                | libc::TCP_REPAIR
        ),
        // What comes is a tunnel's, and not the program's.
        control::UDP => name == UDP_ENCAP,
        _ => false,
    };
    is_linuxs.then_some(Alone::Linuxs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_puts_an_option_out_of_force_changes_nothing() {
        let zero_copy = |number| alone(libc::SOL_SOCKET, libc::SO_ZEROCOPY, Some(number));
        assert_eq!([0, 1].map(zero_copy), [None, Some(Alone::Refused)]);
        let transparent = |number| alone(libc::IPPROTO_IP, libc::IP_TRANSPARENT, Some(number));
        assert_eq!([0, 1].map(transparent), [None, Some(Alone::Linuxs)]);
        let peek = |number| alone(libc::SOL_SOCKET, libc::SO_PEEK_OFF, Some(number));
        assert_eq!([-1, 0].map(peek), [None, Some(Alone::Linuxs)]);
        assert_eq!(alone(libc::IPPROTO_TCP, libc::TCP_MD5SIG, None), Some(Alone::Linuxs));
        assert_eq!(
            [0, 2].map(|kind| alone(control::UDP, UDP_ENCAP, Some(kind))),
            [None, Some(Alone::Linuxs)]
        );
        assert_eq!(alone(libc::IPPROTO_TCP, libc::TCP_NODELAY, Some(1)), None);
    }
}
