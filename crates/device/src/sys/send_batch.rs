//! Small packets that leave together, each by a `send` of its own. To hand them to the kernel in one call (`sendmmsg`)
//! costs more: it reads a header and a vector for each, which takes as long as a call (`docs/performance.md`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check_len;

/// Packets that were copied in and wait to leave together.
pub(crate) struct SendBatch {
    bytes: Vec<u8>,
    /// Where each packet ends in `bytes`.
    ends: Vec<usize>,
}

impl SendBatch {
    /// Room for `packets` packets of about `typical` bytes; it grows for larger ones.
    pub fn new(packets: usize, typical: usize) -> Self {
        Self { bytes: Vec::with_capacity(packets * typical), ends: Vec::with_capacity(packets) }
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
        let (mut start, mut full) = (0, None);
        for end in self.ends.drain(..) {
            let packet = &self.bytes[start..end];
            start = end;
            let sent = match full.take() {
                Some(error) => Err(error),
                None => send(fd, packet),
            };
            each(packet.len(), sent.as_ref().map(drop));
            full = sent.err().filter(|error| error.raw_os_error() == Some(libc::EAGAIN));
        }
        self.bytes.clear();
    }
}

fn send(fd: BorrowedFd<'_>, packet: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads as many bytes as the packet has.
    check_len(unsafe { libc::send(fd.as_raw_fd(), packet.as_ptr().cast(), packet.len(), libc::MSG_DONTWAIT) })
}
