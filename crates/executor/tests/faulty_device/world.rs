//! The world around a host's paths: the device's other half, timers by the machine's clock, and lists
//! of what the paths ask for and tell.

use silk_device::Transmit;
use silk_executor::{clock, join, random};
use silk_instant::Instant;
use silk_path::{DropReason, Event, Message, PathId, Port, Request};
use std::collections::BTreeMap;

/// What a host's stages cause.
pub struct World {
    pub transmit: Box<dyn Transmit>,
    pub timers: BTreeMap<PathId, Instant>,
    pub events: Vec<(PathId, Event)>,
    pub requests: Vec<Request>,
}

impl World {
    pub fn new(transmit: Box<dyn Transmit>) -> Self {
        Self { transmit, timers: BTreeMap::new(), events: Vec::new(), requests: Vec::new() }
    }

    /// Takes off a timer that is due: the path it belongs to.
    pub fn expired(&mut self, now: Instant) -> Option<PathId> {
        let path = self.timers.iter().find(|(_, at)| **at <= now).map(|(path, _)| *path)?;
        self.timers.remove(&path);
        Some(path)
    }
}

impl Port for World {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        self.transmit.send(msg.bytes(), msg.ext(), join::offload(msg));
        Ok(())
    }

    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Err(DropReason::NoReceiver)
    }

    fn arm(&mut self, path: PathId, at: Instant) {
        self.timers.insert(path, at);
        self.timers.retain(|_, at| *at != Instant::FAR);
    }

    fn event(&mut self, path: PathId, event: Event) {
        self.events.push((path, event));
    }

    fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    fn random(&mut self) -> u64 {
        random()
    }

    fn clock(&mut self) -> Option<Instant> {
        Some(clock::now())
    }
}
