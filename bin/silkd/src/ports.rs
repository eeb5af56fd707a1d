//! The local ports silk uses, kept apart from Linux's (SILK §5.1 leaves this to the
//! administrator). Every port of ours is also bound as a socket of Linux's, so neither side
//! can give a port away that the other has; if the daemon dies, the kernel closes them and
//! answers newcomers with RST. Where a program listens, so does that socket, for what does not
//! come over silk's device (`host.rs`).

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, bind, getsockname, ipproto, shutdown, socket_with,
    sockopt,
};
use silk_control::{Kind, Refusal};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The ports in use, each with the sockets that share it.
#[derive(Default)]
pub struct Ports {
    taken: BTreeMap<(bool, u16), Reservation>,
}

struct Reservation {
    /// Linux's socket that holds the port; `None` when the address is not Linux's at all.
    linux: Option<Arc<OwnedFd>>,
    users: u32,
    shared: bool,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // An executor may hold the socket a little longer. It must not listen then: whoever
        // takes the port next could not.
        if let Some(linux) = &self.linux {
            let _ = shutdown(linux, Shutdown::Both);
        }
    }
}

impl Ports {
    /// Takes `port` (zero: any free one) of `address` for one socket; the port.
    ///
    /// # Errors
    /// `EADDRINUSE` with a sentence that says who has it, or the kernel's own error.
    pub fn take(&mut self, kind: Kind, address: Ipv4Addr, port: u16, share: bool) -> Result<u16, Refusal> {
        let datagram = kind == Kind::Datagram;
        if let Some(taken) = self.taken.get_mut(&(datagram, port)) {
            if !(share && taken.shared) {
                return Err(in_use(port, "a program on silk has it already"));
            }
            taken.users += 1;
            return Ok(port);
        }
        let (linux, port) = match reserve(kind, address, port) {
            Ok((fd, port)) => (Some(Arc::new(fd)), port),
            Err(Errno::ADDRNOTAVAIL) => (None, self.free_port(datagram, port)?),
            Err(Errno::ADDRINUSE) => {
                return Err(in_use(
                    port,
                    "a program on Linux's own stack has it: stop that one, or let it run on silk",
                ));
            }
            Err(errno) => {
                return Err(Refusal {
                    errno: errno.raw_os_error(),
                    why: format!("Linux refused to reserve port {port}: {errno}"),
                });
            }
        };
        self.taken.insert((datagram, port), Reservation { linux, users: 1, shared: share });
        Ok(port)
    }

    /// Linux's socket that holds a stream port.
    pub fn linux(&self, port: u16) -> Option<Arc<OwnedFd>> {
        self.taken.get(&(false, port))?.linux.clone()
    }

    /// One socket uses the port no longer. Whether it was the last.
    pub fn give_back(&mut self, kind: Kind, port: u16) -> bool {
        let key = (kind == Kind::Datagram, port);
        let Some(taken) = self.taken.get_mut(&key) else { return false };
        taken.users -= 1;
        if taken.users == 0 {
            self.taken.remove(&key);
        }
        !self.taken.contains_key(&key)
    }

    /// A port nobody uses, where Linux does not choose (the address is silk's alone): the
    /// dynamic ports of RFC 6335 §6.
    fn free_port(&self, datagram: bool, wanted: u16) -> Result<u16, Refusal> {
        if wanted != 0 {
            return Ok(wanted);
        }
        let random = rand_core::TryRngCore::try_next_u32(&mut rand_core::OsRng).unwrap_or(0);
        let start = 49152 + (random % 16384) as u16;
        (0..16384u16)
            .map(|step| 49152 + ((start - 49152 + step) % 16384))
            .find(|port| !self.taken.contains_key(&(datagram, *port)))
            .ok_or_else(|| in_use(0, "every dynamic port is taken"))
    }
}

fn in_use(port: u16, who: &str) -> Refusal {
    Refusal { errno: libc::EADDRINUSE, why: format!("port {port} is in use: {who}") }
}

fn reserve(kind: Kind, address: Ipv4Addr, port: u16) -> Result<(OwnedFd, u16), Errno> {
    let (sort, protocol) = match kind {
        Kind::Stream => (SocketType::STREAM, ipproto::TCP),
        Kind::Datagram => (SocketType::DGRAM, ipproto::UDP),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::INET, sort, flags, Some(protocol))?;
    if kind == Kind::Stream {
        // So that connections of Linux's in TIME-WAIT do not count as users of the port.
        sockopt::set_socket_reuseaddr(&fd, true)?;
    }
    bind(&fd, &SocketAddrV4::new(address, port))?;
    let local = SocketAddr::try_from(getsockname(&fd)?).map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((fd, local.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

    #[test]
    fn a_port_of_ours_is_refused_to_linux_and_the_other_way_round() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, HERE, 0, false).unwrap();
        assert!(std::net::TcpListener::bind((HERE, port)).is_ok_and(|l| l.local_addr().is_ok()) || port != 0);
        let linux = std::net::UdpSocket::bind((HERE, 0)).unwrap();
        let taken = linux.local_addr().unwrap().port();
        let refused = ports.take(Kind::Datagram, HERE, taken, false).unwrap_err();
        assert_eq!(refused.errno, libc::EADDRINUSE);
    }

    #[test]
    fn sharing_needs_everybodys_consent_and_the_last_one_frees() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, HERE, 0, true).unwrap();
        assert!(ports.take(Kind::Stream, HERE, port, false).is_err());
        assert_eq!(ports.take(Kind::Stream, HERE, port, true), Ok(port));
        assert!(!ports.give_back(Kind::Stream, port));
        assert!(ports.give_back(Kind::Stream, port));
    }

    #[test]
    fn a_port_that_is_given_back_is_free_even_while_an_executor_holds_its_socket() {
        let mut ports = Ports::default();
        let port = ports.take(Kind::Stream, HERE, 0, false).unwrap();
        let held = ports.linux(port).unwrap();
        rustix::net::listen(&held, 8).unwrap();
        assert!(std::net::TcpStream::connect((HERE, port)).is_ok());
        assert!(ports.give_back(Kind::Stream, port));
        assert!(std::net::TcpStream::connect((HERE, port)).is_err());
        assert_eq!(ports.take(Kind::Stream, HERE, port, false), Ok(port));
        rustix::net::listen(ports.linux(port).unwrap(), 8).unwrap();
    }

    #[test]
    fn an_address_that_linux_does_not_have_needs_no_reservation() {
        let mut ports = Ports::default();
        let elsewhere = Ipv4Addr::new(192, 0, 2, 77);
        assert_eq!(ports.take(Kind::Stream, elsewhere, 80, false), Ok(80));
        assert!(ports.take(Kind::Stream, elsewhere, 0, false).unwrap() >= 49152);
    }
}
