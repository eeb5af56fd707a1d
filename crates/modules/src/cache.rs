//! What ARP, or ND, knows of its neighbours: bounded, and forgotten after a while. An address in use
//! is asked for again before it is forgotten; one that does not answer is not asked for again
//! at once (RFC 1122 §2.3.2.1 and RFC 4861 §7.2.2: at most once a second each).

use crate::limit::Limit;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{PathId, Resolution};
use silk_wire::MacAddr;

/// What the cache may hold and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Neighbours.
    pub entries: usize,
    /// Paths that wait for one of them.
    pub waiters: usize,
    /// How long an answer is good.
    pub fresh: Duration,
    /// Between two requests for the same address.
    pub interval: Duration,
    /// Requests until a neighbour is taken not to be there, two at least: with the last it is doubted.
    pub requests: u8,
    /// How long it is then not asked for: whoever sends meanwhile hears at once that it is not there.
    pub failed: Duration,
    /// Neighbours that have no entry yet and are asked for, in a second and at once: who forges senders could else have any number
    /// asked for, and put aside.
    pub strangers: u32,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            entries: 1024,
            waiters: 4096,
            fresh: Duration::from_secs(60),
            interval: Duration::from_secs(1),
            requests: 3,
            failed: Duration::from_secs(1),
            strangers: 1000,
        }
    }
}

#[derive(Debug)]
struct Entry {
    // The address, while it counts.
    known: Option<MacAddr>,
    // Known: until when without asking. Being asked for: when to ask again. Failed: until when.
    until: Instant,
    // Requests sent since the last answer; 0: nobody asks.
    asked: u8,
    failed: bool,
    // A request is to be sent.
    due: bool,
    // When it was last wanted: the least wanted goes first.
    wanted: Instant,
    waiters: BTreeSet<PathId>,
}

/// What is to be done about a neighbour that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Nothing yet.
    No,
    /// A request is to be sent again.
    Again,
    /// It is not asked for any more; they waited for it.
    GivenUp(BTreeSet<PathId>),
}

/// The neighbours that have not answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Silent<A> {
    /// Those that are asked for the last time now.
    pub doubted: Vec<A>,
    /// Those that are not asked for any more, each with who waited for it.
    pub given_up: Vec<(A, BTreeSet<PathId>)>,
}

/// The neighbours.
#[derive(Debug)]
pub(crate) struct Cache<A> {
    entries: BTreeMap<A, Entry>,
    limits: CacheLimits,
    strangers: Limit,
}

impl<A: Copy + Ord> Cache<A> {
    pub fn new(limits: CacheLimits) -> Self {
        let strangers = Limit::bursting(limits.strangers, limits.strangers);
        Self { entries: BTreeMap::new(), limits, strangers }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The address, and whether a request is to be sent. A path that has to wait is noted.
    pub fn lookup(&mut self, now: Instant, address: A, waiter: PathId) -> (Resolution, bool) {
        if !self.entries.contains_key(&address) && !self.strangers.take(now) {
            return (Resolution::Crowded, false);
        }
        self.make_room(address);
        let limits = self.limits;
        let entry = self.entries.entry(address).or_insert_with(|| Entry::unknown(now));
        entry.wanted = now;
        if entry.failed && now >= entry.until {
            *entry = Entry::unknown(now);
        }
        let ask = !entry.failed && entry.asked == 0 && now >= entry.until;
        if ask {
            entry.ask(now, &limits);
        }
        match entry.known {
            Some(MacAddr(link)) => (Resolution::Known(link), ask),
            None if entry.failed => (Resolution::Failed, false),
            None => {
                let noted = entry.wait(waiter, limits.waiters);
                (if noted { Resolution::Pending } else { Resolution::Crowded }, ask)
            }
        }
    }

    /// Takes an answer in for an address that is wanted, or else does nothing. Answers who
    /// waited for it.
    pub fn update(&mut self, now: Instant, address: A, link: MacAddr) -> BTreeSet<PathId> {
        let until = now + self.limits.fresh;
        let Some(entry) = self.entries.get_mut(&address) else { return BTreeSet::new() };
        let waiters = core::mem::take(&mut entry.waiters);
        *entry = Entry { known: Some(link), until, wanted: entry.wanted, ..Entry::unknown(now) };
        waiters
    }

    /// Takes in what the neighbour says of itself without being asked, which does not prove that we reach it (RFC 4861
    /// §7.2.3, §7.2.5): for an address that is wanted, where it is news, and to be asked for again when it is used. Answers who
    /// waited for it.
    pub fn hear(&mut self, now: Instant, address: A, link: MacAddr) -> BTreeSet<PathId> {
        if self.known(address) == Some(link) {
            return BTreeSet::new();
        }
        let waiters = self.update(now, address, link);
        self.doubt(now, address);
        waiters
    }

    /// As [`Self::hear`], for an address nobody may have wanted yet.
    pub fn tell(&mut self, now: Instant, address: A, link: MacAddr) -> BTreeSet<PathId> {
        self.make_room(address);
        self.entries.entry(address).or_insert_with(|| Entry::unknown(now));
        self.hear(now, address, link)
    }

    /// What is known of the address is used, but asked for again when it is, if it is not already.
    pub fn doubt(&mut self, now: Instant, address: A) {
        let sure = |entry: &&mut Entry| entry.known.is_some() && entry.asked == 0;
        if let Some(entry) = self.entries.get_mut(&address).filter(sure) {
            entry.until = now;
        }
    }

    /// As [`Self::update`], for an address nobody may have wanted yet.
    pub fn learn(&mut self, now: Instant, address: A, link: MacAddr) -> BTreeSet<PathId> {
        self.make_room(address);
        self.entries.entry(address).or_insert_with(|| Entry::unknown(now));
        self.update(now, address, link)
    }

    /// The neighbour is not there. Answers who waited for it.
    pub fn fail(&mut self, now: Instant, address: A) -> BTreeSet<PathId> {
        let until = now + self.limits.failed;
        let Some(entry) = self.entries.get_mut(&address) else { return BTreeSet::new() };
        entry.fail(until)
    }

    /// Asks again what has not been answered, and gives up what never will be.
    pub fn expire(&mut self, now: Instant) -> Silent<A> {
        let (limits, mut silent) = (self.limits, Silent { doubted: Vec::new(), given_up: Vec::new() });
        for (address, entry) in &mut self.entries {
            match entry.expire(now, &limits) {
                Overdue::No => {}
                Overdue::Again => {
                    silent.doubted.extend((entry.asked == limits.requests).then_some(*address));
                }
                Overdue::GivenUp(waiters) => silent.given_up.push((*address, waiters)),
            }
        }
        silent
    }

    /// The same of one address, for whoever needs it now: where others ask, nobody's timer does it.
    pub fn expire_one(&mut self, now: Instant, address: A) -> Overdue {
        let limits = self.limits;
        self.entries.get_mut(&address).map_or(Overdue::No, |entry| entry.expire(now, &limits))
    }

    /// An address that a request is to be sent for now, and where it was last known to be. The last request is
    /// everybody's: the neighbour may have moved, and where it was nobody answers. One that had to wait is answered later, too.
    pub fn next_request(&mut self, now: Instant) -> Option<(A, Option<MacAddr>)> {
        let CacheLimits { requests: last, interval, .. } = self.limits;
        let (address, entry) = self.entries.iter_mut().find(|(_, entry)| entry.due)?;
        entry.due = false;
        entry.until = now + interval;
        Some((*address, entry.known.filter(|_| entry.asked < last)))
    }

    /// The link address, where one is known.
    pub fn known(&self, address: A) -> Option<MacAddr> {
        self.entries.get(&address)?.known
    }

    /// When [`Self::expire`] has something to do.
    pub fn deadline(&self) -> Instant {
        let asking = self.entries.values().filter(|entry| entry.asked > 0);
        asking.map(|entry| entry.until).min().unwrap_or(Instant::FAR)
    }

    /// Makes room for `address` by forgetting the neighbour least wanted: one of those that have not answered, if there are any.
    fn make_room(&mut self, address: A) {
        if self.entries.len() < self.limits.entries || self.entries.contains_key(&address) {
            return;
        }
        let least = self.entries.iter().min_by_key(|(_, entry)| (entry.known.is_some(), entry.wanted));
        let least = least.map(|(address, _)| *address);
        if let Some(least) = least {
            self.entries.remove(&least);
        }
    }
}

impl Entry {
    fn unknown(now: Instant) -> Self {
        Self {
            known: None,
            until: now,
            asked: 0,
            failed: false,
            due: false,
            wanted: now,
            waiters: BTreeSet::new(),
        }
    }

    fn ask(&mut self, now: Instant, limits: &CacheLimits) {
        self.asked += 1;
        self.due = true;
        self.until = now + limits.interval;
    }

    /// Asks again when it is time, or gives up.
    fn expire(&mut self, now: Instant, limits: &CacheLimits) -> Overdue {
        match self.asked {
            0 => Overdue::No,
            _ if self.until > now => Overdue::No,
            asked if asked < limits.requests => {
                self.ask(now, limits);
                Overdue::Again
            }
            _ => Overdue::GivenUp(self.fail(now + limits.failed)),
        }
    }

    fn fail(&mut self, until: Instant) -> BTreeSet<PathId> {
        let waiters = core::mem::take(&mut self.waiters);
        *self = Self {
            known: None,
            until,
            asked: 0,
            failed: true,
            due: false,
            wanted: self.wanted,
            waiters: BTreeSet::new(),
        };
        waiters
    }

    /// Notes who waits, once; whether it could.
    fn wait(&mut self, waiter: PathId, most: usize) -> bool {
        let noted = self.waiters.contains(&waiter);
        noted || self.waiters.len() < most && self.waiters.insert(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use core::net::Ipv4Addr;

    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const LINK: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn path(index: u32) -> PathId {
        PathId { index, generation: 0 }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1000 * seconds)
    }

    #[test]
    fn an_unknown_neighbour_is_asked_for_once_a_second_and_given_up() {
        let mut cache = Cache::new(CacheLimits::default());
        assert_eq!(cache.lookup(at(0), THERE, path(1)), (Resolution::Pending, true));
        assert_eq!(cache.lookup(at(0), THERE, path(2)), (Resolution::Pending, false));
        let mut requests = 0;
        for second in 0..3 {
            requests += u32::from(cache.next_request(at(second)).is_some());
            assert_eq!(cache.deadline(), at(second + 1));
            let doubted = if second == 1 { vec![THERE] } else { vec![] };
            let given_up =
                if second == 2 { vec![(THERE, BTreeSet::from([path(1), path(2)]))] } else { vec![] };
            assert_eq!(cache.expire(at(second + 1)), Silent { doubted, given_up });
        }
        assert_eq!(requests, 3);
        let soon = at(3) + Duration::from_millis(900);
        assert_eq!(cache.lookup(soon, THERE, path(1)), (Resolution::Failed, false));
        assert_eq!(cache.lookup(at(4), THERE, path(1)), (Resolution::Pending, true), "after a while, again");
    }

    #[test]
    fn one_neighbour_alone_is_asked_for_again_once_a_second_and_given_up_as_all_are() {
        let mut cache = Cache::new(CacheLimits::default());
        assert_eq!(cache.expire_one(at(0), THERE), Overdue::No, "nobody has asked");
        cache.lookup(at(0), THERE, path(1));
        let nearly = Duration::from_millis(999);
        for second in 1..3 {
            assert_eq!(cache.expire_one(at(second - 1) + nearly, THERE), Overdue::No);
            assert_eq!(cache.expire_one(at(second), THERE), Overdue::Again);
            assert_eq!(cache.lookup(at(second), THERE, path(1)), (Resolution::Pending, false));
        }
        assert_eq!(cache.expire_one(at(3), THERE), Overdue::GivenUp([path(1)].into()));
        assert_eq!(cache.expire_one(at(3), THERE), Overdue::No);
        assert_eq!(cache.lookup(at(3), THERE, path(1)), (Resolution::Failed, false));
        assert_eq!(cache.lookup(at(4), THERE, path(1)), (Resolution::Pending, true));
    }

    #[test]
    fn an_answer_wakes_who_waited_and_is_asked_for_again_when_stale() {
        let mut cache = Cache::new(CacheLimits::default());
        cache.lookup(at(0), THERE, path(1));
        assert_eq!(cache.update(at(0), THERE, LINK), [path(1)].into());
        assert_eq!(cache.lookup(at(59), THERE, path(1)), (Resolution::Known(LINK.0), false));
        assert_eq!(cache.lookup(at(60), THERE, path(1)), (Resolution::Known(LINK.0), true));
        for second in 61..64 {
            cache.expire(at(second));
        }
        let soon = at(63) + Duration::from_millis(900);
        assert_eq!(cache.lookup(soon, THERE, path(1)).0, Resolution::Failed);
    }

    // RFC 4861 §7.3.3: what does not answer where it was may be somewhere else.
    #[test]
    fn the_last_request_is_for_everybody() {
        let mut cache = Cache::new(CacheLimits::default());
        cache.learn(at(0), THERE, LINK);
        cache.doubt(at(1), THERE);
        cache.lookup(at(1), THERE, path(1));
        let asked: Vec<_> = (1..4)
            .map(|second| {
                let request = cache.next_request(at(second));
                cache.expire(at(second + 1));
                request
            })
            .collect();
        let [there, everybody] = [Some(LINK), None].map(|link| Some((THERE, link)));
        assert_eq!(asked, [there, there, everybody]);
    }

    // RFC 4861 §7.2.5.
    #[test]
    fn what_is_said_unasked_is_used_and_looked_into_and_stops_no_count() {
        let mut cache = Cache::new(CacheLimits::default());
        assert!(cache.hear(at(0), THERE, LINK).is_empty() && cache.len() == 0, "nobody wants it");
        cache.lookup(at(0), THERE, path(1));
        assert_eq!(cache.hear(at(0), THERE, LINK), [path(1)].into());
        assert_eq!(cache.lookup(at(0), THERE, path(1)), (Resolution::Known(LINK.0), true));
        for second in 1..4 {
            assert!(cache.hear(at(second), THERE, LINK).is_empty());
            cache.expire(at(second));
        }
        assert_eq!(cache.lookup(at(3), THERE, path(1)).0, Resolution::Failed);
        assert!(cache.tell(at(3), THERE, LINK).is_empty());
        assert_eq!(cache.lookup(at(3), THERE, path(1)), (Resolution::Known(LINK.0), true), "it is back");
        assert!(cache.tell(at(3), Ipv4Addr::LOCALHOST, LINK).is_empty());
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn what_is_doubted_is_used_and_asked_for_once() {
        let mut cache = Cache::new(CacheLimits::default());
        cache.learn(at(0), THERE, LINK);
        assert_eq!(cache.lookup(at(1), THERE, path(1)), (Resolution::Known(LINK.0), false));
        cache.doubt(at(1), THERE);
        assert_eq!(cache.lookup(at(1), THERE, path(1)), (Resolution::Known(LINK.0), true));
        cache.doubt(at(1), THERE);
        assert_eq!(cache.lookup(at(1), THERE, path(1)), (Resolution::Known(LINK.0), false));
        assert_eq!(cache.deadline(), at(2), "the answer is waited for as long as it was");
    }

    #[test]
    fn what_nobody_wanted_is_not_learnt() {
        let mut cache = Cache::new(CacheLimits::default());
        assert!(cache.update(at(0), THERE, LINK).is_empty());
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn the_cache_is_bounded_and_forgets_the_least_wanted() {
        let mut cache = Cache::new(CacheLimits { entries: 8, ..CacheLimits::default() });
        cache.learn(at(0), THERE, LINK);
        for n in 0..100u32 {
            cache.lookup(at(1 + u64::from(n)), THERE, path(0));
            cache.lookup(at(1 + u64::from(n)), Ipv4Addr::from(n), path(0));
            assert!(cache.len() <= 8);
        }
        assert!(cache.entries.contains_key(&THERE));
    }

    #[test]
    fn who_is_known_stays_before_whoever_has_not_answered() {
        let mut cache = Cache::new(CacheLimits { entries: 8, ..CacheLimits::default() });
        cache.learn(at(0), THERE, LINK);
        for n in 0..100u32 {
            cache.lookup(at(1), Ipv4Addr::from(n), path(0));
        }
        assert_eq!((cache.len(), cache.known(THERE)), (8, Some(LINK)));
        // Of those that are known the least wanted goes.
        for n in 0..8u32 {
            cache.learn(at(2), Ipv4Addr::from(n), LINK);
        }
        assert_eq!((cache.len(), cache.known(THERE)), (8, None));
    }

    #[test]
    fn so_many_strangers_are_asked_for_in_a_second_and_who_is_known_does_not_count() {
        let mut cache = Cache::new(CacheLimits { strangers: 10, ..CacheLimits::default() });
        cache.learn(at(0), THERE, LINK);
        let mut lookup = |second, n| cache.lookup(at(second), Ipv4Addr::from(n), path(0));
        assert_eq!((0..100).filter(|n| lookup(1, *n).1).count(), 10);
        assert_eq!([9, 99].map(|n| lookup(1, n).0), [Resolution::Pending, Resolution::Crowded]);
        assert_eq!(lookup(1, THERE.to_bits()), (Resolution::Known(LINK.0), false));
        assert_eq!(lookup(2, 99), (Resolution::Pending, true));
    }

    #[test]
    fn waiters_are_bounded_and_noted_once_and_who_is_not_is_told() {
        let mut cache = Cache::new(CacheLimits { waiters: 2, ..CacheLimits::default() });
        let answers = [1, 1, 2, 3].map(|n| cache.lookup(at(0), THERE, path(n)).0);
        let waits = Resolution::Pending;
        assert_eq!(answers, [waits, waits, waits, Resolution::Crowded]);
        assert_eq!(cache.update(at(0), THERE, LINK), [path(1), path(2)].into());
    }

    #[test]
    fn who_is_in_a_full_cache_takes_nobodys_place() {
        let mut cache = Cache::new(CacheLimits { entries: 2, ..CacheLimits::default() });
        let both = [Ipv4Addr::LOCALHOST, THERE];
        both.into_iter().for_each(|address| _ = cache.learn(at(0), address, LINK));
        let answers = both.map(|address| cache.lookup(at(1), address, path(1)));
        assert_eq!(answers, [(Resolution::Known(LINK.0), false); 2]);
        both.into_iter().for_each(|address| _ = cache.learn(at(2), address, LINK));
        assert_eq!(both.map(|address| cache.known(address)), [Some(LINK); 2]);
    }
}
