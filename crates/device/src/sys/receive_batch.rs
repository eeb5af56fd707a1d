//! Many packets in one `recvmmsg`, each with its virtio-net header, and with its mark where the socket is to tell
//! (`SO_RCVMARK`).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;
use super::socket::set_option;

/// Bytes of the control message with a packet's mark: its length, level and kind, the mark, and what fills it up.
const CONTROL: usize = 24;

/// From now on the socket tells each packet's mark (Linux 5.19).
pub(crate) fn tell_marks(fd: BorrowedFd<'_>) -> io::Result<()> {
    const SO_RCVMARK: i32 = 75;
    set_option(fd, libc::SOL_SOCKET, SO_RCVMARK, &1i32)
}

/// Room for the results of one `recvmmsg`. `HEADER` bytes before each packet are kept apart
/// from it.
pub(crate) struct ReceiveBatch<const HEADER: usize> {
    headers: Vec<[u8; HEADER]>,
    controls: Vec<[u8; CONTROL]>,
    vectors: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
}

/// One packet of a batch.
pub(crate) struct Arrival<'b, const HEADER: usize> {
    /// The bytes before the packet.
    pub header: &'b [u8; HEADER],
    /// Bytes of the packet; `None` when it did not fit or was shorter than its header.
    pub len: Option<usize>,
    /// Its mark, 0 where the socket does not tell.
    pub mark: u32,
}

// SAFETY: the raw pointers in `vectors` and `messages` are made and used within one call of
// `receive`; what stays between calls is read only for lengths and flags.
unsafe impl<const HEADER: usize> Send for ReceiveBatch<HEADER> {}

impl<const HEADER: usize> ReceiveBatch<HEADER> {
    /// Room for `packets` packets at once.
    pub fn new(packets: usize) -> Self {
        Self {
            headers: vec![[0; HEADER]; packets],
            controls: vec![[0; CONTROL]; packets],
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
        for (vectors, control) in self.vectors.iter_mut().zip(&mut self.controls) {
            // SAFETY: all-zero is a valid mmsghdr: no address, no vectors, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
            message.msg_hdr.msg_iovlen = vectors.len();
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL;
            self.messages.push(message);
        }
        let count = self.messages.len() as libc::c_uint;
        // SAFETY: `messages` are `count` headers, each naming room for control data of this batch and two
        // vectors of this batch that name a header of this batch and a buffer borrowed for `'b`, which
        // outlives the call; no two of the buffers overlap, being distinct `&mut`.
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
        let told = message.msg_hdr.msg_controllen >= size_of::<libc::cmsghdr>() + size_of::<u32>();
        let mark = if told { mark(&self.controls[at]) } else { 0 };
        Arrival { header: &self.headers[at], len: len.filter(|_| whole), mark }
    }
}

/// The mark in a control message, 0 where it is about something else (`struct cmsghdr`: a length of eight bytes, the
/// level, the kind).
fn mark(control: &[u8; CONTROL]) -> u32 {
    let word = |at: usize| control[at..].first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    if (word(8), word(12)) == (libc::SOL_SOCKET, libc::SO_MARK) { word(16) as u32 } else { 0 }
}
