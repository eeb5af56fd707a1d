//! Scout §4.3's experiment for real: Neptune with deadlines beside eight streams of large pictures with long output
//! queues, the processor nine tenths busy; by deadline, and in turn. And what GStreamer and ffmpeg make of the same
//! streams.

use super::Bench;
use super::apache::Apache;
use super::beside::{Beside, OTHERS, PORT, appliance_arguments};
use super::peers_deadlines;
use super::player::{Played, Player, at, source, tell};
use super::table::{Goal, Samples};
use super::undisturbed::{Taken, undisturbed};
use crate::peers::Peer;
use crate::trouble::Trouble;
use serde_json::Value;
use silk_testkit::netns::{Rig, SERVER};
use std::thread::sleep;
use std::time::Duration;

/// The others' pictures a second, for the first trial.
const GUESS: f64 = 60.0;

/// What the experiment needs to know of Neptune.
pub struct Load {
    /// CPU of a picture.
    pub realtime: Duration,
    /// Pictures.
    pub pictures: u64,
    /// Its rate.
    pub rate: f64,
    /// Its own rate, which peers can play it at.
    pub own: f64,
}

/// Runs all.
pub fn run(bench: &mut Bench<'_>, load: &Load) -> Result<(), Trouble> {
    let what = format!(
        "{} pictures at {:.0}/s beside {OTHERS} others, nine tenths of the CPU in all, missed or lost",
        load.pictures, load.rate
    );
    schedules(bench, load, &what)?;
    with_apache(bench, load, &what)?;
    if load.rate == load.own {
        peers(bench, load, &what)?;
    }
    Ok(())
}

/// The others at a rate at which the processor is nine tenths busy now: on a machine that is shared, another one than some
/// minutes ago.
fn calibrated<'a>(bench: &Bench<'a>, load: &Load) -> Result<Beside<'a>, Trouble> {
    bench.tell("trials of how much the others can be");
    let guess = Beside::new(&bench.load.file, GUESS);
    let realtime = load.rate * load.realtime.as_secs_f64();
    let wait = |time| {
        sleep(time);
        Ok(())
    };
    let rate = guess.rate_beside(realtime, |rig| appliance(bench, rig, "deadlines"), wait)?;
    Ok(Beside { rate, ..guess })
}

fn schedules(bench: &mut Bench<'_>, load: &Load, what: &str) -> Result<(), Trouble> {
    let (mut missed, mut busy, mut in_turn) = (Samples::default(), Samples::default(), Samples::default());
    let (mut behind, mut lost) = (Samples::default(), Samples::default());
    let mut taken = [Taken::default(), Taken::default()];
    let mut lines = [Value::Null, Value::Null];
    let mut rates = Samples::default();
    for round in 0..bench.rounds {
        let beside = calibrated(bench, load)?;
        rates.add(beside.rate);
        for ((schedule, line), taken) in ["deadlines", "in-turn"].into_iter().zip(&mut lines).zip(&mut taken)
        {
            bench.tell(&format!("deadlines, round {} of {}, {schedule}", round + 1, bench.rounds));
            let (played, share) = undisturbed(bench, taken, |bench| {
                let rig = Rig::new().map_err(Trouble::rig)?;
                one(bench, &rig, schedule, load, &beside)
            })?;
            // One that never came was not there when it was due either.
            let shown = played.figure("neptune", "shown").unwrap_or(0);
            let gone = load.pictures.saturating_sub(shown) as f64;
            *line = played.stream("neptune")["timeline"].clone();
            if schedule == "deadlines" {
                missed.add(gone);
                busy.add(share);
                behind.add(played.figure("neptune", "behind_most_ns").unwrap_or(0) as f64 / 1e6);
                lost.add(played.figure("neptune", "lost").unwrap_or(0) as f64);
            } else {
                in_turn.add(gone);
            }
        }
    }
    bench.table.figure("pictures/s of each of the others", "silk", &rates);
    bench.table.figure("CPU of the player, by deadline", "silk", &busy);
    for (taken, what) in taken.iter().zip(["by deadline", "in turn"]) {
        taken.tell(bench, what, "silk");
    }
    bench.table.figure("the display behind its clock at most, ms", "silk", &behind);
    bench.table.figure("of these lost on the way or in decoding", "silk", &lost);
    let goal = Goal { must: 0.0, after: 0.0, more: false };
    let [by_deadline, by_turn] = lines;
    bench.table.judged(&format!("{what}, by deadline"), &missed, goal);
    bench.table.over_time(by_deadline);
    bench.table.figure(&format!("{what}, in turn"), "silk", &in_turn);
    bench.table.over_time(by_turn);
    Ok(())
}

/// By deadline again, with Apache under load on the same CPU.
fn with_apache(bench: &mut Bench<'_>, load: &Load, what: &str) -> Result<(), Trouble> {
    let (mut gone, mut served, mut taken) = (Samples::default(), Samples::default(), Taken::default());
    for round in 0..bench.rounds {
        let beside = calibrated(bench, load)?;
        bench.tell(&format!("deadlines with Apache, round {} of {}", round + 1, bench.rounds));
        let mut answered = 0.0;
        let (played, _) = undisturbed(bench, &mut taken, |bench| {
            let rig = Rig::new().map_err(Trouble::rig)?;
            let apache = Apache::under_load(&rig, bench.cpu, bench.scratch)?;
            let run = one(bench, &rig, "deadlines", load, &beside);
            answered = apache.finish().unwrap_or(0.0);
            run
        })?;
        gone.add(load.pictures.saturating_sub(played.figure("neptune", "shown").unwrap_or(0)) as f64);
        served.add(answered);
    }
    bench.table.figure(&format!("{what}, by deadline, with Apache under load on its CPU"), "silk", &gone);
    taken.tell(bench, "by deadline, with Apache", "silk");
    bench.table.figure("requests that Apache answered, 1/s", "Apache", &served);
    Ok(())
}

fn peers(bench: &mut Bench<'_>, load: &Load, what: &str) -> Result<(), Trouble> {
    let beside = calibrated(bench, load)?;
    for peer in Peer::ALL.into_iter().filter(|peer| peer.is_installed()) {
        let (mut gone, mut busy, mut taken) = (Samples::default(), Samples::default(), Taken::default());
        for round in 0..bench.rounds {
            bench.tell(&format!("deadlines, round {} of {}, {}", round + 1, bench.rounds, peer.name()));
            let run = |bench: &Bench<'_>| peers_deadlines::one(bench, peer, load, &beside);
            let seen = undisturbed(bench, &mut taken, run)?;
            gone.add(seen.gone as f64);
            busy.add(seen.share);
        }
        bench.table.figure(what, peer.name(), &gone);
        bench.table.figure("CPU of its nine processes", peer.name(), &busy);
        taken.tell(bench, "its nine processes", peer.name());
    }
    Ok(())
}

/// One run on these hosts; what became of the streams, and of the CPU the part that the player used.
fn one(
    bench: &Bench<'_>,
    rig: &Rig,
    schedule: &str,
    load: &Load,
    beside: &Beside<'_>,
) -> Result<(Played, f64), Trouble> {
    let player = appliance(bench, rig, schedule)?;
    let sources = beside.begin(rig)?;
    let rate = format!("{:.3}", load.rate);
    tell(&rig.client, &format!("mpeg_decode {} port={PORT} name=neptune fps={rate} queue=16", at(PORT)))?;
    let (to, port) = (format!("{SERVER}:{PORT}"), PORT.to_string());
    let clip = &bench.clip("Neptune")?.file;
    let mut neptune = source(&rig.client, clip, &["--to", &to, "--port", &port, "--fps", &rate])?;
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
    let arguments = appliance_arguments(bench.scratch, schedule)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Player::start(&rig.server, bench.cpu, bench.scratch, &arguments)
}
