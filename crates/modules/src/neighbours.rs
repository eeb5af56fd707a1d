//! What ARP and ND have in common: the cache, whom to ask for what is not in it, and who is woken by an
//! answer. How one asks and what of the answers may be believed is each protocol's own.

use crate::cache::{Cache, CacheLimits, Overdue, Silent};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::IpAddr;
use silk_instant::Instant;
use silk_path::{PathId, Port, Request, Resolution};
use silk_wire::MacAddr;

/// The neighbours of one IP, each beside a device: an address may mean another station on each link.
pub(crate) struct Neighbours<A> {
    pub cache: Cache<(u8, A)>,
    /// Addresses are told (`learn`), not asked for.
    pub told: bool,
    /// The path that asks and answers.
    pub path: Option<PathId>,
}

impl<A: Copy + Ord + Into<IpAddr>> Neighbours<A> {
    /// None known; with `told`, whoever runs the graph is asked ([`Request::Resolve`]) and not the link.
    pub fn new(told: bool, limits: CacheLimits) -> Self {
        Self { cache: Cache::new(limits), told, path: None }
    }

    /// The neighbour's address, or what to wait for.
    pub fn resolve(
        &mut self,
        now: Instant,
        address: (u8, A),
        waiter: PathId,
        port: &mut dyn Port,
    ) -> Resolution {
        let again = self.told && self.is_overdue(now, address, port);
        let (answer, ask) = self.cache.lookup(now, address, waiter);
        match (ask || again, self.told, self.path) {
            (false, ..) => {}
            (true, true, _) => {
                port.request(Request::Resolve { device: address.0, address: address.1.into() });
            }
            // The path sends what the cache has marked.
            (true, false, Some(path)) => port.request(Request::Wake(path)),
            (true, false, None) => {}
        }
        answer
    }

    /// An answer of whoever runs the graph can be lost, or never come, and there is no timer that would notice: who needs the
    /// neighbour does. Whether it is to be asked for again; one that is given up its waiters hear of.
    fn is_overdue(&mut self, now: Instant, address: (u8, A), port: &mut dyn Port) -> bool {
        match self.cache.expire_one(now, address) {
            Overdue::No => false,
            Overdue::Again => true,
            Overdue::GivenUp(waiters) => {
                wake(waiters, port);
                false
            }
        }
    }

    /// Takes in what somebody else found out: the neighbour's address, or that there is none.
    pub fn learn(&mut self, now: Instant, address: (u8, A), link: Option<MacAddr>, port: &mut dyn Port) {
        let waiters = match link {
            Some(link) => self.cache.learn(now, address, link),
            None => self.cache.fail(now, address),
        };
        wake(waiters, port);
    }

    /// Takes in what the neighbour itself has answered, if anybody wants to know it.
    pub fn update(&mut self, now: Instant, address: (u8, A), link: MacAddr, port: &mut dyn Port) {
        wake(self.cache.update(now, address, link), port);
    }

    /// Takes in what the neighbour has said without being asked, if anybody wants to know it ([`Cache::hear`]).
    pub fn hear(&mut self, now: Instant, address: (u8, A), link: MacAddr, port: &mut dyn Port) {
        wake(self.cache.hear(now, address, link), port);
    }

    /// Takes in what somebody who is believed says of it ([`Cache::tell`]).
    pub fn tell(&mut self, now: Instant, address: (u8, A), link: MacAddr, port: &mut dyn Port) {
        wake(self.cache.tell(now, address, link), port);
    }

    /// Gives up whom nobody answers for, and answers who is asked for the last time: where there is another way, it
    /// should be gone now, as long as those who wait have not been told that there is none.
    pub fn expire(&mut self, now: Instant, port: &mut dyn Port) -> Vec<(u8, A)> {
        let Silent { doubted, given_up } = self.cache.expire(now);
        given_up.into_iter().for_each(|(_, waiters)| wake(waiters, port));
        doubted
    }

    /// That path has ended.
    pub fn part(&mut self, path: PathId) {
        if self.path == Some(path) {
            self.path = None;
        }
    }
}

/// Wakes the paths that waited for an answer.
fn wake(waiters: BTreeSet<PathId>, port: &mut dyn Port) {
    waiters.into_iter().for_each(|path| port.request(Request::Wake(path)));
}
