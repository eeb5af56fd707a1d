//! `silk-media demo`: what deadlines are good for, to be seen. Two streams in windows beside eight others that keep
//! the processor nine tenths busy: first by deadline, then in turn; and a page with pictures of the windows, the
//! plot of what was missed, and where the time of missed pictures went. Where there is no screen, a virtual one is
//! started. Everything happens in network namespaces that are made for it and end with it, also when it is
//! interrupted.

mod look;
mod page;
mod plot;
mod screen;
mod show;

use crate::bench::Beside;
use crate::clips;
use crate::stop::Stop;
use crate::trouble::Trouble;
use screen::Display;
use show::Stage;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use tempfile::TempDir;

/// How it is run.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The page that is written
    #[arg(long, value_name = "FILE", default_value = "video-demo.html")]
    html: PathBuf,
    /// A folder for the clips, made there once
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp/silk-clips")]
    clips: PathBuf,
    /// Seconds of each of the two runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(6..=600))]
    seconds: u64,
    /// The player's CPU
    #[arg(long, value_name = "N", default_value = "1")]
    cpu: String,
}

/// Pictures in the queues of the others: half of what the experiment has, for it is half of the memory.
const QUEUE: u32 = 64;
/// The others' pictures a second, for the first trial.
const GUESS: f64 = 30.0;
/// What the two streams in windows need of the processor, about.
const WINDOWS: f64 = 0.04;

/// Runs both, and writes the page.
///
/// # Errors
/// What cannot be set up, and an interruption.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    crate::bench::writable(&options.html)?;
    let stop = Stop::on_signals()?;
    tell("makes the clips, where they are not there yet");
    let clips = clips::generated(&options.clips)?;
    let load = clips::heavy(&options.clips)?;
    let scratch = TempDir::with_prefix("silk-demo-")
        .map_err(|error| Trouble::Unwritable("a folder of its own".into(), error))?;
    let display = Display::open()?;
    tell(&display.described());
    let mut stage = Stage {
        clips: &clips,
        beside: Beside { queue: QUEUE, ..Beside::new(&load.file, GUESS) },
        display: &display,
        scratch: scratch.path(),
        cpu: &options.cpu,
        length: std::time::Duration::from_secs(options.seconds),
        stop: &stop,
    };
    tell("finds out at what rate the others keep the processor nine tenths busy");
    stage.beside.rate = stage.calibrated(WINDOWS)?;
    let mut runs = Vec::new();
    for schedule in ["deadlines", "in-turn"] {
        tell(&format!("{} s {}", options.seconds, show::spoken(schedule)));
        runs.push(stage.run(schedule)?);
    }
    let text = page::page(&runs, stage.beside.rate);
    fs::write(&options.html, text)
        .map_err(|error| Trouble::Unwritable(options.html.display().to_string(), error))?;
    let mut said: String = runs.iter().map(|run| run.said()).collect();
    said += &format!("the page: {}\n", options.html.display());
    write!(stdout(), "{said}").map_err(|error| Trouble::Unwritable("the result".into(), error))?;
    Ok(ExitCode::SUCCESS)
}

fn tell(what: &str) {
    let _ = writeln!(stderr(), "silk: {what}");
}
