//! One run of the demonstration: the player with its two windows, the eight others beside them, and a look at the
//! windows in between.

use super::look::Look;
use super::screen::Display;
use crate::bench::{Beside, PORT, Played, Player, appliance_arguments, at, source, tell, why};
use crate::clips::Clip;
use crate::peers::Process;
use crate::stop::Stop;
use crate::trouble::Trouble;
use silk_testkit::netns::{Rig, SERVER};
use std::path::Path;
use std::time::{Duration, Instant};

/// The streams in windows, their clips, and their pictures a second.
pub const SHOWN: [(&str, &str, f64); 2] = [("neptune", "Neptune", 30.0), ("flower", "Flower", 29.97)];
/// Their first port; the others' are below.
const WINDOWS: u16 = PORT + 100;
/// When the windows are looked at: while the others fill their queues, which in turn they do first.
const LOOKED: Duration = Duration::from_secs(2);
/// Looks at the windows one after the other, and the time from one to the next.
const LOOKS: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(100);
/// How much smaller those are kept.
const SMALLER: u16 = 4;

/// What all runs have in common.
pub struct Stage<'a> {
    /// The clips of Table 1.
    pub clips: &'a [Clip],
    /// The others.
    pub beside: Beside<'a>,
    /// Where the windows are.
    pub display: &'a Display,
    /// A folder of its own.
    pub scratch: &'a Path,
    /// The player's CPU.
    pub cpu: &'a str,
    /// How long a run takes.
    pub length: Duration,
    /// Set when it is to end.
    pub stop: &'a Stop,
}

/// A window at one time, and a row of looks at it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its stream.
    pub stream: String,
    /// As it was.
    pub whole: Look,
    /// Small, one after the other; whether it had changed since the one before.
    pub row: Vec<(Look, bool)>,
}

/// What a run has come to.
#[derive(Clone, Debug)]
pub struct Run {
    /// How streams shared the processor.
    pub schedule: &'static str,
    /// Of the player's CPU, used.
    pub share: f64,
    /// The streams' figures.
    pub played: Played,
    /// What `silk why` said of the first.
    pub why: String,
    /// The windows.
    pub seen: Vec<Seen>,
}

impl Run {
    /// A figure of a stream.
    pub fn figure(&self, stream: &str, figure: &str) -> u64 {
        self.played.figure(stream, figure).unwrap_or(0)
    }

    /// In a line, for the terminal.
    pub fn said(&self) -> String {
        let one = |(name, ..): &(&str, &str, f64)| {
            let gone = self.figure(name, "missed") + self.figure(name, "lost");
            format!("{name} {} shown, {gone} missed or lost", self.figure(name, "shown"))
        };
        format!("{}: {}\n", spoken(self.schedule), SHOWN.map(|stream| one(&stream)).join("; "))
    }
}

impl Stage<'_> {
    /// The others' rate at which the processor is as busy as it is to be, beside streams that need `windows` of it.
    ///
    /// # Errors
    /// What does not work, and an interruption.
    pub fn calibrated(&self, windows: f64) -> Result<f64, Trouble> {
        let wait = |time| self.stop.pause(time);
        self.beside.rate_beside(windows, |rig| self.player(rig, "deadlines"), wait)
    }

    /// One run.
    ///
    /// # Errors
    /// What does not work, and an interruption.
    pub fn run(&self, schedule: &'static str) -> Result<Run, Trouble> {
        let rig = Rig::new().map_err(Trouble::rig)?;
        let player = self.player(&rig, schedule)?;
        let others = self.beside.begin(&rig)?;
        let shown = self.begin(&rig)?;
        let (start, before) = (Instant::now(), player.cpu());
        self.stop.wait_until(start + LOOKED)?;
        let seen = self.look()?;
        self.stop.wait_until(start + self.length)?;
        let share = (player.cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
        let why = why(&self.control(), SHOWN[0].0)?;
        let played = player.finish(Duration::ZERO)?;
        drop((others, shown));
        Ok(Run { schedule, share, played, why, seen })
    }

    fn player(&self, rig: &Rig, schedule: &str) -> Result<Player, Trouble> {
        let mut arguments = appliance_arguments(self.scratch, schedule)?;
        let names = SHOWN.map(|(name, ..)| name).join(",");
        arguments.extend(["--window-of".into(), names, "--control".into(), self.control()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Player::start_in_windows(&rig.server, (self.cpu, &self.display.name), self.scratch, &arguments)
    }

    fn control(&self) -> String {
        self.scratch.join("play.sock").display().to_string()
    }

    /// Begins the streams in windows.
    fn begin(&self, rig: &Rig) -> Result<Vec<Process>, Trouble> {
        let one = |(port, (name, clip, rate)): (u16, (&str, &str, f64))| {
            let found = self.clips.iter().find(|found| found.name == clip);
            let clip = found.ok_or_else(|| Trouble::Program(format!("there is no clip `{clip}`")))?;
            let rate = format!("{rate:.3}");
            tell(&rig.client, &format!("mpeg_decode {} port={port} name={name} fps={rate}", at(port)))?;
            let (to, port) = (format!("{SERVER}:{port}"), port.to_string());
            source(&rig.client, &clip.file, &["--to", &to, "--port", &port, "--fps", &rate, "--loop"])
        };
        (WINDOWS..).step_by(2).zip(SHOWN).map(one).collect()
    }

    fn look(&self) -> Result<Vec<Seen>, Trouble> {
        let windows = SHOWN.map(|(name, ..)| self.display.find(name));
        let windows = windows.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut rows: Vec<Vec<Look>> = vec![Vec::new(); windows.len()];
        for _ in 0..LOOKS {
            let next = Instant::now() + BETWEEN;
            for (row, window) in rows.iter_mut().zip(&windows) {
                row.push(self.display.look(*window)?);
            }
            self.stop.wait_until(next)?;
        }
        Ok(SHOWN.iter().zip(&rows).filter_map(|((name, ..), row)| Seen::of(name, row)).collect())
    }
}

impl Seen {
    fn of(stream: &str, row: &[Look]) -> Option<Self> {
        let whole = row.first()?.clone();
        let changed = row.iter().enumerate().map(|(n, look)| n == 0 || *look != row[n - 1]);
        let row = row.iter().map(|look| look.smaller(SMALLER)).zip(changed).collect();
        Some(Self { stream: stream.to_owned(), whole, row })
    }
}

/// A schedule, for people.
pub fn spoken(schedule: &str) -> &'static str {
    if schedule == "deadlines" { "by deadline" } else { "in turn" }
}
