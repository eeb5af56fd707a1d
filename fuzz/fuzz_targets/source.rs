//! Any bytes as what a source over MFLOW hears, between packets that it sends: it never has more on
//! their way than it may, whatever it is told.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_instant::Instant;
use silk_media::{Act, Piece, Sending, Source, SourceOptions};

fuzz_target!(|bytes: &[u8]| {
    let options = SourceOptions { sending: Sending::Free, ..SourceOptions::default() };
    let mut source = Source::new(options, Instant::ZERO);
    // The packets' clocks are in the words, so that some of these are believed.
    for (n, word) in bytes.chunks(20).enumerate() {
        let now = Instant::from_micros(n as u64);
        for _ in 0..4 {
            match source.next(now, Some(&Piece::default())) {
                Act::Send(_) | Act::Ask(_) => {}
                Act::Wait(_) | Act::Over(_) => break,
            }
        }
        source.hear(now, word);
        assert!(source.figures().outstanding <= 8192);
    }
});
