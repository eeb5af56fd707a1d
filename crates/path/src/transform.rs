//! Transformation rules (Scout §3.2, phase 4): pattern → rewritten path. A rule never changes
//! what a path means, only what it costs, so a path is the same with and without. The rule
//! *measure* is here; *header template* and *integrated layers* know protocols and live with their
//! modules.

use crate::average::Average;
use crate::id::ModuleId;
use crate::module::Modules;
use crate::stage::{Slot, Stage};
use crate::state::PathState;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

/// A path about to be transformed.
pub struct Rewrite<'a> {
    pub(crate) slots: &'a mut Vec<Slot>,
    pub(crate) state: &'a mut PathState,
    pub(crate) modules: &'a Modules,
    // Bytes the rules have added, to be charged.
    pub(crate) added: u64,
}

impl Rewrite<'_> {
    /// What belongs to the whole path.
    pub fn state(&mut self) -> &mut PathState {
        self.state
    }

    /// The stage at `place`, counted from the bottom, when it is a `T`.
    pub fn stage<T: Stage>(&self, place: usize) -> Option<&T> {
        (&*self.slots.get(place)?.stage as &dyn Any).downcast_ref()
    }

    /// The same, to be changed.
    pub fn stage_mut<T: Stage>(&mut self, place: usize) -> Option<&mut T> {
        (&mut *self.slots.get_mut(place)?.stage as &mut dyn Any).downcast_mut()
    }

    /// Whether the stage at `place` sums what it reads ([`Stage::sums`]).
    pub fn sums(&self, place: usize) -> bool {
        self.slots.get(place).is_some_and(|slot| slot.stage.sums())
    }

    /// Whether the path's modules, from the bottom, begin with these kinds.
    pub fn begins_with(&self, kinds: &[&str]) -> bool {
        let fits = |(slot, kind): (&Slot, &&str)| {
            self.modules.module(slot.module).is_some_and(|module| module.kind() == *kind)
        };
        self.slots.len() >= kinds.len() && self.slots.iter().zip(kinds).all(fits)
    }

    /// Replaces the lowest `count` stages by the one that `make` makes of them. It stands
    /// under the module of the highest of them; a timer of any becomes its.
    pub fn collapse(&mut self, count: usize, make: impl FnOnce(Vec<Slot>) -> Box<dyn Stage>) {
        if count == 0 || count > self.slots.len() {
            return;
        }
        self.state.deadlines.collapse(count);
        let module = self.slots[count - 1].module;
        let inner: Vec<Slot> = self.slots.drain(..count).collect();
        let stage = make(inner);
        self.added += (size_of::<Slot>() + size_of_val(&*stage)) as u64;
        self.slots.insert(0, Slot { stage, module });
    }

    /// The module at `place`.
    pub fn module(&self, place: usize) -> Option<ModuleId> {
        Some(self.slots.get(place)?.module)
    }
}

/// A transformation rule.
pub trait Rule: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// Whether the pattern fits this path.
    fn matches(&self, path: &Rewrite<'_>) -> bool;
    /// Rewrites it.
    fn apply(&self, path: &mut Rewrite<'_>);
}

/// The rule *measure* (Scout §4.2): the average time each message takes is kept as the path's
/// attribute `ProcessTime`. For every path, or those of one class; by all of its messages, or by some, since each
/// that is measured asks for the time twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    /// Only paths of this class.
    pub class: Option<u8>,
    /// One message of so many is measured, in no pattern; 0: each.
    pub one_of: u8,
}

impl Rule for Measure {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn matches(&self, path: &Rewrite<'_>) -> bool {
        self.class.is_none_or(|class| class == path.state.class)
    }

    fn apply(&self, path: &mut Rewrite<'_>) {
        (path.state.measure, path.state.measures_one_of) = (Some(Average::default()), self.one_of);
    }
}
