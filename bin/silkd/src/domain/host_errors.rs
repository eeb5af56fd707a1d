//! What Linux has been told of datagrams that left by its socket: that nobody heard one, above all. It stands in that
//! socket's error queue (`IP_RECVERR`), and is told to the program whose datagram it was, as what comes over silk's devices is.

use crate::between::reserved::Reserved;
use crate::domain::engine::{BURST, Engine};
use crate::domain::host_socket::endpoint;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use silk_instant::Instant;
use silk_path::{Endpoint, PathId, Quoted};
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering::Relaxed;

/// An error, and whom the datagram was for.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub remote: Endpoint,
    pub quoted: Quoted,
}

/// The next error of a socket's queue, its datagram by way of `into`; `None`: one that no other host, and no other socket,
/// has caused.
///
/// # Errors
/// The kernel's; `EAGAIN`: there is none.
pub fn next(socket: impl AsFd, into: &mut [u8], control: &mut [u8]) -> Result<Option<Said>, Errno> {
    let mut parts = [IoSliceMut::new(into)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_fd().as_raw_fd(), &mut parts, Some(control), flags)?;
    let Some(remote) = message.address.as_ref().and_then(endpoint) else { return Ok(None) };
    let said = message.cmsgs().into_iter().flatten().find_map(|told| match told {
        ControlMessageOwned::Ipv4RecvErr(error, offender) => {
            let offender = offender.map(|by| Ipv4Addr::from(by.sin_addr.s_addr.to_ne_bytes()).into());
            Some((error, offender))
        }
        ControlMessageOwned::Ipv6RecvErr(error, offender) => {
            let offender =
                offender.map(|by| IpAddr::from(Ipv6Addr::from(by.sin6_addr.s6_addr)).to_canonical());
            Some((error, offender))
        }
        _ => None,
    });
    let length = message.bytes;
    Ok(said.and_then(|(error, offender)| quoted(&error, offender?)).map(|mut quoted| {
        quoted.data.extend_from_slice(into.get(..length).unwrap_or_default());
        Said { remote, quoted }
    }))
}

/// An error as ICMP said it.
fn quoted(error: &libc::sock_extended_err, offender: IpAddr) -> Option<Quoted> {
    const PROBLEM: u8 = 12;
    if ![libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6].contains(&error.ee_origin) {
        return None;
    }
    let is_pointer = offender.is_ipv4() && error.ee_type == PROBLEM;
    let info = if is_pointer { error.ee_info << 24 } else { error.ee_info };
    Some(Quoted { kind: (error.ee_type, error.ee_code), info, offender, data: Vec::new() })
}

impl Engine {
    /// Tells whoever sent by this socket of Linux's, of those whose first paths these are, what its error queue says.
    pub(crate) fn hear_errors(&mut self, linux: &Reserved, (first, sharers): (PathId, &[u32]), now: Instant) {
        linux.has_erred.store(false, Relaxed);
        let mut piece = std::mem::take(&mut self.host.piece);
        for _ in 0..BURST {
            let Ok(said) = next(linux, &mut piece, &mut self.host.control) else { break };
            let Some(Said { remote, quoted }) = said else { continue };
            let sender = if sharers.len() < 2 { first } else { self.sharer(sharers, first, remote) };
            let peer = self.core.paths.path(sender).and_then(|path| path.state.attrs.remote());
            // Who is connected hears of its peer alone, as on Linux, whose socket here is not.
            if peer.is_none_or(|peer| peer == remote) {
                self.tell_of_datagram(sender, remote, &quoted);
                self.conclude(sender, now);
            }
        }
        self.host.piece = piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::host_socket::control;
    use crate::sys;
    use std::net::{SocketAddr, UdpSocket};

    #[test]
    fn a_datagram_that_nobody_hears_is_told_of_with_what_it_carried() {
        for (own, six) in [("0.0.0.0:0", false), ("[::]:0", true)] {
            let socket = UdpSocket::bind(own).unwrap();
            sys::tell_of_datagrams(socket.as_fd(), six).unwrap();
            let (mut bytes, mut control) = ([0; 16], control());
            assert_eq!(next(&socket, &mut bytes, &mut control), Err(Errno::EAGAIN));
            for (to, kind) in [("127.0.0.1", (3, 3)), ("::1", (1, 4))].iter().take(1 + usize::from(six)) {
                let to: IpAddr = to.parse().unwrap();
                let nobody = UdpSocket::bind((to, 0)).and_then(|socket| socket.local_addr()).unwrap();
                let by = match to {
                    IpAddr::V4(to) if six => SocketAddr::new(to.to_ipv6_mapped().into(), nobody.port()),
                    _ => nobody,
                };
                socket.send_to(b"is anybody there", by).unwrap();
                let said = next(&socket, &mut bytes, &mut control);
                let quoted =
                    Quoted { kind: *kind, info: 0, offender: to, data: b"is anybody there".to_vec() };
                assert_eq!(said, Ok(Some(Said { remote: nobody.into(), quoted })), "{own} {to}");
                // With its error queue the socket is rid of it.
                assert!(socket.take_error().unwrap().is_none());
                assert_eq!(next(&socket, &mut bytes, &mut control), Err(Errno::EAGAIN));
            }
        }
    }

    #[test]
    fn what_the_machine_itself_refuses_is_no_error_of_the_network() {
        let error = |origin, kind| libc::sock_extended_err {
            ee_errno: 1,
            ee_origin: origin,
            ee_type: kind,
            ee_code: 0,
            ee_pad: 0,
            ee_info: 20,
            ee_data: 0,
        };
        let by = Ipv4Addr::LOCALHOST.into();
        assert_eq!(quoted(&error(libc::SO_EE_ORIGIN_LOCAL, 3), by), None);
        let info = |kind| quoted(&error(libc::SO_EE_ORIGIN_ICMP, kind), by).map(|quoted| quoted.info);
        assert_eq!((info(3), info(12)), (Some(20), Some(20 << 24)));
    }
}
