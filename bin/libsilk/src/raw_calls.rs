//! Programs that make system calls themselves instead of calling the C library: those of the Go language. Go makes all that
//! concern sockets in a handful of places. They are found in the program's text by what they look like and made to call this library's
//! `syscall` instead, before the program runs (why so: `docs/design/raw-calls.md`).
//!
//! In programs that use cgo, the Go compiler's own choice for whatever uses package `net` where a C compiler is there, threads are the C
//! library's, and have what this library needs of them ([`entry`]). Those of other Go programs are not, and mostly nothing can be loaded
//! into these: they are [`carried`].

pub mod carried;
mod entry;
mod near;
mod program;
mod sites;

use libc::c_long;
use near::Near;
use program::Program;
use sites::Site;
use std::ops::Range;

/// There are no more places in any version of Go; more are not what they seem.
const MOST: usize = 16;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Of calls with a number of their own, those that concern sockets.
const OURS: [c_long; 6] = [
    libc::SYS_epoll_create,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_exit_group,
];

/// Makes the program's own system calls pass here, if it makes any. Nobody else may run yet.
pub fn take_over() {
    let Some(program) = Program::this().filter(Program::is_go) else { return };
    if !program.names("pthread_create") {
        return carried::take_over_loaded(program.texts());
    }
    for text in program.texts() {
        // SAFETY: the loader has mapped it, and no thread of the program's runs yet; the entry does what the kernel did.
        unsafe { lead(&text, entry::address(), &OURS, |_| true) };
    }
}

/// Makes the system calls in a text that are of any number or of one of these lead to `entry`. Whether they do: not if there are none, or too
/// many, or those that there are would not be `enough`.
///
/// # Safety
/// The text is mapped and nobody runs it; `entry` does what a system call does.
unsafe fn lead(
    text: &Range<usize>,
    entry: u64,
    numbers: &[c_long],
    enough: impl Fn(&[Site]) -> bool,
) -> bool {
    // SAFETY: as the caller promises; nobody writes to it before it has been looked through.
    let found = sites::find(unsafe { near::bytes(text) }, numbers);
    if found.is_empty() || found.len() > MOST || !enough(&found) {
        return false;
    }
    let Some(mut near) = Near::to(text, entry) else { return false };
    let calls: Option<Vec<_>> = found.iter().map(|site| call(site, text.start, &mut near)).collect();
    // SAFETY: as the caller promises; each call fits into the place that it is for.
    calls.is_some_and(|calls| near.finish() && unsafe { near::overwrite(text, &calls) })
}

/// What is to stand at a place instead: its offset in the text, and its bytes.
fn call(site: &Site, text: usize, near: &mut Near) -> Option<(usize, Vec<u8>)> {
    let (at, length, number) = match *site {
        Site::Any(at) => (at, sites::ANY_BYTES, None),
        Site::Vfork(at) => (at, sites::VFORK_BYTES, None),
        Site::One(at, number) => (at, sites::ONE_BYTES, Some(number)),
    };
    let to = near.way(number)?;
    // The end of a thread does not come back, and what lies below its stack pointer may be another's by now.
    let ends = number.is_some_and(|number| c_long::from(number) == libc::SYS_exit);
    let make = if ends { near::jump } else { near::call };
    let mut bytes = make(text + at, to)?.to_vec();
    bytes.resize(length, near::NOP);
    Some((at, bytes))
}

/// `call`, which makes a system call as Go does, by a way of ours.
#[cfg(test)]
macro_rules! call_by {
    ($way:ident) => {
        fn call(number: c_long, arguments: [usize; 6]) -> (c_long, [usize; 6]) {
            let [mut a, mut b, mut c, mut d, mut e, mut f] = arguments;
            let answer: c_long;
            // SAFETY: it is called as the kernel would be.
            unsafe {
                std::arch::asm!(
                    "call {way}",
                    way = sym $way,
                    inlateout("rax") number => answer,
                    inout("rdi") a, inout("rsi") b, inout("rdx") c, inout("r10") d, inout("r8") e, inout("r9") f,
                    out("rcx") _, out("r11") _, clobber_abi("sysv64"),
                );
            }
            (answer, [a, b, c, d, e, f])
        }
    };
}
#[cfg(test)]
pub(crate) use call_by;
