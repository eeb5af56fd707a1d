//! Many packets in one `recvmmsg`, each with its virtio-net header.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// Room for the results of one `recvmmsg`. `HEADER` bytes before each packet are kept apart
/// from it.
pub(crate) struct ReceiveBatch<const HEADER: usize> {
    headers: Vec<[u8; HEADER]>,
    vectors: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
}

/// One packet of a batch.
pub(crate) struct Arrival<'b, const HEADER: usize> {
    /// The bytes before the packet.
    pub header: &'b [u8; HEADER],
    /// Bytes of the packet; `None` when it did not fit or was shorter than its header.
    pub len: Option<usize>,
}

// SAFETY: the raw pointers in `vectors` and `messages` are made and used within one call of
// `receive`; what stays between calls is read only for lengths and flags.
unsafe impl<const HEADER: usize> Send for ReceiveBatch<HEADER> {}

impl<const HEADER: usize> ReceiveBatch<HEADER> {
    /// Room for `packets` packets at once.
    pub fn new(packets: usize) -> Self {
        Self {
            headers: vec![[0; HEADER]; packets],
            vectors: Vec::with_capacity(packets),
            messages: Vec::with_capacity(packets),
        }
    }

    /// How many packets fit at once.
    pub fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives one packet into each of `buffers` after its first `skip` bytes, as many as
    /// are there and fit the batch, without waiting.
    pub fn receive<'b>(
        &mut self,
        fd: BorrowedFd<'_>,
        buffers: impl Iterator<Item = &'b mut [u8]>,
        skip: usize,
    ) -> io::Result<usize> {
        self.vectors.clear();
        self.messages.clear();
        for (buffer, header) in buffers.zip(&mut self.headers) {
            let room = &mut buffer[skip..];
            self.vectors.push([
                libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: HEADER },
                libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() },
            ]);
        }
        for vectors in &mut self.vectors {
            // SAFETY: all-zero is a valid mmsghdr: no address, no vectors, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
            message.msg_hdr.msg_iovlen = vectors.len();
            self.messages.push(message);
        }
        let count = self.messages.len() as libc::c_uint;
        // SAFETY: `messages` are `count` headers, each naming two vectors of this batch that
        // name a header of this batch and a buffer borrowed for `'b`, which outlives the call;
        // no two of the buffers overlap, being distinct `&mut`.
        let received = check(unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        })?;
        Ok(received as usize)
    }

    /// What the packet at `at` of the last batch was.
    pub fn arrival(&self, at: usize) -> Arrival<'_, HEADER> {
        let message = &self.messages[at];
        let whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        let len = (message.msg_len as usize).checked_sub(HEADER);
        Arrival { header: &self.headers[at], len: len.filter(|_| whole) }
    }
}
