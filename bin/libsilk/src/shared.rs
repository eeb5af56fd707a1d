//! A socket that other processes hold, too: forked ones, or one that it was passed to. As on Linux they take turns at its
//! rings, and what one of them sets, shuts down or makes of it is so for all ([`silk_stream::Shared`]). While a process has
//! its sockets for itself none of this costs anything.

use crate::family;
use crate::lock::{Guarded, Lock};
use crate::record::{self, SharedWords};
use crate::signals::Blocked;
use crate::socket::Socket;
use silk_stream::{SHARED_WORDS, Shared};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What this process has last heard of a socket from its other holders, or told them, by the place of the socket's record. By that
/// alone what another process has changed is told from what a thread of this one is just changing.
static AGREED: Guarded<BTreeMap<u32, SharedWords>> = Guarded::new(BTreeMap::new());

/// The lock of that, to be held across a fork.
pub fn lock() -> &'static Lock {
    AGREED.bare()
}

/// Does something with what is agreed on. For who has held signals back: no handler comes in between.
fn with_agreed(socket: &Socket, what: impl FnOnce(&mut SharedWords)) {
    if let Some(mut agreed) = AGREED.lock_unless_own() {
        what(agreed.entry(socket.index()).or_insert_with(|| record::shared_words(socket)));
    }
}

/// What the holders share of a socket that has several, or had.
#[inline]
pub fn of(socket: &Socket) -> Option<&'static Shared> {
    if socket.is_shared.load(Acquire) { record(socket) } else { None }
}

fn record(socket: &Socket) -> Option<&'static Shared> {
    family::joined()?.arena.shared(socket.name().0)
}

/// Other processes are about to hold sockets that silk serves.
pub fn begin<'a>(sockets: impl IntoIterator<Item = &'a Socket>) {
    let _quiet = Blocked::all();
    sockets.into_iter().for_each(begin_one);
}

fn begin_one(socket: &Socket) {
    let Some(shared) = record(socket).filter(|_| !socket.is_shared.load(Acquire)) else { return };
    let words = record::shared_words(socket);
    with_agreed(socket, |agreed| *agreed = words);
    socket.known.store(shared.begin(&words), Relaxed);
    socket.is_shared.store(true, Release);
    // Other threads that began before they could know of it.
    socket.reading.outlast();
    socket.writing.outlast();
}

/// A socket that this process has been given by another, which has begun to share it.
pub fn join(socket: &Socket) {
    if let Some(shared) = record(socket) {
        let quiet = Blocked::all();
        with_agreed(socket, |agreed| *agreed = record::shared_words(socket));
        drop(quiet);
        // Whatever has changed since it was described.
        socket.known.store(shared.changes().wrapping_sub(1), Relaxed);
        socket.is_shared.store(true, Release);
        catch_up(socket);
    }
}

/// A socket that this process has had before it executed this program. A thread that ended with that may have had a turn.
pub fn resume(socket: &Socket) {
    if let Some(shared) = record(socket) {
        shared.let_go(family::process());
    }
    join(socket);
}

/// Takes over what others have changed.
#[inline]
pub fn catch_up(socket: &Socket) {
    if let Some(shared) = of(socket)
        && shared.changes() != socket.known.load(Acquire)
    {
        take_over(socket, shared);
    }
}

#[cold]
fn take_over(socket: &Socket, shared: &Shared) {
    let _quiet = Blocked::all();
    with_agreed(socket, |agreed| {
        let (changes, words) = (shared.changes(), shared.words());
        record::take_over(socket, &words, &record::differing(agreed, &words));
        *agreed = words;
        // Last: until then other threads wait for it here.
        socket.known.store(changes, Release);
    });
}

/// Tells the others what has been changed since it was as `before`. What they themselves have told meanwhile has not.
fn tell(socket: &Socket, shared: &Shared, before: &SharedWords) {
    if record::shared_words(socket) == *before {
        return;
    }
    let _quiet = Blocked::all();
    with_agreed(socket, |agreed| {
        let now = record::shared_words(socket);
        let mut own = record::differing(before, &now);
        own.iter_mut().zip(record::differing(agreed, &now)).for_each(|(own, new)| *own &= new);
        if own == [0; SHARED_WORDS] {
            return;
        }
        for (agreed, (now, own)) in agreed.iter_mut().zip(now.iter().zip(&own)) {
            *agreed = (*agreed & !own) | (now & own);
        }
        let known = shared.tell(&now, &own);
        // Unless another process has changed something meanwhile.
        let last = known.wrapping_sub(1);
        let _ = socket.known.compare_exchange(last, known, AcqRel, Relaxed);
    });
}

/// Something about a socket is being changed: the others are told when that is done.
pub struct Alteration<'a> {
    socket: &'a Socket,
    before: Option<SharedWords>,
}

impl<'a> Alteration<'a> {
    /// Before it is changed.
    #[inline]
    pub fn begin(socket: &'a Socket) -> Self {
        catch_up(socket);
        Self { socket, before: of(socket).map(|_| record::shared_words(socket)) }
    }
}

impl Drop for Alteration<'_> {
    fn drop(&mut self) {
        if let (Some(before), Some(shared)) = (&self.before, of(self.socket)) {
            tell(self.socket, shared, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::flag;
    use crate::socket::{self, Role, shut, stage};

    /// One socket, as two processes have it, and what they share of it.
    fn held_twice() -> ([&'static Socket; 2], Shared) {
        let shared = Shared::default();
        let records = [(); 2].map(|()| socket::make(stage::UNDECIDED, 3, 0).unwrap());
        let words = record::shared_words(records[0]);
        let known = shared.begin(&words);
        for socket in records {
            with_agreed(socket, |agreed| *agreed = words);
            socket.known.store(known, Relaxed);
        }
        (records, shared)
    }

    fn changed(socket: &Socket, shared: &Shared, change: impl FnOnce()) {
        let before = record::shared_words(socket);
        change();
        tell(socket, shared, &before);
    }

    #[test]
    fn what_a_thread_is_changing_is_not_undone_by_what_another_process_has_changed() {
        let ([ours, theirs], shared) = held_twice();
        changed(ours, &shared, || {
            ours.flags.fetch_or(libc::O_NONBLOCK as u32, Relaxed);
            ours.settings.keep_idle.store(77, Relaxed);
            ours.settings.set_flag(flag::REUSE_PORT, true);
            ours.set_role(Role::Listener);
            changed(theirs, &shared, || {
                theirs.settings.linger.store(4, Relaxed);
                theirs.settings.set_flag(flag::TELL_LEFT, true);
                theirs.shut.fetch_or(shut::WRITE, Relaxed);
            });
            // Another thread is about to call something.
            take_over(ours, &shared);
        });
        take_over(theirs, &shared);
        for socket in [ours, theirs] {
            let settings = &socket.settings;
            assert_eq!(socket.flags.load(Relaxed), libc::O_NONBLOCK as u32);
            assert_eq!((socket.role(), socket.shut.load(Relaxed)), (Role::Listener, shut::WRITE));
            assert_eq!(settings.flags.load(Relaxed), flag::REUSE_PORT | flag::TELL_LEFT);
            assert_eq!([&settings.keep_idle, &settings.linger].map(|cell| cell.load(Relaxed)), [77, 4]);
        }
    }

    #[test]
    fn what_another_process_has_changed_is_not_told_back_to_it() {
        let ([ours, theirs], shared) = held_twice();
        let linger = |seconds| changed(theirs, &shared, || theirs.settings.linger.store(seconds, Relaxed));
        changed(ours, &shared, || {
            linger(4);
            take_over(ours, &shared);
            linger(5);
            ours.settings.keep_idle.store(77, Relaxed);
        });
        for socket in [ours, theirs] {
            take_over(socket, &shared);
            let settings = &socket.settings;
            assert_eq!([&settings.keep_idle, &settings.linger].map(|cell| cell.load(Relaxed)), [77, 5]);
        }
    }

    #[test]
    fn what_nobody_is_told_of_stays_and_what_is_taken_back_is_told() {
        let ([ours, theirs], shared) = held_twice();
        let inline = silk_stream::option::URGENT_INLINE;
        ours.settings.stream.fetch_or(silk_stream::option::MORE, Relaxed);
        let set = |on| changed(theirs, &shared, || theirs.settings.stream.store(on, Relaxed));
        for on in [inline, 0] {
            set(on | silk_stream::option::JOINED_ALONE);
            take_over(ours, &shared);
            let now = ours.settings.stream.load(Relaxed);
            assert_eq!(now, on | silk_stream::option::JOINED_ALONE | silk_stream::option::MORE);
        }
    }
}
