//! TIME-WAIT without a connection (RFC 9293 §3.4.2, §3.6.1): enough is remembered of an ended
//! connection to acknowledge its peer's last FIN again and to tell its old segments from a new
//! incarnation's SYN. The table is bounded; when it is full the entry nearest to its end goes. A
//! reset does not end TIME-WAIT (RFC 1337 §3), but for the one that a challenge of ours has asked for.

use core::hash::Hash;
use core::time::Duration;

use silk_instant::Instant;

use crate::challenge::Challenges;
use crate::config::Config;
use crate::connection::Connection;
use crate::isn::IsnSecret;
use crate::options::Options;
use crate::progress::DropReason;
use crate::segment::{Flags, Header, Segment};
use crate::seq::SeqNumber;
use crate::stamps::{Timestamps, stamp_before};
use crate::table::Table;

/// What is remembered of a connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub struct TimeWait {
    snd_nxt: SeqNumber,
    rcv_nxt: SeqNumber,
    /// The window field as last advertised.
    window: u16,
    /// A SYN was challenged: a peer that has started anew answers with a reset, and sends its SYN again (RFC 5961 §4.2).
    challenged: bool,
    stamps: Timestamps,
    challenges: Challenges,
}

impl TimeWait {
    pub(crate) fn new(connection: &Connection) -> Self {
        let window = connection.rcv.window() >> connection.rcv.shift;
        Self {
            snd_nxt: connection.snd.nxt,
            rcv_nxt: connection.rcv.nxt,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            challenged: false,
            stamps: connection.stamps,
            challenges: Challenges::new(),
        }
    }

    /// Whether a SYN belongs to a new incarnation for certain (RFC 6191 §2, RFC 9293 §3.6.1).
    // RFC 9293 SHLD-4.
    fn may_be_reused_by(&self, seg: &Segment, timestamps: bool) -> bool {
        let later = seg.seq.after(self.rcv_nxt);
        match seg.options.timestamp {
            Some((value, _)) if self.stamps.on => {
                stamp_before(self.stamps.recent, value) || (value == self.stamps.recent && later)
            }
            // Only the new one will have timestamps.
            Some(_) if timestamps => true,
            _ => later,
        }
    }

    /// A new incarnation's ISN must come after everything the old one sent, whatever of it is still
    /// under way.
    fn iss_floor(&self) -> SeqNumber {
        self.snd_nxt + (1 << 16) + 1
    }

    /// Whether a segment is a late one of before, by its timestamp.
    // RFC 7323 §5.3.
    pub fn is_old(&self, seg: &Segment, now: Instant) -> bool {
        self.stamps.on && seg.options.timestamp.is_some_and(|(value, _)| self.stamps.is_old(value, now))
    }

    fn acknowledgement(&self, now: Instant) -> Header {
        let options = Options { timestamp: self.stamps.option(now), ..Options::default() };
        Header {
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: Flags::ACK,
            window: self.window,
            urgent: 0,
            options,
        }
    }
}

/// What a segment for a connection in TIME-WAIT leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeWaitAction {
    /// Send this acknowledgement.
    Ack(Header),
    /// A new incarnation: the entry is gone. Hand the SYN to the listener with this floor for its
    /// ISN.
    Reuse {
        /// The least ISN for the new incarnation.
        iss_floor: SeqNumber,
    },
    /// The peer has started anew, as its answer to our challenge says: the entry is gone, and it will send its SYN again.
    Ended,
    /// Nothing is to be done.
    Drop(DropReason),
    /// No such connection is in TIME-WAIT.
    Absent,
}

/// Connections in TIME-WAIT. `K` names a connection: its addresses and ports.
#[derive(Debug)]
pub struct TimeWaitTable<K> {
    entries: Table<K, TimeWait>,
    /// Twice the maximum segment lifetime.
    lasts: Duration,
    /// New connections have timestamps, where the peer offers them.
    timestamps: bool,
}

impl<K: Hash + Eq + Copy> TimeWaitTable<K> {
    /// A table of at most `capacity` connections, each remembered for as long as `config` says (2 MSL).
    pub fn new(secret: IsnSecret, capacity: usize, config: &Config) -> Self {
        let entries = Table::new(secret, capacity, 1);
        Self { entries, lasts: config.time_wait, timestamps: config.timestamps }
    }

    /// How many connections are in TIME-WAIT.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this connection is in TIME-WAIT.
    pub fn contains(&self, key: &K) -> bool {
        self.entries.find(key).is_some()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.entries.memory()
    }

    /// TIME-WAIT begins. Answers the connection that had to be forgotten for it, if the table was
    /// full.
    pub fn insert(&mut self, now: Instant, key: K, connection: TimeWait) -> Option<K> {
        if let Some(at) = self.entries.find(&key) {
            self.entries.remove(at);
        }
        let evicted = if self.entries.is_full() { self.forget_first() } else { None };
        self.entries.insert(key, connection, 0, now + self.lasts);
        evicted
    }

    fn forget_first(&mut self) -> Option<K> {
        let (at, _) = self.entries.first()?;
        self.entries.remove(at).map(|entry| entry.0)
    }

    /// Our side opens a connection anew: it is forgotten before its time. Answers the least ISN of the new incarnation
    /// ([`Connection::connect_again`]), if it was there.
    // RFC 9293 MUST-13.
    pub fn reopen(&mut self, key: &K) -> Option<SeqNumber> {
        let at = self.entries.find(key)?;
        self.entries.remove(at).map(|(_, entry)| entry.iss_floor())
    }

    /// Takes a segment (RFC 9293 §3.10.7.4 for TIME-WAIT).
    pub fn on_segment(&mut self, now: Instant, key: &K, seg: &Segment) -> TimeWaitAction {
        let Some(at) = self.entries.find(key) else { return TimeWaitAction::Absent };
        let Some(entry) = self.entries.get_mut(at) else { return TimeWaitAction::Absent };
        if seg.flags.rst() {
            if entry.challenged && seg.seq == entry.rcv_nxt {
                self.entries.remove(at);
                return TimeWaitAction::Ended;
            }
            return TimeWaitAction::Drop(DropReason::ResetInTimeWait);
        }
        if seg.flags.without(Flags::ECE | Flags::CWR) == Flags::SYN
            && entry.may_be_reused_by(seg, self.timestamps)
        {
            let iss_floor = entry.iss_floor();
            self.entries.remove(at);
            return TimeWaitAction::Reuse { iss_floor };
        }
        if seg.sequence_len() == 0 && seg.seq == entry.rcv_nxt {
            return TimeWaitAction::Drop(DropReason::InTimeWait);
        }
        if !entry.challenges.allow(now) {
            return TimeWaitAction::Drop(DropReason::InTimeWait);
        }
        entry.challenged |= seg.flags.syn() && !seg.flags.ack();
        let action = TimeWaitAction::Ack(entry.acknowledgement(now));
        if seg.flags.fin() && seg.end() == entry.rcv_nxt && !entry.is_old(seg, now) {
            self.entries.reschedule(at, 0, now + self.lasts);
        }
        action
    }

    /// When [`TimeWaitTable::on_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.entries.first().map(|first| first.1)
    }

    /// A connection whose TIME-WAIT is over; call it until it answers `None`.
    pub fn on_timeout(&mut self, now: Instant) -> Option<K> {
        let at = self.entries.due(now)?;
        self.entries.remove(at).map(|entry| entry.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepoint::Codepoint;

    const NOW: Instant = Instant::from_millis(5_000);
    const LASTS: Duration = Duration::from_secs(60);

    /// A connection that sent up to 1000 and received up to 2000, the last timestamp being 77.
    fn entry(timestamps: bool) -> TimeWait {
        let mut stamps = Timestamps::new(timestamps, 0);
        stamps.set(NOW, 77);
        let (snd_nxt, rcv_nxt) = (SeqNumber::new(1_000), SeqNumber::new(2_000));
        TimeWait { snd_nxt, rcv_nxt, window: 9, challenged: false, stamps, challenges: Challenges::new() }
    }

    fn table(timestamps: bool) -> TimeWaitTable<u8> {
        let mut table = TimeWaitTable::new(IsnSecret::new([1, 2]), 2, &Config::default());
        table.insert(NOW, 1, entry(timestamps));
        table
    }

    fn seg(flags: Flags, seq: u32, timestamp: Option<u32>) -> Segment<'static> {
        let options = Options { timestamp: timestamp.map(|value| (value, 0)), ..Options::default() };
        let (seq, ack) = (SeqNumber::new(seq), SeqNumber::new(1_000));
        Segment { seq, ack, flags, window: 0, urgent: 0, ecn: Codepoint::NotEct, options, payload: &[] }
    }

    fn reused(timestamps: bool, seq: u32, timestamp: Option<u32>) -> bool {
        let action = table(timestamps).on_segment(NOW, &1, &seg(Flags::SYN, seq, timestamp));
        action == TimeWaitAction::Reuse { iss_floor: SeqNumber::new(66_537) }
    }

    #[test]
    fn a_repeated_fin_is_acknowledged_and_restarts_the_wait() {
        let mut table = table(true);
        let later = NOW + Duration::from_secs(59);
        let action = table.on_segment(later, &1, &seg(Flags::FIN | Flags::ACK, 1_999, Some(78)));
        let TimeWaitAction::Ack(header) = action else { panic!("{action:?}") };
        assert_eq!((header.seq.raw(), header.ack.raw(), header.flags), (1_000, 2_000, Flags::ACK));
        assert_eq!(table.poll_timeout(), Some(later + LASTS));
    }

    // RFC 6191 §2.
    #[test]
    fn a_syn_with_a_newer_timestamp_reuses_the_ports_at_any_number() {
        assert!(reused(true, 5, Some(78)));
        assert!(!reused(true, 5, Some(77)) && !reused(true, 5_000, Some(76)));
        assert!(reused(true, 2_001, Some(77)));
    }

    // RFC 6191 §2.
    #[test]
    fn without_timestamps_a_syn_must_come_after_the_old_numbers() {
        assert!(reused(false, 2_001, None) && !reused(false, 2_000, None));
        assert!(reused(true, 2_001, None) && !reused(true, 1_500, None));
        assert!(reused(false, 5, Some(1)));
        // Nor does a timestamp help that the new connection will not have.
        let config = Config { timestamps: false, ..Config::default() };
        let mut table = TimeWaitTable::new(IsnSecret::new([1, 2]), 2, &config);
        table.insert(NOW, 1, entry(false));
        let action = table.on_segment(NOW, &1, &seg(Flags::SYN, 5, Some(1)));
        assert!(matches!(action, TimeWaitAction::Ack(_)), "{action:?}");
    }

    // RFC 7323 §5.3.
    #[test]
    fn a_fin_with_an_old_timestamp_is_acknowledged_and_restarts_nothing() {
        let mut table = table(true);
        let until = table.poll_timeout();
        let later = NOW + Duration::from_secs(59);
        let old = table.on_segment(later, &1, &seg(Flags::FIN | Flags::ACK, 1_999, Some(76)));
        assert!(matches!(old, TimeWaitAction::Ack(_)), "{old:?}");
        assert_eq!(table.poll_timeout(), until);
    }

    // RFC 1337 §3.
    #[test]
    fn a_reset_and_a_bare_acknowledgement_change_nothing() {
        let mut table = table(true);
        let reset = table.on_segment(NOW, &1, &seg(Flags::RST, 2_000, None));
        assert_eq!(reset, TimeWaitAction::Drop(DropReason::ResetInTimeWait));
        let bare = table.on_segment(NOW, &1, &seg(Flags::ACK, 2_000, Some(78)));
        assert_eq!(bare, TimeWaitAction::Drop(DropReason::InTimeWait));
        assert!(table.contains(&1));
    }

    // RFC 1337 §3; RFC 5961 §4.2.
    #[test]
    fn the_reset_that_a_challenge_of_ours_asks_for_ends_the_wait() {
        let mut table = table(false);
        let challenge = table.on_segment(NOW, &1, &seg(Flags::SYN, 1_500, None));
        assert!(
            matches!(challenge, TimeWaitAction::Ack(header) if header.ack.raw() == 2_000),
            "{challenge:?}"
        );
        let elsewhere = table.on_segment(NOW, &1, &seg(Flags::RST, 1_999, None));
        assert_eq!(elsewhere, TimeWaitAction::Drop(DropReason::ResetInTimeWait));
        assert_eq!(table.on_segment(NOW, &1, &seg(Flags::RST, 2_000, None)), TimeWaitAction::Ended);
        assert_eq!(table.on_segment(NOW, &1, &seg(Flags::SYN, 1_500, None)), TimeWaitAction::Absent);
    }

    // RFC 9293 MUST-13.
    #[test]
    fn our_side_may_reopen_a_connection_above_its_old_numbers() {
        let mut table = table(true);
        let floor = table.reopen(&1).unwrap();
        assert_eq!((floor.raw(), table.reopen(&1), table.len()), (66_537, None, 0));
        let opened = |iss| {
            let connection = Connection::connect_again(&Config::default(), SeqNumber::new(iss), floor, NOW);
            (connection.snd.una.raw(), connection.stamps.offset)
        };
        // The clock of timestamps goes on as it would have.
        let offset = |iss| crate::isn::timestamp_offset(SeqNumber::new(iss), NOW);
        assert_eq!(opened(66_536), (66_537, offset(66_536)));
        assert_eq!(opened(70_000), (70_000, offset(70_000)));
    }

    #[test]
    fn answers_are_limited() {
        let mut table = table(true);
        let old = seg(Flags::ACK, 1_500, Some(78));
        let answers = (0..50).filter(|_| matches!(table.on_segment(NOW, &1, &old), TimeWaitAction::Ack(_)));
        assert_eq!(answers.count(), 10);
    }

    #[test]
    fn the_oldest_goes_when_the_table_is_full() {
        let mut table = table(true);
        assert_eq!(table.insert(NOW, 2, entry(true)), None);
        assert_eq!(table.insert(NOW, 3, entry(true)), Some(1));
        assert_eq!(table.on_segment(NOW, &1, &seg(Flags::ACK, 1, None)), TimeWaitAction::Absent);
    }

    #[test]
    fn each_is_forgotten_after_its_time() {
        let mut table = table(true);
        table.insert(NOW + Duration::from_secs(1), 2, entry(true));
        assert_eq!(table.on_timeout(NOW + Duration::from_secs(59)), None);
        let gone = [(); 3].map(|()| table.on_timeout(NOW + Duration::from_secs(61)));
        assert_eq!((gone, table.len()), ([Some(1), Some(2), None], 0));
    }
}
