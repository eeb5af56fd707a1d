//! The family this process belongs to: the arena, the doorbells and the lifeline to the
//! daemon. Joined at the first socket whose server must be decided, once; where that fails,
//! one line says so and Linux serves everything.
//!
//! The daemon may be killed at any moment and then nobody wakes the sleepers: whoever sleeps
//! does so in pieces of [`PATIENCE`] and asks [`Family::is_dead`] between them.

use crate::address_space;
use crate::environment;
use crate::errno::Answer;
use crate::internal;
use crate::lock::{Guarded, Lock};
use crate::real;
use crate::signals::Blocked;
use crate::speaking;
use silk_control::{Lifeline, Received, Reply, Request};
use silk_stream::{Arena, Slot, request, status, wake};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

/// How long a wait lasts at most before the daemon's health is looked at. Not whole seconds, for which programs
/// set alarms: a handler that runs as a sleep on a word ends by time goes unseen (see [`crate::signals::Held`]).
pub const PATIENCE: Duration = Duration::from_millis(1137);

/// What was joined. Never freed: any thread may be using it.
pub struct Family {
    /// The shared memory.
    pub arena: Arena,
    events: Vec<OwnedFd>,
    /// What lets other processes join.
    pub token: u64,
}

static FAMILY: AtomicPtr<Family> = AtomicPtr::new(ptr::null_mut());
static LINE: Guarded<Option<Lifeline>> = Guarded::new(None);
/// The lifeline's number for those who only look whether it hangs; -1: none.
static LINE_NUMBER: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static DEAD: AtomicBool = AtomicBool::new(false);
static REFUSED: AtomicBool = AtomicBool::new(false);

/// The family, if it has been joined.
#[inline]
pub fn joined() -> Option<&'static Family> {
    // SAFETY: the pointer is null or was leaked by `found` and is never freed.
    unsafe { FAMILY.load(Ordering::Acquire).as_ref() }
}

/// Bytes of address space that the family's arena takes; 0: none has been joined.
pub fn arena_length() -> u64 {
    joined().map_or(0, |family| family.arena.length() as u64)
}

/// The family, joined now if it has not been yet.
///
/// # Errors
/// `ENETDOWN` when there is no daemon to join.
pub fn join() -> Answer<&'static Family> {
    if let Some(family) = joined() {
        return Ok(family);
    }
    let _quiet = Blocked::all();
    let mut line = LINE.lock();
    if let Some(family) = joined() {
        return Ok(family);
    }
    if REFUSED.load(Ordering::Relaxed) {
        return Err(libc::ENETDOWN);
    }
    match attach() {
        Ok((lifeline, family, process)) => {
            LINE_NUMBER.store(lifeline.as_fd().as_raw_fd(), Ordering::Release);
            *line = Some(lifeline);
            Ok(found(family, process))
        }
        Err(why) => {
            REFUSED.store(true, Ordering::Relaxed);
            let rest = if environment::is_strict() { "its sockets fail" } else { "Linux serves its sockets" };
            speaking::say(&format!("{why}; {rest}"));
            Err(libc::ENETDOWN)
        }
    }
}

/// Makes a family the process's own.
fn found(family: Family, process: u32) -> &'static Family {
    PROCESS.store(process, Ordering::Release);
    let family = Box::leak(Box::new(family));
    FAMILY.store(family, Ordering::Release);
    family
}

fn attach() -> Result<(Lifeline, Family, u32), String> {
    let path = environment::socket_path();
    let line = Lifeline::connect(&path).map_err(|error| not_reached(&path, &error))?;
    let request = Request::Attach {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        family: environment::family(),
        program: environment::program(),
    };
    let got: Received<Reply> =
        line.ask(&request, &[]).map_err(|e| format!("silkd on {} did not answer: {e}", path.display()))?;
    let (token, process, domains) = match got.message {
        Reply::Attached { family, process, domains } => (family, process, domains),
        Reply::Refused(refusal) => return Err(refusal.why),
        _ => return Err("silkd answered with something else than was asked".to_owned()),
    };
    // What there is no room for the kernel leaves out.
    let all = got.descriptors.len() == domains as usize + 1;
    let mut descriptors = got.descriptors.into_iter().map(internal::keep);
    let arena = descriptors.next().filter(|_| all).ok_or(NO_ROOM)?;
    address_space::make_room(Arena::length_of(&arena));
    let arena = Arena::attach(arena).map_err(|e| e.to_string())?;
    let events = descriptors.collect();
    let line = Lifeline::from_descriptor(internal::keep(line.into_descriptor()));
    Ok((line, Family { arena, events, token }, process))
}

/// Said where a program is allowed less descriptors than it takes to be served.
const NO_ROOM: &str = "the program may open no more files (`ulimit -n`), and to be served takes some";

/// Why silkd cannot be spoken to, and what to do.
fn not_reached(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.raw_os_error() {
        Some(libc::EMFILE) => NO_ROOM.to_owned(),
        Some(libc::EACCES) => {
            format!("this user may not speak to silkd on {path}: be root, or in the group of its `[control]`")
        }
        _ => format!("no silkd answers on {path}: {error}; start it first"),
    }
}

/// Takes over what the image before an exec had.
pub fn resume(line: OwnedFd, arena: OwnedFd, events: Vec<OwnedFd>, token: u64, process: u32) -> Answer<()> {
    let arena = Arena::attach(arena).map_err(|_| libc::EPROTO)?;
    replace_line(Lifeline::from_descriptor(line));
    found(Family { arena, events, token }, process);
    Ok(())
}

fn replace_line(line: Lifeline) {
    LINE_NUMBER.store(line.as_fd().as_raw_fd(), Ordering::Release);
    *LINE.lock() = Some(line);
}

/// In a forked child, which has no other threads: the lifeline and number that were made for
/// it. The parent's lifeline is closed here, or its end would never be noticed.
pub fn become_child(line: Lifeline, process: u32) {
    let parents = LINE.lock().take();
    if let Some(parents) = parents {
        internal::close(parents.into_descriptor());
    }
    replace_line(line);
    PROCESS.store(process, Ordering::Release);
}

/// In a child that got no lifeline of its own: nothing here is its to use.
pub fn orphan() {
    if let Some(parents) = LINE.lock().take() {
        internal::close(parents.into_descriptor());
    }
    LINE_NUMBER.store(-1, Ordering::Release);
    FAMILY.store(ptr::null_mut(), Ordering::Release);
    REFUSED.store(true, Ordering::Relaxed);
}

/// The lifeline's lock, to be held across a fork.
pub fn line_lock() -> &'static Lock {
    LINE.bare()
}

/// This process's number in the family.
pub fn process() -> u32 {
    PROCESS.load(Ordering::Acquire)
}

/// Asks the daemon and waits for its answer.
///
/// # Errors
/// The `errno` of a refusal; `ECONNRESET` when the daemon is gone.
pub fn ask(request: &Request, descriptors: &[BorrowedFd<'_>]) -> Answer<Reply> {
    let _quiet = Blocked::all();
    let line = LINE.lock();
    let line = line.as_ref().ok_or(libc::ECONNRESET)?;
    match line.ask::<_, Reply>(request, descriptors).map(|got| got.message) {
        Ok(Reply::Refused(refusal)) => {
            if matches!(request, Request::Bind { .. } | Request::Listen { .. } | Request::Scout { .. }) {
                speaking::say(&refusal.why);
            }
            Err(if refusal.errno > 0 { refusal.errno } else { libc::EPROTO })
        }
        Ok(reply) => Ok(reply),
        Err(_) => {
            bury();
            Err(libc::ECONNRESET)
        }
    }
}

/// In the image after an exec, before anything else is asked: the threads and event sets of before are the daemon's again. A thread
/// that ended with the old image may have been waiting for an answer, which nobody hears any more. A daemon that is gone meanwhile is
/// noticed, as always.
pub fn renew() {
    let _quiet = Blocked::all();
    let line = LINE.lock();
    let Some(line) = line.as_ref() else { return };
    if line.send(&Request::Renew, &[]).is_err() {
        return bury();
    }
    loop {
        match line.receive::<Reply>().map(|got| got.message) {
            Ok(Reply::Renewed) => return,
            Ok(_) => {}
            Err(_) => return bury(),
        }
    }
}

/// Tells the daemon something that has no answer: by what a program that has shut itself in (`seccomp(2)`) may do as well, for
/// it closes and exits like others. (No `SIGPIPE` comes of a daemon that is gone; see [`Lifeline::send_by_write`].)
pub fn tell(request: &Request) {
    let _quiet = Blocked::all();
    if let Some(line) = LINE.lock().as_ref()
        && line.send_by_write(request).is_err()
    {
        bury();
    }
}

/// The daemon is gone; the other processes of the family learn it from the arena.
fn bury() {
    DEAD.store(true, Ordering::Release);
    if let Some(family) = joined() {
        family.arena.header().dead.store(1, Ordering::Release);
    }
}

impl Family {
    /// Whether the daemon is known to be gone.
    #[inline]
    pub fn is_dead(&self) -> bool {
        DEAD.load(Ordering::Relaxed) || self.arena.header().dead.load(Ordering::Relaxed) != 0
    }

    /// Looks whether the lifeline has hung up. To be called when a wait took long.
    pub fn feel_pulse(&self) {
        let fd = LINE_NUMBER.load(Ordering::Acquire);
        let mut look = libc::pollfd { fd, events: 0, revents: 0 };
        // SAFETY: one pollfd, no waiting.
        if unsafe { real::poll(&mut look, 1, 0) } == 1 && look.revents != 0 {
            bury();
        }
    }

    /// Tells the executor that serves `slot` that it has news, waking it if it sleeps.
    #[inline]
    pub fn ring(&self, number: u32, slot: &Slot) {
        let domain = slot.domain.load(Ordering::Acquire) as usize;
        if let (Some(doorbell), Some(event)) = (self.arena.doorbell(domain), self.events.get(domain)) {
            doorbell.set.mark(number);
            wake::ring(&doorbell.sleeping, event.as_fd());
        }
    }

    /// Leaves news for the executor that it will find when it next runs.
    pub fn mark(&self, number: u32, slot: &Slot) {
        if let Some(doorbell) = self.arena.doorbell(slot.domain.load(Ordering::Acquire) as usize) {
            doorbell.set.mark(number);
        }
    }

    /// Sets request bits of a slot and rings, unless it can wait until the executor next runs:
    /// so can options, which matter for what is sent later, and the close of a connection that
    /// has ended, of which only memory is left.
    pub fn request(&self, number: u32, slot: &Slot, bits: u32) {
        slot.request.fetch_or(bits, Ordering::SeqCst);
        let has_ended = slot.status.load(Ordering::SeqCst) & status::SEND_CLOSED != 0;
        if bits == request::OPTIONS || (bits & request::CLOSE != 0 && has_ended) {
            self.mark(number, slot);
        } else {
            self.ring(number, slot);
        }
    }

    /// The doorbells, to be handed over in an exec.
    pub fn events(&self) -> &[OwnedFd] {
        &self.events
    }
}

/// The lifeline's descriptor, to be handed over in an exec; -1: none.
pub fn line_number() -> i32 {
    LINE_NUMBER.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals;

    /// Whether this thread has a `SIGPIPE` pending.
    fn has_broken_pipe() -> bool {
        let mut set = std::mem::MaybeUninit::zeroed();
        // SAFETY: the set is valid for writing; zeroed memory is a valid, empty one.
        unsafe {
            libc::sigpending(set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), libc::SIGPIPE) == 1
        }
    }

    #[test]
    fn a_signal_that_waits_for_the_program_is_there_after_a_daemon_that_is_gone_was_told() {
        // Until the test is over; then it is ignored, as the tests do.
        let _held = Blocked::all();
        let gone = || {
            let (ours, theirs) = Lifeline::pair().unwrap();
            drop(theirs);
            replace_line(ours);
            DEAD.store(false, Ordering::Release);
            tell(&Request::ThreadGone { thread: 1 });
            assert!(DEAD.load(Ordering::Acquire), "it is noticed");
        };
        gone();
        assert!(!has_broken_pipe(), "none comes of that");
        signals::broken_pipe();
        gone();
        assert!(has_broken_pipe(), "the program's own is not taken away");
    }

    #[test]
    fn who_does_not_reach_the_daemon_is_told_what_to_do() {
        let said = |errno| not_reached(Path::new("/run/s"), &io::Error::from_raw_os_error(errno));
        assert!(said(libc::ECONNREFUSED).ends_with("; start it first"));
        assert!(said(libc::EACCES).ends_with("be root, or in the group of its `[control]`"));
        assert_eq!(said(libc::EMFILE), NO_ROOM);
    }
}
