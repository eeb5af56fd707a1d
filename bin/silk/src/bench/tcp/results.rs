//! What the TCP experiment writes down: an entry for each measurement. The JSON form is documented in
//! `bench/README.md` and `bench/schema.json`.

use super::super::cell::CpuShares;
use super::super::ends::Unit;
use super::super::machine::Machine;
use super::super::ratio::median;
use super::compare::Comparison;
use super::row::Row;
use serde::{Deserialize, Serialize};

/// A whole run, as written to the JSON file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Machine,
    /// Every measurement.
    pub measurements: Vec<Measurement>,
    /// What they say, computed round by round.
    pub comparisons: Vec<Comparison>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}

/// One figure of one system in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The row.
    pub row: Row,
    /// Its name in tables, such as `linux-napi`.
    pub system: String,
    /// What the figure is about, such as `p99` or `100 ms, 1 %`.
    pub of: String,
    /// The round, from 1.
    pub round: u32,
    /// The figure.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// How busy the CPUs were meanwhile.
    pub cpu: CpuShares,
}

/// The figures of one kind over all rounds.
pub struct Group<'r> {
    /// The measurements, of which there is at least one.
    pub of: Vec<&'r Measurement>,
}

impl Group<'_> {
    /// The middle of the rounds.
    pub fn middle(&self) -> f64 {
        let mut values: Vec<f64> = self.of.iter().map(|one| one.value).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    }
}

/// Measurements that differ in their round alone, in the order in which they were first made.
pub fn groups(measurements: &[Measurement]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for one in measurements {
        let same = |group: &&mut Group<'_>| {
            let first = group.of[0];
            first.row == one.row && first.system == one.system && first.of == one.of
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.of.push(one),
            None => groups.push(Group { of: vec![one] }),
        }
    }
    groups.sort_by_key(|group| group.of[0].row);
    groups
}
