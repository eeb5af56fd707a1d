//! Only each third picture (Scout §4.4): what is left out is dropped where it is classified, in XDP. CPU
//! of the whole process against that for all pictures.

use super::Bench;
use super::player::{Played, Player, at, source};
use super::table::{Goal, Samples};
use crate::trouble::Trouble;
use silk_testkit::netns::{Rig, SERVER};
use std::time::Duration;

/// The source's port.
const PORT: u16 = 6000;

/// Measures Neptune, in turns.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Trouble> {
    let (mut ratio, mut discarded) = (Samples::default(), Samples::default());
    for round in 0..bench.rounds {
        bench.tell(&format!("each third, round {} of {}", round + 1, bench.rounds));
        let all = one(bench, "1")?;
        let third = one(bench, "3")?;
        ratio.add(third.cpu.as_secs_f64() / all.cpu.as_secs_f64().max(1e-9));
        let sum = |played: &Played, figure| played.figure("stream", figure).unwrap_or(0) as f64;
        discarded
            .add(sum(&third, "discarded") / (sum(&third, "discarded") + sum(&third, "packets")).max(1.0));
    }
    let goal = Goal { must: 0.45, after: 0.36, more: false };
    bench.table.judged("CPU for each third picture ÷ for all", &ratio, goal);
    bench.table.figure("of these packets discarded in XDP", "silk", &discarded);
    Ok(())
}

fn one(bench: &Bench<'_>, every: &str) -> Result<Played, Trouble> {
    let rig = Rig::new().map_err(Trouble::rig)?;
    let arguments = ["--from", &at(PORT), "--every", every, "--fps", "240", "--ring", "8192"];
    let player = Player::start(&rig.server, bench.cpu, bench.scratch, &arguments)?;
    let clip = bench.clip("Neptune")?;
    let arguments = ["--to", &SERVER.to_string(), "--port", &PORT.to_string(), "--fps", "240"];
    let mut source = source(&rig.client, &clip.file, &arguments)?;
    bench.stop.ends(&mut source, Duration::from_secs(60))?;
    player.finish(Duration::from_secs(3))
}
