//! The typed service between a byte-stream protocol and the program's end of the path: two
//! buffers that the program shares, seen from the protocol. What is sent stays where the
//! program put it until the peer has acknowledged it, so it is transmitted by reference and
//! never copied. Both ends trust nothing the program can write: lengths are already clamped.

/// Where received bytes go, in order.
pub trait Incoming {
    /// Bytes there is room for now: what the receive window may offer.
    fn room(&self) -> usize;
    /// Takes as many of `bytes` as there is room for, and says how many.
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// The peer's urgent data ends with the byte that is `ahead` of the next one to be written. Said before that byte
    /// is written.
    fn mark_urgent(&mut self, _ahead: usize) {}
    /// Bytes that the program has not read yet, as far as is known.
    fn unread(&self) -> usize {
        0
    }
    /// The most bytes that can be there unread, as far as is known.
    fn capacity(&self) -> usize {
        usize::MAX
    }
    /// So much could be on its way to the program if there were room for it.
    fn want(&mut self, _n: usize) {}
}

/// Where bytes to be sent lie.
pub trait Outgoing {
    /// Bytes there are, sent and not acknowledged yet included.
    fn len(&self) -> usize;
    /// There are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The program has written more than [`Outgoing::len`] says yet, as far as is known.
    fn has_more(&self) -> bool {
        false
    }
    /// The program waits for room to write more, as far as is known.
    fn is_waited_for(&self) -> bool {
        false
    }
    /// The `len` bytes from `offset` on, in at most two slices; fewer when there are fewer. What lies
    /// in more pieces is put together first.
    fn peek(&mut self, offset: usize, len: usize) -> [&[u8]; 2];
    /// Gives the first `n` bytes back to the program: they are acknowledged.
    fn consume(&mut self, n: usize);
    /// The first `n` bytes have been sent once at least.
    fn sent(&mut self, _n: usize) {}
    /// So much could be written and not acknowledged yet if there were room for it.
    fn want(&mut self, _n: usize) {}
}

/// Both buffers of one connection. `Any`, so that whoever made it finds its own type again
/// behind [`Path::stream_mut`](crate::Path::stream_mut).
pub trait ByteStream: core::any::Any + Send {
    /// Both at once.
    fn split(&mut self) -> (&mut dyn Incoming, &mut dyn Outgoing);
}
