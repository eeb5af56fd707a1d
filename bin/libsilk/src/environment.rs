//! What the environment says: where the daemon listens, which family to join, whether to be
//! strict, the name of the program and whose it is. Read once, at load, before the program can change it.

use libc::c_char;
use silk_control::{CARRIER_VARIABLE, DEFAULT_SOCKET, FAMILY_VARIABLE, SOCKET_VARIABLE, STRICT_VARIABLE};
use std::env;
use std::ffi::{CStr, CString, OsStr, OsString, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

struct Environment {
    socket: Option<OsString>,
    family: Option<u64>,
    strict: bool,
    preload: Option<OsString>,
    library: Option<OsString>,
    carrier: Option<OsString>,
    user: u32,
}

static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();

fn environment() -> &'static Environment {
    ENVIRONMENT.get_or_init(|| Environment {
        socket: env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()),
        family: env::var(FAMILY_VARIABLE).ok().and_then(|token| token.trim().parse().ok()),
        strict: env::var_os(STRICT_VARIABLE).is_some_and(|value| value == "1"),
        preload: env::var_os("LD_PRELOAD"),
        library: env::var_os("LD_PRELOAD").and_then(|_| file()),
        carrier: env::var_os(CARRIER_VARIABLE),
        user: user(),
    })
}

fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// Whether the process is another user's than when it began.
pub fn is_anothers() -> bool {
    environment().user != user()
}

/// Reads it all.
pub fn read() {
    environment();
}

/// Where the daemon listens.
pub fn socket_path() -> PathBuf {
    environment().socket.clone().map_or_else(|| DEFAULT_SOCKET.into(), PathBuf::from)
}

/// The family to join, if one is named.
pub fn family() -> Option<u64> {
    environment().family
}

/// Whether what silk cannot serve is an error.
pub fn is_strict() -> bool {
    environment().strict
}

/// What the program was started with, so that an exec with another environment keeps it.
pub fn preload() -> Option<&'static OsString> {
    environment().preload.as_ref()
}

/// This library's file, if it is one of those.
pub fn library() -> Option<&'static OsString> {
    environment().library.as_ref()
}

/// Whether the loader would find it again: not where the process has another root since.
pub fn has_library() -> bool {
    let Some(file) = library().and_then(|file| CString::new(file.as_bytes()).ok()) else { return true };
    // SAFETY: a C string.
    unsafe { libc::access(file.as_ptr(), libc::R_OK) == 0 }
}

/// Where the loader has this library from.
fn file() -> Option<OsString> {
    let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: asks about an address of this library's; what it fills has the name of a file that stays, or null.
    unsafe {
        let known = libc::dladdr(file as *const c_void, about.as_mut_ptr()) != 0;
        let name = about.assume_init().dli_fname;
        (known && !name.is_null()).then(|| OsStr::from_bytes(CStr::from_ptr(name).to_bytes()).to_owned())
    }
}

/// What carries programs that nothing can be loaded into.
pub fn carrier() -> Option<&'static OsString> {
    environment().carrier.as_ref()
}

/// All of it as it is now, as the program may have changed it: an array that ends with a null.
pub fn all() -> *const *const c_char {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: a pointer that the C library keeps valid.
    unsafe { environ }
}

/// The program's name, for people.
pub fn program() -> String {
    std::fs::read_to_string("/proc/self/comm").map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}
