//! The control thread: lifelines in, orders out. One loop over the control socket, every
//! process's lifeline, the executors' events and the signals; nothing here is on the path
//! of data.

use crate::classes::Classes;
use crate::command::{Command, Event, ListenerHold, Orders, Rings, SocketName};
use crate::family::{Family, Socket, State};
use crate::neighbours::Neighbours;
use crate::ports::Ports;
use crate::settings::Settings;
use rustix::event::epoll;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use silk_config::{Config, HugePages, Source};
use silk_control::{
    Kind, Lifeline, Received, Refusal, Reply, Report, Request, SlotNumber, UnservedReport, WireError,
};
use silk_path::classify::Tables;
use silk_stream::{Arena, RANKS, Sizes, THREADS, kind, status};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// epoll data of what is no lifeline.
const LISTENER: u64 = 0;
const EVENTS: u64 = 1;
const SIGNALS: u64 = 2;
const NEIGHBOURS: u64 = 3;
const FIRST_LIFELINE: u64 = 16;

/// Who is at the other end of a lifeline.
struct Peer {
    line: Lifeline,
    member: Option<(u32, Member)>,
    /// Known to the kernel; of a child, from its first message on.
    pid: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
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
    settings: Settings,
    socket: OwnedFd,
    epoll: OwnedFd,
    signals: OwnedFd,
    peers: BTreeMap<u64, Peer>,
    next_peer: u64,
    families: BTreeMap<u32, Family>,
    next_family: u32,
    orders: Vec<Orders>,
    ports: Ports,
    events: Receiver<Event>,
    event: Arc<OwnedFd>,
    report_events: Sender<Event>,
    unserved: BTreeMap<(String, String), u64>,
    tables: Tables,
    neighbours: Option<Neighbours>,
}

/// What the server is made of.
pub struct Parts {
    /// The validated configuration.
    pub settings: Settings,
    /// A way to each domain's executor.
    pub orders: Vec<Orders>,
    /// Where the executors report.
    pub events: (Sender<Event>, Receiver<Event>),
    /// Becomes readable on SIGINT, SIGTERM and SIGHUP.
    pub signals: OwnedFd,
    /// Where executors ask for neighbours to be found, if Linux keeps them.
    pub neighbours: Option<Neighbours>,
    /// What wakes the control thread when there are events.
    pub event: Arc<OwnedFd>,
    /// The classifier's tables.
    pub tables: Tables,
}

impl Server {
    /// Opens the control socket.
    ///
    /// # Errors
    /// A sentence that says which file could not be opened and what to do.
    pub fn open(parts: Parts) -> Result<Self, String> {
        let path = parts.settings.config.control.socket.clone();
        let failed = |e: io::Error| format!("the control socket {} cannot be opened: {e}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        if Lifeline::connect(&path).is_ok() {
            return Err(format!(
                "another silkd answers on {}: stop it, or set [control] socket to another path",
                path.display()
            ));
        }
        let _ = std::fs::remove_file(&path);
        let open = || -> io::Result<(OwnedFd, OwnedFd)> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            bind(&socket, &SocketAddrUnix::new(&path)?)?;
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(
                &path,
                std::fs::Permissions::from_mode(parts.settings.config.control.mode.bits()),
            )?;
            listen(&socket, 128)?;
            Ok((socket, epoll::create(epoll::CreateFlags::CLOEXEC)?))
        };
        let (socket, epoll) = open().map_err(failed)?;
        let server = Self {
            settings: parts.settings,
            socket,
            epoll,
            signals: parts.signals,
            peers: BTreeMap::new(),
            next_peer: FIRST_LIFELINE,
            families: BTreeMap::new(),
            next_family: 0,
            orders: parts.orders,
            ports: Ports::default(),
            events: parts.events.1,
            report_events: parts.events.0,
            unserved: BTreeMap::new(),
            event: parts.event,
            tables: parts.tables,
            neighbours: parts.neighbours,
        };
        server.watch(server.socket.as_fd(), LISTENER).map_err(failed)?;
        server.watch(server.signals.as_fd(), SIGNALS).map_err(failed)?;
        server.watch(server.event.as_fd(), EVENTS).map_err(failed)?;
        if let Some(neighbours) = &server.neighbours {
            server.watch(neighbours.fd(), NEIGHBOURS).map_err(failed)?;
        }
        Ok(server)
    }

    fn watch(&self, fd: BorrowedFd<'_>, data: u64) -> io::Result<()> {
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
            let pause = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&pause)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            self.take_events();
            for event in &ready {
                match event.data.u64() {
                    LISTENER => self.welcome(),
                    EVENTS => silk_stream::wake::drain(self.event.as_fd()),
                    NEIGHBOURS => self.hear_neighbours(),
                    SIGNALS => {
                        if self.signalled() {
                            return Ok(Ended::Signal);
                        }
                    }
                    peer => self.hear(peer),
                }
            }
        }
    }

    /// Whether the signal ends the daemon; SIGHUP reloads.
    fn signalled(&mut self) -> bool {
        let mut info = [0u8; 128];
        let Ok(length) = rustix::io::read(&self.signals, &mut info) else { return false };
        let number =
            info.get(..4).filter(|_| length == 128).map(|n| i32::from_ne_bytes([n[0], n[1], n[2], n[3]]));
        if number != Some(libc::SIGHUP) {
            return true;
        }
        match self.reload() {
            Ok((applied, restart)) => {
                applied.iter().for_each(|line| eprintln!("silkd: reloaded: {line}"));
                restart.iter().for_each(|line| eprintln!("silkd: needs a restart: {line}"));
            }
            Err(refusal) => eprintln!("silkd: nothing reloaded: {}", refusal.why),
        }
        false
    }

    fn take_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::ListenerFree { name, listener } => {
                    if let Some(family) = self.families.get_mut(&name.family) {
                        family.return_listener(listener);
                        retire(&family.arena, name.slot);
                        family.pool.return_slot(name.slot);
                    }
                }
                Event::SocketGone { name } => {
                    let gone = self.families.get_mut(&name.family).and_then(|f| f.sockets.remove(&name.slot));
                    if let Some(local) = gone.as_ref().and_then(|s| s.local) {
                        self.give_port_back(gone.map_or(Kind::Stream, |s| s.kind), local);
                    }
                }
                Event::Resolve(address) => {
                    if let Some(answer) = self.neighbours.as_mut().and_then(|n| n.ask(address)) {
                        self.tell_neighbour(answer);
                    }
                }
                Event::Demoted { tid, why } => eprintln!("silkd: thread {tid} lost its priority: {why}"),
            }
        }
    }

    fn hear_neighbours(&mut self) {
        let answers = self.neighbours.as_mut().map(Neighbours::changes).unwrap_or_default();
        answers.into_iter().for_each(|answer| self.tell_neighbour(answer));
    }

    fn tell_neighbour(&self, answer: Command) {
        if let Command::Neighbour { address, link } = answer {
            self.tell_all(|| Command::Neighbour { address, link });
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads the configuration again: classes and limits take effect, all or nothing; what
    /// else changed is named and left.
    fn reload(&mut self) -> Result<(Vec<String>, Vec<String>), Refusal> {
        let refuse = |why: String| Refusal { errno: libc::EINVAL, why };
        let source = Source::read(&self.settings.file).map_err(|e| refuse(e.to_string()))?;
        let new = Config::try_from(&source).map_err(|faults| refuse(faults.to_string()))?;
        let differences = self.settings.config.differences(&new);
        let mut restart: Vec<String> = differences.restart.iter().map(|key| (*key).to_owned()).collect();
        if !differences.classes {
            return Ok((Vec::new(), restart));
        }
        let mut config = self.settings.config.clone();
        config.classes = new.classes;
        let classes = Classes::new(&config);
        if classes.priorities != self.settings.classes.priorities {
            restart.push("the priorities of the classes: there is one executor for each".to_owned());
            return Ok((Vec::new(), restart));
        }
        crate::start::configure(&self.tables, &self.settings, &classes).map_err(refuse)?;
        self.settings.config = config;
        self.settings.classes = classes.clone();
        let classes = Arc::new(classes);
        self.tell_all(|| Command::Classes(classes.clone()));
        let applied = classes.classes.iter().map(|(class, _)| format!("class {}", class.name)).collect();
        Ok((applied, restart))
    }

    fn welcome(&mut self) {
        while let Ok(fd) = accept_with(&self.socket, SocketFlags::CLOEXEC) {
            self.adopt(Lifeline::from_descriptor(fd), None);
        }
    }

    fn adopt(&mut self, line: Lifeline, member: Option<(u32, Member)>) {
        let number = self.next_peer;
        if line.vouch().and_then(|()| self.watch(line.as_fd(), number)).is_ok() {
            self.next_peer += 1;
            self.peers.insert(number, Peer { line, member, pid: None });
        }
    }

    fn hear(&mut self, number: u64) {
        // A few at a time, so that nobody talks the others down.
        for _ in 0..16 {
            let Some(peer) = self.peers.get_mut(&number) else { return };
            match peer.line.try_receive::<Request>() {
                Ok(got) => {
                    peer.pid = got.pid.or(peer.pid);
                    self.answer(number, got);
                }
                Err(WireError::WouldBlock) => return,
                Err(WireError::Malformed) => {
                    let why = "that was no message of this version".to_owned();
                    self.reply(number, &Reply::Refused(Refusal { errno: libc::EPROTO, why }), &[]);
                    return self.hang_up(number);
                }
                Err(WireError::HungUp | WireError::Io(_)) => return self.hang_up(number),
            }
        }
    }

    fn reply(&self, number: u64, reply: &Reply, fds: &[BorrowedFd<'_>]) {
        if let Some(peer) = self.peers.get(&number) {
            // A peer that does not listen any more hangs up, which is heard as such.
            let _ = peer.line.send(reply, fds);
        }
    }

    fn answer(&mut self, number: u64, got: Received<Request>) {
        let Received { message, descriptors, .. } = got;
        match message {
            Request::Attach { version, family, program } => self.attach(number, &version, family, program),
            Request::Found => {
                let reply = self.found_family("silk run".into(), |f| f.founders = 1);
                let reply = reply.map(|index| {
                    self.set_member(number, index, Member::Founder);
                    Reply::Family { family: self.families[&index].token }
                });
                self.reply(number, &reply.unwrap_or_else(Reply::Refused), &[]);
            }
            Request::Report => self.report(number),
            Request::Reload => {
                let reply = match self.reload() {
                    Ok((applied, restart)) => Reply::Reloaded { applied, restart },
                    Err(refusal) => Reply::Refused(refusal),
                };
                self.reply(number, &reply, &[]);
            }
            other => match self.peers.get(&number).and_then(|p| p.member) {
                Some((family, Member::Process(process))) => {
                    if let Some(reply) = self.serve(number, family, process, other, descriptors) {
                        self.reply(number, &reply, &[]);
                    }
                }
                _ => self.reply(number, &refused(libc::EPROTO, "attach first".into()), &[]),
            },
        }
    }

    fn set_member(&mut self, number: u64, family: u32, member: Member) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.member = Some((family, member));
        }
    }

    fn found_family(&mut self, program: String, begin: impl FnOnce(&mut Family)) -> Result<u32, Refusal> {
        let sizes = Sizes {
            rings: self.settings.config.memory.arena.get() as usize,
            domains: self.orders.len() as u32,
            huge_pages: self.settings.config.memory.huge_pages != HugePages::Never,
        };
        let arena = Arena::create(sizes)
            .map_err(|e| Refusal { errno: libc::ENOMEM, why: format!("no arena for {program}: {e}") })?;
        let index = self.next_family;
        self.next_family += 1;
        let mut family = Family::new(index, random_token(), arena.clone(), program);
        begin(&mut family);
        self.families.insert(index, family);
        let priorities: Arc<[AtomicU32]> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
        for orders in &self.orders {
            let _ = orders.give(Command::Family {
                family: index,
                arena: arena.clone(),
                priorities: priorities.clone(),
            });
        }
        Ok(index)
    }

    fn attach(&mut self, number: u64, version: &str, token: Option<u64>, program: String) {
        let reply = self.try_attach(number, version, token, program);
        match reply {
            Err(refusal) => self.reply(number, &Reply::Refused(refusal), &[]),
            Ok((index, process)) => {
                let family = &self.families[&index];
                let attached =
                    Reply::Attached { family: family.token, process, domains: self.orders.len() as u32 };
                let mut fds = vec![family.arena.file()];
                fds.extend(self.orders.iter().map(|o| o.event().as_fd()));
                self.reply(number, &attached, &fds);
            }
        }
    }

    fn try_attach(
        &mut self,
        number: u64,
        version: &str,
        token: Option<u64>,
        program: String,
    ) -> Result<(u32, u32), Refusal> {
        let ours = env!("CARGO_PKG_VERSION");
        if version != ours {
            let why = format!("libsilk is version {version}, silkd is {ours}: restart the older one");
            return Err(Refusal { errno: libc::EPROTO, why });
        }
        if self.peers.get(&number).is_none_or(|p| p.member.is_some()) {
            return Err(Refusal { errno: libc::EALREADY, why: "this process is attached already".into() });
        }
        let known = token.and_then(|t| self.families.values().find(|f| f.token == t).map(|f| f.index));
        let index = match known {
            Some(index) => index,
            None => self.found_family(program.clone(), |_| {})?,
        };
        let pid = self.peers.get(&number).and_then(|p| p.pid);
        let Some(family) = self.families.get_mut(&index) else {
            return Err(Refusal { errno: libc::ESRCH, why: "that family is gone".into() });
        };
        if family.program == "silk run" {
            family.program = program;
        }
        let process = family.join(pid);
        self.set_member(number, index, Member::Process(process));
        Ok((index, process))
    }

    /// A request of an attached process; `None` where it has no answer.
    fn serve(
        &mut self,
        number: u64,
        family: u32,
        process: u32,
        request: Request,
        mut fds: Vec<OwnedFd>,
    ) -> Option<Reply> {
        Some(match request {
            Request::Fork => {
                let Some(line) = fds.pop() else {
                    return Some(refused(libc::EINVAL, "a fork needs the child's lifeline".into()));
                };
                let known = self.families.get_mut(&family)?;
                let child = known.join(None);
                known.inherit(process, child);
                self.adopt(Lifeline::from_descriptor(line), Some((family, Member::Process(child))));
                Reply::Forked { process: child }
            }
            Request::Thread { tid } => self.thread(number, family, process, tid),
            Request::ThreadGone { thread } => {
                if self.families.get_mut(&family)?.return_thread(process, thread) {
                    self.tell_all(|| Command::Thread { family, thread, tid: None });
                }
                return None;
            }
            Request::Bell => {
                let Some(event) = fds.pop().map(Arc::new) else {
                    return Some(refused(libc::EINVAL, "an event set needs its eventfd".into()));
                };
                let Some(bell) = self.families.get_mut(&family)?.take_bell(process) else {
                    return Some(refused(libc::ENOSPC, "this program has too many event sets".into()));
                };
                self.tell_all(|| Command::Bell { family, bell, event: Some(event.clone()) });
                Reply::Bell { bell }
            }
            Request::BellGone { bell } => {
                if self.families.get_mut(&family)?.return_bell(process, bell) {
                    self.tell_all(|| Command::Bell { family, bell, event: None });
                }
                return None;
            }
            Request::Bind { kind, local, reuse_port, .. } => {
                self.bind(family, process, kind, local, reuse_port).unwrap_or_else(Reply::Refused)
            }
            Request::Listen { slot, backlog, defer_accept } => {
                self.listen(family, process, slot, backlog, defer_accept).unwrap_or_else(Reply::Refused)
            }
            Request::Connect { kind, slot, peer } => {
                self.connect(family, process, kind, slot, peer).unwrap_or_else(Reply::Refused)
            }
            Request::Release { slot, generation } => {
                let known = self.families.get_mut(&family)?;
                if known.sockets.get(&slot).is_some_and(|s| s.generation == generation)
                    && let Some(socket) = known.release(process, slot)
                {
                    self.close(family, slot, &socket);
                }
                return None;
            }
            Request::SetPriority { .. } => refused(
                libc::EPERM,
                "the policy allows this program no other priority than its class's".into(),
            ),
            Request::Scout { name } => {
                refused(libc::EPROTONOSUPPORT, format!("the graph has no path named {name}"))
            }
            Request::Unserved { what } => {
                let program = self.families.get(&family)?.program.clone();
                // Bounded: a program cannot make the daemon remember without end.
                if self.unserved.len() < 1024 || self.unserved.contains_key(&(program.clone(), what.clone()))
                {
                    let count = self.unserved.entry((program.clone(), what.clone())).or_default();
                    *count += 1;
                    if *count == 1 {
                        eprintln!("silkd: {program}: left to Linux: {what}");
                    }
                }
                return None;
            }
            Request::Attach { .. } | Request::Found | Request::Report | Request::Reload => return None,
        })
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        for orders in &self.orders {
            // An executor that has ended says so at the daemon's end.
            let _ = orders.give(command());
        }
    }

    fn thread(&mut self, number: u64, family: u32, process: u32, tid: u32) -> Reply {
        let pid = self.peers.get(&number).and_then(|p| p.pid);
        let its_own =
            pid.is_some_and(|pid| std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).exists());
        if !its_own {
            return refused(libc::EPERM, format!("thread {tid} is not a thread of the process that asks"));
        }
        match self.families.get_mut(&family).and_then(|f| f.take_thread(process)) {
            None => refused(libc::EAGAIN, "this program has too many threads waiting".into()),
            Some(thread) => {
                self.set_reserves(family);
                self.tell_all(|| Command::Thread { family, thread, tid: Some((tid, process)) });
                Reply::Thread { thread }
            }
        }
    }

    /// How many waiters are kept for the higher classes depends on how many there are.
    fn set_reserves(&self, family: u32) {
        let Some(known) = self.families.get(&family) else { return };
        let reserve = self.settings.reserve(known.thread_count());
        for slot in known.sockets.iter().filter(|(_, s)| s.state == State::Listening).map(|(slot, _)| *slot) {
            let number = known.arena.slot(slot).map(|record| record.listener.load(SeqCst));
            if let Some(listener) = number.and_then(|n| known.arena.listener(n)) {
                listener.reserve.store(reserve, SeqCst);
            }
        }
    }

    /// Our own form of an address, or `None` when it is Linux's business.
    fn ours(&self, address: SocketAddr) -> Option<SocketAddrV4> {
        let IpAddr::V4(v4) = address.ip().to_canonical() else { return None };
        let local = v4.is_unspecified() || self.settings.addresses.contains(&v4);
        local.then(|| SocketAddrV4::new(v4, address.port()))
    }

    fn bind(
        &mut self,
        family: u32,
        process: u32,
        kind: Kind,
        local: SocketAddr,
        reuse_port: bool,
    ) -> Result<Reply, Refusal> {
        let Some(local) = self.ours(local) else { return Ok(Reply::NotOurs) };
        let reserve_at = self.settings.reserve_at(*local.ip());
        let port = self.ports.take(kind, reserve_at, local.port(), reuse_port)?;
        let local = SocketAddrV4::new(*local.ip(), port);
        let (slot, generation) =
            self.new_slot(family, process, kind, Some(local), reuse_port).inspect_err(|_| {
                self.ports.give_back(kind, port);
            })?;
        if kind == Kind::Datagram {
            self.open_datagram(family, slot, local, None)?;
        }
        Ok(Reply::Socket { slot, generation })
    }

    /// A slot for a socket of `process`, with its addresses and one holder.
    fn new_slot(
        &mut self,
        family: u32,
        process: u32,
        kind: Kind,
        local: Option<SocketAddrV4>,
        shared_port: bool,
    ) -> Result<(SlotNumber, u32), Refusal> {
        let nothing = || Refusal { errno: libc::ENFILE, why: "this program has too many sockets".into() };
        let known = self.families.get_mut(&family).ok_or_else(nothing)?;
        let slot = known.pool.take_slot().ok_or_else(nothing)?;
        let arena = known.arena.clone();
        let record = arena.slot(slot).ok_or_else(nothing)?;
        let generation = clear(record);
        let sort = if kind == Kind::Stream { kind::STREAM } else { kind::DATAGRAM };
        record.kind.store(sort, SeqCst);
        record.owner.store(process, SeqCst);
        record.holders.store(1, SeqCst);
        if let Some(local) = local {
            store_address(&record.local, local);
        }
        known.sockets.insert(
            slot,
            Socket {
                kind,
                generation,
                local,
                state: State::Bound,
                holders: vec![process],
                shared_port,
                rings: None,
            },
        );
        Ok((slot, generation))
    }

    fn rings(&mut self, family: u32, slot: SlotNumber) -> Result<Rings, Refusal> {
        let full = || Refusal {
            errno: libc::ENOBUFS,
            why: "the program's arena is full: raise [memory] arena".into(),
        };
        let memory = &self.settings.config.memory;
        let (rx, tx) = (memory.receive_ring.get() as u32, memory.send_ring.get() as u32);
        let known = self.families.get_mut(&family).ok_or_else(full)?;
        let rx = known.pool.take_ring(rx).ok_or_else(full)?;
        let Some(tx) = known.pool.take_ring(tx) else {
            known.pool.return_ring(rx);
            return Err(full());
        };
        let rings = Rings { rx, tx };
        if let Some(record) = known.arena.slot(slot) {
            place_rings(record, rings);
        }
        if let Some(entry) = known.sockets.get_mut(&slot) {
            entry.rings = Some(rings);
        }
        Ok(rings)
    }

    fn open_datagram(
        &mut self,
        family: u32,
        slot: SlotNumber,
        local: SocketAddrV4,
        peer: Option<SocketAddrV4>,
    ) -> Result<(), Refusal> {
        let rings = self.rings(family, slot)?;
        let domain =
            self.settings.classes.domain_of(peer.map_or(Ipv4Addr::UNSPECIFIED, |p| *p.ip()), 0, local.port());
        let socket = SocketName { family, slot };
        let known = self.families.get_mut(&family);
        if let Some(entry) = known.and_then(|f| f.sockets.get_mut(&slot)) {
            entry.state = State::Served { domain };
        }
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            record.domain.store(domain as u32, SeqCst);
            record.status.store(status::CONNECTED, SeqCst);
        }
        // Every domain may receive for it; one serves it.
        self.tell_all(|| Command::Datagram { socket, rings, local, peer, domain });
        Ok(())
    }

    fn listen(
        &mut self,
        family: u32,
        process: u32,
        slot: SlotNumber,
        backlog: u32,
        defer_accept: u32,
    ) -> Result<Reply, Refusal> {
        let stranger = || Refusal { errno: libc::EBADF, why: "that socket is not this process's".into() };
        let domains = self.orders.len();
        let known = self.families.get_mut(&family).ok_or_else(stranger)?;
        let socket =
            known.sockets.get(&slot).filter(|s| s.holders.contains(&process)).ok_or_else(stranger)?;
        if socket.state == State::Listening {
            return Ok(Reply::Done);
        }
        let Some(local) =
            socket.local.filter(|_| socket.state == State::Bound && socket.kind == Kind::Stream)
        else {
            return Err(Refusal { errno: libc::EINVAL, why: "only a bound stream socket can listen".into() });
        };
        let too_many =
            || Refusal { errno: libc::EMFILE, why: "this program listens on too many sockets".into() };
        let listener = known.take_listener().ok_or_else(too_many)?;
        let record = known.arena.listener(listener).ok_or_else(too_many)?;
        record.ranks.store(domains.min(RANKS) as u32, SeqCst);
        record.reserve.store(self.settings.reserve(known.thread_count()), SeqCst);
        if let Some(record) = known.arena.slot(slot) {
            record.listener.store(listener, SeqCst);
            record.kind.store(kind::LISTENER, SeqCst);
        }
        if let Some(entry) = known.sockets.get_mut(&slot) {
            entry.state = State::Listening;
        }
        let hold = Arc::new(ListenerHold {
            name: SocketName { family, slot },
            listener,
            local,
            backlog: backlog.clamp(1, self.settings.config.listen.backlog),
            defer_accept,
            events: self.report_events.clone(),
        });
        self.tell_all(|| Command::Listen(hold.clone()));
        Ok(Reply::Done)
    }

    fn connect(
        &mut self,
        family: u32,
        process: u32,
        kind: Kind,
        slot: Option<SlotNumber>,
        peer: SocketAddr,
    ) -> Result<Reply, Refusal> {
        let IpAddr::V4(remote) = peer.ip().to_canonical() else { return Ok(Reply::NotOurs) };
        let dissolve = kind == Kind::Datagram && remote.is_unspecified();
        let Some(source) = self.settings.source_for(remote).filter(|_| !dissolve || slot.is_some()) else {
            return Ok(Reply::NotOurs);
        };
        let (slot, generation) = match slot {
            Some(slot) => {
                let known = self.families.get(&family).and_then(|f| f.sockets.get(&slot));
                let Some(known) = known.filter(|s| s.holders.contains(&process)) else {
                    return Err(Refusal {
                        errno: libc::EBADF,
                        why: "that socket is not this process's".into(),
                    });
                };
                (slot, known.generation)
            }
            None => {
                let port = self.ports.take(kind, source, 0, false)?;
                self.new_slot(family, process, kind, Some(SocketAddrV4::new(source, port)), false)
                    .inspect_err(|_| {
                        self.ports.give_back(kind, port);
                    })?
            }
        };
        let bound = self.families.get(&family).and_then(|f| f.sockets.get(&slot)).and_then(|s| s.local);
        let Some(bound) = bound else {
            return Err(Refusal { errno: libc::EINVAL, why: "that socket has no local address".into() });
        };
        let local = if bound.ip().is_unspecified() { SocketAddrV4::new(source, bound.port()) } else { bound };
        let peer = SocketAddrV4::new(remote, peer.port());
        self.join_up(family, slot, kind, local, (!dissolve).then_some(peer))?;
        Ok(Reply::Socket { slot, generation })
    }

    /// Hands a socket with both addresses to its executor.
    fn join_up(
        &mut self,
        family: u32,
        slot: SlotNumber,
        kind: Kind,
        local: SocketAddrV4,
        peer: Option<SocketAddrV4>,
    ) -> Result<(), Refusal> {
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            store_address(&record.local, local);
            store_address(&record.peer, peer.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)));
        }
        let Some(peer) = peer.filter(|_| kind == Kind::Stream) else {
            return self.open_datagram_again(family, slot, local, peer);
        };
        let rings = self.rings(family, slot)?;
        let domain = self.settings.classes.domain_of(*peer.ip(), 0, local.port());
        if let Some(entry) = self.families.get_mut(&family).and_then(|f| f.sockets.get_mut(&slot)) {
            entry.state = State::Served { domain };
        }
        if let Some(record) = self.families.get(&family).and_then(|f| f.arena.slot(slot)) {
            record.domain.store(domain as u32, SeqCst);
            record.status.store(status::CONNECTING, SeqCst);
        }
        let socket = SocketName { family, slot };
        if let Some(orders) = self.orders.get(domain) {
            let _ = orders.give(Command::Connect { socket, rings, local, peer });
        }
        Ok(())
    }

    fn open_datagram_again(
        &mut self,
        family: u32,
        slot: SlotNumber,
        local: SocketAddrV4,
        peer: Option<SocketAddrV4>,
    ) -> Result<(), Refusal> {
        let open = self.families.get(&family).and_then(|f| f.sockets.get(&slot)).map(|s| (s.rings, s.state));
        if let Some((Some(rings), State::Served { domain })) = open {
            let socket = SocketName { family, slot };
            self.tell_all(|| Command::Datagram { socket, rings, local, peer, domain });
            return Ok(());
        }
        self.open_datagram(family, slot, local, peer)
    }

    fn give_port_back(&mut self, kind: Kind, local: SocketAddrV4) {
        if self.ports.give_back(kind, local.port()) {}
    }

    /// The last holder let go of a socket that is named here.
    fn close(&mut self, family: u32, slot: SlotNumber, socket: &Socket) {
        let name = SocketName { family, slot };
        match socket.state {
            State::Bound => {
                if let Some(known) = self.families.get_mut(&family) {
                    retire(&known.arena, slot);
                    known.pool.return_slot(slot);
                }
            }
            State::Listening => self.tell_all(|| Command::Unlisten(name)),
            State::Served { .. } | State::Accepted => {
                let generation = socket.generation;
                self.tell_all(|| Command::Close { socket: name, generation });
            }
        }
        // A served socket keeps its port until its executor has done with it.
        if let Some(local) = socket.local.filter(|_| !matches!(socket.state, State::Served { .. })) {
            self.give_port_back(socket.kind, local);
        }
    }

    /// A lifeline hung up: whoever held it is gone.
    fn hang_up(&mut self, number: u64) {
        let Some(peer) = self.peers.remove(&number) else { return };
        let _ = epoll::delete(&self.epoll, peer.line.as_fd());
        let Some((index, member)) = peer.member else { return };
        let Some(family) = self.families.get_mut(&index) else { return };
        match member {
            Member::Founder => family.founders -= 1,
            Member::Process(process) => {
                let (last, gone) = family.leave(process);
                for thread in gone.threads {
                    self.tell_all(|| Command::Thread { family: index, thread, tid: None });
                }
                for bell in gone.bells {
                    self.tell_all(|| Command::Bell { family: index, bell, event: None });
                }
                for (slot, socket) in last {
                    self.close(index, slot, &socket);
                }
                self.tell_all(|| Command::ProcessGone { family: index, process });
            }
        }
        if self.families.get(&index).is_some_and(Family::is_deserted) {
            let family = self.families.remove(&index);
            for socket in family.into_iter().flat_map(|f| f.sockets.into_values()) {
                if let Some(local) = socket.local {
                    self.give_port_back(socket.kind, local);
                }
            }
            self.tell_all(|| Command::FamilyGone { family: index });
        }
    }

    /// Collects what the executors know and sends it in parts that fit a message.
    fn report(&mut self, number: u64) {
        let mut whole = self.collect();
        let mut paths = std::mem::take(&mut whole.paths).into_iter().peekable();
        loop {
            whole.paths = paths.by_ref().take(48).collect();
            let more = paths.peek().is_some();
            self.reply(number, &Reply::Report { part: Box::new(std::mem::take(&mut whole)), more }, &[]);
            if !more {
                return;
            }
        }
    }

    fn collect(&self) -> Report {
        let (to_us, reports) = channel();
        self.tell_all(|| Command::Report(to_us.clone()));
        drop(to_us);
        let mut whole = Report::default();
        // An executor that does not answer in time is left out rather than waited for.
        for _ in &self.orders {
            let Ok(part) = reports.recv_timeout(Duration::from_secs(2)) else { break };
            whole.paths.extend(part.paths);
            whole.threads.extend(part.threads);
            whole.unblock_ns.extend(part.unblock_ns);
            for drop in part.drops {
                match whole.drops.iter_mut().find(|d| d.reason == drop.reason) {
                    Some(known) => known.count += drop.count,
                    None => whole.drops.push(drop),
                }
            }
        }
        whole.arena_bytes = self.families.values().map(|f| f.arena.rings_in_use()).sum();
        whole.unserved = self
            .unserved
            .iter()
            .map(|((program, what), count)| UnservedReport {
                program: program.clone(),
                what: what.clone(),
                count: *count,
            })
            .collect();
        whole
    }

    /// Ends every executor.
    pub fn stop(&self) {
        for family in self.families.values() {
            family.arena.header().dead.store(1, SeqCst);
        }
        self.tell_all(|| Command::Stop);
        let _ = std::fs::remove_file(&self.settings.config.control.socket);
    }
}

fn refused(errno: i32, why: String) -> Reply {
    Reply::Refused(Refusal { errno, why })
}

fn random_token() -> u64 {
    // The kernel's random numbers do not fail once the machine has booted.
    rand_core::TryRngCore::try_next_u64(&mut rand_core::OsRng).unwrap_or_else(|_| std::process::id().into())
}

/// Makes a slot as new and counts its use; the new generation.
pub fn clear(record: &silk_stream::Slot) -> u32 {
    let generation = record.generation.load(SeqCst).wrapping_add(1);
    for word in [
        &record.rx_write,
        &record.tx_read,
        &record.rx_read,
        &record.tx_write,
        &record.status,
        &record.error,
        &record.waiting,
        &record.wake_read,
        &record.wake_write,
        &record.request,
        &record.thread,
        &record.rx_note,
        &record.rx_size,
        &record.tx_size,
        &record.keep_idle,
        &record.keep_interval,
        &record.keep_count,
        &record.retransmits,
        &record.drops,
        &record.options,
    ] {
        word.store(0, SeqCst);
    }
    record.bells.iter().for_each(|word| word.store(0, SeqCst));
    record.generation.store(generation, SeqCst);
    generation
}

/// Marks a slot as free.
pub fn retire(arena: &Arena, slot: SlotNumber) {
    if let Some(record) = arena.slot(slot) {
        record.owner.store(silk_stream::OWNER_NOBODY, SeqCst);
        record.kind.store(kind::FREE, SeqCst);
    }
}

/// Writes an IPv4 address into a slot, as its mapped IPv6 form.
pub fn store_address(shared: &silk_stream::SharedAddress, address: SocketAddrV4) {
    let octets = address.ip().to_ipv6_mapped().octets();
    let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|i| octets[from + i]));
    shared.ip[0].store(half(0), SeqCst);
    shared.ip[1].store(half(8), SeqCst);
    shared.port.store(address.port().into(), SeqCst);
}

/// Says in a slot where its rings are.
pub fn place_rings(record: &silk_stream::Slot, rings: Rings) {
    record.rx_place.store(rings.rx.place, SeqCst);
    record.tx_place.store(rings.tx.place, SeqCst);
    record.rx_size.store(rings.rx.size, SeqCst);
    record.tx_size.store(rings.tx.size, SeqCst);
}

/// The address in IPv4 form, for showing.
pub fn show_address(shared: &silk_stream::SharedAddress) -> String {
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&shared.ip[0].load(SeqCst).to_be_bytes());
    octets[8..].copy_from_slice(&shared.ip[1].load(SeqCst).to_be_bytes());
    let ip = Ipv6Addr::from(octets).to_canonical();
    format!("{ip}:{}", shared.port.load(SeqCst))
}
