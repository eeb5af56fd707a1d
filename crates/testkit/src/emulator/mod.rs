//! The link emulator: one direction of a network path, as a value. Packets go in with the time at
//! which they do, and come out when their way is over: a queue, a transmitter with a rate, and a
//! line that delays, loses, corrupts and reorders. It reads no clock and starts nothing, so the same
//! seed and the same packets give the same outcome, in virtual time as in real time. It must never
//! hold more than its queue and its line allow, nor touch a packet that chance spared.
//!
//! ```
//! use silk_instant::Instant;
//! use silk_testkit::emulator::{Conditions, Link};
//! use std::time::Duration;
//!
//! let conditions = Conditions { delay: Duration::from_millis(10), ..Conditions::default() };
//! let mut link = Link::new(&conditions, 1);
//! link.send(Instant::ZERO, b"hello".to_vec());
//! assert_eq!(link.arrive(Instant::from_millis(9)), None);
//! assert_eq!(link.next_event(), Some(Instant::from_millis(10)));
//! assert_eq!(link.arrive(Instant::from_millis(10)), Some(b"hello".to_vec()));
//! ```

mod codel;
mod conditions;
mod fifo;
mod loss;
mod packet;
mod queue;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use silk_instant::Instant;

use crate::dice::Dice;
pub use conditions::{Conditions, Discipline};
use loss::Channel;
pub use loss::Loss;
pub use packet::Packet;
pub(crate) use packet::tag_of;
use queue::Queue;

/// Packets that a line carries at most: 100 Gb/s times 10 ms, or 1 Gb/s times 1 s, of full frames.
const LINE: usize = 100_000;

/// What became of packets. `sent + duplicated` is the sum of `arrived`, `too_long`, `overflowed`,
/// `managed`, `lost`, and those that are still under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were given to the link.
    pub sent: u64,
    /// Copies that it made of them.
    pub duplicated: u64,
    /// Longer than the link takes.
    pub too_long: u64,
    /// Dropped because the queue, or the line, was full.
    pub overflowed: u64,
    /// Dropped by CoDel.
    pub managed: u64,
    /// Lost on the line.
    pub lost: u64,
    /// Arrived, or still under way, with a bit turned over.
    pub corrupted: u64,
    /// Held back, so that others may have overtaken them.
    pub held_back: u64,
    /// Given to the receiver.
    pub arrived: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, duplicated, too_long, overflowed, managed, lost, corrupted, held_back, arrived } =
            self;
        write!(f, "sent {sent}, arrived {arrived}, too long {too_long}, lost {lost}, ")?;
        write!(f, "overflowed {overflowed}, managed {managed}, ")?;
        write!(f, "duplicated {duplicated}, corrupted {corrupted}, held back {held_back}")
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link<P = Vec<u8>> {
    conditions: Conditions,
    dice: Dice,
    queue: Queue<P>,
    /// When the transmitter has sent what it is sending.
    free_at: Instant,
    channel: Channel,
    /// On the line, by arrival and then by departure.
    line: BTreeMap<(Instant, u64), P>,
    departures: u64,
    /// When the last packet arrives that was not held back: those after it do not overtake it.
    last_due: Instant,
    counts: Counts,
}

impl<P: Packet> Link<P> {
    /// A link under `conditions`, with chance from `seed`.
    pub fn new(conditions: &Conditions, seed: u64) -> Self {
        Self {
            conditions: conditions.clone(),
            dice: Dice::new(seed),
            queue: Queue::new(conditions),
            free_at: Instant::ZERO,
            channel: Channel::new(conditions.loss),
            line: BTreeMap::new(),
            departures: 0,
            last_due: Instant::ZERO,
            counts: Counts::default(),
        }
    }

    /// A packet enters at `now`, which must not lie before an earlier call's.
    pub fn send(&mut self, now: Instant, packet: P) {
        self.transmit_until(now);
        self.counts.sent += 1;
        let length = (packet.length() - packet.tag()) as u64;
        if self.conditions.longest.is_some_and(|longest| length > longest.get()) {
            self.counts.too_long += 1;
            return;
        }
        if self.dice.falls(self.conditions.duplicate) {
            self.counts.duplicated += 1;
            self.enter(now, packet.clone());
        }
        self.enter(now, packet);
    }

    /// From now on the link takes packets of so many bytes at most: its way leads elsewhere.
    pub fn set_longest(&mut self, longest: Option<NonZeroU64>) {
        self.conditions.longest = longest;
    }

    /// The next packet that has arrived by `now`.
    pub fn arrive(&mut self, now: Instant) -> Option<P> {
        self.transmit_until(now);
        let first = self.line.first_entry().filter(|entry| entry.key().0 <= now)?;
        self.counts.arrived += 1;
        Some(first.remove())
    }

    /// When to call [`Link::arrive`] next; nothing may have arrived by then, but nothing arrives
    /// earlier. None when nothing is under way.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.line.keys().next().map(|key| key.0);
        let departure = self.queue.oldest().map(|came| came.max(self.free_at));
        arrival.into_iter().chain(departure).min()
    }

    /// How many packets wait or are under way.
    pub fn under_way(&self) -> usize {
        self.queue.len() + self.line.len()
    }

    /// What became of the packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn enter(&mut self, now: Instant, packet: P) {
        if !self.queue.push(now, packet) {
            self.counts.overflowed += 1;
        }
        self.transmit_until(now);
    }

    /// Does what the transmitter did until `now`, at the times at which it did.
    fn transmit_until(&mut self, now: Instant) {
        while let Some(start) = self.queue.oldest().map(|came| came.max(self.free_at))
            && start <= now
        {
            let left = self.queue.pop(start);
            self.counts.managed += left.dropped;
            if let Some(packet) = left.packet {
                self.free_at = start + occupies(packet.length(), self.conditions.rate);
                self.depart(self.free_at, packet);
            }
        }
    }

    /// The last bit of a packet is on the line.
    fn depart(&mut self, now: Instant, mut packet: P) {
        if self.channel.loses(&mut self.dice) {
            self.counts.lost += 1;
            return;
        }
        if self.line.len() >= LINE {
            self.counts.overflowed += 1;
            return;
        }
        if self.dice.falls(self.conditions.corrupt) {
            let bit = self.dice.below(packet.length() as u64 * 8) as usize;
            if packet.length() > 0 {
                packet.turn_over(bit);
                self.counts.corrupted += 1;
            }
        }
        let due = self.due(now);
        self.departures += 1;
        self.line.insert((due, self.departures), packet);
    }

    fn due(&mut self, departure: Instant) -> Instant {
        let jitter = self.dice.within(0..=nanos(self.conditions.jitter));
        let due = departure + self.conditions.delay + Duration::from_nanos(jitter);
        if self.dice.falls(self.conditions.reorder) {
            self.counts.held_back += 1;
            let longer = self.dice.within(0..=nanos(self.conditions.reorder_by));
            return due.max(self.last_due) + Duration::from_nanos(longer);
        }
        self.last_due = self.last_due.max(due);
        self.last_due
    }
}

/// How long a packet occupies the transmitter, rounded up, so that the rate is never exceeded.
fn occupies(len: usize, rate: Option<NonZeroU64>) -> Duration {
    let nanos = rate.map_or(0, |rate| (len as u128 * 8_000_000_000).div_ceil(u128::from(rate.get())));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
