//! Static programs of the Go language are carried: the loader cannot load this library into them, so it is loaded with another program, which
//! never begins; the library maps the one that is meant, and begins that. The C library is there then, and each thread of
//! the program's is one of the C library's that has become it (`thread`), with its own thread-local memory beside the C library's:
//! a call that is led here goes from one to the other and back (`entry`), and so do signals (`signal`).
//!
//! Who executes such a program, `silk run` or this library in a program that does, names it in a variable and executes `silk` instead,
//! whose file is certain to be there and whose `main` executes the program as it is if this library was not loaded after all.

mod begin;
mod entry;
mod image;
mod own_file;
mod record;
mod signal;
mod thread;

use super::{OURS, lead, sites::Site};
use crate::environment;
use crate::instead::Instead;
use crate::real;
use crate::speaking;
use image::Image;
use libc::{c_char, c_int, c_long};
use silk_control::CARRIED_VARIABLE;
use std::env;
use std::ffi::{CString, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Bit of `AT_HWCAP2`: a program may read and write the addresses of its thread-local memory.
const FSGSBASE: u64 = 2;
/// What a program of ours does itself that the C library has to know of.
const THREADS: [c_long; 3] = [libc::SYS_clone, libc::SYS_exit, libc::SYS_rt_sigaction];

/// Becomes the program that is to be carried, if there is one. It is executed as it is where that cannot be. These are the
/// arguments that it was given.
///
/// # Safety
/// `argv` is an array of C strings that ends with a null, for as long as the process lives; nobody else runs yet.
pub unsafe fn take_over(argv: *const *const c_char) {
    let Some(path) = env::var_os(CARRIED_VARIABLE) else { return };
    // SAFETY: nobody else runs, as the caller promises.
    unsafe { env::remove_var(CARRIED_VARIABLE) };
    // SAFETY: as above.
    let why = unsafe { carry(Path::new(&path), argv) };
    if environment::is_strict() {
        speaking::say(&format_args!("`{}` {why}", path.display()));
        leave(1);
    }
    speaking::say(&format_args!("`{}` {why}; Linux serves its sockets", path.display()));
    if let Ok(path) = CString::new(path.into_vec()) {
        // SAFETY: C strings, and the program's environment.
        unsafe { real::execve(path.as_ptr(), argv, environment::all()) };
    }
    leave(126)
}

fn leave(status: c_int) -> ! {
    // SAFETY: ends the process, in which nothing has begun.
    unsafe { libc::_exit(status) }
}

/// Becomes the program; why that cannot be, if it returns.
///
/// # Safety
/// As [`take_over`].
unsafe fn carry(path: &Path, argv: *const *const c_char) -> &'static str {
    let Some(image) = Image::open(path) else {
        return "is linked statically, so nothing can be loaded into it, and is no program of Go's";
    };
    if !image.is_whoever_executes_it() {
        return "may have rights of its own, so nothing can be loaded into it";
    }
    if !has_two_kinds() {
        return "is linked statically, and this processor or kernel does not let threads have memory of two kinds";
    }
    if image.map().is_none() {
        return "is linked statically, at addresses that are not free";
    }
    // SAFETY: just mapped, and nobody runs it.
    if !image.texts().any(|text| unsafe { lead_here(&text) }) {
        return "is linked statically, and its system calls were not found";
    }
    own_file::is(path);
    // SAFETY: all of it is mapped, and leads here; `argv` as the caller promises.
    unsafe { begin::begin(&image, argv) }
}

/// Whether threads can have thread-local memory of two kinds.
fn has_two_kinds() -> bool {
    // SAFETY: it only asks.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 }
}

/// Makes all that a program does itself lead here, if all of it is found in this text.
///
/// # Safety
/// It is mapped, and nobody runs it before the calling thread has a record.
unsafe fn lead_here(text: &Range<usize>) -> bool {
    let has = |found: &[Site], number: c_long| {
        found.iter().any(|site| matches!(site, Site::One(_, of) if c_long::from(*of) == number))
    };
    let enough = |found: &[Site]| {
        let any = found.iter().any(|site| matches!(site, Site::Any(_)));
        any && THREADS.iter().all(|number| has(found, *number))
    };
    // SAFETY: as the caller promises; the entry does what the kernel did.
    unsafe { lead(text, entry::address(), &[&OURS[..], &THREADS].concat(), enough) }
}

/// The same of a program that the loader has brought and this library into it, but whose threads will not be the C library's. Nobody else
/// may run yet.
pub fn take_over_loaded(mut texts: impl Iterator<Item = Range<usize>>) {
    let Some(top) = begin::stack().filter(|_| has_two_kinds()) else { return };
    // SAFETY: the loader has mapped the text, and no thread of the program's runs it before this one, which has a record by then.
    if texts.any(|text| unsafe { lead_here(&text) }) {
        begin::goes_on(top);
    }
}

/// What is to be executed instead of the file at `path`, if that is to be carried.
pub fn instead_of(path: &Path) -> Option<Instead> {
    let carrier = environment::carrier()?;
    let path = own_file::meant_by(path).unwrap_or(path);
    Image::open(path).filter(Image::is_whoever_executes_it)?;
    let variable = [CARRIED_VARIABLE.as_bytes(), b"=", path.as_os_str().as_bytes()].concat();
    Some(Instead { file: CString::new(carrier.as_bytes()).ok()?, variable: CString::new(variable).ok()? })
}

/// The same of a name that is looked for in `PATH`.
pub fn instead_of_name(name: &Path) -> Option<Instead> {
    environment::carrier()?;
    if name.as_os_str().as_bytes().contains(&b'/') {
        return instead_of(name);
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let found =
        env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| image::may_execute(file));
    instead_of(&found?)
}
