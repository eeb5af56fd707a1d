//! Any text as a configuration and as a graph: accepted, or refused with at least one fault
//! that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_config::{Config, Graph};

fuzz_target!(|text: &str| {
    if let Err(faults) = Config::parse("fuzzed", text) {
        assert!(!faults.to_string().is_empty());
    }
    if let Err(faults) = Graph::parse("fuzzed", text) {
        assert!(!faults.to_string().is_empty());
    }
});
