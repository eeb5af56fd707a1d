//! Any bytes as an elementary stream, pushed in any pieces: refused, or cut into packets that are the
//! stream again, none too large; and the packets as RTP.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_media::Coding;
use silk_media::alf::{Cutter, LOOKED_AT, NotVideo, RTP_HEADERS, RtpSource};

fuzz_target!(|bytes: &[u8]| {
    let [how, limit, stream @ ..] = bytes else { return };
    let coding = if how & 1 == 0 { Coding::Mpeg } else { Coding::H264 };
    let chunk = usize::from(how >> 1) + 1;
    let _ = cut(coding, usize::from(*limit).max(16), chunk, stream);
});

fn cut(coding: Coding, limit: usize, chunk: usize, stream: &[u8]) -> Result<(), NotVideo> {
    let (mut cutter, mut source) = (Cutter::new(coding, limit), RtpSource::new(96, 1, 0));
    let mut out = Vec::new();
    let mut take = |cutter: &mut Cutter| -> Result<(), NotVideo> {
        while let Some(packet) = cutter.next()? {
            assert!((1..=limit).contains(&packet.bytes.len()));
            out.extend_from_slice(packet.bytes);
            source.send(&packet, packet.picture, |headers, payload| {
                assert!(headers.len() <= RTP_HEADERS && payload.len() <= limit);
            });
        }
        Ok(())
    };
    for bytes in stream.chunks(chunk) {
        cutter.push(bytes);
        take(&mut cutter)?;
        assert!(cutter.held() <= limit + LOOKED_AT + chunk);
    }
    cutter.finish();
    take(&mut cutter)?;
    assert_eq!(out, &stream[cutter.skipped() as usize..]);
    Ok(())
}
