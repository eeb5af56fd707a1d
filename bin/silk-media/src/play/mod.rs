//! `silk play`: shows video. A local file is decoded straight to a screen, at its rate.

mod file;
mod report;

use crate::screen::{Headless, Pngs, ScreenError, Sink, Window, Y4m};
use crate::trouble::Trouble;
use report::Report;
use std::env;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to play and where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Play a local file: any that libavformat opens, with MPEG-1, MPEG-2 or H.264 in it
    #[arg(long, value_name = "CLIP")]
    file: PathBuf,
    /// Pictures in a second, instead of the file's own rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    fps: Option<u32>,
    /// Show every N-th picture only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// As fast as pictures can be decoded
    #[arg(long, conflicts_with = "fps")]
    fast: bool,
    #[command(flatten)]
    screen: ScreenOptions,
}

/// Where pictures are shown. One of them; a window where there is a screen, else nothing.
#[derive(clap::Args, Debug)]
#[group(multiple = false)]
pub struct ScreenOptions {
    /// In a window (closing it, Escape or Ctrl-C ends the command)
    #[arg(long)]
    window: bool,
    /// Nowhere: only count
    #[arg(long)]
    headless: bool,
    /// Nowhere: count, and sum what the pictures hold, to compare two ways of decoding
    #[arg(long)]
    sum: bool,
    /// Into a file of raw pictures (YUV4MPEG2)
    #[arg(long, value_name = "FILE")]
    y4m: Option<PathBuf>,
    /// Into PNG files in a folder
    #[arg(long, value_name = "FOLDER")]
    png: Option<PathBuf>,
}

impl ScreenOptions {
    /// Opens the screen that was asked for.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn open(&self, title: &str, rate: (u32, u32)) -> Result<Box<dyn Sink>, ScreenError> {
        let has_screen =
            ["DISPLAY", "WAYLAND_DISPLAY"].map(|name| env::var_os(name).is_some()).contains(&true);
        Ok(match self {
            Self { y4m: Some(file), .. } => Box::new(Y4m::create(file, rate)?),
            Self { png: Some(folder), .. } => Box::new(Pngs::create(folder)?),
            Self { sum: true, .. } => Box::new(Headless::summing()),
            Self { window: true, .. } => Box::new(Window::open(title)?),
            Self { headless: false, .. } if has_screen => Box::new(Window::open(title)?),
            _ => Box::new(Headless::default()),
        })
    }
}

/// Plays to the end, or until the window is closed or the program interrupted.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let stop = interrupted()?;
    let report = file::play(options, &stop)?;
    print(&report)?;
    Ok(if report.shown == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Set when somebody wants the program to end.
fn interrupted() -> Result<Arc<AtomicBool>, Trouble> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, flag.clone())
            .map_err(|error| Trouble::Program(format!("signals cannot be caught: {error}")))?;
    }
    Ok(flag)
}

fn print(report: &Report) -> Result<(), Trouble> {
    writeln!(stdout(), "{report}").map_err(|error| Trouble::Unwritable("the report".to_owned(), error))
}

/// The title of a window: what is played, without its folder.
fn title(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
