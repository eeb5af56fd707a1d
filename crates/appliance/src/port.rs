//! The world around an appliance's paths: its device, its timers, and what they ask for.

use crate::clock::Clock;
use silk_device::{Transmit, Transmitted};
use silk_executor::join::offload;
use silk_instant::Instant;
use silk_path::{DropReason, Event, Message, PathId, Port, Request};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Outside {
    transmit: Box<dyn Transmit>,
    pub clock: Box<dyn Clock>,
    random: Box<dyn FnMut() -> u64 + Send>,
    // When each path's earliest timer is due, both ways round.
    due: BTreeSet<(Instant, u32)>,
    armed: BTreeMap<u32, Instant>,
    pub events: Vec<(PathId, Event)>,
    pub requests: Vec<Request>,
}

impl Outside {
    pub fn new(
        transmit: Box<dyn Transmit>,
        clock: Box<dyn Clock>,
        random: Box<dyn FnMut() -> u64 + Send>,
    ) -> Self {
        Self {
            transmit,
            clock,
            random,
            due: BTreeSet::new(),
            armed: BTreeMap::new(),
            events: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// When the first timer is due.
    pub fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes off a timer that is due at `now`: the path it belongs to.
    pub fn expire(&mut self, now: Instant) -> Option<u32> {
        let (_, index) = self.due.first().filter(|(at, _)| *at <= now)?;
        let index = *index;
        self.disarm(index);
        Some(index)
    }

    fn disarm(&mut self, index: u32) {
        if let Some(at) = self.armed.remove(&index) {
            self.due.remove(&(at, index));
        }
    }

    pub fn flush(&mut self) {
        self.transmit.flush();
    }

    pub fn transmitted(&self) -> Transmitted {
        self.transmit.transmitted()
    }
}

impl Port for Outside {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.transmit.send(msg.bytes(), msg.ext(), offload(msg));
        Ok(())
    }

    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Err(DropReason::NoReceiver)
    }

    fn arm(&mut self, path: PathId, at: Instant) {
        self.disarm(path.index);
        if at != Instant::FAR {
            self.armed.insert(path.index, at);
            self.due.insert((at, path.index));
        }
    }

    fn event(&mut self, path: PathId, event: Event) {
        self.events.push((path, event));
    }

    fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    fn random(&mut self) -> u64 {
        (self.random)()
    }

    fn clock(&mut self) -> Option<Instant> {
        Some(self.clock.now())
    }
}
