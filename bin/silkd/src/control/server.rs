//! The control thread: lifelines in, orders out. One loop over the control socket, every
//! process's lifeline, the executors' events and the signals; nothing here is on the path
//! of data.

use crate::between::command::{Command, Orders};
use crate::between::names::SocketName;
use crate::between::told::Told;
use crate::control::binding_later::Later;
use crate::control::closing_apart::ClosingApart;
use crate::control::control_socket;
use crate::control::departed::Departed;
use crate::control::family::Family;
use crate::control::groups::Groups;
use crate::control::ports::Ports;
use crate::control::reporting::Reporting;
use crate::own_memory;
use crate::say::say;
use crate::settings::Settings;
use crate::strangers::Gate;
use crate::threads::receiving::Receiving;
use crate::threads::ringing::{Ringers, Ringing};
use crate::threads::watchdog::Watched;
use rustix::event::epoll;
use silk_config::ByteSize;
use silk_control::{Lifeline, Refusal, Reply};
use silk_device::netlink::{Finder, Found};
use silk_path::classify::Tables;
use silk_path::classify::layout::DEVICES;
use silk_stream::Budget;
use silk_stream::mail::{Receiver, Sender};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// epoll data of what is no lifeline.
pub(crate) const LISTENER: u64 = 0;
const EVENTS: u64 = 1;
const SIGNALS: u64 = 2;
/// Of the first device; the others' follow.
const NEIGHBOURS: u64 = 3;
const FIRST_LIFELINE: u64 = 16;

/// Who is at the other end of a lifeline.
pub(crate) struct Peer {
    pub(crate) line: Lifeline,
    pub(crate) member: Option<(u32, Member)>,
    /// Known to the kernel; of a child, from its first message on.
    pub(crate) pid: Option<u32>,
    /// Its real user.
    pub(crate) user: Option<u32>,
    /// What it has had no room for yet.
    pub(crate) owed: VecDeque<Reply>,
    /// It has sent descriptors that nobody asked for.
    pub(crate) sends_unasked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Founder,
    Process(u32),
}

/// Why the loop ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// A signal asked for it.
    Signal,
}

/// The control thread's state.
pub struct Server {
    pub(crate) settings: Settings,
    pub(crate) socket: OwnedFd,
    pub(crate) epoll: OwnedFd,
    pub(crate) signals: OwnedFd,
    pub(crate) peers: BTreeMap<u64, Peer>,
    pub(crate) next_peer: u64,
    /// Those of them that have had no room for an answer, since when.
    pub(crate) deaf: BTreeMap<u64, Instant>,
    /// What is not looked at for now, of them and the control socket.
    pub(crate) aside: BTreeSet<u64>,
    /// Who waits for a port whose socket is being closed.
    pub(crate) later: Later,
    /// In which domains the datagram sockets at a port have lanes.
    pub(crate) with_lanes: BTreeMap<u16, BTreeSet<usize>>,
    /// Datagram sockets are opened so often by now.
    pub(crate) opened: u64,
    pub(crate) families: BTreeMap<u32, Family>,
    pub(crate) next_family: u32,
    /// Families that are gone while connections of theirs go on, or executors have not let go of them.
    pub(crate) departed: BTreeMap<u32, Departed>,
    /// What the arenas of all families may use.
    pub(crate) budget: Arc<Budget>,
    pub(crate) orders: Vec<Orders>,
    pub(crate) ports: Ports,
    /// Who is in which group.
    pub(crate) groups: Groups,
    pub(crate) events: Receiver<Told>,
    pub(crate) event: Arc<OwnedFd>,
    /// Who waits for a report.
    pub(crate) reporting: Reporting,
    /// What makes room for whoever comes when no descriptor is left, to tell him so.
    pub(crate) spare: Option<OwnedFd>,
    pub(crate) report_events: Sender<Told>,
    pub(crate) unserved: BTreeMap<(String, String), u64>,
    pub(crate) tables: Tables,
    /// What is let in of what belongs to no path.
    pub(crate) gate: Gate,
    pub(crate) neighbours: Vec<Finder>,
    /// The address of silk's own, and the station that claims it, of which people heard last.
    pub(crate) claimed: Option<(IpAddr, [u8; 6])>,
    /// Which interfaces people have been told of that they are gone.
    pub(crate) told_of_gone: [bool; DEVICES],
    /// When it was last looked how the interface stands.
    pub(crate) looked: Option<Instant>,
    /// When it was last looked which files are still there, and which are still used.
    pub(crate) files_looked_at: [Instant; 2],
    /// When the free rings in the families' books were looked at last.
    pub(crate) rings_looked_at: Instant,
    /// The family whose rings are looked at next.
    pub(crate) rings_from: u32,
    /// Everybody has been told that memory for rings is short.
    pub(crate) shortage_told: bool,
    /// The threads whose priority the watchdog may take away.
    pub(crate) watched: Watched,
    /// The threads that receive.
    pub(crate) receiving: Receiving,
    /// What programs have sent is closed there.
    pub(crate) closing: ClosingApart,
    /// By which the watchdog knows that a message is received: the kernel closes what comes beside it if there is no
    /// descriptor for that, and may have to wait there.
    pub(crate) ringing: Ringing,
}

/// What the server is made of.
pub struct Parts {
    /// The validated configuration.
    pub settings: Settings,
    /// A way to each domain's executor.
    pub orders: Vec<Orders>,
    /// Where the executors report.
    pub events: (Sender<Told>, Receiver<Told>),
    /// Becomes readable on SIGINT, SIGTERM, SIGHUP and SIGIO.
    pub signals: OwnedFd,
    /// Where executors ask for neighbours to be found, by device, if Linux keeps them.
    pub neighbours: Vec<Finder>,
    /// What wakes the control thread when there are events.
    pub event: Arc<OwnedFd>,
    /// The classifier's tables.
    pub tables: Tables,
    /// What is let in of what belongs to no path.
    pub gate: Gate,
    /// What the watchdog looks at.
    pub watched: Watched,
    /// The threads that receive.
    pub receiving: Receiving,
    /// Where what programs have sent is closed.
    pub closing: ClosingApart,
    /// Whom the watchdog interrupts that waits for long: the calling thread, too.
    pub ringers: Ringers,
}

impl Server {
    /// Opens the control socket.
    ///
    /// # Errors
    /// A sentence that says which file could not be opened and what to do.
    pub fn open(parts: Parts) -> Result<Self, String> {
        let socket = control_socket::open(&parts.settings.config.control)?;
        let failed = |error: io::Error| format!("the control thread has nothing to wait on: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let total = parts.settings.config.memory.total.map_or_else(|| own_memory::bytes() / 2, ByteSize::get);
        let server = Self {
            budget: Budget::of(total),
            settings: parts.settings,
            socket,
            epoll,
            signals: parts.signals,
            peers: BTreeMap::new(),
            next_peer: FIRST_LIFELINE,
            deaf: BTreeMap::new(),
            aside: BTreeSet::new(),
            later: Later::default(),
            with_lanes: BTreeMap::new(),
            opened: 0,
            families: BTreeMap::new(),
            next_family: 0,
            departed: BTreeMap::new(),
            orders: parts.orders,
            ports: Ports::default(),
            groups: Groups::default(),
            events: parts.events.1,
            report_events: parts.events.0,
            unserved: BTreeMap::new(),
            reporting: Reporting::default(),
            spare: parts.event.try_clone().ok(),
            event: parts.event,
            tables: parts.tables,
            gate: parts.gate,
            neighbours: parts.neighbours,
            claimed: None,
            told_of_gone: [false; DEVICES],
            looked: None,
            files_looked_at: [Instant::now(); 2],
            rings_looked_at: Instant::now(),
            rings_from: 0,
            shortage_told: false,
            watched: parts.watched,
            receiving: parts.receiving,
            closing: parts.closing,
            ringing: parts.ringers.join(),
        };
        server.watch(server.socket.as_fd(), LISTENER).map_err(failed)?;
        server.watch(server.signals.as_fd(), SIGNALS).map_err(failed)?;
        server.watch(server.event.as_fd(), EVENTS).map_err(failed)?;
        for (finder, name) in server.neighbours.iter().zip(NEIGHBOURS..FIRST_LIFELINE) {
            server.watch(finder.fd(), name).map_err(failed)?;
        }
        Ok(server)
    }

    pub(crate) fn watch(&self, fd: BorrowedFd<'_>, data: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(data), epoll::EventFlags::IN)?)
    }

    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// The kernel's, when it cannot wait any more.
    pub fn run(&mut self) -> io::Result<Ended> {
        let mut ready = Vec::with_capacity(64);
        loop {
            ready.clear();
            let until = |until: Instant| until.saturating_duration_since(Instant::now());
            let pause = self.reporting.until().map_or(Duration::MAX, until).min(self.pause());
            let pause =
                rustix::fs::Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: pause.subsec_nanos().into() };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&pause)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            // Before they are taken: what is told of later wakes again.
            if ready.iter().any(|event| event.data.u64() == EVENTS) {
                silk_stream::wake::drain(self.event.as_fd());
            }
            self.take_events();
            self.look_at_report();
            self.follow_link();
            self.take_spares_back(false);
            self.ports.tidy(Instant::now());
            self.look_at_files_now_and_then(Instant::now());
            self.look_at_memory();
            self.give_back_now_and_then(Instant::now());
            self.let_go_of_the_deaf(Instant::now());
            self.hear_again();
            for event in &ready {
                match event.data.u64() {
                    LISTENER => self.welcome(),
                    EVENTS => {}
                    name @ NEIGHBOURS..FIRST_LIFELINE => self.hear_neighbours((name - NEIGHBOURS) as u8),
                    SIGNALS => {
                        if self.signalled() {
                            return Ok(Ended::Signal);
                        }
                    }
                    peer => self.hear(peer),
                }
            }
            self.bind_now();
        }
    }

    /// Whether the signal ends the daemon; SIGHUP reloads.
    fn signalled(&mut self) -> bool {
        let mut info = [0u8; 128];
        let Ok(length) = rustix::io::read(&self.signals, &mut info) else { return false };
        let number =
            info.get(..4).filter(|_| length == 128).map(|n| i32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
        match number {
            Some(libc::SIGHUP) => {}
            Some(libc::SIGIO) => {
                self.let_go_of_files(0);
                return false;
            }
            _ => return true,
        }
        match self.reload() {
            Ok((applied, restart)) => {
                applied.iter().for_each(|line| say!(Notice, "silkd: reloaded: {line}"));
                restart.iter().for_each(|line| say!(Warning, "silkd: needs a restart: {line}"));
            }
            Err(refusal) => say!(Error, "silkd: nothing reloaded: {}", refusal.why),
        }
        false
    }

    /// Takes note of what executors have told.
    pub(crate) fn take_events(&mut self) {
        while let Ok(event) = self.events.receive() {
            match event {
                Told::ListenerFree { name, listener } => {
                    let Some(family) = self.families.get_mut(&name.family) else { continue };
                    family.return_listener(listener);
                    if !self.listens_no_longer(name) && !self.has_left(name) {
                        self.retire(name);
                    }
                }
                Told::ThreadFree { family, thread } => {
                    if let Some(family) = self.families.get_mut(&family) {
                        family.return_thread(thread);
                    }
                }
                Told::BellFree { family, bell } => {
                    if let Some(family) = self.families.get_mut(&family) {
                        family.return_bell(bell);
                    }
                }
                Told::Disconnected { name } => _ = self.has_left(name),
                Told::FamilyEnded { family, going_on } => self.family_ended(family, going_on),
                Told::SocketGone { name } => self.socket_gone(name),
                Told::Lane { local, passed, home, domain } => self.make_lanes((local, passed), home, domain),
                Told::NoLane { port } => self.deafen_port(port),
                Told::Prioritised { peer, outcome } => {
                    let reply = outcome.map_or_else(Reply::Refused, |()| Reply::Done);
                    self.reply(peer, &reply, &[]);
                }
                Told::Report { round, part, holders } => self.take_report(round, *part, holders),
                Told::FileKnown(known) => self.file_known(known),
                Told::Answered { peer, reply } => self.reply(peer, &reply, &[]),
                Told::Resolve { device, address } => {
                    let finder = self.neighbours.get_mut(usize::from(device));
                    if let Some(answer) = finder.and_then(|finder| finder.ask(address)) {
                        self.tell_neighbour(device, answer);
                    }
                }
                Told::Routers(told) => self.follow_routers(&told),
                Told::Duplicate { address, station } => self.give_up(address, station),
                Told::Claimed { address, station } => self.is_claimed(address, station),
                Told::KeptWaiting { family } => self.ring_no_more(family),
                Told::CaughtUp { family } => self.caught_up(family),
                Told::RouterLost(router) => self.tell_all(|| Command::RouterLost(router)),
                Told::Redirected { router, destination, hop } => {
                    self.tell_all(|| Command::Redirected { router, destination, hop });
                }
            }
        }
    }

    /// An executor has ended a socket.
    fn socket_gone(&mut self, name: SocketName) {
        let name = match self.lane_gone(name) {
            Some(Some(of)) => of,
            Some(None) => return,
            None if self.has_lanes_left(name) => return,
            None => name,
        };
        self.departed_gone(name.family, name.slot);
        let known = self.families.get_mut(&name.family);
        let gone = known.and_then(|known| {
            let socket = known.sockets.remove(&name.slot)?;
            known.return_rings(socket.rings);
            known.pool.return_slot(name.slot);
            Some(socket)
        });
        if let Some(socket) = gone {
            self.give_port_back(&socket);
            self.answer_in_vain(&socket);
        }
        self.leave_groups(name);
    }

    fn hear_neighbours(&mut self, device: u8) {
        let finder = self.neighbours.get_mut(usize::from(device));
        let answers = finder.map(Finder::changes).unwrap_or_default();
        answers.into_iter().for_each(|answer| self.tell_neighbour(device, answer));
    }

    fn tell_neighbour(&self, device: u8, (address, link): Found) {
        self.tell_all(|| Command::Neighbour { device, address, link });
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn tell_all(&self, command: impl Fn() -> Command) {
        for orders in &self.orders {
            // An executor that has ended says so at the daemon's end.
            let _ = orders.give(command());
        }
    }

    /// Ends every executor.
    pub fn stop(&self) {
        for family in self.families.values() {
            family.arena.header().dead.store(1, SeqCst);
        }
        self.tell_all(|| Command::Stop);
        control_socket::take_away(&self.settings.config.control.socket);
    }
}

pub(crate) fn refused(errno: i32, why: String) -> Reply {
    Reply::Refused(Refusal { errno, why })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::between::watch::Watch;
    use silk_config::Config;
    use silk_executor::join::tables_of;
    use silk_executor::link::tables_in_memory;
    use silk_stream::mail::mail;
    use silk_stream::wake;
    use std::path::Path;

    /// A control thread's state without executors, whose socket is in this folder.
    pub(crate) fn server(folder: &Path) -> Server {
        let text = format!(
            "[device]\ninterface = \"eth0\"\n[control]\nsocket = \"{}\"\n[[class]]\nname = \"all\"\ndefault = true\n",
            folder.join("control.sock").display()
        );
        let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let (event, ringers) = (Arc::new(wake::event().unwrap()), Ringers::default());
        let parts = Parts {
            settings: Settings::new(config, folder.join("silk.toml")),
            orders: Vec::new(),
            events: mail(),
            signals: wake::event().unwrap(),
            neighbours: Vec::new(),
            event: event.clone(),
            tables: tables_of(tables_in_memory(16).unwrap(), [0; DEVICES]).unwrap(),
            gate: Gate::default(),
            watched: Watched::default(),
            receiving: Receiving::default(),
            closing: ClosingApart::begin(ringers.clone(), event).unwrap(),
            ringers,
        };
        Server::open(parts).unwrap()
    }

    /// The same with an executor, and what that is ordered.
    pub(crate) fn with_executor(folder: &Path) -> (Server, Receiver<Command>) {
        let mut server = server(folder);
        let set = || Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let watch = Watch::new(set(), [set(), set()]);
        let (orders, executor) = Orders::new(Arc::new(wake::event().unwrap()), watch);
        server.orders.push(orders);
        (server, executor)
    }

    impl Server {
        /// Hears the other end of this from now on, by this number.
        pub(crate) fn adopt_peer(&mut self) -> (u64, Lifeline) {
            let (ours, theirs) = Lifeline::pair().unwrap();
            self.adopt(ours, None);
            (self.next_peer - 1, theirs)
        }
    }
}
