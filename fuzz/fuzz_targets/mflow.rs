//! Any bytes as a packet of MFLOW: refused, or read, and then the same when written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_wire::mflow::{self, Packet};

fuzz_target!(|bytes: &[u8]| {
    match mflow::parse(bytes) {
        Ok(Packet::Data(data, payload)) => {
            let mut written = vec![0; mflow::HEADER];
            data.emit(&mut written);
            written.extend_from_slice(payload);
            assert_eq!(mflow::parse(&written), Ok(Packet::Data(data, payload)));
        }
        Ok(Packet::Advertisement(advertisement)) => {
            let mut written = [0; mflow::ADVERTISEMENT];
            advertisement.emit(&mut written);
            assert_eq!(mflow::parse(&written), Ok(Packet::Advertisement(advertisement)));
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
});
