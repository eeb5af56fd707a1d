//! Cuts a datagram that is longer than the path's MTU into fragments (RFC 8200 §4.5). Never TCP's
//! segments.

use alloc::vec;
use alloc::vec::Vec;
use silk_path::Message;
use silk_wire::extension::{FRAGMENT, FRAGMENT_HEADER, Fragment};
use silk_wire::ipv6;

/// Room in front of a fragment for headers below IP.
const HEADROOM: usize = 64;
/// Bytes of a fragment's headers.
const HEADERS: usize = ipv6::HEADER + FRAGMENT_HEADER;

/// A datagram to be cut, copied once.
pub(super) struct Pieces {
    payload: Vec<u8>,
    // Bytes of payload per fragment, a multiple of 8.
    each: usize,
    header: ipv6::Emit,
    identification: u32,
    buffer: Vec<u8>,
    at: usize,
}

impl Pieces {
    /// The fragments of `msg`, whose IP header would be `header`, for `mtu`.
    pub fn new(msg: &Message<'_>, header: ipv6::Emit, identification: u32, mtu: u16) -> Self {
        let mut payload = vec![0; msg.len()];
        msg.copy_to(&mut payload);
        let each = (usize::from(mtu).saturating_sub(HEADERS) & !7).max(8);
        let buffer = vec![0; HEADROOM + HEADERS + each];
        Self { payload, each, header, identification, buffer, at: 0 }
    }

    /// The next fragment: its buffer, and where in it the packet is.
    pub fn next(&mut self) -> Option<(&mut [u8], usize, usize)> {
        let piece = self.payload.get(self.at..).filter(|rest| !rest.is_empty())?;
        let piece = &piece[..piece.len().min(self.each)];
        let more = self.at + piece.len() < self.payload.len();
        let fragment = Fragment { identification: self.identification, offset: self.at, more };
        let payload_len = (FRAGMENT_HEADER + piece.len()) as u16;
        let (start, end) = (HEADROOM + HEADERS, HEADROOM + HEADERS + piece.len());
        ipv6::Emit { next_header: FRAGMENT, payload_len, ..self.header }.emit(&mut self.buffer[HEADROOM..]);
        fragment.emit(self.header.next_header, &mut self.buffer[HEADROOM + ipv6::HEADER..]);
        self.buffer[start..end].copy_from_slice(piece);
        self.at += piece.len();
        Some((&mut self.buffer, HEADROOM, end))
    }
}
