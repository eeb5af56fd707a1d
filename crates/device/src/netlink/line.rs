//! A line to a part of the kernel whose questions and answers are lists of attributes behind a header of four bytes: generic
//! netlink and the packet filter (netlink(7)).

use netlink_packet_core::NLM_F_REQUEST;
use netlink_sys::{Socket, SocketAddr};
use std::io;

use super::NetlinkError;

/// An attribute: its number and its bytes.
pub(crate) type Attribute = (u16, Vec<u8>);
/// What stands in front of the attributes of a message.
pub(crate) type Header = [u8; 4];

/// A line.
pub(crate) struct Line {
    socket: Socket,
    sequence: u32,
}

const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of the netlink header.
const HEADER: usize = 16;

impl Line {
    /// To the part of the kernel with this number.
    pub fn open(protocol: isize) -> Result<Self, NetlinkError> {
        let mut socket = Socket::new(protocol).map_err(NetlinkError::Socket)?;
        socket.bind_auto().map_err(NetlinkError::Socket)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(NetlinkError::Socket)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks a question of this kind; every answer up to the kernel's last word on it.
    pub fn ask(
        &mut self,
        (kind, flags): (u16, u16),
        header: Header,
        attributes: &[Attribute],
    ) -> Result<Vec<(Header, Vec<Attribute>)>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = encode((kind, flags | NLM_F_REQUEST), self.sequence, header, attributes);
        self.socket.send(&question, 0).map_err(NetlinkError::Socket)?;
        let mut answers = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let mut rest = &bytes[..];
            while let Some((message, after)) = split(rest) {
                rest = after;
                match message.kind {
                    _ if message.sequence != self.sequence => {}
                    // It may have ended in the middle.
                    DONE | ERROR => return refused(message.body).map(|()| answers),
                    _ => answers.extend(parts(message.body)),
                }
            }
        }
    }
}

struct Message<'b> {
    kind: u16,
    sequence: u32,
    body: &'b [u8],
}

/// The first message, and what follows it; `None` when there is no whole one.
fn split(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let len = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let body = bytes.get(HEADER..len)?;
    let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
    let sequence = u32::from_ne_bytes(*bytes[8..].first_chunk()?);
    Some((Message { kind, sequence, body }, bytes.get(len.next_multiple_of(4)..).unwrap_or(&[])))
}

/// An error message of zero is an acknowledgement.
fn refused(body: &[u8]) -> Result<(), NetlinkError> {
    match body.first_chunk().map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(NetlinkError::Refused(io::Error::from_raw_os_error(code.saturating_neg()))),
        None => Err(NetlinkError::Garbled("an error without a number".into())),
    }
}

/// The header and the attributes of a message.
fn parts(body: &[u8]) -> Option<(Header, Vec<Attribute>)> {
    let (header, rest) = body.split_first_chunk()?;
    Some((*header, attributes_of(rest)))
}

/// The attributes that some bytes are, as far as they are whole.
pub(crate) fn attributes_of(mut bytes: &[u8]) -> Vec<Attribute> {
    /// The two highest bits of a number are flags.
    const NUMBER: u16 = 0x3fff;
    let mut all = Vec::new();
    while let Some(&[l0, l1, k0, k1]) = bytes.first_chunk() {
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(value) = bytes.get(4..len) else { break };
        all.push((u16::from_ne_bytes([k0, k1]) & NUMBER, value.to_vec()));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    all
}

fn encode((kind, flags): (u16, u16), sequence: u32, header: Header, attributes: &[Attribute]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes.extend(header);
    for (number, value) in attributes {
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_reads_as_it_was_written() {
        let attributes = vec![(1, vec![7, 0, 0, 0]), (2, b"odd".to_vec()), (3, vec![])];
        let bytes = encode((20, 1), 9, [11, 1, 0, 0], &attributes);
        let (message, rest) = split(&bytes).unwrap();
        assert_eq!((message.kind, message.sequence, rest.len()), (20, 9, 0));
        assert_eq!(parts(message.body), Some(([11, 1, 0, 0], attributes)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut rest, mut messages) = (&bytes[..], 0);
            while let Some((message, after)) = split(rest) {
                parts(message.body);
                let _ = refused(message.body);
                rest = after;
                messages += 1;
            }
            prop_assert!(messages <= bytes.len() / HEADER);
        }
    }
}
