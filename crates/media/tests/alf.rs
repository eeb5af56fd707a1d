//! Streams made to the syntax of ISO 11172-2, 13818-2 and 14496-10, cut into packets: nothing is
//! lost, slices stay whole, every packet says which picture it belongs to.

use proptest::prelude::*;
use silk_media::Coding;
use silk_media::alf::{Cutter, LOOKED_AT, NotVideo, Packet, Part, Rate, RtpSource, h264_rate};
use silk_media::h264::Reassembly;
use silk_wire::{rtp, rtp_mpv};

/// A packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    bytes: Vec<u8>,
    picture: u32,
    kind: u8,
    first: bool,
    last: bool,
    part: Part,
    mpv: Option<rtp_mpv::Header>,
}

impl From<Packet<'_>> for Owned {
    fn from(packet: Packet<'_>) -> Self {
        let Packet { bytes, picture, kind, first, last, part, mpv } = packet;
        Self { bytes: bytes.to_vec(), picture, kind, first, last, part, mpv }
    }
}

/// All packets of a stream that is read in chunks of these sizes, in turn.
fn cut(coding: Coding, limit: usize, stream: &[u8], chunks: &[usize]) -> Result<Vec<Owned>, NotVideo> {
    let (mut cutter, mut packets) = (Cutter::new(coding, limit), Vec::new());
    let (mut rest, mut sizes) = (stream, chunks.iter().cycle());
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        rest = behind;
        cutter.push(chunk);
        while let Some(packet) = cutter.next()? {
            packets.push(packet.into());
        }
        assert!(cutter.held() <= limit + LOOKED_AT + chunk.len());
    }
    cutter.finish();
    while let Some(packet) = cutter.next()? {
        packets.push(packet.into());
    }
    assert_eq!(cutter.next().map(|packet| packet.map(Owned::from)), Ok(None), "behind the end is nothing");
    Ok(packets)
}

fn all(coding: Coding, limit: usize, stream: &[u8]) -> Vec<Owned> {
    cut(coding, limit, stream, &[4096]).expect("video")
}

const SEQUENCE: [u8; 12] = [0, 0, 1, 0xb3, 0x16, 0x01, 0x20, 0x13, 0xff, 0xff, 0xe0, 0x18];
const GROUP: [u8; 8] = [0, 0, 1, 0xb8, 0, 0x08, 0, 0x40];

fn picture(reference: u16, kind: u8) -> Vec<u8> {
    let word = reference << 6 | u16::from(kind) << 3 | 7;
    [&[0, 0, 1, 0][..], &word.to_be_bytes(), &[0xff, 0xf8 | 3, 0xb8]].concat()
}

/// A picture coding extension; structure: 1 top, 2 bottom field, 3 frame.
fn coding_extension(structure: u8) -> Vec<u8> {
    vec![0, 0, 1, 0xb5, 0x8f, 0xff, 0xf0 | structure, 0x80, 0x80]
}

/// A slice of `length` bytes behind its start code.
fn slice(row: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 1, row];
    bytes.resize(4 + length, 0x55);
    bytes
}

/// Number, type, first, last and length of each packet.
fn shape(packets: &[Owned]) -> Vec<(u32, u8, bool, bool, usize)> {
    packets.iter().map(|p| (p.picture, p.kind, p.first, p.last, p.bytes.len())).collect()
}

#[test]
fn headers_go_with_the_first_slice_and_slices_are_packed_as_they_fit() {
    let stream =
        [&SEQUENCE[..], &GROUP, &picture(0, 1), &slice(1, 20), &slice(2, 20), &slice(3, 20)].concat();
    let packets = all(Coding::Mpeg, 60, &stream);
    assert_eq!(shape(&packets), [(0, 1, true, false, 12 + 8 + 9 + 24), (0, 1, false, true, 48)]);
    let told = packets.iter().map(|packet| {
        let mpv = packet.mpv.unwrap();
        (mpv.sequence, mpv.begins_slice, mpv.ends_slice, mpv.kind)
    });
    assert_eq!(told.collect::<Vec<_>>(), [(true, true, true, 1), (false, true, true, 1)]);
}

#[test]
fn headers_that_leave_no_room_for_a_slice_go_alone() {
    let stream = [&SEQUENCE[..], &GROUP, &picture(0, 1), &slice(1, 40)].concat();
    let packets = all(Coding::Mpeg, 60, &stream);
    assert_eq!(shape(&packets), [(0, 1, true, false, 29), (0, 1, false, true, 44)]);
    let begins: Vec<bool> = packets.iter().map(|packet| packet.mpv.unwrap().begins_slice).collect();
    assert_eq!(begins, [false, true]);
}

#[test]
fn a_slice_larger_than_a_packet_is_split_and_says_so() {
    let stream = [&SEQUENCE[..], &picture(0, 1), &slice(1, 10), &slice(2, 100), &slice(3, 10)].concat();
    let packets = all(Coding::Mpeg, 50, &stream);
    assert_eq!(packets.iter().map(|p| p.bytes.len()).collect::<Vec<_>>(), [35, 50, 50, 4, 14]);
    let parts: Vec<Part> = packets.iter().map(|packet| packet.part).collect();
    assert_eq!(parts, [Part::Whole, Part::Begin, Part::Middle, Part::End, Part::Whole]);
    let told =
        packets.iter().map(|packet| (packet.mpv.unwrap().begins_slice, packet.mpv.unwrap().ends_slice));
    let expected = [(true, true), (true, false), (false, false), (false, true), (true, true)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(packets[4].last && !packets[3].last);
}

#[test]
fn pictures_are_numbered_as_they_are_shown() {
    let pictures = [(2, 1), (0, 3), (1, 3), (3, 2)]
        .map(|(reference, kind)| [picture(reference, kind), slice(1, 9)].concat());
    let group = [&SEQUENCE[..], &GROUP, &pictures.concat()].concat();
    let numbers: Vec<(u32, u8)> =
        all(Coding::Mpeg, 100, &group.repeat(2)).iter().map(|packet| (packet.picture, packet.kind)).collect();
    assert_eq!(numbers, [(2, 1), (0, 3), (1, 3), (3, 2), (6, 1), (4, 3), (5, 3), (7, 2)]);
}

#[test]
fn two_fields_are_one_picture() {
    let field =
        |kind, structure| [picture(0, kind), coding_extension(structure), slice(1, 5), slice(2, 5)].concat();
    let stream = [&SEQUENCE[..], &GROUP, &field(1, 1), &field(2, 2)].concat();
    let packets = all(Coding::Mpeg, 48, &stream);
    let expected = [(0, 1, true, false, 47), (0, 1, false, false, 9), (0, 1, false, true, 36)];
    assert_eq!(shape(&packets), expected);
    assert_eq!(packets[2].mpv.unwrap().kind, 2, "RFC 2250 tells the field's own type");
}

#[test]
fn the_end_of_a_sequence_goes_with_the_picture_before_it() {
    let one = [&SEQUENCE[..], &GROUP, &picture(0, 1), &slice(1, 5), &[0, 0, 1, 0xb7]].concat();
    let packets = all(Coding::Mpeg, 100, &one.repeat(2));
    assert_eq!(shape(&packets), [(0, 1, true, true, 42), (1, 1, true, true, 42)]);
}

#[test]
fn what_lies_before_the_first_sequence_header_is_passed_by() {
    let stream = [&slice(7, 30), &SEQUENCE[..], &picture(0, 1), &slice(1, 5)].concat();
    let mut cutter = Cutter::new(Coding::Mpeg, 100);
    cutter.push(&stream);
    cutter.finish();
    assert_eq!(cutter.next().unwrap().unwrap().bytes, &stream[34..]);
    let sequence = cutter.sequence().unwrap();
    assert_eq!(
        (sequence.width, sequence.height, sequence.rate),
        (352, 288, Some(Rate { pictures: 25, seconds: 1 }))
    );
    assert_eq!(cutter.skipped(), 34);
}

#[test]
fn what_is_not_video_is_refused_with_what_it_is() {
    let fault = |coding, bytes: &[u8]| cut(coding, 1400, bytes, &[1000]).unwrap_err();
    assert_eq!(fault(Coding::Mpeg, b"just a text, and not a long one"), NotVideo::NoStartCode);
    assert_eq!(fault(Coding::Mpeg, &vec![0x55; 100_000]), NotVideo::NoStartCode);
    assert_eq!(fault(Coding::Mpeg, &slice(1, 50).repeat(2000)), NotVideo::NoSequence);
    assert_eq!(fault(Coding::Mpeg, &[0, 0, 1, 0x67, 0x42, 0, 0x1e]), NotVideo::NoSequence);
    assert_eq!(fault(Coding::H264, &[&SEQUENCE[..], &picture(0, 1)].concat()), NotVideo::NoSequence);
    for coding in [Coding::Mpeg, Coding::H264] {
        assert_eq!(fault(coding, &[0, 0, 1, 0xba, 0x44, 0, 4, 0]), NotVideo::ProgramStream);
        let packet = [&[0x47][..], &[0xff; 187]].concat();
        assert_eq!(fault(coding, &packet.repeat(4)), NotVideo::TransportStream);
    }
    let headers = [&SEQUENCE[..], &[0x55; LOOKED_AT]].concat();
    assert_eq!(fault(Coding::Mpeg, &headers.repeat(2)), NotVideo::EndlessHeaders);
}

#[test]
fn nothing_at_all_is_not_video_and_is_not_an_endless_wait() {
    let mut cutter = Cutter::new(Coding::Mpeg, 1400);
    assert!(cutter.next().unwrap().is_none(), "more may come");
    cutter.finish();
    assert_eq!(cutter.next().unwrap_err(), NotVideo::NoStartCode);
}

#[test]
fn a_rate_gives_each_picture_its_time() {
    let rate = Rate { pictures: 30_000, seconds: 1001 };
    assert_eq!((rate.stamp(1, 90_000), rate.stamp(30_000, 90_000)), (3003, 1001 * 90_000));
    assert_eq!(rate.stamp(u32::MAX, 90_000), u64::from(u32::MAX) * 3003);
}

/// NAL units of a small H.264 stream: parameters, an IDR picture of two slices, a P, a B.
fn nal(kind: u8, body: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = [&[0, 0, 0, 1, kind][..], body].concat();
    bytes.resize(bytes.len() + length, 0x55);
    bytes
}

fn h264() -> Vec<u8> {
    // first_mb_in_slice 0 or 3, slice_type 7 (I), 0 (P), 1 (B).
    let (i, more, p, b) = ([0b1000_1000], [0b0010_0000, 0b1000_0000], [0b1100_0000], [0b1010_0000]);
    [
        nal(0x67, &[], 10),
        nal(0x68, &[], 4),
        nal(0x65, &i, 40),
        nal(0x65, &more, 200),
        nal(0x41, &p, 20),
        nal(0x01, &b, 20),
    ]
    .concat()
}

#[test]
fn h264_is_cut_into_access_units_of_whole_units() {
    let packets = all(Coding::H264, 100, &h264());
    let expected = [
        (0, 1, true, false, 70),
        (0, 1, false, false, 100),
        (0, 1, false, false, 100),
        (0, 1, false, true, 7),
        (1, 2, true, true, 26),
        (2, 3, true, true, 25),
    ];
    assert_eq!(shape(&packets), expected);
    let parts: Vec<Part> = packets.iter().map(|packet| packet.part).collect();
    assert_eq!(parts, [Part::Whole, Part::Begin, Part::Middle, Part::End, Part::Whole, Part::Whole]);
}

#[test]
fn h264_tells_its_rate_however_its_parameters_come() {
    let parameters = [
        0x67, 0x64, 0x00, 0x1e, 0xac, 0xd9, 0x40, 0xa0, 0x3d, 0xb0, 0x11, 0x00, 0x00, 0x03, 0x00, 0x01, 0x00,
        0x00, 0x03, 0x00, 0x32, 0x0f, 0x16, 0x2d, 0x96,
    ];
    let rate = Some(Rate { pictures: 50, seconds: 2 });
    assert_eq!(h264_rate(&parameters), rate, "a payload of RTP");
    let several = [&[0x78, 0, 1, 0x09, 0, parameters.len() as u8][..], &parameters].concat();
    assert_eq!(h264_rate(&several), rate, "several in one");
    let with_codes = [&[0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1][..], &parameters, &[0, 0, 0, 1, 0x68]].concat();
    assert_eq!(h264_rate(&with_codes), rate, "with start codes");
    assert_eq!(h264_rate(&h264()), None, "parameters without a rate");
    assert_eq!(h264_rate(&[]), None);
}

/// The datagrams of a stream as RTP.
fn datagrams(coding: Coding, limit: usize, stream: &[u8]) -> Vec<Vec<u8>> {
    let payload_type = if coding == Coding::Mpeg { rtp::MPV } else { 96 };
    let (mut source, mut datagrams) = (RtpSource::new(payload_type, 7, 65_530), Vec::new());
    let mut cutter = Cutter::new(coding, limit);
    cutter.push(stream);
    cutter.finish();
    while let Some(packet) = cutter.next().unwrap() {
        source.send(&packet, packet.picture * 3600, |headers, payload| {
            datagrams.push([headers, payload].concat())
        });
    }
    datagrams
}

#[test]
fn h264_over_rtp_comes_out_as_it_went_in() {
    let stream = h264();
    let mut reassembly = Reassembly::new(1000);
    let (mut units, mut markers) = (Vec::new(), 0);
    for (n, datagram) in datagrams(Coding::H264, 100, &stream).iter().enumerate() {
        let packet = rtp::parse(datagram).unwrap();
        assert_eq!(packet.header.sequence(), 65_530u16.wrapping_add(n as u16));
        markers += usize::from(packet.header.marker());
        reassembly.push(packet.payload, false, |unit, _| units.extend_from_slice(unit)).unwrap();
    }
    assert_eq!((units, markers), (stream, 3));
}

/// What a receiver makes of the stream, sent in datagrams of at most `limit` bytes and headers.
fn received(limit: usize, stream: &[u8]) -> Vec<u8> {
    let (mut reassembly, mut units) = (Reassembly::new(1000), Vec::new());
    for datagram in datagrams(Coding::H264, limit, stream) {
        let packet = rtp::parse(&datagram).unwrap();
        reassembly.push(packet.payload, false, |unit, _| units.extend_from_slice(unit)).unwrap();
    }
    units
}

#[test]
fn zeros_where_a_unit_is_cut_are_the_units_own() {
    // One and two zeros as the last bytes before one cut or the other, and everywhere else.
    let body = [&[0b1000_1000][..], &[7, 0, 0, 3, 9, 0, 5].repeat(40), &[1]].concat();
    let stream = [nal(0x67, &[], 10), nal(0x68, &[], 4), nal(0x65, &body, 0), nal(0x41, &body, 0)].concat();
    for limit in 40..120 {
        assert_eq!(received(limit, &stream), stream, "cut at {limit}");
    }
}

#[test]
fn zeros_behind_a_unit_are_not_sent() {
    let slice = nal(0x65, &[0b1000_1000], 100);
    let sent = |zeros: usize| {
        let behind = vec![0; zeros];
        [&nal(0x67, &[], 10)[..], &behind, &nal(0x68, &[], 4), &slice, &behind].concat()
    };
    assert_eq!(received(60, &sent(3)), sent(0));
}

#[test]
fn mpeg_over_rtp_carries_the_header_of_rfc_2250() {
    let stream =
        [&SEQUENCE[..], &GROUP, &picture(0, 1), &slice(1, 20), &picture(3, 2), &slice(1, 100)].concat();
    let mut bytes = Vec::new();
    let told: Vec<_> = datagrams(Coding::Mpeg, 80, &stream)
        .iter()
        .map(|datagram| {
            let packet = rtp::parse(datagram).unwrap();
            let (header, length) = rtp_mpv::parse(packet.payload).unwrap();
            bytes.extend_from_slice(&packet.payload[length..]);
            let slices = (header.begins_slice, header.ends_slice);
            (
                packet.header.timestamp(),
                packet.header.marker(),
                header.temporal_reference,
                header.kind,
                slices,
            )
        })
        .collect();
    let expected = [
        (0, true, 0, 1, (true, true)),
        (3 * 3600, false, 3, 2, (false, false)),
        (3 * 3600, false, 3, 2, (true, false)),
        (3 * 3600, true, 3, 2, (false, true)),
    ];
    assert_eq!((told, bytes), (expected.to_vec(), stream));
}

/// A stream of any well-formed units: the first a sequence header, the others drawn.
fn units() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let body = || proptest::collection::vec(1u8..=255, 0..40);
    let unit = prop_oneof![
        8 => (1u8..0xb0, prop_oneof![9 => body(), 1 => proptest::collection::vec(1u8..=255, 100..400)]).prop_map(|(row, body)| [&[0, 0, 1, row][..], &body].concat()),
        4 => (0u16..1024, 1u8..5).prop_map(|(reference, kind)| picture(reference, kind)),
        1 => (1u8..4).prop_map(coding_extension),
        1 => Just(SEQUENCE.to_vec()),
        1 => Just(GROUP.to_vec()),
        1 => Just(vec![0, 0, 1, 0xb7]),
        1 => body().prop_map(|body| [&[0, 0, 1, 0xb2][..], &body, &[0, 0]].concat()),
    ];
    proptest::collection::vec(unit, 0..40).prop_map(|mut units| {
        units.insert(0, SEQUENCE.to_vec());
        units
    })
}

proptest! {
    #[test]
    fn packets_together_are_the_stream_and_hold_whole_slices(
        units in units(),
        limit in 64usize..200,
        chunks in proptest::collection::vec(1usize..300, 1..5),
    ) {
        let stream = units.concat();
        let packets = cut(Coding::Mpeg, limit, &stream, &chunks).unwrap();
        prop_assert_eq!(packets.iter().flat_map(|packet| packet.bytes.clone()).collect::<Vec<_>>(), stream.clone());
        prop_assert_eq!(&packets, &cut(Coding::Mpeg, limit, &stream, &[1 << 20]).unwrap(), "however it is read");
        let ends: Vec<usize> = units.iter().scan(0, |at, unit| { *at += unit.len(); Some(*at) }).collect();
        let (mut at, mut before): (usize, Option<(u32, bool)>) = (0, None);
        for packet in &packets {
            prop_assert!(!packet.bytes.is_empty() && packet.bytes.len() <= limit);
            let (begins, next) = (at == 0 || ends.contains(&at), at + packet.bytes.len());
            let whole = ends.contains(&next);
            let part = match (begins, whole) {
                (true, true) => Part::Whole,
                (true, false) => Part::Begin,
                (false, false) => Part::Middle,
                (false, true) => Part::End,
            };
            prop_assert_eq!(packet.part, part);
            if part != Part::Whole {
                let unit = ends.iter().position(|end| *end > at).unwrap();
                prop_assert!(units[unit].len() > limit, "only what is too large is split");
            }
            // What is not the first of a picture goes on with the one before, which had not ended.
            prop_assert!(packet.first || before == Some((packet.picture, false)));
            before = Some((packet.picture, packet.last));
            at = next;
        }
    }

    #[test]
    fn any_bytes_are_cut_without_loss_or_refused(
        bytes in proptest::collection::vec(prop_oneof![3 => Just(0u8), 2 => Just(1), 1 => 0xb0u8..0xba, 1 => any::<u8>()], 0..600),
        limit in 0usize..80,
        h264: bool,
        chunk in 1usize..100,
    ) {
        let (coding, start) = if h264 { (Coding::H264, &[0, 0, 1, 0x67][..]) } else { (Coding::Mpeg, &SEQUENCE[..]) };
        let stream = [start, &bytes].concat();
        let packets = cut(coding, limit, &stream, &[chunk]).unwrap();
        prop_assert_eq!(packets.iter().flat_map(|packet| packet.bytes.clone()).collect::<Vec<_>>(), stream);
        let _ = cut(coding, limit, &bytes, &[chunk]);
    }
}
