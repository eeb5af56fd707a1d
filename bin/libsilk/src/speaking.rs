//! What this library says to people, on the program's standard error.
//!
//! Descriptor 2 is standard error only as long as it is what the program was started with, or was made
//! by `dup2`. A program that closes it may get a file or a connection of its own under that number, and
//! a line of ours would be in the middle of it. Nor may a line end the program, as one to a pipe that
//! nobody reads would.

use crate::numbers::{self, INDEX, SOCKET};
use crate::real;
use crate::signals;
use std::ffi::c_int;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where lines go.
const OUTPUT: c_int = libc::STDERR_FILENO;
/// The file that is standard error, by device and number; zeros if there is none.
static FILE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// What `fd` is now: a file by device and number, unless it is closed or a socket that silk serves.
fn file(fd: c_int) -> Option<[u64; 2]> {
    if numbers::word(fd) & !INDEX == SOCKET {
        return None;
    }
    real::about(fd).map(|about| [about.st_dev, about.st_ino])
}

/// `fd` is what the program wants it to be: if it is standard error, this is where lines go from now on.
pub fn note(fd: c_int) {
    if fd == OUTPUT {
        let is = file(fd).unwrap_or_default();
        FILE.iter().zip(is).for_each(|(word, is)| word.store(is, Relaxed));
    }
}

/// Says something to people, if there is still a standard error.
pub fn say(what: &dyn Display) {
    let noted = [FILE[0].load(Relaxed), FILE[1].load(Relaxed)];
    if file(OUTPUT) != Some(noted) {
        return;
    }
    let line = format!("libsilk: {what}\n");
    signals::without_broken_pipe(|| {
        // SAFETY: writes the bytes of `line`.
        unsafe { real::write(OUTPUT, line.as_ptr().cast(), line.len()) };
    });
}
