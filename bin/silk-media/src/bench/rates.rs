//! The highest rate at which each clip can be decoded (Scout's Table 1): silk, GStreamer and ffmpeg get
//! the same packets of the same source over the same cable, decode with the same library in one thread and
//! show nothing. Pictures for each second of CPU that the whole process used.

use super::Bench;
use super::player::{Player, source};
use super::table::{Goal, Samples};
use crate::clips::Clip;
use crate::demux::Demuxer;
use crate::peers::{Peer, Reception};
use crate::trouble::Trouble;
use silk_media::Coding;
use silk_testkit::netns::{Rig, SERVER};
use silk_wire::rtp;
use std::time::Duration;

/// Times its own rate that a clip is sent with: below what any of them can decode here.
const SPEED: f64 = 8.0;
/// Pictures at the end that a peer does not wait for: the last are known to be whole only when another
/// follows.
const BEHIND: u32 = 8;

/// Measures every clip, all systems in turns. The mean CPU of a picture with silk, for each clip.
pub fn run(bench: &mut Bench<'_>) -> Result<Vec<Duration>, Trouble> {
    let mut costs = Vec::new();
    for clip in bench.clips {
        let mut silk = Samples::default();
        let mut peers = [Samples::default(), Samples::default()];
        let mut ratio = Samples::default();
        for round in 0..bench.rounds {
            bench.tell(&format!("{}, round {} of {}", clip.name, round + 1, bench.rounds));
            let ours = ours(bench, clip)?;
            silk.add(ours);
            let mut best: f64 = 0.0;
            for (peer, samples) in
                Peer::ALL.into_iter().zip(&mut peers).filter(|(peer, _)| peer.is_installed())
            {
                let rate = theirs(bench, clip, peer)?;
                samples.add(rate);
                best = best.max(rate);
            }
            if best > 0.0 {
                ratio.add(ours / best);
            }
        }
        costs.push(Duration::from_secs_f64(1.0 / silk.middle().max(1.0)));
        bench.table.figure(&format!("{}, pictures/s", clip.name), "silk", &silk);
        for (peer, samples) in Peer::ALL.into_iter().zip(&peers) {
            bench.table.figure(&format!("{}, pictures/s", clip.name), peer.name(), samples);
        }
        let goal = Goal { must: 1.0, after: 1.3, more: true };
        bench.table.judged(&format!("{}: highest rate ÷ the better peer's", clip.name), &ratio, goal);
    }
    Ok(costs)
}

fn ours(bench: &Bench<'_>, clip: &Clip) -> Result<f64, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let player =
        Player::start(&rig.server, bench.cpu, bench.scratch, &["--rtp", "5004", "--fast", "--ring", "8192"])?;
    let length = send(bench, &rig, clip)?;
    let played = player.finish(length + Duration::from_secs(4))?;
    let pictures = played.figure("stream", "shown").unwrap_or(0);
    Ok(pictures as f64 / played.cpu.as_secs_f64().max(1e-9))
}

fn theirs(bench: &Bench<'_>, clip: &Clip, peer: Peer) -> Result<f64, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let pictures = Demuxer::open(&clip.file)?.count() as u32;
    let receiving = peer.receive(&Reception {
        host: &rig.server,
        cpus: bench.cpu,
        port: rtp::PORT,
        coding: Coding::Mpeg,
        pictures: pictures.saturating_sub(BEHIND).max(1),
        paced: false,
        scratch: bench.scratch,
    })?;
    let length = send(bench, &rig, clip)?;
    Ok(receiving.finish(length + Duration::from_secs(4))?.maximum_rate())
}

/// Sends the clip from the other host to its end; how long it took at most.
fn send(bench: &Bench<'_>, rig: &Rig, clip: &Clip) -> Result<Duration, Trouble> {
    let demuxer = Demuxer::open(&clip.file)?;
    let (pictures, rate) = demuxer.rate();
    let own = f64::from(pictures) / f64::from(rate);
    let length = Duration::from_secs_f64(demuxer.count() as f64 / own / SPEED);
    let fps = format!("{:.3}", (own * SPEED).min(1000.0));
    let mut source = source(&rig.client, &clip.file, &["--to", &SERVER.to_string(), "--rtp", "--fps", &fps])?;
    bench.stop.ends(&mut source, length + Duration::from_secs(10))?;
    Ok(length)
}
