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
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// The source's port.
const PORT: u16 = 6000;
/// The port that the flood is for: nobody's.
const NOBODY: u16 = 9;
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
    let flood = start(&rig, length + Duration::from_secs(2))?;
    bench.stop.pause(Duration::from_secs(1))?;
    let before = arrived(&rig);
    let clip = bench.clip("Neptune")?;
    let arguments = ["--to", &SERVER.to_string(), "--port", &PORT.to_string(), "--fps", &rate];
    let mut source = source(&rig.client, &clip.file, &arguments)?;
    bench.stop.pause(length)?;
    let speed = (arrived(&rig) - before) as f64 / length.as_secs_f64();
    bench.stop.ends(&mut source, Duration::from_secs(10))?;
    drop(flood);
    let played = player.finish(Duration::from_secs(3))?;
    let figure = |name| played.figure(STREAM, name).unwrap_or(0);
    // What was neither shown nor counted never came.
    let gone = pictures.saturating_sub(figure("shown")).max(figure("missed") + figure("lost"));
    Ok(Flooded { played, gone, speed })
}

/// Floods the server from the sources' CPU for so long.
fn start(rig: &Rig, length: Duration) -> Result<Process, Trouble> {
    let address = rig.server.run("cat", [&format!("/sys/class/net/{INTERFACE}/address")]);
    let address = address.map_err(|error| Trouble::Program(error.to_string()))?;
    // On their CPU the source comes first: what is looked at is the receiver.
    let mut command = rig.client.command("chrt");
    command.args(["--idle", "0", "taskset", "-c", "0"]).arg(silk()?).args([
        "bench",
        "end",
        "flood",
        "datagrams",
        "--interface",
        INTERFACE,
    ]);
    command.args(["--to", &format!("{SERVER}:{NOBODY}"), "--mac", address.trim()]);
    command.args(["--milliseconds", &length.as_millis().to_string()]);
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// `silk`, which has the flood: it lies where this program does.
fn silk() -> Result<PathBuf, Trouble> {
    let own = current_exe().map_err(|error| Trouble::Program(format!("who am I? {error}")))?;
    let silk = own.with_file_name("silk");
    if fs::exists(&silk).unwrap_or(false) {
        return Ok(silk);
    }
    Err(Trouble::Program(format!("{} is missing: build it too (`make build-video`)", silk.display())))
}

/// Packets that the server's interface has received.
fn arrived(rig: &Rig) -> u64 {
    let told = rig.server.run("cat", [&format!("/sys/class/net/{INTERFACE}/statistics/rx_packets")]);
    told.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
