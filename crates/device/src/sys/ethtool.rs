//! What the driver of an interface does by itself (the `SIOCETHTOOL` of linux/ethtool.h).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

/// `struct ethtool_value`: a command and its answer.
#[repr(C)]
struct Question {
    command: u32,
    answer: u32,
}

/// `ETHTOOL_GFLAGS`.
const FLAGS: u32 = 0x25;
/// `ETH_FLAG_TXVLAN` and `ETH_FLAG_RXVLAN`.
const TAGS_OUT: u32 = 1 << 7;
const TAGS_IN: u32 = 1 << 8;

/// Whether the interface `name` writes VLAN tags into frames that it sends, and whether it takes them out of
/// those it receives: Linux keeps them beside the frame then (`txvlan` and `rxvlan` of ethtool(8)).
pub(crate) fn tags_apart(name: &str) -> io::Result<(bool, bool)> {
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: all-zero is a valid ifreq: an empty name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let mut question = Question { command: FLAGS, answer: 0 };
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    // SAFETY: SIOCETHTOOL takes a pointer to an ifreq that points to the command, here a struct
    // ethtool_value, which the kernel writes; both live through the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok((question.answer & TAGS_OUT != 0, question.answer & TAGS_IN != 0))
}
