//! What the TCP experiment has measured: a figure of one system in one round, and those of all rounds together.

use super::super::counters::CpuShares;
use super::super::ends::Unit;
use super::super::ratio::median;
use super::row::Row;
use serde::{Deserialize, Serialize};

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
