//! What the TCP experiment writes down. The JSON form is documented in
//! `bench/README.md` and `bench/schema.json`.

use super::super::machine::Machine;
use super::compare::Comparison;
use super::measurement::Measurement;
use serde::{Deserialize, Serialize};

/// A whole run, as written to the JSON file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Machine,
    /// What chance in bad networks came from; 0 in runs that were made before it was kept.
    #[serde(default)]
    pub seed: u64,
    /// Every measurement.
    pub measurements: Vec<Measurement>,
    /// What they say, computed round by round.
    pub comparisons: Vec<Comparison>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}
