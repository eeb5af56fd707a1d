//! `silk-media`: the part of the command `silk` that needs the libraries of video: decoders and
//! windows. `silk play` and the like become this program, so that everything else needs no such
//! library. One file or folder per command; this one only says which there are.

mod avcodec;
mod bench;
mod clips;
mod clock;
mod demo;
mod demux;
mod host;
mod machine;
mod man;
mod measure;
mod peers;
mod place;
mod play;
mod screen;
mod sdp;
mod send;
mod shell;
mod stop;
mod sys;
mod timeline;
mod trouble;
mod why;

use clap::Parser;
use std::process::ExitCode;

/// Video on paths: play it, send it, see why a picture was late
#[derive(Parser, Debug)]
#[command(name = "silk-media", version, max_term_width = 100)]
struct Media {
    #[command(subcommand)]
    command: Command,
}

const SEND_AFTER: &str = "\
Examples:
  silk send clip.mpg --to 10.0.0.1          as far and as fast as the player takes it (MFLOW)
  silk send clip.mpg --to 10.0.0.1 --rtp --loop";

const SHELL_AFTER: &str = "\
Commands:
  mpeg_decode HOST:PORT [fps=N|max] [every=N] [without=b] [name=NAME] [queue=N] [port=N]
              [over=mflow|rtp]
              [bits=N size=WxH]     bits of a picture on average: is there room for the stream?
              [bits=I,P,B group=I,P,B size=WxH]   the same by types, and how many a group has
              [less=yes]            where it does not fit whole, what does
  list
  stop NAME|PATH
  rate NAME|PATH N|max
  every NAME|PATH N

What is answered:
  ok PATH cpu=3.10% memory=4.0MiB [every=3]   it plays, and what it is promised
  ok PATH on trial                            it plays, and what it needs will be seen
  offer every=2 | without=b | fps=12.5        it does not fit; with this it would (--accept)
  error: …

Examples:
  silk shell 10.0.0.1 mpeg_decode 10.0.0.2:5544 fps=30 name=neptune
  silk shell --clip clip.mpg --accept 10.0.0.1 mpeg_decode 10.0.0.2:5544 fps=30";

const PLAY_AFTER: &str = "\
Examples:
  silk play --rtp 5004 --interface eth0     what ffmpeg or GStreamer send
  silk play --sdp clip.sdp --interface eth0   the same, as the sender's description says
  silk play --interface eth0 --from 10.0.0.2:6000
  silk play --interface eth0 --graph graphs/video.toml --appliance
  silk play --file clip.mpg                 in a window, at its own rate
  silk play --file clip.mpg --headless --fast
  silk play --file clip.mp4 --png pictures --every 30";

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show video
    #[command(after_help = PLAY_AFTER)]
    Play(Box<play::Options>),
    /// Make the clips of the experiments, with ffmpeg
    Clips(clips::Options),
    /// Send a clip to a player, cut so that it can use each packet as it comes
    #[command(after_help = SEND_AFTER)]
    Send(send::Options),
    /// Tell a player on another host what to do
    #[command(after_help = SHELL_AFTER)]
    Shell(shell::Options),
    /// Say where the time of the last missed pictures went
    Why(why::Options),
    /// Show two streams in windows beside a load, by deadline and in turn, and write a page about it
    Demo(demo::Options),
    /// Run an experiment
    #[command(subcommand)]
    Bench(bench::Which),
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
        Command::Send(options) => stop::interrupted().and_then(|stop| send::run(&options, &stop)),
        Command::Shell(options) => shell::run(&options),
        Command::Why(options) => why::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Bench(which) => bench::run(&which),
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
