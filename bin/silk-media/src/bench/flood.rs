//! One stream with deadlines during a flood of the smallest packets there are, as fast as one CPU can send
//! them to a port of the same host that nobody listens on. Twice: with the receive work done by the
//! CPU that the packets come from, as a veth does by itself, and done by the player's own CPU, which then has to
//! look at each packet of the flood.

use super::Bench;
use super::backlog;
use super::missed::{missed, told};
use super::player::{Played, Player, at, source};
use super::table::{Goal, Samples};
use super::undisturbed::{Taken, any, undisturbed};
use crate::peers::Process;
use crate::trouble::Trouble;
use silk_testkit::netns::{INTERFACE, Rig, SERVER};
use std::env::current_exe;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The source's port.
const PORT: u16 = 6000;
/// The port that the flood is for: nobody's.
const NOBODY: u16 = 9;
/// So much longer than the stream the flood may take. It is told when it is enough.
const LONGER: Duration = Duration::from_secs(20);
/// So many packets a second are left to Linux: more than a person at that host needs.
const LINUX_PACKETS: &str = "10000";

/// Where the receive work is done.
#[derive(Clone, Copy)]
enum Receiver {
    Sender,
    Player,
}

/// The stream's name, where nobody gives it one, and its rate.
const STREAM: &str = "stream";
const RATE: f64 = 30.0;

/// A stream of `pictures` beside the flood, both ways.
pub fn run(bench: &mut Bench<'_>, pictures: u64) -> Result<(), Trouble> {
    let backlog = backlog::long();
    if let Err(error) = &backlog {
        bench.tell(&format!("the machine's queue of steered packets stays as it is: {error}"));
    }
    for (receiver, whose) in [(Receiver::Sender, "sender's"), (Receiver::Player, "player's")] {
        let (mut gone, mut speed, mut taken) = (Samples::default(), Samples::default(), Taken::default());
        let mut why = Vec::new();
        for round in 0..bench.rounds {
            bench.tell(&format!(
                "flood, received by the {whose} CPU, round {} of {}",
                round + 1,
                bench.rounds
            ));
            let (one, stolen) = undisturbed(bench, &mut taken, |bench| one(bench, receiver, pictures), any)?;
            why.extend(missed(round, STREAM, &one.played, &stolen));
            gone.add(one.gone as f64);
            speed.add(one.speed);
        }
        bench.table.figure(&format!("flood, received by the {whose} CPU: packets/s"), "silk", &speed);
        taken.tell(bench, &format!("flood, received by the {whose} CPU"), "silk");
        let what =
            format!("missed or lost of {pictures} at {RATE}/s beside the flood, received by the {whose} CPU");
        bench.table.judged(&what, &gone, Goal { must: 0.0, after: 0.0, more: false });
        why.iter().for_each(|missed| bench.tell(&told(missed)));
        bench.table.missed(why);
    }
    Ok(())
}

struct Flooded {
    played: Played,
    /// Pictures missed or lost.
    gone: u64,
    /// Packets of the flood that arrived in a second.
    speed: f64,
}

fn one(bench: &Bench<'_>, receiver: Receiver, pictures: u64) -> Result<Flooded, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let rate = RATE.to_string();
    let from = at(PORT);
    let mut arguments = vec!["--from", &from, "--fps", &rate, "--priority", "40", "--ring", "4096"];
    arguments.extend(["--linux-packets", LINUX_PACKETS]);
    if let Receiver::Player = receiver {
        arguments.push("--receive-here");
    }
    let player = Player::start(&rig.server, bench.cpu, bench.scratch, &arguments)?;
    let length = Duration::from_secs_f64(pictures as f64 / RATE);
    let flood = Flood::start(flood(&rig, length + LONGER)?, bench.scratch)?;
    bench.stop.pause(Duration::from_secs(1))?;
    let before = arrived(&rig)?;
    let clip = bench.clip("Neptune")?;
    let arguments = ["--to", &SERVER.to_string(), "--port", &PORT.to_string(), "--fps", &rate];
    let mut source = source(&rig.client, &clip.file, &arguments)?;
    bench.stop.pause(length)?;
    let speed = arrived(&rig)?.saturating_sub(before) as f64 / length.as_secs_f64();
    bench.stop.ends(&mut source, Duration::from_secs(10))?;
    flood.enough()?;
    let played = player.finish(Duration::from_secs(3))?;
    let figure = |name| played.figure(STREAM, name).unwrap_or(0);
    // What was neither shown nor counted never came.
    let gone = pictures.saturating_sub(figure("shown")).max(figure("missed") + figure("lost"));
    Ok(Flooded { played, gone, speed })
}

/// A flood that runs.
struct Flood {
    process: Process,
    /// What it says of what went wrong.
    said: PathBuf,
}

impl Flood {
    fn start(mut command: Command, scratch: &Path) -> Result<Self, Trouble> {
        let said = scratch.join("flood.txt");
        let errors = File::create(&said);
        let errors = errors.map_err(|error| Trouble::Unwritable(said.display().to_string(), error))?;
        Ok(Self { process: Process::start(command.stdout(Stdio::null()).stderr(errors))?, said })
    }

    /// Tells it that it is enough. It must not have ended before, nor have sent nothing, which it knows itself: beside no
    /// flood nothing is missed.
    fn enough(mut self) -> Result<(), Trouble> {
        if self.process.ends(Duration::ZERO) {
            return Err(self.failed("ended too early"));
        }
        self.process.interrupt();
        if !self.process.ends(Duration::from_secs(5)) {
            return Err(self.failed("does not end"));
        }
        let well = self.process.ended().is_some_and(|status| status.success());
        if well { Ok(()) } else { Err(self.failed("failed")) }
    }

    fn failed(&self, what: &str) -> Trouble {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        Trouble::Program(format!("the flood {what}: {}", said.trim_end()))
    }
}

/// What floods the server from the sources' CPU for so long at most.
fn flood(rig: &Rig, length: Duration) -> Result<Command, Trouble> {
    let address = rig.server.run("cat", [&format!("/sys/class/net/{INTERFACE}/address")]);
    let address = address.map_err(Trouble::rig)?;
    // On their CPU the source comes first: what is looked at is the receiver.
    let mut command = rig.client.command("chrt");
    command.args(["--idle", "0", "taskset", "-c", "0"]).arg(silk()?);
    command.args(["bench", "end", "flood", "datagrams", "--interface", INTERFACE]);
    command.args(["--to", &format!("{SERVER}:{NOBODY}"), "--mac", address.trim()]);
    command.args(["--milliseconds", &length.as_millis().to_string()]);
    Ok(command)
}

/// `silk`, which has the flood: it lies where this program does.
///
/// # Errors
/// It does not.
pub fn silk() -> Result<PathBuf, Trouble> {
    let own = current_exe().map_err(|error| Trouble::Program(format!("who am I? {error}")))?;
    let silk = own.with_file_name("silk");
    if fs::exists(&silk).unwrap_or(false) {
        return Ok(silk);
    }
    Err(Trouble::Program(format!("{} is missing: build it too (`make build-video`)", silk.display())))
}

/// Packets that the server's interface has received.
fn arrived(rig: &Rig) -> Result<u64, Trouble> {
    let told = rig.server.run("cat", [&format!("/sys/class/net/{INTERFACE}/statistics/rx_packets")]);
    count(&told.map_err(Trouble::rig)?)
}

fn count(told: &str) -> Result<u64, Trouble> {
    let unread = |_| Trouble::Program(format!("how many packets came is told as `{}`", told.trim()));
    told.trim().parse().map_err(unread)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flood that does this instead, ends or runs on, and then is enough.
    fn enough(does: &[&str], ends: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(does[0]);
        command.args(&does[1..]);
        let mut flood = Flood::start(command, folder.path()).unwrap();
        assert!(!ends || flood.process.ends(Duration::from_secs(60)));
        flood.enough().unwrap_err().to_string()
    }

    #[test]
    fn a_flood_that_was_none_is_told_with_why() {
        let refused = ["sh", "-c", "echo no packet socket >&2; exit 1"];
        assert_eq!(enough(&refused, true), "the flood ended too early: no packet socket");
        assert_eq!(enough(&["true"], true), "the flood ended too early: ");
        // The signal kills it, for it has nothing to say.
        assert_eq!(enough(&["env", "--default-signal=INT", "sleep", "1000"], false), "the flood failed: ");
    }

    #[test]
    fn a_count_that_cannot_be_read_is_not_zero() {
        assert_eq!(count("1234\n").unwrap(), 1234);
        assert!(count("").is_err() && count("-1").is_err());
    }
}
