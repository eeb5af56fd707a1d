//! The lanes of a datagram socket. Each class that is more important than the socket's own, and from which something has come, has rings
//! and a path of its own there, in its own domain: what it sends does not wait behind others', nor is lost among it, and is
//! answered the same way. The daemon makes them; who receives looks at the most important first.

use crate::family;
use crate::own_turn::OwnTurn;
use crate::socket::{Found, Socket, shape};
use crate::state;
use crate::thread;
use crate::vectors::Vectors;
use crate::writers_turn::until_vacated;
use silk_stream::{RANKS, SLOTS, Sent, Slot, push_datagram, status, vacate};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// The lanes of a socket, the most important first, with their numbers.
fn lanes(slot: &Slot) -> impl Iterator<Item = (u32, &'static Slot)> {
    let after = |slot: &Slot| {
        let number = slot.lane().load(Acquire).checked_sub(1)?;
        Some((number, family::joined()?.arena.slot(number)?))
    };
    // There is one for each class at most, whatever is written there.
    std::iter::successors(after(slot), move |(_, lane)| after(lane)).take(RANKS)
}

/// Where the next datagram of a socket is, in the first of its lanes that has one, or in its own ring.
#[inline]
pub fn first_to_read<'s>(socket: &Socket, slot: &'s Slot) -> (u32, &'s Slot) {
    let own = || (socket.name().0, slot);
    if slot.lane().load(Relaxed) == 0 {
        return own();
    }
    if let Some((_, number)) = LOOKED_AT.take().filter(|(of, _)| *of == socket.name().0) {
        let looked_at = lanes(slot).find(|(lane, _)| *lane == number).unwrap_or_else(own);
        if looked_at.0 == number && state::arrived(looked_at.1) > 0 {
            return looked_at;
        }
    }
    lanes(slot).find(|(_, lane)| state::arrived(lane) > 0).unwrap_or_else(own)
}

thread_local! {
    /// The slot of the socket where this thread has looked at a datagram without taking it, and where that is.
    static LOOKED_AT: Cell<Option<(u32, u32)>> = const { Cell::new(None) };
}

/// The same, for who only looks: what this thread takes next is the same datagram, though a more important one may come.
pub fn first_to_look_at<'s>(socket: &Socket, slot: &'s Slot) -> (u32, &'s Slot) {
    let first = first_to_read(socket, slot);
    LOOKED_AT.set(Some((socket.name().0, first.0)));
    first
}

/// This thread serves somebody of `slot`'s class next. Where many ask it does not sleep, and would stay at the priority of the last preferred one: if the
/// socket's own class has none, it gives that back. Who asks over a lane next gives it to it again.
#[inline]
pub fn follow(own: &Slot, slot: &Slot) {
    if own.lane().load(Relaxed) != 0 && ptr::eq(own, slot) && own.priority.load(Relaxed) == 0 {
        thread::step_down();
    }
}

/// Whether anything has come to a datagram socket.
#[inline]
pub fn have_any(slot: &Slot) -> bool {
    state::arrived(slot) > 0 || lanes(slot).any(|(_, lane)| state::arrived(lane) > 0)
}

/// How much has come to a datagram socket since it is there, in bytes, over whatever lane: it changes with each datagram.
pub fn all_arrived(slot: &Slot) -> u32 {
    let come = |slot: &Slot| slot.rx_write.load(Acquire);
    lanes(slot).fold(come(slot), |all, (_, lane)| all.wrapping_add(come(lane)))
}

/// Peers that have been heard over a lane are remembered in so many places: what is sent to them goes there, in order.
const PEERS: usize = 1024;

/// A peer of a socket by its hash, with the number of its lane in the lowest bits. Where another one has its place its datagrams go over the
/// socket's own ring.
static HEARD: [AtomicU64; PEERS] = [const { AtomicU64::new(0) }; PEERS];

/// The bits of a lane's number.
const NUMBER: u64 = (1 << 20) - 1;
const _: () = assert!(SLOTS as u64 <= NUMBER);

fn place_of(socket: &Socket, peer: SocketAddr) -> Option<(&'static AtomicU64, u64)> {
    let mut hasher = DefaultHasher::new();
    (socket.name(), peer.ip().to_canonical(), peer.port()).hash(&mut hasher);
    let hash = hasher.finish();
    Some((HEARD.get(hash as usize % PEERS)?, hash & !NUMBER))
}

/// A datagram of this peer's has come, over a lane if that is not the socket's own slot.
pub fn note(socket: &Socket, peer: SocketAddr, number: u32) {
    if number == socket.name().0 {
        return;
    }
    let Some((place, hash)) = place_of(socket, peer) else { return };
    let entry = hash | u64::from(number);
    if place.load(Relaxed) != entry {
        place.store(entry, Relaxed);
    }
}

/// The lane that leads to a peer, if the socket has one.
#[inline]
pub fn to(socket: &Socket, slot: &Slot, peer: SocketAddr) -> Option<(u32, &'static Slot)> {
    if slot.lane().load(Relaxed) == 0 || socket.is(shape::CONNECTED) {
        return None;
    }
    let (place, hash) = place_of(socket, peer)?;
    let entry = place.load(Relaxed);
    // Whatever was remembered, it is one of the socket's own.
    let lane = lanes(slot).find(|(number, _)| entry == hash | u64::from(*number));
    lane.filter(|(_, lane)| lane.status.load(Acquire) & status::CONNECTED != 0)
}

/// Sends over a lane. Not sent: it is full, or this is a signal's handler that has interrupted a write to the same socket.
pub fn send(socket: &Found, (number, lane): (u32, &Slot), sent: &Sent, from: &Vectors) -> bool {
    let turn = OwnTurn::writing(socket);
    if turn.interrupts(socket) {
        return false;
    }
    let space = sent.space(from.total() as u32);
    vacate::enter(&lane.tx_writers, &lane.tx_vacating, |seen| until_vacated(lane, seen));
    let at = lane.tx_write.load(Relaxed);
    let push = |ring| push_datagram(ring, at, space, sent, &from.slices()).is_some();
    let placed = state::writable(lane) >= space && state::send_ring(lane).is_ok_and(push);
    if turn.is_parents() {
        // A handler has forked here, and this is the child: the parent says so.
        return placed;
    }
    if placed {
        lane.tx_write.store(at.wrapping_add(space), SeqCst);
    }
    vacate::leave(&lane.tx_writers);
    if placed && let Some(family) = family::joined() {
        family.ring(number, lane);
    }
    placed
}
