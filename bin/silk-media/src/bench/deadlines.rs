//! Scout §4.3's experiment for real: Neptune with deadlines beside eight Canyons with long output
//! queues, the processor nine tenths busy; by deadline, and in turn.

use super::Bench;
use super::player::{Played, Player, at, source, tell};
use super::table::{Goal, Samples};
use crate::trouble::Trouble;
use silk_player::GRAPH;
use silk_testkit::netns::{CLIENT, Rig, SERVER};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// The busy part of the CPU.
const BUSY: f64 = 0.9;
/// Streams beside the one that is looked at.
const OTHERS: u16 = 8;
/// Pictures in the others' output queues: as many seconds of decoding as Scout's 128 were on its machine,
/// or nearly, within a reasonable memory.
const QUEUE: u32 = 2048;
/// The first port of sources, and of the player's streams.
const PORT: u16 = 6000;

/// What the experiment needs to know: CPU of a picture of each, and the pictures of the first.
pub struct Load {
    /// Of Neptune.
    pub realtime: Duration,
    /// Of Canyon.
    pub other: Duration,
    /// Pictures of Neptune.
    pub pictures: u64,
    /// Neptune's rate.
    pub rate: f64,
}

/// Runs both.
pub fn run(bench: &mut Bench<'_>, load: &Load) -> Result<(), Trouble> {
    let others = others(bench, load)?;
    let (mut missed, mut busy, mut in_turn) = (Samples::default(), Samples::default(), Samples::default());
    let (mut behind, mut lost) = (Samples::default(), Samples::default());
    for round in 0..bench.rounds {
        for schedule in ["deadlines", "in-turn"] {
            bench.tell(&format!("deadlines, round {} of {}, {schedule}", round + 1, bench.rounds));
            let (played, share) = one(bench, schedule, load, others)?;
            // One that never came was not there when it was due either.
            let gone = played.figure("neptune", "missed").unwrap_or(load.pictures)
                + played.figure("neptune", "lost").unwrap_or(0);
            if schedule == "deadlines" {
                missed.add(gone as f64);
                busy.add(share);
                behind.add(played.figure("neptune", "behind_most_ns").unwrap_or(0) as f64 / 1e6);
                lost.add(played.figure("neptune", "lost").unwrap_or(0) as f64);
            } else {
                in_turn.add(gone as f64);
            }
        }
    }
    let beside = format!("beside {OTHERS} others at {others:.0} pictures/s");
    bench.table.figure("CPU of the player, by deadline", "silk", &busy);
    bench.table.figure("the display behind its clock at most, ms", "silk", &behind);
    bench.table.figure("of these lost on the way or in decoding", "silk", &lost);
    let goal = Goal { must: 0.0, after: 0.0, more: false };
    bench.table.judged(
        &format!("missed or lost of {} at {:.0}/s {beside}, by deadline", load.pictures, load.rate),
        &missed,
        goal,
    );
    bench.table.figure(&format!("missed or lost {beside}, in turn"), "silk", &in_turn);
    Ok(())
}

/// The rate of the others at which the processor is as busy as it is to be: a guess by what pictures
/// cost alone, put right by two short trials.
fn others(bench: &Bench<'_>, load: &Load) -> Result<f64, Trouble> {
    let realtime = load.rate * load.realtime.as_secs_f64();
    let mut others = (BUSY - realtime) / f64::from(OTHERS) / load.other.as_secs_f64().max(1e-6);
    for _ in 0..2 {
        bench.tell(&format!("a trial with the others at {others:.0} pictures/s"));
        let trial = Load { pictures: (load.rate * TRIAL) as u64, ..*load };
        let (_, share) = one(bench, "deadlines", &trial, others)?;
        others = (others * (BUSY - realtime) / (share - realtime).max(0.01)).clamp(1.0, 1000.0);
    }
    Ok(others)
}

/// Seconds of a trial.
const TRIAL: f64 = 4.0;

/// One run; what became of the streams, and of the CPU the part that the player used.
fn one(bench: &Bench<'_>, schedule: &str, load: &Load, others: f64) -> Result<(Played, f64), Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let player = appliance(bench, &rig, schedule)?;
    let (realtime, other) = (bench.clip("Neptune")?, bench.clip("Canyon")?);
    let mut sources = Vec::new();
    for number in 1..=OTHERS {
        let port = PORT + 2 * number;
        let fps = format!("{others:.3}");
        tell(
            &rig.client,
            &format!("mpeg_decode {} port={port} name=canyon{number} fps={fps} queue={QUEUE}", at(port)),
        )?;
        let (to, port) = (format!("{SERVER}:{port}"), port.to_string());
        sources.push(source(&rig.client, &other.file, &["--to", &to, "--port", &port, "--fast", "--loop"])?);
    }
    let rate = format!("{:.3}", load.rate);
    tell(&rig.client, &format!("mpeg_decode {} port={PORT} name=neptune fps={rate} queue=16", at(PORT)))?;
    let (to, port) = (format!("{SERVER}:{PORT}"), PORT.to_string());
    let mut neptune = source(&rig.client, &realtime.file, &["--to", &to, "--port", &port, "--fps", &rate])?;
    let before = player.cpu();
    let length = Duration::from_secs_f64(load.pictures as f64 / load.rate);
    neptune.ends(length);
    let share = (player.cpu() - before).as_secs_f64() / length.as_secs_f64();
    // What its queue still holds.
    neptune.ends(Duration::from_secs(5));
    sleep(Duration::from_secs(1));
    drop(sources);
    Ok((player.finish(Duration::ZERO)?, share))
}

/// A player on the server that takes commands from the client.
pub fn appliance(bench: &Bench<'_>, rig: &Rig, schedule: &str) -> Result<Player, Trouble> {
    let graph = bench.scratch.join("video.toml");
    let controllers = format!("name = \"shell\"\ncontrollers = [\"{CLIENT}/32\"]");
    fs::write(&graph, GRAPH.replace("name = \"shell\"", &controllers))
        .map_err(|error| Trouble::Unwritable(graph.display().to_string(), error))?;
    let graph = graph.display().to_string();
    let arguments =
        ["--appliance", "--graph", &graph, "--schedule", schedule, "--priority", "40", "--ring", "8192"];
    Player::start(&rig.server, bench.cpu, bench.scratch, &arguments)
}
