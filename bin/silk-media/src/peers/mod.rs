//! The peers of the video experiments: GStreamer and ffmpeg, each decoding the same RTP stream with the
//! same decoder library, one thread, no screen, in a host of the experiment and on CPUs of its choice.
//!
//! What is measured of each is the CPU time of the whole process between the first packet and the
//! last picture, from which follows how many pictures a second it could decode on one CPU. Linux's own
//! receive processing is in neither figure.

mod ffmpeg;
mod gstreamer;
mod process;

use crate::trouble::Trouble;
pub use process::{Process, until};
use silk_media::Coding;
use silk_testkit::netns::Host;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// So long a peer may take to open its port.
const STARTING: Duration = Duration::from_secs(10);

/// So many lines of what it said tell why it failed.
const LAST: usize = 10;

/// A program that silk is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `gst-launch-1.0`: udpsrc, rtpjitterbuffer, depayloader, parser, decoder, fakesink.
    Gstreamer,
    /// `ffmpeg -f null`.
    Ffmpeg,
}

/// What a peer is to receive.
#[derive(Clone, Copy, Debug)]
pub struct Reception<'e> {
    /// The host it runs in.
    pub host: &'e Host,
    /// Its CPUs, as `taskset -c` takes them.
    pub cpus: &'e str,
    /// The UDP port that RTP comes to.
    pub port: u16,
    /// What comes.
    pub coding: Coding,
    /// Pictures after which it ends by itself. A few less than are sent: the last are known to be whole
    /// only when another follows.
    pub pictures: u32,
    /// Whether it shows each picture when it is due, as far as it can, instead of at once.
    pub paced: bool,
    /// A folder for what it says.
    pub scratch: &'e Path,
}

/// A peer that waits for the stream.
#[derive(Debug)]
pub struct Receiving {
    peer: Peer,
    process: Process,
    said: PathBuf,
    wanted: u32,
    since: Instant,
    /// CPU time for starting, which is no part of decoding.
    before: Duration,
}

/// What a peer has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Pictures decoded and shown.
    pub pictures: u64,
    /// Pictures decoded and dropped since they were late.
    pub dropped: u64,
    /// Pictures shown after they were due, where that has to be found out from outside.
    pub late: u64,
    /// From the time it was ready to its end.
    pub wall: Duration,
    /// CPU time of the process within that.
    pub cpu: Duration,
}

impl Seen {
    /// Of so many pictures, not shown in time: dropped, late, or never seen.
    pub fn gone(&self, wanted: u64) -> u64 {
        self.late + self.dropped.max(wanted.saturating_sub(self.pictures))
    }

    /// Pictures that it could decode in a second of one CPU.
    pub fn maximum_rate(&self) -> f64 {
        self.pictures as f64 / self.cpu.as_secs_f64().max(1e-9)
    }
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Gstreamer, Self::Ffmpeg];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gstreamer => "GStreamer",
            Self::Ffmpeg => "ffmpeg",
        }
    }

    /// Whether it is installed.
    pub fn is_installed(self) -> bool {
        let (program, version) = match self {
            Self::Gstreamer => ("gst-launch-1.0", "--version"),
            Self::Ffmpeg => ("ffmpeg", "-version"),
        };
        let mut command = Command::new(program);
        command.arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Starts it, and waits until it has opened its port.
    ///
    /// # Errors
    /// Where it does not start or does not come so far.
    pub fn receive(self, reception: &Reception<'_>) -> Result<Receiving, Trouble> {
        let said = reception.scratch.join(format!("{}-{}.txt", self.name(), reception.port));
        let out = File::create(&said).and_then(|out| Ok((out.try_clone()?, out)));
        let (out, errors) = out.map_err(unwritable(&said))?;
        let mut command = reception.host.command("taskset");
        command.args(["-c", reception.cpus]);
        match self {
            Self::Gstreamer => gstreamer::arguments(&mut command, reception),
            Self::Ffmpeg => {
                ffmpeg::arguments(&mut command, reception).map_err(unwritable(reception.scratch))?
            }
        }
        let mut process = Process::start(command.stdout(out).stderr(errors))?;
        if !process.opens(reception.port, STARTING) {
            let why = fs::read_to_string(&said).unwrap_or_default();
            return Err(Trouble::Program(format!("{} does not receive: {}", self.name(), why.trim_end())));
        }
        let before = process.cpu().unwrap_or_default();
        Ok(Receiving { peer: self, process, said, wanted: reception.pictures, since: Instant::now(), before })
    }
}

impl Receiving {
    /// CPU time of the process since it was ready.
    pub fn cpu(&self) -> Duration {
        self.process.cpu().unwrap_or_default().saturating_sub(self.before)
    }

    /// Looks whether it still receives, as one of which no end was wanted must.
    ///
    /// # Errors
    /// It has ended.
    pub fn still(&mut self) -> Result<(), Trouble> {
        let Some(status) = self.process.ended() else { return Ok(()) };
        Err(self.failed(status, &fs::read_to_string(&self.said).unwrap_or_default()))
    }

    /// Waits until it has seen all its pictures. Where it has not `patience` later, since some were lost,
    /// it is told to end.
    ///
    /// # Errors
    /// Where it fails, or does not end, or does not say what it has done.
    pub fn finish(mut self, patience: Duration) -> Result<Seen, Trouble> {
        let complete = self.process.ends(patience);
        let mut wall = self.since.elapsed();
        if !complete {
            // While it waits it uses next to nothing.
            self.process.interrupt();
            if !self.process.ends(Duration::from_secs(5)) {
                return Err(Trouble::Program(format!("{} does not end", self.peer.name())));
            }
            wall = wall.max(self.since.elapsed());
        }
        let cpu = self.cpu();
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        // One that was told to end ends as it likes.
        if let Some(status) = self.process.ended().filter(|status| complete && !status.success()) {
            return Err(self.failed(status, &said));
        }
        let counted = match self.peer {
            Peer::Gstreamer => gstreamer::counts(&said, complete.then_some(self.wanted.into())),
            Peer::Ffmpeg => ffmpeg::counts(&said),
        };
        let silent = || Trouble::Program(format!("{} showed nothing: {}", self.peer.name(), last(&said)));
        let (pictures, dropped) = counted.ok_or_else(silent)?;
        let late = match self.peer {
            Peer::Gstreamer => 0,
            Peer::Ffmpeg => ffmpeg::late(&said),
        };
        Ok(Seen { pictures, dropped, late, wall, cpu })
    }

    /// It ended like this, by itself, before it had done what it was to do.
    fn failed(&self, status: ExitStatus, said: &str) -> Trouble {
        Trouble::Program(format!("{} ended too early ({status}): {}", self.peer.name(), last(said)))
    }
}

/// The last of what a program said: what it says of each picture is long.
fn last(said: &str) -> String {
    let lines: Vec<&str> = said.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST)..].join("\n")
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let name = path.display().to_string();
    move |error| Trouble::Unwritable(name, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A GStreamer of which 140 pictures are wanted, and that does this instead.
    fn receiving(does: &str, folder: &Path) -> Receiving {
        let said = folder.join("said");
        let out = File::create(&said).unwrap();
        let process = Process::start(Command::new("sh").args(["-c", does]).stdout(out)).unwrap();
        let (peer, since, before) = (Peer::Gstreamer, Instant::now(), Duration::ZERO);
        Receiving { peer, process, said, wanted: 140, since, before }
    }

    fn finished(does: &str) -> Result<Seen, String> {
        let folder = tempfile::tempdir().unwrap();
        let receiving = receiving(does, folder.path());
        receiving.finish(Duration::from_secs(60)).map_err(|why| why.to_string())
    }

    #[test]
    fn a_peer_that_is_to_receive_for_ever_must_not_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        assert!(receiving("exec sleep 1000", folder.path()).still().is_ok());
        let mut ended = receiving("echo no more", folder.path());
        assert!(ended.process.ends(Duration::from_secs(60)));
        let why = ended.still().unwrap_err().to_string();
        assert_eq!(why, "GStreamer ended too early (exit status: 0): no more");
    }

    #[test]
    fn a_peer_that_ends_by_itself_has_seen_all_unless_it_failed() {
        let says = "echo 'last-message = rendered: 3, dropped: 1, current: 9'";
        let seen = finished(says).unwrap();
        assert_eq!((seen.pictures, seen.dropped), (140, 1));
        let why = finished(&format!("{says}; echo ERROR: no more; exit 1")).unwrap_err();
        assert!(why.starts_with("GStreamer ended too early (exit status: 1): last-message"), "{why}");
        assert!(why.ends_with("\nERROR: no more"), "{why}");
        assert!(finished(&format!("{says}; kill -KILL $$")).unwrap_err().contains("SIGKILL"));
    }

    #[test]
    fn only_the_last_that_was_said_is_told() {
        let said: String = (1..=30).map(|line| format!("{line}\n")).collect();
        assert!(last(&said).starts_with("21\n") && last(&said).ends_with("\n30"));
        assert_eq!((last("one\n"), last("")), ("one".to_owned(), String::new()));
    }
}
