//! `posix_spawn(3)`. The C library's makes its child without a fork and changes the child's descriptors by
//! calls of its own, so neither would know of sockets on silk. Where such a socket would be the child's
//! it is made here instead, of calls that do know: a fork, what was asked for its descriptors, an exec.
//! Where none would be, the C library does it.

use crate::errno::{Answer, check, last};
use crate::exec;
use crate::exports::{close, closefrom, dup2, execve, execvpe, fcntl};
use crate::internal;
use crate::process;
use crate::real;
use crate::signals::Blocked;
use crate::spawn_actions::Action;
use crate::table::{self, Entry};
use libc::{c_char, c_int, pid_t, posix_spawnattr_t};
use std::os::fd::{AsRawFd, OwnedFd};

/// Whether a child for which this is done would have sockets on silk.
pub fn concerns(actions: &[Action]) -> bool {
    let is_socket = |fd| matches!(table::entry(fd), Some(Entry::Socket(socket)) if exec::is_carried(socket));
    exec::is_needed() || actions.iter().any(|action| matches!(*action, Action::Copy(fd, _) if is_socket(fd)))
}

/// A program to execute, as C passes it.
pub struct Program {
    /// Its file, looked for in `PATH` if this is `true`.
    pub file: (*const c_char, bool),
    /// Its arguments.
    pub argv: *const *const c_char,
    /// Its environment.
    pub envp: *const *const c_char,
}

/// Makes the child.
///
/// # Errors
/// Why there is none, also where something failed in the child.
///
/// # Safety
/// The program's strings and arrays are C's; `attributes` is null or an object that was initialised.
pub unsafe fn spawn(
    program: &Program,
    actions: &[Action],
    attributes: *const posix_spawnattr_t,
) -> Answer<pid_t> {
    // No handler of the program's may run in the child.
    let blocked = Blocked::all();
    let (child, report) = process::fork_with_report()?;
    if child == 0 {
        let Some(report) = report else {
            // Its parent could not tell whether it executes. SAFETY: ends the child; what it holds is its parent's as well.
            unsafe { libc::_exit(127) }
        };
        // SAFETY: as the caller promises.
        let errno = unsafe { become_it(program, actions, attributes, blocked) };
        // SAFETY: writes the number, for which a pipe has room, and ends the child; what it holds is its parent's as well.
        unsafe {
            real::write(report.as_raw_fd(), (&raw const errno).cast(), size_of::<c_int>());
            libc::_exit(127)
        }
    }
    let why = match report {
        Some(report) => heard(report),
        None => Some(libc::EMFILE),
    };
    match why {
        Some(errno) => {
            reap(child);
            Err(errno)
        }
        None => Ok(child),
    }
}

/// Waits until the child executes, or says why it cannot.
fn heard(report: OwnedFd) -> Option<c_int> {
    let mut errno = 0;
    // SAFETY: the buffer is as long as said.
    let got = unsafe { real::read(report.as_raw_fd(), (&raw mut errno).cast(), size_of::<c_int>()) };
    internal::close(report);
    (usize::try_from(got) == Ok(size_of::<c_int>())).then_some(errno)
}

fn reap(child: pid_t) {
    // SAFETY: waits for a child of ours.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// In the child: does everything and executes; what comes back is why it failed.
///
/// # Safety
/// As [`spawn`].
unsafe fn become_it(
    program: &Program,
    actions: &[Action],
    attributes: *const posix_spawnattr_t,
    blocked: Blocked,
) -> c_int {
    // SAFETY: the attributes as the caller promises.
    let mask = unsafe {
        match prepare(attributes).and_then(|mask| actions.iter().try_for_each(perform).map(|()| mask)) {
            Ok(mask) => mask,
            Err(errno) => return errno,
        }
    };
    drop(blocked);
    // SAFETY: the set is valid; the program's strings and arrays as the caller promises.
    unsafe {
        if let Some(mask) = mask {
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        }
        match program.file {
            (file, true) => execvpe(file, program.argv, program.envp),
            (path, false) => execve(path, program.argv, program.envp),
        };
    }
    last()
}

/// What the attributes say, in the order of the C library. The signals that are to be blocked, if they say so.
///
/// # Safety
/// As [`spawn`].
unsafe fn prepare(attributes: *const posix_spawnattr_t) -> Answer<Option<libc::sigset_t>> {
    // SAFETY: throughout, the attributes as the caller promises, and what is filled is of the right type; zeroed memory is valid for all of it.
    unsafe {
        let mut flags = 0;
        let (mut default, mut mask): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        let mut scheduling: libc::sched_param = std::mem::zeroed();
        let (mut policy, mut group) = (0, 0);
        if !attributes.is_null() {
            libc::posix_spawnattr_getflags(attributes, &mut flags);
            libc::posix_spawnattr_getsigdefault(attributes, &mut default);
            libc::posix_spawnattr_getsigmask(attributes, &mut mask);
            libc::posix_spawnattr_getschedparam(attributes, &mut scheduling);
            libc::posix_spawnattr_getschedpolicy(attributes, &mut policy);
            libc::posix_spawnattr_getpgroup(attributes, &mut group);
        }
        let has = |flag: c_int| c_int::from(flags) & flag != 0;
        for signal in 1..=libc::SIGRTMAX() {
            let mut now: libc::sigaction = std::mem::zeroed();
            let wanted = has(libc::POSIX_SPAWN_SETSIGDEF) && libc::sigismember(&default, signal) == 1;
            let known = real::sigaction(signal, std::ptr::null(), &mut now) == 0;
            // A handler would be gone after the exec, and must not run before.
            if known && (wanted || now.sa_sigaction != libc::SIG_IGN) && now.sa_sigaction != libc::SIG_DFL {
                now.sa_sigaction = libc::SIG_DFL;
                real::sigaction(signal, &now, std::ptr::null_mut());
            }
        }
        if has(libc::POSIX_SPAWN_SETSCHEDULER) {
            check(libc::sched_setscheduler(0, policy, &scheduling))?;
        } else if has(libc::POSIX_SPAWN_SETSCHEDPARAM) {
            check(libc::sched_setparam(0, &scheduling))?;
        }
        if has(libc::POSIX_SPAWN_SETSID.into()) {
            check(libc::setsid())?;
        }
        if has(libc::POSIX_SPAWN_SETPGROUP) {
            check(libc::setpgid(0, group))?;
        }
        if has(libc::POSIX_SPAWN_RESETIDS) {
            check(libc::seteuid(libc::getuid()))?;
            check(libc::setegid(libc::getgid()))?;
        }
        Ok(has(libc::POSIX_SPAWN_SETSIGMASK).then_some(mask))
    }
}

fn perform(action: &Action) -> Answer<()> {
    // SAFETY: descriptors and folders of the child's own, which has no other threads; the names are C strings.
    unsafe {
        match action {
            // As the C library: one that is not open is closed.
            Action::Close(fd) => {
                close(*fd);
            }
            Action::CloseFrom(fd) => closefrom(*fd),
            Action::Copy(fd, to) if fd == to => {
                let flags = check(fcntl(*fd, libc::F_GETFD, 0))?;
                check(fcntl(*fd, libc::F_SETFD, (flags & !libc::FD_CLOEXEC) as usize))?;
            }
            Action::Copy(fd, to) => {
                check(dup2(*fd, *to))?;
            }
            Action::Open(to, name, flags, mode) => {
                close(*to);
                let fd = check(libc::open(name.as_ptr(), *flags, *mode))?;
                if fd != *to {
                    check(dup2(fd, *to))?;
                    close(fd);
                }
            }
            Action::Folder(name) => {
                check(libc::chdir(name.as_ptr()))?;
            }
            Action::OpenFolder(fd) => {
                check(libc::fchdir(*fd))?;
            }
            Action::Foreground(fd) => {
                check(libc::tcsetpgrp(*fd, libc::getpgrp()))?;
            }
        }
    }
    Ok(())
}
