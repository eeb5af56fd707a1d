//! Reading and writing a byte stream: copies between the program's buffers and the rings,
//! and waits when a ring is empty or full. No system call unless somebody sleeps.
//!
//! A signal's handler may do so in the middle of its own thread's turn, which it cannot wait for. What it receives is
//! received: the thread finds the index moved, and copies again from there. What it sends goes [behind](crate::cursor) what
//! the thread sends, whose length is certain then, or else no handler comes ([`Undisturbed`]).

use crate::errno::Answer;
use crate::family;
use crate::files;
use crate::mappings::{self, LEAST};
use crate::own_turn::OwnTurn;
use crate::signals::{self, Undisturbed};
use crate::socket::{Found, Socket, shut};
use crate::state;
use crate::thread;
use crate::urgent;
use crate::vectors::Vectors;
use crate::wait::{self, Change, Deadline};
use crate::writers_turn::WritersTurn;
use silk_stream::{Slot, free, option, request, status};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Receives into `into`; zero at the end of the stream.
///
/// # Errors
/// As `recv(2)`.
pub fn receive(socket: &Found, into: &Vectors, flags: c_int) -> Answer {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(libc::EAGAIN);
    }
    if flags & libc::MSG_OOB != 0 {
        return urgent::receive(socket, into, flags);
    }
    let want = into.total();
    let peeks = flags & libc::MSG_PEEK != 0;
    let all = flags & libc::MSG_WAITALL != 0;
    let mut deadline = None;
    let mut got = 0;
    loop {
        let slot = socket.slot()?;
        // Nobody may wait for more than can be there at once.
        let most = || (state::receive_limit(slot) as usize / 2).max(1);
        let low_water = || state::low_water(socket, slot) as usize;
        let least = match (all, peeks) {
            (true, true) => want.min(most()),
            (true, false) => want,
            (false, _) => want.min(low_water()),
        };
        // Before the ring: what arrived before the end is in the ring by the time the end
        // shows here.
        let status = state::status(slot);
        // Who looks begins at the same place each time.
        got = if peeks { 0 } else { got };
        got += take(socket, into, got, want - got, flags)?;
        // Who has room for nothing waits for something all the same, as on Linux, be it an urgent octet.
        let enough = if want == 0 { state::arrived(slot) > 0 } else { got >= least };
        let looked_at = if peeks { got as u32 } else { 0 };
        if enough || (got > 0 && urgent::is_at_mark(socket, slot, looked_at)) {
            return Ok(got);
        }
        if got > 0 && may_have_ended(socket, slot, status) {
            // Why is for the next call.
            return Ok(got);
        }
        if let Some(end) = ended(socket, slot, status) {
            return end;
        }
        if deadline.is_none() && socket.is_nonblocking(flags) {
            return if got > 0 { Ok(got) } else { Err(libc::EAGAIN) };
        }
        let limit = *deadline.get_or_insert_with(|| Deadline::after(socket.settings.receive_limit()));
        let missing = if peeks { least } else { least - got };
        let level = missing.min(most()).max(1) as u32;
        let ready = |slot: &Slot| {
            urgent::readable(socket, slot) >= level || may_have_ended(socket, slot, state::status(slot))
        };
        match wait::sleep(socket, slot, Change::Readable(level), limit, ready) {
            Err(_) if got > 0 => return Ok(got),
            other => other?,
        }
    }
}

/// Whether a reader has something else to be told than bytes. Takes no error: that is for who
/// tells it.
fn may_have_ended(socket: &Socket, slot: &Slot, status: u32) -> bool {
    let alive = status & (status::CONNECTED | status::CONNECTING) != 0;
    let over = status & (status::FAILED | status::PEER_FIN) != 0;
    over || !alive || socket.shut.load(Relaxed) & shut::READ != 0 || state::has_error(slot)
}

/// How the stream has ended for a reader, once the ring is empty.
fn ended(socket: &Socket, slot: &Slot, status: u32) -> Option<Answer> {
    const OVER: u32 = status::FAILED | status::PEER_FIN;
    const ALIVE: u32 = status::CONNECTED | status::CONNECTING;
    let shut = socket.shut.load(Relaxed) & shut::READ != 0;
    if status & OVER == 0 && status & ALIVE != 0 && !shut {
        // What the network says of a connection that goes on (`IP_RECVERR`) is told once.
        return state::take_error(slot).map(Err);
    }
    if status & (ALIVE | OVER) == 0 {
        // Not connected, or no longer; but who has shut it down for reading knows.
        let nothing = if shut { Ok(0) } else { Err(libc::ENOTCONN) };
        return Some(state::take_error(slot).map_or(nothing, Err));
    }
    // Behind its end a failure is a writer's affair.
    if status & status::FAILED != 0
        && status & status::FIN_CAME == 0
        && let Some(errno) = state::take_error(slot)
    {
        return Some(Err(errno));
    }
    Some(Ok(0))
}

/// Copies at most `len` bytes out of the ring.
fn take(socket: &Found, into: &Vectors, skip: usize, len: usize, flags: c_int) -> Answer {
    if len == 0 {
        return Ok(0);
    }
    let _turn = OwnTurn::reading(socket);
    // Who closes it waits from here on.
    let slot = socket.slot()?;
    loop {
        let from = slot.rx_read.load(Relaxed);
        let next = urgent::stretch(socket, slot, state::arrived(slot));
        let len = len.min(next.len as usize);
        if len == 0 && next.skipped == 0 {
            return Ok(0);
        }
        let read = from.wrapping_add(next.skipped);
        if flags & libc::MSG_TRUNC == 0 && len > 0 {
            into.fill(skip, len, state::receive_ring(slot)?, read);
        }
        let to = read.wrapping_add(len as u32);
        let is_whole = if flags & libc::MSG_PEEK != 0 {
            slot.rx_read.load(Relaxed) == from
        } else {
            // In this order: a handler in between finds the mark far ahead, and must not find it passed where it is not.
            let is_moved = advance(socket.name().0, slot, from, to);
            if is_moved {
                next.note_read(socket, to);
            }
            is_moved
        };
        if is_whole {
            return Ok(len);
        }
    }
}

/// Gives the bytes of the receive ring between two indices back, and rings when the peer waits for a window. `false`: a
/// signal's handler has done so in the middle of what the caller did, and nothing has happened.
pub fn advance(number: u32, slot: &Slot, from: u32, to: u32) -> bool {
    // Sequentially consistent, so that of this and the daemon's setting of the note one sees
    // the other.
    if slot.rx_read.compare_exchange(from, to, SeqCst, Relaxed).is_err() {
        return false;
    }
    let note = slot.rx_note.load(SeqCst);
    let has_room = |note| free(slot.rx_write.load(Relaxed), to, slot.rx_size.load(Relaxed)) >= note;
    if note != 0
        && has_room(note)
        && let Some(family) = family::joined()
    {
        family.ring(number, slot);
    }
    true
}

/// Tells the executor that the socket has news.
pub fn ring(socket: &Socket, slot: &Slot) {
    if let Some(family) = family::joined() {
        family.ring(socket.name().0, slot);
    }
}

/// Sends all of `from`, as far as it does not block.
///
/// # Errors
/// As `send(2)`; `SIGPIPE` is raised unless the flags forbid it.
pub fn send(socket: &Found, from: &Vectors, flags: c_int) -> Answer {
    let is_copied = |(start, len): &(*mut u8, usize)| {
        *len < LEAST || mappings::find(start.addr(), *len).is_none_or(|part| !files::is_known(&part))
    };
    let copied = || from.pieces(0, usize::MAX).filter(is_copied).map(|(_, len)| len).sum::<usize>();
    let portion = portion(|| from.total() > PORTION && copied() > PORTION);
    // What is longer may be sent by reference.
    let extent = if from.total() < LEAST { Extent::Certain } else { Extent::AtMost };
    send_with(socket, from.total(), (flags, extent), portion, |slot, sent, (at, room)| {
        let ring = state::send_ring(slot)?;
        from.drain(sent, room, ring, at, |at, start, len| {
            let part = if len >= LEAST { mappings::find(start.addr(), len) } else { None };
            part.filter(|part| files::refer(slot, ring, at, part)).map_or(0, |part| part.len)
        });
        Ok(room)
    })
}

/// Bytes after which a raised thread lets its path's executor run.
const PORTION: usize = 128 << 10;

/// What is no longer than this is written whole or not at all, as Linux practically does: between two parts of it others that
/// hold the socket could write theirs, or its writer could die.
const WHOLE: usize = 16 << 10;

/// How much is handed over at once. The executor of a raised thread's path has the thread's own
/// priority and runs when it yields: what is long and has to be copied is handed over in portions,
/// so that the first are on their way while the next are copied. Ordinary threads would only let
/// each other run.
pub fn portion(is_copied: impl FnOnce() -> bool) -> usize {
    if thread::is_raised() && is_copied() { PORTION } else { usize::MAX }
}

/// How much of what there is room for will be placed in the ring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All, and nothing but bytes.
    Certain,
    /// Perhaps less.
    AtMost,
}

/// Sends `want` bytes that `put` places into the ring: it is told how many have been sent,
/// where and for how many there is room, at [`most`](portion) so many at once, and says how many it placed
/// (zero: there are no more).
///
/// # Errors
/// As [`send`], and those of `put`.
pub fn send_with(
    socket: &Found,
    want: usize,
    (flags, extent): (c_int, Extent),
    most: usize,
    put: impl Fn(&Slot, usize, (u32, usize)) -> Answer,
) -> Answer {
    if flags & libc::MSG_FASTOPEN != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let manner = Manner { is_urgent: flags & libc::MSG_OOB != 0, more: flags & libc::MSG_MORE != 0, extent };
    let mut deadline = None;
    let mut sent = 0;
    loop {
        let slot = socket.slot()?;
        let mut claimed = 0;
        if sent > 0 && has_reason(socket, slot) {
            // Why is for the next call.
            return Ok(sent);
        }
        if let Err(errno) = may_send(socket, slot) {
            return finish(sent, errno, flags);
        }
        let connected = state::status(slot) & status::CONNECTED != 0;
        if connected {
            match place(socket, sent, (want - sent).min(most), manner, &put) {
                Ok(Placed::Bytes(n)) => {
                    sent += n;
                    if n == most && sent < want {
                        std::thread::yield_now();
                        continue;
                    }
                }
                Ok(Placed::NoRoom(by)) => claimed = by,
                Ok(Placed::NoMore) => return Ok(sent),
                Err(errno) => return finish(sent, errno, flags),
            }
            if sent == want {
                return Ok(sent);
            }
        }
        let half = |slot: &Slot| (state::send_limit(slot) / 2).max(1);
        if deadline.is_none() && socket.is_nonblocking(flags) {
            // An event set is told of room only if somebody said that it was missed; and room
            // made just before that is used here.
            socket.starved.fetch_add(1, Relaxed);
            let level = state::worthwhile(slot);
            wait::announce(slot, Change::Writable(level));
            let writable = state::writable(slot).saturating_sub(claimed);
            if connected && writable >= level && !state::is_held_back(slot) {
                continue;
            }
            return finish(sent, libc::EAGAIN, flags);
        }
        let limit = *deadline.get_or_insert_with(|| Deadline::after(socket.settings.send_limit()));
        let left = u32::try_from(want - sent).unwrap_or(u32::MAX);
        // Memory may become short meanwhile, and with it the most that there can be room for.
        let level = |slot: &Slot| half(slot).min(left);
        let ready = |slot: &Slot| {
            let writable = state::writable(slot).saturating_sub(claimed);
            let room = writable >= level(slot) && !state::is_held_back(slot);
            (state::status(slot) & status::CONNECTED != 0 && room) || has_reason(socket, slot)
        };
        if let Err(errno) = wait::sleep(socket, slot, Change::Writable(level(slot)), limit, ready) {
            return finish(sent, errno, flags);
        }
    }
}

/// Nothing is sent of a socket that is not connected: why.
///
/// # Errors
/// As [`send`].
pub fn refuse(socket: &Socket, flags: c_int) -> Answer {
    let why = state::take_error(socket.slot()?).unwrap_or(libc::EPIPE);
    finish(0, why, flags)
}

/// What is sent is sent; otherwise the error, with its signal.
fn finish(sent: usize, errno: c_int, flags: c_int) -> Answer {
    if sent > 0 {
        return Ok(sent);
    }
    if errno == libc::EPIPE && flags & libc::MSG_NOSIGNAL == 0 {
        signals::broken_pipe();
    }
    Err(errno)
}

/// How bytes are sent.
#[derive(Clone, Copy)]
struct Manner {
    /// `MSG_OOB`.
    is_urgent: bool,
    /// `MSG_MORE`.
    more: bool,
    extent: Extent,
}

/// What became of an attempt to place bytes in the send ring.
enum Placed {
    Bytes(usize),
    /// So many bytes of what room there is are claimed by what a signal's handler, the caller, has interrupted.
    NoRoom(u32),
    NoMore,
}

fn place(
    socket: &Found,
    sent: usize,
    len: usize,
    manner: Manner,
    put: &impl Fn(&Slot, usize, (u32, usize)) -> Answer,
) -> Answer<Placed> {
    let turn = WritersTurn::take(socket)?;
    if socket.shut.load(Relaxed) & shut::WRITE != 0 {
        // Whoever had the turn before has shut it down.
        return Err(libc::EPIPE);
    }
    let slot = turn.slot();
    let is_certain = manner.extent == Extent::Certain && !manner.is_urgent;
    let _undisturbed = (!is_certain).then(Undisturbed::begin);
    let claim = turn.claim(|claimed| {
        // What was interrupted goes on when this is done: it goes behind that, though the program's own limit is reached.
        let takes = if claimed > 0 { state::room(slot) } else { state::takes(slot) };
        let room = (takes.saturating_sub(claimed) as usize).min(len);
        if room == 0 {
            return Err(if len == 0 { Placed::NoMore } else { Placed::NoRoom(claimed) });
        }
        if sent == 0 && room < len && len <= WHOLE.min(state::worthwhile(slot) as usize) {
            return Err(Placed::NoRoom(claimed));
        }
        Ok(room as u32)
    });
    let claim = match claim {
        Ok(claim) => claim,
        Err(why) => return Ok(why),
    };
    let placed = put(slot, sent, (claim.at, claim.len as usize));
    let bytes = placed.unwrap_or(0).min(claim.len as usize);
    if bytes == 0 {
        claim.publish(0);
        return placed.map(|_| Placed::NoMore);
    }
    if manner.is_urgent {
        urgent::mark(socket, slot, claim.at.wrapping_add(bytes as u32));
    }
    // In the slot, since another process that holds the socket may have said so.
    let had_more = slot.options.load(Relaxed) & option::MORE != 0;
    if manner.more && !had_more {
        follow(socket, slot, true);
    }
    claim.publish(bytes as u32);
    if had_more && !manner.more {
        follow(socket, slot, false);
    }
    ring(socket, slot);
    Ok(Placed::Bytes(bytes))
}

/// More is to follow what is written, or no longer. The executor looks at the bytes first, so that they are with what
/// they are to be with: that is said before those that wait are there, and taken back after those that they wait for.
fn follow(socket: &Socket, slot: &Slot, more: bool) {
    for options in [&socket.settings.stream, &slot.options] {
        if more {
            options.fetch_or(option::MORE, SeqCst)
        } else {
            options.fetch_and(!option::MORE, SeqCst)
        };
    }
    slot.request.fetch_or(request::OPTIONS, SeqCst);
}

/// Whether nothing may be sent any more.
fn is_refused(socket: &Socket, slot: &Slot) -> bool {
    const ALIVE: u32 = status::CONNECTED | status::CONNECTING;
    let status = state::status(slot);
    let over = status & (status::SEND_CLOSED | status::FAILED) != 0 || status & ALIVE == 0;
    over || socket.shut.load(Relaxed) & shut::WRITE != 0
}

/// Whether the next who sends may be told an error.
pub fn may_be_refused(socket: &Socket) -> bool {
    socket.slot().is_ok_and(|slot| has_reason(socket, slot))
}

/// Whether who sends is told something else than how much was sent. Takes no error.
fn has_reason(socket: &Socket, slot: &Slot) -> bool {
    is_refused(socket, slot) || state::has_error(slot)
}

/// Whether anything may be sent: an error is told once, then the pipe is broken. What the network
/// says of a connection that goes on (`IP_RECVERR`) is told once, too.
fn may_send(socket: &Socket, slot: &Slot) -> Answer<()> {
    match state::take_error(slot) {
        Some(errno) => Err(errno),
        None if is_refused(socket, slot) => Err(libc::EPIPE),
        None => Ok(()),
    }
}
