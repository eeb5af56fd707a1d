//! Admission (Scout §4.4): what the player says a stream will cost, from its picture's size and bits alone,
//! against what it then costs. The other three clips play meanwhile, and have taught it for a while before: they keep
//! a good part of the processor busy, as when it matters who is let in, and what a picture costs on a machine that is
//! shared with others changes by half within a minute.

use super::Bench;
use super::load::appliance;
use super::player::{at, source, tell};
use super::table::{Goal, Samples};
use super::undisturbed::{Taken, any, undisturbed};
use crate::clips::Clip;
use crate::demux::Demuxer;
use crate::trouble::Trouble;
use silk_testkit::netns::{Rig, SERVER};
use std::fmt;
use std::time::Duration;

/// The first port of sources, and of the player's streams.
const PORT: u16 = 6000;
/// Pictures a second of the judged one, and of each of the others: many times their own.
const RATE: f64 = 120.0;
const OTHERS: f64 = 360.0;
/// How long the others play before the prediction, and the judged one at least after it: as often as it takes whole.
const LENGTH: Duration = Duration::from_secs(10);

/// Each clip is predicted once a round.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Trouble> {
    let (mut all, mut taken) = (Samples::default(), Taken::default());
    for judged in bench.clips {
        let mut ratio = Samples::default();
        for round in 0..bench.rounds {
            bench.tell(&format!("admission of {}, round {} of {}", judged.name, round + 1, bench.rounds));
            let (one, _) = undisturbed(bench, &mut taken, |bench| one(bench, judged), any)?;
            ratio.add(one);
            all.add((one - 1.0).abs());
        }
        bench.table.figure(&format!("{}: predicted ÷ measured CPU", judged.name), "silk", &ratio);
    }
    taken.tell(bench, "admission", "silk");
    let goal = Goal { must: 0.15, after: 0.05, more: false };
    bench.table.judged("CPU of a stream, predicted beside measured: off by", &all, goal);
    Ok(())
}

fn one(bench: &Bench<'_>, judged: &Clip) -> Result<f64, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let player = appliance(bench, &rig, "deadlines")?;
    let teachers = bench.clips.iter().filter(|clip| clip.name != judged.name);
    let play = |clip: &Clip, number: u16, rate: f64| {
        let (port, about) = (PORT + 2 * number, About::of(clip)?);
        let command = format!("mpeg_decode {} port={port} name={} fps={rate} {about}", at(port), clip.name);
        let answer = tell(&rig.client, &command)?;
        let (to, port) = (format!("{SERVER}:{port}"), port.to_string());
        let arguments = ["--to", &to, "--port", &port, "--fps", &rate.to_string(), "--loop"];
        Ok((answer, source(&rig.client, &clip.file, &arguments)?))
    };
    let taught = teachers
        .zip(1..)
        .map(|(clip, number)| play(clip, number, OTHERS))
        .collect::<Result<Vec<_>, Trouble>>()?;
    bench.stop.pause(LENGTH)?;
    let (answer, stream) = play(judged, 0, RATE)?;
    let once = Duration::from_secs_f64(About::of(judged)?.pictures as f64 / RATE);
    bench.stop.pause(once.mul_f64((LENGTH.as_secs_f64() / once.as_secs_f64()).ceil()))?;
    drop((taught, stream));
    let predicted: Option<f64> =
        answer.split("cpu=").nth(1).and_then(|text| text.split('%').next()?.parse().ok());
    let unsaid =
        || Trouble::Program(format!("the player does not say what {} will cost: {answer}", judged.name));
    let predicted = predicted.ok_or_else(unsaid)?;
    let played = player.finish(Duration::from_secs(1))?;
    let figure = |figure| played.figure(judged.name, figure).unwrap_or(0) as f64;
    let measured = figure("cpu_ns") / figure("pictures").max(1.0) * RATE / 1e9 * 100.0;
    Ok(predicted / measured.max(1e-9))
}

/// What a clip's pictures are like, as `mpeg_decode` is told.
struct About {
    pictures: u64,
    bits: u64,
    size: (u32, u32),
}

impl About {
    fn of(clip: &Clip) -> Result<Self, Trouble> {
        let demuxer = Demuxer::open(&clip.file)?;
        let (mut bytes, mut pictures, mut size) = (0, 0u64, None);
        for coded in demuxer {
            size = size.or_else(|| silk_media::alf::sequence(coded.bytes()));
            bytes += coded.bytes().len() as u64;
            pictures += 1;
        }
        let size = size.ok_or_else(|| Trouble::Program(format!("{} does not tell its size", clip.name)))?;
        Ok(Self { pictures, bits: bytes * 8 / pictures.max(1), size: (size.width, size.height) })
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bits, size: (width, height), .. } = self;
        write!(f, "bits={bits} size={width}x{height}")
    }
}
