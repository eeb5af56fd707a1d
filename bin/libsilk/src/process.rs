//! Forking. The child holds whatever the parent holds, under a lifeline and a number of its
//! own, which are made before the fork, so that there is no moment at which the child lives
//! and nobody counts it. The C library calls these handlers for every `fork`, `daemon` and
//! `forkpty`, and we do for a child that is made by the system call; `vfork` is made a `fork`, since the
//! child of a real one would write to its parent's tables.

use crate::ending;
use crate::epoll;
use crate::errno::{self, Answer, check};
use crate::family;
use crate::files;
use crate::gate;
use crate::internal;
use crate::last_thread;
use crate::lock::{self, Guarded, Lock, Turn};
use crate::mappings;
use crate::nameless;
use crate::own_turn;
use crate::real;
use crate::shared;
use crate::signals::Blocked;
use crate::socket::{self, Socket};
use crate::spares;
use crate::spawn_actions;
use crate::stdio;
use silk_control::{Lifeline, Reply, Request};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// One fork at a time.
static FORKING: Lock = Lock::new();
/// The child's lifeline and number, between the preparation and the fork.
static CHILD: Guarded<Option<(Lifeline, u32)>> = Guarded::new(None);

/// A pipe from a child to its parent, between the preparation and the fork, which nobody else can
/// inherit, since one fork is made at a time: so it ends when the child executes.
static PIPE: Guarded<Option<[OwnedFd; 2]>> = Guarded::new(None);

thread_local! {
    /// Whether this thread's fork is to have such a pipe.
    static REPORTS: Cell<bool> = const { Cell::new(false) };
    /// This process's end of it.
    static END: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
}

/// What nobody may be in the middle of, in the order in which they are taken.
const LOCKS: [fn() -> &'static Lock; 7] = [
    mappings::lock,
    files::lock,
    stdio::lock,
    spares::lock,
    spawn_actions::lock,
    family::line_lock,
    shared::lock,
];

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Asks the C library to call us around every fork.
pub fn watch_forks() {
    // SAFETY: three functions that live as long as the process.
    unsafe { pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    last_thread::begin();
}

/// The signals of the thread that forks: a handler would wait for what that holds.
static QUIET: Guarded<Option<Blocked>> = Guarded::new(None);

extern "C" fn prepare() {
    let quiet = Blocked::all();
    FORKING.hold();
    *QUIET.lock() = Some(quiet);
    gate::shut();
    if family::joined().is_some() {
        let child = expect_child();
        *CHILD.lock() = child;
        shared::begin(socket::used().iter().filter(|socket| socket.is_served()));
    }
    if REPORTS.get() {
        *PIPE.lock() = pipe();
    }
    epoll::hold_all();
    LOCKS.iter().for_each(|lock| lock().hold());
}

fn pipe() -> Option<[OwnedFd; 2]> {
    let mut fds = [-1; 2];
    // SAFETY: two new descriptors, ours alone.
    unsafe {
        let made = libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) == 0;
        made.then(|| fds.map(|fd| internal::keep(OwnedFd::from_raw_fd(fd))))
    }
}

/// Forks; the process's end of a pipe from the child to its parent goes with the child's number, or with 0
/// in the child itself. There is none if there are too many descriptors.
///
/// # Errors
/// As `fork(2)`.
pub fn fork_with_report() -> Answer<(libc::pid_t, Option<OwnedFd>)> {
    REPORTS.set(true);
    // SAFETY: the handlers below see to everything that a child needs here.
    let child = check(unsafe { real::fork() });
    REPORTS.set(false);
    let end = END.take();
    match child {
        Ok(child) => Ok((child, end)),
        Err(errno) => {
            end.into_iter().for_each(internal::close);
            Err(errno)
        }
    }
}

/// A child with memory of its own, made by `call`, a system call that the C library does not see: like `fork` it returns
/// the child's number, 0 in the child itself, or -1.
pub fn fork_by(call: impl FnOnce() -> libc::c_long) -> libc::c_long {
    prepare();
    let child = call();
    let errno = errno::last();
    if child == 0 {
        in_child();
    } else {
        in_parent();
    }
    if child < 0 {
        errno::set(errno);
    }
    child
}

/// In a child that `fork_by` has made, and that begins elsewhere.
pub fn begin_child() {
    in_child();
}

/// Until it goes, no thread takes a socket, closes one or forks.
pub struct Still(#[expect(dead_code, reason = "held until it is dropped")] Turn<'static>);

/// For an exec, as for a fork: no other thread is in the middle of anything (see [`gate`]).
pub fn hold_still() -> Still {
    let turn = FORKING.turn();
    gate::shut();
    Still(turn)
}

impl Drop for Still {
    fn drop(&mut self) {
        gate::open();
    }
}

fn expect_child() -> Option<(Lifeline, u32)> {
    let (ours, daemons) = with_room(Lifeline::pair).ok()?;
    let Ok(Reply::Forked { process }) = family::ask(&Request::Fork, &[daemons.as_fd()]) else { return None };
    Some((Lifeline::from_descriptor(internal::keep(ours.into_descriptor())), process))
}

/// More numbers than this library has beyond a program's limit: a child's lifeline that was made so is there.
const BEYOND: libc::rlim_t = 1024;

/// Makes descriptors, beyond the program's own limit where it has no numbers left: a fork needs none on Linux. Beyond
/// the hard limit (`ulimit -Hn`) it has to have the right to go.
fn with_room<T>(make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    make().or_else(|full| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: fills the structure it is given.
        if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 {
            return Err(full);
        }
        let beyond = limit.rlim_max.max(limit.rlim_cur.saturating_add(BEYOND));
        for rlim_max in [beyond, limit.rlim_max] {
            let more = libc::rlimit { rlim_cur: rlim_max, rlim_max };
            // SAFETY: reads the structure it is given; so below.
            if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const more) } == 0 {
                break;
            }
        }
        let made = make();
        // SAFETY: as above. What is beyond the limit stays open.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        made
    })
}

extern "C" fn in_parent() {
    LOCKS.iter().for_each(|lock| lock().open());
    epoll::open_all();
    if let Some((line, _)) = CHILD.lock().take() {
        internal::close(line.into_descriptor());
    }
    if let Some([reads, writes]) = PIPE.lock().take() {
        internal::close(writes);
        END.set(Some(reads));
    }
    gate::open();
    let quiet = QUIET.lock().take();
    FORKING.open();
    drop(quiet);
}

extern "C" fn in_child() {
    lock::ask_who_i_am();
    last_thread::begin();
    ending::forget();
    own_turn::begin_child();
    LOCKS.iter().for_each(|lock| lock().force_open());
    epoll::force_open_all();
    socket::used().iter().for_each(Socket::open_locks);
    gate::force_open();
    let quiet = QUIET.lock().take();
    FORKING.force_open();
    if let Some([reads, writes]) = PIPE.lock().take() {
        internal::close(reads);
        END.set(Some(writes));
    }
    spares::forget();
    nameless::begin_anew();
    match CHILD.lock().take() {
        Some((line, process)) => family::become_child(line, process),
        None if family::joined().is_some() => family::orphan(),
        None => {}
    }
    drop(quiet);
}
