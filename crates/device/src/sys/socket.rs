//! Packet sockets (packet(7)) and the interface calls they need.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::{check, check_len};

/// One instruction of a classic BPF socket filter: code, jump if true, jump if false, operand.
pub(crate) type Filter = (u16, u8, u8, u32);

/// The index of an interface of this network namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the pointer is to a terminated string that lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// A raw packet socket, not bound: it sees nothing until it is.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a packet socket to an interface. With `protocol` 0 it only sends, otherwise it
/// sees what arrives there of that protocol (`ETH_P_ALL`: everything).
pub(crate) fn bind_packet(fd: BorrowedFd<'_>, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a sockaddr_ll of the given length that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(())
}

/// What an interface may filter, and is to let through.
#[derive(Clone, Copy)]
pub(crate) enum Heard {
    /// Frames to any group.
    AllGroups,
    /// Frames to an Ethernet address that is not its own.
    Station([u8; 6]),
}

/// An interface lets this through for as long as the packet socket is open. One that cannot tell addresses apart lets
/// everything through then.
pub(crate) fn hear(fd: BorrowedFd<'_>, interface: u32, what: Heard) -> io::Result<()> {
    let mut request = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_ALLMULTI as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    if let Heard::Station(mac) = what {
        (request.mr_type, request.mr_alen) = (libc::PACKET_MR_UNICAST as u16, mac.len() as u16);
        request.mr_address[..mac.len()].copy_from_slice(&mac);
    }
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Sets an integer option of a packet socket (`SOL_PACKET`).
pub(crate) fn set_packet_option(fd: BorrowedFd<'_>, option: i32, value: i32) -> io::Result<()> {
    set_option(fd, libc::SOL_PACKET, option, &value)
}

/// Makes room for `bytes` of packets on their way: past the administrator's limit where
/// allowed, up to it otherwise.
pub(crate) fn send_buffer(fd: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes))
}

/// The same for `bytes` of packets that wait to be received.
pub(crate) fn receive_buffer(fd: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
}

/// Attaches a classic BPF filter: the socket sees only what it accepts.
pub(crate) fn filter(fd: BorrowedFd<'_>, program: &[Filter]) -> io::Result<()> {
    set_filter(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

fn set_filter(fd: BorrowedFd<'_>, level: i32, option: i32, program: &[Filter]) -> io::Result<()> {
    let code: Vec<_> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let len = u16::try_from(code.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // The kernel only reads it.
    let program = libc::sock_fprog { len, filter: code.as_ptr().cast_mut() };
    set_option(fd, level, option, &program)
}

/// What says by its result which member of a fan-out a packet goes to.
pub(crate) enum Chooser<'c> {
    /// A loaded program.
    Program(BorrowedFd<'c>),
    /// A classic filter.
    Filter(&'c [Filter]),
}

/// Makes bound packet sockets members of one fan-out.
pub(crate) fn fan_out<'f>(
    sockets: impl Iterator<Item = BorrowedFd<'f>>,
    chooser: &Chooser<'_>,
) -> io::Result<()> {
    const PACKET_FANOUT: i32 = 18;
    const PACKET_FANOUT_DATA: i32 = 22;
    const BY_FILTER: i32 = 6;
    const BY_PROGRAM: i32 = 7;
    const UNIQUE: i32 = 0x2000;
    const IGNORE_OUTGOING: i32 = 0x4000;
    let by = match chooser {
        Chooser::Program(_) => BY_PROGRAM,
        Chooser::Filter(_) => BY_FILTER,
    };
    let kind = by | IGNORE_OUTGOING;
    let mut group = None;
    for fd in sockets {
        let joined = match group {
            // The kernel finds a number that no other fan-out of this namespace has.
            None => (kind | UNIQUE) << 16,
            Some(number) => kind << 16 | number,
        };
        set_packet_option(fd, PACKET_FANOUT, joined)?;
        if group.is_none() {
            group = Some(packet_option(fd, PACKET_FANOUT)? & 0xffff);
            match chooser {
                Chooser::Program(program) => {
                    set_packet_option(fd, PACKET_FANOUT_DATA, program.as_raw_fd())?;
                }
                Chooser::Filter(filter) => {
                    set_filter(fd, libc::SOL_PACKET, PACKET_FANOUT_DATA, filter)?;
                }
            }
        }
    }
    Ok(())
}

fn packet_option(fd: BorrowedFd<'_>, option: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    let (value_at, len_at) = ((&raw mut value).cast(), &raw mut len);
    // SAFETY: both pointers live through the call and `len` is the size of `value`.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, value_at, len_at) })?;
    Ok(value)
}

/// How many frames a packet socket dropped since this was last asked.
pub(crate) fn packet_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    const PACKET_STATISTICS: i32 = 6;
    // struct tpacket_stats: packets, drops.
    let mut stats = [0u32; 2];
    let mut len = size_of::<[u32; 2]>() as libc::socklen_t;
    // SAFETY: both pointers live through the call and `len` is the size of what `stats` holds.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        )
    })?;
    Ok(stats[1])
}

/// Sends the parts as one packet, without waiting.
pub(crate) fn send_parts(fd: BorrowedFd<'_>, parts: [&[u8]; 4]) -> io::Result<usize> {
    let mut slices =
        parts.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: all-zero is a valid msghdr: no address, no vectors, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = slices.as_mut_ptr();
    message.msg_iovlen = slices.len();
    // SAFETY: `message` names four vectors that name borrowed slices; all live through the
    // call, and sending only reads them.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) })
}

pub(super) fn set_option<T>(fd: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole `T` that lives through the call and is only read; the
    // kernel refuses a length it does not expect.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const *value).cast(), len) })?;
    Ok(())
}
