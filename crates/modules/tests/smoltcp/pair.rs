//! Silk's host and smoltcp's, and the cable between them: from event to event until nothing is left to
//! happen.

use core::time::Duration;
use std::collections::VecDeque;

use silk_instant::Instant;
use silk_path::Event;
use silk_tcp::Config;
use silk_testkit::emulator::Conditions;
use smoltcp::socket::tcp::State;

use crate::ours::{self, Ours};
use crate::peer::{self, Peer, Terms};
use crate::wire::Wire;

/// Longer than asking whether an IPv6 address is free.
const SETTLING: Duration = Duration::from_secs(2);

/// Where who listens does, and from where the other connects.
pub const PORT: u16 = 80;
pub const FROM: u16 = 5000;

/// Who connects and who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Connects,
    Listens,
    /// Both connect, at the same moment.
    Meets,
}

pub struct Pair {
    pub now: Instant,
    pub ours: Ours,
    pub peer: Peer,
    to_peer: Wire,
    to_ours: Wire,
    /// Frames that silk sent, when they are looked at.
    pub sent: Vec<(Instant, Vec<u8>)>,
}

impl Pair {
    /// Both hosts, the way from silk first; nobody has said a word yet.
    pub fn over(config: &Config, terms: &Terms, ways: &[Conditions; 2], seed: u64) -> Self {
        let mut ours = Ours::new(config);
        // Whether its addresses are free it asks on an empty cable.
        ours.act(Instant::ZERO + SETTLING);
        let now = ours.host.world.now;
        let peer = Peer::new(terms, seed, now);
        let (to_peer, to_ours) = (Wire::new(&ways[0], seed), Wire::new(&ways[1], seed ^ 0xABCD));
        Self { now, ours, peer, to_peer, to_ours, sent: vec![] }
    }

    /// Both hosts on a line of five milliseconds that loses nothing.
    pub fn fair(config: &Config, terms: &Terms) -> Self {
        let way = Conditions { delay: Duration::from_millis(5), ..Conditions::default() };
        Self::over(config, terms, &[way.clone(), way], 1)
    }

    /// Opens a connection, silk in this role.
    pub fn open(&mut self, role: Role, six: bool) {
        match role {
            Role::Connects => {
                self.peer.tcp().listen(PORT).expect("an unused socket");
                self.ours.connect(FROM, ours::at(peer::NUMBER, six, PORT));
            }
            Role::Listens => {
                self.ours.listen(six, PORT);
                self.peer.connect(ours::address(ours::NUMBER, six, PORT), FROM);
            }
            Role::Meets => {
                self.peer.connect(ours::address(ours::NUMBER, six, FROM), PORT);
                self.ours.connect(FROM, ours::at(peer::NUMBER, six, PORT));
            }
        }
    }

    /// A connection between hosts on a fair line.
    pub fn connected(role: Role, six: bool, terms: &Terms) -> Self {
        let mut pair = Self::fair(&Config::default(), terms);
        pair.open(role, six);
        pair.until(Duration::from_secs(10), |pair| {
            pair.ours.saw(Event::Connected) && pair.peer.state() == State::Established
        });
        pair.sent.clear();
        pair
    }

    /// The cable is cut.
    pub fn cut(&mut self) {
        (self.to_peer.cut, self.to_ours.cut) = (true, true);
    }

    /// Lets both hosts act at this moment.
    fn settle(&mut self) {
        for frame in self.ours.act(self.now) {
            self.sent.push((self.now, frame.clone()));
            self.to_peer.send(self.now, frame);
        }
        for frame in self.peer.act(self.now) {
            self.to_ours.send(self.now, frame);
        }
    }

    fn next_event(&mut self) -> Option<Instant> {
        let arrivals = [self.to_peer.next_event(), self.to_ours.next_event()];
        let timeouts = [self.ours.next_timeout(), self.peer.next_timeout(self.now)];
        arrivals.into_iter().chain(timeouts).flatten().min()
    }

    /// Goes to the next event; false when there is none before `end`.
    fn step(&mut self, end: Instant) -> bool {
        self.settle();
        let Some(next) = self.next_event().filter(|next| *next <= end) else { return false };
        // smoltcp may say "at once" of what waits for something else; time passes all the same.
        self.now = next.max(self.now + Duration::from_micros(1));
        while let Some(frame) = self.to_peer.arrive(self.now) {
            self.peer.arrive(frame);
        }
        self.ours.host.advance(self.now - self.ours.host.world.now);
        while let Some(frame) = self.to_ours.arrive(self.now) {
            self.ours.host.arrive(&frame);
        }
        true
    }

    /// Runs for this long.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Runs until something holds, which must be within `limit`.
    pub fn until(&mut self, limit: Duration, holds: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !holds(self) {
            let goes_on = self.step(end);
            assert!(goes_on || holds(self), "not after {limit:?}: {}", self.describe());
        }
    }

    pub fn describe(&self) -> String {
        let (ours, peer) = (&self.ours, &self.peer);
        format!(
            "at {}: silk {:?}, ended {:?}, last told {:?}, dropped {:?}, {} read, {} to write; \
             smoltcp {:?}, {} read, {} to write",
            self.now,
            ours.info(),
            ours.ended,
            ours.events.last(),
            ours.drops(),
            ours.program.received.len(),
            ours.program.to_write.len(),
            peer.state(),
            peer.program.received.len(),
            peer.program.to_write.len(),
        )
    }
}

/// Octets with a pattern that shows any shift.
pub fn pattern(len: usize, salt: u8) -> VecDeque<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8).wrapping_add(salt)).collect()
}
