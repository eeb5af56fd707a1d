//! Second names that the C library has for its own sake and exports all the same: what uses them would pass by here.

use super::{descriptors as d, identity as i, naming as n, reading as r, waiting as w, writing as o};
use libc::{
    c_char, c_int, c_void, fd_set, nfds_t, off_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, stat, timeval,
};

macro_rules! aliases {
    ($($name:ident => $module:ident::$of:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the function it calls.
            unsafe { $module::$of($($argument),*) }
        }
    )*};
}

aliases! {
    __read => r::read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t;
    __write => o::write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t;
    __send => o::send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    __pread64 => r::pread(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t;
    __pwrite64 => o::pwrite(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t;
    __connect => n::connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int;
    __dup2 => d::dup2(fd: c_int, to: c_int) -> c_int;
    __fcntl => d::fcntl(fd: c_int, command: c_int, arg: usize) -> c_int;
    __poll => w::poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    __select => w::select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    __fxstatat => i::fstatat_of_version(version: c_int, fd: c_int, path: *const c_char, about: *mut stat, flags: c_int) -> c_int;
    __fxstatat64 => i::fstatat_of_version(version: c_int, fd: c_int, path: *const c_char, about: *mut stat, flags: c_int) -> c_int;
}
