//! MFLOW (Scout §4.1): video in datagrams with flow control. A data packet names its picture,
//! so that what is not to be shown can be discarded where it is classified; an advertisement
//! tells the source how far it may send. All fields are big endian, in UDP.
//! ```text
//!  data
//!  0         1         2         3         4
//! +----+----+---------+---------+---------+
//! | 1  | 0  |  flags  |  type   | coding  |   flags: 1 first of its picture, 2 last of it,
//! +----+----+---------+---------+---------+          4 ends a super-packet, 8 ends the stream
//! |            sequence number            |   type: 1 I, 2 P, 3 B, 4 D, 0 not told
//! +---------------------------------------+   coding: 0 MPEG-1/2, 1 H.264
//! |   picture, in the order of showing    |
//! +---------------------------------------+
//! |        clock of the source, µs        |
//! +---------------------------------------+
//! |  round trip the source measured, µs   |   0: none yet; then the payload
//! +---------------------------------------+
//!  advertisement
//! +----+----+---------+-------------------+
//! | 1  | 1  |  flags  |   super-packet    |   flags: 1 stop sending
//! +----+----+---------+-------------------+
//! |   the last processed sequence number  |
//! +---------------------------------------+
//! |  the highest that may be sent         |
//! +---------------------------------------+
//! |   clock of the last processed packet  |
//! +---------------------------------------+
//! |   how long the player held it, µs     |
//! +---------------------------------------+
//! ```
//! Numbers and clocks wrap: [`after`] compares them (RFC 1982). Flags that are not known are not
//! looked at; a version, kind, type or coding that is not known spoils the packet.

use crate::{ParseError, put, split};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    network_endian::{U16, U32},
};

/// The UDP port a player takes data at where nothing else is said.
pub const PORT: u16 = 5544;
/// Bytes of a data packet's header.
pub const HEADER: usize = 20;
/// Bytes of an advertisement.
pub const ADVERTISEMENT: usize = 20;

const VERSION: u8 = 1;
const DATA: u8 = 0;
const ADVERTISES: u8 = 1;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const ENDS_SUPER: u8 = 4;
const ENDS_STREAM: u8 = 8;
const STOP: u8 = 1;

/// How a stream is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// MPEG-1 (ISO 11172-2) or MPEG-2 video (ISO 13818-2).
    #[default]
    Mpeg,
    /// H.264 (ISO 14496-10), with start codes.
    H264,
}

/// The header of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// The packet is the first of its picture.
    pub first: bool,
    /// The packet is the last of its picture.
    pub last: bool,
    /// The packet is the last of a super-packet (Scout §4.2): the source waits for an
    /// advertisement.
    pub ends_super: bool,
    /// Nothing comes after this packet.
    pub ends_stream: bool,
    /// The picture's type: 1 I, 2 P, 3 B, 4 D (ISO 13818-2 §6.3.9), 0 not told. Of larger ones
    /// three bits are sent, and refused.
    pub kind: u8,
    /// How the payload is coded.
    pub coding: Coding,
    /// The packet's number; each is one more than the one before. Wraps.
    pub sequence: u32,
    /// The picture's number in the order of showing. Wraps.
    pub picture: u32,
    /// The source's clock when it was sent, µs. Wraps.
    pub clock: u32,
    /// The round trip to the player and back, as the source has measured it by its echoed clock,
    /// µs; 0: not yet. The player needs it to size its queue (Scout §4.2).
    pub round_trip: u32,
}

/// What the player tells the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advertisement {
    /// The path is gone: nothing more is wanted.
    pub stop: bool,
    /// Packets in a super-packet (n of Scout §4.2); at least 1 is meant by 0.
    pub super_packet: u16,
    /// The sequence number of the last processed packet.
    pub processed: u32,
    /// The highest sequence number that may be sent: the last processed one and the free places
    /// of the player's input queue.
    pub highest: u32,
    /// The source's clock in the last processed packet, µs.
    pub clock: u32,
    /// How long the player held that packet, µs.
    pub held: u32,
}

/// A packet of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Video, with its payload.
    Data(Data, &'a [u8]),
    /// An advertisement.
    Advertisement(Advertisement),
}

/// Whether the number `a` comes after `b`, of numbers that wrap (RFC 1982 §3.2).
pub const fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct DataHeader {
    version_kind: u8,
    flags: u8,
    picture_type: u8,
    coding: u8,
    sequence: U32,
    picture: U32,
    clock: U32,
    round_trip: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AdvertisementHeader {
    version_kind: u8,
    flags: u8,
    super_packet: U16,
    processed: U32,
    highest: U32,
    clock: U32,
    held: U32,
}

/// The packet in `bytes`, the whole data of a datagram. What follows an advertisement is ignored.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let version_kind = *bytes.first().ok_or(ParseError::MflowTruncated)?;
    match (version_kind >> 4, version_kind & 15) {
        (VERSION, DATA) => data(bytes),
        (VERSION, ADVERTISES) => advertisement(bytes),
        _ => Err(ParseError::MflowVersion),
    }
}

fn data(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let (header, payload) = split::<DataHeader>(bytes, ParseError::MflowTruncated)?;
    let coding = match (header.picture_type, header.coding) {
        (..=4, 0) => Coding::Mpeg,
        (..=4, 1) => Coding::H264,
        _ => return Err(ParseError::MflowMalformed),
    };
    let data = Data {
        first: header.flags & FIRST != 0,
        last: header.flags & LAST != 0,
        ends_super: header.flags & ENDS_SUPER != 0,
        ends_stream: header.flags & ENDS_STREAM != 0,
        kind: header.picture_type,
        coding,
        sequence: header.sequence.get(),
        picture: header.picture.get(),
        clock: header.clock.get(),
        round_trip: header.round_trip.get(),
    };
    Ok(Packet::Data(data, payload))
}

fn advertisement(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let (header, _) = split::<AdvertisementHeader>(bytes, ParseError::MflowTruncated)?;
    Ok(Packet::Advertisement(Advertisement {
        stop: header.flags & STOP != 0,
        super_packet: header.super_packet.get(),
        processed: header.processed.get(),
        highest: header.highest.get(),
        clock: header.clock.get(),
        held: header.held.get(),
    }))
}

impl Data {
    /// Writes the header to the front of `bytes`, which must have room for [`HEADER`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let flag = |on, flag| if on { flag } else { 0 };
        let flags = flag(self.first, FIRST)
            | flag(self.last, LAST)
            | flag(self.ends_super, ENDS_SUPER)
            | flag(self.ends_stream, ENDS_STREAM);
        let header = DataHeader {
            version_kind: VERSION << 4 | DATA,
            flags,
            picture_type: self.kind & 7,
            coding: self.coding as u8,
            sequence: U32::new(self.sequence),
            picture: U32::new(self.picture),
            clock: U32::new(self.clock),
            round_trip: U32::new(self.round_trip),
        };
        put(&header, bytes);
    }
}

impl Advertisement {
    /// Writes the packet to the front of `bytes`, which must have room for [`ADVERTISEMENT`]
    /// bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let header = AdvertisementHeader {
            version_kind: VERSION << 4 | ADVERTISES,
            flags: if self.stop { STOP } else { 0 },
            super_packet: U16::new(self.super_packet),
            processed: U32::new(self.processed),
            highest: U32::new(self.highest),
            clock: U32::new(self.clock),
            held: U32::new(self.held),
        };
        put(&header, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    #[test]
    fn a_data_packet_stands_as_it_is_drawn() {
        let header = Data {
            first: true,
            ends_stream: true,
            kind: 3,
            coding: Coding::H264,
            sequence: 0x0102_0304,
            picture: 0x0506_0708,
            clock: 0x090a_0b0c,
            round_trip: 0x0d0e_0f10,
            ..Data::default()
        };
        let mut bytes = [0xaa; HEADER];
        header.emit(&mut bytes);
        assert_eq!(bytes, [0x10, 9, 3, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn each_fault_has_its_name() {
        let mut bytes = [0; ADVERTISEMENT];
        assert_eq!(parse(&[]), Err(ParseError::MflowTruncated));
        assert_eq!(parse(&bytes), Err(ParseError::MflowVersion));
        bytes[0] = 0x12;
        assert_eq!(parse(&bytes), Err(ParseError::MflowVersion));
        bytes[0] = 0x11;
        assert_eq!(parse(&bytes[..19]), Err(ParseError::MflowTruncated));
        bytes[0] = 0x10;
        assert_eq!(parse(&bytes[..19]), Err(ParseError::MflowTruncated));
        bytes[2] = 5;
        assert_eq!(parse(&bytes), Err(ParseError::MflowMalformed));
        (bytes[2], bytes[3]) = (0, 2);
        assert_eq!(parse(&bytes), Err(ParseError::MflowMalformed));
    }

    #[test]
    fn numbers_are_compared_over_the_wrap() {
        assert!(after(1, u32::MAX) && after(5, 4));
        assert!(!after(u32::MAX, 1) && !after(4, 4));
    }

    fn any_data() -> impl Strategy<Value = Data> {
        let flags = any::<[bool; 4]>();
        let coding = prop_oneof![Just(Coding::Mpeg), Just(Coding::H264)];
        (flags, 0u8..5, coding, any::<[u32; 4]>()).prop_map(|(flags, kind, coding, numbers)| {
            let [first, last, ends_super, ends_stream] = flags;
            let [sequence, picture, clock, round_trip] = numbers;
            Data { first, last, ends_super, ends_stream, kind, coding, sequence, picture, clock, round_trip }
        })
    }

    proptest! {
        #[test]
        fn data_is_read_back_as_written(header in any_data(), payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = std::vec![0xff; HEADER];
            header.emit(&mut bytes);
            bytes.extend_from_slice(&payload);
            prop_assert_eq!(parse(&bytes), Ok(Packet::Data(header, &payload)));
        }

        #[test]
        fn an_advertisement_is_read_back_as_written(stop: bool, super_packet: u16, numbers: [u32; 4]) {
            let [processed, highest, clock, held] = numbers;
            let advertisement = Advertisement { stop, super_packet, processed, highest, clock, held };
            let mut bytes = [0xff; ADVERTISEMENT];
            advertisement.emit(&mut bytes);
            prop_assert_eq!(parse(&bytes), Ok(Packet::Advertisement(advertisement)));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..40), kind in 0x10u8..0x12) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok(Packet::Data(_, payload)) = parse(&bytes) {
                prop_assert_eq!(payload, &bytes[HEADER..]);
            }
        }
    }
}
