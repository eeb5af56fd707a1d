//! Paths at one end of a device, under one policy: frames go to the input queues of their paths, the
//! policy chooses a path, its run is charged to it. Nothing in it waits or reads a clock, and
//! it decides nothing: what a run is, what becomes of what it asked for and when there is time to sleep
//! is said by whoever owns it.

use crate::join::{checksum_of, frame_of, stranger, ticket_of};
use crate::refusal::{answering, refuse};
use silk_device::{Frame, Receive};
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::nd::Nd;
use silk_path::classify::{Belongs, Found, Tables};
use silk_path::{
    Bell, Checksum, DropReason, DropTotals, Message, Meta, Outcome, PathId, Paths, Port, Report, Statement,
    Station, Ticket,
};
use silk_sched::{Member, Policy};
use silk_wire::MacAddr;
use std::net::IpAddr;
use std::time::Duration;

/// Frames taken from the device in one go.
pub const BATCH: usize = 64;

/// Who says which path a frame is for that the device with this number has not classified.
pub type Classify = fn(&Paths, &Tables, &[u8], u8) -> Belongs;

/// The paths with what they run on. `P` is the world around them.
pub struct Dispatch<P> {
    /// The paths.
    pub paths: Paths,
    /// The world around them.
    pub port: P,
    /// Where frames come from.
    pub device: Box<dyn Receive>,
    /// How the paths are ordered.
    pub policy: Box<dyn Policy + Send>,
    /// The classifier's tables, which the modules have too.
    pub tables: Tables,
    /// Who classifies what the device has not.
    pub classify: Classify,
    /// The device by which what is sent to ourselves comes back, where there is one, and our domain: that may be another domain's.
    pub itself: Option<(u8, u8)>,
    /// Drops that belong to no path.
    pub drops: DropTotals,
    /// Time that paths have run since somebody took it.
    pub used: Duration,
    /// What the last [`Self::receive`] found no room or no path for, and why. Whoever owns this has it
    /// taken elsewhere or turns it away.
    pub astray: Vec<(Frame, DropReason)>,
    frames: Vec<Frame>,
}

impl<P: Port> Dispatch<P> {
    /// These paths on that end of a device.
    pub fn new(
        paths: Paths,
        port: P,
        device: Box<dyn Receive>,
        policy: Box<dyn Policy + Send>,
        tables: Tables,
        classify: Classify,
    ) -> Self {
        Self {
            paths,
            port,
            device,
            policy,
            tables,
            classify,
            itself: None,
            drops: DropTotals::default(),
            used: Duration::ZERO,
            astray: Vec::new(),
            frames: Vec::with_capacity(BATCH),
        }
    }

    /// Rings a bell at the top of the path. Whether the path is there.
    pub fn bell(&mut self, id: PathId, bell: Bell, now: Instant) -> bool {
        self.paths.bell(id, now, &mut self.port, bell)
    }

    /// Tells the path, from the top down, what the network said. Whether it is there.
    pub fn report(&mut self, id: PathId, report: Report, now: Instant) -> bool {
        self.paths.report(id, now, &mut self.port, report)
    }

    /// Takes a batch of frames to the input queues of their paths. How many there were.
    pub fn receive(&mut self, now: Instant) -> usize {
        let mut frames = std::mem::take(&mut self.frames);
        let count = self.device.receive(&mut frames, BATCH);
        for frame in frames.drain(..) {
            if let Err(reason) = self.route(frame, now) {
                self.astray.push((frame, reason));
            }
        }
        self.frames = frames;
        count
    }

    /// Drops a frame that nobody takes.
    pub fn turn_away(&mut self, frame: Frame, reason: DropReason, now: Instant) {
        if reason == DropReason::NoPath {
            self.refuse_frame(frame, now);
        }
        // A path whose queue is full has counted it.
        if reason != DropReason::QueueFull {
            self.drops.count(reason);
        }
        self.device.release(frame);
    }

    /// Tells the sender of a frame that nobody takes that it is so, if it may be told.
    fn refuse_frame(&mut self, frame: Frame, now: Instant) {
        let Self { paths, port, device, tables, classify, .. } = self;
        if !tables.owned().icmp {
            return;
        }
        let Some(bytes) = device.bytes(frame).get(frame.range()) else { return };
        if (classify)(paths, tables, bytes, frame.device) == Belongs::Pass {
            refuse((paths, port), tables, (bytes, frame.device, checksum_of(frame)), now);
        }
    }

    /// Puts a frame on the input queue of the path it belongs to.
    fn route(&mut self, frame: Frame, now: Instant) -> Result<(), DropReason> {
        let Some(id) = self.place_of(frame)? else {
            self.device.release(frame);
            return Ok(());
        };
        if self.paths.enqueue(id, ticket_of(frame, now))? {
            self.wake(id, now);
        }
        Ok(())
    }

    /// The path that a frame belongs to, by what the XDP program wrote in front of it, or else by asking.
    ///
    /// # Errors
    /// It is too short for a frame, or no path's.
    pub fn path_of(&mut self, frame: Frame) -> Result<PathId, DropReason> {
        self.place_of(frame)?.ok_or(DropReason::NoPath)
    }

    /// The same; `None` where its path does not want it, which is counted with the path and is no drop.
    fn place_of(&mut self, frame: Frame) -> Result<Option<PathId>, DropReason> {
        let bytes = self.device.bytes(frame).get(frame.range()).ok_or(DropReason::EthTruncated)?;
        let asked = || (self.classify)(&self.paths, &self.tables, bytes, frame.device);
        let belongs = Belongs::from_hint(frame.path).unwrap_or_else(asked);
        if let Belongs::Discard { domain, index } = belongs {
            self.tables.count_discard(Found { domain, index });
            return Ok(None);
        }
        if let Belongs::Refuse { .. } = belongs {
            return Err(DropReason::Refused);
        }
        if others_domain(self.itself, frame.device, belongs).is_some() {
            return Err(DropReason::NoPath);
        }
        if let Some(path) = self.paths.target(bytes, belongs) {
            return Ok(Some(path));
        }
        match stranger(bytes, frame.device, &self.tables) {
            DropReason::NoPath => {
                answering(&self.paths, &self.tables, bytes, belongs).map(Some).ok_or(DropReason::NoPath)
            }
            reason => Err(reason),
        }
    }

    /// The domain that a frame belongs to which came back by ourselves, if it is another.
    pub fn home_of(&mut self, frame: Frame) -> Option<usize> {
        self.itself.filter(|(itself, _)| *itself == frame.device)?;
        let bytes = self.device.bytes(frame).get(frame.range())?;
        let belongs = (self.classify)(&self.paths, &self.tables, bytes, frame.device);
        others_domain(self.itself, frame.device, belongs).map(usize::from)
    }

    /// Tells the policy that a path has work, unless the path says to hold it.
    pub fn wake(&mut self, id: PathId, now: Instant) {
        let Some(urgency) = self.paths.urgency(id, now) else { return };
        if !urgency.hold {
            self.policy.ready(Member(id.index), now, urgency.deadline);
        }
    }

    /// Whether messages wait for a path.
    pub fn has_input(&self, id: PathId) -> bool {
        self.paths.path(id).is_some_and(|path| !path.input.is_empty())
    }

    /// Whom the policy lets run at `now`; `None` when nobody is ready. Ask [`Self::path_at`] for the path.
    pub fn choose(&mut self, now: Instant) -> Option<Member> {
        self.policy.next(now)
    }

    /// The path of a chosen member. One that has gone meanwhile is charged nothing.
    pub fn path_at(&mut self, member: Member, now: Instant) -> Option<PathId> {
        let id = self.paths.at(member.0);
        if id.is_none() {
            self.policy.charge(member, Duration::ZERO, now);
        }
        id
    }

    /// A path that nobody chose has run from `start` until `end`: a timer was due that may not wait, as one that shows a picture. The policy
    /// is not told, which knows of runs that it gave.
    pub fn charge_timers(&mut self, id: PathId, start: Instant, end: Instant) {
        let used = end.since(start);
        self.paths.charge_cpu(id, used.as_nanos() as u64, 0);
        self.used += used;
    }

    /// A chosen path has run from `start` until `end`.
    pub fn charge(&mut self, id: PathId, member: Member, start: Instant, end: Instant) {
        let used = end.since(start);
        self.paths.charge_cpu(id, used.as_nanos() as u64, 0);
        self.policy.charge(member, used, end);
        self.used += used;
    }

    /// Runs the frame of a ticket up a path; `more`: others follow at once. The frame stays the caller's.
    pub fn up(&mut self, id: PathId, ticket: Ticket, more: bool, now: Instant) -> Outcome {
        let frame = frame_of(ticket);
        let bytes = self.device.bytes(frame);
        let link = Station::over(ticket.device);
        let meta = Meta { checksum: ticket.checksum, arrival: ticket.arrival, more, link, ..Meta::default() };
        let mut message = Message::new(bytes, frame.range().start, frame.range().end, meta);
        self.paths.up(id, now, &mut self.port, &mut message)
    }

    /// The path that a frame is for which is in no ring, and came over this device, if a module or an entry names one.
    pub fn target_of(&self, frame: &[u8], device: u8) -> Option<PathId> {
        self.paths.target(frame, (self.classify)(&self.paths, &self.tables, frame, device))
    }

    /// Runs a frame that is in no ring, put together from fragments or passed on, up its path at once: which, and what became of it.
    /// It came over this device. `None`: nobody takes it, or its path does not want it, each of which is counted.
    pub fn arrive(
        &mut self,
        frame: &mut [u8],
        device: u8,
        checksum: Checksum,
        now: Instant,
    ) -> Option<(PathId, Outcome)> {
        let belongs = (self.classify)(&self.paths, &self.tables, frame, device);
        if let Belongs::Discard { domain, index } = belongs {
            self.tables.count_discard(Found { domain, index });
            return None;
        }
        let target = self.paths.target(frame, belongs);
        let Some(id) = target.or_else(|| answering(&self.paths, &self.tables, frame, belongs)) else {
            if belongs == Belongs::Pass {
                refuse((&mut self.paths, &mut self.port), &self.tables, (frame, device, checksum), now);
            }
            let refused = matches!(belongs, Belongs::Refuse { .. });
            self.drops.count(if refused { DropReason::Refused } else { DropReason::NoPath });
            return None;
        };
        Some((id, self.arrive_at(id, frame, device, checksum, now)))
    }

    /// The same, up this path.
    pub fn arrive_at(
        &mut self,
        id: PathId,
        frame: &mut [u8],
        device: u8,
        checksum: Checksum,
        now: Instant,
    ) -> Outcome {
        let end = frame.len();
        let meta = Meta { checksum, arrival: now, link: Station::over(device), ..Meta::default() };
        self.paths.up(id, now, &mut self.port, &mut Message::new(frame, 0, end, meta))
    }

    /// The link address of a neighbour beside a device, or that it has none, where somebody else finds neighbours.
    pub fn learn(&mut self, (device, address): (u8, IpAddr), link: Option<[u8; 6]>, now: Instant) {
        let link = link.map(MacAddr);
        match address {
            IpAddr::V4(address) => {
                if let Some(arp) = self.paths.module_mut::<Arp>() {
                    arp.learn(now, (device, address), link, &mut self.port);
                }
            }
            IpAddr::V6(address) => {
                if let Some(nd) = self.paths.module_mut::<Nd>() {
                    nd.learn(now, (device, address), link, &mut self.port);
                }
            }
        }
    }

    /// Destroys a path and gives its frames back: what was left to tell of it, if it was there.
    pub fn destroy(&mut self, id: PathId, now: Instant) -> Option<Statement> {
        self.policy.remove(Member(id.index));
        let device = &mut self.device;
        self.paths.destroy_with(id, now, &mut self.port, |ticket| device.release(frame_of(ticket)))
    }
}

/// Whose a frame is that came over this device, if it came back by `itself` and is another domain's than ours. (What comes from outside is told
/// apart before.)
fn others_domain(itself: Option<(u8, u8)>, device: u8, belongs: Belongs) -> Option<u8> {
    let (_, own) = itself.filter(|(itself, _)| *itself == device)?;
    belongs.domain().filter(|domain| *domain != own)
}
