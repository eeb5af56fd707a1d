//! What `SIGPIPE` does in the program that is run: what it did when this command was started. In a service of systemd's it is ignored.
//! Rust's runtime ignores it before `main`, and gives it its usual action back in whatever is executed. All `unsafe` of this command is here.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether it was ignored.
static WERE_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C library calls what is listed there, before `main`; with arguments, which this calling convention lets `look` not take.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and what is told goes into memory of the right size. All zeros, which it stays on a failure, are an action:
    // the usual one, of no flags, and a mask of no signals.
    let now = unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    WERE_IGNORED.store(now.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
}

/// Lets a command's program find them as this one did.
pub fn inherit(command: &mut Command) {
    if !WERE_IGNORED.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: `signal` may be called between a fork and an execution, and no other thread's handler is replaced: this command has none.
    unsafe {
        command.pre_exec(|| match libc::signal(libc::SIGPIPE, libc::SIG_IGN) {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}
