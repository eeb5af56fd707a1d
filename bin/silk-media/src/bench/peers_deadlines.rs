//! The same streams with a peer: nine processes of it on the CPU that is the player's otherwise, one for Neptune,
//! which it shows at its pace, and eight that decode the others as they come. Linux divides the CPU between them.

use super::Bench;
use super::beside::{Beside, OTHERS, PORT};
use super::load::Load;
use super::player::source;
use crate::peers::{Peer, Receiving, Reception};
use crate::trouble::Trouble;
use silk_media::Coding;
use silk_testkit::netns::{Rig, SERVER};
use std::path::Path;
use std::time::Duration;

/// Pictures at the end that a peer does not wait for: the last are known to be whole only when another follows.
const BEHIND: u64 = 8;

/// What a peer has made of it.
pub struct Outcome {
    /// Of Neptune's pictures, not shown in time.
    pub gone: u64,
    /// Of the CPU, used by all nine.
    pub share: f64,
}

/// One run.
pub fn one(bench: &Bench<'_>, peer: Peer, load: &Load, beside: &Beside<'_>) -> Result<Outcome, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let receive = |port: u16, pictures: u64, paced: bool| {
        peer.receive(&Reception {
            host: &rig.server,
            cpus: bench.cpu,
            port,
            coding: Coding::Mpeg,
            pictures: u32::try_from(pictures).unwrap_or(u32::MAX),
            paced,
            scratch: bench.scratch,
        })
    };
    let ports = || (1..=OTHERS).map(|number| PORT + 2 * number);
    let mut others = ports().map(|port| receive(port, ENDLESS, false)).collect::<Result<Vec<_>, _>>()?;
    let wanted = load.pictures - BEHIND;
    let neptune = receive(PORT, wanted, true)?;
    let sources = ports().map(|port| send(&rig, beside.clip, port, beside.rate, true));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut source = send(&rig, &bench.clip("Neptune")?.file, PORT, load.own, false)?;
    let cpu = |all: &[Receiving]| all.iter().map(Receiving::cpu).sum::<Duration>();
    let before = cpu(&others);
    let length = Duration::from_secs_f64(load.pictures as f64 / load.own);
    bench.stop.ends(&mut source, length)?;
    let used = cpu(&others) - before + neptune.cpu();
    bench.stop.ends(&mut source, Duration::from_secs(5))?;
    let gone = neptune.finish(Duration::from_secs(3))?.gone(wanted);
    // Without one of them all were served better.
    others.iter_mut().try_for_each(Receiving::still)?;
    drop((sources, others));
    Ok(Outcome { gone, share: used.as_secs_f64() / length.as_secs_f64() })
}

/// More pictures than any run has.
const ENDLESS: u64 = 1 << 30;

fn send(rig: &Rig, clip: &Path, port: u16, rate: f64, again: bool) -> Result<crate::peers::Process, Trouble> {
    let (to, rate) = (format!("{SERVER}:{port}"), format!("{rate:.3}"));
    let arguments = ["--to", &to, "--rtp", "--fps", &rate, "--loop"];
    source(&rig.client, clip, &arguments[..arguments.len() - usize::from(!again)])
}
