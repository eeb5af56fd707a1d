//! The path itself (Scout §3.2): id, stages, attributes, end queues, account, drops and the
//! wake-up callback.

use crate::account::Account;
use crate::deadlines::Deadlines;
use crate::queue::Queue;
use crate::stage::Slot;
use crate::{Attrs, Drops, ModuleId, Route};
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;
use silk_instant::Instant;

/// The most stages of one path.
pub const MAX_STAGES: usize = 8;
/// Tickets that wait at an end where the attributes do not say.
pub const DEFAULT_QUEUE: u16 = 64;

/// A path's name: an index that the classifier can carry, and a generation so that a name is
/// never taken for its successor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId {
    /// Below 2^24 - 1.
    pub index: u32,
    /// Grows with each path that had the index.
    pub generation: u32,
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// The average time a message takes, kept by the *measure* transformation: exponentially
/// weighted, an eighth for the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Average(
    // One more than it is, so that "not measured" takes no room beside it.
    NonZeroU64,
);

impl Default for Average {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl Average {
    /// Takes one more measurement, in ns, into the average.
    pub fn add(&mut self, ns: u64) {
        let before = self.ns();
        let now = if before == 0 { ns } else { before - before / 8 + ns / 8 };
        self.0 = NonZeroU64::MIN.saturating_add(now);
    }
    /// The average, in ns.
    pub fn ns(self) -> u64 {
        self.0.get() - 1
    }
}

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

/// How a path that is about to run wants to be scheduled (Scout §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Urgency {
    /// The priority, where the path has a wish.
    pub priority: Option<u8>,
    /// The deadline, where it has one.
    pub deadline: Option<Instant>,
    /// There is little point in running now: its output queue is full (Scout §4.1). Whoever drains
    /// that wakes the path again.
    pub hold: bool,
}

/// Called whenever the path is awakened: looks at the path, and its queues, and says how
/// urgent it is. A plain function, so that registering one costs nothing.
pub type Wakeup = fn(&Path, Instant) -> Urgency;

/// A path.
pub struct Path {
    /// What belongs to the whole path.
    pub state: PathState,
    // From the bottom to the top; at most MAX_STAGES.
    pub(crate) slots: Vec<Slot>,
    /// What has arrived at the bottom and waits.
    pub input: Queue,
    /// What has come from the program's end and waits.
    pub output: Queue,
    /// The wake-up callback.
    pub wakeup: Wakeup,
}

/// The priority attribute and no deadline: the wake-up of a path that registers no other.
pub fn by_priority(path: &Path, _: Instant) -> Urgency {
    Urgency { priority: path.state.attrs.priority(), deadline: None, hold: false }
}

impl Path {
    /// A place for a path, with none in it.
    pub(crate) fn vacant() -> Self {
        let id = PathId { index: 0, generation: 0 };
        let state = PathState {
            id,
            top: ModuleId(0),
            route: Route::default(),
            class: 0,
            attrs: Attrs::new(),
            account: Account::new(0),
            drops: Drops::default(),
            measure: None,
            measures_one_of: 0,
            round_trip: Average::default(),
            deadlines: Deadlines::OFF,
            armed: Instant::FAR,
            base_memory: 0,
            live: false,
        };
        let queue = || Queue::new(DEFAULT_QUEUE);
        Self { state, slots: Vec::new(), input: queue(), output: queue(), wakeup: by_priority }
    }

    /// Makes the path anew in its place, of these stages.
    pub(crate) fn renew(
        &mut self,
        id: PathId,
        route: Route,
        attrs: &Attrs,
        slots: Vec<Slot>,
        memory_limit: u64,
    ) {
        let queue = attrs.input_queue().unwrap_or(DEFAULT_QUEUE);
        self.state = PathState {
            id,
            top: route.iter().next().unwrap_or(ModuleId(0)),
            route,
            class: attrs.class().unwrap_or(0),
            attrs: *attrs,
            account: Account::new(memory_limit),
            drops: Drops::default(),
            measure: None,
            measures_one_of: 0,
            round_trip: Average::default(),
            deadlines: Deadlines::OFF,
            armed: Instant::FAR,
            base_memory: 0,
            live: true,
        };
        self.slots = slots;
        (self.input, self.output) = (Queue::new(queue), Queue::new(queue));
        self.wakeup = by_priority;
    }

    /// The path's id.
    pub fn id(&self) -> PathId {
        self.state.id
    }

    /// The modules the path leads through, from the bottom to the top: what a person wants to
    /// see, however the stages were transformed.
    pub fn modules(&self) -> impl Iterator<Item = ModuleId> + '_ {
        self.state.route.iter().rev()
    }

    /// The stages, from the bottom to the top.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The first state a stage has to show, from the top: `ESTABLISHED`, or nothing.
    pub fn shown_state(&self) -> &'static str {
        self.slots.iter().rev().map(|slot| slot.stage.state()).find(|state| !state.is_empty()).unwrap_or("")
    }

    /// The program's buffers, where the path ends in a byte stream.
    pub fn stream_mut(&mut self) -> Option<&mut dyn crate::ByteStream> {
        self.slots.last_mut()?.stage.stream()
    }

    /// Takes the program's buffers out of a path that is about to be destroyed.
    pub fn take_stream(&mut self) -> Option<alloc::boxed::Box<dyn crate::ByteStream>> {
        self.slots.last_mut()?.stage.take_stream()
    }

    /// The stage of type `T`, when there is one: for whoever made the path and knows.
    pub fn stage<T: crate::Stage>(&self) -> Option<&T> {
        self.slots.iter().find_map(|slot| (&*slot.stage as &dyn core::any::Any).downcast_ref())
    }

    /// As [`Self::stage`], to be changed.
    pub fn stage_mut<T: crate::Stage>(&mut self) -> Option<&mut T> {
        self.slots.iter_mut().find_map(|slot| (&mut *slot.stage as &mut dyn core::any::Any).downcast_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle connections are many: what is added here is added a hundred thousand times.
    #[test]
    fn a_path_is_small() {
        assert!(size_of::<Path>() <= 368, "{}", size_of::<Path>());
        assert!(size_of::<Slot>() <= 24, "{}", size_of::<Slot>());
    }

    #[test]
    fn an_average_follows_slowly() {
        let mut average = Average::default();
        average.add(800);
        average.add(1600);
        assert_eq!(average.ns(), 900);
    }
}
