//! A socket of ours in an event set: what the program wants to hear of it, what holds, and whether that is news.

mod members;

use crate::family;
use crate::lanes;
use crate::listener;
use crate::readiness;
use crate::socket::{Role, Socket};
use crate::state;
use libc::epoll_event;
pub use members::Inner;
use silk_stream::Slot;
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
const EDGE: u32 = libc::EPOLLET as u32;
/// Told whether asked for or not.
const ALWAYS: u32 = readiness::FAILED | readiness::HUNG_UP;

/// How often it is looked again at what changes meanwhile.
const LOOKS: u32 = 4;

/// Where a member's events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The real set: nobody has decided about the socket yet.
    Kernel,
    /// The bell.
    Silk,
}

/// What an edge-triggered member was last told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    /// What it listens with, of a listener ([`listener::arrivals`]).
    listener: u32,
    arrived: u32,
    status: u32,
    /// The error that stands, if one does, among all that were taken before.
    failure: u32,
    /// Errors that have come to the socket's queue of them.
    queued: u32,
    starved: u32,
    /// What of it the program has shut down.
    shut: u32,
}

/// Which queue a member lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queued {
    No,
    Ordinary,
    Urgent,
}

/// A member.
pub struct Member {
    socket: &'static Socket,
    /// Which of the record's uses it is.
    uses: u32,
    slot: (u32, u32),
    fd: c_int,
    home: Home,
    events: u32,
    data: u64,
    /// Whether it is to be looked at.
    queued: Queued,
    /// It has a place in the queue of the ordinary, be it one that `queued` does not name any more.
    lies_in_ready: bool,
    /// A one-shot member that has fired.
    spent: bool,
    /// Never told of anything since it was added or changed.
    fresh: bool,
    told: Told,
    /// The place of the next member of its slot's, plus one.
    next: u32,
}

impl Member {
    /// A member as the program asks for it.
    pub fn new(socket: &'static Socket, fd: c_int, home: Home, asked: epoll_event) -> Self {
        Self {
            socket,
            uses: socket.uses(),
            slot: socket.name(),
            fd,
            home,
            events: asked.events,
            data: asked.u64,
            queued: Queued::No,
            lies_in_ready: false,
            spent: false,
            fresh: true,
            told: Told::default(),
            next: 0,
        }
    }

    /// The program asks for something else.
    pub fn change(&mut self, asked: epoll_event) {
        (self.events, self.data) = (asked.events, asked.u64);
        (self.spent, self.fresh) = (false, true);
    }

    /// What is asked for.
    pub fn asked(&self) -> u32 {
        self.events
    }

    /// The same as the kernel takes it: of one that has fired nothing more.
    fn wants(&self) -> epoll_event {
        epoll_event { events: if self.spent { ONE_SHOT } else { self.events }, u64: self.data }
    }

    fn slot(&self) -> Option<&'static Slot> {
        let slot = family::joined()?.arena.slot(self.slot.0)?;
        (slot.generation.load(Relaxed) == self.slot.1).then_some(slot)
    }

    /// Which queue it belongs into: a path's priority says, and of a listener the classes whose
    /// connections wait.
    fn urgency(&self) -> Queued {
        let urgent = self.slot().is_some_and(|slot| match self.socket.role() {
            Role::Listener => listener::is_waiting_above_ordinary(slot),
            _ => slot.priority.load(Relaxed) > 0,
        });
        if urgent { Queued::Urgent } else { Queued::Ordinary }
    }

    /// Whether paths of other priorities may be met with it.
    fn is_among_classes(&self) -> bool {
        self.slot().is_some_and(|slot| match self.socket.role() {
            Role::Listener => listener::has_classes(slot),
            _ => slot.priority.load(Relaxed) > 0,
        })
    }

    /// What holds of what is asked for; room, if there is none, is waited for.
    fn holds(&self) -> u32 {
        if self.spent || self.home == Home::Kernel {
            return 0;
        }
        let bits = readiness::of(self.socket) & (self.events | ALWAYS);
        if bits & readiness::OUT == 0
            && self.events & readiness::OUT != 0
            && let Some(slot) = self.slot()
        {
            readiness::announce(self.socket, slot, readiness::OUT);
        }
        // The second look is for what changed before the announcement.
        bits | readiness::of(self.socket) & (self.events | ALWAYS)
    }

    /// Whether each change is told once.
    fn is_told_once(&self) -> bool {
        // A listener whose daemon is gone would be ready for ever and turn in a circle.
        self.events & EDGE != 0 || self.socket.role() == Role::Listener && state::is_dead()
    }

    /// How far things are, and what holds. It must not be taken for told what was not: so how far they are is seen first. What comes while
    /// this looks would be told twice: so it looks again, and gives up only where more comes each time.
    fn observe(&self) -> (Option<Told>, u32) {
        let (mut seen, mut bits) = (self.seen(), self.holds());
        for _ in 0..LOOKS {
            let now = self.seen();
            if now == seen {
                break;
            }
            (seen, bits) = (now, self.holds());
        }
        let room = bits & readiness::OUT != 0;
        (seen.map(|seen| if room { seen } else { Told { starved: self.told.starved, ..seen } }), bits)
    }

    /// Whether there is anything to tell the program.
    fn has_news(&self) -> bool {
        let (seen, bits) = self.observe();
        bits != 0 && (!self.is_told_once() || self.is_news(seen))
    }

    /// What to tell the program, if anything, and whether to look again without a change.
    fn look(&mut self) -> (u32, bool) {
        let ((seen, bits), once) = (self.observe(), self.is_told_once());
        if bits == 0 {
            return (0, false);
        }
        if once {
            let is_news = self.is_news(seen);
            self.told = seen.unwrap_or(self.told);
            if !is_news {
                return (0, false);
            }
        }
        self.fresh = false;
        self.spent = self.events & ONE_SHOT != 0;
        (bits, self.events & ONE_SHOT == 0 && !once)
    }

    /// How far things are that an edge-triggered member is told of.
    fn seen(&self) -> Option<Told> {
        let slot = self.slot()?;
        let (listener, arrived) = match self.socket.role() {
            Role::Listener => listener::arrivals(slot),
            Role::Datagram => (0, lanes::all_arrived(slot)),
            Role::Stream => (0, slot.rx_write.load(Acquire)),
        };
        Some(Told {
            listener,
            arrived,
            status: state::status(slot),
            failure: state::failure(slot),
            queued: slot.error_write.load(Acquire),
            starved: self.socket.starved.load(Acquire),
            shut: self.socket.shut.load(Acquire),
        })
    }

    /// Whether an edge-triggered member has not been told of this yet: something arrived, an
    /// end was reached, a way was shut down, or there is room again after a write that found none. What arrives at a
    /// listener are connections: as on Linux each is told of once, however many wait, and whoever takes them.
    fn is_news(&self, seen: Option<Told>) -> bool {
        self.fresh || seen.is_some_and(|seen| self.told != seen)
    }
}
