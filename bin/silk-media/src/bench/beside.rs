//! What runs beside the stream that is looked at: eight streams of large pictures with long output queues, of
//! which the processor is nine tenths busy (Scout §4.3).

use super::player::{Player, at, source, tell};
use crate::peers::Process;
use crate::trouble::Trouble;
use silk_player::GRAPH;
use silk_testkit::netns::{CLIENT, Rig, SERVER};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The part of the CPU that all streams together are to need.
pub const BUSY: f64 = 0.9;
/// Streams beside the one that is looked at.
pub const OTHERS: u16 = 8;
/// What their rates are called.
pub const OTHERS_RATE: &str = "pictures/s of each of the others";
/// Pictures in the others' output queues, Scout's number: what a player may work ahead, and in turn does.
pub const QUEUE: u32 = 128;
/// Pictures in the others' output queues while their cost is found out: none is worked ahead then.
const SHORT: u32 = 4;
/// The first port of sources, and of the player's streams.
pub const PORT: u16 = 6000;
/// How long a trial of the others' rate takes, and how many there are: what a picture costs depends on how many
/// there are.
const TRIAL: Duration = Duration::from_secs(4);
const TRIALS: u32 = 2;

/// The others.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// Their clip.
    pub clip: &'a Path,
    /// Pictures a second of each.
    pub rate: f64,
    /// Pictures in their output queues.
    pub queue: u32,
}

impl<'a> Beside<'a> {
    /// Streams of `clip` with long queues at this rate.
    pub fn new(clip: &'a Path, rate: f64) -> Self {
        Self { clip, rate, queue: QUEUE }
    }

    /// Begins them: commands to the player on the server, sources on the client. They play until the sources are
    /// dropped.
    ///
    /// # Errors
    /// The player does not take them, or a source does not start.
    pub fn begin(&self, rig: &Rig) -> Result<Vec<Process>, Trouble> {
        (1..=OTHERS).map(|number| self.one(rig, number)).collect()
    }

    /// Looks whether they still play: without one of them all others are served better.
    ///
    /// # Errors
    /// A source has ended.
    pub fn still(sources: &mut [Process]) -> Result<(), Trouble> {
        let ended = sources.iter_mut().find_map(Process::ended);
        let told = |status| Trouble::Program(format!("a source of the others ended too early ({status})"));
        ended.map(told).map_or(Ok(()), Err)
    }

    fn one(&self, rig: &Rig, number: u16) -> Result<Process, Trouble> {
        let Self { clip, rate, queue } = self;
        let port = PORT + 2 * number;
        let command =
            format!("mpeg_decode {} port={port} name=other{number} fps={rate:.3} queue={queue}", at(port));
        tell(&rig.client, &command)?;
        let (to, port) = (format!("{SERVER}:{port}"), port.to_string());
        source(&rig.client, clip, &["--to", &to, "--port", &port, "--fast", "--loop"])
    }

    /// Their rate at which they need what [`BUSY`] leaves beside a stream of this part of the processor, by what
    /// their pictures cost in trials, the first of them at this one's rate. `wait` waits, or is interrupted.
    ///
    /// # Errors
    /// As [`Self::begin`], or as `player`, or as `wait`.
    pub fn rate_beside(
        self,
        realtime: f64,
        player: impl Fn(&Rig) -> Result<Player, Trouble>,
        wait: impl Fn(Duration) -> Result<(), Trouble>,
    ) -> Result<f64, Trouble> {
        let mut rate = self.rate;
        for _ in 0..TRIALS {
            let rig = Rig::new().map_err(Trouble::rig)?;
            let player = player(&rig)?;
            let trial = Self { rate, queue: SHORT, ..self };
            let sources = trial.begin(&rig)?;
            wait(TRIAL)?;
            drop(sources);
            let played = player.finish(Duration::ZERO)?;
            let pictures: u64 = played.streams.iter().filter_map(|stream| stream["pictures"].as_u64()).sum();
            let each = played.cpu.as_secs_f64() / pictures.max(1) as f64;
            rate = ((BUSY - realtime) / f64::from(OTHERS) / each.max(1e-6)).clamp(1.0, 1000.0);
        }
        Ok(rate)
    }
}

/// What makes a player one that takes commands from the client: arguments, and its graph as a file in `scratch`.
///
/// # Errors
/// The file cannot be written.
pub fn appliance_arguments(scratch: &Path, schedule: &str) -> Result<Vec<String>, Trouble> {
    let graph = scratch.join("video.toml");
    let controllers = format!("name = \"shell\"\ncontrollers = [\"{CLIENT}/32\"]");
    fs::write(&graph, GRAPH.replace("name = \"shell\"", &controllers))
        .map_err(|error| Trouble::Unwritable(graph.display().to_string(), error))?;
    let graph = graph.display().to_string();
    let arguments =
        ["--appliance", "--graph", &graph, "--schedule", schedule, "--priority", "40", "--ring", "8192"];
    // The load is as it is wanted, whether it fits or not.
    let everything = ["--share", "1000"];
    Ok(arguments.into_iter().chain(everything).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_source_that_ended_is_missed() {
        let mut sources = vec![Process::start(Command::new("sleep").arg("1000")).unwrap()];
        assert!(Beside::still(&mut sources).is_ok());
        sources.push(Process::start(Command::new("sh").args(["-c", "exit 3"])).unwrap());
        assert!(sources[1].ends(Duration::from_secs(60)));
        let why = Beside::still(&mut sources).unwrap_err().to_string();
        assert_eq!(why, "a source of the others ended too early (exit status: 3)");
    }
}
