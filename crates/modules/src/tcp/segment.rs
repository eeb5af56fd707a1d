//! Segments between the wire and the state machine: parsed with their checksum, and written
//! into a message's headroom.

use super::Four;
use crate::faults::{accept, reason};
use core::net::SocketAddrV4;
use silk_path::{Checksum, DropReason, Message, Meta};
use silk_tcp::{Flags, Header, Options, Segment, SeqNumber};
use silk_wire::{checksum, ipv4, tcp};

/// Room for every header below TCP's payload.
pub(super) const HEADROOM: usize = 160;

/// The segment in a message that IP has delivered, and whose it is.
pub(super) fn parse<'m>(msg: &'m Message<'_>) -> Result<(Four, Segment<'m>), DropReason> {
    let (source, destination) = (*msg.meta.remote.ip(), *msg.meta.local.ip());
    let pseudo = |length| checksum::pseudo(source, destination, ipv4::TCP, length);
    let wire = tcp::parse(msg.bytes(), accept(&msg.meta), pseudo).map_err(reason)?;
    let header = wire.header;
    let segment = Segment {
        seq: SeqNumber::new(header.seq()),
        ack: SeqNumber::new(header.ack()),
        flags: Flags::from_bits(header.flags),
        window: header.window(),
        urgent: header.urgent(),
        options: Options::parse(wire.options).map_err(|_| DropReason::TcpOptions)?,
        payload: wire.payload,
    };
    let four = Four {
        local: SocketAddrV4::new(destination, header.destination()),
        remote: SocketAddrV4::new(source, header.source()),
    };
    Ok((four, segment))
}

/// Puts the header of a segment in front of `msg`, its checksum left to be completed below.
pub(super) fn push(msg: &mut Message<'_>, header: &Header, four: Four) -> Result<(), DropReason> {
    let mut options = [0; Options::MAX_BYTES];
    let length = header.options.write(&mut options);
    let bytes = msg.push(tcp::HEADER + length)?;
    let emit = tcp::Emit {
        source: four.local.port(),
        destination: four.remote.port(),
        seq: header.seq.raw(),
        ack: header.ack.raw(),
        flags: header.flags.bits(),
        window: header.window,
        urgent: 0,
        checksum: 0,
    };
    emit.emit(length, bytes);
    bytes[tcp::HEADER..].copy_from_slice(&options[..length]);
    let start = msg.head() as u16;
    msg.meta.checksum = Checksum::Partial { start, field: start + tcp::CHECKSUM as u16 };
    Ok(())
}

/// What is known of a message of the connection `four`.
pub(super) fn meta(four: Four) -> Meta {
    Meta { local: four.local, remote: four.remote, protocol: ipv4::TCP, ..Meta::default() }
}
