//! What a path is beside its stages and queues: id, attributes, account, drops, timers and what was measured. Each stage
//! sees it while it runs.

use crate::account::Account;
use crate::attrs::Attrs;
use crate::average::Average;
use crate::deadlines::Deadlines;
use crate::drops::Drops;
use crate::id::{ModuleId, PathId};
use crate::route::Route;
use silk_instant::Instant;

/// What belongs to the whole path and not to one stage.
#[derive(Debug)]
pub struct PathState {
    /// The path's id.
    pub id: PathId,
    /// The module that creation began at.
    pub top: ModuleId,
    /// Every module the path leads through, also those that left no stage, and whatever
    /// transformations have made of the stages since.
    pub route: Route,
    /// Its class, which its memory is charged to: fixed at creation.
    pub class: u8,
    /// One message of so many is measured; 0: each. Of a path that is measured.
    pub measures_one_of: u8,
    /// Its attributes.
    pub attrs: Attrs,
    /// What it has used.
    pub account: Account,
    /// What it has dropped.
    pub drops: Drops,
    /// Processing times are kept (the *measure* transformation).
    pub measure: Option<Average>,
    /// The round trip to the other side and back, where a protocol of the path measures it
    /// (Scout §4.2); 0: nobody does.
    pub round_trip: Average,
    pub(crate) deadlines: Deadlines,
    // What the port was told last.
    pub(crate) armed: Instant,
    // Memory charged at creation, given back by destruction.
    pub(crate) base_memory: u64,
    // It has begun and has not ended.
    pub(crate) live: bool,
}

impl PathState {
    /// Whether the message that has just been counted is to be measured: the first is, and of the others as many as are
    /// asked for, in steps of the golden ratio, so that no rhythm of theirs is mistaken for all of them.
    pub(crate) fn measures(&self) -> bool {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let chosen =
            self.account.packets_in.wrapping_mul(GOLDEN) <= u64::MAX / u64::from(self.measures_one_of.max(1));
        self.measure.is_some_and(|average| chosen || average.ns() == 0)
    }

    /// When the earliest timer is due; [`Instant::FAR`]: none is set.
    pub fn deadline(&self) -> Instant {
        self.deadlines.earliest()
    }
}
