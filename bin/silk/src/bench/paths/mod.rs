//! `silk bench paths`: what the parts of a path cost, each for itself (SILK table 1): creation and
//! destruction, demultiplexing, a packet's way up and down, memory, copies. No network and no rights are
//! needed: everything happens in this process, with the modules and tables that the daemon uses.

mod case;
mod connection;
mod copies;
mod cpu;
pub mod crowd;
mod demux;
mod handover;
mod host;
mod life;
mod packets;
mod row;
mod table;

use super::counters::Moment;
use super::machine::{Machine, QUIET};
use super::progress::Progress;
use super::{Failure, output};
use case::Case;
use clap::builder::RangedU64ValueParser;
use row::Results;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

/// How much to measure.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// A short run: five short rounds
    #[arg(long)]
    quick: bool,
    /// Rounds over all measurements
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    rounds: Option<u32>,
    /// Milliseconds that each measurement takes in a round
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    milliseconds: Option<u64>,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the table into this Markdown document, between its two marks
    #[arg(long, value_name = "FILE")]
    into: Vec<PathBuf>,
    /// Measure nothing: show the results of an earlier run, from its JSON file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    show: Option<PathBuf>,
}

impl Options {
    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 5 } else { 15 })
    }

    fn time(&self) -> Duration {
        Duration::from_millis(self.milliseconds.unwrap_or(if self.quick { 30 } else { 60 }))
    }
}

/// Measures, prints the table and writes what was asked for.
pub fn run(options: &Options) -> Result<(), Failure> {
    output::check(&options.json, &options.into, table::BEGIN)?;
    let results = match &options.show {
        Some(file) => output::read_json(file, "silk bench paths")?,
        None => measure(options)?,
    };
    output::print(&table::text(&results))?;
    if let Some(file) = &options.json {
        output::write_json(file, &results)?;
    }
    for why in &results.incomplete {
        eprintln!("silk bench paths: not measured: {why}");
    }
    for file in &options.into {
        let document = fs::read_to_string(file).map_err(Failure::file(file))?;
        let unmarked = || Failure::Unmarked { file: file.clone(), mark: table::BEGIN.trim_end() };
        let filled = table::insert(&document, &results).ok_or_else(unmarked)?;
        fs::write(file, filled).map_err(Failure::file(file))?;
    }
    Ok(())
}

/// Asks every question in each round.
fn measure(options: &Options) -> Result<Results, Failure> {
    let busy = busy_before();
    let pinned = cpu::pin();
    let mut rows = life::memory();
    let (mut cases, incomplete) = cases();
    let progress = Progress::new(u64::from(options.rounds()));
    for round in 1..=options.rounds() {
        progress.says(format!("round {round} of {}", options.rounds()));
        cases.iter_mut().for_each(|case| case.round(options.time()));
        progress.step();
    }
    progress.ends();
    // A pinned thread sees one CPU, and would describe a machine of one.
    cpu::release();
    let memory = std::mem::take(&mut rows);
    rows.extend(cases.into_iter().filter_map(Case::row));
    rows.extend(memory);
    Ok(Results { machine: Machine::describe(busy, false), pinned, rows, incomplete })
}

/// Every case, in the order of the table, and what there cannot be.
fn cases() -> (Vec<Case>, Vec<String>) {
    let mut cases = life::cases();
    cases.extend(demux::cases());
    cases.extend(packets::cases());
    cases.extend(copies::cases());
    let mut incomplete = Vec::new();
    match handover::case() {
        Some(case) => cases.push(case),
        None => incomplete.push("a ring between two CPUs: there is one, or no shared memory".to_owned()),
    }
    (cases, incomplete)
}

/// How busy others keep the CPUs; said aloud where it spoils the figures.
fn busy_before() -> f64 {
    let before = Moment::now(None);
    thread::sleep(Duration::from_millis(300));
    let cpu = before.cpu_until(&Moment::now(None));
    let busy = cpu.server.max(cpu.client);
    if busy > QUIET {
        let percent = busy * 100.0;
        eprintln!(
            "silk bench paths: other programs keep a CPU {percent:.0} % busy; the figures will not be true"
        );
    }
    busy
}
