//! When memory for rings becomes short, streams that are there get by with little: each is written no farther than
//! [`Budget::REACH`] from the start of its ring's memory until that is empty, on either side, and what is idle gives its memory
//! back soon. So what all of them use stays within the budget, though each may fill a large ring while there is plenty.

use crate::between::command::Command;
use crate::control::server::Server;
use crate::say::say;
use silk_stream::Budget;
use std::time::Duration;

/// From which part of what may be used on rings can become too many before the next rare look.
const SOON: u64 = 4;
/// How often it is looked at while memory could become short.
const LOOK: Duration = Duration::from_millis(100);
/// The same while it cannot, and whatever else the control thread looks at.
const RARE_LOOK: Duration = Duration::from_secs(1);

impl Server {
    /// How long the control thread may sleep.
    pub(crate) fn pause(&self) -> Duration {
        if self.may_become_short() { LOOK } else { RARE_LOOK }
    }

    /// Whether there is so much of rings that they could use as much memory soon, or they do already.
    fn may_become_short(&self) -> bool {
        let rings: u64 = self.families.values().map(|family| family.arena.rings_in_use()).sum();
        self.budget.is_short() || rings.max(self.budget.used()) >= self.budget.most() / SOON
    }

    /// Looks whether memory has become short, or is so no longer; then everybody is told.
    pub(crate) fn look_at_memory(&mut self) {
        if !self.may_become_short() {
            return;
        }
        self.families.values().for_each(|family| family.arena.measure());
        let short = self.budget.judge();
        self.families.values().for_each(|family| family.arena.heed_budget());
        if std::mem::replace(&mut self.shortage_told, short) == short {
            return;
        }
        self.tell_all(|| Command::Shortage(short));
        let (used, most) = (self.budget.used() >> 20, self.budget.most() >> 20);
        if short {
            say!(
                Warning,
                "silkd: programs' rings use {used} of {most} MB ([memory] total): until it is half, each stream gets {} KB",
                Budget::REACH >> 10
            );
        } else {
            say!(
                Notice,
                "silkd: programs' rings use {used} of {most} MB: streams may fill their rings again"
            );
        }
    }
}
