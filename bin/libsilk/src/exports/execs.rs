//! The `exec` family: each packs what the new image needs, and unpacks it if the exec failed.
//! The forms with a list of arguments are variadic; they are entered through a few
//! instructions that lay the arguments out as the array that the other forms take.

use crate::environment;
use crate::exec::Luggage;
use crate::instead::Instead;
use crate::process;
use crate::real;
use crate::thread;
use libc::{c_char, c_int};

/// An array of C strings that ends with a null.
pub type Strings = *const *const c_char;

/// Executes with what must be carried over: what is to be executed `instead`, or by `exec` what was asked for.
///
/// # Safety
/// `argv` and `envp` are arrays of C strings, or null.
unsafe fn with(
    instead: Option<Instead>,
    argv: Strings,
    envp: Strings,
    exec: impl FnOnce(Strings) -> c_int,
) -> c_int {
    // What another thread took after this would be the process's, and unknown to its new image.
    let _still = process::hold_still();
    // The new image is ordinary until it serves a path itself.
    thread::step_down();
    // SAFETY: as the caller promises.
    let luggage = unsafe { Luggage::pack(envp, instead) };
    let result = match luggage.carrier() {
        // SAFETY: as the caller promises.
        Some(file) => unsafe { real::execve(file, argv, luggage.environment()) },
        None => exec(luggage.environment()),
    };
    luggage.unpack();
    result
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { with(Instead::of(path, false), argv, envp, |envp| real::execve(path, argv, envp)) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execve(path, argv, environment::all()) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { with(Instead::of(file, true), argv, envp, |envp| real::execvpe(file, argv, envp)) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execvpe(file, argv, environment::all()) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { with(None, argv, envp, |envp| real::fexecve(fd, argv, envp)) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    dir: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe { with(None, argv, envp, |envp| real::execveat(dir, path, argv, envp, flags)) }
}

/// The arguments of a variadic `exec`, up to and with the null that ends them: the first few
/// came in registers, the others lie on the caller's stack.
///
/// # Safety
/// `registers` has `N` entries; if none is null, `stack` goes on until one is.
#[cfg(target_arch = "x86_64")]
unsafe fn listed(registers: Strings, stack: Strings) -> (Vec<*const c_char>, Strings) {
    /// Argument registers behind the first, which holds the path.
    const REGISTERS: usize = 5;
    let mut all = Vec::new();
    for n in 0.. {
        // SAFETY: stops behind the null, which is there by the caller's word.
        let next = unsafe { if n < REGISTERS { registers.add(n) } else { stack.add(n - REGISTERS) } };
        // SAFETY: as above.
        let one = unsafe { *next };
        all.push(one);
        if one.is_null() {
            let behind = n + 1;
            // SAFETY: the place behind the null; read only by `execle`, which has one there.
            let after = unsafe {
                if behind < REGISTERS { registers.add(behind) } else { stack.add(behind - REGISTERS) }
            };
            return (all, after);
        }
    }
    (all, registers)
}

/// Spills the five argument registers behind the first and calls `$to(path, registers, stack)`.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($($name:ident => $to:ident;)*) => {$(
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "sub rsp, 56",
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "lea rdx, [rsp + 64]",
                "call {to}",
                "add rsp, 56",
                "ret",
                to = sym $to,
            )
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
variadic! {
    execl => list;
    execlp => list_in_path;
    execle => list_with_environment;
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn list(path: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: as the program of `execl` promises.
    unsafe { execv(path, listed(registers, stack).0.as_ptr()) }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn list_in_path(file: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: as the program of `execlp` promises.
    unsafe { execvp(file, listed(registers, stack).0.as_ptr()) }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn list_with_environment(path: *const c_char, registers: Strings, stack: Strings) -> c_int {
    // SAFETY: as the program of `execle` promises: behind the null lies the environment.
    unsafe {
        let (argv, after) = listed(registers, stack);
        execve(path, argv.as_ptr(), after.cast::<Strings>().read())
    }
}
