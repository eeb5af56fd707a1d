//! The executor of an appliance: takes frames to the input queues of their paths, lets the policy
//! choose a path, runs one of its messages to completion, and looks again. Nothing in it waits;
//! whoever owns it sleeps until [`Appliance::due`] or until the device has something.

use crate::clock::Clock;
use crate::join::{frame_of, stranger, ticket_of};
use crate::port::Outside;
use silk_device::{End, Frame, Receive, Received, Transmitted};
use silk_instant::Instant;
use silk_path::classify::{Found, Tables, Verdict};
use silk_path::{
    Attrs, Checksum, CreateError, DropReason, DropTotals, Event, Message, Meta, ModuleId, Path, PathId,
    Paths, Request, Statement, Ticket, Urgency, Wakeup, by_priority,
};
use silk_sched::{Member, Policy, Refused, Terms};
use std::fmt;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Frames taken from the device in one go.
const BATCH: usize = 64;

/// What an appliance is made of.
pub struct Parts {
    /// Its paths, none yet, through its graph.
    pub paths: Paths,
    /// Its end of the device.
    pub end: End,
    /// How its paths are ordered.
    pub policy: Box<dyn Policy + Send>,
    /// The classifier's tables, which its modules have too.
    pub tables: Tables,
    /// What time it is.
    pub clock: Box<dyn Clock>,
    /// Numbers nobody else can guess.
    pub random: Box<dyn FnMut() -> u64 + Send>,
}

/// Why a path was not made.
#[derive(Debug)]
pub enum Dropped {
    /// A module refused it.
    Create(CreateError),
    /// The policy cannot keep the terms.
    Terms(Refused),
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(error) => error.fmt(f),
            Self::Terms(refused) => write!(f, "the scheduling policy refuses it: {refused:?}"),
        }
    }
}

impl std::error::Error for Dropped {}

/// The wake-up callback of paths that carry little and that others wait for, commands and neighbours:
/// done soon, however much is to be done that has a deadline too.
pub fn soon(path: &Path, now: Instant) -> Urgency {
    Urgency { deadline: Some(now + SOON), ..by_priority(path, now) }
}

const SOON: Duration = Duration::from_millis(5);

/// An appliance.
pub struct Appliance {
    paths: Paths,
    outside: Outside,
    receive: Box<dyn Receive>,
    policy: Box<dyn Policy + Send>,
    tables: Tables,
    frames: Vec<Frame>,
    /// Neighbours whose link addresses a path waits for, where Linux finds them.
    pub wanted: Vec<IpAddr>,
    /// What became true of paths, for whoever made them.
    pub events: Vec<(PathId, Event)>,
    drops: DropTotals,
    busy: Duration,
    frames_taken: u64,
}

impl Appliance {
    /// An appliance without paths.
    pub fn new(parts: Parts) -> Self {
        Self {
            paths: parts.paths,
            outside: Outside::new(parts.end.transmit, parts.clock, parts.random),
            receive: parts.end.receive,
            policy: parts.policy,
            tables: parts.tables,
            frames: Vec::with_capacity(BATCH),
            wanted: Vec::new(),
            events: Vec::new(),
            drops: DropTotals::default(),
            busy: Duration::ZERO,
            frames_taken: 0,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Instant {
        self.outside.clock.now()
    }

    /// The paths.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The paths, to be changed.
    pub fn paths_mut(&mut self) -> &mut Paths {
        &mut self.paths
    }

    /// The classifier's tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Frames it has taken from the device.
    pub fn frames_taken(&self) -> u64 {
        self.frames_taken
    }

    /// Time its paths have run.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Frames that belong to no path, and what stages dropped of others'.
    pub fn drops(&self) -> &DropTotals {
        &self.drops
    }

    /// What the device received.
    pub fn received(&mut self) -> Received {
        self.receive.received()
    }

    /// What the device sent.
    pub fn transmitted(&self) -> Transmitted {
        self.outside.transmitted()
    }

    /// Readable when frames have arrived.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.receive.fd()
    }

    /// When it wants to run even if no frame arrives.
    pub fn due(&self) -> Option<Instant> {
        self.outside.due()
    }

    /// Creates a path that begins at module `top`, scheduled on these terms and by this wake-up
    /// callback ([`by_priority`] where there is no other).
    ///
    /// # Errors
    /// [`Dropped`]; nothing is left of it.
    pub fn create(
        &mut self,
        top: ModuleId,
        attrs: Attrs,
        terms: Terms,
        wakeup: Option<Wakeup>,
    ) -> Result<PathId, Dropped> {
        let now = self.now();
        let id = self.paths.create(top, attrs, None, now, &mut self.outside).map_err(Dropped::Create)?;
        if let Err(refused) = self.policy.admit(Member(id.index), terms) {
            self.destroy(id);
            return Err(Dropped::Terms(refused));
        }
        if let Some(path) = self.paths.path_mut(id) {
            path.wakeup = wakeup.unwrap_or(by_priority);
        }
        self.settle(now);
        Ok(id)
    }

    /// Ends a path: what was left to tell of it, if it was there.
    pub fn destroy(&mut self, id: PathId) -> Option<Statement> {
        let now = self.now();
        self.policy.remove(Member(id.index));
        let receive = &mut self.receive;
        let statement =
            self.paths.destroy_with(id, now, &mut self.outside, |ticket| receive.release(frame_of(ticket)));
        self.settle(now);
        statement
    }

    /// Does what there is to do now: timers that are due, frames that have arrived, and one
    /// message of the path that the policy chooses. `false` when there was nothing.
    pub fn turn(&mut self) -> bool {
        let expired = self.expire();
        let arrived = self.receive();
        let ran = self.run();
        self.outside.flush();
        expired || arrived || ran
    }

    /// The path may have work again that it was told to hold: its output queue has been drained.
    pub fn wake(&mut self, id: PathId) {
        let now = self.now();
        if self.paths.path(id).is_some_and(|path| !path.input.is_empty()) {
            self.ready(id, now);
        }
    }

    /// Runs `work` on the paths with the port they run with, and does what was asked for.
    pub fn with<R>(&mut self, work: impl FnOnce(&mut Paths, Instant, &mut dyn silk_path::Port) -> R) -> R {
        let now = self.now();
        let done = work(&mut self.paths, now, &mut self.outside);
        self.settle(now);
        done
    }

    fn expire(&mut self) -> bool {
        let mut any = false;
        let now = self.now();
        while let Some(index) = self.outside.expire(now) {
            any = true;
            if let Some(id) = self.paths.at(index) {
                self.paths.expire(id, now, &mut self.outside);
                self.settle(now);
                // A timer may have drained the path's output queue.
                self.wake(id);
            }
        }
        any
    }

    fn receive(&mut self) -> bool {
        let now = self.now();
        let mut frames = std::mem::take(&mut self.frames);
        let taken = self.receive.receive(&mut frames, BATCH);
        self.frames_taken += taken as u64;
        for frame in frames.drain(..) {
            if let Err(reason) = self.route(frame, now) {
                self.drops.count(reason);
                self.receive.release(frame);
            }
        }
        self.frames = frames;
        taken > 0
    }

    /// Puts a frame on the input queue of the path it belongs to.
    fn route(&mut self, frame: Frame, now: Instant) -> Result<(), DropReason> {
        let bytes = self.receive.bytes(frame);
        let bytes = bytes.get(frame.range()).ok_or(DropReason::EthTruncated)?;
        let verdict = Verdict::from_hint(frame.path).unwrap_or_else(|| self.tables.classify(bytes));
        if let Verdict::Discard { domain, index } = verdict {
            // Counted with the path that did not want it, and no drop.
            self.tables.count_discard(Found { domain, index });
            self.receive.release(frame);
            return Ok(());
        }
        let id = self.paths.target(bytes, verdict).ok_or_else(|| stranger(bytes, &self.tables))?;
        if self.paths.enqueue(id, ticket_of(frame, now))? {
            self.ready(id, now);
        }
        Ok(())
    }

    /// Tells the policy that a path has work, unless the path says to hold it.
    fn ready(&mut self, id: PathId, now: Instant) {
        let Some(urgency) = self.paths.wake(id, now) else { return };
        if !urgency.hold {
            self.policy.ready(Member(id.index), now, urgency.deadline);
        }
    }

    /// One message of the path that the policy chooses, run to completion.
    fn run(&mut self) -> bool {
        let start = self.now();
        let Some(member) = self.policy.next(start) else { return false };
        if let Some(id) = self.paths.at(member.0) {
            if let Some(ticket) = self.paths.dequeue(id) {
                self.deliver(id, ticket, start);
            }
            let end = self.now();
            self.account(id, member, start, end);
            if self.paths.path(id).is_some_and(|path| !path.input.is_empty()) {
                self.ready(id, end);
            }
        } else {
            self.policy.charge(member, Duration::ZERO, start);
        }
        true
    }

    fn account(&mut self, id: PathId, member: Member, start: Instant, end: Instant) {
        let used = end.since(start);
        self.busy += used;
        self.paths.charge_cpu(id, used.as_nanos() as u64, 0);
        self.policy.charge(member, used, end);
    }

    fn deliver(&mut self, id: PathId, ticket: Ticket, now: Instant) {
        let frame = frame_of(ticket);
        let bytes = self.receive.bytes(frame);
        let meta = Meta { checksum: ticket.checksum, arrival: ticket.arrival, ..Meta::default() };
        let mut message = Message::new(bytes, frame.range().start, frame.range().end, meta);
        // What a stage dropped has been counted there; nothing here makes paths of messages.
        let _ = self.paths.up(id, now, &mut self.outside, &mut message);
        self.receive.release(frame);
        self.settle(now);
    }

    /// After a run: does what was asked for, and keeps what became true.
    fn settle(&mut self, now: Instant) {
        while !self.outside.requests.is_empty() {
            for request in std::mem::take(&mut self.outside.requests) {
                self.answer(request, now);
            }
        }
        self.events.append(&mut self.outside.events);
    }

    fn answer(&mut self, request: Request, now: Instant) {
        match request {
            Request::Destroy(id) => {
                self.destroy(id);
            }
            Request::Resolve(address) => self.wanted.push(address),
            Request::Wake(id) => {
                self.paths.report(id, now, &mut self.outside, silk_path::Report::Resolved);
            }
            Request::Report { udp, local, remote, report, .. } => {
                if let Some(id) = self.flow(udp, local, remote) {
                    self.paths.report(id, now, &mut self.outside, report);
                }
            }
            Request::Arrived { mut frame, checksum } => self.reassembled(&mut frame, checksum, now),
            // Only listening paths ask for others, and an appliance has none; its addresses are configured.
            Request::Create { .. } => self.drops.count(DropReason::NoPath),
            Request::Routers { .. } => {}
        }
    }

    /// The path between two ends.
    fn flow(&self, udp: bool, local: silk_path::Endpoint, remote: silk_path::Endpoint) -> Option<PathId> {
        let protocol = u16::from(if udp { silk_wire::ipv4::UDP } else { silk_wire::ipv4::TCP });
        let is_it = |path: &&Path| {
            let attrs = &path.state.attrs;
            attrs.local() == Some(local)
                && attrs.remote() == Some(remote)
                && attrs.prot_id().is_none_or(|known| known == protocol)
        };
        self.paths.iter().find(is_it).map(Path::id)
    }

    /// A frame that was put together from fragments runs up its path at once.
    fn reassembled(&mut self, frame: &mut [u8], checksum: Checksum, now: Instant) {
        let verdict = self.tables.classify(frame);
        let Some(id) = self.paths.target(frame, verdict) else { return self.drops.count(DropReason::NoPath) };
        let end = frame.len();
        let meta = Meta { checksum, arrival: now, ..Meta::default() };
        let _ = self.paths.up(id, now, &mut self.outside, &mut Message::new(frame, 0, end, meta));
    }
}
