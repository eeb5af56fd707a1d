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

use super::machine::{Machine, warn_if_busy};
use super::progress::Progress;
use super::{Failure, output};
use case::Case;
use clap::builder::RangedU64ValueParser;
use row::Results;
use silk_testkit::ticks::Ticks;
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
        output::say(&format_args!("silk bench paths: not measured: {why}"));
    }
    output::insert(&options.into, table::BEGIN, &table::for_document(&results))?;
    Ok(())
}

/// Asks every question in each round.
fn measure(options: &Options) -> Result<Results, Failure> {
    let pinned = cpu::pin();
    let busy = busy_before(&cpu::used(pinned));
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

/// How busy others keep these CPUs, which are to be used; said aloud where it spoils the figures.
fn busy_before(cpus: &[usize]) -> f64 {
    let stat = || fs::read_to_string("/proc/stat").unwrap_or_default();
    let before = stat();
    thread::sleep(Duration::from_millis(300));
    let busy = busiest(&before, &stat(), cpus);
    warn_if_busy("silk bench paths", busy);
    busy
}

/// How busy the busiest of some CPUs was between two looks at `/proc/stat`.
fn busiest(before: &str, after: &str, cpus: &[usize]) -> f64 {
    let busy = |cpu: &usize| {
        let [before, after] = [before, after].map(|stat| Ticks::of(stat, &cpu.to_string()));
        Some(after?.since(&before?).busy_share())
    };
    cpus.iter().filter_map(busy).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_used_is_looked_at_and_no_other() {
        let before = "cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\ncpu7 0 0 0 0 0 0 0 0\n";
        let after = "cpu0 1 0 0 9 0 0 0 0\ncpu1 10 0 0 0 0 0 0 0\ncpu7 5 0 0 5 0 0 0 0\n";
        assert_eq!(busiest(before, after, &[0, 7]), 0.5);
        assert_eq!(busiest(before, after, &[0]), 0.1);
        assert_eq!(busiest(before, after, &[3]), 0.0);
    }
}
