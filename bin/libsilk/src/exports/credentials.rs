//! Who a process is, and what it sees of the file system. A program that gives up rights before it makes its first socket (as servers do that
//! need none for their port) would find the daemon's door shut: it joins its family first.

use crate::{environment, family, real};
use libc::{c_char, c_int, gid_t, size_t, uid_t};

/// What is about to happen may shut the daemon's door.
pub fn before_rights_go() {
    if environment::family().is_some() && family::joined().is_none() {
        // Whoever cannot says so, once, and Linux serves its sockets.
        let _ = family::join();
    }
}

macro_rules! giving_up {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            before_rights_go();
            // SAFETY: the program keeps the contract of the function it calls.
            unsafe { real::$name($($argument),*) }
        }
    )*};
}

giving_up! {
    setuid(id: uid_t);
    seteuid(id: uid_t);
    setreuid(real: uid_t, effective: uid_t);
    setresuid(real: uid_t, effective: uid_t, saved: uid_t);
    setgid(id: gid_t);
    setegid(id: gid_t);
    setregid(real: gid_t, effective: gid_t);
    setresgid(real: gid_t, effective: gid_t, saved: gid_t);
    setgroups(count: size_t, groups: *const gid_t);
    initgroups(user: *const c_char, group: gid_t);
    chroot(path: *const c_char);
}
