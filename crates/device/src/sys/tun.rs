//! The tap side of the tun driver (Documentation/networking/tuntap.rst).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::{check, check_len};

/// The driver, without an interface.
pub(crate) fn open_tun() -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")
}

/// Makes it (and creates, if need be) the tap interface `name`, which goes away with the descriptor. Of `header` bytes there is a
/// virtio-net header before every frame, both ways, and the interface's other side, Linux, may leave checksums and
/// segmentation to us, as we may to it; without one neither can. With `queues`, every further opening is one more queue of it.
pub(crate) fn open_tap(file: File, name: &str, header: Option<i32>, queues: bool) -> io::Result<File> {
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all-zero is a valid ifreq: an empty name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let several = if queues { libc::IFF_MULTI_QUEUE } else { 0 };
    let headers = if header.is_some() { libc::IFF_VNET_HDR } else { 0 };
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | headers | several;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF takes a pointer to an ifreq, which lives through the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    if let Some(header) = header {
        // SAFETY: TUNSETVNETHDRSZ takes a pointer to an int, which lives through the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header) })?;
    }
    let flags = if header.is_some() { libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 } else { 0 };
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) })?;
    Ok(file)
}

/// Lets `program` say which queue of the tap a frame goes to.
pub(crate) fn steer_tap(tap: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let program = program.as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF takes a pointer to an int, which lives through the call.
    check(unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETSTEERINGEBPF, &raw const program) })?;
    Ok(())
}

/// Reads one frame: its header and then the frame itself. Gives the bytes of both.
pub(crate) fn read_parts(fd: BorrowedFd<'_>, header: &mut [u8], frame: &mut [u8]) -> io::Result<usize> {
    let parts =
        [header, frame].map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
    // SAFETY: both vectors name borrowed, distinct, writable slices that live through the call.
    check_len(unsafe { libc::readv(fd.as_raw_fd(), parts.as_ptr(), 2) })
}

/// Writes the parts as one frame.
pub(crate) fn write_parts(fd: BorrowedFd<'_>, parts: [&[u8]; 4]) -> io::Result<usize> {
    let parts =
        parts.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: the vectors name borrowed slices that live through the call and are only read.
    check_len(unsafe { libc::writev(fd.as_raw_fd(), parts.as_ptr(), 4) })
}
