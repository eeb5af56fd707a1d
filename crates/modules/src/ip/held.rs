//! The one message that may wait for its next hop's address (RFC 1122 §2.3.2.2): a copy, as
//! the message itself is gone when the run ends. The only thing on a path that waits in the
//! middle, and there is never more than one.

use crate::icmp::{QUOTED, errno};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use silk_path::{Checksum, Cx, DropReason, Endpoint, Message, Meta, Quoted, Report, Request, Verdict};
use silk_wire::{ipv4, udp};

/// ICMP's "host unreachable" (RFC 792), and ICMPv6's "address unreachable" (RFC 4443 §3.1).
const HOST_UNREACHABLE: (u8, u8) = (3, 1);
const ADDRESS_UNREACHABLE6: (u8, u8) = (1, 3);

/// The longest message that waits.
const MOST: usize = 2048;
/// Room in front of it for headers.
const HEADROOM: usize = 64;

/// A message that waits.
pub(crate) struct Held {
    // HEADROOM bytes, then the message's.
    bytes: Vec<u8>,
    meta: Meta,
}

impl Held {
    /// What holding `msg` costs, in bytes.
    fn cost(msg: &Message<'_>) -> usize {
        HEADROOM + msg.len()
    }

    /// A copy of `msg`, which is at most [`MOST`] bytes.
    fn copy(msg: &Message<'_>) -> Self {
        let mut bytes = vec![0; Self::cost(msg)];
        msg.copy_to(&mut bytes[HEADROOM..]);
        let mut meta = msg.meta;
        if let Checksum::Partial { start, field } = meta.checksum {
            // Both positions are behind the head, and the message is short.
            let moved = |at: u16| (usize::from(at).saturating_sub(msg.head()) + HEADROOM) as u16;
            meta.checksum = Checksum::Partial { start: moved(start), field: moved(field) };
        }
        Self { bytes, meta }
    }

    /// Bytes it takes.
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The message again.
    pub fn message(&mut self) -> Message<'_> {
        let end = self.bytes.len();
        Message::new(&mut self.bytes, HEADROOM, end, self.meta)
    }
}

/// Its place on the path, whose account it is charged to.
#[derive(Default)]
pub(crate) struct Waiting(Option<Box<Held>>);

impl Waiting {
    /// Keeps a copy of a message, or drops it for this reason where there is no room.
    pub fn hold(&mut self, cx: &mut Cx<'_, '_>, msg: &Message<'_>, full: DropReason) -> Verdict {
        if self.0.is_some() || msg.len() > MOST || cx.charge(Held::cost(msg)).is_err() {
            return Verdict::Drop(full);
        }
        self.0 = Some(Box::new(Held::copy(msg)));
        Verdict::Consumed
    }

    /// Takes out what waits.
    pub fn take(&mut self, cx: &mut Cx<'_, '_>) -> Option<Box<Held>> {
        let held = self.0.take()?;
        cx.release(held.len());
        Some(held)
    }
}

/// What the sender of a message is told whose next hop does not answer: what a router says of a host
/// on its link that does not (RFC 1812 §5.3.6), with the certainty of one who has asked himself.
/// `message` begins with the header above IP. `None`: nobody is to be told.
pub(crate) fn unreached(
    message: &Message<'_>,
    protocol: u8,
    local: IpAddr,
    remote: IpAddr,
) -> Option<Request> {
    // Headers are in place.
    let [a, b, c, d, e, f, g, h] = *message.bytes().first_chunk()?;
    let remote = Endpoint::new(remote, u16::from_be_bytes([c, d]));
    let sequence = u32::from_be_bytes([e, f, g, h]);
    let quoted = || {
        let kind = if local.is_ipv6() { ADDRESS_UNREACHABLE6 } else { HOST_UNREACHABLE };
        let data = message.parts().into_iter().flatten().copied().skip(udp::HEADER).take(QUOTED).collect();
        Box::new(Quoted { kind, info: 0, offender: local, data })
    };
    let udp = protocol == ipv4::UDP;
    (udp || protocol == ipv4::TCP).then(|| Request::Report {
        udp,
        local: Endpoint::new(local, u16::from_be_bytes([a, b])),
        remote,
        report: Report::Unreachable { errno: errno::HOST, hard: true, sequence, remote },
        quoted: udp.then(quoted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_message_is_the_same_and_its_checksum_in_the_same_place() {
        let mut headroom = [0; 100];
        let mut msg = Message::outgoing(&mut headroom, [b"pay", b"load"], Meta::default());
        msg.push(8).unwrap().copy_from_slice(b"header??");
        msg.meta.checksum = Checksum::Partial { start: 92, field: 98 };
        let mut held = Held::copy(&msg);
        assert_eq!(held.len(), Held::cost(&msg));
        let again = held.message();
        assert_eq!(again.bytes(), b"header??payload");
        let Checksum::Partial { start, field } = again.meta.checksum else { panic!("still to be completed") };
        assert_eq!((usize::from(start) - again.head(), usize::from(field) - again.head()), (0, 6));
    }
}
