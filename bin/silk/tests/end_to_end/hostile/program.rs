//! A program that speaks the control protocol by itself, and has no idea of it: any request at any time, of any socket, by any
//! of its processes, some of which join, fork, pass sockets on and hang up. What it has is a matter of its seed.

use super::scribbling::{Memory, address, port};
use rustix::event::{PollFd, PollFlags, poll};
use silk_control::{
    FamilyToken, Kind, Lifeline, Membership, Received, Reply, Request, SlotNumber, WireError,
};
use silk_stream::wake;
use silk_testkit::dice::Dice;
use silk_testkit::netns::{CLIENT, SERVER, SERVER6};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

/// How long an answer may take.
const PATIENCE: i64 = 20;
/// Requests that a process leaves unanswered at one time, at most.
const OWED: usize = 12;

/// A process, or a socket that is passed to one.
struct Line {
    lifeline: Lifeline,
    family: usize,
    /// The requests whose answers are to come, in some order.
    owed: Vec<Request>,
}

/// The program.
pub struct Program {
    dice: Dice,
    socket: PathBuf,
    /// Whether it damages what it shares.
    scribbles: bool,
    lines: Vec<Line>,
    /// Lifelines that have asked, and hear nothing until the program ends.
    deaf: Vec<Lifeline>,
    families: Vec<(FamilyToken, Arc<Memory>)>,
    sockets: Vec<(SlotNumber, u32)>,
    tickets: Vec<(u64, SlotNumber, u32)>,
    numbers: Vec<u32>,
    /// Its threads' kernel ids.
    threads: Vec<u32>,
}

impl Program {
    /// One that has not begun, with threads of these numbers. Every other one `scribbles`.
    pub fn new(seed: u64, socket: PathBuf, threads: Vec<u32>) -> Self {
        Self {
            dice: Dice::new(seed),
            socket,
            scribbles: seed % 2 == 1,
            lines: Vec::new(),
            deaf: Vec::new(),
            families: Vec::new(),
            sockets: Vec::new(),
            tickets: Vec::new(),
            numbers: Vec::new(),
            threads,
        }
    }

    /// Does so many things, then hears the answers to all it has asked and hangs up. `Err` says which answer did not come.
    pub fn run(mut self, steps: usize) -> Result<(), String> {
        while self.families.is_empty() {
            self.attach(None)?;
        }
        let (ended, memory) = (AtomicBool::new(false), self.families[0].1.clone());
        let mut dice = Dice::new(self.dice.word());
        // Of four, one has a thread that writes all the time.
        let at_once = self.scribbles && dice.falls(0.5);
        thread::scope(|scope| {
            scope.spawn(|| {
                while at_once && !ended.load(SeqCst) {
                    (0..20).for_each(|_| memory.scribble(&mut dice));
                    memory.crowd();
                    thread::yield_now();
                }
            });
            let done = (0..steps).try_for_each(|_| self.step());
            let heard = done.and_then(|()| (0..self.lines.len()).try_for_each(|n| self.settle(n, 0)));
            ended.store(true, SeqCst);
            heard
        })
    }

    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(100) {
            0..2 => {
                let token = self.families.first().map(|(token, _)| *token).filter(|_| self.dice.falls(0.7));
                self.attach(token)
            }
            2..4 => self.hang_up(),
            4..7 => self.fork(),
            7..10 => self.pass(),
            10 => self.nonsense(),
            11 if self.dice.falls(0.2) => self.be_deaf(),
            12..35 => {
                self.touch();
                Ok(())
            }
            _ => self.ask_something(),
        }
    }

    fn pick<T: Copy>(dice: &mut Dice, of: &[T]) -> Option<T> {
        of.get(dice.below(of.len() as u64) as usize).copied()
    }

    /// A socket of which it has heard, or that might be one.
    fn any_socket(&mut self) -> (SlotNumber, u32) {
        let dice = &mut self.dice;
        let known = Self::pick(dice, &self.sockets);
        let recent = self.sockets.last().copied().filter(|_| dice.falls(0.3));
        match (recent.or(known), dice.below(12)) {
            (Some((slot, generation)), 0) => (slot, generation.wrapping_add(1)),
            (Some(name), 1..) => name,
            _ => (Memory::any_slot(dice), dice.below(3) as u32),
        }
    }

    fn any_line(&mut self) -> Option<usize> {
        (!self.lines.is_empty()).then(|| self.dice.below(self.lines.len() as u64) as usize)
    }

    /// A process more, of a family that there is or a new one.
    fn attach(&mut self, token: Option<FamilyToken>) -> Result<(), String> {
        let lifeline = Lifeline::connect(&self.socket).map_err(|error| format!("cannot connect: {error}"))?;
        if self.dice.falls(0.1) {
            // Who belongs to nobody yet may ask, too.
            let line = Line { lifeline, family: 0, owed: Vec::new() };
            self.lines.push(line);
            let request = if self.dice.falls(0.5) { Request::Found } else { self.request() };
            // Each is answered here.
            self.send(self.lines.len() - 1, request.clone(), &[]);
            let line = self.lines.last_mut().unwrap();
            line.owed = vec![request];
            self.settle(self.lines.len() - 1, 0)?;
            self.lines.pop();
            return Ok(());
        }
        let request = Request::Attach {
            version: env!("CARGO_PKG_VERSION").into(),
            family: token,
            program: "hostile".into(),
        };
        let line = Line { lifeline, family: 0, owed: Vec::new() };
        self.lines.push(line);
        let at = self.lines.len() - 1;
        self.send(at, request, &[]);
        let Some(mut got) = self.hear(at)? else { return Err("hung up on when attaching".into()) };
        self.lines[at].owed.clear();
        let Reply::Attached { family, .. } = got.message else {
            return Err(format!("not attached: {:?}", got.message));
        };
        let known = self.families.iter().position(|(known, _)| *known == family);
        self.lines[at].family = known.unwrap_or_else(|| {
            let events = got.descriptors.split_off(1);
            self.families.push((family, Arc::new(Memory::new(got.descriptors.remove(0), events))));
            self.families.len() - 1
        });
        Ok(())
    }

    fn hang_up(&mut self) -> Result<(), String> {
        if let Some(n) = self.any_line() {
            self.lines.swap_remove(n);
        }
        if self.lines.is_empty() { self.attach(None) } else { Ok(()) }
    }

    /// What goes for the daemon's end of a lifeline, and what it is kept by.
    fn pair(&mut self) -> (OwnedFd, Option<Lifeline>) {
        match self.dice.below(10) {
            0 => (File::open("/dev/null").unwrap().into(), None),
            1 => (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().into(), None),
            2 => (UnixDatagram::unbound().unwrap().into(), None),
            _ => {
                let (ours, daemons) = Lifeline::pair().unwrap();
                (daemons.into_descriptor(), Some(ours))
            }
        }
    }

    fn fork(&mut self) -> Result<(), String> {
        let Some(n) = self.any_line() else { return Ok(()) };
        let (daemons, ours) = self.pair();
        self.ask(n, Request::Fork, Some(daemons))?;
        let family = self.lines[n].family;
        self.lines.extend(ours.map(|lifeline| Line { lifeline, family, owed: Vec::new() }));
        Ok(())
    }

    fn pass(&mut self) -> Result<(), String> {
        let Some(n) = self.any_line() else { return Ok(()) };
        let (slot, generation) = self.any_socket();
        let (daemons, ours) = self.pair();
        self.ask(n, Request::Pass { slot, generation }, Some(daemons))?;
        self.settle(n, 0)?;
        let family = self.lines[n].family;
        let was_passed = self.tickets.last().is_some_and(|(_, passed, _)| *passed == slot);
        let kept = ours.filter(|_| was_passed);
        self.lines.extend(kept.map(|lifeline| Line { lifeline, family, owed: Vec::new() }));
        Ok(())
    }

    /// Says what is no message, and hangs up.
    fn nonsense(&mut self) -> Result<(), String> {
        if let Some(n) = self.any_line().filter(|_| self.lines.len() > 1) {
            let line = self.lines.swap_remove(n);
            let bytes: Vec<u8> = (0..=self.dice.below(40)).map(|_| self.dice.word() as u8).collect();
            let _ = rustix::net::send(line.lifeline.as_fd(), &bytes, rustix::net::SendFlags::DONTWAIT);
        }
        Ok(())
    }

    /// Asks without end and hears nothing.
    fn be_deaf(&mut self) -> Result<(), String> {
        let lifeline = Lifeline::connect(&self.socket).map_err(|error| format!("cannot connect: {error}"))?;
        rustix::io::ioctl_fionbio(lifeline.as_fd(), true).map_err(|error| error.to_string())?;
        let asks = |_: &i32| lifeline.send(&Request::Report, &[]).is_ok();
        let _ = (0..120).take_while(asks).count();
        if self.dice.falls(0.5) {
            self.deaf.push(lifeline);
        }
        Ok(())
    }

    /// Does something in shared memory.
    fn touch(&mut self) {
        let Some(n) = self.any_line() else { return };
        let (slot, _) = self.any_socket();
        let Some((_, memory)) = self.families.get(self.lines[n].family) else { return };
        match self.dice.below(10) {
            0..2 => memory.write(slot, &mut self.dice),
            2 if self.dice.falls(0.5) => memory.read(slot),
            2 => self.sockets.extend(memory.accept(&mut self.dice)),
            3..6 => memory.ask(slot, &mut self.dice),
            _ if self.scribbles => (0..4).for_each(|_| memory.scribble(&mut self.dice)),
            _ => memory.ring(slot),
        }
    }

    fn local(&mut self) -> SocketAddr {
        let address: IpAddr = match self.dice.below(7) {
            0 | 1 => SERVER.into(),
            2 => SERVER6.into(),
            3 => Ipv6Addr::UNSPECIFIED.into(),
            4 => CLIENT.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let port =
            if self.dice.falls(0.4) { 0 } else { Self::pick(&mut self.dice, &super::PORTS).unwrap_or(0) };
        SocketAddr::new(address, port)
    }

    fn kind(&mut self) -> Kind {
        if self.dice.falls(0.5) { Kind::Stream } else { Kind::Datagram }
    }

    fn membership(&mut self) -> Membership {
        let source = address(&mut self.dice);
        match self.dice.below(8) {
            0 | 1 => Membership::Leave,
            2 => Membership::Add(source),
            3 => Membership::Drop(source),
            4 => Membership::Block(source),
            5 => Membership::Unblock(source),
            _ => Membership::Join,
        }
    }

    /// What only asks, or needs no descriptor.
    fn request(&mut self) -> Request {
        let (slot, generation) = self.any_socket();
        let number = Self::pick(&mut self.dice, &self.numbers).unwrap_or(0);
        let dice = &mut self.dice;
        let few = dice.below(300) as u32;
        match dice.below(40) {
            0..7 => Request::Bind {
                kind: self.kind(),
                local: self.local(),
                reuse_address: self.dice.falls(0.3),
                reuse_port: self.dice.falls(0.3),
                only_v6: self.dice.falls(0.2),
            },
            7..11 => Request::Listen { slot, generation, backlog: few, defer_accept: few % 3 },
            11..21 => {
                let bound = dice.falls(0.6).then_some((slot, generation));
                let wild = dice.falls(0.1);
                let wishes =
                    std::array::from_fn(|_| if wild { dice.word() as u32 >> dice.below(32) } else { 0 });
                let peer = SocketAddr::new(address(dice), port(dice));
                Request::Connect { kind: self.kind(), bound, peer, service: few, wishes }
            }
            21..24 => Request::Release { slot, generation },
            24..27 => Request::Disconnect { slot, generation },
            27 | 28 => Request::SetPriority { slot, generation, priority: few % 8 },
            29..31 => {
                let group = address(dice);
                let at = (dice.falls(0.3).then(|| address(dice)), few % 4);
                Request::Group { slot, generation, group, at, change: self.membership() }
            }
            31 => {
                Request::Thread { tid: Self::pick(dice, &self.threads).filter(|_| few > 30).unwrap_or(few) }
            }
            32 => Request::ThreadGone { thread: if few > 60 { number } else { dice.word() as u32 } },
            33 => Request::BellGone { bell: if few > 60 { number } else { dice.word() as u32 } },
            34 => match few {
                0..60 => Request::Renew,
                60..100 => Request::Executes { now: few < 80 },
                100..200 => Request::Found,
                _ => Request::Attach { version: few.to_string(), family: None, program: "hostile".into() },
            },
            35 => {
                let names = ["echo", "home", "nobody", "question", "no such path"];
                let name = names[dice.below(names.len() as u64) as usize].to_owned();
                Request::Scout { kind: self.kind(), name }
            }
            36 => Request::Way { to: SocketAddr::new(address(dice), port(dice)) },
            37 => Request::Unserved { what: format!("something\nno. {few} {}", "x".repeat(few as usize)) },
            38 => {
                let (ticket, slot, generation) =
                    Self::pick(dice, &self.tickets).unwrap_or((7, slot, generation));
                Request::Take { ticket: ticket + u64::from(few < 30), slot, generation }
            }
            _ => Request::Report,
        }
    }

    fn ask_something(&mut self) -> Result<(), String> {
        let Some(n) = self.any_line() else { return Ok(()) };
        match self.dice.below(30) {
            0 => {
                let file = if self.dice.falls(0.7) { "/etc/passwd" } else { "/dev/null" };
                self.ask(n, Request::File, File::open(file).ok().map(OwnedFd::from))
            }
            1 => {
                let event = match self.dice.below(5) {
                    0 => full_pipe(),
                    1 => None,
                    _ => wake::event().ok(),
                };
                self.ask(n, Request::Bell, event)
            }
            _ => {
                let request = self.request();
                self.ask(n, request, None)
            }
        }
    }

    fn send(&self, n: usize, request: Request, descriptors: &[OwnedFd]) {
        let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        // Who was hung up on hears so when it listens.
        let _ = self.lines[n].lifeline.send(&request, &descriptors);
    }

    /// Asks, and hears the answer now or later.
    fn ask(&mut self, n: usize, request: Request, descriptor: Option<OwnedFd>) -> Result<(), String> {
        self.send(n, request.clone(), descriptor.as_slice());
        if is_answered(&request) {
            self.lines[n].owed.push(request);
        }
        let owed = if self.dice.falls(0.6) { 0 } else { OWED };
        self.settle(n, owed)
    }

    /// Hears answers until so many are left to come.
    fn settle(&mut self, n: usize, left: usize) -> Result<(), String> {
        while self.lines[n].owed.len() > left {
            let Some(got) = self.hear(n)? else {
                self.lines[n].owed.clear();
                return Ok(());
            };
            self.note(n, got);
        }
        Ok(())
    }

    /// The next answer; `None`: the daemon has hung up.
    fn hear(&self, n: usize) -> Result<Option<Received<Reply>>, String> {
        let Line { lifeline, owed, .. } = &self.lines[n];
        hear(lifeline).map_err(|why| format!("{why} to any of {owed:?}"))
    }

    fn note(&mut self, n: usize, got: Received<Reply>) {
        let owed = &mut self.lines[n].owed;
        let answered = owed.iter().position(|request| answers(&got.message, request));
        // Other answers may be to any; `Renew` has one of its own, where it is not refused.
        let any = || {
            let other = owed.iter().rposition(|request| !matches!(request, Request::Renew));
            other.or(owed.len().checked_sub(1))
        };
        let request = match (&got.message, answered) {
            (Reply::Report { more: true, .. }, _) => None,
            // What was asked before need not be answered any more.
            (Reply::Renewed, Some(at)) => owed.drain(..=at).next_back(),
            (_, answered) => answered.or_else(any).map(|at| owed.remove(at)),
        };
        match got.message {
            Reply::Socket { slot, generation } => self.sockets.push((slot, generation)),
            Reply::Sockets { slot, generation, spares } => {
                self.sockets.push((slot, generation));
                self.sockets.extend(spares);
            }
            Reply::Passed { ticket } => {
                if let Some(Request::Pass { slot, generation }) = request {
                    self.tickets.push((ticket, slot, generation));
                }
            }
            Reply::Thread { thread } => self.numbers.push(thread),
            Reply::Bell { bell } => self.numbers.push(bell),
            _ => {}
        }
    }
}

/// The next answer at a lifeline; `None`: the daemon has hung up.
pub fn hear(lifeline: &Lifeline) -> Result<Option<Received<Reply>>, String> {
    let patience = rustix::event::Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    if poll(&mut [PollFd::new(lifeline, PollFlags::IN)], Some(&patience)) == Ok(0) {
        return Err("no answer".into());
    }
    match lifeline.try_receive() {
        Ok(got) => Ok(Some(got)),
        Err(WireError::HungUp) => Ok(None),
        Err(error) => Err(format!("no answer but {error}")),
    }
}

/// Whether the protocol promises an answer.
fn is_answered(request: &Request) -> bool {
    !matches!(
        request,
        Request::ThreadGone { .. }
            | Request::BellGone { .. }
            | Request::Release { .. }
            | Request::Executes { .. }
            | Request::Unserved { .. }
    )
}

/// Whether one answers the other for sure.
fn answers(reply: &Reply, request: &Request) -> bool {
    match reply {
        Reply::Report { more, .. } => !more && matches!(request, Request::Report),
        Reply::Passed { .. } => matches!(request, Request::Pass { .. }),
        Reply::Thread { .. } => matches!(request, Request::Thread { .. }),
        Reply::Bell { .. } => matches!(request, Request::Bell),
        Reply::Forked { .. } => matches!(request, Request::Fork),
        Reply::Renewed => matches!(request, Request::Renew),
        Reply::Socket { .. } => {
            matches!(request, Request::Bind { .. } | Request::Connect { .. } | Request::Scout { .. })
        }
        Reply::Sockets { .. } => matches!(request, Request::Connect { .. }),
        _ => false,
    }
}

/// What keeps whoever writes to it waiting, and is kept by nobody who would read.
pub fn full_pipe() -> Option<OwnedFd> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().ok()?;
    theirs.set_nonblocking(true).ok()?;
    while rustix::io::write(&theirs, &[0; 4096]).is_ok() {}
    theirs.set_nonblocking(false).ok()?;
    // As long as the test runs.
    std::mem::forget(ours);
    Some(theirs.into())
}
