//! A segment becomes a message: header and options written in place, text by reference, the
//! checksum left to IP (which knows the pseudo-header) and the device.

use super::Key;
use silk_path::{Checksum, DropReason, Message, Meta, Station};
use silk_tcp::{Codepoint, Header, Options, Segment, SeqNumber};
use silk_wire::{ipv4, tcp};

/// Room for every header of a segment.
pub(super) const HEADROOM: usize = 128;

/// Writes the header in front of `msg`, whose text is there already.
// RFC 9293 MUST-2.
pub(super) fn write_header(msg: &mut Message<'_>, key: &Key, header: &Header) -> Result<(), DropReason> {
    let options = header.options.encoded_len().min(Options::MAX_BYTES);
    let bytes = msg.push(tcp::HEADER + options)?;
    header.options.write(&mut bytes[tcp::HEADER..]);
    let fixed = tcp::Emit {
        source: key.local.port(),
        destination: key.remote.port(),
        seq: header.seq.raw(),
        ack: header.ack.raw(),
        flags: header.flags.bits(),
        window: header.window,
        urgent: header.urgent,
        checksum: 0,
    };
    fixed.emit(options, bytes);
    let start = msg.head() as u16;
    msg.meta.checksum = Checksum::Partial { start, field: start + tcp::CHECKSUM as u16 };
    Ok(())
}

/// A segment without text, between these two; `link` is where the segment that it answers came
/// from.
pub(super) fn bare<'b>(
    headroom: &'b mut [u8; HEADROOM],
    key: &Key,
    header: &Header,
    link: Station,
) -> Result<Message<'b>, DropReason> {
    let meta = Meta { remote: key.remote, local: key.local, protocol: ipv4::TCP, link, ..Meta::default() };
    let mut msg = Message::outgoing(headroom, [&[], &[]], meta);
    write_header(&mut msg, key, header)?;
    Ok(msg)
}

/// A parsed segment as the state machine takes it; `tos` are the service bits it came with.
pub(super) fn segment<'s>(read: &tcp::Segment<'s>, tos: u8) -> Result<Segment<'s>, DropReason> {
    let header = read.header;
    Ok(Segment {
        seq: SeqNumber::new(header.seq()),
        ack: SeqNumber::new(header.ack()),
        flags: silk_tcp::Flags::from_bits(header.flags),
        window: header.window(),
        urgent: header.urgent(),
        ecn: Codepoint::from_tos(tos),
        options: Options::parse(read.options).map_err(|_| DropReason::TcpOptions)?,
        payload: read.payload,
    })
}
