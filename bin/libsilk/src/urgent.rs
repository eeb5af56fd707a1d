//! Urgent data (`MSG_OOB`) as Linux's programs know it. The last octet of what is sent urgently is marked. Whoever
//! receives it reads up to the mark, then skips the octet, which waits for a `recv` with `MSG_OOB` until then; or
//! finds it in its place, with `SO_OOBINLINE`.

use crate::errno::Answer;
use crate::family;
use crate::own_turn::OwnTurn;
use crate::socket::{Found, Socket, shut};
use crate::state;
use crate::vectors::Vectors;
use silk_stream::{Ahead, Mark, Slot, Urgent, option, request, status};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

fn record(socket: &Socket) -> Option<&'static Urgent> {
    family::joined()?.arena.urgent(socket.name().0)
}

/// What lies before whoever reads, if there is a mark.
#[inline]
fn ahead(socket: &Socket, slot: &Slot) -> Option<Ahead> {
    // Hardly any socket has one.
    Mark::of(slot)?;
    record(socket)?.ahead(slot)
}

fn is_inline(slot: &Slot) -> bool {
    slot.options.load(Relaxed) & option::URGENT_INLINE != 0
}

/// Whether the octet of the mark has arrived.
fn has_arrived(slot: &Slot, mark: Mark) -> bool {
    slot.rx_write.load(Acquire).wrapping_sub(mark.at).cast_signed() > 0
}

/// Whether the octet of the mark was read out of band.
fn is_taken(socket: &Socket, mark: Mark) -> bool {
    record(socket).is_some_and(|record| record.taken.load(SeqCst) == mark.number)
}

/// What can be read at once.
pub struct Stretch {
    /// Octets that are skipped before.
    pub skipped: u32,
    /// Octets that follow, up to the mark.
    pub len: u32,
    mark: Option<Mark>,
}

/// What can be read at once of `arrived` octets.
#[inline]
pub fn stretch(socket: &Socket, slot: &Slot, arrived: u32) -> Stretch {
    let Some(Ahead { mark, skipped, before }) = ahead(socket, slot) else {
        return Stretch { skipped: 0, len: arrived, mark: None };
    };
    let skipped = skipped + u32::from(before == 0 && !is_inline(slot));
    let most = if before > 0 { before } else { u32::MAX };
    let skipped = skipped.min(arrived);
    Stretch { skipped, len: (arrived - skipped).min(most), mark: Some(mark) }
}

impl Stretch {
    /// All up to this index was read.
    #[inline]
    pub fn note_read(&self, socket: &Socket, read: u32) {
        if let Some(mark) = self.mark.filter(|mark| read.wrapping_sub(mark.at).cast_signed() > 0)
            && let Some(record) = record(socket)
        {
            record.passed.store(mark.number, SeqCst);
        }
    }
}

/// Octets that can be read now: all that have arrived, but for what is skipped.
#[inline]
pub fn readable(socket: &Socket, slot: &Slot) -> u32 {
    let arrived = state::arrived(slot);
    if Mark::of(slot).is_none() { arrived } else { arrived - stretch(socket, slot, arrived).skipped }
}

/// Octets that `FIONREAD` tells: as far as the mark, unless its octet is in its place.
pub fn before_mark(socket: &Socket, slot: &Slot) -> u32 {
    let arrived = state::arrived(slot);
    match ahead(socket, slot) {
        None => arrived,
        Some(ahead) if is_inline(slot) => arrived.saturating_sub(ahead.skipped),
        Some(ahead) => arrived.saturating_sub(ahead.skipped).min(ahead.before),
    }
}

/// Whether all before the mark was read (`SIOCATMARK`), but for so many octets that were only looked at.
// RFC 9293 MUST-33.
#[inline]
pub fn is_at_mark(socket: &Socket, slot: &Slot, looked_at: u32) -> bool {
    ahead(socket, slot).is_some_and(|ahead| ahead.before == looked_at)
}

/// Whether the urgent octet is there and was read neither out of band nor past (`POLLPRI`).
// RFC 9293 MUST-32, MUST-33.
#[inline]
pub fn is_waiting(socket: &Socket, slot: &Slot) -> bool {
    ahead(socket, slot).is_some_and(|ahead| has_arrived(slot, ahead.mark) && !is_taken(socket, ahead.mark))
}

/// `recv` with `MSG_OOB`: the urgent octet. It never waits.
///
/// # Errors
/// `EINVAL` when there is none, or it was read already; `ENOTCONN` when the connection has failed before the peer sent its end,
/// as on Linux; `EAGAIN` when it is still to come.
pub fn receive(socket: &Found, into: &Vectors, flags: c_int) -> Answer {
    let _turn = OwnTurn::reading(socket);
    let slot = socket.slot()?;
    let mark = ahead(socket, slot).map(|ahead| ahead.mark);
    let Some(mark) = mark.filter(|mark| !is_inline(slot) && !is_taken(socket, *mark)) else {
        return Err(libc::EINVAL);
    };
    if state::status(slot) & (status::FAILED | status::FIN_CAME) == status::FAILED {
        return Err(libc::ENOTCONN);
    }
    if !has_arrived(slot, mark) {
        let over = state::status(slot) & status::PEER_FIN != 0 || socket.shut.load(Relaxed) & shut::READ != 0;
        return if over { Ok(0) } else { Err(libc::EAGAIN) };
    }
    let len = into.total().min(1);
    if flags & libc::MSG_TRUNC == 0 {
        into.fill(0, len, state::receive_ring(slot)?, mark.at);
    }
    if flags & libc::MSG_PEEK == 0
        && let Some(record) = record(socket)
    {
        record.taken.store(mark.number, SeqCst);
    }
    Ok(len)
}

/// What will have been written up to this index of the send ring is urgent. Said before it is said to be written.
pub fn mark(socket: &Socket, slot: &Slot, written: u32) {
    if let Some(record) = record(socket) {
        record.sent.store(written, SeqCst);
        slot.request.fetch_or(request::URGENT, SeqCst);
    }
}
