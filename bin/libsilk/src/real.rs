//! The C library's own functions, behind the ones this library puts in front. Each is looked
//! up once, at load; an absent one (of an older C library) answers `ENOSYS`.
//!
//! Variadic functions are called here with fixed arguments, which the calling conventions of
//! Linux on x86-64 and aarch64 allow for integers and pointers.

use crate::errno;
use libc::{
    c_char, c_int, c_long, c_uint, c_ulong, c_void, epoll_event, fd_set, gid_t, iovec, mmsghdr, mode_t,
    msghdr, nfds_t, off_t, pid_t, pollfd, posix_spawn_file_actions_t as Actions,
    posix_spawnattr_t as Attributes, rlimit, sigaction as Action, sighandler_t, sigset_t, size_t, sockaddr,
    socklen_t, ssize_t, termios, timespec, timeval, uid_t, winsize,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the kernel knows of a descriptor, if it is open (`fstat(2)`).
pub fn about(fd: c_int) -> Option<libc::stat> {
    let mut about = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the structure where it succeeds.
    unsafe { (fstat(fd, about.as_mut_ptr()) == 0).then(|| about.assume_init()) }
}

/// Looks a function up behind this library.
fn find(name: &str) -> usize {
    // SAFETY: `name` ends with a zero byte (the macro below puts it there).
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) as usize }
}

macro_rules! real {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        mod place {
            $(#[allow(non_upper_case_globals)]
            pub static $name: super::AtomicUsize = super::AtomicUsize::new(0);)*
        }

        /// Looks everything up, so that nothing has to be looked up inside a signal handler.
        pub fn resolve() {
            $(place::$name.store(find(concat!(stringify!($name), "\0")), Ordering::Relaxed);)*
        }

        $(
            /// # Safety
            /// As the C library's function of this name.
            #[allow(non_snake_case)]
            pub unsafe fn $name($($arg: $type),*) -> $result {
                let mut at = place::$name.load(Ordering::Relaxed);
                if at == 0 {
                    at = find(concat!(stringify!($name), "\0"));
                    place::$name.store(at, Ordering::Relaxed);
                }
                if at == 0 {
                    errno::set(libc::ENOSYS);
                    return -1i32 as $result;
                }
                // SAFETY: the address is that of the C library's function of this name, whose
                // signature this is; the caller keeps its contract.
                unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> $result>(at)($($arg),*) }
            }
        )*
    };
}

real! {
    fn longjmp(to: *mut c_void, value: c_int) -> c_int;
    fn siglongjmp(to: *mut c_void, value: c_int) -> c_int;
    fn __longjmp_chk(to: *mut c_void, value: c_int) -> c_int;
    fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t;
    fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t;
    fn readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t;
    fn writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t;
    fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn vasprintf(text: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn __vasprintf_chk(text: *mut *mut c_char, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn pread(fd: c_int, buf: *mut c_void, len: size_t, at: off_t) -> ssize_t;
    fn pwrite(fd: c_int, buf: *const c_void, len: size_t, at: off_t) -> ssize_t;
    fn preadv(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t;
    fn pwritev(fd: c_int, iov: *const iovec, count: c_int, at: off_t) -> ssize_t;
    fn preadv2(fd: c_int, iov: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t;
    fn pwritev2(fd: c_int, iov: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t;
    fn recv(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int) -> ssize_t;
    fn send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    fn recvfrom(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int, from: *mut sockaddr, from_len: *mut socklen_t) -> ssize_t;
    fn sendto(fd: c_int, buf: *const c_void, len: size_t, flags: c_int, to: *const sockaddr, to_len: socklen_t) -> ssize_t;
    fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t;
    fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t;
    fn recvmmsg(fd: c_int, msgs: *mut mmsghdr, count: c_uint, flags: c_int, limit: *mut timespec) -> c_int;
    fn sendmmsg(fd: c_int, msgs: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    fn sendfile(out: c_int, from: c_int, at: *mut off_t, count: size_t) -> ssize_t;
    fn splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t;
    fn vmsplice(fd: c_int, iov: *const iovec, count: size_t, flags: c_uint) -> ssize_t;
    fn copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t;
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int;
    fn listen(fd: c_int, backlog: c_int) -> c_int;
    fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int;
    fn shutdown(fd: c_int, how: c_int) -> c_int;
    fn getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup2(fd: c_int, to: c_int) -> c_int;
    fn prctl(option: c_int, b: c_ulong, c: c_ulong, e: c_ulong, f: c_ulong) -> c_int;
    fn setuid(id: uid_t) -> c_int;
    fn seteuid(id: uid_t) -> c_int;
    fn setreuid(real: uid_t, effective: uid_t) -> c_int;
    fn setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int;
    fn setgid(id: gid_t) -> c_int;
    fn setegid(id: gid_t) -> c_int;
    fn setregid(real: gid_t, effective: gid_t) -> c_int;
    fn setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int;
    fn setgroups(count: size_t, groups: *const gid_t) -> c_int;
    fn initgroups(user: *const c_char, group: gid_t) -> c_int;
    fn chroot(path: *const c_char) -> c_int;
    fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, arg: usize) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, arg: usize) -> c_int;
    fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epfd: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    fn epoll_pwait(epfd: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    fn epoll_pwait2(epfd: c_int, events: *mut epoll_event, max: c_int, limit: *const timespec, mask: *const sigset_t) -> c_int;
    fn fstat(fd: c_int, about: *mut libc::stat) -> c_int;
    fn fstatat(fd: c_int, path: *const c_char, about: *mut libc::stat, flags: c_int) -> c_int;
    fn statx(fd: c_int, path: *const c_char, flags: c_int, mask: c_uint, about: *mut libc::statx) -> c_int;
    fn fdopen(fd: c_int, mode: *const c_char) -> usize;
    fn freopen(path: *const c_char, mode: *const c_char, stream: usize) -> usize;
    fn freopen64(path: *const c_char, mode: *const c_char, stream: usize) -> usize;
    fn fclose(stream: usize) -> c_int;
    fn fileno(stream: usize) -> c_int;
    fn fileno_unlocked(stream: usize) -> c_int;
    fn mmap(at: usize, len: size_t, allowed: c_int, flags: c_int, fd: c_int, offset: off_t) -> usize;
    fn munmap(at: usize, len: size_t) -> c_int;
    fn mprotect(at: usize, len: size_t, allowed: c_int) -> c_int;
    fn pkey_mprotect(at: usize, len: size_t, allowed: c_int, key: c_int) -> c_int;
    fn mlockall(flags: c_int) -> c_int;
    fn prlimit(process: pid_t, resource: c_int, new: *const rlimit, old: *mut rlimit) -> c_int;
    fn mremap(at: usize, len: size_t, new_len: size_t, flags: c_int, to: usize) -> usize;
    fn remap_file_pages(at: usize, len: size_t, allowed: c_int, page: size_t, flags: c_int) -> c_int;
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const Actions, attributes: *const Attributes, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const Actions, attributes: *const Attributes, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn posix_spawn_file_actions_init(object: *mut Actions) -> c_int;
    fn posix_spawn_file_actions_destroy(object: *mut Actions) -> c_int;
    fn posix_spawn_file_actions_addclose(object: *mut Actions, fd: c_int) -> c_int;
    fn posix_spawn_file_actions_addclosefrom_np(object: *mut Actions, fd: c_int) -> c_int;
    fn posix_spawn_file_actions_adddup2(object: *mut Actions, fd: c_int, to: c_int) -> c_int;
    fn posix_spawn_file_actions_addopen(object: *mut Actions, fd: c_int, name: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    fn posix_spawn_file_actions_addchdir_np(object: *mut Actions, name: *const c_char) -> c_int;
    fn posix_spawn_file_actions_addfchdir_np(object: *mut Actions, fd: c_int) -> c_int;
    fn posix_spawn_file_actions_addtcsetpgrp_np(object: *mut Actions, fd: c_int) -> c_int;
    fn fork() -> pid_t;
    fn openpty(master: *mut c_int, slave: *mut c_int, name: *mut c_char, settings: *const termios, size: *const winsize) -> c_int;
    fn _Fork() -> pid_t;
    fn clone(run: Option<extern "C" fn(*mut c_void) -> c_int>, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent: *mut pid_t, tls: *mut c_void, child: *mut pid_t) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn execvpe(file: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn fexecve(fd: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn execveat(dir: c_int, path: *const c_char, argv: *const *const c_char, envp: *const *const c_char, flags: c_int) -> c_int;
    fn io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint) -> c_int;
    fn io_uring_queue_init_params(entries: c_uint, ring: *mut c_void, parameters: *mut c_void) -> c_int;
    fn io_uring_queue_init_mem(entries: c_uint, ring: *mut c_void, parameters: *mut c_void, memory: *mut c_void, len: size_t) -> c_int;
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
    fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t;
    fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t;
    fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t;
    fn siginterrupt(signal: c_int, flag: c_int) -> c_int;
    fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
}

unsafe extern "C" {
    fn pthread_testcancel();
}

/// `pthread_testcancel(3)`.
///
/// # Safety
/// The thread may end here: nothing may be on its stack that would have to be dropped.
pub unsafe fn testcancel() {
    // SAFETY: as the caller promises.
    unsafe { pthread_testcancel() };
}

/// `close(2)`, at which no thread is cancelled.
///
/// # Safety
/// As [`close`].
pub unsafe fn close_for_sure(fd: c_int) -> c_int {
    // SAFETY: one plain number, which the caller may close.
    unsafe { syscall(libc::SYS_close, fd as usize, 0, 0, 0, 0, 0) as c_int }
}
