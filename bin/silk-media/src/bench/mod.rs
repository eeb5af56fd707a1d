//! `silk bench video`: Scout §4's experiments, beside GStreamer and ffmpeg on the same machine. CPU 0 has
//! the sources, another CPU the player; they are hosts in network namespaces with a cable between them.

mod admission;
mod deadlines;
mod flood;
mod player;
mod rates;
mod table;
mod third;

use crate::clips::{self, Clip};
use crate::demux::Demuxer;
use crate::trouble::Trouble;
use deadlines::Load;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use table::Table;
use tempfile::TempDir;

/// Which experiment.
#[derive(clap::Subcommand, Debug)]
pub enum Which {
    /// Video: highest rates, deadlines beside other streams, each third picture, admission
    Video(Options),
}

/// How it is run.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// One round instead of three, and the deadlines at four times the rate
    #[arg(long)]
    quick: bool,
    /// Only these
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    only: Vec<RowName>,
    /// The table as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A folder for the clips, made there once
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp/silk-clips")]
    clips: PathBuf,
    /// The player's CPU
    #[arg(long, value_name = "N", default_value = "1")]
    cpu: String,
}

/// A part of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RowName {
    /// The highest rate of each clip
    Rates,
    /// Deadlines beside other streams
    Deadlines,
    /// Deadlines during a flood of small packets
    Flood,
    /// Each third picture
    Third,
    /// What streams will cost, predicted beside measured
    Admission,
}

/// An experiment that runs.
pub struct Bench<'a> {
    clips: &'a [Clip],
    scratch: &'a Path,
    cpu: &'a str,
    rounds: u32,
    table: Table,
}

impl Bench<'_> {
    /// Says what is going on.
    fn tell(&self, what: &str) {
        let _ = writeln!(stderr(), "silk: {what}");
    }

    fn clip(&self, name: &str) -> Result<&Clip, Trouble> {
        let found = self.clips.iter().find(|clip| clip.name == name);
        found.ok_or_else(|| Trouble::Program(format!("there is no clip `{name}`")))
    }
}

/// What a picture costs where the highest rates are not measured: enough to choose a load by.
const GUESSED: [u64; 2] = [600, 120];

/// Runs the experiments and prints the table.
pub fn run(Which::Video(options): &Which) -> Result<ExitCode, Trouble> {
    let clips = clips::generated(&options.clips)?;
    let scratch = TempDir::with_prefix("silk-bench-")
        .map_err(|error| Trouble::Unwritable("a folder of its own".into(), error))?;
    let rounds = if options.quick { 1 } else { 3 };
    let mut bench =
        Bench { clips: &clips, scratch: scratch.path(), cpu: &options.cpu, rounds, table: Table::default() };
    let wanted = |row| options.only.is_empty() || options.only.contains(&row);
    let micros = std::time::Duration::from_micros;
    let (mut realtime, mut other) = (micros(GUESSED[0]), micros(GUESSED[1]));
    if wanted(RowName::Rates) {
        let costs = rates::run(&mut bench)?;
        let of = |name| clips.iter().zip(&costs).find(|(clip, _)| clip.name == name).map(|(_, cost)| *cost);
        (realtime, other) = (of("Neptune").unwrap_or(realtime), of("Canyon").unwrap_or(other));
    }
    let pictures = Demuxer::open(&bench.clip("Neptune")?.file)?.count() as u64;
    let rate = if options.quick { 120.0 } else { 30.0 };
    if wanted(RowName::Deadlines) {
        deadlines::run(&mut bench, &Load { realtime, other, pictures, rate })?;
    }
    if wanted(RowName::Flood) {
        flood::run(&mut bench, pictures)?;
    }
    if wanted(RowName::Third) {
        third::run(&mut bench)?;
    }
    if wanted(RowName::Admission) {
        admission::run(&mut bench)?;
    }
    if let Some(file) = &options.json {
        let text = bench.table.json().to_string();
        fs::write(file, text).map_err(|error| Trouble::Unwritable(file.display().to_string(), error))?;
    }
    write!(stdout(), "{}", bench.table).map_err(|error| Trouble::Unwritable("the table".into(), error))?;
    Ok(ExitCode::SUCCESS)
}
