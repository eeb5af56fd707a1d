//! A connection over Linux's own TCP, and a datagram socket of Linux's, as HOST's stages use them:
//! system calls on a socket that never waits, and what their errors mean for a path.

use crate::reserved::Reserved;
use rustix::io::{Errno, IoSlice, read, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    acceptfrom_with, getsockname, recvfrom, sendmsg, sendmsg_addr, shutdown, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use silk_modules::host::{HostDatagrams, HostFault, HostSocket};
use silk_path::{Bell, Endpoint, Event, Wishes};
use silk_tcp::Algorithm;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The socket. Whoever watches it may hold it too, for as long as it takes to begin.
pub struct LinuxSocket(pub Arc<OwnedFd>);

impl HostSocket for LinuxSocket {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, HostFault> {
        retry_on_intr(|| read(&self.0, &mut *into)).map_err(fault)
    }

    fn write(&mut self, from: [&[u8]; 2]) -> Result<usize, HostFault> {
        let parts = from.map(IoSlice::new);
        let send = || sendmsg(&self.0, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        retry_on_intr(send).map_err(fault)
    }

    fn finish(&mut self) {
        // A connection that is gone already says so at the next call.
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    fn reset(&mut self) {
        reset(&self.0);
    }

    fn set(&mut self, option: Bell) {
        let socket = &self.0;
        // What Linux refuses the program would not have got from it either.
        let _ = match option {
            Bell::NoDelay(on) => sockopt::set_tcp_nodelay(socket, on),
            Bell::Cork(on) => sockopt::set_tcp_cork(socket, on),
            Bell::KeepAlive(keep) => set_keepalive(socket, keep),
            Bell::Wishes(wishes) => set_wishes(socket, &wishes),
            Bell::Service(bits) => sockopt::set_ip_tos(socket, bits),
            _ => Ok(()),
        };
    }
}

/// A socket that holds a datagram port, as long as the port is the program's.
pub struct LinuxDatagrams {
    socket: Weak<Reserved>,
    /// It is IPv6's, so that IPv4's addresses have to be mapped.
    six: bool,
}

impl LinuxDatagrams {
    /// To send by this socket.
    pub fn new(socket: &Arc<Reserved>) -> Self {
        let six = sockopt::socket_domain(socket) == Ok(AddressFamily::INET6);
        Self { socket: Arc::downgrade(socket), six }
    }
}

impl HostDatagrams for LinuxDatagrams {
    fn send(&mut self, to: Endpoint, pieces: [&[u8]; 3]) -> bool {
        let address = match to.ip() {
            IpAddr::V4(address) if self.six => address.to_ipv6_mapped().into(),
            address => address,
        };
        let Some(socket) = self.socket.upgrade() else { return false };
        let (to, pieces) = (SocketAddr::new(address, to.port()), pieces.map(IoSlice::new));
        let flags = SendFlags::NOSIGNAL;
        let send = || sendmsg_addr(&socket, &to, &pieces, &mut SendAncillaryBuffer::default(), flags);
        match retry_on_intr(send) {
            // What Linux says here of one that was sent before.
            Err(Errno::CONNREFUSED) => retry_on_intr(send).is_ok(),
            sent => sent.is_ok(),
        }
    }

    fn set(&mut self, option: Bell) {
        let Some(socket) = self.socket.upgrade() else { return };
        // What Linux refuses the program would not have got from it either.
        match option {
            Bell::Service(bits) => {
                let _ = sockopt::set_ip_tos(&socket, bits);
                if self.six {
                    let _ = sockopt::set_ipv6_tclass(&socket, bits.into());
                }
            }
            Bell::Wishes(Wishes { ttl: Some(ttl), .. }) => {
                let _ = sockopt::set_ip_ttl(&socket, ttl.into());
                if self.six {
                    let _ = sockopt::set_ipv6_unicast_hops(&socket, Some(ttl));
                }
            }
            _ => {}
        }
    }
}

/// The next datagram that a socket has heard: how long it is, and who sent it.
///
/// # Errors
/// The kernel's; `AGAIN`: there is none.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> Result<(usize, Endpoint), Errno> {
    let (length, _, from) = retry_on_intr(|| recvfrom(&socket, &mut *into, RecvFlags::DONTWAIT))?;
    // Of each datagram Linux tells the sender.
    let from = SocketAddr::try_from(from.ok_or(Errno::AGAIN)?).map_err(|_| Errno::AFNOSUPPORT)?;
    Ok((length, Endpoint::new(from.ip().to_canonical(), from.port())))
}

fn set_keepalive(socket: &OwnedFd, keep: Option<(u32, u32, u8)>) -> Result<(), Errno> {
    if let Some((idle, interval, probes)) = keep {
        let seconds = |n: u32| Duration::from_secs(n.into());
        sockopt::set_tcp_keepidle(socket, seconds(idle))?;
        sockopt::set_tcp_keepintvl(socket, seconds(interval))?;
        sockopt::set_tcp_keepcnt(socket, probes.into())?;
    }
    sockopt::set_socket_keepalive(socket, keep.is_some())
}

/// Those that Linux has a way to set from outside the program and that mean anything there.
fn set_wishes(socket: &OwnedFd, wishes: &Wishes) -> Result<(), Errno> {
    if let Some(algorithm) = wishes.congestion.and_then(Algorithm::from_number) {
        // Which algorithms there are is the machine's affair.
        let _ = sockopt::set_tcp_congestion(socket, algorithm.name());
    }
    if let Some(ttl) = wishes.ttl {
        sockopt::set_ip_ttl(socket, ttl.into())?;
    }
    if wishes.quick_ack {
        sockopt::set_tcp_quickack(socket, true)?;
    }
    sockopt::set_tcp_user_timeout(socket, wishes.user_timeout.unwrap_or(0))
}

fn fault(errno: Errno) -> HostFault {
    match errno {
        Errno::AGAIN => HostFault::NotNow,
        Errno::CONNRESET | Errno::PIPE => HostFault::Over(Event::Reset),
        Errno::TIMEDOUT => HostFault::Over(Event::TimedOut),
        other => HostFault::Over(Event::Unreachable(other.raw_os_error())),
    }
}

/// When the socket is closed, its peer is reset.
pub fn reset(socket: impl AsFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

/// Lets the daemon have as many descriptors as it may: each such connection is one of its own.
pub fn allow_many() {
    let most = getrlimit(Resource::Nofile).maximum;
    // With fewer, connections wait.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// The next connection of a listening socket, with its own and its peer's address.
///
/// # Errors
/// The kernel's; `AGAIN`: there is none.
pub fn accept(listener: impl AsFd) -> Result<(OwnedFd, Endpoint, Endpoint), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (socket, remote) = retry_on_intr(|| acceptfrom_with(&listener, flags))?;
    let end = |address: SocketAddrAny| {
        let address = SocketAddr::try_from(address).map_err(|_| Errno::CONNABORTED)?;
        // A socket of both families has IPv4 peers under mapped addresses.
        Ok(Endpoint::new(address.ip().to_canonical(), address.port()))
    };
    let local = end(getsockname(&socket)?)?;
    let remote = end(remote.ok_or(Errno::CONNABORTED)?)?;
    Ok((socket, local, remote))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    /// A connection of Linux's: silk's end, and the peer.
    fn pair() -> (LinuxSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let listener = OwnedFd::from(listener);
        let (socket, local, remote) = accept(&listener).unwrap();
        let expected = (peer.peer_addr().unwrap(), peer.local_addr().unwrap());
        assert_eq!((local.into(), remote.into()), expected);
        (LinuxSocket(Arc::new(socket)), peer)
    }

    #[test]
    fn both_pieces_leave_and_what_arrives_is_read_until_the_end() {
        let (mut socket, mut peer) = pair();
        assert_eq!(socket.read(&mut [0; 8]), Err(HostFault::NotNow));
        assert_eq!(socket.write([b"ab", b"cde"]), Ok(5));
        socket.finish();
        let mut got = String::new();
        peer.read_to_string(&mut got).unwrap();
        assert_eq!(got, "abcde");
        peer.write_all(b"xyz").unwrap();
        drop(peer);
        let mut bytes = [0; 8];
        let read = |socket: &mut LinuxSocket, into: &mut [u8]| loop {
            match socket.read(into) {
                Err(HostFault::NotNow) => {}
                other => return other,
            }
        };
        assert_eq!((read(&mut socket, &mut bytes), &bytes[..3]), (Ok(3), &b"xyz"[..]));
        assert_eq!(read(&mut socket, &mut bytes), Ok(0));
    }

    #[test]
    fn a_reset_is_heard_at_the_other_end_and_at_this_one() {
        let (mut socket, mut peer) = pair();
        socket.reset();
        drop(socket);
        let error = peer.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        let (mut socket, peer) = pair();
        reset(&peer);
        drop(peer);
        let mut heard = socket.read(&mut [0; 8]);
        while heard == Err(HostFault::NotNow) {
            heard = socket.read(&mut [0; 8]);
        }
        assert_eq!(heard, Err(HostFault::Over(Event::Reset)));
        assert_eq!(socket.write([b"x", b""]), Err(HostFault::Over(Event::Reset)));
    }

    #[test]
    fn options_reach_the_socket() {
        let (mut socket, _peer) = pair();
        socket.set(Bell::NoDelay(true));
        socket.set(Bell::KeepAlive(Some((10, 5, 3))));
        socket.set(Bell::Service(0x48));
        let wishes =
            Wishes { congestion: Some(1), user_timeout: Some(7_000), ttl: Some(9), ..Wishes::default() };
        socket.set(Bell::Wishes(wishes));
        let fd = &socket.0;
        assert_eq!(sockopt::tcp_nodelay(fd), Ok(true));
        assert_eq!(sockopt::socket_keepalive(fd), Ok(true));
        assert_eq!(sockopt::tcp_keepcnt(fd), Ok(3));
        assert_eq!(sockopt::ip_tos(fd), Ok(0x48));
        assert_eq!((sockopt::tcp_user_timeout(fd), sockopt::ip_ttl(fd)), (Ok(7_000), Ok(9)));
    }

    #[test]
    fn datagrams_leave_in_one_piece_and_are_heard_with_their_senders_of_either_ip() {
        for (ours, theirs) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0"), ("[::]:0", "[::1]:0")]
        {
            let socket = UdpSocket::bind(ours).unwrap();
            let port = socket.local_addr().unwrap().port();
            let reserved = Arc::new(Reserved::new(socket.into()));
            let mut datagrams = LinuxDatagrams::new(&reserved);
            let peer = UdpSocket::bind(theirs).unwrap();
            let from = Endpoint::from(peer.local_addr().unwrap());
            peer.send_to(b"question", (peer.local_addr().unwrap().ip(), port)).unwrap();
            let mut bytes = [0; 16];
            assert_eq!(receive(&*reserved, &mut bytes), Ok((8, from)), "{ours} {theirs}");
            assert_eq!(receive(&*reserved, &mut bytes), Err(Errno::AGAIN));
            assert!(datagrams.send(from, [b"an ", b"ans", b"wer"]));
            let (length, _) = peer.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"an answer");
            assert!(!datagrams.send(from, [&[0; 40_000], &[0; 40_000], b""]), "longer than any");
            datagrams.set(Bell::Service(0x48));
            assert_eq!(sockopt::ip_tos(&reserved), Ok(0x48));
            // Whoever takes the port next has it at once.
            drop(reserved);
            assert!(UdpSocket::bind(SocketAddr::new(ours.parse::<SocketAddr>().unwrap().ip(), port)).is_ok());
            assert!(!datagrams.send(from, [b"late", b"", b""]));
        }
    }
}
