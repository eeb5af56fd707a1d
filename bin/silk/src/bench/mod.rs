//! `silk bench`: the experiments of SILK §4, run beside Linux and HAProxy on this machine.
//!
//! A benchmark states its question, its peer and its unit, runs both in turn and prints ratios with
//! their spread. It must never touch the machine's own interfaces or processes: everything happens in
//! network namespaces that it makes and removes.

mod apache;
mod awake;
mod cell;
mod counters;
mod cpus;
mod ends;
mod evidence;
mod failure;
mod flood;
mod haproxy;
mod load;
mod machine;
mod markdown;
mod napi;
mod output;
mod page;
mod paths;
mod plot;
mod programs;
mod progress;
mod ratio;
mod results;
mod rights;
mod rounds;
mod scratch;
mod silkd;
mod stage;
mod system;
mod table;
mod task;
mod tcp;
mod watch;
mod web;

use crate::media;
use crate::trouble::Trouble;
pub use failure::Failure;
use std::process::ExitCode;

/// The experiments that `silk bench` can run.
#[derive(clap::Subcommand, Debug)]
pub enum Bench {
    /// Serve files with Apache over Linux, HAProxy and silk in turn, and compare (SILK §4)
    Web(web::Options),
    /// Measure what the parts of a path cost: its life, demultiplexing, packets, memory, copies
    Paths(paths::Options),
    /// TCP and UDP beside Linux: flows, round trips, connections, floods, bad networks, many connections
    Tcp(tcp::Options),
    /// Video on paths beside GStreamer and ffmpeg: maximum rates, deadlines, admission (Scout §4)
    Video(media::Options),
    /// Be one end of the TCP experiment (it starts these itself)
    #[command(subcommand, hide = true)]
    End(ends::End),
    /// Send minimum-size packets as fast as possible (the web experiment starts this itself)
    #[command(hide = true)]
    Flood(flood::Options),
}

/// Runs one experiment to its end.
pub fn run(bench: &Bench) -> Result<ExitCode, Trouble> {
    let done = match bench {
        Bench::Video(options) => return media::run(&["bench", "video"], options).map(|never| match never {}),
        Bench::Web(options) => web::run(options),
        Bench::Paths(options) => paths::run(options),
        Bench::Tcp(options) => tcp::run(options),
        Bench::End(end) => ends::run(end),
        Bench::Flood(options) => flood::run(options),
    };
    done.map(|()| ExitCode::SUCCESS).map_err(Trouble::from)
}
