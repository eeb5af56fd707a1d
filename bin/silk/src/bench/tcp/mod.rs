//! `silk bench tcp`: what TCP and UDP over silk do beside Linux's, in one run: one flow each way, round
//! trips, connections, a flood of SYNs, datagrams, bad networks, many connections, requests over kept ones.
//!
//! Systems take turns, row by row and round by round, each on hosts of its own: a slow minute of the machine
//! is everybody's, and each is first in another round. Both use CUBIC; all work of the server, receive processing included, is done on one CPU,
//! all of the client on the other. What fails is named and ends the run with an error; it never counts.

mod compare;
mod kept;
mod link;
mod measurement;
mod page;
mod plot;
mod results;
mod row;
mod system;
mod table;
mod turn;

use super::awake::Awake;
use super::machine::{Machine, busy_before};
use super::progress::Progress;
use super::rights::Rights;
use super::rounds::{self, Measured, in_turn};
use super::scratch::Place;
use super::scratch::Scratch;
use super::watch::Watch;
use super::{Failure, output, programs};
use clap::builder::RangedU64ValueParser;
use link::Link;
use measurement::Measurement;
use results::Results;
use row::Row;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use turn::Turn;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// A short run: two short rounds, and only the corners of the bad networks
    #[arg(long)]
    quick: bool,
    /// The rows to measure, by name or by letter (a to j)
    #[arg(long, value_delimiter = ',', value_enum)]
    rows: Vec<Row>,
    /// Only these bad networks: the round trip in ms, a stroke, the loss each way in percent, such as 100/0.1
    #[arg(long, value_name = "MS/PERCENT", value_delimiter = ',')]
    networks: Vec<Link>,
    /// Rounds over all rows
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    rounds: Option<u32>,
    /// Seconds of each measurement; a flow over a bad network takes twice as long, and three at least
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// What chance in bad networks comes from; by default another in each run, which the JSON tells
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the tables to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Put the tables into this Markdown document, between its two marks
    #[arg(long, value_name = "FILE")]
    into: Vec<PathBuf>,
    /// Measure nothing: show the results of an earlier run, from its JSON file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    show: Option<PathBuf>,
}

/// Measures, prints the tables and writes what was asked for.
pub fn run(options: &Options) -> Result<(), Failure> {
    output::check(options.json.iter().chain(&options.html), &options.into, table::BEGIN)?;
    let results = match &options.show {
        Some(file) => read_json(file)?,
        None => {
            programs::find_servers()?;
            measure(options)?
        }
    };
    output::print(&table::text(&results))?;
    if let Some(file) = &options.json {
        output::write_json(file, &results)?;
    }
    if let Some(file) = &options.html {
        output::write(file, &page::page(&results))?;
    }
    output::insert(&options.into, table::BEGIN, &table::for_document(&results))?;
    if results.incomplete.is_empty() { Ok(()) } else { Err(Failure::Incomplete(results.incomplete)) }
}

/// Reads an earlier run. Its comparisons are made anew: they follow from the measurements.
fn read_json(file: &Path) -> Result<Results, Failure> {
    let results: Results = output::read_json(file, "silk bench tcp")?;
    Ok(Results { comparisons: compare::comparisons(&results.measurements), ..results })
}

fn measure(options: &Options) -> Result<Results, Failure> {
    let plan = Plan::new(options);
    plan.check()?;
    let watch = Watch::on_signals();
    let busy = busy_before("silk bench tcp", &watch)?;
    let awake = Awake::hold();
    let Measured { all: measurements, incomplete } = plan.measure(&watch)?;
    let machine = Machine::describe(busy, awake.is_some());
    let comparisons = compare::comparisons(&measurements);
    Ok(Results { machine, seed: plan.seed, measurements, comparisons, incomplete })
}

/// Another number in each run.
fn any_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// The options with their defaults filled in.
struct Plan {
    rows: Vec<Row>,
    networks: Vec<Link>,
    rounds: u32,
    seconds: u64,
    seed: u64,
    quick: bool,
    evidence: Place,
}

impl Plan {
    fn new(options: &Options) -> Self {
        Self {
            rows: if options.rows.is_empty() { Row::ALL.to_vec() } else { options.rows.clone() },
            networks: if options.networks.is_empty() {
                Link::all(options.quick)
            } else {
                options.networks.clone()
            },
            rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 5 }),
            seconds: options.seconds.unwrap_or(if options.quick { 1 } else { 3 }),
            seed: options.seed.unwrap_or_else(any_seed),
            quick: options.quick,
            evidence: Place::beside(options.json.as_deref()),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let usual = ["ip", "taskset", "chrt", "setpriv", "ethtool"];
        let kept = self.rows.iter().any(|row| matches!(row, Row::Kept | Row::Opening));
        let kept: &[_] = if kept { &["nginx", "wrk", "curl", "tc"] } else { &[] };
        let needed = usual.iter().chain(kept).copied();
        let missing: Vec<_> = needed.filter(|program| !programs::is_installed(program)).collect();
        if !missing.is_empty() {
            return Err(Failure::Missing(missing));
        }
        if Rights::here() == Rights::Root { Ok(()) } else { Err(Failure::NotRoot) }
    }

    /// Every turn of a round.
    fn turns(&self, round: u32) -> Vec<Turn> {
        let mut turns = Vec::new();
        for &row in &self.rows {
            for case in row.cases(self.quick, &self.networks) {
                let seconds = if row == Row::Emulator { (2 * self.seconds).max(3) } else { self.seconds };
                let milliseconds = 1000 * seconds;
                let seed = self.seed;
                let turn = |system| Turn { row, case, system, round, milliseconds, seed };
                turns.extend(in_turn(row.systems(), round).map(turn));
            }
        }
        turns
    }

    /// Takes every turn in every round. One that fails is named and not counted.
    fn measure(&self, watch: &Watch) -> Result<Measured<Measurement>, Failure> {
        let scratch = Scratch::new(&[], self.evidence.clone())?;
        let progress = Progress::new(self.turns(1).len() as u64 * u64::from(self.rounds));
        let take = |turn: &Turn, all: &mut Vec<Measurement>| {
            progress.says(turn.to_string());
            let seen = turn.take(&scratch, watch);
            progress.step();
            all.extend(seen?);
            Ok::<_, Failure>(())
        };
        let measured = rounds::take(self.rounds, watch, |round| self.turns(round), take)?;
        progress.ends();
        Ok(measured)
    }
}
