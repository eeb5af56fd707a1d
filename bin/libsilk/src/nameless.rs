//! Threads that wait for datagram sockets that have no name yet. Such a socket is the kernel's, to which nothing can
//! come for it, and once another thread has given it a name nothing ever will, if silk serves it then. So who wants to
//! receive sleeps on the word that says who serves it, and who waits in the kernel for several descriptors waits for an eventfd
//! beside them, which is written when silk has begun to serve some such socket.

use crate::datagram_io;
use crate::errno::Answer;
use crate::internal;
use crate::socket::{Found, Socket, shape, shut};
use crate::table;
use crate::wait::{self, Deadline, asleep};
use silk_stream::wake::{self, Woken};
use std::ffi::c_int;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, fence};

/// Receiving from a socket with these flags does not wait.
const AT_ONCE: c_int = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB;

/// Whether `fd` is such a socket.
pub fn is_nameless(fd: c_int) -> bool {
    table::socket(fd).is_some_and(|socket| socket.is_undecided() && socket.is(shape::DATAGRAM))
}

/// The socket of ours that something is to be received from: one that has no name yet is waited for, if the call
/// `waits` and nothing else ends that.
///
/// # Errors
/// `EAGAIN` when the time is up (`SO_RCVTIMEO`); `EINTR`; `EBADF` where it was closed meanwhile: the number may be another's.
#[inline]
pub fn reader(fd: c_int, flags: c_int, waits: bool) -> Answer<Option<Found>> {
    match table::found(fd) {
        Some(socket) if socket.is_undecided() && waits => {
            let waited = until_named(&socket, fd, flags)?;
            let now = table::found(fd);
            if waited.is_some() && !now.is_some_and(|now| now.is_same(socket)) {
                return Err(libc::EBADF);
            }
            let socket = table::served(fd);
            if let (Some(socket), Some(deadline)) = (&socket, waited) {
                // A call that waits goes on to, whatever the socket is told to do meanwhile.
                datagram_io::until_news(socket, deadline)?;
            }
            Ok(socket)
        }
        Some(socket) if socket.is_served() => Ok(table::served(fd)),
        _ => Ok(None),
    }
}

/// Until when the call waits, if it does.
#[cold]
fn until_named(socket: &Found, fd: c_int, flags: c_int) -> Answer<Option<Deadline>> {
    if !socket.is(shape::DATAGRAM) || flags & AT_ONCE != 0 || socket.is_nonblocking(flags) {
        return Ok(None);
    }
    let deadline = Deadline::after(socket.settings.receive_limit());
    // Another thread may close it meanwhile.
    let is_it = || table::socket(fd).is_some_and(|named| std::ptr::eq(named, socket.record()));
    let is_open = || socket.is_undecided() && socket.shut.load(SeqCst) & shut::READ == 0 && is_it();
    while is_open() {
        let limit = deadline.nap().ok_or(libc::EAGAIN)?;
        // Counted before the last look: who names it then knows that somebody sleeps.
        let woken = asleep(|| {
            let word = socket.server();
            // What moves no word is looked at again when the nap is over.
            if is_open() { wait::nap(&[word], deadline.is_set(), limit) } else { Woken::Changed }
        });
        if woken == Woken::Interrupted {
            return Err(libc::EINTR);
        }
    }
    Ok(Some(deadline))
}

/// So many threads can wait in the kernel for such sockets; who finds no place looks now and then.
const PLACES: usize = 64;

/// An eventfd for a thread that waits.
struct Place {
    /// Its number; -1: not made yet. It stays for the process's next that waits.
    event: AtomicI32,
    is_taken: AtomicBool,
}

static PLACED: [Place; PLACES] =
    [const { Place { event: AtomicI32::new(-1), is_taken: AtomicBool::new(false) } }; PLACES];

/// While it lives, its thread is called when silk has begun to serve a socket.
pub struct Call(&'static Place);

impl Call {
    /// A place, to be taken before it is looked who serves the sockets. `None`: there are too many.
    pub fn take() -> Option<Self> {
        let place = PLACED.iter().find(|place| !place.is_taken.swap(true, SeqCst))?;
        let call = Self(place);
        if place.event.load(SeqCst) < 0 {
            let event = wake::event().ok()?;
            place.event.store(internal::keep(event).into_raw_fd(), SeqCst);
        }
        // What it was written for concerned somebody else.
        call.hush();
        // Pairs with `announce`: who names a socket sees the place, or its name is seen here.
        fence(SeqCst);
        Some(call)
    }

    /// The eventfd's number, for the kernel to watch.
    pub fn descriptor(&self) -> c_int {
        self.0.event.load(Relaxed)
    }

    /// Makes the eventfd quiet again.
    pub fn hush(&self) {
        wake::drain(self.0.borrow());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.is_taken.store(false, SeqCst);
    }
}

impl Place {
    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the number is that of an eventfd that the process keeps until it forks, and then the child, which has no
        // other threads, makes its own. The library keeps programs from closing it.
        unsafe { BorrowedFd::borrow_raw(self.event.load(Relaxed)) }
    }
}

/// It is decided who serves a socket, or it was shut down: who has waited for that looks again.
pub fn announce(socket: &Socket) {
    if !socket.is(shape::DATAGRAM) {
        return;
    }
    // Pairs with `Call::take`.
    fence(SeqCst);
    if wait::has_sleepers() {
        wake::wake(socket.server().0, i32::MAX);
    }
    let waiting = |place: &&Place| place.is_taken.load(SeqCst) && place.event.load(SeqCst) >= 0;
    PLACED.iter().filter(waiting).for_each(|place| _ = wake::notify(place.borrow()));
}

/// In a forked child, whose parent has the eventfds, too: it makes its own.
pub fn begin_anew() {
    for place in &PLACED {
        place.is_taken.store(false, SeqCst);
        let event = place.event.swap(-1, SeqCst);
        if event >= 0 {
            // SAFETY: the child's copy, which is named nowhere any more.
            internal::close(unsafe { OwnedFd::from_raw_fd(event) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{self, stage};

    #[test]
    fn who_has_forked_in_the_middle_of_a_wait_is_called_the_next_time() {
        let socket = socket::make(stage::UNDECIDED, shape::DATAGRAM, 0).expect("a record");
        let is_called = |call: &Call| {
            let mut look = libc::pollfd { fd: call.descriptor(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one pollfd, no waiting.
            unsafe { libc::poll(&mut look, 1, 0) == 1 }
        };
        let call = Call::take().expect("a place");
        announce(socket);
        assert!(is_called(&call));
        // Its signal's handler forks, and this is the child.
        begin_anew();
        drop(call);
        let call = Call::take().expect("a place");
        assert!(!is_called(&call));
        announce(socket);
        assert!(is_called(&call));
    }
}
