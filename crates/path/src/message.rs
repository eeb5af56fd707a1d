//! A message (Scout §3.2): a buffer whose headers are pushed and popped in place while a path
//! runs to completion. It borrows everything and copies nothing; what is to outlive the run
//! is a [`Ticket`](crate::Ticket) in a queue or bytes charged to an account.
//! ```text
//!  buf: | headroom | head .. bytes in place .. tail | unused |    ext: | slice | slice |
//! ```
//! The bytes in place come first, then `ext`: payload that follows by reference, in two
//! slices because a program's ring wraps. Only messages on their way out have `ext`.

use crate::{Discovery, DropReason, Endpoint, Framing};
use core::net::Ipv4Addr;
use silk_instant::Instant;

/// What is known of a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Received: nobody has looked.
    #[default]
    Unknown,
    /// Received over a device that may hand over a partial checksum (the folded pseudo-header
    /// sum in the field); that and a right one are good.
    MaybePartial,
    /// Received: the device has verified it, or a stage.
    Verified,
    /// Received, and to be verified by the stage that reads the data, while it does, before anything
    /// comes of them (integrated layer processing: Scout §4.1). Only where a transformation rule has
    /// found such a stage above: [`Stage::sums`](crate::Stage::sums).
    Unsummed {
        /// The folded sum of the pseudo-header.
        pseudo: u16,
        /// Where in the buffer what it covers starts.
        start: u16,
        /// Bytes that it covers.
        length: u16,
    },
    /// To be sent: the field holds the folded pseudo-header sum; the device, or the bottom of
    /// the path, sums from `start` and stores at `field`. Both count from the start of the
    /// buffer, so headers pushed later do not move them.
    Partial {
        /// Where summing starts.
        start: u16,
        /// Where the checksum goes.
        field: u16,
    },
}

/// A station beside us: its Ethernet address, and the device that leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// Which device: a number from 0, as in [`Attr::Device`](crate::Attr::Device).
    pub device: u8,
    /// Its Ethernet address; zero: not known.
    pub address: [u8; 6],
}

impl Station {
    /// The station with this address at the first device, which may be the only one.
    pub const fn at(address: [u8; 6]) -> Self {
        Self { device: 0, address }
    }

    /// Some station at a device: nobody knows which.
    pub const fn over(device: u8) -> Self {
        Self { device, address: [0; 6] }
    }

    /// Whether the address is known.
    pub fn is_known(self) -> bool {
        self.address != [0; 6]
    }
}

/// What is known of a message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// What is known of the transport checksum.
    pub checksum: Checksum,
    /// Bytes of payload per packet when a device is to cut the message up; 0: as it is.
    pub gso_size: u16,
    /// Nobody waits for it: a device may hold it back a little, to send it with others.
    pub lazy: bool,
    /// More messages for the same path follow at once, and [`crate::Bell::Sent`] after the last:
    /// what they lead to may wait for it.
    pub more: bool,
    /// The class that arrived or sends: an index into the configuration's classes.
    pub class: u8,
    /// The service bits of IP to send with, or received.
    pub tos: u8,
    /// The hops that a received packet had left; 0: nobody knows. Those that IP's own path sends with; 0: as many as usual.
    pub hops: u8,
    /// What becomes of it where it is too large, if IP's own path sends it.
    pub discovery: Discovery,
    /// When the message arrived.
    pub arrival: Instant,
    /// The other side, where the path itself does not fix it.
    pub remote: Endpoint,
    /// Our side, where the path itself does not fix it.
    pub local: Endpoint,
    /// The network protocol's number of what the message carries (IP's protocol field).
    pub protocol: u8,
    /// The station it came from, or is to go to next: over which device in any case.
    pub link: Station,
    /// Which unit of the application's data it belongs to.
    pub framing: Framing,
}

/// What a checksum covers that nobody has verified ([`Checksum::Unsummed`]). It is right when the sum of
/// all of it is 0xffff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsummed<'m> {
    /// The folded sum of the pseudo-header.
    pub pseudo: u16,
    /// The headers that were popped since.
    pub before: &'m [u8],
    /// The bytes in place.
    pub bytes: &'m [u8],
    /// What was cut off behind them.
    pub behind: &'m [u8],
}

/// No address, no port.
pub const NOWHERE: Endpoint = Endpoint::v4(Ipv4Addr::UNSPECIFIED, 0);

impl Default for Meta {
    #[inline]
    fn default() -> Self {
        Self {
            checksum: Checksum::Unknown,
            gso_size: 0,
            lazy: false,
            more: false,
            class: 0,
            tos: 0,
            hops: 0,
            discovery: Discovery::Want,
            arrival: Instant::ZERO,
            remote: NOWHERE,
            local: NOWHERE,
            protocol: 0,
            link: Station::over(0),
            framing: Framing::default(),
        }
    }
}

/// A message on a path.
#[derive(Debug)]
pub struct Message<'m> {
    buf: &'m mut [u8],
    // head <= tail <= buf.len()
    head: usize,
    tail: usize,
    ext: [&'m [u8]; 2],
    /// What is known of it.
    pub meta: Meta,
}

impl<'m> Message<'m> {
    /// A message of the bytes `head..tail` of `buf`; both are cut to what there is.
    #[inline]
    pub fn new(buf: &'m mut [u8], head: usize, tail: usize, meta: Meta) -> Self {
        let tail = tail.min(buf.len());
        Self { head: head.min(tail), tail, buf, ext: [&[], &[]], meta }
    }

    /// A message to be sent: no bytes in place yet, all of `headroom` for headers, and `ext`
    /// as the payload.
    #[inline]
    pub fn outgoing(headroom: &'m mut [u8], ext: [&'m [u8]; 2], meta: Meta) -> Self {
        let end = headroom.len();
        Self { buf: headroom, head: end, tail: end, ext, meta }
    }

    /// The bytes in place.
    pub fn bytes(&self) -> &[u8] {
        &self.buf[self.head..self.tail]
    }

    /// The bytes in place, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buf[self.head..self.tail]
    }

    /// The payload that follows by reference.
    pub fn ext(&self) -> [&'m [u8]; 2] {
        self.ext
    }

    /// All bytes of the message, `ext` included.
    pub fn len(&self) -> usize {
        self.tail - self.head + self.ext_len()
    }

    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of `ext`.
    pub fn ext_len(&self) -> usize {
        self.ext[0].len() + self.ext[1].len()
    }

    /// Room for headers in front of the bytes in place.
    pub fn headroom(&self) -> usize {
        self.head
    }

    /// Where the bytes in place start in the buffer (what [`Checksum::Partial`] counts from
    /// is 0).
    pub fn head(&self) -> usize {
        self.head
    }

    /// Opens `n` bytes in front, to be written by the caller.
    pub fn push(&mut self, n: usize) -> Result<&mut [u8], DropReason> {
        self.head = self.head.checked_sub(n).ok_or(DropReason::NoHeadroom)?;
        Ok(&mut self.buf[self.head..self.head + n])
    }

    /// Takes `n` bytes off the front; `None`, and nothing happens, when there are fewer in
    /// place.
    pub fn pop(&mut self, n: usize) -> Option<&mut [u8]> {
        if n > self.tail - self.head {
            return None;
        }
        self.head += n;
        Some(&mut self.buf[self.head - n..self.head])
    }

    /// Cuts the bytes in place to the first `n`; the padding of a link goes this way.
    pub fn truncate(&mut self, n: usize) {
        self.tail = self.tail.min(self.head + n);
    }

    /// Opens `n` bytes behind the bytes in place, to be written by the caller. Not for a
    /// message with `ext`.
    pub fn append(&mut self, n: usize) -> Result<&mut [u8], DropReason> {
        let end = self.tail + n;
        if end > self.buf.len() || self.ext_len() > 0 {
            return Err(DropReason::NoHeadroom);
        }
        let start = core::mem::replace(&mut self.tail, end);
        Ok(&mut self.buf[start..end])
    }

    /// What is still to be summed, where the checksum is [`Checksum::Unsummed`].
    pub fn unsummed(&self) -> Option<Unsummed<'_>> {
        let Checksum::Unsummed { pseudo, start, length } = self.meta.checksum else { return None };
        let (start, bytes) = (usize::from(start), self.bytes());
        let end = start + usize::from(length);
        // Headers are popped and padding is cut, so both lie around the bytes in place.
        let before = self.buf.get(start..self.head).unwrap_or_default();
        let behind = self.buf.get(self.tail..end).unwrap_or_default();
        Some(Unsummed { pseudo, before, bytes, behind })
    }

    /// Lets `is_right` say whether what is still to be summed arrived as it was sent; then it is verified.
    /// Nothing to do where nothing is to be summed.
    ///
    /// # Errors
    /// It is not.
    pub fn verify(&mut self, is_right: impl FnOnce(Unsummed<'_>) -> bool) -> Result<(), DropReason> {
        match self.unsummed().map(is_right) {
            None => return Ok(()),
            Some(false) => return Err(DropReason::UdpChecksum),
            Some(true) => self.meta.checksum = Checksum::Verified,
        }
        Ok(())
    }

    /// The whole message: what is in place, and what lies elsewhere behind it.
    pub fn parts(&self) -> [&[u8]; 3] {
        [self.bytes(), self.ext[0], self.ext[1]]
    }

    /// Copies the whole message to the front of `out` and answers its length; `None` when it
    /// does not fit.
    pub fn copy_to(&self, out: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        for part in self.parts() {
            out.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pushed_and_popped_in_place() {
        let mut buf = *b"....payload";
        let mut msg = Message::new(&mut buf, 4, 11, Meta::default());
        msg.push(4).unwrap().copy_from_slice(b"head");
        assert_eq!(msg.bytes(), b"headpayload");
        assert_eq!(msg.pop(4).as_deref(), Some(&b"head"[..]));
        assert_eq!(msg.bytes(), b"payload");
    }

    #[test]
    fn what_is_not_there_cannot_be_pushed_or_popped() {
        let mut buf = [0; 8];
        let mut msg = Message::new(&mut buf, 4, 99, Meta::default());
        assert_eq!(msg.push(5).err(), Some(DropReason::NoHeadroom));
        assert!(msg.pop(5).is_none());
        assert_eq!((msg.len(), msg.headroom()), (4, 4));
    }

    #[test]
    fn the_payload_by_reference_follows() {
        let mut headroom = [0; 4];
        let mut msg = Message::outgoing(&mut headroom, [b"abc", b"de"], Meta::default());
        msg.push(2).unwrap().copy_from_slice(b"HH");
        let mut out = [0; 7];
        assert_eq!((msg.len(), msg.copy_to(&mut out)), (7, Some(7)));
        assert_eq!(&out, b"HHabcde");
        assert_eq!(msg.copy_to(&mut out[..6]), None);
    }

    #[test]
    fn what_is_to_be_summed_is_all_that_the_checksum_covers() {
        let mut buf = *b"..UDPdatapad!";
        let mut msg = Message::new(&mut buf, 2, 12, Meta::default());
        assert_eq!(msg.unsummed(), None);
        msg.meta.checksum = Checksum::Unsummed { pseudo: 7, start: 2, length: 10 };
        let whole = |before, bytes, behind| Some(Unsummed { pseudo: 7, before, bytes, behind });
        assert_eq!(msg.unsummed(), whole(b"", b"UDPdatapad", b""));
        msg.pop(3);
        msg.truncate(4);
        assert_eq!(msg.unsummed(), whole(b"UDP", b"data", b"pad"));
        msg.meta.checksum = Checksum::Unsummed { pseudo: 7, start: 90, length: 1 };
        assert_eq!(msg.unsummed(), whole(b"", b"data", b""));
        assert_eq!(msg.verify(|_| false), Err(DropReason::UdpChecksum));
        assert_eq!(msg.verify(|_| true), Ok(()));
        assert_eq!((msg.meta.checksum, msg.verify(|_| false)), (Checksum::Verified, Ok(())));
    }

    #[test]
    fn padding_is_cut() {
        let mut buf = *b"data pad";
        let mut msg = Message::new(&mut buf, 0, 8, Meta::default());
        msg.truncate(4);
        msg.truncate(6);
        assert_eq!(msg.bytes(), b"data");
    }
}
