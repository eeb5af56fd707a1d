//! A connection over Linux's own TCP, and a datagram socket of Linux's, as HOST's stages use them:
//! system calls on a socket that never waits, and what their errors mean for a path.

use crate::between::reserved::Reserved;
use crate::sys;
use nix::errno::Errno as NixErrno;
use nix::sys::socket::{self, ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage};
use rustix::io::{Errno, IoSlice, read, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    acceptfrom_with, getsockname, recv, sendmsg, shutdown, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use silk_modules::host::{HostDatagrams, HostFault, HostSocket};
use silk_path::{Bell, Cork, Endpoint, Event, Wishes};
use silk_tcp::Algorithm;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The state, as `TCP_INFO` tells it, of a connection that is over; in TIME-WAIT it is, too (`TCP_CLOSE`).
const CLOSED: u8 = 7;

/// The socket. Whoever watches it may hold it too, for as long as it takes to begin.
pub struct LinuxSocket(pub Arc<OwnedFd>);

impl HostSocket for LinuxSocket {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, HostFault> {
        retry_on_intr(|| read(&self.0, &mut *into)).map_err(fault)
    }

    fn is_at_urgent(&mut self) -> Result<bool, HostFault> {
        let there = retry_on_intr(|| recv(&self.0, &mut [0; 1][..], RecvFlags::PEEK)).map_err(fault);
        // What comes between the two looks is told as urgent, or left for later.
        match there {
            Ok(_) | Err(HostFault::NotNow) if sys::is_at_mark(self.0.as_fd()) => Ok(true),
            there => there.map(|_| false),
        }
    }

    fn write(&mut self, from: [&[u8]; 2], urgent: bool) -> Result<usize, HostFault> {
        let parts = from.map(IoSlice::new);
        let flags = SendFlags::NOSIGNAL | if urgent { SendFlags::OOB } else { SendFlags::empty() };
        let send = || sendmsg(&self.0, &parts, &mut SendAncillaryBuffer::default(), flags);
        retry_on_intr(send).map_err(fault)
    }

    fn fault(&mut self) -> Option<Event> {
        let errno = sockopt::socket_error(&self.0).ok()?.err()?;
        match fault(errno) {
            HostFault::Over(event) => Some(event),
            HostFault::NotNow => None,
        }
    }

    fn is_over(&self) -> bool {
        let mut state = [0];
        self.info(&mut state);
        state == [CLOSED]
    }

    fn info(&self, into: &mut [u8]) {
        sys::tcp_info(self.0.as_fd(), into);
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
            Bell::Cork(cork) => sockopt::set_tcp_cork(socket, cork != Cork::Out),
            Bell::KeepAlive(keep) => set_keepalive(socket, keep),
            Bell::Wishes(wishes) => set_wishes(socket, &wishes),
            // The peer is of one IP, and what is for the other Linux keeps for nothing.
            Bell::Service(bits) => {
                sockopt::set_ip_tos(socket, bits).and(sockopt::set_ipv6_tclass(socket, bits.into()))
            }
            _ => Ok(()),
        };
    }
}

/// A socket that holds a datagram port, as long as the port is the program's.
pub struct LinuxDatagrams {
    socket: Weak<Reserved>,
    /// It is IPv6's, so that IPv4's addresses have to be mapped.
    six: bool,
    /// What its program wishes, for others may send by the same socket.
    service: u8,
    wishes: Wishes,
    /// The interface that leads to groups, and to everyone, where no route does.
    link: u32,
    /// As [`Reserved::sender`].
    number: u64,
}

impl LinuxDatagrams {
    /// To send by this socket; by the interface of this number to groups and to everyone, where no route leads there.
    pub fn new(socket: &Arc<Reserved>, link: u32) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let six = sockopt::socket_domain(socket) == Ok(AddressFamily::INET6);
        let number = NUMBER.fetch_add(1, Relaxed);
        Self { socket: Arc::downgrade(socket), six, service: 0, wishes: Wishes::default(), link, number }
    }

    /// Has Linux send from now on as the program wishes. What Linux refuses the program would not have got from it either.
    fn apply(&self, socket: &Reserved) {
        let (wishes, six) = (&self.wishes, self.six);
        let _ = sockopt::set_ip_tos(socket, self.service);
        let _ = sockopt::set_ip_ttl(socket, wishes.ttl.map_or(USUAL, u32::from));
        let _ = sockopt::set_ip_multicast_ttl(socket, wishes.group_ttl.map_or(1, u32::from));
        let _ = sockopt::set_ip_multicast_loop(socket, !wishes.no_loop);
        let link = wishes.group_link.map_or(0, u32::from);
        let any = Ipv4Addr::UNSPECIFIED;
        let _ = sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, link);
        if six {
            let _ = sockopt::set_ipv6_tclass(socket, self.service.into());
            let _ = sockopt::set_ipv6_unicast_hops(socket, wishes.hops.or(wishes.ttl));
            let _ = sockopt::set_ipv6_multicast_hops(socket, wishes.group_hops.map_or(1, u32::from));
            let _ = sockopt::set_ipv6_multicast_loop(socket, !wishes.no_loop6);
            let _ = sockopt::set_ipv6_multicast_if(socket, link);
        }
    }
}

/// The time to live that Linux gives by itself.
const USUAL: u32 = u32::MAX;

impl HostDatagrams for LinuxDatagrams {
    fn send(&mut self, from: IpAddr, to: Endpoint, pieces: [&[u8]; 3]) -> bool {
        let own = |address| match address {
            IpAddr::V4(address) if self.six => address.to_ipv6_mapped().into(),
            address => address,
        };
        let Some(socket) = self.socket.upgrade() else { return false };
        if socket.sender.load(Relaxed) != self.number {
            self.apply(&socket);
            socket.sender.store(self.number, Relaxed);
        }
        let to_many = match to.ip() {
            IpAddr::V4(four) => four.is_multicast() || four.is_broadcast(),
            IpAddr::V6(six) => six.is_multicast(),
        };
        let to = SockaddrStorage::from(SocketAddr::new(own(to.ip()), to.port()));
        let pieces = pieces.map(IoSlice::new);
        let (fd, flags) = (socket.as_fd().as_raw_fd(), MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT);
        let send = |link: u32| {
            let (v4, v6) = packet_info(own(from), link);
            let control = match from {
                from if from.is_unspecified() && link == 0 => None,
                _ if self.six => Some(ControlMessage::Ipv6PacketInfo(&v6)),
                _ => Some(ControlMessage::Ipv4PacketInfo(&v4)),
            };
            socket::sendmsg(fd, &pieces, control.as_slice(), flags, Some(&to))
        };
        match send(0) {
            Ok(_) => true,
            Err(NixErrno::EAGAIN | NixErrno::ENOBUFS) => false,
            Err(NixErrno::ENETUNREACH) if self.wishes.group_link.is_none() && to_many => {
                send(self.link).is_ok()
            }
            // A second time, since Linux may have told what became of one that was sent before.
            Err(_) => {
                socket.has_erred.store(true, Relaxed);
                send(0).is_ok()
            }
        }
    }

    fn set(&mut self, option: Bell) {
        match option {
            Bell::Service(bits) => self.service = bits,
            Bell::Wishes(wishes) => self.wishes = wishes,
            _ => return,
        }
        if let Some(socket) = self.socket.upgrade() {
            socket.sender.store(0, Relaxed);
        }
    }
}

/// An address to send from as Linux is told it, over the interface of this number, or any (0).
fn packet_info(from: IpAddr, link: u32) -> (libc::in_pktinfo, libc::in6_pktinfo) {
    let none = libc::in_addr { s_addr: 0 };
    let (mut v4, mut v6) = (none, libc::in6_addr { s6_addr: [0; 16] });
    match from {
        IpAddr::V4(from) => v4.s_addr = u32::from_ne_bytes(from.octets()),
        IpAddr::V6(from) => v6.s6_addr = from.octets(),
    }
    let v4 = libc::in_pktinfo { ipi_ifindex: link.cast_signed(), ipi_spec_dst: v4, ipi_addr: none };
    (v4, libc::in6_pktinfo { ipi6_addr: v6, ipi6_ifindex: link })
}

/// A datagram that a socket of Linux's has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its bytes.
    pub length: usize,
    /// Who sent it.
    pub remote: Endpoint,
    /// The address that it was sent to; unspecified: Linux has not told.
    pub to: IpAddr,
    /// Linux's number of the interface that it came over, where Linux has told.
    pub interface: Option<u32>,
    /// The hops it had left; 0: Linux has not told.
    pub hops: u8,
    /// Its service bits.
    pub service: u8,
}

/// Room for what Linux tells of each ([`receive`]), and of errors.
pub fn control() -> Vec<u8> {
    nix::cmsg_space!(
        libc::in6_pktinfo,
        libc::in_pktinfo,
        libc::c_int,
        libc::c_int,
        libc::c_int,
        libc::c_int,
        libc::sock_extended_err,
        libc::sockaddr_in6
    )
}

/// The next datagram that a socket has heard.
///
/// # Errors
/// The kernel's; `EAGAIN`: there is none.
pub fn receive(socket: impl AsFd, into: &mut [u8], control: &mut [u8]) -> Result<Heard, NixErrno> {
    let mut parts = [IoSliceMut::new(into)];
    let (fd, flags) = (socket.as_fd().as_raw_fd(), MsgFlags::MSG_DONTWAIT);
    let message = socket::recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), flags)?;
    let sender = message.address.as_ref().and_then(endpoint).ok_or(NixErrno::EAFNOSUPPORT)?;
    let mut heard = Heard {
        length: message.bytes,
        remote: sender,
        to: Ipv4Addr::UNSPECIFIED.into(),
        interface: None,
        hops: 0,
        service: 0,
    };
    for told in message.cmsgs().into_iter().flatten() {
        match told {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                heard.to = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into();
                heard.interface = u32::try_from(info.ipi_ifindex).ok();
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                heard.to = IpAddr::from(info.ipi6_addr.s6_addr).to_canonical();
                heard.interface = Some(info.ipi6_ifindex);
            }
            ControlMessageOwned::Ipv4Ttl(hops) | ControlMessageOwned::Ipv6HopLimit(hops) => {
                heard.hops = u8::try_from(hops).unwrap_or(0);
            }
            ControlMessageOwned::Ipv4Tos(bits) => heard.service = bits,
            ControlMessageOwned::Ipv6TClass(bits) => heard.service = u8::try_from(bits).unwrap_or(0),
            _ => {}
        }
    }
    Ok(heard)
}

/// An address as silk has it.
pub fn endpoint(address: &SockaddrStorage) -> Option<Endpoint> {
    let v4 = address.as_sockaddr_in().map(|v4| Endpoint::new(v4.ip(), v4.port()));
    v4.or_else(|| {
        let v6 = address.as_sockaddr_in6()?;
        Some(Endpoint::new(IpAddr::from(v6.ip()).to_canonical(), v6.port()))
    })
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
    if let Some(hops) = wishes.hops {
        // A socket of IPv4 has none.
        let _ = sockopt::set_ipv6_unicast_hops(socket, Some(hops));
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
    // A byte that is not in its place could be lost.
    sockopt::set_socket_oobinline(&socket, true)?;
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
        assert_eq!(socket.write([b"ab", b"cde"], false), Ok(5));
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
    fn urgent_octets_stay_in_their_places() {
        let (mut socket, peer) = pair();
        assert_eq!(socket.is_at_urgent(), Err(HostFault::NotNow));
        assert_eq!(sockopt::socket_oobinline(&socket.0), Ok(true));
        let send = |part: &[u8], flags| rustix::net::send(&peer, part, flags).unwrap();
        assert_eq!([send(b"ab", SendFlags::empty()), send(b"c!", SendFlags::OOB)], [2, 2]);
        send(b"def", SendFlags::empty());
        let (mut bytes, mut parts) = ([0; 16], vec![]);
        while parts.iter().map(|(_, part): &(bool, Vec<u8>)| part.len()).sum::<usize>() < 7 {
            let at = socket.is_at_urgent();
            let read = at.and_then(|at| socket.read(&mut bytes).map(|octets| (at, octets)));
            match read {
                Err(HostFault::NotNow) => {}
                read => parts.push(read.map(|(at, octets)| (at, bytes[..octets].to_vec())).unwrap()),
            }
        }
        let whole: Vec<u8> = parts.iter().flat_map(|(_, part)| part.clone()).collect();
        assert_eq!(whole, b"abc!def");
        let urgent: Vec<&[u8]> = parts.iter().filter(|(at, _)| *at).map(|(_, part)| &part[..1]).collect();
        assert_eq!(urgent, [b"!"], "{parts:?}");
        assert_eq!(socket.write([b"?", b""], true), Ok(1));
        let mut octet = [0];
        while recv(&peer, &mut octet, RecvFlags::OOB | RecvFlags::DONTWAIT).is_err() {}
        assert_eq!(octet, *b"?");
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
        assert_eq!(socket.fault(), None, "it was told");
        assert_eq!(socket.write([b"x", b""], false), Err(HostFault::Over(Event::Reset)));
    }

    #[test]
    fn a_reset_that_no_read_has_met_is_told_once() {
        let (mut socket, peer) = pair();
        assert_eq!(socket.fault(), None);
        reset(&peer);
        drop(peer);
        let mut told = socket.fault();
        while told.is_none() {
            told = socket.fault();
        }
        assert_eq!((told, socket.fault()), (Some(Event::Reset), None));
    }

    #[test]
    fn a_connection_is_over_when_both_have_ended_and_know_it() {
        for we_end_first in [false, true] {
            let (mut socket, mut peer) = pair();
            if we_end_first {
                socket.finish();
            }
            peer.shutdown(std::net::Shutdown::Write).unwrap();
            while socket.read(&mut [0; 1]) == Err(HostFault::NotNow) {}
            if !we_end_first {
                assert!(!socket.is_over());
                socket.finish();
            }
            assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
            while !socket.is_over() {}
            assert_eq!(socket.fault(), None);
        }
        let (socket, peer) = pair();
        reset(&peer);
        drop(peer);
        while !socket.is_over() {}
    }

    #[test]
    fn linux_tells_of_the_connection() {
        let (socket, peer) = pair();
        let mut bytes = [0; silk_stream::INFO_WORDS * 4];
        socket.info(&mut bytes);
        let info = silk_stream::TcpInfo::of(&bytes);
        assert_eq!((info.state, info.snd_mss > 500), (1, true), "{info:?}");
        drop(peer);
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
        let six = rustix::net::socket(AddressFamily::INET6, rustix::net::SocketType::STREAM, None).unwrap();
        let mut socket = LinuxSocket(Arc::new(six));
        socket.set(Bell::Service(0x48));
        socket.set(Bell::Wishes(Wishes { hops: Some(9), ..Wishes::default() }));
        let fd = &socket.0;
        assert_eq!((sockopt::ipv6_tclass(fd), sockopt::ipv6_unicast_hops(fd)), (Ok(0x48), Ok(9)));
    }

    #[test]
    fn datagrams_leave_in_one_piece_and_are_heard_with_where_they_come_from_of_either_ip() {
        let ends = [
            ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
            // From and to another address than Linux would choose.
            ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.9"),
            ("[::]:0", "127.0.0.1:0", "127.0.0.9"),
            ("[::]:0", "[::1]:0", "::1"),
        ];
        for (ours, theirs, own) in ends {
            let own: IpAddr = own.parse().unwrap();
            let socket = UdpSocket::bind(ours).unwrap();
            let port = socket.local_addr().unwrap().port();
            let six = ours.starts_with('[');
            sys::tell_of_datagrams(socket.as_fd(), six).unwrap();
            let reserved = Arc::new(Reserved::new(socket.into()));
            let mut datagrams = LinuxDatagrams::new(&reserved, 0);
            let peer = UdpSocket::bind(theirs).unwrap();
            let remote = Endpoint::from(peer.local_addr().unwrap());
            let set = if own.is_ipv4() {
                sockopt::set_ip_ttl(&peer, 7).and_then(|()| sockopt::set_ip_tos(&peer, 0x48))
            } else {
                sockopt::set_ipv6_unicast_hops(&peer, Some(7))
                    .and_then(|()| sockopt::set_ipv6_tclass(&peer, 0x48))
            };
            assert_eq!(set, Ok(()));
            peer.send_to(b"question", (own, port)).unwrap();
            let (mut bytes, mut control) = ([0; 16], control());
            let interface = Some(nix::net::if_::if_nametoindex("lo").unwrap());
            let heard = Heard { length: 8, remote, to: own, interface, hops: 7, service: 0x48 };
            assert_eq!(receive(&*reserved, &mut bytes, &mut control), Ok(heard), "{ours} {theirs}");
            assert_eq!(receive(&*reserved, &mut bytes, &mut control), Err(NixErrno::EAGAIN));
            assert!(datagrams.send(own, remote, [b"an ", b"ans", b"wer"]));
            let (length, from) = peer.recv_from(&mut bytes).unwrap();
            assert_eq!((&bytes[..length], from.ip()), (&b"an answer"[..], own));
            let any = Ipv4Addr::UNSPECIFIED.into();
            assert!(datagrams.send(any, remote, [b"x", b"", b""]));
            assert_eq!(peer.recv_from(&mut bytes).unwrap().0, 1);
            assert!(!datagrams.send(any, remote, [&[0; 40_000], &[0; 40_000], b""]), "longer than any");
            assert!(!datagrams.send("192.0.2.1".parse().unwrap(), remote, [b"x", b"", b""]), "not ours");
            // Of several that send by the socket each has its own way.
            datagrams.set(Bell::Service(0x48));
            let mut other = LinuxDatagrams::new(&reserved, 0);
            for (sender, service) in [(&mut datagrams, 0x48), (&mut other, 0)] {
                assert!(sender.send(own, remote, [b"x", b"", b""]));
                assert_eq!(sockopt::ip_tos(&reserved), Ok(service));
            }
            // Whoever takes the port next has it at once.
            drop(reserved);
            assert!(UdpSocket::bind(SocketAddr::new(ours.parse::<SocketAddr>().unwrap().ip(), port)).is_ok());
            assert!(!datagrams.send(any, remote, [b"late", b"", b""]));
        }
    }
}
