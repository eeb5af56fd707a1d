//! `silkd`: gives Linux explicit paths. Reads the configuration, opens the device, starts an
//! executor for each domain, and serves programs through the control socket until a signal
//! ends it.

// What cannot be printed would end the thread that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod between;
mod binding;
mod classes;
mod control;
mod cpus;
mod device;
mod domain;
mod first_wishes;
mod legible;
mod manual;
mod own_memory;
mod recipes;
mod say;
mod settings;
mod slots;
mod stack;
mod start;
mod strangers;
mod sys;
mod tables;
mod threads;

use clap::Parser;
use say::say;
use std::path::PathBuf;
use std::process::ExitCode;

/// The daemon of silk: network paths for unmodified programs.
///
/// Runs in the foreground and prints one line when it is ready. SIGHUP, or `silk reload`,
/// reads the classes again; SIGINT and SIGTERM end it.
#[derive(Parser)]
#[command(name = "silkd", version, after_help = AFTER)]
struct Arguments {
    /// The configuration; `silk check FILE` says what is wrong with one.
    #[arg(long, short, value_name = "FILE", default_value = "/etc/silk/silk.toml")]
    config: PathBuf,

    /// Tells nothing on standard error that is less grave than this. That it is ready is told on standard output,
    /// always.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = say::Level::Info)]
    log: say::Level,

    /// Prints this program's manual page, and does nothing else.
    #[arg(long)]
    man: bool,

    /// Waits for the end of the daemon that started it, and makes these interfaces' receive threads ordinary ones.
    #[arg(long, hide = true, value_name = "INTERFACE", num_args = 1..)]
    heir: Vec<u32>,
}

const AFTER: &str = "\
Exit status:
  0   a signal has ended it
  1   something on this machine is in its way, and is named
  2   the configuration or the command line is at fault

Programs and commands come over /run/silk/control.sock, or the socket that [control] in the
configuration names. See silk(1), silk-run(1), silk-check(1), silk-reload(1).";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    say::keep_to(arguments.log);
    if arguments.man {
        return manual::print();
    }
    if !arguments.heir.is_empty() {
        threads::heir::inherit(&arguments.heir);
        return ExitCode::SUCCESS;
    }
    match start::run(&arguments.config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(start::Failure::Configuration(faults)) => {
            say!(Error, "{faults}");
            ExitCode::from(2)
        }
        Err(start::Failure::Machine(why)) => {
            say!(Error, "silkd: {why}");
            ExitCode::FAILURE
        }
    }
}
