//! The executor of an appliance: one message of one path at a time, to completion, for its policy may choose
//! another after each. Nothing in it waits; whoever owns it sleeps until [`Appliance::due`] or until the device has something.

use crate::clock::Clock;
use crate::port::Outside;
use silk_device::{End, Received, Transmitted};
use silk_executor::Dispatch;
use silk_executor::join::frame_of;
use silk_instant::Instant;
use silk_path::classify::Tables;
use silk_path::{
    Attrs, CreateError, DropReason, DropTotals, Event, ModuleId, Path, PathId, Paths, Request, Statement,
    Ticket, Urgency, Wakeup, without_deadline,
};
use silk_sched::{Member, Policy, Refused, Terms};
use silk_wire::MacAddr;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

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
    Urgency { deadline: Some(now + SOON), ..without_deadline(path, now) }
}

const SOON: Duration = Duration::from_millis(5);

/// Another station has an address of ours (RFC 4862 §5.4.5, RFC 5227 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub address: IpAddr,
    /// The station's Ethernet address.
    pub station: [u8; 6],
    /// We neither answer for it nor send from it any more; else we keep it.
    pub given_up: bool,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, then) = if self.given_up {
            ("has", "is therefore given up: give one of the two another, and start anew")
        } else {
            ("claims", "is kept: give one of the two another")
        };
        write!(
            f,
            "another station, {}, {what} our address {}, which {then}",
            MacAddr(self.station),
            self.address
        )
    }
}

/// An appliance.
pub struct Appliance {
    core: Dispatch<Outside>,
    /// Neighbours whose link addresses a path waits for, where Linux finds them.
    pub wanted: Vec<IpAddr>,
    /// The last station that was found to have an address of ours.
    pub conflict: Option<Conflict>,
    /// What became true of paths, for whoever made them.
    pub events: Vec<(PathId, Event)>,
    frames_taken: u64,
}

impl Appliance {
    /// An appliance without paths.
    pub fn new(parts: Parts) -> Self {
        let Parts { paths, end, policy, tables, clock, random } = parts;
        let outside = Outside::new(end.transmit, clock, random);
        let ask = |_: &Paths, tables: &Tables, frame: &[u8], device| tables.classify_over(frame, device);
        Self {
            core: Dispatch::new(paths, outside, end.receive, policy, tables, ask),
            wanted: Vec::new(),
            conflict: None,
            events: Vec::new(),
            frames_taken: 0,
        }
    }

    /// What time it is.
    pub fn now(&self) -> Instant {
        self.core.port.clock.now()
    }

    /// The paths.
    pub fn paths(&self) -> &Paths {
        &self.core.paths
    }

    /// The paths, to be changed.
    pub fn paths_mut(&mut self) -> &mut Paths {
        &mut self.core.paths
    }

    /// The classifier's tables.
    pub fn tables(&self) -> &Tables {
        &self.core.tables
    }

    /// Frames it has taken from the device.
    pub fn frames_taken(&self) -> u64 {
        self.frames_taken
    }

    /// Time its paths have run.
    pub fn busy(&self) -> Duration {
        self.core.used
    }

    /// Frames that belong to no path, and what stages dropped of others'.
    pub fn drops(&self) -> &DropTotals {
        &self.core.drops
    }

    /// What the device received.
    pub fn received(&mut self) -> Received {
        self.core.device.received()
    }

    /// What the device sent.
    pub fn transmitted(&self) -> Transmitted {
        self.core.port.transmitted()
    }

    /// Readable when frames have arrived.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.core.device.fd()
    }

    /// When it wants to run even if no frame arrives.
    pub fn due(&self) -> Option<Instant> {
        self.core.port.due()
    }

    /// Creates a path that begins at module `top`, scheduled on these terms and by this wake-up
    /// callback ([`without_deadline`] where there is no other).
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
        let id =
            self.core.paths.create(top, attrs, None, now, &mut self.core.port).map_err(Dropped::Create)?;
        if let Err(refused) = self.core.policy.admit(Member(id.index), terms) {
            self.destroy(id);
            return Err(Dropped::Terms(refused));
        }
        if let Some(path) = self.core.paths.path_mut(id) {
            path.wakeup = wakeup.unwrap_or(without_deadline);
        }
        self.settle(now);
        Ok(id)
    }

    /// Ends a path: what was left to tell of it, if it was there.
    pub fn destroy(&mut self, id: PathId) -> Option<Statement> {
        let now = self.now();
        let statement = self.core.destroy(id, now);
        self.settle(now);
        // There may be no turn after this one, and who is told goodbye is to hear it.
        self.core.port.flush();
        statement
    }

    /// Does what there is to do now: timers that are due, frames that have arrived, and one
    /// message of the path that the policy chooses. `false` when there was nothing.
    pub fn turn(&mut self) -> bool {
        let expired = self.expire();
        let arrived = self.receive();
        let ran = self.run();
        self.core.port.flush();
        expired || arrived || ran
    }

    /// The path may have work again that it was told to hold: its output queue has been drained.
    pub fn wake(&mut self, id: PathId) {
        let now = self.now();
        if self.core.has_input(id) {
            self.core.wake(id, now);
        }
    }

    /// A neighbour's link address, or that it has none.
    pub(crate) fn learn(&mut self, address: IpAddr, link: Option<[u8; 6]>) {
        let now = self.now();
        self.core.learn((0, address), link, now);
        self.settle(now);
    }

    /// Runs `work` on the paths with the port they run with, and does what was asked for.
    pub fn with<R>(&mut self, work: impl FnOnce(&mut Paths, Instant, &mut dyn silk_path::Port) -> R) -> R {
        let now = self.now();
        let done = work(&mut self.core.paths, now, &mut self.core.port);
        self.settle(now);
        self.core.port.flush();
        done
    }

    /// Runs the timers that are due, at their paths' expense (Scout §4.4): DISPLAY shows its pictures by one.
    fn expire(&mut self) -> bool {
        let mut any = false;
        let now = self.now();
        let mut start = now;
        while let Some(index) = self.core.port.expire(now) {
            any = true;
            if let Some(id) = self.core.paths.at(index) {
                self.core.paths.expire(id, now, &mut self.core.port);
                self.settle(now);
                let end = self.now();
                self.core.charge_timers(id, start, end);
                start = end;
                // A timer may have drained the path's output queue.
                self.wake(id);
            }
        }
        any
    }

    fn receive(&mut self) -> bool {
        let now = self.now();
        let taken = self.core.receive(now);
        self.frames_taken += taken as u64;
        let mut astray = std::mem::take(&mut self.core.astray);
        astray.drain(..).for_each(|(frame, reason)| self.core.turn_away(frame, reason, now));
        self.core.astray = astray;
        taken > 0
    }

    /// One message of the path that the policy chooses, run to completion.
    fn run(&mut self) -> bool {
        let start = self.now();
        let Some(member) = self.core.choose(start) else { return false };
        if let Some(id) = self.core.path_at(member, start) {
            if let Some(ticket) = self.core.paths.dequeue(id) {
                self.deliver(id, ticket, start);
            }
            let end = self.now();
            self.core.charge(id, member, start, end);
            if self.core.has_input(id) {
                self.core.wake(id, end);
            }
        }
        true
    }

    fn deliver(&mut self, id: PathId, ticket: Ticket, now: Instant) {
        // What a stage dropped has been counted there; nothing here makes paths of messages.
        let _ = self.core.up(id, ticket, false, now);
        self.core.device.release(frame_of(ticket));
        self.settle(now);
    }

    /// After a run: does what was asked for, and keeps what became true.
    fn settle(&mut self, now: Instant) {
        while !self.core.port.requests.is_empty() {
            for request in std::mem::take(&mut self.core.port.requests) {
                self.answer(request, now);
            }
        }
        self.events.append(&mut self.core.port.events);
    }

    fn answer(&mut self, request: Request, now: Instant) {
        match request {
            Request::Destroy(id) => {
                self.destroy(id);
            }
            Request::Resolve { address, .. } => self.wanted.push(address),
            Request::Wake(id) => {
                self.core.report(id, silk_path::Report::Resolved, now);
            }
            Request::Report { udp, local, remote, report, .. } => {
                if let Some(id) = self.flow(udp, local, remote) {
                    self.core.report(id, report, now);
                }
            }
            Request::Arrived { device, mut frame, checksum } => {
                let _ = self.core.arrive(&mut frame, device, checksum, now);
            }
            // Only listening paths ask for others, and an appliance has none; its addresses are configured.
            Request::Create { .. } => self.core.drops.count(DropReason::NoPath),
            Request::Duplicate { address, station } => {
                self.conflict = Some(Conflict { address, station, given_up: true });
            }
            Request::Claimed { address, station } => {
                self.conflict = Some(Conflict { address, station, given_up: false });
            }
            Request::Routers(_) | Request::RouterLost(_) | Request::Redirected { .. } => {}
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
        self.core.paths.iter().find(is_it).map(Path::id)
    }
}
