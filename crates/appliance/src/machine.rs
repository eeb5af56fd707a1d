//! An appliance on a real machine: the paths that stand from the start, the neighbours that Linux
//! finds for it, and its sleep when there is nothing to do.

use crate::appliance::{Appliance, Conflict, Parts, soon};
use crate::clock::Monotonic;
use crate::debt::Debt;
use crate::network::Network;
use crate::receiving::Receiving;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use silk_config::Graph as GraphFile;
use silk_device::netlink::Finder;
use silk_device::xdp;
use silk_executor::random;
use silk_instant::Instant;
use silk_path::classify::Tables;
use silk_path::transform::Rule;
use silk_path::{Attr, Attrs, Catalogue, Graph, Paths};
use silk_sched::{Policy, Terms};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Why there is no appliance.
#[derive(Debug)]
pub enum Unbuildable {
    /// The graph file is wrong: every fault, rendered.
    Graph(String),
    /// The machine cannot do it, or not now: a sentence.
    Machine(String),
}

impl fmt::Display for Unbuildable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graph(why) | Self::Machine(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unbuildable {}

/// An appliance with its device.
pub struct Machine {
    /// The appliance.
    pub appliance: Appliance,
    finder: Option<Finder>,
    /// The XDP program, where there is one: it is detached when this goes.
    pub xdp: Option<xdp::Device>,
    // They are ordinary threads again when this goes.
    _receiving: Option<Receiving>,
    /// While frames arrive, the device is looked at once in so long, instead of waking for each: what
    /// arrives together is handled together. A frame waits so long at most; 0 wakes for each.
    pub nap: Duration,
    /// It runs at a real-time priority: then it leaves other programs some time, for the kernel stops
    /// real-time threads for long when they use nearly all (sched(7)).
    pub real_time: bool,
    // Frames taken when it last slept.
    taken: u64,
    // What it owes other programs.
    debt: Debt,
    // When it last woke.
    woke: Instant,
    // The last work left nothing to do.
    idle: bool,
    // Of which people have heard.
    conflict: Option<Conflict>,
}

/// How long frames may wait where nobody says otherwise: short against a picture's time.
const NAP: Duration = Duration::from_millis(4);
/// Turns of work before the other descriptors are looked at again.
const TURNS: usize = 64;

impl Machine {
    /// An appliance of the modules in the graph file `text` (called `name` in messages), on an
    /// opened network. `catalogue` makes the modules.
    ///
    /// # Errors
    /// [`Unbuildable`].
    pub fn new(
        (end, tables): (silk_device::End, Tables),
        shared: Option<u32>,
        (name, text): (&str, &str),
        catalogue: &impl Catalogue,
        policy: Box<dyn Policy + Send>,
        rules: Vec<Box<dyn Rule>>,
    ) -> Result<Self, Unbuildable> {
        let file = GraphFile::check(name, text, catalogue)
            .map_err(|faults| Unbuildable::Graph(faults.to_string()))?;
        let graph = Graph::build(&file.spec(), catalogue).map_err(|faults| {
            Unbuildable::Graph(faults.iter().map(|fault| format!("{fault:?}\n")).collect())
        })?;
        let paths = Paths::new(graph, rules);
        let parts =
            Parts { paths, end, policy, tables, clock: Box::new(Monotonic), random: Box::new(random) };
        let finder = shared.map(Finder::open).transpose();
        let finder = finder.map_err(|error| Unbuildable::Machine(error.to_string()))?;
        let appliance = Appliance::new(parts);
        let mut machine = Self {
            appliance,
            finder,
            xdp: None,
            _receiving: None,
            nap: NAP,
            real_time: false,
            taken: 0,
            debt: Debt::default(),
            woke: Instant::ZERO,
            idle: true,
            conflict: None,
        };
        machine.stand(shared.is_none()).map_err(Unbuildable::Machine)?;
        Ok(machine)
    }

    /// The same on an opened network, which goes into it. `catalogue` is made of what the network
    /// says.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn on<C: Catalogue>(
        network: Network,
        file: (&str, &str),
        catalogue: impl FnOnce(silk_modules::Setup) -> C,
        policy: Box<dyn Policy + Send>,
        rules: Vec<Box<dyn Rule>>,
    ) -> Result<Self, Unbuildable> {
        let Network { end, setup, interface, xdp, receiving } = network;
        let shared = interface.map(|interface| interface.index);
        let tables = setup.tables.clone();
        let machine = Self::new((end, tables), shared, file, &catalogue(setup), policy, rules)?;
        Ok(Self { xdp, _receiving: receiving, ..machine })
    }

    /// Makes the paths that stand from the start: ARP and neighbour discovery where the link is
    /// the appliance's own, ICMP, and the paths for fragments.
    fn stand(&mut self, owns_link: bool) -> Result<(), String> {
        let wanted = [
            ("arp", owns_link),
            ("nd", owns_link),
            ("ip", true),
            ("icmp", true),
            ("ip6", true),
            ("icmp6", true),
        ];
        for (kind, wanted) in wanted {
            let module = self.appliance.paths().graph().modules().of_kind(kind);
            let Some(top) = module.filter(|_| wanted) else { continue };
            let attrs = Attrs::new().with(Attr::InputQueue(64));
            let terms = Terms::with_priority(Terms::PRIORITIES - 1);
            self.appliance
                .create(top, attrs, terms, Some(soon))
                .map_err(|error| format!("no {kind} path: {error}"))?;
        }
        Ok(())
    }

    /// Works until there is nothing to do, for a bounded number of turns.
    pub fn work(&mut self) {
        for _ in 0..TURNS {
            let busy = self.appliance.turn();
            self.resolve();
            self.tell_people();
            self.idle = !busy;
            if self.idle {
                return;
            }
        }
    }

    /// Sleeps until the device or one of `others` is readable, or something is due, for `most` at most; hardly
    /// while there is work. Which of the others are readable.
    pub fn sleep(&mut self, others: &[BorrowedFd<'_>], most: Duration) -> Vec<bool> {
        let taken = std::mem::replace(&mut self.taken, self.appliance.frames_taken());
        let naps = taken != self.taken && !self.nap.is_zero();
        let now = self.appliance.now();
        self.debt.worked(now.since(self.woke));
        let breath = Some(self.debt.due()).filter(|due| self.real_time && !due.is_zero());
        // What arrives must not cut short what others are owed.
        let deaf = naps || breath.is_some();
        let device = self.appliance.fd();
        let watched = self.finder.iter().map(|finder| PollFd::from_borrowed_fd(finder.fd(), PollFlags::IN));
        let mut ready: Vec<PollFd<'_>> =
            others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        ready.push(PollFd::from_borrowed_fd(device, if deaf { PollFlags::empty() } else { PollFlags::IN }));
        ready.extend(watched);
        let left = self.appliance.due().map(|due| due.since(now));
        let busy = (!self.idle).then_some(Duration::ZERO);
        let limit = left.into_iter().chain(naps.then_some(self.nap)).fold(most, Duration::min);
        let limit = breath.or(busy).unwrap_or(limit);
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        // An interrupted sleep is a short one.
        let _ = poll(&mut ready, Some(&limit));
        self.woke = self.appliance.now();
        self.debt.slept(self.woke.since(now));
        let told: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        if told.get(others.len() + 1) == Some(&true) {
            self.hear();
        }
        told[..others.len()].to_vec()
    }

    /// Says what people have to mend, once.
    fn tell_people(&mut self) {
        if self.conflict != self.appliance.conflict {
            self.conflict = self.appliance.conflict;
            self.conflict.iter().for_each(|conflict| eprintln!("{conflict}"));
        }
    }

    /// Has Linux find the neighbours that paths wait for.
    fn resolve(&mut self) {
        for address in std::mem::take(&mut self.appliance.wanted) {
            if let Some((address, link)) = self.finder.as_mut().and_then(|finder| finder.ask(address)) {
                self.appliance.learn(address, link);
            }
        }
    }

    fn hear(&mut self) {
        let found = self.finder.as_mut().map(Finder::changes).unwrap_or_default();
        found.into_iter().for_each(|(address, link)| self.appliance.learn(address, link));
    }
}
