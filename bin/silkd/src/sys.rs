//! The few system calls without a safe wrapper in the libraries used. All `unsafe` of the
//! daemon is here.

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `sched_setscheduler(2)` of a thread (zero: the calling one).
///
/// # Errors
/// The kernel's.
pub fn set_scheduler(tid: u32, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    let tid = libc::pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: the kernel reads one `sched_param`, which outlives the call.
    check(unsafe { libc::sched_setscheduler(tid, policy, &parameters) }).map(drop)
}

/// The policy of a thread (`sched_getscheduler(2)`).
///
/// # Errors
/// The kernel's.
pub fn scheduler_of(tid: u32) -> io::Result<libc::c_int> {
    let tid = libc::pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: takes a number.
    check(unsafe { libc::sched_getscheduler(tid) })
}

/// Keeps the calling thread on these CPUs.
///
/// # Errors
/// The kernel's, such as when none of them exists.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a zeroed CPU set is an empty one; CPU_SET stays inside it for indices below
    // CPU_SETSIZE; the kernel reads as many bytes as the set has.
    check(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    })
    .map(drop)
}

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGIO for this thread and those it starts, and makes them
/// readable instead.
///
/// # Errors
/// The kernel's.
pub fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is read, and a descriptor that
    // signalfd returns is ours to own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&mut set))?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGIO] {
            check(libc::sigaddset(&mut set, signal))?;
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// From now on [`interrupt`] ends the call in which a thread of this process waits, and does nothing else.
///
/// # Errors
/// The kernel's.
pub fn may_be_interrupted() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the action is zeroed, which is an empty set of signals and no flag (so calls are not begun again), and has a handler that
    // may run anywhere, since it does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        check(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut())).map(drop)
    }
}

/// Interrupts a thread of this process in what it waits for ([`may_be_interrupted`]).
pub fn interrupt(tid: u32) {
    // SAFETY: no pointers; a number that is no thread of this process's is refused.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
}

/// `TCP_DEFER_ACCEPT`: how many seconds a listening socket waits for the first bytes of a
/// connection; 0: it does not.
///
/// # Errors
/// The kernel's.
pub fn defer_accept(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let seconds = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, seconds)
}

/// Linux is to tell of each datagram the address it was sent to, the hops it had left and its service bits, and to keep what
/// it is told of those that were sent. A socket of IPv6 (`six`) has to do with those of IPv4 as well.
///
/// # Errors
/// The kernel's.
pub fn tell_of_datagrams(socket: BorrowedFd<'_>, six: bool) -> Result<(), Errno> {
    const OF_BOTH: &[(libc::c_int, libc::c_int)] = &[
        (libc::IPPROTO_IP, libc::IP_RECVTTL),
        (libc::IPPROTO_IP, libc::IP_RECVTOS),
        (libc::IPPROTO_IP, libc::IP_RECVERR),
    ];
    const OF_FOUR: &[(libc::c_int, libc::c_int)] = &[(libc::IPPROTO_IP, libc::IP_PKTINFO)];
    const OF_SIX: &[(libc::c_int, libc::c_int)] = &[
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    ];
    set_options(socket, OF_BOTH, 1)?;
    set_options(socket, if six { OF_SIX } else { OF_FOUR }, 1)
}

fn set_options(
    socket: BorrowedFd<'_>,
    options: &[(libc::c_int, libc::c_int)],
    value: libc::c_int,
) -> Result<(), Errno> {
    let set = options.iter().try_for_each(|(level, option)| set_option(socket, *level, *option, value));
    set.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads one int, which outlives the call; the descriptor is open.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Writes what the kernel knows of a connection (`TCP_INFO`), as much as there is and fits.
pub fn tcp_info(socket: BorrowedFd<'_>, into: &mut [u8]) {
    let mut length = libc::socklen_t::try_from(into.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, which `into` has; the descriptor is open. What it refuses is
    // left as it is.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            into.as_mut_ptr().cast(),
            &mut length,
        );
    }
}

/// Whether all before the urgent octet of a stream was read (`SIOCATMARK`).
pub fn is_at_mark(socket: BorrowedFd<'_>) -> bool {
    const SIOCATMARK: libc::c_ulong = 0x8905;
    let mut at: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which outlives the call; the descriptor is open.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCATMARK, &raw mut at) };
    asked == 0 && at != 0
}

/// The number of a thread as this process has it, that is known by another in a PID namespace (`NS_GET_PID_FROM_PIDNS`).
///
/// # Errors
/// `ESRCH`: there is none, or none that is to be seen from here. `ENOTTY`: the kernel is older than 6.11.
pub fn number_from(namespace: BorrowedFd<'_>, own: u32) -> io::Result<u32> {
    const PID_FROM: libc::c_ulong = 0x8004_b706;
    let own = libc::c_int::try_from(own).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: no pointers: the number is given and answered as it is.
    let found = check(unsafe { libc::ioctl(namespace.as_raw_fd(), PID_FROM, own) })?;
    // A thread of a namespace beside or above has the number 0 here.
    u32::try_from(found).ok().filter(|found| *found > 0).ok_or(io::Error::from_raw_os_error(libc::ESRCH))
}

/// Makes eventfds readable in such a way that nobody who holds one can let it wait: by the end of an asynchronous read (io_submit(2),
/// `IOCB_FLAG_RESFD`), of no bytes, which is over at once. That costs two or three times as much as to write them.
#[derive(Debug)]
pub struct Signaller {
    context: libc::c_ulong,
    nothing: OwnedFd,
    /// So many ends of reads lie in the kernel's list of them.
    ended: usize,
}

/// Ends of reads that the kernel keeps at least, and those that are taken out of its list at once.
const KEPT: libc::c_long = 128;
const TAKEN: usize = 64;

/// `struct iocb` of `<linux/aio_abi.h>`, as little-endian machines have it.
#[repr(C)]
#[derive(Default)]
struct Read {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

impl Signaller {
    /// For the calling thread, or whoever has it after that.
    ///
    /// # Errors
    /// The kernel's: it has no asynchronous reads, or no more room for them (`fs.aio-max-nr`).
    pub fn new() -> io::Result<Self> {
        let nothing = std::fs::File::open("/dev/null")?.into();
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word, which is zero before, as it wants it.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, KEPT, &raw mut context) };
        if made < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { context, nothing, ended: 0 }) }
    }

    /// Makes an eventfd readable, as [`silk_stream::wake::notify`]. Whether the kernel did.
    pub fn signal(&mut self, event: BorrowedFd<'_>) -> bool {
        const PREAD: u16 = 0;
        const RESFD: u32 = 1;
        let read = Read {
            opcode: PREAD,
            file: self.nothing.as_raw_fd().cast_unsigned(),
            flags: RESFD,
            event: event.as_raw_fd().cast_unsigned(),
            ..Read::default()
        };
        let reads = [&raw const read];
        // SAFETY: the kernel reads one pointer to one structure of its layout, both of which outlive the call. The read is of no bytes of
        // /dev/null and over when the call returns, so the kernel keeps nothing of it but its end.
        let begun = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, reads.as_ptr()) };
        self.ended += 1;
        if self.ended == TAKEN {
            self.forget_ends();
        }
        begun == 1
    }

    /// The kernel's list has room again.
    fn forget_ends(&mut self) {
        let mut ends = [[0u64; 4]; TAKEN];
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes at most `TAKEN` structures of 32 bytes, for which there is room, and reads one timespec.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0,
                TAKEN,
                ends.as_mut_ptr(),
                &raw const at_once,
            );
        }
        self.ended = 0;
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        // SAFETY: no pointers; the context is this one's, and nothing of it is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn an_eventfd_is_signalled_as_often_as_one_likes_and_whatever_its_writers_would_wait_for() {
        let event = silk_stream::wake::event().unwrap();
        let mut signaller = Signaller::new().unwrap();
        let read = || {
            let mut count = [0; 8];
            rustix::io::read(&event, &mut count).map(|_| u64::from_ne_bytes(count))
        };
        assert_eq!(read(), Err(Errno::AGAIN));
        (0..1000).for_each(|n| assert!(signaller.signal(event.as_fd()), "{n}"));
        assert_eq!(read(), Ok(1000));
        // Full, and to let its writers wait.
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        rustix::fs::fcntl_setfl(&event, rustix::fs::OFlags::empty()).unwrap();
        (0..1000).for_each(|n| assert!(signaller.signal(event.as_fd()), "{n}"));
        assert_eq!(read(), Ok(u64::MAX));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(!signaller.signal(file.as_fd()), "it is no eventfd");
    }

    #[test]
    fn scheduling_a_thread_that_is_not_there_says_so() {
        let error = set_scheduler(u32::MAX >> 2, libc::SCHED_OTHER, 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
