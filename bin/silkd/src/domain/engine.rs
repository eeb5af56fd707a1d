//! One domain's paths at work: frames and doorbells in, activities chosen by the policy and
//! run to completion, effects out. One thread owns it; nothing in it waits.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::{FamilyIndex, SocketName};
use crate::between::sockets::Spare;
use crate::between::told::Told;
use crate::between::watch::Watch;
use crate::classes::Classes;
use crate::domain::departing::Departing;
use crate::domain::expulsion::Expulsion;
use crate::domain::family_end::FamilyEnd;
use crate::domain::giving_back::GivingBack;
use crate::domain::homes::Homes;
use crate::domain::linux_sockets::Host;
use crate::domain::port::DomainPort;
use crate::domain::sibling::Sibling;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Sockets;
use crate::domain::telling::Telling;
use crate::domain::unblock::Histogram;
use crate::threads::ringing::Ringing;
use silk_config::{Keepalive, Listen};
use silk_device::{Receive, Transmit};
use silk_executor::join::frame_of;
use silk_executor::{Dispatch, clock};
use silk_instant::Instant;
use silk_path::classify::Tables;
use silk_path::{Bell, DropReason, Event, Outcome, PathId, Paths, Ticket};
use silk_sched::Policy;
use silk_stream::mail::Sender;
use silk_stream::{Slot, status};
use silk_tcp::Algorithm;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Messages of one path before the policy is asked again.
pub(crate) const BURST: usize = 16;

/// What an engine is made of.
pub struct Parts {
    /// Which domain.
    pub domain: usize,
    /// Its paths, none yet.
    pub paths: Paths,
    /// Where its frames arrive, of all devices.
    pub receive: Box<dyn Receive>,
    /// Where its frames leave, by device.
    pub transmits: Vec<Box<dyn Transmit>>,
    /// Linux's numbers of the interfaces that it shares, by device.
    pub interfaces: Vec<u32>,
    /// The interfaces' names, by device.
    pub devices: Arc<[String]>,
    /// By which device what is sent to ourselves comes back.
    pub itself: Option<u8>,
    /// How its paths are ordered.
    pub policy: Box<dyn Policy + Send>,
    /// The classes in force.
    pub classes: Arc<Classes>,
    /// Whether programs run at the priority of their paths.
    pub extend: bool,
    /// The real-time base priority.
    pub base: i32,
    /// The rings of an accepted connection: receive and send, bytes.
    pub rings: (u32, u32),
    /// To what rings may grow, bytes.
    pub largest_ring: u32,
    /// How listening paths are scheduled, and how many half-open connections one may have.
    pub listen: Listen,
    /// Probing of idle connections, where a program says no figures of its own.
    pub keepalive: Keepalive,
    /// The congestion control of connections that nobody wishes otherwise for.
    pub congestion: Algorithm,
    /// The classifier's tables, shared by all domains.
    pub tables: Tables,
    /// The way to the control thread.
    pub events: Sender<Told>,
    /// What wakes the control thread.
    pub control_event: Arc<OwnedFd>,
    /// The way to every domain's executor, this one's included.
    pub siblings: Vec<Sibling>,
    /// What tells of changes at Linux's sockets.
    pub watch: Watch,
}

/// The engine.
pub struct Engine {
    pub(crate) domain: usize,
    /// The paths with their end of the device and their policy. The classifier's tables are all domains'.
    pub(crate) core: Dispatch<DomainPort>,
    /// The interfaces' names, by device.
    pub(crate) devices: Arc<[String]>,
    pub(crate) classes: Arc<Classes>,
    pub(crate) extend: bool,
    pub(crate) base: i32,
    pub(crate) rings: (u32, u32),
    /// To what rings may grow, bytes.
    pub(crate) largest_ring: u32,
    pub(crate) listen: Listen,
    pub(crate) keepalive: Keepalive,
    /// The congestion control of connections that nobody wishes otherwise for.
    pub(crate) usual_congestion: Algorithm,
    pub(crate) families: BTreeMap<FamilyIndex, FamilyEnd>,
    /// This family, or the next that there is, is the first whose doorbells are looked at.
    pub(crate) heard_next: FamilyIndex,
    pub(crate) sockets: Sockets,
    /// Connections that families have left, which no socket is needed for.
    pub(crate) going_on: BTreeSet<SocketName>,
    /// Those that programs may come to connect with.
    pub(crate) spares: BTreeMap<SocketName, Spare>,
    /// How the watchdog knows that it rings.
    pub(crate) ringing: Ringing,
    /// Memory that nobody needs.
    pub(crate) giving_back: GivingBack,
    /// The listening sockets by their listen path's index.
    pub(crate) listeners: BTreeMap<u32, Vec<Arc<ListenerHold>>>,
    /// The same by their names: a program may ring for any number of sockets, whatever they are.
    pub(crate) listening: BTreeMap<SocketName, Arc<ListenerHold>>,
    /// Why the listen paths take no connection, as far as they were told.
    pub(crate) full: BTreeMap<u32, DropReason>,
    /// Accepted connections to be brought to their programs once the run that made them ends.
    pub(crate) accepted: Vec<(SocketName, Arc<ListenerHold>)>,
    /// The way to the control thread.
    pub(crate) events: Sender<Told>,
    /// What wakes the control thread.
    pub(crate) control_event: Arc<OwnedFd>,
    /// The way to every domain's executor.
    pub(crate) siblings: Vec<Sibling>,
    /// What comes over Linux's own TCP and UDP.
    pub(crate) host: Host,
    /// Which domains serve datagram sockets.
    pub(crate) homes: Homes,
    /// The paths whose answers other domains wait for: those of ARP and neighbour discovery, where
    /// they are ours and there are other domains.
    pub(crate) answers: Vec<PathId>,
    pub(crate) unblock: Histogram,
    /// Reports that are being made, one after the other.
    pub(crate) telling: Option<Telling>,
    /// Who is gone, and not all of whose sockets are closed yet.
    pub(crate) departing: VecDeque<Departing>,
    /// Those who have become refused are looked for.
    pub(crate) expulsion: Option<Expulsion>,
    due: Vec<u32>,
    /// Room for the headers of a message that a doorbell sends.
    pub(crate) headroom: Vec<u8>,
}

/// The end of the socket at the top of a path.
pub(crate) fn end_in(core: &mut Dispatch<DomainPort>, id: PathId) -> Option<&mut SocketEnd> {
    match core.paths.path_mut(id)?.stream_mut() {
        Some(stream) => (stream as &mut dyn Any).downcast_mut(),
        None => core.port.datagrams(id),
    }
}

impl Engine {
    /// An engine without paths.
    pub fn new(parts: Parts) -> Self {
        let port = DomainPort::new(parts.transmits, parts.interfaces, clock::now());
        let ask =
            |paths: &Paths, _: &Tables, frame: &[u8], device| paths.graph().classify_over(frame, device);
        let mut core = Dispatch::new(parts.paths, port, parts.receive, parts.policy, parts.tables, ask);
        core.itself = parts.itself.map(|device| (device, parts.domain as u8));
        Self {
            domain: parts.domain,
            core,
            devices: parts.devices,
            classes: parts.classes,
            extend: parts.extend,
            base: parts.base,
            rings: parts.rings,
            largest_ring: parts.largest_ring,
            listen: parts.listen,
            keepalive: parts.keepalive,
            usual_congestion: parts.congestion,
            families: BTreeMap::new(),
            heard_next: 0,
            ringing: Ringing::default(),
            sockets: Sockets::default(),
            going_on: BTreeSet::new(),
            spares: BTreeMap::new(),
            giving_back: GivingBack::default(),
            listeners: BTreeMap::new(),
            listening: BTreeMap::new(),
            full: BTreeMap::new(),
            accepted: Vec::new(),
            events: parts.events,
            control_event: parts.control_event,
            siblings: parts.siblings,
            host: Host::new(parts.watch),
            homes: Homes::default(),
            answers: Vec::new(),
            unblock: Histogram::default(),
            telling: None,
            departing: VecDeque::new(),
            expulsion: None,
            due: Vec::new(),
            headroom: vec![0; 256],
        }
    }

    /// Takes a batch of frames to the input queues of their paths, or to another domain. How many there were.
    pub fn receive(&mut self, now: Instant) -> usize {
        let count = self.core.receive(now);
        let mut astray = std::mem::take(&mut self.core.astray);
        for (frame, reason) in astray.drain(..) {
            let passed = if reason == DropReason::NoPath { self.pass_on(frame) } else { Err(reason) };
            match passed {
                // Too much is under way to the other domain.
                Err(DropReason::QueueFull) if reason == DropReason::NoPath => {
                    self.core.drops.count(DropReason::QueueFull);
                    self.core.device.release(frame);
                }
                Err(_) => self.core.turn_away(frame, reason, now),
                Ok(()) => self.core.device.release(frame),
            }
        }
        self.core.astray = astray;
        count
    }

    /// The policy is told that a path has work.
    pub(crate) fn wake(&mut self, id: PathId, now: Instant) {
        self.core.wake(id, now);
    }

    /// Paths whose timers are due have work, as those have for which messages came: the policy says when they do it, and is told what it
    /// has cost.
    pub fn expire(&mut self, now: Instant) {
        self.try_again(now);
        let mut due = std::mem::take(&mut self.due);
        self.core.port.timers.expire(now, &mut due);
        for index in due.drain(..) {
            if let Some(id) = self.core.paths.at(index) {
                self.wake(id, now);
            }
        }
        self.due = due;
        self.give_back(now);
    }

    /// Lets the policy choose activities until none is ready or `budget` of them have run.
    pub fn run(&mut self, budget: usize) -> usize {
        let mut start = clock::now();
        for ran in 0..budget {
            let Some(member) = self.core.choose(start) else { return ran };
            if let Some(id) = self.core.path_at(member, start) {
                self.activity(id, start);
                let end = clock::now();
                self.core.charge(id, member, start, end);
                start = end;
            }
        }
        budget
    }

    /// One activity: the path's doorbell, then a bounded batch of its messages, then its timers.
    pub(super) fn activity(&mut self, id: PathId, now: Instant) {
        self.answer_doorbell(id, now);
        self.attend_to_linux(id, now);
        let more = self
            .core
            .paths
            .path_mut(id)
            .is_some_and(|path| path.input.len() > 1 && path.stream_mut().is_some());
        for _ in 0..BURST {
            let Some(ticket) = self.core.paths.dequeue(id) else { break };
            self.deliver(id, ticket, more, now);
        }
        if more {
            self.core.bell(id, Bell::Sent, now);
        }
        // Behind what has come: an acknowledgement or an answer may be what a timer waits for.
        if self.core.paths.path(id).is_some_and(|path| path.state.deadline() <= now) {
            self.core.port.timers.set(id.index, Instant::FAR);
            self.core.paths.expire(id, now, &mut self.core.port);
        }
        self.settle(id, now);
        if self.core.has_input(id) {
            self.wake(id, now);
        }
    }

    /// Runs one message up its path.
    pub(super) fn deliver(&mut self, id: PathId, ticket: Ticket, more: bool, now: Instant) {
        let frame = frame_of(ticket);
        if self.answers.contains(&id) {
            self.spread_answer(frame);
        }
        // A listening path's queue may hold what followed a handshake's last segment: its
        // connection may have been made since it was classified.
        let current = match self.listeners.contains_key(&id.index) {
            true => {
                // Those made in this run count, or one too many would be made and reset.
                self.bring_accepted(now);
                self.tell_fullness(id, now);
                self.classify_again(frame).unwrap_or(id)
            }
            false => id,
        };
        if self.core.up(current, ticket, more, now) == Outcome::Handoff {
            self.answer_requests(now);
            match self.classify_again(frame) {
                Ok(made) if made != current => {
                    let _ = self.core.up(made, ticket, false, now);
                    self.settle(made, now);
                }
                _ => self.core.drops.count(DropReason::NoPath),
            }
        } else if current != id {
            self.settle(current, now);
        }
        self.deliver_to_sharers(current, ticket, now);
        self.core.device.release(frame);
    }

    /// After a run: what became true goes to the program's end, what was asked for is done.
    pub(crate) fn settle(&mut self, id: PathId, now: Instant) {
        self.conclude(id, now);
        self.answer_requests(now);
        self.bring_accepted(now);
    }

    /// What became true goes to the program's end; a path that has ended is destroyed.
    pub(crate) fn conclude(&mut self, id: PathId, now: Instant) {
        let mut finished = false;
        let events = std::mem::take(&mut self.core.port.events);
        for (path, event) in &events {
            finished |= self.take_event(*path, *event);
        }
        let mut events = events;
        events.clear();
        self.core.port.events = events;
        if finished {
            self.finish(id, now);
        } else {
            self.tell_program(id);
        }
    }

    /// The end of the socket at the top of a path.
    pub(crate) fn end_of(&mut self, id: PathId) -> Option<&mut SocketEnd> {
        end_in(&mut self.core, id)
    }

    /// Something became true of a path. Whether the path has ended.
    fn take_event(&mut self, id: PathId, event: Event) -> bool {
        // What the network says of datagrams is told elsewhere, with more of it.
        if matches!(event, Event::Unreachable(_)) && self.core.port.datagrams(id).is_some() {
            return false;
        }
        let Some(end) = self.end_of(id) else {
            return matches!(event, Event::Closed | Event::TimeWait);
        };
        match event {
            Event::Connected => end.change_status(status::CONNECTED, status::CONNECTING),
            Event::Urgent => end.tell_anyway(),
            Event::PeerFinished => end.change_status(status::PEER_FIN | status::FIN_CAME, 0),
            Event::Reset => end.reset(),
            Event::Refused => end.fail(libc::ECONNREFUSED),
            Event::TimedOut => end.time_out(),
            Event::SoftError(errno) => end.note_soft_error(errno),
            Event::Writable => end.forget_soft_error(),
            Event::Unreachable(errno) => end.fail(errno),
            Event::PathMtu(mtu) => end.show_path_mtu(mtu),
            Event::Unfinished => self.stir(id, clock::now()),
            Event::Closed | Event::TimeWait => {
                end.change_status(status::PEER_FIN | status::SEND_CLOSED, 0);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Wakes and rings whoever watches the socket of a path, if there is news.
    pub(crate) fn tell_program(&mut self, id: PathId) {
        let Some(end) = end_in(&mut self.core, id) else { return };
        if end.wants_larger()
            && let Some(family) = self.families.get_mut(&end.name().family)
        {
            end.enlarge(&mut family.pool, self.largest_ring);
        }
        let (name, program, read_meanwhile) = (end.name(), end.socket(), end.ask_for_room());
        let news = end.take_news();
        if read_meanwhile {
            if let Some(socket) = self.sockets.find(name) {
                socket.rung = true;
            }
            self.wake(id, clock::now());
        }
        let Some(wake) = news else { return };
        let served_by = self.thread_of(name);
        let Some(family) = self.families.get(&program.family) else { return };
        let Some(slot) = family.arena.slot(program.slot) else { return };
        if wake.threads {
            family.wake_sleepers(program.slot, slot, served_by);
        }
        if wake.bells {
            family.ring_bells(program.slot, slot);
        }
    }

    /// The record of a socket in what its family shares with us.
    pub(crate) fn slot_of(&self, name: SocketName) -> Option<&Slot> {
        self.families.get(&name.family)?.arena.slot(name.slot)
    }

    /// The thread that serves a socket, by which its wake-ups are timed.
    pub(crate) fn thread_of(&mut self, name: SocketName) -> Option<u32> {
        self.sockets.find(name).and_then(|socket| socket.thread()).map(|(thread, _)| thread)
    }

    /// Whether the only news there is for programs is of what has ended.
    pub fn only_tells_of_ends(&self) -> bool {
        let mut families = self.families.values();
        families.clone().any(FamilyEnd::has_news) && !families.any(FamilyEnd::has_pressing_news)
    }

    /// Wakes the programs' threads that there is news for; whether there are any.
    pub fn wake_programs(&self) -> bool {
        let lead = (self.extend && self.classes.are_apart()).then(|| self.delivery());
        let mut any = false;
        for (index, family) in &self.families {
            let woke = family.wake_all(lead, &self.ringing);
            any |= woke.any;
            if woke.kept_waiting {
                self.tell_control(Told::KeptWaiting { family: *index });
            }
        }
        any
    }

    /// Whether datagrams came or left since the last time for threads that run below this domain's: who is not known to serve with its
    /// priority.
    pub fn has_helped_below(&mut self) -> bool {
        let mut moved = std::mem::take(&mut self.core.port.moved);
        let is_above = |name: &SocketName| {
            let family = self.families.get(&name.family);
            family.is_some_and(|family| family.is_awaited_by(name.slot, self.domain))
        };
        let below = !moved.iter().all(is_above);
        moved.clear();
        self.core.port.moved = moved;
        below
    }

    /// When this domain wants to be woken even if nothing happens. It is `now`.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        [self.core.port.due(now), self.host.due(), self.giving_back.due()].into_iter().flatten().min()
    }

    /// Whether there is nothing to do right now.
    pub fn is_idle(&self) -> bool {
        let is_done = self.telling.is_none() && self.expulsion.is_none() && self.departing.is_empty();
        is_done && self.core.policy.is_idle()
    }
}
