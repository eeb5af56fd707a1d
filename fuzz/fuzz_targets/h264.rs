//! Any sequence of RTP payloads of H.264: what comes out are whole units with start codes, none
//! larger than may be, and what is held is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_media::h264::{Reassembly, START_CODE};

const LIMIT: usize = 300;

fuzz_target!(|bytes: &[u8]| {
    let mut reassembly = Reassembly::new(LIMIT);
    let mut rest = bytes;
    // Each payload: a byte that says whether there is a gap, and its length.
    while let [how, tail @ ..] = rest {
        let (payload, behind) = tail.split_at(tail.len().min(usize::from(how >> 1)));
        rest = behind;
        let _ = reassembly.push(payload, how & 1 == 1, |unit, _| {
            assert!(unit.starts_with(&START_CODE) && unit.len() > START_CODE.len() && unit.len() <= LIMIT);
        });
        assert!(reassembly.memory() <= LIMIT as u64);
    }
});
