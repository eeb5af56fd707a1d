//! The same streams with a peer: nine processes of it on the CPU that is the player's otherwise, one for Neptune,
//! which it shows at its pace, and eight that decode the others as they come. Linux divides the CPU between them.

use super::Bench;
use super::beside::{Beside, OTHERS, OTHERS_RATE, PORT};
use super::load::Load;
use super::player::source;
use super::table::Samples;
use super::undisturbed::{Taken, any, undisturbed};
use crate::peers::{Peer, Receiving, Reception};
use crate::trouble::Trouble;
use silk_media::Coding;
use silk_testkit::netns::{Rig, SERVER};
use std::path::Path;
use std::time::Duration;

/// Pictures at the end that a peer does not wait for: the last are known to be whole only when another follows.
const BEHIND: u64 = 8;

/// The runs of a peer.
pub struct Runs {
    peer: Peer,
    rates: Samples,
    gone: Samples,
    busy: Samples,
    taken: Taken,
}

/// The peers that take part: those that are installed, where Neptune has its own rate, at which they can play it.
pub fn peers(load: &Load) -> Vec<Runs> {
    let plays = |peer: &Peer| load.rate == load.own && peer.is_installed();
    Peer::ALL.into_iter().filter(plays).map(Runs::of).collect()
}

impl Runs {
    fn of(peer: Peer) -> Self {
        let none = Samples::default;
        Self { peer, rates: none(), gone: none(), busy: none(), taken: Taken::default() }
    }

    /// Whose they are.
    pub fn name(&self) -> &'static str {
        self.peer.name()
    }

    /// One beside others at this rate.
    pub fn round(&mut self, bench: &Bench<'_>, load: &Load, rate: f64) -> Result<(), Trouble> {
        let Self { peer, rates, gone, busy, taken } = self;
        let beside = Beside::new(&bench.load.file, rate);
        let (seen, _) = undisturbed(bench, taken, |bench| one(bench, *peer, load, &beside), any)?;
        rates.add(rate);
        gone.add(seen.gone as f64);
        busy.add(seen.share);
        Ok(())
    }

    /// Their rows.
    pub fn tell(&self, bench: &mut Bench<'_>, what: &str) {
        let name = self.name();
        bench.table.figure(OTHERS_RATE, name, &self.rates);
        bench.table.figure(what, name, &self.gone);
        bench.table.figure("CPU of its nine processes", name, &self.busy);
        self.taken.tell(bench, "its nine processes", name);
    }
}

/// What a peer has made of it.
struct Outcome {
    /// Of Neptune's pictures, not shown in time.
    gone: u64,
    /// Of the CPU, used by all nine.
    share: f64,
}

/// One run.
fn one(bench: &Bench<'_>, peer: Peer, load: &Load, beside: &Beside<'_>) -> Result<Outcome, Trouble> {
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
    let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
    let mut source = send(&rig, &bench.clip("Neptune")?.file, PORT, load.own, false)?;
    let cpu = |all: &[Receiving]| all.iter().map(Receiving::cpu).sum::<Duration>();
    let before = cpu(&others);
    let length = Duration::from_secs_f64(load.pictures as f64 / load.own);
    bench.stop.ends(&mut source, length)?;
    let used = cpu(&others) - before + neptune.cpu();
    bench.stop.ends(&mut source, Duration::from_secs(5))?;
    let gone = neptune.finish(Duration::from_secs(3))?.gone(wanted);
    // Without one of them all were served better.
    Beside::still(&mut sources)?;
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
