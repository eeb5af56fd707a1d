//! `silk bench video`: Scout §4's experiments, beside GStreamer and ffmpeg on the same machine. CPU 0 has
//! the sources, another CPU the player; they are hosts in network namespaces with a cable between them.

mod admission;
mod apache;
mod backlog;
mod beside;
mod deadlines;
mod figures;
mod flood;
mod load;
mod missed;
mod needed;
mod pace;
mod page;
mod peers_deadlines;
mod player;
mod plot;
mod rates;
mod stolen;
mod table;
mod third;
mod undisturbed;

pub use beside::{Beside, OTHERS, PORT, appliance_arguments};
pub use player::{Played, Player, at, source, tell, why};

use crate::clips::{self, Clip};
use crate::demux::Demuxer;
use crate::stop::Stop;
use crate::trouble::Trouble;
use clap::ValueEnum;
use load::Load;
use serde_json::Value;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
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
    /// So many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Only these
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    only: Vec<RowName>,
    /// The table as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A page of plots too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measure nothing: the page of an earlier run, from its JSON
    #[arg(long, value_name = "FILE", requires = "html", conflicts_with_all = ["json", "only"])]
    show: Option<PathBuf>,
    /// A folder for the clips, made there once
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp/silk-clips")]
    clips: PathBuf,
    /// The player's CPU
    #[arg(long, value_name = "N", default_value = "1")]
    cpu: String,
}

impl Options {
    /// The rows that are wanted.
    fn rows(&self) -> &[RowName] {
        if self.only.is_empty() { RowName::value_variants() } else { &self.only }
    }
}

/// A part of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
    /// What others are played beside.
    load: &'a Clip,
    scratch: &'a Path,
    cpu: &'a str,
    stop: &'a Stop,
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

    /// Measures a part, or a round of one. Where it fails, the table says so, and the others are measured all the same,
    /// unless a person has ended them.
    fn part<T>(
        &mut self,
        name: &str,
        run: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<Option<T>, Trouble> {
        let done = run(self);
        // What else has failed has, where it was interrupted, failed for that.
        self.stop.check()?;
        match done {
            Ok(measured) => Ok(Some(measured)),
            Err(why) => {
                self.tell(&format!("{name}: {why}"));
                self.table.lacks(format!("{name}: {why}"));
                Ok(None)
            }
        }
    }
}

/// What a picture of Neptune costs where the highest rates are not measured: enough to choose a load by.
const GUESSED: Duration = Duration::from_micros(600);
/// Neptune's own rate, and the one of a quick look at its deadlines.
const RATES: [f64; 2] = [30.0, 120.0];

/// Runs the experiments and prints the table.
pub fn run(Which::Video(options): &Which) -> Result<ExitCode, Trouble> {
    if let Some(file) = &options.show {
        return show(file, options);
    }
    options.json.iter().chain(&options.html).try_for_each(|file| writable(file))?;
    needed::check(options.rows())?;
    let clips = clips::generated(&options.clips)?;
    let load = clips::load(&options.clips)?;
    // As `silk bench` calls its own, which removes those whose maker is gone.
    let scratch = TempDir::with_prefix(format!("silk-bench-{}-", std::process::id()))
        .map_err(|error| Trouble::Unwritable("a folder of its own".into(), error))?;
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { 3 });
    let (scratch, table, stop) = (scratch.path(), Table::default(), Stop::on_signals()?);
    let (cpu, stop) = (options.cpu.as_str(), &stop);
    let mut bench = Bench { clips: &clips, load: &load, scratch, cpu, stop, rounds, table };
    measure(&mut bench, options)?;
    told(&bench.table, options, &mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the table and writes what was asked for, also where something could not be measured. That is told at the end.
fn told(table: &Table, options: &Options, out: &mut impl Write) -> Result<(), Trouble> {
    let rows = table.json();
    // Nothing at all is not worth an earlier run's file.
    if !table.is_empty() {
        // Before anything that can go wrong: it took half an hour.
        let printed = write!(out, "{table}");
        write_to(options.json.as_deref(), || Value::from(rows.clone()).to_string())?;
        write_to(options.html.as_deref(), || page::page(&rows))?;
        printed.map_err(|error| Trouble::Unwritable("the table".into(), error))?;
    }
    match table.incomplete() {
        [] => Ok(()),
        why => Err(Trouble::Program(format!("not everything was measured:\n{}", why.join("\n")))),
    }
}

/// The experiments that are wanted.
fn measure(bench: &mut Bench<'_>, options: &Options) -> Result<(), Trouble> {
    let wanted = |row| options.rows().contains(&row);
    let mut realtime = GUESSED;
    let pictures = Demuxer::open(&bench.clip("Neptune")?.file)?.count() as u64;
    if wanted(RowName::Rates) {
        let costs = bench.part("rates", rates::run)?.unwrap_or_default();
        let neptune = bench.clips.iter().zip(&costs).find(|(clip, _)| clip.name == "Neptune");
        realtime = neptune.map_or(realtime, |(_, cost)| *cost);
    }
    if wanted(RowName::Deadlines) {
        let [own, quick] = RATES;
        let rate = if options.quick { quick } else { own };
        deadlines::run(bench, &Load { realtime, pictures, rate, own })?;
    }
    if wanted(RowName::Flood) {
        bench.part("flood", |bench| flood::run(bench, pictures))?;
    }
    if wanted(RowName::Third) {
        bench.part("third", third::run)?;
    }
    if wanted(RowName::Admission) {
        bench.part("admission", admission::run)?;
    }
    Ok(())
}

/// Makes the page of an earlier run.
fn show(file: &Path, options: &Options) -> Result<ExitCode, Trouble> {
    let unreadable = |error| Trouble::Unreadable(file.display().to_string(), error);
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let rows: Vec<Value> = serde_json::from_str(&text).map_err(|error| unreadable(error.into()))?;
    write_to(options.html.as_deref(), || page::page(&rows))?;
    Ok(ExitCode::SUCCESS)
}

/// Finds out before all the work whether its result can be written.
pub fn writable(file: &Path) -> Result<(), Trouble> {
    silk_testkit::writable::check(file)
        .map_err(|error| Trouble::Unwritable(file.display().to_string(), error))
}

/// Writes a file, where one is wished.
fn write_to(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Trouble> {
    let Some(file) = file else { return Ok(()) };
    fs::write(file, text()).map_err(|error| Trouble::Unwritable(file.display().to_string(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use table::Samples;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    /// A part that fails, and one that does not and has perhaps measured something: what is printed, the JSON, and what is said at the end.
    fn parts(measured: bool) -> (String, Option<String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("video.json");
        let line = Line::parse_from(["video", "--json", file.to_str().unwrap()]);
        let stop = Stop::default();
        let load = Clip { name: "x", file: PathBuf::new(), shows: "" };
        let (scratch, table) = (folder.path(), Table::default());
        let mut bench = Bench { clips: &[], load: &load, scratch, cpu: "0", stop: &stop, rounds: 1, table };
        let fails = |_: &mut Bench<'_>| Err::<(), _>(Trouble::Program("the player does not end".into()));
        assert!(bench.part("third", fails).unwrap().is_none());
        let figure = |bench: &mut Bench<'_>| {
            let mut samples = Samples::default();
            (0..u32::from(measured)).for_each(|_| samples.add(1.5));
            bench.table.figure("cost", "silk", &samples);
            Ok(())
        };
        assert!(bench.part("rates", figure).unwrap().is_some());
        let mut printed = Vec::new();
        let said = told(&bench.table, &line.options, &mut printed).unwrap_err().to_string();
        (String::from_utf8(printed).unwrap(), fs::read_to_string(file).ok(), said)
    }

    #[test]
    fn what_was_measured_is_written_although_a_part_has_failed() {
        let (printed, json, said) = parts(true);
        assert!(
            printed.contains("| cost |") && printed.ends_with("\n* third: the player does not end\n"),
            "{printed}"
        );
        let rows: Vec<Value> = serde_json::from_str(&json.unwrap()).unwrap();
        assert_eq!(rows[0]["what"], "cost");
        assert_eq!(rows[1]["incomplete"], "third: the player does not end");
        assert_eq!(said, "not everything was measured:\nthird: the player does not end");
        assert_eq!(parts(false).1, None, "an earlier run's file stays as it is");
    }
}
