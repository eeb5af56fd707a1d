//! Cuts a datagram that is longer than the path's MTU into fragments (RFC 791 §3.2). Only
//! datagrams that were never promised to stay whole come here; never TCP's.

use alloc::vec;
use alloc::vec::Vec;
use silk_path::Message;
use silk_wire::ipv4;

/// Room in front of a fragment for headers below IP.
const HEADROOM: usize = 64;

/// A datagram to be cut, copied once.
pub(super) struct Pieces {
    payload: Vec<u8>,
    // Bytes of payload per fragment, a multiple of 8.
    each: usize,
    header: ipv4::Emit,
    buffer: Vec<u8>,
    at: usize,
}

impl Pieces {
    /// The fragments of `msg`, whose IP header would be `header`, for `mtu`.
    pub fn new(msg: &Message<'_>, header: ipv4::Emit, mtu: u16) -> Self {
        let mut payload = vec![0; msg.len()];
        msg.copy_to(&mut payload);
        let each = (usize::from(mtu).saturating_sub(ipv4::HEADER) & !7).max(8);
        Self { payload, each, header, buffer: vec![0; HEADROOM + ipv4::HEADER + each], at: 0 }
    }

    /// The next fragment: its buffer, and where in it the packet is.
    pub fn next(&mut self) -> Option<(&mut [u8], usize, usize)> {
        let piece = self.payload.get(self.at..).filter(|rest| !rest.is_empty())?;
        let piece = &piece[..piece.len().min(self.each)];
        let header = ipv4::Emit {
            dont_fragment: false,
            payload_len: piece.len() as u16,
            offset: self.at as u16,
            more_fragments: self.at + piece.len() < self.payload.len(),
            ..self.header
        };
        let start = HEADROOM + ipv4::HEADER;
        header.emit(&mut self.buffer[HEADROOM..]);
        self.buffer[start..start + piece.len()].copy_from_slice(piece);
        let end = start + piece.len();
        self.at += piece.len();
        Some((&mut self.buffer, HEADROOM, end))
    }
}
