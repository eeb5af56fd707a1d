//! What the cells say: each system against itself unloaded, against Linux, and against silk with equal
//! priorities, computed round by round so that the spread is that of the ratio itself.

use super::cell::Cell;
use serde::{Deserialize, Serialize};

/// A comparison the experiment makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Preferred mean beside the standard clients ÷ alone, same system.
    LoadedOverUnloaded,
    /// Preferred 99th percentile beside the standard clients, in milliseconds.
    LoadedP99Ms,
    /// Preferred mean alone ÷ Linux's.
    UnloadedOverLinux,
    /// Standard requests per second ÷ Linux's.
    ThroughputOverLinux,
    /// Bytes served to all clients ÷ those of silk with equal priorities.
    BytesOverEqual,
    /// Preferred mean beside a flood of minimum-size packets ÷ alone, same system.
    FloodedOverUnloaded,
    /// Mean from unblocking a preferred server thread to its running, in microseconds.
    UnblockUs,
}

/// What a comparison must reach and what we are after.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The comparison.
    pub measure: Measure,
    /// How it reads in a table.
    pub label: &'static str,
    /// The system that is judged by it.
    pub system: &'static str,
    /// What must be reached.
    pub must: f64,
    /// What we are after.
    pub after: f64,
    /// Whether more is better.
    pub more: bool,
}

/// The goals, in the order of the table.
pub const GOALS: [Goal; 8] = [
    Goal {
        measure: Measure::LoadedOverUnloaded,
        label: "preferred mean, {} standard clients ÷ alone",
        system: "silk-extended",
        must: 1.5,
        after: 1.1,
        more: false,
    },
    Goal {
        measure: Measure::LoadedP99Ms,
        label: "preferred p99, {} standard clients, ms",
        system: "silk-extended",
        must: 1.0,
        after: 0.4,
        more: false,
    },
    Goal {
        measure: Measure::UnloadedOverLinux,
        label: "preferred mean alone ÷ Linux's",
        system: "silk-extended",
        must: 1.0,
        after: 0.6,
        more: false,
    },
    Goal {
        measure: Measure::ThroughputOverLinux,
        label: "standard requests/s, {} clients ÷ Linux's",
        system: "silk-equal",
        must: 1.0,
        after: 1.5,
        more: true,
    },
    Goal {
        measure: Measure::BytesOverEqual,
        label: "bytes served in all, {} clients, extended ÷ equal",
        system: "silk-extended",
        must: 0.95,
        after: 1.0,
        more: true,
    },
    Goal {
        measure: Measure::FloodedOverUnloaded,
        label: "preferred mean beside a flood ÷ alone",
        system: "silk-extended",
        must: 1.5,
        after: 1.1,
        more: false,
    },
    Goal {
        measure: Measure::FloodedOverUnloaded,
        label: "the same, a receive queue for each class",
        system: "silk-queues",
        must: 1.5,
        after: 1.1,
        more: false,
    },
    Goal {
        measure: Measure::UnblockUs,
        label: "unblocked to running, {} standard clients, µs",
        system: "silk-extended",
        must: 50.0,
        after: 5.0,
        more: false,
    },
];

impl Goal {
    /// Whether a peer's figure stands beside silk's: not that of Linux over itself.
    pub fn has_peer(&self, system: &str) -> bool {
        match self.measure {
            Measure::BytesOverEqual | Measure::UnblockUs => false,
            Measure::UnloadedOverLinux | Measure::ThroughputOverLinux => system != "linux",
            _ => true,
        }
    }

    /// Whether a figure reaches a bound.
    pub fn reaches(&self, figure: f64, bound: f64) -> bool {
        if self.more { figure >= bound } else { figure <= bound }
    }
}

/// One comparison for one system, file size and load, with a figure for each round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// What is compared.
    pub measure: Measure,
    /// Which system.
    pub system: String,
    /// Size of the file, in units of 1 024 bytes.
    pub kb: u32,
    /// Standard clients.
    pub clients: u32,
    /// The figure of each round.
    pub rounds: Vec<f64>,
    /// Their middle.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// The greatest of them.
    pub max: f64,
}

/// The loads that the comparisons are about: 96 standard clients and more, or the most there were.
pub fn loads(cells: &[Cell]) -> Vec<u32> {
    let all = sorted(cells.iter().map(|cell| cell.clients));
    let heavy: Vec<u32> = all.iter().copied().filter(|clients| *clients >= 96).collect();
    if heavy.is_empty() { all.into_iter().rfind(|clients| *clients > 0).into_iter().collect() } else { heavy }
}

/// The file sizes of the cells, ascending.
pub fn sizes(cells: &[Cell]) -> Vec<u32> {
    sorted(cells.iter().map(|cell| cell.kb))
}

/// The systems of the cells, in the order in which they ran.
pub fn systems(cells: &[Cell]) -> Vec<&str> {
    let mut systems = Vec::new();
    for cell in cells {
        if !systems.contains(&cell.system.as_str()) {
            systems.push(cell.system.as_str());
        }
    }
    systems
}

/// Those that were measured with this file size.
pub fn systems_of(cells: &[Cell], kb: u32) -> Vec<&str> {
    let has_some = |system: &&str| cells.iter().any(|cell| cell.kb == kb && cell.system == **system);
    systems(cells).into_iter().filter(has_some).collect()
}

/// Every comparison that the cells allow.
pub fn ratios(cells: &[Cell]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    let mut measures: Vec<Measure> = GOALS.iter().map(|goal| goal.measure).collect();
    measures.dedup();
    for measure in measures {
        for kb in sizes(cells) {
            for clients in measure.loads(cells) {
                let about = |system: &&str| ratio(cells, measure, system, kb, clients);
                ratios.extend(systems(cells).iter().filter_map(about));
            }
        }
    }
    ratios
}

fn ratio(cells: &[Cell], measure: Measure, system: &str, kb: u32, clients: u32) -> Option<Ratio> {
    let rounds: Vec<f64> = sorted(cells.iter().map(|cell| cell.round))
        .into_iter()
        .filter_map(|round| measure.figure(&Round { cells, kb, round }, system, clients))
        .filter(|figure| figure.is_finite())
        .collect();
    let mut ordered = rounds.clone();
    ordered.sort_by(f64::total_cmp);
    let (min, max) = (*ordered.first()?, *ordered.last()?);
    Some(Ratio {
        measure,
        system: system.to_owned(),
        kb,
        clients,
        median: median(&ordered),
        min,
        max,
        rounds,
    })
}

/// The middle of an ascending list that is not empty.
pub fn median(ordered: &[f64]) -> f64 {
    let middle = ordered.len() / 2;
    if ordered.len() % 2 == 1 { ordered[middle] } else { (ordered[middle - 1] + ordered[middle]) / 2.0 }
}

fn sorted(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    numbers.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// The cells of one file size in one round.
struct Round<'c> {
    cells: &'c [Cell],
    kb: u32,
    round: u32,
}

impl Round<'_> {
    /// A cell in which requests failed is no measurement.
    fn cell(&self, system: &str, clients: u32, flooded: bool) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.system == system && cell.kb == self.kb && cell.round == self.round && cell.counts())
                && (cell.clients == clients && cell.flood_pps.is_some() == flooded)
        })
    }

    fn mean(&self, system: &str, clients: u32) -> Option<f64> {
        Some(self.cell(system, clients, false)?.preferred_us.mean)
    }
}

impl Measure {
    /// The loads at which a comparison is made: unloaded ones have one.
    fn loads(self, cells: &[Cell]) -> Vec<u32> {
        match self {
            Self::UnloadedOverLinux | Self::FloodedOverUnloaded => vec![0],
            _ => loads(cells),
        }
    }

    fn figure(self, round: &Round, system: &str, clients: u32) -> Option<f64> {
        let cell = |system| round.cell(system, clients, false);
        Some(match self {
            Self::LoadedOverUnloaded => round.mean(system, clients)? / round.mean(system, 0)?,
            Self::LoadedP99Ms => cell(system)?.preferred_us.p99 / 1e3,
            Self::UnloadedOverLinux => round.mean(system, 0)? / round.mean("linux", 0)?,
            Self::ThroughputOverLinux => cell(system)?.standard_rps / cell("linux")?.standard_rps,
            Self::BytesOverEqual => cell(system)?.bytes_in_all() / cell("silk-equal")?.bytes_in_all(),
            Self::UnblockUs => cell(system)?.unblock_us?,
            Self::FloodedOverUnloaded => {
                round.cell(system, 0, true)?.preferred_us.mean / round.mean(system, 0)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Micros;
    use super::*;

    fn cell(system: &str, clients: u32, round: u32, mean: f64, standard: f64) -> Cell {
        Cell {
            system: system.into(),
            kb: 1,
            clients,
            round,
            preferred_us: Micros { mean, p50: mean, p99: 2.0 * mean, max: 3.0 * mean },
            preferred_rps: 1e6 / mean,
            standard_rps: standard,
            standard_rps_beside: standard,
            ..Cell::default()
        }
    }

    fn of(ratios: &[Ratio], measure: Measure, system: &str) -> Vec<f64> {
        let about = ratios.iter().filter(|r| r.measure == measure && r.system == system);
        about.flat_map(|r| [r.min, r.median, r.max]).collect()
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        let cells = [
            cell("linux", 0, 1, 100.0, 0.0),
            cell("linux", 96, 1, 1000.0, 500.0),
            cell("silk-equal", 0, 1, 50.0, 0.0),
            cell("silk-equal", 96, 1, 100.0, 1000.0),
            cell("linux", 0, 2, 200.0, 0.0),
            cell("linux", 96, 2, 1000.0, 1000.0),
            cell("silk-equal", 0, 2, 50.0, 0.0),
            cell("silk-equal", 96, 2, 50.0, 1000.0),
        ];
        let ratios = ratios(&cells);
        assert_eq!(of(&ratios, Measure::LoadedOverUnloaded, "linux"), [5.0, 7.5, 10.0]);
        assert_eq!(of(&ratios, Measure::LoadedOverUnloaded, "silk-equal"), [1.0, 1.5, 2.0]);
        assert_eq!(of(&ratios, Measure::UnloadedOverLinux, "silk-equal"), [0.25, 0.375, 0.5]);
        assert_eq!(of(&ratios, Measure::ThroughputOverLinux, "silk-equal"), [1.0, 1.5, 2.0]);
        assert_eq!(of(&ratios, Measure::LoadedP99Ms, "linux"), [2.0, 2.0, 2.0]);
        assert_eq!(of(&ratios, Measure::FloodedOverUnloaded, "linux"), [0.0; 0]);
    }

    #[test]
    fn a_flood_is_compared_with_the_same_system_alone() {
        let flooded = Cell { flood_pps: Some(1e5), ..cell("linux", 0, 1, 300.0, 0.0) };
        let ratios = ratios(&[cell("linux", 0, 1, 100.0, 0.0), flooded]);
        assert_eq!(of(&ratios, Measure::FloodedOverUnloaded, "linux"), [3.0; 3]);
        assert_eq!(of(&ratios, Measure::UnloadedOverLinux, "linux"), [1.0; 3]);
    }

    #[test]
    fn a_cell_with_failed_requests_is_not_compared() {
        let unloaded = cell("linux", 0, 1, 50.0, 0.0);
        let failed = Cell { failed: 1, ..cell("linux", 96, 1, 100.0, 1000.0) };
        assert_eq!(of(&ratios(&[unloaded, failed]), Measure::LoadedOverUnloaded, "linux"), [0.0; 0]);
    }

    #[test]
    fn a_system_is_told_only_where_it_was_measured() {
        let cells = [
            cell("linux", 0, 1, 100.0, 0.0),
            Cell { kb: 50, ..cell("linux", 0, 1, 100.0, 0.0) },
            cell("silk-queues", 0, 1, 50.0, 0.0),
        ];
        assert_eq!(systems_of(&cells, 1), ["linux", "silk-queues"]);
        assert_eq!(systems_of(&cells, 50), ["linux"]);
    }

    #[test]
    fn two_goals_of_one_measure_make_one_comparison_for_each_system() {
        let flooded = |system| Cell { flood_pps: Some(1e5), ..cell(system, 0, 1, 300.0, 0.0) };
        let cells = ["linux", "silk-extended", "silk-queues"]
            .map(|system| (cell(system, 0, 1, 100.0, 0.0), flooded(system)));
        let cells: Vec<Cell> = cells.into_iter().flat_map(|(alone, flooded)| [alone, flooded]).collect();
        let floods: Vec<_> = ratios(&cells)
            .into_iter()
            .filter(|ratio| ratio.measure == Measure::FloodedOverUnloaded)
            .collect();
        assert_eq!(
            floods.iter().map(|ratio| &*ratio.system).collect::<Vec<_>>(),
            ["linux", "silk-extended", "silk-queues"]
        );
    }

    #[test]
    fn the_heavy_loads_are_those_from_96_on_or_else_the_most() {
        let with =
            |clients: &[u32]| clients.iter().map(|c| cell("linux", *c, 1, 1.0, 1.0)).collect::<Vec<_>>();
        assert_eq!(loads(&with(&[0, 16, 96, 1000])), [96, 1000]);
        assert_eq!(loads(&with(&[0, 1, 16])), [16]);
        assert_eq!(loads(&with(&[0])), [0u32; 0]);
    }

    #[test]
    fn more_is_better_only_where_the_goal_says_so() {
        let reaches = |measure, figure, bound| {
            GOALS.iter().find(|goal| goal.measure == measure).unwrap().reaches(figure, bound)
        };
        assert!(reaches(Measure::LoadedOverUnloaded, 1.4, 1.5));
        assert!(!reaches(Measure::LoadedOverUnloaded, 1.6, 1.5));
        assert!(reaches(Measure::ThroughputOverLinux, 1.0, 1.0));
        assert!(!reaches(Measure::ThroughputOverLinux, 0.9, 1.0));
    }
}
