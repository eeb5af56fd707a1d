//! Any bytes as an RTP packet and its payload by RFC 2250 and by RFC 6184: no part lies outside the
//! packet, and the headers are the same when written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_wire::rtp_h264::{self, Payload};
use silk_wire::{rtp, rtp_mpv};

fuzz_target!(|bytes: &[u8]| {
    payload(bytes);
    let Ok(packet) = rtp::parse(bytes) else { return };
    assert_eq!(&bytes[packet.length..][..packet.payload.len()], packet.payload);
    payload(packet.payload);
});

fn payload(bytes: &[u8]) {
    if let Ok((header, length)) = rtp_mpv::parse(bytes) {
        assert!(length <= bytes.len());
        let mut written = [0; rtp_mpv::MOST];
        let emitted = header.emit(&mut written);
        assert_eq!(rtp_mpv::parse(&written[..emitted]), Ok((header, emitted)));
    }
    match rtp_h264::parse(bytes) {
        Ok(Payload::Single(unit)) => assert_eq!(unit, bytes),
        Ok(Payload::Several(units)) => {
            assert_eq!(units.map(|unit| unit.len() + 2).sum::<usize>() + 1, bytes.len());
        }
        Ok(Payload::Piece(fragment, piece)) => {
            let written = [&fragment.header()[..], piece].concat();
            assert_eq!(rtp_h264::parse(&written), Ok(Payload::Piece(fragment, piece)));
        }
        Err(_) => {}
    }
}
