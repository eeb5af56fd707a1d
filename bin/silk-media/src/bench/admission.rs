//! Admission (Scout §4.4): what the player says a stream will cost, from its picture's size and bits alone,
//! against what it then costs. The other three clips have taught it before.

use super::Bench;
use super::deadlines::appliance;
use super::player::{at, source, tell};
use super::table::{Goal, Samples};
use crate::clips::Clip;
use crate::demux::Demuxer;
use crate::trouble::Trouble;
use silk_testkit::netns::{Rig, SERVER};
use std::time::Duration;

/// The first port of sources, and of the player's streams.
const PORT: u16 = 6000;
/// The rate that all are played at: so many times their own that it does not take long.
const RATE: &str = "120";

/// Each clip is predicted once a round.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Trouble> {
    let mut all = Samples::default();
    for judged in bench.clips {
        let mut ratio = Samples::default();
        for round in 0..bench.rounds {
            bench.tell(&format!("admission of {}, round {} of {}", judged.name, round + 1, bench.rounds));
            let one = one(bench, judged)?;
            ratio.add(one);
            all.add((one - 1.0).abs());
        }
        bench.table.figure(&format!("{}: predicted ÷ measured CPU", judged.name), "silk", &ratio);
    }
    let goal = Goal { must: 0.15, after: 0.05, more: false };
    bench.table.judged("CPU of a stream, predicted beside measured: off by", &all, goal);
    Ok(())
}

fn one(bench: &Bench<'_>, judged: &Clip) -> Result<f64, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let player = appliance(bench, &rig, "deadlines")?;
    let teachers = bench.clips.iter().filter(|clip| clip.name != judged.name);
    let mut predicted = 0.0;
    for (number, clip) in teachers.chain([judged]).enumerate() {
        let port = PORT + 2 * number as u16;
        let about = about(clip)?;
        let command = format!("mpeg_decode {} port={port} name={} fps={RATE} {about}", at(port), clip.name);
        let answer = tell(&rig.client, &command)?;
        predicted =
            answer.split("cpu=").nth(1).and_then(|text| text.split('%').next()?.parse().ok()).unwrap_or(0.0);
        let (to, port) = (format!("{SERVER}:{port}"), port.to_string());
        let mut source = source(&rig.client, &clip.file, &["--to", &to, "--port", &port, "--fps", RATE])?;
        source.ends(Duration::from_secs(60));
    }
    let played = player.finish(Duration::from_secs(1))?;
    let figure = |figure| played.figure(judged.name, figure).unwrap_or(0) as f64;
    let rate: f64 = RATE.parse().unwrap_or(1.0);
    let measured = figure("cpu_ns") / figure("pictures").max(1.0) * rate / 1e9 * 100.0;
    Ok(predicted / measured.max(1e-9))
}

/// What the clip's pictures are like, as `mpeg_decode` is told.
fn about(clip: &Clip) -> Result<String, Trouble> {
    let demuxer = Demuxer::open(&clip.file)?;
    let (mut bytes, mut pictures, mut size) = (0, 0u64, None);
    for coded in demuxer {
        size = size.or_else(|| silk_media::alf::sequence(coded.bytes()));
        bytes += coded.bytes().len() as u64;
        pictures += 1;
    }
    let size = size.ok_or_else(|| Trouble::Program(format!("{} does not tell its size", clip.name)))?;
    Ok(format!("bits={} size={}x{}", bytes * 8 / pictures.max(1), size.width, size.height))
}
