//! Any bytes as a command for SHELL: read, or refused with one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_modules::shell::parse;

fuzz_target!(|bytes: &[u8]| {
    if let Err(malformed) = parse(bytes) {
        let line = malformed.fault.to_string();
        assert!(!line.is_empty() && !line.contains('\n'));
    }
});
