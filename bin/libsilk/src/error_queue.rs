//! The error queue of a datagram socket (`IP_RECVERR`, `MSG_ERRQUEUE`): what the network said of its
//! datagrams, which the daemon writes into the arena, and what this library has refused because it was
//! too large. Both are told as Linux tells them.

use crate::address::ANY;
use crate::arrived::{Arrived, Told};
use crate::errno::Answer;
use crate::family;
use crate::own_turn::OwnTurn;
use crate::socket::Socket;
use crate::vectors::Vectors;
use silk_stream::{Slot, Way, wish};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Remembers that a datagram to `peer` was too large, if the program wants to know.
pub fn refused(socket: &Socket, peer: SocketAddr, mtu: usize) {
    let asked = if peer.is_ipv6() { wish::SOFT_ERRORS6 } else { wish::SOFT_ERRORS };
    if socket.settings.wish(asked) != 0 {
        socket.refused.set(peer, u32::try_from(mtu).unwrap_or(u32::MAX));
    }
}

/// Whether there is an error to be read.
pub fn is_waiting(socket: &Socket, slot: &Slot) -> bool {
    slot.error_write.load(Acquire) != slot.error_read.load(Relaxed) || socket.refused.is_there()
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
    let told = Told::of_network(&error);
    let (whole, way) = (quoted.len(), Way::default());
    Ok(Arrived { copied, whole, peer: Some(error.peer), segment: 0, way, details: None, error: Some(told) })
}

/// What this library has refused.
fn local(socket: &Socket) -> Answer<Arrived> {
    let (peer, mtu) = socket.refused.take().ok_or(libc::EAGAIN)?;
    let peer = Some(if peer.port() == 0 { ANY } else { peer });
    let (told, way) = (Told::of_size(mtu), Way::default());
    Ok(Arrived { copied: 0, whole: 0, peer, segment: 0, way, details: None, error: Some(told) })
}
