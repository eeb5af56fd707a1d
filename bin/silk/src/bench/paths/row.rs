//! What the micro-benchmarks write down: one row for each question, beside what it is to reach and what
//! SILK reported for it. The JSON form is documented in `bench/README.md` and `bench/schema.json`.

use super::super::machine::Machine;
use super::super::ratio::median;
use serde::{Deserialize, Serialize};

/// A whole run, as written to the JSON file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// Where it ran.
    pub machine: Machine,
    /// The CPU it kept to; absent where it could not choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<usize>,
    /// Every question, in the order of the table.
    pub rows: Vec<Row>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds per operation.
    Ns,
    /// Bytes of memory.
    Bytes,
}

/// What a figure is to be compared with, in its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peers {
    /// It must be no more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must: Option<f64>,
    /// We are after no more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<f64>,
    /// What SILK reported in 2002 (table 1), on a machine of its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silk_2002: Option<f64>,
}

impl Peers {
    /// Nothing to compare with.
    pub const NONE: Self = Self { must: None, after: None, silk_2002: None };

    /// SILK's figure alone, in microseconds as its table has it.
    pub const fn silk(micros: f64) -> Self {
        Self { must: None, after: None, silk_2002: Some(micros * 1e3) }
    }

    /// With what is to be reached, in nanoseconds.
    pub const fn goal(self, must: f64, after: f64) -> Self {
        Self { must: Some(must), after: Some(after), silk_2002: self.silk_2002 }
    }
}

/// One question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What is measured, in words.
    pub what: String,
    /// What the figures count.
    pub unit: Unit,
    /// The middle of the rounds.
    pub median: f64,
    /// The least round.
    pub min: f64,
    /// The greatest round.
    pub max: f64,
    /// The least of the short samples that the rounds are made of: what the code costs while nobody
    /// disturbs it.
    pub best: f64,
    /// Each round's figure: the middle of its samples.
    pub rounds: Vec<f64>,
    /// Operations measured, over all rounds.
    pub operations: u64,
    /// What to compare it with.
    #[serde(flatten)]
    pub peers: Peers,
}

impl Row {
    /// A row of what the rounds gave, of which there is at least one.
    pub fn new(what: String, unit: Unit, peers: Peers, rounds: &[Round]) -> Self {
        let figures: Vec<f64> = rounds.iter().map(|round| round.middle).collect();
        let mut ordered = figures.clone();
        ordered.sort_by(f64::total_cmp);
        Self {
            what,
            unit,
            median: median(&ordered),
            min: ordered[0],
            max: ordered[ordered.len() - 1],
            best: rounds.iter().map(|round| round.best).fold(f64::INFINITY, f64::min),
            rounds: figures,
            operations: rounds.iter().map(|round| round.operations).sum(),
            peers,
        }
    }

    /// A row of one figure that does not change from round to round.
    pub fn counted(what: String, bytes: u64) -> Self {
        let round = Round { middle: bytes as f64, best: bytes as f64, operations: 1 };
        Self::new(what, Unit::Bytes, Peers::NONE, &[round])
    }
}

/// What one round found out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The middle of its samples, per operation.
    pub middle: f64,
    /// The least of its samples, per operation.
    pub best: f64,
    /// Operations in all of them.
    pub operations: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_middle_and_the_ends_of_its_rounds() {
        let round = |middle, best| Round { middle, best, operations: 10 };
        let rounds = [round(4.0, 3.0), round(9.0, 2.0), round(5.0, 4.0)];
        let row = Row::new("a hit".into(), Unit::Ns, Peers::silk(1.8).goal(100.0, 30.0), &rounds);
        assert_eq!((row.median, row.min, row.max, row.best, row.operations), (5.0, 4.0, 9.0, 2.0, 30));
        assert_eq!(row.peers, Peers { must: Some(100.0), after: Some(30.0), silk_2002: Some(1800.0) });
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }
}
