//! `sendfile` to a socket of ours: to a stream a reference to the file, or what it says is read straight into the
//! send ring (or [`ahead`](crate::direct), where that cannot be); to a datagram socket one datagram.

use crate::direct::{Ahead, is_direct};
use crate::errno::{self, Answer, check_size};
use crate::files;
use crate::mappings::{LEAST, Part, identify};
use crate::real;
use crate::socket::{Found, Role};
use crate::state;
use crate::stream_io::{self, Extent};
use crate::transfer;
use crate::vectors::{self, Vectors};
use libc::off_t;
use silk_stream::Slot;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// Linux moves at most so much in one call.
const MOST: usize = 0x7fff_f000;

/// Sends at most `count` bytes of `file`, from `at` if it is not null, else from where the
/// file stands.
///
/// # Errors
/// As `sendfile(2)`.
///
/// # Safety
/// `at` is null or points to an offset.
pub unsafe fn send(socket: &Found, file: c_int, at: *mut off_t, count: usize) -> Answer {
    // SAFETY: as the caller promises.
    let start = if at.is_null() { None } else { Some(unsafe { at.read_unaligned() }) };
    // To Linux a count is a signed number, too.
    if start.is_some_and(|start| start < 0) || isize::try_from(count).is_err() {
        return Err(libc::EINVAL);
    }
    // Linux looks first whether there is anything to send.
    let is_nothing = || count == 0 || left_of(file, start) == Some(0) && !says_more(file, start);
    let sent = match socket.role() {
        Role::Stream if stream_io::may_be_refused(socket) && is_nothing() => Ok(0),
        Role::Stream => match send_stream(socket, file, start, count) {
            Err(libc::EAGAIN) if is_nothing() => Ok(0),
            sent => sent,
        },
        Role::Datagram | Role::Listener => send_whole(socket, file, start, count),
    }?;
    if let Some(start) = start {
        // SAFETY: as the caller promises.
        unsafe { at.write_unaligned(start + off_t::try_from(sent).unwrap_or(0)) };
    }
    Ok(sent)
}

/// As one message, which nobody takes of a socket that listens. More than Linux's pipe holds fits no datagram.
fn send_whole(socket: &Found, file: c_int, start: Option<off_t>, count: usize) -> Answer {
    let mut bytes = vec![0u8; count.min(1 << 16)];
    let at = start.map_or_else(|| standing(file), Ok)?;
    // SAFETY: so many bytes of the buffer may be written.
    let got = check_size(unsafe { real::pread(file, bytes.as_mut_ptr().cast(), bytes.len(), at) })?;
    if got == 0 {
        return Ok(0);
    }
    let parts = vectors::single(bytes.as_ptr().cast(), got);
    // SAFETY: the buffer has so many bytes.
    let whole = unsafe { Vectors::new(&parts) };
    let sent = transfer::send(socket, &whole, 0)?;
    if start.is_none() {
        advance(file, sent);
    }
    Ok(sent)
}

/// Where a file stands. What would be gone if it could not be sent is not taken, of Linux neither: pipes, sockets.
fn standing(file: c_int) -> Answer<off_t> {
    // SAFETY: no memory is involved.
    match unsafe { libc::lseek(file, 0, libc::SEEK_CUR) } {
        at @ 0.. => Ok(at),
        _ if errno::last() == libc::ESPIPE => Err(libc::EINVAL),
        _ => Err(errno::last()),
    }
}

fn advance(file: c_int, by: usize) {
    // SAFETY: no memory is involved.
    unsafe { libc::lseek(file, off_t::try_from(by).unwrap_or(0), libc::SEEK_CUR) };
}

fn send_stream(socket: &Found, file: c_int, start: Option<off_t>, count: usize) -> Answer {
    let (done, ahead) = (Cell::new(0usize), RefCell::new(Ahead::new()));
    let is_copied = || !part_of(file, start, count).is_some_and(|part| files::is_known(&part));
    let portion = stream_io::portion(is_copied);
    // Nobody waits for room for what is behind the end of the file.
    let may_wait = socket.slot().is_ok_and(|slot| count > state::writable(slot) as usize);
    let whole = may_wait.then(|| part_of(file, start, count.min(MOST))).flatten();
    let want = whole.filter(|part| part.len > 0).map_or(count.min(MOST), |part| part.len);
    stream_io::send_with(socket, want, (0, Extent::AtMost), portion, |slot, _, free| {
        let at = start.map(|start| start.saturating_add(off_t::try_from(done.get()).unwrap_or(off_t::MAX)));
        let left = count.saturating_sub(done.get());
        let got = put_next(slot, free, (file, at, left), &mut ahead.borrow_mut())?;
        done.set(done.get() + got);
        Ok(got)
    })
}

/// Puts what comes next into a ring that has `room` at `place`: what was read `ahead`, or what the file has from `at`
/// on, or from where it stands, by reference if that can be. `left`: what the program asked for and has not got.
fn put_next(
    slot: &Slot,
    (place, room): (u32, usize),
    (file, at, left): (c_int, Option<off_t>, usize),
    ahead: &mut Ahead,
) -> Answer {
    let ring = state::send_ring(slot)?;
    if ahead.is_empty() {
        if room >= LEAST
            && let Some(part) = part_of(file, at, room)
            && files::refer(slot, ring, place, &part)
        {
            if at.is_none() {
                advance(file, part.len);
            }
            return Ok(part.len);
        }
        let from = at.map_or_else(|| standing(file), Ok)?;
        let got = read_into_ring(slot, (place, room), |vectors, parts| {
            // SAFETY: as there.
            unsafe {
                match at {
                    None => real::readv(file, vectors, parts),
                    Some(at) => real::preadv(file, vectors, parts, at),
                }
            }
        });
        if got != Err(libc::EINVAL) || !is_direct(file) {
            return got;
        }
        ahead.read(file, from, left)?;
    }
    let put = ahead.put(ring, place, room);
    if at.is_none() {
        advance(file, put);
    }
    Ok(put)
}

/// Lets `read` put at most `room` bytes into the send ring of a socket, from an index on. It is given vectors as `readv(2)` takes
/// them, which name free bytes of the ring that nobody else writes to, and how many.
pub fn read_into_ring(
    slot: &Slot,
    (place, room): (u32, usize),
    read: impl FnOnce(*const libc::iovec, c_int) -> isize,
) -> Answer {
    let vectors = state::send_ring(slot)?.vectors(place, room);
    let parts = if vectors.last().is_some_and(|second| second.iov_len > 0) { 2 } else { 1 };
    check_size(read(vectors.as_ptr(), parts))
}

/// How many bytes of a regular file there are from `at` on, or from where it stands.
fn left_of(file: c_int, at: Option<off_t>) -> Option<u64> {
    let (_, _, length) = identify(file)?;
    Some(length.saturating_sub(u64::try_from(at.map_or_else(|| standing(file), Ok).ok()?).ok()?))
}

/// Whether a file has something where it is said to end, as those of `/proc` have, whose length is told as none.
fn says_more(file: c_int, at: Option<off_t>) -> bool {
    let Ok(at) = at.map_or_else(|| standing(file), Ok) else { return false };
    let mut octet = 0u8;
    // SAFETY: one byte may be written.
    unsafe { real::pread(file, (&raw mut octet).cast(), 1, at) == 1 }
}

/// At most `most` bytes of a regular file from `at` on, or from where it stands.
fn part_of(file: c_int, at: Option<off_t>, most: usize) -> Option<Part> {
    let (device, inode, length) = identify(file)?;
    // SAFETY: no memory is involved.
    let at = at.unwrap_or_else(|| unsafe { libc::lseek(file, 0, libc::SEEK_CUR) });
    let offset = u64::try_from(at).ok()?;
    let len = usize::try_from(length.checked_sub(offset)?).ok()?.min(most);
    Some(Part { device, inode, offset, len, fd: file })
}
