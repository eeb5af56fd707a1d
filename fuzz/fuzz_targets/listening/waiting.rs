//! The table of connections in TIME-WAIT beside a plain model of it: who is in it, and until when.

use super::{Key, check_options};
use silk_instant::Instant;
use silk_tcp::time_wait::{TimeWait, TimeWaitAction, TimeWaitTable};
use silk_tcp::{Config, Flags, IsnSecret, Segment, SeqNumber};
use std::time::Duration;

/// Connections that are over, oldest first.
pub struct Waiting {
    table: TimeWaitTable<Key>,
    entries: Vec<Entry>,
    capacity: usize,
    lasts: Duration,
}

struct Entry {
    key: Key,
    /// What the table was given.
    left: TimeWait,
    /// A SYN was challenged.
    challenged: bool,
    /// The ends of what was sent, and of what was received.
    ends: (SeqNumber, SeqNumber),
    until: Instant,
}

/// How far above its last number a new incarnation begins.
const GAP: u32 = (1 << 16) + 1;

impl Waiting {
    pub fn new(config: &Config, secret: IsnSecret, capacity: usize) -> Self {
        let table = TimeWaitTable::new(secret, capacity, config);
        Self { table, entries: Vec::new(), capacity, lasts: config.time_wait }
    }

    fn take(&mut self, key: Key) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// A connection has sent and received up to `ends`.
    pub fn insert(&mut self, now: Instant, key: Key, left: TimeWait, ends: (SeqNumber, SeqNumber)) {
        self.take(key);
        let full = self.entries.len() == self.capacity;
        let oldest = full.then(|| self.entries.remove(0).key);
        assert_eq!(self.table.insert(now, key, left), oldest, "the oldest goes");
        self.entries.push(Entry { key, left, challenged: false, ends, until: now + self.lasts });
        self.check();
    }

    pub fn on_segment(&mut self, now: Instant, key: Key, seg: &Segment) -> TimeWaitAction {
        let action = self.table.on_segment(now, &key, seg);
        let ends = self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.ends);
        match (&action, ends) {
            (TimeWaitAction::Absent, None) | (TimeWaitAction::Drop(_), Some(_)) => {}
            (TimeWaitAction::Ack(header), Some((sent, received))) => {
                assert!(!seg.flags.rst(), "a reset is never answered");
                assert_eq!((header.flags, header.seq, header.ack), (Flags::ACK, sent, received));
                check_options(&header.options);
                let entry = self.entries.iter_mut().find(|entry| entry.key == key).expect("it is there");
                entry.challenged |= seg.flags.syn() && !seg.flags.ack();
                if seg.flags.fin() && seg.end() == received && !entry.left.is_old(seg, now) {
                    let entry = self.take(key).expect("it is there");
                    self.entries.push(Entry { until: now + self.lasts, ..entry });
                }
            }
            (TimeWaitAction::Ended, Some((_, received))) => {
                assert!(seg.flags.rst() && seg.seq == received);
                assert!(
                    self.take(key).expect("it is there").challenged,
                    "a reset ends it only if it was asked for"
                );
            }
            (TimeWaitAction::Reuse { iss_floor }, Some((sent, _))) => {
                assert!(seg.flags.syn() && !seg.flags.ack());
                assert_eq!(*iss_floor, sent + GAP);
                self.take(key);
            }
            (action, _) => panic!("{action:?}"),
        }
        self.check();
        action
    }

    /// Our side opens anew.
    pub fn reopen(&mut self, key: Key) -> Option<SeqNumber> {
        let floor = self.table.reopen(&key);
        assert_eq!(floor, self.take(key).map(|entry| entry.ends.0 + GAP));
        self.check();
        floor
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.poll_timeout()
    }

    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(key) = self.table.on_timeout(now) {
            let entry = self.entries.remove(0);
            assert!(entry.key == key && entry.until <= now);
        }
        self.check();
        assert!(self.entries.first().is_none_or(|entry| entry.until > now));
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.entries.len());
        assert!(self.entries.iter().all(|entry| self.table.contains(&entry.key)));
        assert_eq!(self.table.poll_timeout(), self.entries.first().map(|entry| entry.until));
        let slots = self.capacity.next_power_of_two().max(4);
        assert!(self.table.memory() <= slots * 128 + 64, "{} bytes", self.table.memory());
    }
}
