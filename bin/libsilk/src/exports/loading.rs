//! `dlopen`: a library that is loaded with `RTLD_DEEPBIND` looks for its functions in itself and in what it
//! needs first, and would find the C library's sockets before these (PHP loads its extensions so). It is
//! loaded without.

use libc::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static BEHIND: AtomicUsize = AtomicUsize::new(0);

/// Where the C library's function is.
extern "C" fn behind() -> usize {
    let mut at = BEHIND.load(Relaxed);
    if at == 0 {
        // SAFETY: the name ends with a zero byte.
        at = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) } as usize;
        BEHIND.store(at, Relaxed);
    }
    if at == 0 { none as *const () as usize } else { at }
}

/// What there is in place of one that is missing.
extern "C" fn none(_: *const c_char, _: c_int) -> *mut c_void {
    std::ptr::null_mut()
}

/// It goes on to the C library's by a jump, for that looks by its return address whose search path
/// (`RUNPATH`) counts.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(_file: *const c_char, _flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        // The stack was 8 off 16.
        "sub rsp, 8",
        "call {behind}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "and esi, {others}",
        "jmp rax",
        behind = sym behind,
        others = const !libc::RTLD_DEEPBIND,
    )
}
