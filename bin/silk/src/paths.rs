//! `silk paths`: the live paths, each with its owner, its costs and its drops, and what had to
//! be left to Linux.

mod table;
mod tcp;

use crate::daemon;
use crate::trouble::{Trouble, printed};
use silk_control::Report;
use std::io::{self, IsTerminal, Write, stdout};
use std::thread::sleep;
use std::time::Duration;

/// What to show.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Everything the daemon says, for programs
    #[arg(long)]
    json: bool,
    /// What programs asked for that silk left to Linux, instead of the paths
    #[arg(long, conflicts_with = "json")]
    not_accelerated: bool,
    /// What TCP knows of each connection, as `ss -tin` tells it of Linux's
    #[arg(long, conflicts_with_all = ["json", "not_accelerated"])]
    tcp: bool,
    /// Show it again every second, until interrupted
    #[arg(long)]
    watch: bool,
}

const EVERY: Duration = Duration::from_secs(1);

/// Shows it, once or again and again.
pub fn run(options: &Options) -> Result<(), Trouble> {
    let mut report = daemon::report()?;
    loop {
        let shown = show(&report, options);
        if shown.is_err() || !options.watch {
            return printed(shown);
        }
        sleep(EVERY);
        report = daemon::report_again()?;
    }
}

fn show(report: &Report, options: &Options) -> io::Result<()> {
    let mut out = stdout().lock();
    if options.watch && out.is_terminal() {
        write!(out, "\x1b[H\x1b[2J")?;
    }
    if options.json {
        serde_json::to_writer(&mut out, report)?;
        writeln!(out)?;
    } else if options.not_accelerated {
        out.write_all(table::unserved(report).as_bytes())?;
    } else if options.tcp {
        out.write_all(tcp::connections(report).as_bytes())?;
    } else {
        out.write_all(table::paths(report).as_bytes())?;
    }
    out.flush()
}
