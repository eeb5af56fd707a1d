//! The two buffers of a connection, which belong to somebody else: the daemon implements them over
//! a program's shared-memory rings. The machine never copies what it sends; it names ranges of the
//! send buffer and lets the caller fetch the bytes. It believes neither buffer's answers beyond
//! what it can check itself.

/// Octets that the program wrote: first those sent and not yet acknowledged, then the unsent.
pub trait SendBuffer {
    /// Octets in the buffer. May grow between calls; shrinks only by [`SendBuffer::consume`].
    fn len(&self) -> usize;

    /// Whether the buffer holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the program has written more than [`SendBuffer::len`] says yet, as far as is known.
    fn has_more(&self) -> bool {
        false
    }

    /// Whether the program waits for room to write more, as far as is known.
    fn is_waited_for(&self) -> bool {
        false
    }

    /// Lets go of the first `octets`, which the peer has acknowledged. At most [`SendBuffer::len`].
    fn consume(&mut self, octets: usize);
}

/// Octets in order for the program to read.
pub trait RecvBuffer {
    /// Octets that still fit.
    fn room(&self) -> usize;

    /// Takes the next octets of the stream and answers how many it took. It should take all when
    /// they fit [`RecvBuffer::room`]; what it does not take is not acknowledged.
    fn write(&mut self, bytes: &[u8]) -> usize;

    /// The peer says that its urgent data ends with the octet that is `ahead` of the next one to be written (RFC 9293
    /// §3.8.5). Said before that octet is written, and of each octet once.
    fn mark_urgent(&mut self, _ahead: usize) {}

    /// Octets that the program has not read yet, as far as is known.
    fn unread(&self) -> usize {
        0
    }

    /// The most octets that can be there unread, as far as is known.
    fn capacity(&self) -> usize {
        usize::MAX
    }
}
