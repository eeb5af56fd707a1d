//! What a stage sees while it runs: time, its path, its module, the port, and the stages
//! above and below it. Nothing here can reach the running stage again: the slices below and
//! above it are what `split_at_mut` left over, so turning data around into a stage that is
//! still running is refused, not recursed into.

use crate::account::Account;
use crate::admit::ClassUse;
use crate::module::{Module, Modules};
use crate::queue::Queue;
use crate::stage::{Slot, Stage};
use crate::state::PathState;
use crate::{Attrs, DropReason, ModuleId, PathId, Port, Request};
use core::any::Any;
use silk_instant::Instant;

/// What all stages of one run share.
pub struct Env<'e> {
    /// The time of the run.
    pub now: Instant,
    pub(crate) port: &'e mut dyn Port,
    pub(crate) modules: &'e mut Modules,
    pub(crate) state: &'e mut PathState,
    pub(crate) class: &'e mut ClassUse,
    pub(crate) input: &'e mut Queue,
}

/// A run of stages of one path, with what is beyond it.
pub(crate) struct Run<'c> {
    pub slots: &'c mut [Slot],
    /// The place in the path of the first slot.
    pub base: usize,
    /// Below the first slot is the end of the path, not a running stage.
    pub floor: bool,
    /// Above the last slot is the end of the path, not a running stage.
    pub ceiling: bool,
    /// The slots are inside one stage and share its place.
    pub inner: bool,
}

impl<'c> Run<'c> {
    /// The place in the path of the slot `at`.
    pub fn place(&self, at: usize) -> usize {
        if self.inner { self.base } else { self.base + at }
    }

    /// The slot `at` and what is around it.
    pub fn split(&mut self, at: usize) -> Option<(Run<'_>, &mut Slot, Run<'_>)> {
        let (below, rest) = self.slots.split_at_mut_checked(at)?;
        let (slot, above) = rest.split_first_mut()?;
        let inner = self.inner;
        let above_base = if inner { self.base } else { self.base + at + 1 };
        let below = Run { slots: below, base: self.base, floor: self.floor, ceiling: false, inner };
        let above = Run { slots: above, base: above_base, floor: false, ceiling: self.ceiling, inner };
        Some((below, slot, above))
    }
}

/// What a stage sees while it runs.
pub struct Cx<'c, 'e> {
    pub(crate) env: &'c mut Env<'e>,
    pub(crate) place: usize,
    pub(crate) module: ModuleId,
    pub(crate) below: Run<'c>,
    pub(crate) above: Run<'c>,
}

impl<'e> Cx<'_, 'e> {
    /// The time of this run.
    pub fn now(&self) -> Instant {
        self.env.now
    }

    /// The running path's id.
    pub fn path(&self) -> PathId {
        self.env.state.id
    }

    /// The module at the path's top.
    pub fn top(&self) -> ModuleId {
        self.env.state.top
    }

    /// The path's attributes.
    pub fn attrs(&self) -> &Attrs {
        &self.env.state.attrs
    }

    /// The path's attributes, to be changed.
    pub fn attrs_mut(&mut self) -> &mut Attrs {
        &mut self.env.state.attrs
    }

    /// The world around the path.
    pub fn port(&mut self) -> &mut dyn Port {
        self.env.port
    }

    /// Asks for something to be done after the run.
    pub fn request(&mut self, request: Request) {
        self.env.port.request(request);
    }

    /// The running stage's module.
    ///
    /// # Panics
    /// When the stage's module is not a `T`: the stage was made by another module than the
    /// one it asks for, a mistake of the module's author.
    pub fn module<T: Module>(&mut self) -> &mut T {
        self.env.modules.of_mut(self.module).expect("a stage asks for the module that made it")
    }

    /// The running stage's module's id.
    pub fn module_id(&self) -> ModuleId {
        self.module
    }

    /// The first module linked to service `service` of the running stage's module, with the
    /// port: to be called through its typed service.
    pub fn linked(&mut self, service: u8) -> Option<(&mut dyn Module, &mut dyn Port)> {
        let id = self.env.modules.peers(self.module, service).first()?.module;
        Some((self.env.modules.module_mut(id)?, self.env.port))
    }

    /// The first module linked to service `service` of the running stage's module that is a `T`.
    pub fn linked_to<T: Module>(&mut self, service: u8) -> Option<&mut T> {
        let modules = &mut *self.env.modules;
        let is_one = |id: &ModuleId| modules.module(*id).is_some_and(|module| (module as &dyn Any).is::<T>());
        let id = modules.peers(self.module, service).iter().map(|peer| peer.module).find(is_one)?;
        modules.of_mut(id)
    }

    /// The id of the first module linked to service `service` of the running stage's module.
    pub fn linked_id(&self, service: u8) -> Option<ModuleId> {
        Some(self.env.modules.peers(self.module, service).first()?.module)
    }

    /// The running stage's module together with the port.
    ///
    /// # Panics
    /// As [`Self::module`].
    pub fn module_and_port<T: Module>(&mut self) -> (&mut T, &mut dyn Port) {
        let module = self.env.modules.of_mut(self.module).expect("a stage asks for the module that made it");
        (module, self.env.port)
    }

    /// The stage right above, when it is a `T`: for two stages that speak through a typed service
    /// which is not one of messages.
    pub fn above<T: Stage>(&mut self) -> Option<&mut T> {
        (&mut *self.above.slots.first_mut()?.stage as &mut dyn Any).downcast_mut()
    }

    /// Sets this stage's timer, in place of what was set before; [`Instant::FAR`] stops it.
    pub fn arm(&mut self, at: Instant) {
        self.env.state.deadlines.set(self.place, at);
    }

    /// A round trip to the other side and back was measured, ns.
    pub fn note_round_trip(&mut self, ns: u64) {
        self.env.state.round_trip.add(ns);
    }

    /// The queue of what has arrived at the bottom of the path and waits.
    pub fn input(&self) -> &Queue {
        self.env.input
    }

    /// Sets the most that may wait there (Scout §4.2: a queue that is just big enough).
    pub fn set_input_limit(&mut self, limit: u16) {
        self.env.input.set_limit(limit);
    }

    /// The average time a message takes, ns; `None` where the *measure* transformation is not
    /// applied or has not measured yet.
    pub fn process_time(&self) -> Option<u64> {
        self.env.state.measure.map(|average| average.ns()).filter(|ns| *ns > 0)
    }

    /// What the path has used so far; the CPU time of the run that is under way is not in it.
    pub fn account(&self) -> &Account {
        &self.env.state.account
    }

    /// Counts a drop that is not the running message's.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.env.state.drops.count(reason);
    }

    /// Counts bytes that came in at the bottom otherwise than as a message.
    pub fn count_in(&mut self, bytes: usize) {
        self.env.state.account.packets_in += 1;
        self.env.state.account.bytes_in += bytes as u64;
    }

    /// Counts bytes that left at the bottom otherwise than as a message.
    pub fn count_out(&mut self, bytes: usize) {
        self.env.state.account.packets_out += 1;
        self.env.state.account.bytes_out += bytes as u64;
    }

    /// Charges `bytes` of memory to the path and its class, before they are taken.
    pub fn charge(&mut self, bytes: usize) -> Result<(), DropReason> {
        self.env.class.charge(&mut self.env.state.account, bytes as u64)
    }

    /// Gives `bytes` of memory back.
    pub fn release(&mut self, bytes: usize) {
        self.env.class.release(&mut self.env.state.account, bytes as u64);
    }
}
