//! What is received of a datagram socket: a datagram, or what its error queue quotes of one, as Linux tells it
//! (`IP_RECVERR`).

use crate::address;
use crate::control::Telling;
use silk_stream::{Details, SocketError, Way};
use std::net::{IpAddr, SocketAddr};

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Bytes copied to the program.
    pub copied: usize,
    /// Bytes it had.
    pub whole: usize,
    /// Its sender; `None`: it is none, but the end of a socket that was shut down.
    pub peer: Option<SocketAddr>,
    /// Bytes of each but the last where it is several datagrams (`UDP_GRO`), else 0.
    pub segment: u32,
    /// How it came.
    pub way: Way,
    /// When, and where to.
    pub details: Option<Details>,
    /// It is what an error quotes (`MSG_ERRQUEUE`); the sender is then whom it was for.
    pub error: Option<Told>,
}

impl Arrived {
    /// Whether it came over IPv4.
    pub fn is_over_four(&self) -> bool {
        self.peer.is_none_or(|peer| peer.is_ipv4())
    }
}

/// `SO_EE_ORIGIN_LOCAL`, `_ICMP` and `_ICMP6`.
const LOCAL: u8 = 1;
const ICMP: u8 = 2;
const ICMP6: u8 = 3;

/// Linux's `struct sock_extended_err`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extended {
    errno: u32,
    origin: u8,
    kind: u8,
    code: u8,
    pad: u8,
    info: u32,
    data: u32,
}

/// It with the address of whom it is from.
#[repr(C)]
#[derive(Clone, Copy)]
struct Whole<const N: usize> {
    error: Extended,
    offender: [u8; N],
}

/// What is told of an error beside the bytes it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    error: Extended,
    /// Who said it, where it was not this library.
    offender: Option<IpAddr>,
}

impl Told {
    /// A datagram was too large: this library has refused it.
    pub fn of_size(mtu: u32) -> Self {
        let errno = libc::EMSGSIZE.unsigned_abs();
        let error = Extended { errno, origin: LOCAL, kind: 0, code: 0, pad: 0, info: mtu, data: 0 };
        Self { error, offender: None }
    }

    /// The network has said something of a datagram.
    pub fn of_network(said: &SocketError) -> Self {
        let error = Extended {
            errno: said.errno,
            origin: if said.offender.is_ipv6() { ICMP6 } else { ICMP },
            kind: said.kind.0,
            code: said.kind.1,
            pad: 0,
            info: said.info,
            data: 0,
        };
        Self { error, offender: Some(said.offender) }
    }

    /// As the control data of a message; `inet6` is the socket's family.
    pub fn put(&self, inet6: bool, telling: &mut Telling<'_>) {
        let offender = self.offender.map(|ip| address::bytes(SocketAddr::new(ip, 0), inet6).0);
        let offender = offender.unwrap_or_default();
        if inet6 {
            let whole = Whole { error: self.error, offender };
            telling.put(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, whole);
        } else {
            let offender: [u8; 16] = std::array::from_fn(|at| offender.get(at).copied().unwrap_or(0));
            let whole = Whole { error: self.error, offender };
            telling.put(libc::IPPROTO_IP, libc::IP_RECVERR, whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_linuxs_shape() {
        assert_eq!(size_of::<Extended>(), 16);
        assert_eq!((size_of::<Whole<16>>(), size_of::<Whole<28>>()), (32, 44));
    }
}
