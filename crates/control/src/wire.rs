//! Messages over a sequenced-packet Unix socket, with descriptors beside them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    recvmsg, sendmsg, shutdown, socket_with, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

/// The longest message, bytes.
pub const MESSAGE: usize = 64 << 10;
/// The most descriptors beside one message: as many as the kernel takes (`SCM_MAX_FD`), so that it closes none itself.
pub const DESCRIPTORS: usize = 253;

/// Why a message could not be sent or received.
#[derive(Debug)]
pub enum WireError {
    /// The other side hung up.
    HungUp,
    /// Nothing is there now (a socket that does not block).
    WouldBlock,
    /// The other side sent something that is no message, with these descriptors beside it: its fault.
    Malformed(Vec<OwnedFd>),
    /// The kernel's answer.
    Io(io::Error),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HungUp => f.write_str("the other side has hung up"),
            Self::WouldBlock => f.write_str("nothing there yet"),
            Self::Malformed(_) => f.write_str(
                "the other side sent something that is no message (are all of silk's programs of one release, and the \
                 daemon started since?)",
            ),
            Self::Io(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for WireError {}

impl From<Errno> for WireError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::WouldBlock,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::HungUp,
            other => Self::Io(other.into()),
        }
    }
}

/// A message as it arrived.
#[derive(Debug)]
pub struct Received<M> {
    /// The message.
    pub message: M,
    /// The descriptors beside it.
    pub descriptors: Vec<OwnedFd>,
    /// The sender's process id as the kernel vouches for it, where the receiver asked for it.
    pub pid: Option<u32>,
    /// Its real user (credentials(7)), in the same way.
    pub user: Option<u32>,
}

/// One end of a conversation.
#[derive(Debug)]
pub struct Lifeline(OwnedFd);

impl Lifeline {
    /// Connects to the daemon.
    ///
    /// # Errors
    /// The kernel's: no such file (no daemon), connection refused (a dead one), permission.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Self(fd))
    }

    /// From now on what is to come is waited for so long at most.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait_for_at_most(&self, time: Duration) -> io::Result<()> {
        Ok(sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(time))?)
    }

    /// Two connected ends, for a child that is about to be forked.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// Takes over a connected socket, such as one from `accept` or from before an exec.
    pub fn from_descriptor(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Gives the socket up.
    pub fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    /// Asks the kernel to vouch for every sender's process id (the daemon's end).
    ///
    /// # Errors
    /// The kernel's.
    pub fn vouch(&self) -> io::Result<()> {
        Ok(sockopt::set_socket_passcred(&self.0, true)?)
    }

    /// Sends one message with descriptors beside it, waiting until there is room for it unless the socket does not block.
    ///
    /// # Errors
    /// [`WireError::HungUp`] when nobody listens any more, or the kernel's.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<(), WireError> {
        self.send_with(message, descriptors, SendFlags::empty())
    }

    /// Sends one message if there is room for it.
    ///
    /// # Errors
    /// [`WireError::WouldBlock`] when there is none; otherwise as [`Lifeline::send`].
    pub fn try_send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), WireError> {
        self.send_with(message, descriptors, SendFlags::DONTWAIT)
    }

    /// As [`Lifeline::send`], without descriptors and by `write(2)`: of all that sends, a filter of system calls in the
    /// program (sshd's, say) is the likeliest to let that pass. The thread gets no `SIGPIPE` where nobody listens any more: of
    /// Unix sockets only streams raise one (`unix_stream_sendmsg`).
    ///
    /// # Errors
    /// As [`Lifeline::send`].
    pub fn send_by_write(&self, message: &impl Serialize) -> Result<(), WireError> {
        let bytes = postcard::to_stdvec(message).map_err(|_| WireError::Malformed(Vec::new()))?;
        loop {
            match write(&self.0, &bytes) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    fn send_with(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), WireError> {
        let bytes = postcard::to_stdvec(message).map_err(|_| WireError::Malformed(Vec::new()))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(WireError::Malformed(Vec::new()));
        }
        loop {
            match sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut ancillary, flags | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Receives one message, waiting for it unless the socket does not block.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn receive<M: DeserializeOwned>(&self) -> Result<Received<M>, WireError> {
        self.receive_with(RecvFlags::empty())
    }

    /// Receives one message if there is one.
    ///
    /// # Errors
    /// [`WireError::WouldBlock`] when there is none; otherwise as [`Lifeline::receive`].
    pub fn try_receive<M: DeserializeOwned>(&self) -> Result<Received<M>, WireError> {
        self.receive_with(RecvFlags::DONTWAIT)
    }

    fn receive_with<M: DeserializeOwned>(&self, flags: RecvFlags) -> Result<Received<M>, WireError> {
        // Messages are short, and the longest is long to clear.
        let mut bytes = vec![0; self.length_of_next(flags)?.min(MESSAGE)];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS), ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let length = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(got) => break got.bytes,
            }
        };
        let (mut descriptors, mut pid, mut user) = (Vec::new(), None, None);
        for part in ancillary.drain() {
            match part {
                RecvAncillaryMessage::ScmRights(fds) => descriptors.extend(fds),
                RecvAncillaryMessage::ScmCredentials(cred) => {
                    pid = u32::try_from(cred.pid.as_raw_nonzero().get()).ok();
                    user = Some(cred.uid.as_raw());
                }
                _ => {}
            }
        }
        if length == 0 && descriptors.is_empty() {
            return Err(WireError::HungUp);
        }
        match postcard::from_bytes(&bytes[..length]) {
            Ok(message) => Ok(Received { message, descriptors, pid, user }),
            Err(_) => Err(WireError::Malformed(descriptors)),
        }
    }

    /// Whether descriptors come with the next message, which stays there; they may where it cannot be looked at. To be asked of a line
    /// whose sender is [vouched](Self::vouch) for.
    pub fn brings_descriptors(&self) -> bool {
        // There is room for what the kernel says of the sender alone.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(&self.0, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, flags) {
            Ok(next) => next.flags.contains(ReturnFlags::CTRUNC),
            Err(errno) => errno == Errno::AGAIN && self.has_something(),
        }
    }

    /// Whether there is a message, be it that a look finds none: whoever has given this end away, and kept a descriptor of it, may have
    /// said that looks begin behind what is there (`SO_PEEK_OFF`). Who waits for messages would be told of that one again and again.
    fn has_something(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// How long the next message is, which stays there; 1 where there will be none, and the most where it cannot be looked at.
    fn length_of_next(&self, flags: RecvFlags) -> Result<usize, WireError> {
        loop {
            match recv(&self.0, &mut [0; 1], flags | RecvFlags::PEEK | RecvFlags::TRUNC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if flags.contains(RecvFlags::DONTWAIT) && self.has_something() => {
                    return Ok(MESSAGE);
                }
                Err(errno) => return Err(errno.into()),
                Ok((_, length)) => return Ok(length.max(1)),
            }
        }
    }

    /// Hangs up both ways, as whoever else has this socket sees too: nothing is sent or received any more.
    pub fn end(&self) {
        // One that is not connected has ended already.
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// As [`Lifeline::send`] and [`Lifeline::receive`].
    pub fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        request: &Q,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Received<A>, WireError> {
        self.send(request, descriptors)?;
        self.receive()
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Refusal, Reply, Request};
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn a_request_arrives_with_its_descriptor_and_its_senders_pid() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        ours.vouch().unwrap();
        theirs.send(&Request::Bell, &[theirs.as_fd()]).unwrap();
        let got: Received<Request> = ours.receive().unwrap();
        assert_eq!(got.message, Request::Bell);
        assert_eq!(got.descriptors.len(), 1);
        assert_eq!(got.pid, Some(std::process::id()));
        assert_eq!(got.user, Some(rustix::process::getuid().as_raw()));
    }

    #[test]
    fn all_that_comes_beside_something_is_the_receivers_whatever_that_is() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        theirs.send(&Request::Bell, &[theirs.as_fd(); DESCRIPTORS]).unwrap();
        assert_eq!(ours.receive::<Request>().unwrap().descriptors.len(), DESCRIPTORS);
        theirs.send(&[0xffu8; 9], &[theirs.as_fd()]).unwrap();
        theirs.send(&(), &[theirs.as_fd()]).unwrap();
        for _ in 0..2 {
            let got = ours.receive::<Request>().map(|got| got.message);
            assert!(matches!(&got, Err(WireError::Malformed(beside)) if beside.len() == 1), "{got:?}");
        }
        assert!(theirs.send(&Request::Bell, &[theirs.as_fd(); DESCRIPTORS + 1]).is_err());
    }

    #[test]
    fn what_does_not_come_is_waited_for_no_longer_than_was_said() {
        let (ours, _theirs) = Lifeline::pair().unwrap();
        ours.wait_for_at_most(Duration::from_millis(5)).unwrap();
        assert!(matches!(ours.receive::<Reply>(), Err(WireError::WouldBlock)));
    }

    #[test]
    fn what_comes_beside_the_next_message_is_seen_before_it_is_taken() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        ours.vouch().unwrap();
        assert!(!ours.brings_descriptors());
        for count in [0, 1, DESCRIPTORS] {
            theirs.send(&Request::Bell, &vec![theirs.as_fd(); count]).unwrap();
            assert_eq!(ours.brings_descriptors(), count > 0, "{count}");
            assert_eq!(ours.receive::<Request>().unwrap().descriptors.len(), count);
        }
    }

    #[test]
    fn a_message_that_a_look_does_not_find_is_received_all_the_same() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        ours.vouch().unwrap();
        // Who has given our end away has kept a descriptor of it, and sets `SO_PEEK_OFF`.
        let sets = "import socket; socket.socket(fileno=0).setsockopt(socket.SOL_SOCKET, 42, 1 << 20)";
        let kept = ours.as_fd().try_clone_to_owned().unwrap();
        assert!(Command::new("python3").args(["-c", sets]).stdin(kept).status().unwrap().success());
        assert!(!ours.brings_descriptors());
        assert!(matches!(ours.try_receive::<Request>(), Err(WireError::WouldBlock)), "there is none");
        theirs.send(&Request::Bell, &[theirs.as_fd()]).unwrap();
        assert!(ours.brings_descriptors());
        let got: Received<Request> = ours.try_receive().unwrap();
        assert_eq!((got.message, got.descriptors.len()), (Request::Bell, 1));
        drop((theirs, got.descriptors));
        assert!(matches!(ours.try_receive::<Request>(), Err(WireError::HungUp)));
    }

    #[test]
    fn a_reply_without_a_request_is_a_hang_up_not_a_wait() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        assert!(matches!(ours.try_receive::<Reply>(), Err(WireError::WouldBlock)));
        drop(theirs);
        assert!(matches!(ours.receive::<Reply>(), Err(WireError::HungUp)));
        assert!(matches!(ours.send(&Request::Found, &[]), Err(WireError::HungUp)));
    }

    #[test]
    fn who_does_not_listen_is_told_no_more_than_there_is_room_for() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        let told = (0..1_000_000).take_while(|_| ours.try_send(&Reply::Done, &[]).is_ok()).count();
        assert!(told > 0 && matches!(ours.try_send(&Reply::Done, &[]), Err(WireError::WouldBlock)));
        (0..told).for_each(|_| assert_eq!(theirs.receive::<Reply>().unwrap().message, Reply::Done));
        ours.try_send(&Reply::Renewed, &[]).unwrap();
        ours.end();
        assert_eq!(theirs.receive::<Reply>().unwrap().message, Reply::Renewed);
        assert!(matches!(theirs.receive::<Reply>(), Err(WireError::HungUp)));
    }

    #[test]
    fn a_refusal_says_errno_and_reason() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        let refusal = Reply::Refused(Refusal { errno: 98, why: "port 80 is taken by Linux".into() });
        ours.send(&refusal, &[]).unwrap();
        assert_eq!(theirs.receive::<Reply>().unwrap().message, refusal);
    }

    proptest! {
        /// Whatever a stranger sends is a message or is refused; nothing panics.
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
            let (ours, theirs) = Lifeline::pair().unwrap();
            rustix::net::send(theirs.as_fd(), &bytes, SendFlags::empty()).unwrap();
            match ours.receive::<Request>() {
                Ok(got) => prop_assert!(postcard::to_stdvec(&got.message).is_ok()),
                Err(e) => prop_assert!(matches!(e, WireError::Malformed(_))),
            }
        }
    }
}
