//! `posix_spawn` and what notes the actions on the child's descriptors.

use super::execs::Strings;
use crate::exec::Luggage;
use crate::instead::Instead;
use crate::real;
use crate::spawn::{self, Program};
use crate::spawn_actions::{self, Action};
use libc::{
    c_char, c_int, mode_t, pid_t, posix_spawn_file_actions_t as Actions, posix_spawnattr_t as Attributes,
};
use std::ffi::CStr;

/// Notes an action that the C library has taken.
fn noted(object: *mut Actions, result: c_int, action: impl FnOnce() -> Action) -> c_int {
    if result == 0 {
        spawn_actions::note(object as usize, action());
    }
    result
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_init(object: *mut Actions) -> c_int {
    spawn_actions::forget(object as usize);
    // SAFETY: the program keeps the contract of the function it calls; so throughout.
    unsafe { real::posix_spawn_file_actions_init(object) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_destroy(object: *mut Actions) -> c_int {
    spawn_actions::forget(object as usize);
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_destroy(object) }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addclose(object: *mut Actions, fd: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::posix_spawn_file_actions_addclose(object, fd) };
    noted(object, result, || Action::Close(fd))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addclosefrom_np(object: *mut Actions, fd: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::posix_spawn_file_actions_addclosefrom_np(object, fd) };
    noted(object, result, || Action::CloseFrom(fd))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_adddup2(
    object: *mut Actions,
    fd: c_int,
    to: c_int,
) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::posix_spawn_file_actions_adddup2(object, fd, to) };
    noted(object, result, || Action::Copy(fd, to))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addopen(
    object: *mut Actions,
    fd: c_int,
    name: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: as above; the name is a C string.
    unsafe {
        let result = real::posix_spawn_file_actions_addopen(object, fd, name, flags, mode);
        noted(object, result, || Action::Open(fd, CStr::from_ptr(name).to_owned(), flags, mode))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addchdir_np(
    object: *mut Actions,
    name: *const c_char,
) -> c_int {
    // SAFETY: as above; the name is a C string.
    unsafe {
        let result = real::posix_spawn_file_actions_addchdir_np(object, name);
        noted(object, result, || Action::Folder(CStr::from_ptr(name).to_owned()))
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addfchdir_np(object: *mut Actions, fd: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::posix_spawn_file_actions_addfchdir_np(object, fd) };
    noted(object, result, || Action::OpenFolder(fd))
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn_file_actions_addtcsetpgrp_np(object: *mut Actions, fd: c_int) -> c_int {
    // SAFETY: as above.
    let result = unsafe { real::posix_spawn_file_actions_addtcsetpgrp_np(object, fd) };
    noted(object, result, || Action::Foreground(fd))
}

/// Makes the child here where it would have sockets on silk, and leaves it to `real`, with the environment it needs, where not.
///
/// # Safety
/// As the C library's.
unsafe fn spawned(
    pid: *mut pid_t,
    program: &Program,
    actions: *const Actions,
    attributes: *const Attributes,
    real: impl FnOnce(Option<*const c_char>, Strings) -> c_int,
) -> c_int {
    let asked = spawn_actions::noted(actions as usize);
    // SAFETY: as above.
    unsafe {
        if !spawn::concerns(&asked) {
            let luggage = Luggage::light(program.envp, Instead::of(program.file.0, program.file.1));
            return real(luggage.carrier(), luggage.environment());
        }
        match spawn::spawn(program, &asked, attributes) {
            Ok(child) => {
                if let Some(pid) = pid.as_mut() {
                    *pid = child;
                }
                0
            }
            Err(errno) => errno,
        }
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const Actions,
    attributes: *const Attributes,
    argv: Strings,
    envp: Strings,
) -> c_int {
    let program = Program { file: (path, false), argv, envp };
    // SAFETY: as above.
    unsafe {
        spawned(pid, &program, actions, attributes, |carrier, envp| {
            real::posix_spawn(pid, carrier.unwrap_or(path), actions, attributes, argv, envp)
        })
    }
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const Actions,
    attributes: *const Attributes,
    argv: Strings,
    envp: Strings,
) -> c_int {
    let program = Program { file: (file, true), argv, envp };
    // SAFETY: as above.
    unsafe {
        spawned(pid, &program, actions, attributes, |carrier, envp| {
            real::posix_spawnp(pid, carrier.unwrap_or(file), actions, attributes, argv, envp)
        })
    }
}
