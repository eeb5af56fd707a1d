//! `dprintf` and its kin: the C library writes by a call of its own, which does not pass here. The text
//! is made by it all the same, and written as any other.

use super::write;
use crate::real;
use crate::table;
use libc::{c_char, c_int, c_void};
use std::ptr;

/// A `va_list`, as it is passed: the place of the arguments that follow.
type Arguments = *mut c_void;

/// Writes what `make` formats, whole; how many bytes, or -1.
///
/// # Safety
/// `make` stores in its argument text of as many bytes as it answers, from `malloc`, or answers -1.
unsafe fn written(fd: c_int, make: impl FnOnce(*mut *mut c_char) -> c_int) -> c_int {
    let mut text = ptr::null_mut();
    let length = make(&raw mut text);
    let Ok(whole) = usize::try_from(length) else { return -1 };
    let (mut done, mut result) = (0, length);
    while done < whole {
        // SAFETY: by the caller's word there are so many bytes.
        match usize::try_from(unsafe { write(fd, text.add(done).cast(), whole - done) }) {
            Ok(sent) => done += sent,
            Err(_) => {
                result = -1;
                break;
            }
        }
    }
    // SAFETY: it is from `malloc`, and nobody has it any more.
    unsafe { libc::free(text.cast()) };
    result
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdprintf(fd: c_int, format: *const c_char, arguments: Arguments) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe {
        match table::served(fd) {
            None => real::vdprintf(fd, format, arguments),
            Some(_) => written(fd, |text| real::vasprintf(text, format, arguments)),
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match table::served(fd) {
            None => real::__vdprintf_chk(fd, flag, format, arguments),
            Some(_) => written(fd, |text| real::__vasprintf_chk(text, flag, format, arguments)),
        }
    }
}

/// Makes a `va_list` of the arguments behind the first `$fixed` bytes of registers, by the calling
/// convention of Linux on x86-64 (System V ABI §3.5.7), and calls `$to` with it in `$last`.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($($name:ident => $to:ident, $fixed:literal, $last:literal;)*) => {$(
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                // The list, 24 bytes, then from 32 on the registers, 176 bytes. The stack was 8 off 16.
                "sub rsp, 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $fixed),
                "mov dword ptr [rsp + 4], 48",
                // What did not fit the registers, behind the return address.
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $last, ", rsp"),
                "call {to}",
                "add rsp, 216",
                "ret",
                to = sym $to,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
variadic! {
    dprintf => vdprintf, 16, "rdx";
    __dprintf_chk => __vdprintf_chk, 24, "rcx";
}
