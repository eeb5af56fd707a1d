//! Programs that make system calls themselves instead of calling the C library: those of the Go language. Go makes all that
//! concern sockets in a handful of places. They are found in the program's text by what they look like and made to call this library's
//! `syscall` instead, before the program runs (why so: `docs/design/raw-calls.md`).
//!
//! That works where Go's threads are the C library's, as they are in programs that use cgo: the Go compiler's own choice for
//! whatever uses package `net` where a C compiler is there. Other Go programs, and static ones, are left as they are.

mod entry;
mod near;
mod program;
mod sites;

use near::Near;
use program::Program;
use sites::Site;

/// There are no more places in any version of Go; more are not what they seem.
const MOST: usize = 16;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Makes the program's own system calls pass here, if it makes any. Nobody else may run yet.
pub fn take_over() {
    let Some(program) = Program::this() else { return };
    if !program.is_go() || !program.names("pthread_create") {
        return;
    }
    for text in program.texts() {
        // SAFETY: the loader has mapped it, and nobody writes to it before it has been looked through.
        let found = sites::find(unsafe { near::bytes(&text) });
        if found.is_empty() || found.len() > MOST {
            continue;
        }
        let Some(mut near) = Near::to(&text) else { continue };
        let calls: Option<Vec<_>> = found.iter().map(|site| call(site, text.start, &mut near)).collect();
        if let Some(calls) = calls
            && near.finish()
        {
            // SAFETY: the text is the program's, of which no thread runs yet; each call fits into the place that it is for,
            // and leads to what does what was done there.
            unsafe { near::overwrite(&text, &calls) };
        }
    }
}

/// What is to stand at a place instead: its offset in the text, and its bytes.
fn call(site: &Site, text: usize, near: &mut Near) -> Option<(usize, Vec<u8>)> {
    let (at, length, number) = match *site {
        Site::Any(at) => (at, sites::ANY_BYTES, None),
        Site::Vfork(at) => (at, sites::VFORK_BYTES, None),
        Site::One(at, number) => (at, sites::ONE_BYTES, Some(number)),
    };
    let to = near.way(number)?;
    let mut bytes = near::call(text + at, to)?.to_vec();
    bytes.resize(length, near::NOP);
    Some((at, bytes))
}
