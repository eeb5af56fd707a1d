//! What programs send beside their messages must be what it is said to be: of anything else the daemon would wait for what never
//! comes.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, readlink};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, bind, getpeername, getsockname, sockopt,
};
use std::os::fd::{AsRawFd, OwnedFd};

/// Whether this is an end of a lifeline, which says when the other end has hung up. A process whose lifeline is something else
/// would be held to live for ever; so would one of whose lifeline the daemon had both ends. So the end gets a name: whoever
/// shows the other is known by its peer's.
pub fn is_lifeline(fd: &OwnedFd) -> bool {
    // Of an address without a name there is its family. (What a program has chosen as a name is not looked at.)
    let is_nameless = |address: SocketAddrAny| address.addr_len() as usize == size_of::<libc::sa_family_t>();
    sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET)
        && getpeername(fd).is_ok_and(|peer| peer.is_some_and(is_nameless))
        && getsockname(fd).is_ok_and(is_nameless)
        // The kernel chooses one that nobody has (unix(7), autobind).
        && bind(fd, &SocketAddrUnix::new_unnamed()).is_ok()
}

/// Whether this is an eventfd, which does not let who writes it wait from now on: an executor does.
pub fn is_eventfd(fd: &OwnedFd) -> bool {
    let name = readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new());
    let lets_nobody_wait = || fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK);
    name.is_ok_and(|name| name.as_bytes() == b"anon_inode:[eventfd]") && lets_nobody_wait().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::Errno;
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

    #[test]
    fn nobody_gives_both_ends_of_a_lifeline_nor_one_twice() {
        for first in 0..2 {
            let (ours, theirs) = Lifeline::pair().unwrap();
            let mut ends = [ours, theirs].map(Lifeline::into_descriptor);
            ends.rotate_left(first);
            let [one, other] = ends;
            let again = one.try_clone().unwrap();
            assert!(is_lifeline(&one));
            assert!(!is_lifeline(&other) && !is_lifeline(&again));
        }
        // The daemon has accepted the other end of that.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listening = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listening, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&listening, 1).unwrap();
        let theirs = Lifeline::connect(&path).unwrap();
        let ours = rustix::net::accept(&listening).unwrap();
        assert!(!is_lifeline(&theirs.into_descriptor()) && !is_lifeline(&ours));
    }

    #[test]
    fn an_event_set_that_is_full_lets_nobody_wait() {
        let event = eventfd(1, EventfdFlags::empty()).unwrap();
        assert!(is_eventfd(&event));
        let most = u64::MAX - 1;
        assert_eq!(rustix::io::write(&event, &(most - 1).to_ne_bytes()), Ok(8));
        assert_eq!(rustix::io::write(&event, &1u64.to_ne_bytes()), Err(Errno::AGAIN));
        assert!(!is_eventfd(&UnixStream::pair().unwrap().0.into()));
        assert!(!is_eventfd(&std::fs::File::open("/dev/null").unwrap().into()));
    }
}
