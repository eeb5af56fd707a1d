//! Scout §4.3's experiment for real: Neptune with deadlines beside eight streams of large pictures with long output
//! queues, the processor nine tenths busy; by deadline, and in turn. And what GStreamer and ffmpeg make of the same
//! streams.

use super::Bench;
use super::apache::Apache;
use super::beside::{BUSY, Beside, OTHERS, OTHERS_RATE, PORT};
use super::load::{Load, appliance};
use super::missed::{missed, told};
use super::pace::Pace;
use super::peers_deadlines::peers;
use super::player::{Played, at, source, tell};
use super::stolen::Stolen;
use super::table::{Goal, Samples};
use super::undisturbed::{Taken, any, undisturbed};
use crate::trouble::Trouble;
use serde_json::Value;
use silk_testkit::netns::{Rig, SERVER};
use std::time::Duration;

/// How much less than they should the streams may ask for in a run that counts. More makes it only harder.
const LESS: f64 = 0.03;
/// The name of the stream that is looked at.
const NEPTUNE: &str = "neptune";

/// Runs all.
pub fn run(bench: &mut Bench<'_>, load: &Load) -> Result<(), Trouble> {
    let what = format!(
        "{} pictures at {:.0}/s beside {OTHERS} others, nine tenths of the CPU in all, missed or lost",
        load.pictures, load.rate
    );
    in_turns(bench, load, &what)?;
    with_apache(bench, load, &what)
}

/// Rows of what the runs of one kind came to.
#[derive(Default)]
struct Runs {
    gone: Samples,
    asked: Samples,
    used: Samples,
    behind: Samples,
    lost: Samples,
    taken: Taken,
    missed: Vec<Value>,
    timeline: Value,
}

impl Runs {
    fn add(&mut self, round: u32, load: &Load, run: &Run, stolen: &Stolen) {
        let figure = |name| run.played.figure(NEPTUNE, name).unwrap_or(0);
        // One that never came was not there when it was due either.
        self.gone.add(load.pictures.saturating_sub(figure("shown")) as f64);
        self.asked.add(run.asked);
        self.used.add(run.used);
        self.behind.add(figure("behind_most_ns") as f64 / 1e6);
        self.lost.add(figure("lost") as f64);
        self.missed.extend(missed(round, NEPTUNE, &run.played, stolen));
        self.timeline = run.played.stream(NEPTUNE)["timeline"].clone();
    }

    /// All but what was missed.
    fn tell(&self, bench: &mut Bench<'_>, what: &str) {
        let rows = [
            ("of the CPU, what all streams asked for", &self.asked),
            ("of the CPU, what the player used", &self.used),
            ("the display behind its clock at most, ms", &self.behind),
            ("of the pictures missed, lost on the way or in decoding", &self.lost),
        ];
        for (row, samples) in rows {
            bench.table.figure(&format!("{what}: {row}"), "silk", samples);
        }
        self.taken.tell(bench, what, "silk");
    }

    /// Those that were missed and should not have been, one by one.
    fn tell_missed(&self, bench: &Bench<'_>) {
        self.missed.iter().for_each(|missed| bench.tell(&told(missed)));
    }
}

/// silk by deadline and in turn, and the peers, one after the other in each round, beside others at the rate that was
/// right for silk in this round: what a picture costs, and what else a machine does, is not what it was some rounds ago.
fn in_turns(bench: &mut Bench<'_>, load: &Load, what: &str) -> Result<(), Trouble> {
    let (mut schedules, mut peers) = (Schedules::default(), peers(load));
    for round in 0..bench.rounds {
        let name = format!("deadlines, round {} of {}", round + 1, bench.rounds);
        let rate = bench.part(&name, |bench| schedules.round(bench, load, (round, &name)))?;
        let Some(rate) = rate else { continue };
        for runs in &mut peers {
            let name = format!("{name}, {}", runs.name());
            bench.tell(&name);
            bench.part(&name, |bench| runs.round(bench, load, rate))?;
        }
    }
    schedules.tell(bench, what);
    peers.iter().for_each(|runs| runs.tell(bench, what));
    Ok(())
}

/// The runs of both of silk's schedules.
#[derive(Default)]
struct Schedules {
    pace: Pace,
    rates: Samples,
    by_deadline: Runs,
    in_turn: Runs,
}

impl Schedules {
    /// One of each, the second at the rate of the first: the others'.
    fn round(&mut self, bench: &Bench<'_>, load: &Load, (round, name): (u32, &str)) -> Result<f64, Trouble> {
        let Self { pace, rates, by_deadline, in_turn } = self;
        bench.tell(name);
        let mut rate = 0.0;
        let run = |bench: &Bench<'_>| {
            let beside = pace.others(bench, load, false)?;
            rate = beside.rate;
            let run = one(bench, &Rig::new().map_err(Trouble::rig)?, "deadlines", load, &beside)?;
            pace.follow(run.asked);
            Ok(run)
        };
        let (run, stolen) = undisturbed(bench, &mut by_deadline.taken, run, Run::meant)?;
        by_deadline.add(round, load, &run, &stolen);
        rates.add(rate);
        bench.tell(&format!("{name}, in turn"));
        let run = |bench: &Bench<'_>| {
            let beside = Beside::new(&bench.load.file, rate);
            one(bench, &Rig::new().map_err(Trouble::rig)?, "in-turn", load, &beside)
        };
        let (run, stolen) = undisturbed(bench, &mut in_turn.taken, run, any)?;
        in_turn.add(round, load, &run, &stolen);
        Ok(rate)
    }

    fn tell(self, bench: &mut Bench<'_>, what: &str) {
        let Self { rates, by_deadline, in_turn, .. } = self;
        bench.table.figure(OTHERS_RATE, "silk", &rates);
        let goal = Goal { must: 0.0, after: 0.0, more: false };
        by_deadline.tell(bench, "by deadline");
        bench.table.judged(&format!("{what}, by deadline"), &by_deadline.gone, goal);
        by_deadline.tell_missed(bench);
        bench.table.over_time(by_deadline.timeline);
        bench.table.missed(by_deadline.missed);
        in_turn.tell(bench, "in turn");
        bench.table.figure(&format!("{what}, in turn"), "silk", &in_turn.gone);
        bench.table.over_time(in_turn.timeline);
    }
}

/// By deadline again, with Apache under load on the same CPU.
fn with_apache(bench: &mut Bench<'_>, load: &Load, what: &str) -> Result<(), Trouble> {
    let (mut runs, mut pace) = (Runs::default(), Pace::default());
    let (mut rates, mut served) = (Samples::default(), Samples::default());
    for round in 0..bench.rounds {
        let name = format!("deadlines with Apache, round {} of {}", round + 1, bench.rounds);
        bench.tell(&name);
        bench.part(&name, |bench| {
            let (mut rate, mut answered) = (0.0, 0.0);
            let run = |bench: &Bench<'_>| {
                let beside = pace.others(bench, load, true)?;
                rate = beside.rate;
                let rig = Rig::new().map_err(Trouble::rig)?;
                let apache = Apache::under_load(&rig, bench.cpu, bench.scratch)?;
                let run = one(bench, &rig, "deadlines", load, &beside)?;
                answered = apache.finish().unwrap_or(0.0);
                pace.follow(run.asked);
                Ok(run)
            };
            let (run, stolen) = undisturbed(bench, &mut runs.taken, run, Run::meant)?;
            runs.add(round, load, &run, &stolen);
            rates.add(rate);
            served.add(answered);
            Ok(())
        })?;
    }
    bench.table.figure(&format!("with Apache: {OTHERS_RATE}"), "silk", &rates);
    runs.tell(bench, "with Apache");
    bench.table.figure(
        &format!("{what}, by deadline, with Apache under load on its CPU"),
        "silk",
        &runs.gone,
    );
    runs.tell_missed(bench);
    bench.table.missed(runs.missed);
    bench.table.figure("requests that Apache answered, 1/s", "Apache", &served);
    Ok(())
}

/// One run.
struct Run {
    /// What became of the streams.
    played: Played,
    /// Of the CPU, what the player used while Neptune's source sent.
    used: f64,
    /// Of the CPU, what all streams at their rates would use, at what a picture of each cost in this run. The player
    /// cannot use more than there is: what it used tells only of streams that did not ask for more.
    asked: f64,
}

impl Run {
    /// Whether the streams asked for nine tenths of the CPU, as they should, or more.
    fn meant(&self) -> Result<(), String> {
        let asked = self.asked;
        let meant = asked >= BUSY - LESS;
        if meant { Ok(()) } else { Err(format!("the streams asked for {asked:.2} of the CPU alone")) }
    }
}

/// A run on these hosts.
fn one(
    bench: &Bench<'_>,
    rig: &Rig,
    schedule: &str,
    load: &Load,
    beside: &Beside<'_>,
) -> Result<Run, Trouble> {
    let player = appliance(bench, rig, schedule)?;
    let mut sources = beside.begin(rig)?;
    let rate = format!("{:.3}", load.rate);
    tell(&rig.client, &format!("mpeg_decode {} port={PORT} name={NEPTUNE} fps={rate} queue=16", at(PORT)))?;
    let (to, port) = (format!("{SERVER}:{PORT}"), PORT.to_string());
    let clip = &bench.clip("Neptune")?.file;
    let mut neptune = source(&rig.client, clip, &["--to", &to, "--port", &port, "--fps", &rate])?;
    let before = player.cpu();
    let length = Duration::from_secs_f64(load.pictures as f64 / load.rate);
    bench.stop.ends(&mut neptune, length)?;
    let used = (player.cpu() - before).as_secs_f64() / length.as_secs_f64();
    // What its queue still holds.
    bench.stop.ends(&mut neptune, Duration::from_secs(5))?;
    bench.stop.pause(Duration::from_secs(1))?;
    Beside::still(&mut sources)?;
    drop(sources);
    let played = player.finish(Duration::ZERO)?;
    let rate = |name: &str| if name == NEPTUNE { load.rate } else { beside.rate };
    let asked = asked(&played.streams, played.cpu, rate);
    Ok(Run { played, used, asked })
}

/// What streams at these rates ask for of a CPU of which a player used so much for them: of what it used beside their
/// paths each has a share by its path's.
fn asked(streams: &[Value], used: Duration, rate: impl Fn(&str) -> f64) -> f64 {
    let figure = |stream: &Value, name: &str| stream[name].as_f64().unwrap_or(0.0);
    let paths: f64 = streams.iter().map(|stream| figure(stream, "cpu_ns")).sum();
    let each = streams.iter().map(|stream| {
        let picture = figure(stream, "cpu_ns") / figure(stream, "pictures").max(1.0);
        rate(stream["name"].as_str().unwrap_or_default()) * picture / 1e9
    });
    each.sum::<f64>() * used.as_secs_f64() * 1e9 / paths.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_streams_ask_for_is_what_their_rates_cost_whatever_they_got() {
        // Of a second of a CPU, 0.8 s in paths: one of ten pictures at 10/s, one that got 20 of the 30 it asked for.
        let streams = [
            json!({ "name": NEPTUNE, "cpu_ns": 200_000_000, "pictures": 10 }),
            json!({ "name": "other", "cpu_ns": 600_000_000, "pictures": 20 }),
        ];
        let rate = |name: &str| if name == NEPTUNE { 10.0 } else { 30.0 };
        let asked = asked(&streams, Duration::from_millis(880), rate);
        assert!((asked - 1.1 * (0.2 + 0.9)).abs() < 1e-9, "{asked}");
        assert_eq!(super::asked(&[], Duration::ZERO, rate), 0.0);
    }
}
