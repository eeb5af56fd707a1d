//! Letting go of a socket. The last descriptor of the last process ends the connection: by a
//! bit in the slot where this process is the only holder, by a message where it may not be.
//! After that the slot is the daemon's and must not be touched.

use crate::clock::now;
use crate::ending;
use crate::epoll;
use crate::errno::Answer;
use crate::family::{self, Family};
use crate::gate;
use crate::listener;
use crate::real;
use crate::socket::{Role, Socket, shape};
use crate::state;
use crate::table::{self, Entry};
use crate::wait::{self, Change, Deadline};
use silk_control::Request;
use silk_stream::{Slot, request, status};
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// `close(2)`.
///
/// # Safety
/// As the C library's: nobody may use the number afterwards.
pub unsafe fn close(fd: c_int) -> c_int {
    // A thread that was cancelled ends here, as in Linux's, and not inside the gate.
    // SAFETY: nothing that would have to be dropped is on the stack.
    unsafe { real::testcancel() };
    let _inside = match table::entry(fd) {
        None => None,
        Some(Entry::Internal) => {
            crate::errno::set(libc::EBADF);
            return -1;
        }
        Some(_) => {
            linger(fd);
            let inside = gate::pass();
            forget(fd);
            Some(inside)
        }
    };
    // SAFETY: the caller closes what it owns.
    unsafe { real::close_for_sure(fd) }
}

/// The program's descriptor `fd` names nothing of ours any more; the kernel's part is the
/// caller's business: after that, so that the number is not in use again before, and both inside
/// the [`gate`], so that a child has all of it or nothing.
pub fn forget(fd: c_int) {
    let what = table::take(fd);
    forget_as(fd, what);
}

/// The same of a descriptor that was `what`, and is not in the table as that any more.
pub fn forget_as(fd: c_int, what: Option<Entry>) {
    match what {
        Some(Entry::Socket(socket)) => {
            epoll::forget_descriptor(socket, fd);
            if socket.drop_descriptor() {
                let_go(socket);
            }
        }
        Some(Entry::Epoll(set)) => set.drop_descriptor(fd),
        Some(Entry::Internal) => {
            table::put(fd, Entry::Internal);
        }
        None => {}
    }
}

/// No descriptor of this process names the socket any more.
pub fn let_go(socket: &'static Socket) {
    // Another thread may just be naming it.
    let turn = socket.naming.turn();
    if socket.is_served()
        && let Some(family) = family::joined()
        && let Ok(slot) = socket.slot()
    {
        socket.leave_to_linux();
        wait::disturb(slot);
        if socket.role() == Role::Listener && wait::has_sleepers() {
            listener::disturb(family, slot);
        }
        // Who reads or writes is done with the rings before they are another connection's.
        let turns = (socket.reading.turn(), socket.writing.turn());
        end(family, socket, slot);
        drop(turns);
    }
    drop(turn);
    socket.free();
}

/// Says that this process holds the socket no more. Its slot is not to be touched afterwards.
fn end(family: &Family, socket: &Socket, slot: &Slot) {
    let (number, generation) = socket.name();
    let is_last = is_ended_by_slot(socket, slot);
    let abort = if is_last { is_abort(socket, slot) } else { has_no_time_to_linger(socket) };
    if socket.role() == Role::Stream && !abort {
        // What another that held it wished, who was not the last.
        slot.request.fetch_and(!request::ABORT, SeqCst);
    }
    if is_last {
        family.request(number, slot, request::CLOSE | if abort { request::ABORT } else { 0 });
    } else {
        if socket.role() == Role::Stream && abort {
            // Whoever turns out to be the last holder.
            slot.request.fetch_or(request::ABORT, SeqCst);
        }
        family::tell(&Request::Release { slot: number, generation });
    }
}

/// Whether a bit in the slot ends the socket: nobody else holds it, and it is a stream that
/// the daemon's executors know; the rest is in the control thread's book alone.
fn is_ended_by_slot(socket: &Socket, slot: &Slot) -> bool {
    is_connection(socket, slot) && slot.holders.load(SeqCst) <= 1
}

/// Whether there is a peer, or has been.
fn is_connection(socket: &Socket, slot: &Slot) -> bool {
    socket.role() == Role::Stream && (socket.is(shape::ACCEPTED) || slot.status.load(SeqCst) != 0)
}

/// Whether the peer is told by a reset: data were left unread, or `SO_LINGER` says so.
fn is_abort(socket: &Socket, slot: &Slot) -> bool {
    socket.role() == Role::Stream && (state::arrived(slot) > 0 || has_no_time_to_linger(socket))
}

/// `SO_LINGER` with zero seconds.
fn has_no_time_to_linger(socket: &Socket) -> bool {
    socket.settings.linger.load(Relaxed) == 1
}

/// `SO_LINGER` with a time: before its last descriptor is closed, waits until everything has been
/// acknowledged. That may take long, so it is not done inside the gate.
pub fn linger(fd: c_int) {
    let Some(socket) = table::served(fd).filter(|socket| socket.has_one_descriptor()) else { return };
    let seconds = socket.settings.linger.load(Relaxed);
    if seconds <= 1 || socket.role() != Role::Stream {
        return;
    }
    let Ok(slot) = socket.slot() else { return };
    // What was left unread makes it a reset, for which nobody waits.
    if slot.holders.load(SeqCst) > 1 || state::arrived(slot) > 0 {
        return;
    }
    let deadline = Deadline::after(Some(Duration::from_secs(u64::from(seconds) - 1)));
    let over = |slot: &Slot| state::unsent(slot) == 0 || state::status(slot) & status::FAILED != 0;
    if !over(slot)
        && let Some(family) = family::joined()
    {
        // The last of it waits for nothing any more.
        family.request(socket.name().0, slot, request::PUSH);
    }
    while !over(slot) {
        let all = slot.tx_size.load(Relaxed);
        if wait::sleep(&socket, slot, Change::Writable(all), deadline, over).is_err() {
            return;
        }
    }
}

/// So long, for all of its sockets together, a process that ends waits for its own threads that are copying.
const LAST_TURNS: Duration = Duration::from_millis(100);

/// The process ends of its own will: its connections are closed as Linux would close them, with
/// what was written still to be sent. All else goes when the lifeline hangs up, as everything does
/// of a process that is killed: its connections are reset.
pub fn everything() {
    let Some(family) = family::joined() else { return };
    ending::begin();
    let _inside = gate::pass();
    let deadline = now() + LAST_TURNS;
    for (_, entry) in table::within(0, u32::MAX) {
        let Entry::Socket(socket) = entry else { continue };
        if let Ok(slot) = socket.slot()
            && is_connection(socket, slot)
        {
            socket.leave_to_linux();
            // Other threads run on until the process has ended, and the rings may be another connection's before. Who does not come to an
            // end, as in a handler that waits itself, ends with the process: the rings are left to the lifeline, which hangs up after that.
            let turns = (socket.reading.turn_until(deadline), socket.writing.turn_until(deadline));
            if let (Some(_reading), Some(_writing)) = turns {
                end(family, socket, slot);
            }
        }
    }
}

/// Closes every descriptor from `first` to `last` but ours; `kernels` does so with a range of numbers.
///
/// # Errors
/// What `kernels` says.
pub fn close_range(first: u32, last: u32, kernels: impl Fn(u32, u32) -> Answer<()>) -> Answer<()> {
    table::within(first, last).for_each(|(fd, _)| linger(fd));
    let _inside = gate::pass();
    forget_range(first, last).into_iter().try_for_each(|(first, last)| kernels(first, last))
}

/// Forgets every known descriptor from `first` to `last`, and gives the ranges of numbers that are left
/// for the kernel: all but ours.
fn forget_range(first: u32, last: u32) -> Vec<(u32, u32)> {
    let known: Vec<_> = table::within(first, last).collect();
    let mut ranges = Vec::new();
    let mut next = first;
    for (fd, entry) in known {
        if entry == Entry::Internal {
            let fd = fd.unsigned_abs();
            if fd > next {
                ranges.push((next, fd - 1));
            }
            next = fd + 1;
        } else {
            forget(fd);
        }
    }
    if next <= last {
        ranges.push((next, last));
    }
    ranges
}
