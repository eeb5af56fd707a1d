//! What programs send beside their messages must be what it is said to be: of anything else the daemon would wait for what never
//! comes.

use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};
use std::os::fd::OwnedFd;

/// Whether this is an end of a lifeline, which says when the other end has hung up. A process whose lifeline is something else
/// would be held to live for ever.
pub fn is_lifeline(fd: &OwnedFd) -> bool {
    let connected = || getpeername(fd).is_ok_and(|peer| peer.is_some());
    sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET)
        && connected()
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_control::Lifeline;
    use std::net::UdpSocket;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn only_what_tells_of_a_hang_up_is_a_lifeline() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        assert!(is_lifeline(&ours.into_descriptor()));
        drop(theirs);
        let listening = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        assert!(!is_lifeline(&listening), "nobody is connected");
        let others: [OwnedFd; 4] = [
            std::fs::File::open("/dev/null").unwrap().into(),
            UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            UnixDatagram::pair().unwrap().0.into(),
            UnixStream::pair().unwrap().0.into(),
        ];
        assert!(others.iter().all(|other| !is_lifeline(other)));
    }
}
