//! What the web experiment writes down. The JSON form is documented in `bench/README.md` and
//! `bench/schema.json`.

use super::cell::Cell;
use super::machine::Machine;
use super::ratio::Ratio;
use serde::{Deserialize, Serialize};

/// The whole experiment, as written to the JSON file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Machine,
    /// Every measurement.
    pub cells: Vec<Cell>,
    /// What the cells say, computed round by round.
    pub ratios: Vec<Ratio>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}
