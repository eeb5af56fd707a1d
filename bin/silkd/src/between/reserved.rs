//! A socket of Linux's that holds a port for silk: how it is made, and what it is used for meanwhile.

use crate::binding::{Place, Share};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, bind, getsockname, ipproto, listen, shutdown,
    socket_with, sockopt,
};
use silk_control::Kind;
use silk_path::Sharing;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Linux's socket that holds a port. An executor may hold it a little longer than the port is ours,
/// and must not listen then: whoever takes the port next could not.
#[derive(Debug)]
pub struct Reserved {
    socket: OwnedFd,
    state: Mutex<Hold>,
    /// Which of those who send by it has said last how; zero: nobody.
    pub sender: AtomicU64,
    /// A call has met what became of a datagram that was sent before: its error queue may have something.
    pub has_erred: AtomicBool,
}

/// How a socket has its port.
#[derive(Clone, Debug, Default)]
pub struct PortHold {
    /// Linux's socket that holds it, where Linux has the address too.
    pub linux: Option<Arc<Reserved>>,
    /// How others may have it beside it.
    pub sharing: Option<Sharing>,
}

/// What a port that is held has been used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// To hold it.
    Quiet,
    /// To listen as well. Where Linux has chosen the port, it is lost when that ends.
    Listened,
    /// Nothing any more: another may have the port.
    GivenBack,
}

impl Reserved {
    /// One that has its port.
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            state: Mutex::new(Hold::Quiet),
            sender: AtomicU64::new(0),
            has_erred: AtomicBool::new(false),
        }
    }

    /// Listens, or goes on with another backlog, unless the port has been given back.
    ///
    /// # Errors
    /// The kernel's; `EINVAL` where it has been.
    pub fn listen(&self, backlog: i32) -> Result<(), Errno> {
        let mut state = self.state();
        if *state == Hold::GivenBack {
            return Err(Errno::INVAL);
        }
        *state = Hold::Listened;
        listen(&self.socket, backlog)
    }

    fn state(&self) -> MutexGuard<'_, Hold> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens no longer, and keeps the port.
    pub fn end_listening(&self) {
        // One that does not listen is not connected either, which is all that Linux could say.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Whether it has been used for nothing but to hold the port.
    pub fn is_quiet(&self) -> bool {
        *self.state() == Hold::Quiet
    }

    /// Another may have the port from now on.
    pub fn give_back(&self) {
        if std::mem::replace(&mut *self.state(), Hold::GivenBack) == Hold::Listened {
            self.end_listening();
        }
    }
}

impl AsFd for Reserved {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How often Linux is asked to choose another port.
const CHOICES: usize = 64;

/// The same as [`reserve`]. Where Linux chooses, it may choose what others of ours are bound to that do not listen:
/// what `is_taken`.
///
/// # Errors
/// The kernel's; `EADDRINUSE` where all that it chooses is taken.
pub fn reserve_another(
    (kind, place, port): (Kind, Place, u16),
    share: Share,
    may_listen: bool,
    is_taken: impl Fn(u16) -> bool,
) -> Result<(OwnedFd, u16), Errno> {
    // Those that were refused are held until there is another, or Linux might choose them again.
    let mut refused = Vec::new();
    loop {
        let (socket, chosen) = reserve((kind, place, port), share, may_listen)?;
        if port != 0 || !is_taken(chosen) {
            return Ok((socket, chosen));
        }
        refused.push(socket);
        if refused.len() == CHOICES {
            return Err(Errno::ADDRINUSE);
        }
    }
}

/// The index of the interface that has this address by Linux's word.
fn link_of(address: Ipv6Addr) -> Option<u32> {
    let listed = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    let wanted = format!("{:032x}", address.to_bits());
    let line = listed.lines().find(|line| line.starts_with(&wanted))?;
    u32::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()
}

/// A socket that holds a port, and which it is. Linux's programs share it as silk's do. One that Linux has chosen is
/// lost when its socket ends to listen, one that was named is not; to name it costs a second socket.
///
/// # Errors
/// The kernel's.
pub fn reserve(
    (kind, place, port): (Kind, Place, u16),
    share: Share,
    may_listen: bool,
) -> Result<(OwnedFd, u16), Errno> {
    let (sort, protocol) = match kind {
        Kind::Stream => (SocketType::STREAM, ipproto::TCP),
        Kind::Datagram => (SocketType::DGRAM, ipproto::UDP),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let six = place.address.is_ipv6();
    let mut at = SocketAddr::new(place.address, port);
    if let SocketAddr::V6(at) = &mut at
        && at.ip().is_unicast_link_local()
    {
        // Where it is no address of Linux's, it is as if there were no link.
        at.set_scope_id(link_of(*at.ip()).ok_or(Errno::ADDRNOTAVAIL)?);
    }
    let family = if six { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = socket_with(family, sort, flags, Some(protocol))?;
    if six {
        sockopt::set_ipv6_v6only(&fd, !place.sides.four)?;
    }
    match kind {
        // So that connections of Linux's in TIME-WAIT do not count as users of the port.
        Kind::Stream => sockopt::set_socket_reuseaddr(&fd, true)?,
        // Whom its owner lets it speak with (`SO_BROADCAST`) is silk's to mind.
        Kind::Datagram => {
            sockopt::set_socket_broadcast(&fd, true)?;
            crate::sys::tell_of_datagrams(fd.as_fd(), six)?;
        }
    }
    // One that Linux chooses is to be nobody else's at first.
    if port != 0 {
        let_share(&fd, kind, share)?;
    }
    bind(&fd, &at)?;
    if port == 0 {
        let_share(&fd, kind, share)?;
    }
    let local = SocketAddr::try_from(getsockname(&fd)?).map_err(|_| Errno::AFNOSUPPORT)?;
    if kind == Kind::Stream && port == 0 && may_listen {
        return reserve((kind, place, local.port()), share, may_listen);
    }
    Ok((fd, local.port()))
}

/// Lets others have a socket's port beside it. (Streams that do not listen always do.)
fn let_share(fd: &OwnedFd, kind: Kind, share: Share) -> Result<(), Errno> {
    if share.port {
        sockopt::set_socket_reuseport(fd, true)?;
    }
    if share.address && kind == Kind::Datagram {
        sockopt::set_socket_reuseaddr(fd, true)?;
    }
    Ok(())
}
