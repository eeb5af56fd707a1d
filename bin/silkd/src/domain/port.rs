//! The world around a domain's paths: its device, its clock, its timers, and what is to be
//! done after a run.

use crate::between::names::SocketName;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sources::Sources;
use crate::domain::timers::Timers;
use silk_device::Transmit;
use silk_executor::clock;
use silk_executor::join::offload;
use silk_instant::Instant;
use silk_path::{DropReason, Event, Message, PathId, Port, Request};
use silk_stream::{Details, Received, Way};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a message that nobody waits for may be held back: far less than the 200 ms after
/// which a peer would send its FIN again, and so long that the timer hardly ever goes off.
const LAZY: Duration = Duration::from_millis(20);

/// The port of one domain.
pub struct DomainPort {
    /// Of each device, by number.
    transmits: Vec<Box<dyn Transmit>>,
    /// The paths' timers.
    pub timers: Timers,
    /// What became true in the running activity.
    pub events: Vec<(PathId, Event)>,
    /// What is to be done after it.
    pub requests: Vec<Request>,
    random: Random,
    /// Something was sent since the last flush that somebody waits for.
    sent: bool,
    /// How many messages were sent since this was last taken.
    pub burst: u32,
    /// The sockets of which datagrams came or left since this was last taken ([`note_moved`]).
    pub moved: Vec<SocketName>,
    /// When the first of what nobody waits for is to leave at the latest; FAR: there is none.
    lazy: Instant,
    /// The rings of datagram sockets, by their path's index.
    datagrams: BTreeMap<u32, Box<SocketEnd>>,
    /// Which sources of groups those hear.
    pub sources: Sources,
    /// Second paths of datagram sockets, each with its first.
    twins: BTreeMap<u32, u32>,
    /// Linux's numbers of the interfaces that it shares, by device.
    interfaces: Vec<u32>,
    /// While a datagram is delivered that came over Linux: the number of the interface it came over there.
    pub over_linux: Option<u32>,
}

/// Datagrams of a socket have come or left: of many in a row it is noted once.
pub fn note_moved(moved: &mut Vec<SocketName>, name: SocketName) {
    if moved.last() != Some(&name) {
        moved.push(name);
    }
}

impl DomainPort {
    /// The port of a domain that sends through these, one of each device, where Linux has these numbers for the interfaces
    /// that it shares.
    pub fn new(transmits: Vec<Box<dyn Transmit>>, interfaces: Vec<u32>, now: Instant) -> Self {
        Self {
            transmits,
            timers: Timers::new(now),
            events: Vec::with_capacity(64),
            requests: Vec::with_capacity(64),
            random: Random::default(),
            sent: false,
            burst: 0,
            moved: Vec::new(),
            lazy: Instant::FAR,
            datagrams: BTreeMap::new(),
            sources: Sources::default(),
            twins: BTreeMap::new(),
            interfaces,
            over_linux: None,
        }
    }

    /// Linux's number of the first interface that it shares; zero: it shares none.
    pub fn first_interface(&self) -> u32 {
        self.interfaces.first().copied().unwrap_or(0)
    }

    /// Lets leave what was sent.
    pub fn flush(&mut self, now: Instant) {
        if std::mem::take(&mut self.sent) || self.lazy <= now {
            self.lazy = Instant::FAR;
            self.transmits.iter_mut().for_each(|transmit| transmit.flush());
        }
    }

    /// When this domain wants to be woken even if nothing happens. It is `now`.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let lazy = Some(self.lazy).filter(|at| *at != Instant::FAR);
        [self.timers.next(now), lazy].into_iter().flatten().min()
    }

    /// What the devices did with what was sent: how much was refused, and how much of that for want of room.
    pub fn refused(&self) -> (u64, u64) {
        let all = self.transmits.iter().map(|transmit| transmit.transmitted());
        all.fold((0, 0), |(dropped, full), sent| (dropped + sent.dropped(), full + sent.full))
    }

    /// Puts the ring of a datagram socket at the top of its path.
    pub fn put_datagrams(&mut self, path: PathId, end: Box<SocketEnd>) {
        self.datagrams.insert(path.index, end);
    }

    /// Takes it away again.
    pub fn take_datagrams(&mut self, path: PathId) -> Option<Box<SocketEnd>> {
        self.datagrams.remove(&path.index)
    }

    /// The ring of the datagram socket at the top of a path.
    pub fn datagrams(&mut self, path: PathId) -> Option<&mut SocketEnd> {
        if self.datagrams.is_empty() {
            return None;
        }
        let first = self.first(path);
        self.datagrams.get_mut(&first).map(|end| &mut **end)
    }

    /// The same, to be looked at.
    pub fn datagrams_of(&self, path: PathId) -> Option<&SocketEnd> {
        self.datagrams.get(&self.first(path)).map(|end| &**end)
    }

    /// What arrives over `twin` is for the socket of `first`.
    pub fn pair(&mut self, first: PathId, twin: PathId) {
        self.twins.insert(twin.index, first.index);
    }

    /// They are a pair no longer.
    pub fn part(&mut self, twin: PathId) {
        self.twins.remove(&twin.index);
    }

    /// The index of the path that has the ring of a path's socket.
    pub fn first(&self, path: PathId) -> u32 {
        self.twins.get(&path.index).copied().unwrap_or(path.index)
    }
}

impl Port for DomainPort {
    fn transmit(&mut self, _: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        let transmit = self.transmits.get_mut(usize::from(msg.meta.link.device));
        let transmit = transmit.ok_or(DropReason::DeviceRefused)?;
        transmit.send(msg.bytes(), msg.ext(), offload(msg));
        self.burst = self.burst.saturating_add(1);
        if !msg.meta.lazy {
            self.sent = true;
        } else if self.lazy == Instant::FAR {
            self.lazy = clock::now() + LAZY;
        }
        Ok(())
    }

    fn deliver(&mut self, path: PathId, msg: &Message<'_>) -> Result<(), DropReason> {
        let first = self.first(path);
        let end = self.datagrams.get_mut(&first).ok_or(DropReason::NoReceiver)?;
        let to = msg.meta.local.ip();
        if to.is_multicast() {
            let alone = end.hears_joined_alone(to);
            if !self.sources.hears(end.socket(), msg.meta.remote.ip(), to, alone) {
                return Err(DropReason::GroupSource);
            }
        }
        let [first, second] = msg.ext();
        let way = Way { hops: msg.meta.hops, service: msg.meta.tos };
        let device = usize::from(msg.meta.link.device);
        let interface = self.over_linux.or(self.interfaces.get(device).copied()).unwrap_or(0);
        let details = Some(Details { at: msg.meta.arrival.nanos(), to: msg.meta.local.ip(), interface });
        let received = Received { peer: msg.meta.remote.into(), way, details };
        note_moved(&mut self.moved, end.socket());
        let fits = end.push_datagram(received, &[msg.bytes(), first, second]);
        if fits { Ok(()) } else { Err(DropReason::SocketFull) }
    }

    fn arm(&mut self, path: PathId, at: Instant) {
        self.timers.set(path.index, at);
    }

    fn event(&mut self, path: PathId, event: Event) {
        self.events.push((path, event));
    }

    fn request(&mut self, request: Request) {
        self.requests.push(request);
    }

    fn random(&mut self) -> u64 {
        self.random.next()
    }

    fn clock(&mut self) -> Option<Instant> {
        Some(clock::now())
    }
}

/// Numbers from the kernel, fetched a page at a time.
struct Random {
    pool: [u64; 64],
    left: usize,
}

impl Default for Random {
    fn default() -> Self {
        Self { pool: [0; 64], left: 0 }
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        if self.left == 0 {
            let mut bytes = [0; 512];
            // After boot the kernel's random numbers do not fail; if they did, the clock is
            // still better than a daemon that stops.
            let failed = rand_core::TryRngCore::try_fill_bytes(&mut rand_core::OsRng, &mut bytes).is_err();
            for (word, part) in self.pool.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_ne_bytes(*part);
                if failed {
                    *word = clock::now().nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15);
                }
            }
            self.left = self.pool.len();
        }
        self.left -= 1;
        self.pool[self.left]
    }
}
