//! Any bytes as a message of IGMP and of MLD: a question within bounds, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_wire::{igmp, mld};

fuzz_target!(|bytes: &[u8]| {
    if let Some(query) = igmp::parse(bytes) {
        assert!(query.group.is_none_or(|group| group.is_multicast()));
        assert!(query.within <= 3_174_400);
    }
    if let Some(query) = mld::parse(bytes) {
        assert!(query.group.is_none_or(|group| group.is_multicast()));
        assert!(query.within <= 0x1fff << 10);
    }
});
