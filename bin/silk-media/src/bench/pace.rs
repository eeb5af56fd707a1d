//! How fast the streams beside the one that is looked at play, so that they need what is meant of the processor. What a
//! picture costs changes with the hour on a machine that is shared: trials say it before the first run, and each run for
//! the next.

use super::Bench;
use super::apache::Apache;
use super::beside::{BUSY, Beside};
use super::load::{Load, appliance};
use crate::trouble::Trouble;
use silk_testkit::netns::Rig;
use std::cell::RefCell;

/// The others' pictures a second, for the first trial.
const GUESS: f64 = 60.0;

/// How fast the others play so that the processor is nine tenths busy: on a machine that is shared, not as fast as some
/// minutes ago.
#[derive(Default)]
pub struct Pace {
    rate: Option<f64>,
}

impl Pace {
    /// The others at this pace: before the first run by trials, beside Apache or not.
    pub fn others<'a>(
        &mut self,
        bench: &Bench<'a>,
        load: &Load,
        with_apache: bool,
    ) -> Result<Beside<'a>, Trouble> {
        let others = Beside::new(&bench.load.file, GUESS);
        let rate = match self.rate {
            Some(rate) => rate,
            None => trials(bench, load, others, with_apache)?,
        };
        self.rate = Some(rate);
        Ok(Beside { rate, ..others })
    }

    /// The next run is to be paced by what pictures cost in this one.
    pub fn follow(&mut self, asked: f64) {
        self.rate = self.rate.map(|rate| rate * BUSY / asked.max(0.01));
    }
}

fn trials(bench: &Bench<'_>, load: &Load, others: Beside<'_>, with_apache: bool) -> Result<f64, Trouble> {
    bench.tell("trials of how much the others can be");
    let realtime = load.rate * load.realtime.as_secs_f64();
    let apache = RefCell::new(None);
    let player = |rig: &Rig| {
        // Two would write to the same folder.
        drop(apache.take());
        if with_apache {
            *apache.borrow_mut() = Some(Apache::under_load(rig, bench.cpu, bench.scratch)?);
        }
        appliance(bench, rig, "deadlines")
    };
    others.rate_beside(realtime, player, |time| bench.stop.pause(time))
}
