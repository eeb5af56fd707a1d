//! Many small packets in one `sendmmsg`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Packets that were copied in and wait to leave together.
pub(crate) struct SendBatch {
    bytes: Vec<u8>,
    /// Where each packet ends in `bytes`.
    ends: Vec<usize>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `vectors` and `messages` are made and used within one call of
// `send`, which clears both; between calls there are none.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Room for `packets` packets of about `typical` bytes; it grows for larger ones.
    pub fn new(packets: usize, typical: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(packets * typical),
            ends: Vec::with_capacity(packets),
            vectors: Vec::with_capacity(packets),
            messages: Vec::with_capacity(packets),
        }
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Copies a packet in.
    pub fn push(&mut self, parts: [&[u8]; 4]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    /// Sends everything without waiting and tells `each` what became of every packet and how
    /// long it was, in order. After the first `EAGAIN` the rest is not tried: the socket's
    /// buffer is full.
    pub fn send(&mut self, fd: BorrowedFd<'_>, mut each: impl FnMut(usize, Result<(), &io::Error>)) {
        self.point();
        let mut next = 0;
        while next < self.messages.len() {
            match send_some(fd, &mut self.messages[next..]) {
                Ok(sent) => {
                    (next..next + sent).for_each(|at| each(self.packet_len(at), Ok(())));
                    next += sent;
                }
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                    (next..self.ends.len()).for_each(|at| each(self.packet_len(at), Err(&error)));
                    break;
                }
                Err(error) => {
                    each(self.packet_len(next), Err(&error));
                    next += 1;
                }
            }
        }
        self.vectors.clear();
        self.messages.clear();
        self.bytes.clear();
        self.ends.clear();
    }

    fn packet_len(&self, at: usize) -> usize {
        self.ends[at] - if at == 0 { 0 } else { self.ends[at - 1] }
    }

    /// Makes the vectors and messages that name the packets.
    fn point(&mut self) {
        let base = self.bytes.as_mut_ptr();
        let mut start = 0;
        for &end in &self.ends {
            let iov_base = base.wrapping_add(start).cast();
            self.vectors.push(libc::iovec { iov_base, iov_len: end - start });
            start = end;
        }
        for vector in &mut self.vectors {
            // SAFETY: all-zero is a valid mmsghdr: no address, no vectors, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            self.messages.push(message);
        }
    }
}

fn send_some(fd: BorrowedFd<'_>, messages: &mut [libc::mmsghdr]) -> io::Result<usize> {
    let count = messages.len() as libc::c_uint;
    // SAFETY: `messages` are `count` headers made by `SendBatch::point`, each naming one vector
    // of the batch that names bytes of the batch; none moved since, for nothing was pushed.
    let sent =
        check(unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) })?;
    Ok(sent as usize)
}
