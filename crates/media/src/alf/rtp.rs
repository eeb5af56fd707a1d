//! The source's packets as RTP: MPEG video behind the header of RFC 2250 §3.4, each packet as it
//! was cut; H.264 as whole NAL units (RFC 6184 §5.6) or, where the cutter had to split one, as
//! pieces (FU-A, §5.8). Headers and payload come apart, so nothing is copied.

use super::{Packet, Part};
use silk_wire::rtp_h264::Fragment;
use silk_wire::{rtp, rtp_h264, rtp_mpv};

/// Bytes of headers in front of a packet's payload at most; what a source takes off the room of a
/// datagram to have the cutter's limit.
pub const HEADERS: usize = rtp::HEADER + rtp_mpv::HEADER;

/// The sender of one RTP stream.
#[derive(Debug)]
pub struct RtpSource {
    payload_type: u8,
    ssrc: u32,
    sequence: u16,
    // The first byte of the NAL unit that is being sent in pieces.
    unit: u8,
}

impl RtpSource {
    /// A stream of this payload type ([`rtp::MPV`], for H.264 one of 96 to 127) from `ssrc`, its
    /// first packet numbered `sequence`: both of them random (RFC 3550 §5.1).
    pub fn new(payload_type: u8, ssrc: u32, sequence: u16) -> Self {
        Self { payload_type, ssrc, sequence, unit: 0 }
    }

    /// Sends a packet that was cut, its picture shown at `timestamp`: `send` is given the headers
    /// and the payload of each datagram.
    pub fn send(&mut self, packet: &Packet<'_>, timestamp: u32, mut send: impl FnMut(&[u8], &[u8])) {
        match packet.mpv {
            Some(header) => {
                let mut bytes = [0; HEADERS];
                self.header(packet.last, timestamp, &mut bytes);
                // The MPEG-2 extension is optional; a receiver has it in the picture's header.
                let length = rtp_mpv::Header { extension: None, ..header }.emit(&mut bytes[rtp::HEADER..]);
                send(&bytes[..rtp::HEADER + length], packet.bytes);
            }
            None => self.units(packet, timestamp, &mut send),
        }
    }

    fn header(&mut self, marker: bool, timestamp: u32, bytes: &mut [u8]) {
        rtp::Header::new(self.payload_type, marker, self.sequence, timestamp, self.ssrc).emit(bytes);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The NAL units of a packet of H.264.
    fn units(&mut self, packet: &Packet<'_>, timestamp: u32, send: &mut impl FnMut(&[u8], &[u8])) {
        match packet.part {
            Part::Whole => self.whole(packet, timestamp, send),
            Part::Begin => {
                // The unit goes on behind this part: zeros at its end are the unit's.
                let unit = prefix(packet.bytes).and_then(|at| packet.bytes[at + PREFIX..].split_first());
                if let Some((first, rest)) = unit {
                    self.unit = *first;
                    self.piece(rest, true, false, false, timestamp, send);
                }
            }
            Part::Middle => self.piece(packet.bytes, false, false, packet.last, timestamp, send),
            Part::End => {
                self.piece(without_zeros(packet.bytes), false, true, packet.last, timestamp, send);
            }
        }
    }

    fn whole(&mut self, packet: &Packet<'_>, timestamp: u32, send: &mut impl FnMut(&[u8], &[u8])) {
        let mut units = units(packet.bytes).filter(|unit| !unit.is_empty()).peekable();
        while let Some(unit) = units.next() {
            let mut bytes = [0; rtp::HEADER];
            self.header(packet.last && units.peek().is_none(), timestamp, &mut bytes);
            send(&bytes, unit);
        }
    }

    fn piece(
        &mut self,
        piece: &[u8],
        start: bool,
        end: bool,
        marker: bool,
        timestamp: u32,
        send: &mut impl FnMut(&[u8], &[u8]),
    ) {
        let mut bytes = [0; rtp::HEADER + rtp_h264::FRAGMENT_HEADER];
        self.header(marker, timestamp, &mut bytes);
        bytes[rtp::HEADER..].copy_from_slice(&Fragment { unit: self.unit, start, end }.header());
        send(&bytes, piece);
    }
}

/// Bytes of a start code.
const PREFIX: usize = 3;

/// The NAL units between start codes, without the zeros that may follow each (ISO 14496-10 §B.1).
pub(super) fn units(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let start = prefix(rest)? + PREFIX;
        let behind = &rest[start..];
        let end = prefix(behind).unwrap_or(behind.len());
        rest = &behind[end..];
        Some(without_zeros(&behind[..end]))
    })
}

/// Where the next start code is.
fn prefix(bytes: &[u8]) -> Option<usize> {
    bytes.windows(PREFIX).position(|window| window == [0, 0, 1])
}

/// Without the zeros at its end.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &bytes[..end]
}
