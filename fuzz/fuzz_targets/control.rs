//! Any bytes as a message of the control protocol: parsed, and then the same when written and
//! parsed again; or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_control::{Reply, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = postcard::from_bytes::<Request>(bytes) {
        let written = postcard::to_stdvec(&request).expect("what was read can be written");
        assert_eq!(postcard::from_bytes::<Request>(&written), Ok(request));
    }
    if let Ok(reply) = postcard::from_bytes::<Reply>(bytes) {
        let written = postcard::to_stdvec(&reply).expect("what was read can be written");
        assert_eq!(postcard::from_bytes::<Reply>(&written), Ok(reply));
    }
});
