//! Any text as a configuration, as a graph and as a list of whom to refuse: accepted, or refused with at least one fault
//! that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_config::{Config, Graph, Source, networks};

fuzz_target!(|text: &str| {
    if let Err(faults) = Config::parse("fuzzed", text) {
        assert!(!faults.to_string().is_empty());
    }
    if let Err(faults) = Graph::parse("fuzzed", text) {
        assert!(!faults.to_string().is_empty());
    }
    if let Err(faults) = networks(&Source { name: "fuzzed".into(), text: text.into() }) {
        assert!(!faults.to_string().is_empty());
    }
});
