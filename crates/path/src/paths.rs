//! A domain's paths with the graph they run through: creation in four phases, running, and
//! destruction that returns every byte (Scout §3.2). One thread owns it; whoever runs it
//! brings the time and a [`Port`] and does afterwards what was requested.

use crate::admit::{Classes, Refused};
use crate::classify::{Belongs, spec};
use crate::cx::{Env, Run};
use crate::drive::{self, Outcome};
use crate::id::{ModuleId, PathId};
use crate::module::{Create, CreateError, Module, Modules, Parcel};
use crate::path::{Path, Urgency};
use crate::queue::{Ticket, Tickets};
use crate::signal::{Bell, Report};
use crate::stage::Slot;
use crate::state::PathState;
use crate::stream::ByteStream;
use crate::table::Table;
use crate::transform::{Rewrite, Rule};
use crate::{Account, Attr, Attrs, DropReason, Drops, Graph, Message, Port, Route};
use alloc::boxed::Box;
use alloc::vec::Vec;
use silk_instant::Instant;

/// What was left to tell of a path when it ended.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its last account; the memory is zero.
    pub account: Account,
    /// What it dropped.
    pub drops: Drops,
}

/// A domain's paths.
pub struct Paths {
    graph: Graph,
    table: Table,
    rules: Vec<Box<dyn Rule>>,
    /// What each class may use, and uses.
    pub classes: Classes,
    /// The tickets of all queues.
    pub tickets: Tickets,
    // The list of the next path's stages while it is made: when it is, the path gets one of its length.
    scratch: Vec<Slot>,
}

impl Paths {
    /// No paths yet, through `graph`, with these transformation rules.
    pub fn new(graph: Graph, rules: Vec<Box<dyn Rule>>) -> Self {
        Self {
            graph,
            table: Table::default(),
            rules,
            classes: Classes::default(),
            tickets: Tickets::default(),
            scratch: Vec::new(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The modules, to be changed.
    pub fn modules_mut(&mut self) -> &mut Modules {
        &mut self.graph.modules
    }

    /// The first module of type `T`, to be changed.
    pub fn module_mut<T: Module>(&mut self) -> Option<&mut T> {
        self.graph.modules.first_mut()
    }

    /// Live paths.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path with this id.
    pub fn path(&self, id: PathId) -> Option<&Path> {
        self.table.get(id)
    }

    /// The path with this id, to be changed.
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.table.get_mut(id)
    }

    /// The id of the live path with this index, which is all that a classifier carries.
    pub fn at(&self, index: u32) -> Option<PathId> {
        self.table.at(index)
    }

    /// The path of a frame that was classified: by its index, or by asking the modules whose
    /// paths take what has no exact entry.
    pub fn target(&self, frame: &[u8], belongs: Belongs) -> Option<PathId> {
        match belongs {
            Belongs::Path { index, .. } => self.at(index),
            Belongs::Discard { .. } | Belongs::Refuse { .. } | Belongs::Pass => None,
            _ => self.taker(&Self::parcel(frame)?),
        }
    }

    /// What the modules are asked of a frame without an exact entry.
    pub fn parcel(frame: &[u8]) -> Option<Parcel> {
        spec::parcel(frame)
    }

    /// The path that takes a packet without an exact entry, as the modules say.
    pub fn taker(&self, parcel: &Parcel) -> Option<PathId> {
        self.graph.modules.iter().find_map(|(_, _, module)| module.takes(parcel))
    }

    /// Every path.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.table.iter()
    }

    /// Those from this index on, in the order of their indices.
    pub fn iter_from(&self, index: u32) -> impl Iterator<Item = &Path> {
        self.table.iter_from(index)
    }

    /// Creates a path that begins at module `top` (Scout's *pathCreate*).
    pub fn create(
        &mut self,
        top: ModuleId,
        attrs: Attrs,
        stream: Option<Box<dyn ByteStream>>,
        now: Instant,
        port: &mut dyn Port,
    ) -> Result<PathId, CreateError> {
        let id = self.table.vacant().ok_or(CreateError::TableFull)?;
        let (mut attrs, mut stream) = (attrs, stream);
        let mut slots = core::mem::take(&mut self.scratch);
        let mut create = Create { now, id, attrs: &mut attrs, stream: &mut stream };
        let mut route = Route::default();
        let grown = grow(&mut self.graph.modules, top, &mut create, &mut slots, &mut route);
        slots.reverse();
        let class = self.classes.of(attrs.class().unwrap_or(0));
        let granted = attrs.memory().unwrap_or(u64::MAX);
        // What stands may keep as much for who comes, whatever it is made of.
        let made_of = if stands(&attrs) { footprint(&slots) } else { 0 };
        let limit = class.limits.path_memory.saturating_add(made_of).min(granted);
        if let Err(error) = grown {
            self.unmade(id, route, &attrs, slots, now, port);
            return Err(error);
        }
        let path = self.table.occupy().ok_or(CreateError::TableFull)?;
        path.renew(id, route, &attrs, slots, limit);
        self.make(id, now, port)
    }

    /// Phases 2 to 4: the stages, a path now, are admitted, established, and transformed.
    fn make(&mut self, id: PathId, now: Instant, port: &mut dyn Port) -> Result<PathId, CreateError> {
        let Self { table, graph, classes, rules, scratch, .. } = self;
        let path = table.get_mut(id).ok_or(CreateError::Gone)?;
        let class = classes.of_mut(path.state.class);
        let memory = footprint(&path.slots);
        let stands = stands(&path.state.attrs);
        if let Err(refused) = class.admit(&mut path.state.account, memory, stands) {
            let (route, attrs) = (path.state.route, path.state.attrs);
            let slots = core::mem::take(&mut path.slots);
            table.vacate(id);
            self.unmade(id, route, &attrs, slots, now, port);
            return Err(refused.into());
        }
        path.state.base_memory = memory;
        let (mut env, mut run) = open(path, &mut graph.modules, classes, now, port);
        let mut made = drive::establish(&mut env, &mut run);
        if made.is_ok() && transform(path, rules, &graph.modules, classes).is_err() {
            made = Err(Refused::PathMemory.into());
        }
        match made {
            Ok(()) => {
                let exact = path.slots.drain(..).collect();
                *scratch = core::mem::replace(&mut path.slots, exact);
                self.with(id, now, port, drive::start);
            }
            Err(error) => {
                self.destroy(id, now, port);
                return Err(error);
            }
        }
        Ok(id)
    }

    /// Takes a path apart that never was in the table: its stages give back what their
    /// modules keep for them.
    fn unmade(
        &mut self,
        id: PathId,
        route: Route,
        attrs: &Attrs,
        slots: Vec<Slot>,
        now: Instant,
        port: &mut dyn Port,
    ) {
        let mut path = Path::vacant();
        path.renew(id, route, attrs, slots, 0);
        let (mut env, mut run) = open(&mut path, &mut self.graph.modules, &mut self.classes, now, port);
        drive::dissolve(&mut env, &mut run);
    }

    /// Ends a path: its stages give back what they hold, its tickets go to `release`, and its
    /// account is zero, which is asserted.
    pub fn destroy_with(
        &mut self,
        id: PathId,
        now: Instant,
        port: &mut dyn Port,
        mut release: impl FnMut(Ticket),
    ) -> Option<Statement> {
        let path = self.table.get_mut(id)?;
        let (mut env, mut run) = open(path, &mut self.graph.modules, &mut self.classes, now, port);
        drive::dissolve(&mut env, &mut run);
        while let Some(ticket) = path.input.pop(&mut self.tickets) {
            release(ticket);
        }
        let class = self.classes.of_mut(path.state.class);
        class.release(&mut path.state.account, path.state.base_memory);
        assert_eq!(path.state.account.memory(), 0, "path {id} ended with memory charged to it");
        let stood = stands(&path.state.attrs).then_some(path.state.base_memory);
        class.leave(&path.state.account, &path.state.drops, stood);
        if path.state.armed != Instant::FAR {
            port.arm(id, Instant::FAR);
        }
        let statement =
            Statement { account: path.state.account, drops: core::mem::take(&mut path.state.drops) };
        path.slots = Vec::new();
        self.table.vacate(id);
        Some(statement)
    }

    /// As [`Self::destroy_with`], for a path whose queues are empty.
    pub fn destroy(&mut self, id: PathId, now: Instant, port: &mut dyn Port) -> Option<Statement> {
        self.destroy_with(id, now, port, |_| {})
    }

    /// Runs a message that arrived at the bottom up the path, to completion.
    pub fn up(&mut self, id: PathId, now: Instant, port: &mut dyn Port, msg: &mut Message<'_>) -> Outcome {
        let Some(path) = self.table.get_mut(id) else { return Outcome::Dropped(DropReason::NoPath) };
        path.state.account.packets_in += 1;
        path.state.account.bytes_in += msg.len() as u64;
        let start = if path.state.measures() { port.clock() } else { None };
        let (mut env, mut run) = open(path, &mut self.graph.modules, &mut self.classes, now, port);
        let outcome = drive::climb(&mut env, &mut run, 0, msg);
        if let Some(start) = start {
            measured(&mut path.state, start, port);
        }
        announce(path, port);
        outcome
    }

    /// Runs a message from the program's end down the path, to completion.
    pub fn down(&mut self, id: PathId, now: Instant, port: &mut dyn Port, msg: &mut Message<'_>) -> Outcome {
        let Some(path) = self.table.get_mut(id) else { return Outcome::Dropped(DropReason::NoPath) };
        let (mut env, mut run) = open(path, &mut self.graph.modules, &mut self.classes, now, port);
        let end = run.slots.len();
        let outcome = drive::descend(&mut env, &mut run, end, msg);
        announce(path, port);
        outcome
    }

    /// Rings a bell at the top of the path. Answers whether the path is there.
    pub fn bell(&mut self, id: PathId, now: Instant, port: &mut dyn Port, bell: Bell) -> bool {
        self.with(id, now, port, |env, run| drive::ring(env, run, bell))
    }

    /// Tells the path, from the top down, what the network said. Answers whether it is there.
    pub fn report(&mut self, id: PathId, now: Instant, port: &mut dyn Port, report: Report) -> bool {
        self.with(id, now, port, |env, run| drive::tell(env, run, report))
    }

    /// Runs the timers of the path that are due. Answers whether it is there.
    pub fn expire(&mut self, id: PathId, now: Instant, port: &mut dyn Port) -> bool {
        if let Some(path) = self.table.get_mut(id) {
            // Whoever calls has taken the port's timer off.
            path.state.armed = Instant::FAR;
        }
        self.with(id, now, port, drive::expire)
    }

    fn with(
        &mut self,
        id: PathId,
        now: Instant,
        port: &mut dyn Port,
        work: impl FnOnce(&mut Env<'_>, &mut Run<'_>),
    ) -> bool {
        let Some(path) = self.table.get_mut(id) else { return false };
        let (mut env, mut run) = open(path, &mut self.graph.modules, &mut self.classes, now, port);
        work(&mut env, &mut run);
        announce(path, port);
        true
    }

    /// Puts a ticket on the path's input queue; a full queue drops at once, which the path counts. Answers whether
    /// the path has just become ready.
    pub fn enqueue(&mut self, id: PathId, ticket: Ticket) -> Result<bool, DropReason> {
        let path = self.table.get_mut(id).ok_or(DropReason::NoPath)?;
        path.input.push(&mut self.tickets, ticket).inspect_err(|reason| path.state.drops.count(*reason))
    }

    /// Takes the oldest ticket off the path's input queue.
    pub fn dequeue(&mut self, id: PathId) -> Option<Ticket> {
        self.table.get_mut(id)?.input.pop(&mut self.tickets)
    }

    /// How a path that has just become ready wants to be scheduled: its wake-up callback
    /// (Scout §3.3).
    pub fn urgency(&self, id: PathId, now: Instant) -> Option<Urgency> {
        let path = self.table.get(id)?;
        Some((path.wakeup)(path, now))
    }

    /// Charges CPU time that a program used for a path which has ended, ns, to its class.
    pub fn charge_past(&mut self, class: u8, program_ns: u64) {
        self.classes.of_mut(class).past.cpu_program += program_ns;
    }

    /// Charges CPU time to a path.
    pub fn charge_cpu(&mut self, id: PathId, path_ns: u64, program_ns: u64) {
        if let Some(path) = self.table.get_mut(id) {
            path.state.account.cpu_path += path_ns;
            path.state.account.cpu_program += program_ns;
        }
    }
}

/// Phase 1: each module makes its stage and names the next, from the top down.
fn grow(
    modules: &mut Modules,
    top: ModuleId,
    create: &mut Create<'_>,
    slots: &mut Vec<Slot>,
    route: &mut Route,
) -> Result<(), CreateError> {
    let mut at = Some(top);
    while let Some(id) = at {
        let module = modules.module_mut(id).ok_or(CreateError::NoModule)?;
        // A route has room for as many modules as a path for stages.
        if !route.push(id) {
            return Err(CreateError::TooLong);
        }
        let step = module.create_stage(create)?;
        slots.extend(step.stage.map(|stage| Slot { stage, module: id }));
        at = modules.follow(id, step.next, create.attrs);
    }
    Ok(())
}

/// Whether a path waits for whoever comes.
fn stands(attrs: &Attrs) -> bool {
    attrs.listen() == Some(true)
}

/// Bytes of a path and its stages.
fn footprint(slots: &[Slot]) -> u64 {
    let stages: usize = slots.iter().map(|slot| size_of::<Slot>() + size_of_val(&*slot.stage)).sum();
    (size_of::<Path>() + stages) as u64
}

/// Phase 4. What the rules added is charged.
fn transform(
    path: &mut Path,
    rules: &[Box<dyn Rule>],
    modules: &Modules,
    classes: &mut Classes,
) -> Result<(), DropReason> {
    let mut rewrite = Rewrite { slots: &mut path.slots, state: &mut path.state, modules, added: 0 };
    for rule in rules {
        if rule.matches(&rewrite) {
            rule.apply(&mut rewrite);
        }
    }
    let added = rewrite.added;
    let class = classes.of_mut(path.state.class);
    class.charge(&mut path.state.account, added)?;
    if stands(&path.state.attrs) {
        class.exempt(added);
    }
    path.state.base_memory += added;
    Ok(())
}

/// A path opened for a run: what its stages share, and the stages.
fn open<'a>(
    path: &'a mut Path,
    modules: &'a mut Modules,
    classes: &'a mut Classes,
    now: Instant,
    port: &'a mut dyn Port,
) -> (Env<'a>, Run<'a>) {
    let class = classes.of_mut(path.state.class);
    let run = Run { slots: &mut path.slots, base: 0, floor: true, ceiling: true, inner: false };
    (Env { now, port, modules, state: &mut path.state, class, input: &mut path.input }, run)
}

/// Tells the port when the path's earliest timer has changed.
fn announce(path: &mut Path, port: &mut dyn Port) {
    let deadline = path.state.deadline();
    if deadline != path.state.armed {
        path.state.armed = deadline;
        port.arm(path.id(), deadline);
    }
}

fn measured(state: &mut PathState, start: Instant, port: &mut dyn Port) {
    let Some(end) = port.clock() else { return };
    let average = state.measure.get_or_insert_default();
    average.add(end.since(start).as_nanos() as u64);
    // No room for the attribute: the average is still there to be read.
    let _ = state.attrs.set(Attr::ProcessTime(average.ns()));
}
