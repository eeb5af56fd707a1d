//! The path itself (Scout §3.2): its state, its stages, the queue at its lower end and the wake-up callback.

use crate::account::Account;
use crate::average::Average;
use crate::deadlines::Deadlines;
use crate::id::{ModuleId, PathId};
use crate::queue::Queue;
use crate::stage::Slot;
use crate::state::PathState;
use crate::{Attrs, Drops, Route};
use alloc::vec::Vec;
use silk_instant::Instant;

/// Tickets that wait at an end where the attributes do not say.
pub const DEFAULT_QUEUE: u16 = 64;

/// How a path that is about to run wants to be scheduled (Scout §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Urgency {
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
    /// What has arrived at the bottom and waits. (At the other end it waits in the ring that a program has in common with us, or in a queue
    /// of the top stage's own, such as DISPLAY's.)
    pub input: Queue,
    /// The wake-up callback.
    pub wakeup: Wakeup,
}

/// No deadline of its own: the wake-up of a path that registers no other. Its policy goes by the terms that it was let in on.
pub fn without_deadline(_: &Path, _: Instant) -> Urgency {
    Urgency::default()
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
        Self { state, slots: Vec::new(), input: Queue::new(DEFAULT_QUEUE), wakeup: without_deadline }
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
        self.input = Queue::new(queue);
        self.wakeup = without_deadline;
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
        assert!(size_of::<Path>() <= 352, "{}", size_of::<Path>());
        assert!(size_of::<Slot>() <= 24, "{}", size_of::<Slot>());
    }
}
