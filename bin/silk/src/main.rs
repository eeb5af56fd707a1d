//! `silk`: programs on paths, checks, drawings and experiments. One file per command; this
//! one only says which there are and turns what went wrong into an exit status: 1, or 2
//! where a file or the command line is at fault.

mod bench;
mod check;
mod completions;
mod daemon;
mod graph;
mod kinds;
mod man;
mod media;
mod netem;
mod paths;
mod reload;
mod run;
mod trouble;

use clap::Parser;
use std::process::{ExitCode, Termination};

/// Explicit paths for Linux: see and steer what the silk daemon does
///
/// A path runs from the network device, through the protocols, into the program that uses
/// the data, and is scheduled, paid for and limited as a whole.
#[derive(Parser, Debug)]
#[command(name = "silk", version, after_help = AFTER, max_term_width = 100)]
struct Silk {
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
Examples:
  silk run -- apache2 -DFOREGROUND          any unmodified program, its sockets on paths
  silk paths --watch                        what lives on paths, and what it costs
  silk check silk.toml                      is this configuration right?
  silk graph graphs/web.toml --format svg   draw a module graph
  silk play --file clip.mpg                 video, in a window
  silk reload                               apply changed classes to the running daemon

The daemon is `silkd`; it is spoken to over /run/silk/control.sock, or the socket that
SILK_SOCKET names.";

const RUN_AFTER: &str = "\
What silk cannot serve is left to Linux, counted, and told once; with --strict it is an error.
Exit status: the program's own; 127 if there is no such program, 126 if it cannot be started,
1 if there is no daemon.

Example:
  silk run -- apache2 -DFOREGROUND";

const PATHS_AFTER: &str = "\
Columns:
  PATH      domain, index and generation; one without `socket` among its MODULES stands since the start
  PID       the process that holds its socket
  QUEUED    what waits: messages from the device, and bytes from the program that were not sent yet
  CPU       time that the daemon has spent on it
  PROGRAM   time of the program's threads while they served it (`extend` in the configuration)
  IN, OUT   bytes received and sent
  MEMORY    bytes charged to it

An executor that gets no processor for two seconds tells nothing, and that is said (`silent` with --json).";

const NETEM_AFTER: &str = "\
The interfaces live as long as the command. They are up and have no addresses: give them some.
Needs root. When it ends it says what became of the packets, each way.

Example:
  ip netns add here; ip netns add there
  silk netem --left here:wan --right there:wan --rate 100mbit --delay 10ms --loss 1% --seed 1 &
  ip -n here addr add 10.0.0.1/24 dev wan
  ip -n there addr add 10.0.0.2/24 dev wan
  ip netns exec here ping 10.0.0.2";

const COMPLETIONS_AFTER: &str = "\
Examples:
  silk completions bash > /usr/share/bash-completion/completions/silk
  silk completions zsh > /usr/local/share/zsh/site-functions/_silk
  silk completions fish > /usr/share/fish/vendor_completions.d/silk.fish";

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run a program with its sockets on paths
    #[command(after_help = RUN_AFTER)]
    Run(run::Options),
    /// Show the live paths: owners, states, queues, costs, drops
    #[command(after_help = PATHS_AFTER)]
    Paths(paths::Options),
    /// Check configuration and graph files: every fault at once, with its place
    Check(check::Options),
    /// Draw a module graph, and the live paths through it
    Graph(graph::Options),
    /// Make the daemon read its configuration again and apply changed classes
    Reload(reload::Options),
    /// Join two network namespaces by a bad network: rate, delay, loss and more
    #[command(after_help = NETEM_AFTER)]
    Netem(netem::Options),
    /// Show video
    Play(media::Options),
    /// Send video to a player
    Send(media::Options),
    /// Tell a player on another machine what to play
    Shell(media::Options),
    /// Say why a path's last deadlines were missed
    Why(media::Options),
    /// Run an experiment
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Print this command's manual page
    Man(man::Options),
    /// Print what a shell needs to complete this command
    #[command(after_help = COMPLETIONS_AFTER)]
    Completions(completions::Options),
}

fn main() -> ExitCode {
    if let Some(trouble) = run::be_what_is_carried() {
        return trouble.tell();
    }
    let done = match Silk::parse().command {
        Command::Run(options) => run::run(&options).map(|never| match never {}),
        Command::Paths(options) => paths::run(&options).map(Termination::report),
        Command::Check(options) => check::run(&options).map(Termination::report),
        Command::Graph(options) => graph::run(&options).map(Termination::report),
        Command::Reload(options) => reload::run(&options).map(Termination::report),
        Command::Netem(options) => netem::run(&options).map(Termination::report),
        Command::Play(options) => media::run(&["play"], &options).map(|never| match never {}),
        Command::Send(options) => media::run(&["send"], &options).map(|never| match never {}),
        Command::Shell(options) => media::run(&["shell"], &options).map(|never| match never {}),
        Command::Why(options) => media::run(&["why"], &options).map(|never| match never {}),
        Command::Bench(bench) => bench::run(&bench).map(Termination::report),
        Command::Man(options) => man::run(&options).map(Termination::report),
        Command::Completions(options) => completions::run(&options).map(Termination::report),
    };
    done.unwrap_or_else(|trouble| trouble.tell())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_and_every_argument_is_explained() {
        fn explained(command: &clap::Command) {
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(explained);
        }
        let mut command = Silk::command();
        command.build();
        command.clone().debug_assert();
        explained(&command);
    }
}
