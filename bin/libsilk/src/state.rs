//! What a slot says about its connection, with the daemon's death told as a failed
//! connection, so that nothing that waits for it waits for ever.

use crate::errno::Answer;
use crate::family;
use crate::lost;
use crate::socket::Socket;
use silk_stream::{Bytes, Slot, kind, left_of, pop_datagram, status, used, wish};
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Whether the daemon is gone.
#[inline]
pub fn is_dead() -> bool {
    family::joined().is_none_or(family::Family::is_dead)
}

/// Bits of [`fn@status`].
#[inline]
pub fn status(slot: &Slot) -> u32 {
    let bits = slot.status.load(Acquire);
    if is_dead() { bits | status::FAILED | status::PEER_FIN | status::SEND_CLOSED } else { bits }
}

/// The failure not yet reported, if there is one; it is reported once.
pub fn take_error(slot: &Slot) -> Option<c_int> {
    if is_dead() {
        lost::answer();
        return Some(libc::ECONNRESET);
    }
    if slot.error.load(Relaxed) == 0 {
        return None;
    }
    let taken = c_int::try_from(slot.error.swap(0, SeqCst)).ok().filter(|errno| *errno != 0);
    if taken.is_some() {
        taken_of(slot).fetch_add(1, Relaxed);
    }
    taken
}

/// Failures that this process has taken, by slots; where two have the same place it is one of both.
static TAKEN: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

fn taken_of(slot: &Slot) -> &'static AtomicU32 {
    const FIRST: &AtomicU32 = &TAKEN[0];
    TAKEN.get(ptr::from_ref(slot).addr() / size_of::<Slot>() % TAKEN.len()).unwrap_or(FIRST)
}

/// Which failure is to be reported, by a number that the next one does not have; 0: none.
pub fn failure(slot: &Slot) -> u32 {
    if has_error(slot) { taken_of(slot).load(Relaxed).wrapping_add(1).max(1) } else { 0 }
}

/// Lets a failure that was taken be reported, unless there is another by now.
pub fn put_error(slot: &Slot, errno: c_int) {
    let _ = slot.error.compare_exchange(0, errno.unsigned_abs(), SeqCst, Relaxed);
}

/// Whether there is a failure to report.
pub fn has_error(slot: &Slot) -> bool {
    slot.error.load(Relaxed) != 0 || is_dead()
}

/// The receive ring, for who has seen that there is something in it.
///
/// # Errors
/// `ECONNRESET` when there is none: the slot is not what it was.
#[inline]
pub fn receive_ring(slot: &Slot) -> Answer<Bytes<'static>> {
    let family = family::joined().ok_or(libc::ECONNRESET)?;
    let ring = family.arena.ring(slot.rx_place.load(Relaxed), slot.rx_size.load(Relaxed));
    Ok(ring.ok_or(libc::ECONNRESET)?.beginning_at(slot.rx_first.load(Relaxed)))
}

/// The send ring, for who has [claimed](crate::cursor) a part of it.
///
/// # Errors
/// As [`receive_ring`].
#[inline]
pub fn send_ring(slot: &Slot) -> Answer<Bytes<'static>> {
    let family = family::joined().ok_or(libc::ECONNRESET)?;
    let ring = family.arena.ring(slot.tx_place.load(Relaxed), slot.tx_size.load(Relaxed));
    Ok(ring.ok_or(libc::ECONNRESET)?.beginning_at(slot.tx_first.load(Relaxed)))
}

/// Bytes that lie in the receive ring.
#[inline]
pub fn arrived(slot: &Slot) -> u32 {
    used(slot.rx_write.load(Acquire), slot.rx_read.load(Relaxed), slot.rx_size.load(Relaxed))
}

/// The most unread bytes the peer is offered room for: `SO_RCVBUF`, where it was set, and little while memory is short.
pub fn receive_limit(slot: &Slot) -> u32 {
    let size = slot.rx_size.load(Relaxed).min(reach(slot).unwrap_or(u32::MAX));
    match slot.receive_limit.load(Relaxed) {
        0 => size,
        set => set.min(size),
    }
}

/// How many bytes make a stream readable (`SO_RCVLOWAT`): as in Linux half of what there can be at
/// most, for nobody may wait for more than comes.
#[inline]
pub fn low_water(socket: &Socket, slot: &Slot) -> u32 {
    match socket.settings.low_water.load(Relaxed) {
        0 | 1 => 1,
        // Before there is a ring nothing can come.
        set if slot.rx_size.load(Relaxed) == 0 => set,
        set => set.min(receive_limit(slot) / 2).max(1),
    }
}

/// The least a program can limit its send ring to, bytes: that of Linux.
const LEAST_LIMIT: u32 = 2304;

/// How many bytes may lie in the send ring: `SO_SNDBUF`, where it was set, and little while memory is short.
#[inline]
pub fn send_limit(slot: &Slot) -> u32 {
    let size = slot.tx_size.load(Relaxed).min(reach(slot).unwrap_or(u32::MAX));
    match slot.send_limit.load(Relaxed) {
        0 => size,
        set => set.max(LEAST_LIMIT).min(size),
    }
}

/// How far a byte stream is written at most while memory is short ([`silk_stream::Header::reach`]). A datagram
/// has to fit as a whole.
#[inline]
pub fn reach(slot: &Slot) -> Option<u32> {
    let reach = family::joined()?.arena.header().reach.load(Relaxed);
    (reach > 0 && slot.kind.load(Relaxed) == kind::STREAM).then_some(reach)
}

/// Bytes that can be written now.
#[inline]
pub fn writable(slot: &Slot) -> u32 {
    room_within(slot, send_limit(slot))
}

/// The same, whatever limit the program has set.
pub fn room(slot: &Slot) -> u32 {
    room_within(slot, slot.tx_size.load(Relaxed))
}

#[inline]
fn room_within(slot: &Slot, limit: u32) -> u32 {
    let room = limit.saturating_sub(unsent(slot));
    match reach(slot) {
        None => room,
        Some(reach) => {
            let (write, read) = (slot.tx_write.load(Relaxed), slot.tx_read.load(Acquire));
            room.min(left_of(reach, slot.tx_first.load(Relaxed), write, read))
        }
    }
}

/// The most that is taken at once below the limit of what is not sent, bytes: as with Linux one
/// large segment, so that a small limit does not make small segments.
const PORTION: u32 = 64 << 10;

/// Whether as much is written and not sent as the program wants (`TCP_NOTSENT_LOWAT`).
#[inline]
pub fn is_held_back(slot: &Slot) -> bool {
    match slot.wishes.word(wish::NOT_SENT) {
        0 => false,
        limit => slot.tx_write.load(Relaxed).wrapping_sub(slot.tx_sent.load(SeqCst)) >= limit,
    }
}

/// Bytes that a stream takes now: room in the ring, as far as what is not sent allows.
#[inline]
pub fn takes(slot: &Slot) -> u32 {
    if slot.wishes.word(wish::NOT_SENT) == 0 {
        return writable(slot);
    }
    if is_held_back(slot) { 0 } else { writable(slot).min(PORTION) }
}

/// Bytes written and not yet acknowledged by the peer.
#[inline]
pub fn unsent(slot: &Slot) -> u32 {
    used(slot.tx_write.load(Relaxed), slot.tx_read.load(Acquire), slot.tx_size.load(Relaxed))
}

/// How much room makes a socket writable for `poll`: a quarter of what there can be, as there
/// is little use in being woken for less.
#[inline]
pub fn worthwhile(slot: &Slot) -> u32 {
    (send_limit(slot) / 4).max(1)
}

/// Bytes of the next datagram (`FIONREAD`).
pub fn next_length(slot: &Slot) -> u32 {
    let there = arrived(slot);
    let Ok(ring) = receive_ring(slot) else { return 0 };
    pop_datagram(ring, slot.rx_read.load(Relaxed), there).map_or(0, |(datagram, ..)| datagram.len)
}
