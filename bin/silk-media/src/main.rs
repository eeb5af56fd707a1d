//! `silk-media`: the part of the command `silk` that needs the libraries of video: decoders and
//! windows. `silk play` and the like become this program, so that everything else needs no such
//! library. One file or folder per command; this one only says which there are.

mod avcodec;
mod clips;
mod clock;
mod demux;
mod man;
mod measure;
mod peers;
mod play;
mod screen;
mod sys;
mod trouble;

use clap::Parser;
use std::process::ExitCode;

/// Video on paths: play it, send it, see why a picture was late
#[derive(Parser, Debug)]
#[command(name = "silk-media", version, max_term_width = 100)]
struct Media {
    #[command(subcommand)]
    command: Command,
}

const PLAY_AFTER: &str = "\
Examples:
  silk play --file clip.mpg                 in a window, at its own rate
  silk play --file clip.mpg --headless --fast
  silk play --file clip.mp4 --png pictures --every 30";

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show video
    #[command(after_help = PLAY_AFTER)]
    Play(play::Options),
    /// Make the clips of the experiments, with ffmpeg
    Clips(clips::Options),
    /// Print this program's manual page
    Man(man::Options),
    /// Measure what parts of video cost on this machine, and what they do when something is lost
    #[command(subcommand)]
    Measure(measure::Measure),
}

fn main() -> ExitCode {
    let done = match Media::parse().command {
        Command::Play(options) => play::run(&options),
        Command::Clips(options) => clips::run(&options),
        Command::Man(options) => man::run(&options),
        Command::Measure(measure) => measure::run(&measure),
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
        let mut command = Media::command();
        command.build();
        command.clone().debug_assert();
        explained(&command);
    }
}
