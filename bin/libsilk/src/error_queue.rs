//! The error queue of a datagram socket (`IP_RECVERR`, `MSG_ERRQUEUE`): what the network said of its
//! datagrams, which the daemon writes into the arena, and what this library has refused because it was
//! too large. Both are told as Linux tells them.

use crate::address::{self, ANY};
use crate::control::Telling;
use crate::datagram_io::Arrived;
use crate::errno::Answer;
use crate::family;
use crate::own_turn::OwnTurn;
use crate::socket::Socket;
use crate::vectors::Vectors;
use silk_stream::{SharedAddress, Slot, Way, wish};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

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
    // Who said it, where it was not this library.
    offender: Option<IpAddr>,
}

impl Told {
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

/// A datagram that was too large to be sent, until the program has heard of it: one, the last.
pub struct Refused {
    // What it may have been at most; 0: there is none.
    mtu: AtomicU32,
    peer: SharedAddress,
}

impl Refused {
    /// None.
    pub const fn new() -> Self {
        let ip = [const { AtomicU64::new(0) }; 2];
        let peer = SharedAddress { ip, port: AtomicU32::new(0), scope: AtomicU32::new(0) };
        Self { mtu: AtomicU32::new(0), peer }
    }

    fn set(&self, peer: SocketAddr, mtu: u32) {
        let bits = match peer.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        self.peer.ip[0].store((bits >> 64) as u64, Relaxed);
        self.peer.ip[1].store(bits as u64, Relaxed);
        self.peer.port.store(peer.port().into(), Relaxed);
        self.mtu.store(mtu, Release);
    }

    /// Whom it was for and what the MTU was, once.
    pub fn take(&self) -> Option<(SocketAddr, u32)> {
        let mtu = self.mtu.swap(0, AcqRel);
        (mtu > 0).then(|| (address::shared(&self.peer), mtu))
    }
}

/// Remembers that a datagram to `peer` was too large, if the program wants to know.
pub fn refused(socket: &Socket, peer: SocketAddr, mtu: usize) {
    let asked = if peer.is_ipv6() { wish::SOFT_ERRORS6 } else { wish::SOFT_ERRORS };
    if socket.settings.wish(asked) != 0 {
        socket.refused.set(peer, u32::try_from(mtu).unwrap_or(u32::MAX));
    }
}

/// Whether there is an error to be read.
pub fn is_waiting(socket: &Socket, slot: &Slot) -> bool {
    slot.error_write.load(Acquire) != slot.error_read.load(Relaxed) || socket.refused.mtu.load(Acquire) != 0
}

/// Takes the next error from the queue. It never waits.
///
/// # Errors
/// `EAGAIN` when there is none.
pub fn take(socket: &Socket, into: &Vectors) -> Answer<Arrived> {
    let slot = socket.slot()?;
    let _turn = OwnTurn::reading(socket);
    let (read, write) = (slot.error_read.load(Relaxed), slot.error_write.load(Acquire));
    if read == write {
        return local(socket);
    }
    let queue = family::joined().and_then(|family| family.arena.errors(socket.name().0));
    let (error, data) = queue.ok_or(libc::ECONNRESET)?.at(read);
    let quoted = data.get(..error.len as usize).unwrap_or_default();
    let copied = into.put(quoted);
    let next = read.wrapping_add(1);
    slot.error_read.store(next, SeqCst);
    // As on Linux: what `SO_ERROR` tells is the next of the queue, or nothing any more.
    let following = queue.filter(|_| next != write).map_or(0, |queue| queue.at(next).0.errno);
    slot.error.store(following, SeqCst);
    let error_of = Extended {
        errno: error.errno,
        origin: if error.offender.is_ipv6() { ICMP6 } else { ICMP },
        kind: error.kind.0,
        code: error.kind.1,
        pad: 0,
        info: error.info,
        data: 0,
    };
    let told = Told { error: error_of, offender: Some(error.offender) };
    let (whole, way) = (quoted.len(), Way::default());
    Ok(Arrived { copied, whole, peer: error.peer, segment: 0, way, details: None, error: Some(told) })
}

/// What this library has refused.
fn local(socket: &Socket) -> Answer<Arrived> {
    let (peer, mtu) = socket.refused.take().ok_or(libc::EAGAIN)?;
    let errno = libc::EMSGSIZE.unsigned_abs();
    let error = Extended { errno, origin: LOCAL, kind: 0, code: 0, pad: 0, info: mtu, data: 0 };
    let peer = if peer.port() == 0 { ANY } else { peer };
    let (told, way) = (Told { error, offender: None }, Way::default());
    Ok(Arrived { copied: 0, whole: 0, peer, segment: 0, way, details: None, error: Some(told) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_told_once() {
        let refused = Refused::new();
        assert_eq!(refused.take(), None);
        let peer = "10.0.0.2:33434".parse().unwrap_or(ANY);
        refused.set(peer, 1400);
        assert_eq!((refused.take(), refused.take()), (Some((peer, 1400)), None));
    }

    #[test]
    fn an_error_has_linuxs_shape() {
        assert_eq!(size_of::<Extended>(), 16);
        assert_eq!((size_of::<Whole<16>>(), size_of::<Whole<28>>()), (32, 44));
    }
}
