//! Packets that were told apart at the ingress of traffic control (`bpf/ingress.h`): marked with their word,
//! and received by packet sockets that ask for the mark, one for each domain and protocol. Until an
//! executor reads it a packet stays the socket buffer that it came as; then it is copied, once, by the
//! thread that pays for it. Linux delivers to sockets of single protocols after that ingress, and to
//! those of all before it.

use std::os::fd::AsFd;

use super::Options;
use super::program::Program;
use crate::bpf::DOMAINS;
use crate::netlink::Interface;
use crate::packet::{self, PacketReceive, PacketTransmit, REFUSE};
use crate::sys::{self, Chooser, Filter};
use crate::{End, OpenError};

const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const PROTOCOLS: [u16; 2] = [ETH_P_IP, ETH_P_IPV6];

/// Bytes that may wait for a domain, as the kernel counts them, for each entry that a ring would have.
/// The kernel takes twice what it is told.
const WAITING: u32 = 2048;

// What linux/filter.h calls SKF_AD_PKTTYPE and SKF_AD_MARK.
const KIND: u32 = -0x1000i32 as u32 + 4;
const MARK: u32 = -0x1000i32 as u32 + 20;
/// Where in the mark the domain stands (`bpf/layout.h`).
const DOMAIN_SHIFT: u32 = 24;

const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const SHIFT_RIGHT: u16 = 0x74;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
const RETURN_SUM: u16 = 0x16;

/// What the program at the ingress has marked: with a word, and as another host's.
const MARKED: [Filter; 6] = [
    (LOAD_WORD, 0, 0, KIND),
    (JUMP_EQUAL, 0, 2, libc::PACKET_OTHERHOST as u32),
    (LOAD_WORD, 0, 0, MARK),
    (JUMP_EQUAL, 0, 1, 0),
    REFUSE,
    (RETURN, 0, 0, u32::MAX),
];

/// The domain of the mark. What has none is refused afterwards.
const DOMAIN: [Filter; 4] = [
    (LOAD_WORD, 0, 0, MARK),
    (SHIFT_RIGHT, 0, 0, DOMAIN_SHIFT),
    (AND, 0, 0, DOMAINS - 1),
    (RETURN_SUM, 0, 0, 0),
];

/// The ends of all domains of an interface, the one at `place` among those of `program`; before that is attached nothing
/// is marked.
pub(super) fn ends(
    interface: &Interface,
    options: &Options,
    (place, program): (usize, &Program),
) -> Result<Vec<End>, OpenError> {
    let name = &interface.name;
    let waiting = options.ring.saturating_mul(WAITING).min(i32::MAX as u32) as i32;
    let sockets = packet::Options { vlan: options.vlan, waiting, ..packet::Options::default() };
    let open = |domain| {
        let mut receiver = PacketReceive::of_protocols(name, &sockets, &[REFUSE], &PROTOCOLS)?;
        let told = receiver.promise(program.marked(place, domain)?);
        told.map_err(|error| OpenError::of(name, "be told of marks", error))?;
        Ok(receiver)
    };
    let receivers = (0..options.domains).map(open).collect::<Result<Vec<_>, _>>()?;
    for protocol in 0..PROTOCOLS.len() {
        let members = receivers.iter().map(|receiver| receiver.socket(protocol));
        sys::fan_out(members, &Chooser::Filter(&DOMAIN))
            .and_then(|()| {
                // Only now: until all were members, packets would have come to the wrong ones.
                receivers
                    .iter()
                    .try_for_each(|receiver| sys::filter(receiver.socket(protocol).as_fd(), &MARKED))
            })
            .map_err(|error| OpenError::of(name, "spread packets over domains", error))?;
    }
    let end = |receiver| {
        let transmit = Box::new(PacketTransmit::open(name, &options.sending)?);
        Ok(End { receive: Box::new(receiver), transmit })
    };
    receivers.into_iter().map(end).collect()
}
