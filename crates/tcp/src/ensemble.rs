//! What connections to one peer share of what they find out about the way there (RFC 9040 §6 and §7, temporal
//! and ensemble sharing; the aggregate is the macroflow of RFC 3124).
//!
//! Every connection finds out anew how much a path takes, in slow start, although the one before it knew.
//! Here all connections to a peer are added up. What they had outstanding together and what then arrived
//! without a loss is *proven*. A connection whose text is more than its window takes begins with what is
//! proven, less what the others have outstanding or were promised: until the first loss with twice as much, as
//! one connection in slow start would, and then with seven tenths. A loss leaves nothing proven, until a round
//! trip without; what is not proven again halves every ten seconds, for the path may have changed. From there slow
//! start goes on; that it should end there (a shared ssthresh) took longer and lost more, in virtual time.
//!
//! A connection that is kept open begins so with each of its answers, also after a rest in which its window lost its
//! meaning (RFC 5681 §4.1): as long as it lost nothing itself, and found out nothing of the path that says more than
//! this does.
//!
//! Connections that never have more than an initial window outstanding are not counted: they use, and tell,
//! nothing.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use silk_instant::Instant;

use crate::agree::initial_window;
use crate::congestion::{Congestion, MAX_WINDOW};
use crate::connection::Connection;
use crate::isn::IsnSecret;
use crate::table::Table;

/// The most peers that something is known of.
const PEERS: usize = 4096;
/// What is proven halves in this time.
const HALF: Duration = Duration::from_secs(10);
/// The part of it that new connections may use where something was lost (RFC 9438 §4.6).
const BETA: (u64, u64) = (7, 10);
/// After so many halves nothing is left that is worth to be known.
const HALVES: u32 = 8;
/// Peers looked at to make room, each time room is needed.
const SEARCH: usize = 4;
/// No member, no peer.
const NONE: u32 = u32::MAX;

/// What is known of the way to a peer.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Members.
    members: u32,
    /// Octets that they have outstanding, all together.
    outstanding: u64,
    /// Octets that new ones were promised and have not sent.
    promised: u64,
    /// Octets that were outstanding and all arrived.
    proven: u64,
    /// When that was so last.
    when: Instant,
    /// Nothing was lost yet.
    slow_start: bool,
    /// The round: what was outstanding when it began, and how much of it has not arrived yet.
    round: u64,
    left: u64,
}

impl Way {
    const fn new(now: Instant) -> Self {
        Self {
            members: 0,
            outstanding: 0,
            promised: 0,
            proven: 0,
            when: now,
            slow_start: true,
            round: 0,
            left: 0,
        }
    }

    /// What is still taken for proven.
    fn proven(&self, now: Instant) -> u64 {
        let halves = (now - self.when).as_secs() / HALF.as_secs();
        if halves < HALVES.into() { self.proven >> halves } else { 0 }
    }

    /// What a member may have outstanding that has, and was promised, so much of it all already.
    fn room(&self, now: Instant, own: u64) -> u32 {
        let proven = self.proven(now);
        let fits = if self.slow_start { 2 * proven } else { proven * BETA.0 / BETA.1 };
        let others = (self.outstanding + self.promised).saturating_sub(own);
        fits.saturating_sub(others).min(MAX_WINDOW.into()) as u32
    }

    /// So much has arrived; `before` was outstanding until then.
    fn arrived(&mut self, now: Instant, octets: u32, before: u64) {
        if self.left == 0 {
            (self.round, self.left) = (before, before);
        }
        self.left = self.left.saturating_sub(octets.into());
        if self.left == 0 && self.round >= self.proven(now) {
            (self.proven, self.when) = (self.round, now);
        }
    }

    /// Something was lost: what has arrived says nothing of what fits now.
    fn lost(&mut self) {
        (self.proven, self.round, self.left, self.slow_start) = (0, 0, 0, false);
    }
}

/// What was last seen of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Octets outstanding.
    outstanding: u32,
    /// Octets that were acknowledged and that were taken for lost, ever, modulo 2³².
    acknowledged: u32,
    lost: u32,
}

impl Seen {
    fn of(connection: &Connection) -> Self {
        Self {
            outstanding: connection.octets_outstanding(),
            acknowledged: connection.octets_acknowledged(),
            lost: connection.octets_lost(),
        }
    }
}

/// A connection of an ensemble.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its way; in a free entry the next free one.
    way: u32,
    seen: Seen,
    /// What is left of what it was promised.
    promise: u32,
}

/// Names a connection's entry among the members, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(u32);

impl Member {
    /// None.
    pub const NONE: Self = Self(NONE);

    /// Whether the connection is a member.
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}

impl Connection {
    /// Whether this much text is more than the window takes, where that may be a larger one: little is outstanding,
    /// and nothing was ever lost.
    pub fn outgrows_window(&self, now: Instant, octets: usize) -> bool {
        !self.outgrows_initial_window()
            && self.octets_lost() == 0
            && self.state.is_synchronized()
            && octets > self.window_after_rest(now) as usize
    }

    /// The window, as it will be once it is used.
    fn window_after_rest(&self, now: Instant) -> u32 {
        let window = self.congestion.window();
        if self.has_rested(now) { window.min(self.initial_window()) } else { window }
    }

    /// Begins, or begins again, with this window, if it is larger and nothing speaks against it. How much of it may
    /// still be sent; 0 where it does not.
    // RFC 5681 §3.1: a SYN that was lost leaves one segment.
    fn begin_with(&mut self, now: Instant, window: u32) -> u32 {
        let (smooth, least) = (self.rto.srtt(), self.recovery.rack.min_rtt());
        // The smoothed one has what waited in the path's queue in it.
        let round_trip = if least.is_zero() { smooth } else { least };
        let known = !self.syn_lost && !smooth.is_zero();
        if !known || window <= self.window_after_rest(now) || !self.congestion.begin(window, round_trip) {
            return 0;
        }
        // The rest is over, and takes nothing of this window.
        self.snd.last_sent = now;
        window.saturating_sub(self.octets_outstanding())
    }

    fn octets_acknowledged(&self) -> u32 {
        self.counters.octets_acked as u32
    }

    fn octets_lost(&self) -> u32 {
        self.recovery.lost_ever()
    }

    /// Whether more is outstanding than an initial window.
    pub fn outgrows_initial_window(&self) -> bool {
        self.octets_outstanding() > self.initial_window()
    }

    fn initial_window(&self) -> u32 {
        initial_window(self.limits.initial_window.into(), self.snd.mss)
    }
}

/// The ensembles of one host's connections, by peer. Bounded, but for the members, which are connections.
#[derive(Debug)]
pub struct Ensembles {
    ways: Table<IpAddr, Way>,
    members: Vec<Entry>,
    free: u32,
}

impl Ensembles {
    /// Nobody yet. The secret keeps outsiders from filling one bucket.
    pub fn new(secret: IsnSecret) -> Self {
        Self { ways: Table::new(secret, PEERS, 1), members: Vec::new(), free: NONE }
    }

    /// The text of a connection to `peer` is more than its window takes: it begins with what is proven to
    /// fit, and is a member from then on, if anything is known of the peer.
    pub fn begin(&mut self, now: Instant, peer: IpAddr, connection: &mut Connection, member: &mut Member) {
        if !member.is_some() {
            let Some(at) = self.ways.find(&peer) else { return };
            *member = self.join(at, Seen::of(connection));
        }
        let Some(entry) = self.members.get(member.0 as usize) else { return };
        let Some((_, way)) = self.ways.get(entry.way) else { return };
        let own = u64::from(entry.seen.outstanding) + u64::from(entry.promise);
        let promise = connection.begin_with(now, way.room(now, own));
        if promise > 0 {
            self.promise(*member, promise);
        }
    }

    /// What a member may send now, before anything of it has arrived.
    fn promise(&mut self, member: Member, octets: u32) {
        let Some(entry) = self.members.get_mut(member.0 as usize) else { return };
        let before = core::mem::replace(&mut entry.promise, octets);
        if let Some(way) = self.ways.get_mut(entry.way) {
            way.promised = way.promised - u64::from(before) + u64::from(octets);
        }
    }

    /// What has become of a connection since. One that is no member becomes one, if there is room.
    pub fn follow(&mut self, now: Instant, peer: IpAddr, connection: &Connection, member: &mut Member) {
        let seen = Seen::of(connection);
        if !member.is_some() {
            let Some(at) = self.ways.find(&peer).or_else(|| self.make_way(now, peer)) else { return };
            *member = self.join(at, seen);
        }
        self.see(now, *member, seen);
    }

    /// The connection is over.
    pub fn leave(&mut self, member: Member) {
        let Some(entry) = self.members.get_mut(member.0 as usize) else { return };
        let left = *entry;
        entry.way = core::mem::replace(&mut self.free, member.0);
        if let Some(way) = self.ways.get_mut(left.way) {
            way.members -= 1;
            way.outstanding -= u64::from(left.seen.outstanding);
            way.promised -= u64::from(left.promise);
        }
    }

    fn see(&mut self, now: Instant, member: Member, seen: Seen) {
        let Some(entry) = self.members.get_mut(member.0 as usize) else { return };
        let Some(way) = self.ways.get_mut(entry.way) else { return };
        let before = core::mem::replace(&mut entry.seen, seen);
        let arrived = seen.acknowledged.wrapping_sub(before.acknowledged);
        let sent = (seen.outstanding.wrapping_sub(before.outstanding)).wrapping_add(arrived);
        // A promise is for the first round trip.
        let kept = if arrived > 0 { 0 } else { entry.promise.saturating_sub(sent) };
        way.promised -= u64::from(core::mem::replace(&mut entry.promise, kept) - kept);
        let outstanding = way.outstanding;
        way.outstanding = outstanding - u64::from(before.outstanding) + u64::from(seen.outstanding);
        if seen.lost != before.lost {
            way.lost();
        } else if arrived > 0 {
            way.arrived(now, arrived, outstanding);
            let (at, until) = (entry.way, now + HALF * HALVES);
            self.ways.reschedule(at, 0, until);
        }
    }

    /// One more member. What it did before nobody has seen.
    fn join(&mut self, at: u32, seen: Seen) -> Member {
        let entry = Entry { way: at, seen: Seen { outstanding: 0, ..seen }, promise: 0 };
        let member = match self.members.get_mut(self.free as usize) {
            Some(vacant) => {
                let next = core::mem::replace(vacant, entry).way;
                core::mem::replace(&mut self.free, next)
            }
            None => {
                self.members.push(entry);
                (self.members.len() - 1) as u32
            }
        };
        if let Some(way) = self.ways.get_mut(at) {
            way.members += 1;
        }
        Member(member)
    }

    /// A peer that nothing is known of, if there is room or one that can be forgotten.
    fn make_way(&mut self, now: Instant, peer: IpAddr) -> Option<u32> {
        let until = now + HALF * HALVES;
        for _ in 0..SEARCH {
            let Some((oldest, due)) = self.ways.first() else { break };
            if due > now && !self.ways.is_full() {
                break;
            }
            if self.ways.get(oldest).is_some_and(|(_, way)| way.members == 0) {
                self.ways.remove(oldest);
            } else {
                self.ways.reschedule(oldest, 0, until);
            }
        }
        self.ways.insert(peer, Way::new(now), 0, until)
    }
}

#[cfg(test)]
#[path = "ensemble_tests.rs"]
mod tests;
