//! Generic netlink, as much as the `netdev` family needs (Documentation/netlink/specs/netdev.yaml
//! of the kernel): one request, its answers as lists of attributes.

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use std::io;

use super::NetlinkError;

/// An attribute: its number and its bytes.
pub(crate) type Attribute = (u16, Vec<u8>);

/// A line to one family of generic netlink.
pub(crate) struct Family {
    socket: Socket,
    id: u16,
    sequence: u32,
}

/// The controller, which knows the other families.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of the netlink header, and of that of generic netlink.
const HEADER: usize = 16;
const GENERIC: usize = 4;

impl Family {
    /// The family of this name, refused where the kernel has none.
    pub fn open(name: &str) -> Result<Self, NetlinkError> {
        let mut socket = Socket::new(NETLINK_GENERIC).map_err(NetlinkError::Socket)?;
        socket.bind_auto().map_err(NetlinkError::Socket)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(NetlinkError::Socket)?;
        let mut family = Self { socket, id: CONTROLLER, sequence: 0 };
        let question = (FAMILY_NAME, [name.as_bytes(), &[0]].concat());
        let answers = family.ask(GET_FAMILY, NLM_F_ACK, &[question])?;
        let id = answers.iter().flatten().find_map(|(kind, value)| match (*kind, &value[..]) {
            (FAMILY_ID, &[low, high]) => Some(u16::from_ne_bytes([low, high])),
            _ => None,
        });
        family.id = id.ok_or_else(|| NetlinkError::Garbled(format!("no number for the family {name}")))?;
        Ok(family)
    }

    /// Tells one thing.
    pub fn tell(&mut self, command: u8, attributes: &[Attribute]) -> Result<(), NetlinkError> {
        self.ask(command, NLM_F_ACK, attributes).map(drop)
    }

    /// Asks for everything of a kind.
    pub fn dump(
        &mut self,
        command: u8,
        attributes: &[Attribute],
    ) -> Result<Vec<Vec<Attribute>>, NetlinkError> {
        self.ask(command, NLM_F_DUMP, attributes)
    }

    fn ask(
        &mut self,
        command: u8,
        flags: u16,
        attributes: &[Attribute],
    ) -> Result<Vec<Vec<Attribute>>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = encode(self.id, flags | NLM_F_REQUEST, self.sequence, command, attributes);
        self.socket.send(&question, 0).map_err(NetlinkError::Socket)?;
        let mut answers = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let mut rest = &bytes[..];
            while let Some((message, after)) = split(rest) {
                rest = after;
                match message.kind {
                    _ if message.sequence != self.sequence => {}
                    DONE => return Ok(answers),
                    ERROR => return refused(message.body).map(|()| answers),
                    _ => answers.push(attributes_of(message.body.get(GENERIC..).unwrap_or(&[]))),
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

fn attributes_of(mut bytes: &[u8]) -> Vec<Attribute> {
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

fn encode(kind: u16, flags: u16, sequence: u32, command: u8, attributes: &[Attribute]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes.extend([command, 1, 0, 0]);
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
        let bytes = encode(20, 1, 9, 11, &attributes);
        let (message, rest) = split(&bytes).unwrap();
        assert_eq!((message.kind, message.sequence, rest.len()), (20, 9, 0));
        assert_eq!(attributes_of(&message.body[GENERIC..]), attributes);
    }

    #[test]
    fn the_kernel_knows_the_controller_and_not_our_inventions() {
        assert!(Family::open("nlctrl").is_ok_and(|family| family.id == CONTROLLER));
        assert!(matches!(Family::open("silk-nonsense"), Err(NetlinkError::Refused(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut rest, mut messages) = (&bytes[..], 0);
            while let Some((message, after)) = split(rest) {
                attributes_of(message.body);
                let _ = refused(message.body);
                rest = after;
                messages += 1;
            }
            prop_assert!(messages <= bytes.len() / HEADER);
        }
    }
}
