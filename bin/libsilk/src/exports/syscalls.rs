//! `syscall(2)`: programs that avoid the C library's wrappers still meet ours.

use super::{
    credentials, descriptors as d, execs, identity as i, limits, memory, messages as m, naming as n,
    processes, reading as r, rings, shutting_in, waiting as w, writing as o,
};
use crate::close;
use crate::errno::int;
use crate::last_thread;
use crate::process;
use crate::real;
use libc::{c_int, c_long, c_uint, c_ulong, off_t, sigset_t, socklen_t};
use std::ptr;
use std::ptr::with_exposed_provenance_mut as pointer;

/// # Safety
/// As the C library's. Seven integer arguments can be taken where fewer were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    e: usize,
    f: usize,
    g: usize,
) -> c_long {
    let (fd, len) = (a as c_int, e as socklen_t);
    // SAFETY: the program keeps the contract of the system call it makes, which is that of
    // the function called here.
    unsafe {
        match number {
            libc::SYS_read => r::read(fd, pointer(b), c) as c_long,
            libc::SYS_readv => r::readv(fd, pointer(b), c as c_int) as c_long,
            libc::SYS_recvfrom => {
                r::recvfrom(fd, pointer(b), c, e as c_int, pointer(f), pointer(g)) as c_long
            }
            libc::SYS_recvmsg => m::recvmsg(fd, pointer(b), c as c_int) as c_long,
            libc::SYS_recvmmsg => m::recvmmsg(fd, pointer(b), c as c_uint, e as c_int, pointer(f)).into(),
            libc::SYS_write => o::write(fd, pointer(b), c) as c_long,
            libc::SYS_writev => o::writev(fd, pointer(b), c as c_int) as c_long,
            libc::SYS_sendto => {
                o::sendto(fd, pointer(b), c, e as c_int, pointer(f), g as socklen_t) as c_long
            }
            libc::SYS_sendmsg => m::sendmsg(fd, pointer(b), c as c_int) as c_long,
            libc::SYS_sendmmsg => m::sendmmsg(fd, pointer(b), c as c_uint, e as c_int).into(),
            libc::SYS_sendfile => o::sendfile(fd, b as c_int, pointer(c), e) as c_long,
            libc::SYS_splice => {
                o::splice(fd, pointer::<off_t>(b), c as c_int, pointer(e), f, g as c_uint) as c_long
            }
            libc::SYS_socket => n::socket(fd, b as c_int, c as c_int).into(),
            libc::SYS_bind => n::bind(fd, pointer(b), c as socklen_t).into(),
            libc::SYS_listen => n::listen(fd, b as c_int).into(),
            libc::SYS_accept => n::accept(fd, pointer(b), pointer(c)).into(),
            libc::SYS_accept4 => n::accept4(fd, pointer(b), pointer(c), e as c_int).into(),
            libc::SYS_connect => n::connect(fd, pointer(b), c as socklen_t).into(),
            libc::SYS_shutdown => n::shutdown(fd, b as c_int).into(),
            libc::SYS_getsockname => n::getsockname(fd, pointer(b), pointer(c)).into(),
            libc::SYS_getpeername => n::getpeername(fd, pointer(b), pointer(c)).into(),
            libc::SYS_setsockopt => {
                n::setsockopt(fd, b as c_int, c as c_int, pointer(e), f as socklen_t).into()
            }
            libc::SYS_getsockopt => n::getsockopt(fd, b as c_int, c as c_int, pointer(e), pointer(f)).into(),
            libc::SYS_close => d::close(fd).into(),
            libc::SYS_close_range => d::close_range(a as c_uint, b as c_uint, c as c_int).into(),
            libc::SYS_dup => d::dup(fd).into(),
            libc::SYS_dup3 => d::dup3(fd, b as c_int, c as c_int).into(),
            libc::SYS_fcntl => d::fcntl(fd, b as c_int, c).into(),
            libc::SYS_ioctl => d::ioctl(fd, b as c_ulong, c).into(),
            libc::SYS_fstat => i::fstat(fd, pointer(b)).into(),
            libc::SYS_newfstatat => i::fstatat(fd, pointer(b), pointer(c), e as c_int).into(),
            libc::SYS_statx => i::statx(fd, pointer(b), c as c_int, e as c_uint, pointer(f)).into(),
            libc::SYS_ppoll => w::ppoll(pointer(a), b as _, pointer(c), pointer(e)).into(),
            libc::SYS_epoll_create1 => w::epoll_create1(fd).into(),
            libc::SYS_epoll_ctl => w::epoll_ctl(fd, b as c_int, c as c_int, pointer(e)).into(),
            libc::SYS_epoll_pwait => {
                w::epoll_pwait(fd, pointer(b), c as c_int, len.cast_signed(), pointer(f)).into()
            }
            libc::SYS_epoll_pwait2 => {
                w::epoll_pwait2(fd, pointer(b), c as c_int, pointer(e), pointer(f)).into()
            }
            libc::SYS_pselect6 if w::concern_us(fd, [pointer(b), pointer(c), pointer(e)]) => {
                // The mask comes with its length, behind a pointer.
                let mask = pointer::<*const sigset_t>(g).as_ref().map_or(ptr::null(), |mask| *mask);
                w::pselect(fd, pointer(b), pointer(c), pointer(e), pointer(f), mask).into()
            }
            libc::SYS_preadv2 => r::preadv2(fd, pointer(b), c as c_int, e as off_t, g as c_int) as c_long,
            libc::SYS_pwritev2 => o::pwritev2(fd, pointer(b), c as c_int, e as off_t, g as c_int) as c_long,
            libc::SYS_mmap => memory::mmap(a, b, c as c_int, e as c_int, f as c_int, g as off_t) as c_long,
            libc::SYS_munmap => memory::munmap(a, b).into(),
            libc::SYS_mprotect => memory::mprotect(a, b, c as c_int).into(),
            libc::SYS_mremap => memory::mremap(a, b, c, e as c_int, f) as c_long,
            libc::SYS_prlimit64 => limits::prlimit(fd, b as c_int, pointer(c), pointer(e)).into(),
            libc::SYS_exit_group => processes::_exit(fd),
            libc::SYS_exit => {
                if last_thread::is_here() {
                    close::everything();
                }
                real::syscall(number, a, b, c, e, f, g)
            }
            libc::SYS_clone if processes::is_fork(a as u64, b as u64) => {
                let flags = processes::unwaited(a as u64) as usize;
                process::fork_by(|| real::syscall(number, flags, b, c, e, f, g))
            }
            libc::SYS_clone3 if processes::is_fork3(pointer(a), b) => {
                let own = processes::unwaited3(pointer(a), b);
                let arguments = own.as_ref().map_or(a, |own| own.as_ptr().expose_provenance());
                process::fork_by(|| real::syscall(number, arguments, b, c, e, f, g))
            }
            libc::SYS_execve => execs::execve(pointer(a), pointer(b), pointer(c)).into(),
            libc::SYS_execveat => execs::execveat(fd, pointer(b), pointer(c), pointer(e), f as c_int).into(),
            // Of the calling thread alone, as the kernel does it.
            libc::SYS_setuid
            | libc::SYS_setreuid
            | libc::SYS_setresuid
            | libc::SYS_setgid
            | libc::SYS_setregid
            | libc::SYS_setresgid
            | libc::SYS_setgroups
            | libc::SYS_chroot => {
                credentials::before_rights_go();
                real::syscall(number, a, b, c, e, f, g)
            }
            libc::SYS_prctl => {
                shutting_in::prctl(fd, b as c_ulong, c as c_ulong, e as c_ulong, f as c_ulong).into()
            }
            libc::SYS_seccomp => {
                shutting_in::before(a as c_uint);
                real::syscall(number, a, b, c, e, f, g)
            }
            libc::SYS_io_uring_setup => match rings::may_have_one() {
                Ok(()) => real::syscall(number, a, b, c, e, f, g),
                Err(errno) => int(Err(errno)).into(),
            },
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => w::poll(pointer(a), b as _, c as c_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => w::select(fd, pointer(b), pointer(c), pointer(e), pointer(f)).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => d::dup2(fd, b as c_int).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_create => w::epoll_create(fd).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => w::epoll_wait(fd, pointer(b), c as c_int, len.cast_signed()).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork | libc::SYS_vfork => processes::vfork().into(),
            _ => real::syscall(number, a, b, c, e, f, g),
        }
    }
}
