//! Runs that a hypervisor left alone. What it takes of the player's CPU is told neither to the streams nor to whoever
//! schedules them: pictures come late, and cost more. So a run in which it took much is made again, for silk and for
//! peers alike, and the table says how often, and what was taken in those that count.

use super::Bench;
use super::stolen::{Stolen, Watch};
use super::table::Samples;
use crate::trouble::Trouble;
use silk_testkit::ticks::Ticks;

/// A run is made again where a hypervisor had more of the CPU than this, up to so many times in all.
const DISTURBED: f64 = 0.03;
const TRIES: u32 = 4;

/// Makes a run again where a hypervisor had more than [`DISTURBED`] of the CPU, or where it was not the run that was
/// meant, of which `meant` says why. The last of [`TRIES`] counts, whatever it was, and it comes with when what was taken.
pub fn undisturbed<T>(
    bench: &Bench<'_>,
    taken: &mut Taken,
    mut run: impl FnMut(&Bench<'_>) -> Result<T, Trouble>,
    meant: impl Fn(&T) -> Result<(), String>,
) -> Result<(T, Stolen), Trouble> {
    let mut tries = 1;
    loop {
        let before = Ticks::now(bench.cpu);
        let watch = Watch::start(bench.cpu);
        let done = run(bench);
        let (seen, done) = (watch.stop(), done?);
        let stolen = Ticks::now(bench.cpu).since(&before).stolen_share();
        let why = if stolen > DISTURBED {
            Err(format!("a hypervisor had {stolen:.2} of the player's CPU"))
        } else {
            meant(&done)
        };
        match why {
            Err(why) if tries < TRIES => bench.tell(&format!("again, for {why}")),
            _ => {
                taken.shares.add(stolen);
                taken.again.add(f64::from(tries - 1));
                return Ok((done, seen));
            }
        }
        tries += 1;
    }
}

/// Whatever a run was, it was meant.
pub fn any<T>(_: &T) -> Result<(), String> {
    Ok(())
}

/// What a hypervisor did to runs.
#[derive(Default)]
pub struct Taken {
    // Its share of the CPU in those that count, and how many were made before each of them.
    shares: Samples,
    again: Samples,
}

impl Taken {
    /// Two rows of the table.
    pub fn tell(&self, bench: &mut Bench<'_>, what: &str, system: &'static str) {
        bench.table.figure(&format!("{what}: share of the CPU that a hypervisor took"), system, &self.shares);
        bench.table.figure(&format!("{what}: runs made again"), system, &self.again);
    }
}
