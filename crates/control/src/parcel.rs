//! What stands for a socket of silk's that is passed to another process (`SCM_RIGHTS`, unix(7)).

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketType, recv, recvmsg, sockopt,
};
use serde::{Deserialize, Serialize};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The longest parcel, bytes.
const LONGEST: usize = 1 << 10;

/// What a process finds in the place of a socket that it was passed: the first message at that end of a
/// lifeline, from whoever passed it. Nothing in it is to be believed but by the daemon's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    mark: [u8; 8],
    /// What lets a process of its family take it.
    pub ticket: u64,
    /// What the library knows of it, in its own words.
    pub record: Vec<u32>,
}

impl Parcel {
    const MARK: [u8; 8] = *b"silk-1\r\n";

    /// One for the socket of this ticket.
    pub fn new(ticket: u64, record: Vec<u32>) -> Self {
        Self { mark: Self::MARK, ticket, record }
    }

    /// Whether it is one, and not something else that could be read as such.
    pub fn is_marked(&self) -> bool {
        self.mark == Self::MARK
    }
}

/// What a process was passed in a socket's place: `None` if `fd` is anything else. It is left there.
pub fn parcel(fd: BorrowedFd<'_>) -> Option<Parcel> {
    if sockopt::socket_type(fd).ok()? != SocketType::SEQPACKET
        || sockopt::socket_domain(fd).ok()? != AddressFamily::UNIX
    {
        return None;
    }
    let mut bytes = [0; LONGEST];
    let (_, length) =
        recv(fd, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::TRUNC).ok()?;
    postcard::from_bytes(bytes.get(..length)?).ok().filter(Parcel::is_marked)
}

/// What the kernel has of the socket, which lies beside a parcel that was found at `fd`: `None` if nothing does, or there is no
/// number for it. The parcel is gone then.
pub fn beside_parcel(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(fd, &mut [IoSliceMut::new(&mut [0; 1])], &mut ancillary, flags).ok()?;
    ancillary.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifeline;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_parcel_is_found_where_one_is_and_nowhere_else() {
        let (ours, theirs) = Lifeline::pair().unwrap();
        assert_eq!(parcel(ours.as_fd()), None, "nothing there");
        let sent = Parcel::new(7, vec![u32::MAX; 100]);
        theirs.send(&sent, &[]).unwrap();
        for _ in 0..2 {
            assert_eq!(parcel(ours.as_fd()).as_ref(), Some(&sent), "it is left there");
        }
        let (ours, theirs) = Lifeline::pair().unwrap();
        theirs.send(&Parcel { mark: [0; 8], ..sent.clone() }, &[]).unwrap();
        assert_eq!(parcel(ours.as_fd()), None);
        let (ours, theirs) = Lifeline::pair().unwrap();
        theirs.send(&Parcel::new(7, vec![u32::MAX; 1000]), &[]).unwrap();
        assert_eq!(parcel(ours.as_fd()), None, "too long to be one");
        let file = File::open("/proc/self/status").unwrap();
        assert_eq!(parcel(file.as_fd()), None);
        let (stream, other) = UnixStream::pair().unwrap();
        (&other).write_all(&postcard::to_stdvec(&sent).unwrap()).unwrap();
        assert_eq!(parcel(stream.as_fd()), None, "of another type");
    }

    #[test]
    fn what_lies_beside_a_parcel_is_the_same_file_and_there_once() {
        let file = File::open("/proc/self/status").unwrap();
        let (ours, theirs) = Lifeline::pair().unwrap();
        theirs.send(&Parcel::new(7, vec![1; 20]), &[file.as_fd()]).unwrap();
        assert!(parcel(ours.as_fd()).is_some());
        let got = beside_parcel(ours.as_fd()).unwrap();
        assert_eq!(File::from(got).metadata().unwrap().ino(), file.metadata().unwrap().ino());
        assert!(beside_parcel(ours.as_fd()).is_none() && parcel(ours.as_fd()).is_none());
        theirs.send(&Parcel::new(7, vec![1; 20]), &[]).unwrap();
        assert!(beside_parcel(ours.as_fd()).is_none());
    }
}
