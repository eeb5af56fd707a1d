//! `sendfile` to a socket of ours: the file is read straight into the send ring, one copy as
//! in the kernel.

use crate::errno::{Answer, check_size};
use crate::real;
use crate::socket::{Role, Socket};
use crate::state;
use crate::stream_io;
use libc::off_t;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

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
pub unsafe fn send(socket: &Socket, file: c_int, at: *mut off_t, count: usize) -> Answer {
    if socket.role() != Role::Stream {
        return Err(libc::EINVAL);
    }
    // SAFETY: as the caller promises.
    let start = if at.is_null() { None } else { Some(unsafe { at.read_unaligned() }) };
    if start.is_some_and(|start| start < 0) {
        return Err(libc::EINVAL);
    }
    let done = Cell::new(0usize);
    let sent = stream_io::send_with(socket, count.min(MOST), 0, |slot, _, room| {
        let ring = state::send_ring(slot)?;
        let vectors = ring.vectors(slot.tx_write.load(Relaxed), room);
        let parts = if vectors.last().is_some_and(|second| second.iov_len > 0) { 2 } else { 1 };
        // SAFETY: the vectors name `room` free bytes of the ring, which nobody else writes;
        // the second one only if it has any.
        let got = check_size(unsafe {
            match start {
                None => real::readv(file, vectors.as_ptr(), parts),
                Some(start) => {
                    let from = start.saturating_add(off_t::try_from(done.get()).unwrap_or(off_t::MAX));
                    real::preadv(file, vectors.as_ptr(), parts, from)
                }
            }
        })?;
        done.set(done.get() + got);
        Ok(got)
    })?;
    if let Some(start) = start {
        // SAFETY: as the caller promises.
        unsafe { at.write_unaligned(start + off_t::try_from(sent).unwrap_or(0)) };
    }
    Ok(sent)
}
