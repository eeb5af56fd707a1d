//! `vfork`, `clone`, `_exit`, and how signals are handled.

use crate::close;
use crate::process;
use crate::real;
use crate::signals;
use libc::{c_int, c_void, pid_t, sigaction as Action, sighandler_t};
use std::slice;

/// A `fork`: the child of a real `vfork` would write to its parent's tables.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { real::fork() }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vfork() -> pid_t {
    // SAFETY: as above.
    unsafe { vfork() }
}

/// A `fork` at which the C library calls nobody.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Fork() -> pid_t {
    // SAFETY: as above.
    process::fork_by(|| unsafe { real::_Fork() }.into()) as pid_t
}

/// What a child that `clone` makes is to run, and what it is given.
struct Start {
    run: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
}

/// The beginning of such a child, which has a copy of its parent's memory.
extern "C" fn begin(start: *mut c_void) -> c_int {
    process::begin_child();
    // SAFETY: what `clone` below has left on its stack, and on the copy of that.
    let Start { run, argument } = unsafe { start.cast::<Start>().read() };
    // SAFETY: the child ends with this, and is nobody but the one thread.
    unsafe { _exit(run(argument)) }
}

/// A child with memory of its own holds its parent's sockets, as after a `fork`; and so does one that would share it until it executes,
/// which is made as by `vfork` above. Other children are the program's affair.
///
/// # Safety
/// As the C library's. Three arguments more can be taken where fewer were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone(
    run: Option<extern "C" fn(*mut c_void) -> c_int>,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut pid_t,
    tls: *mut c_void,
    child: *mut pid_t,
) -> c_int {
    // SAFETY: as above; what begins has a copy of what it is given.
    unsafe {
        match run.filter(|_| !stack.is_null() && is_fork(flags as u64, 0)) {
            None => real::clone(run, stack, flags, argument, parent, tls, child),
            Some(run) => {
                let mut start = Start { run, argument };
                let start = (&raw mut start).cast();
                let flags = unwaited(flags as u64) as c_int;
                let call = || real::clone(Some(begin), stack, flags, start, parent, tls, child).into();
                process::fork_by(call) as c_int
            }
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __clone(
    run: Option<extern "C" fn(*mut c_void) -> c_int>,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut pid_t,
    tls: *mut c_void,
    child: *mut pid_t,
) -> c_int {
    // SAFETY: as above.
    unsafe { clone(run, stack, flags, argument, parent, tls, child) }
}

/// Whether `clone(2)` with these flags and this stack makes a child as `fork` or `vfork` does, which goes on where its parent is.
/// (One with another stack never comes back here.)
pub fn is_fork(flags: u64, stack: u64) -> bool {
    const SHARED: u64 = libc::CLONE_VM as u64;
    let is_vfork = flags & libc::CLONE_VFORK as u64 != 0;
    flags & libc::CLONE_THREAD as u64 == 0 && (flags & SHARED == 0 || is_vfork) && stack == 0
}

/// The flags for such a child without the one that lets its parent wait until it executes: with the thread that forks all others would
/// wait that take sockets or close them. Nor does it share its parent's memory, where it would write to our tables, and without that
/// no handlers.
pub fn unwaited(flags: u64) -> u64 {
    const UNTIL_EXEC: u64 = (libc::CLONE_VFORK | libc::CLONE_VM) as u64;
    let handlers = if flags & UNTIL_EXEC == UNTIL_EXEC { libc::CLONE_SIGHAND as u64 } else { 0 };
    flags & !(UNTIL_EXEC | handlers)
}

/// The same as [`is_fork`] of `clone3(2)`.
///
/// # Safety
/// `arguments` is null or points to as many bytes.
pub unsafe fn is_fork3(arguments: *const libc::clone_args, size: usize) -> bool {
    // SAFETY: the first published version of the structure, which later ones begin with, is 64 bytes long; `stack` is within it.
    !arguments.is_null() && size >= 64 && unsafe { is_fork((*arguments).flags, (*arguments).stack) }
}

/// The same as [`unwaited`] of `clone3(2)`: other arguments, where these have that flag.
///
/// # Safety
/// As for [`is_fork3`], which has said yes.
pub unsafe fn unwaited3(arguments: *const libc::clone_args, size: usize) -> Option<Vec<u8>> {
    // More than a page the kernel refuses.
    const MOST: usize = 4096;
    // SAFETY: as the caller promises; bytes may lie anywhere.
    unsafe {
        let flags = (*arguments).flags;
        (unwaited(flags) != flags && size <= MOST).then(|| {
            let mut own = slice::from_raw_parts(arguments.cast::<u8>(), size).to_vec();
            // They stand first.
            own.splice(..size_of_val(&flags), unwaited(flags).to_ne_bytes());
            own
        })
    }
}

/// Ends the process at once; what it wrote before is still sent.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    close::everything();
    // SAFETY: ends every thread of the process.
    unsafe { real::syscall(libc::SYS_exit_group, status as usize, 0, 0, 0, 0, 0) };
    std::process::abort()
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: as above.
    unsafe { _exit(status) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: as above.
    unsafe {
        // Before the call, as `old` may be the same memory.
        let asked = new.as_ref().map(|new| (new.sa_sigaction, new.sa_flags & libc::SA_RESTART != 0));
        let result = real::sigaction(signal, new, old);
        if let (0, Some((handler, restarts))) = (result, asked) {
            signals::note(signal, handler, restarts);
        }
        result
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    let before = unsafe { real::signal(signal, handler) };
    if before != libc::SIG_ERR {
        signals::note_installed(signal);
    }
    before
}

/// What `signal` is to programs that ask for the System V's or POSIX's alone: its handlers end the calls that wait.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    let before = unsafe { real::__sysv_signal(signal, handler) };
    if before != libc::SIG_ERR {
        signals::note(signal, handler, false);
    }
    before
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    unsafe { __sysv_signal(signal, handler) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    unsafe { signal(number, handler) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    unsafe { signal(number, handler) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: as above.
    let before = unsafe { real::sigset(signal, handler) };
    if before != libc::SIG_ERR {
        signals::note_installed(signal);
    }
    before
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: as above.
    unsafe { sigaction(signal, new, old) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, flag: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::siginterrupt(signal, flag) };
    if result == 0 {
        signals::note_interrupt(signal, flag != 0);
    }
    result
}
