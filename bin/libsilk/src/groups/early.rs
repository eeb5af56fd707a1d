//! Groups that a socket joins before it is decided who serves it.

use super::call::{Call, Where};
use super::leaving_by::number_of;
use crate::address;
use crate::family;
use crate::speaking;
use silk_control::{Membership, Request};
use silk_stream::SharedAddress;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Groups, and sources of theirs, that are remembered of a socket before it is decided who serves it: as many groups as Linux's
/// `igmp_max_memberships` allows, and some more.
const EARLY: usize = 24;

/// A group that a socket is in, or nothing.
struct Joined {
    group: SharedAddress,
    /// The source that it has chosen, or an unspecified one. By which interface both are wished stands in the scope of
    /// the two: the number of `group`'s, 0 for any, and of `source`'s the address of IPv4 that the program named it by.
    /// Where the port of `source` is [`BLOCKED`], it is one that is not to be heard.
    source: SharedAddress,
}

/// What stands there then.
const BLOCKED: u32 = 1;

/// Words of one of them: those of two addresses.
pub const WORDS: usize = 2 * ADDRESS;
/// Words of an address: the halves of its IP, its port and its scope.
const ADDRESS: usize = 6;

/// The groups that a socket has joined before it was decided who serves it: Linux's descriptor has joined them already. There is
/// room for them from when a program first joins one.
pub struct Early(OnceLock<Box<[Joined; EARLY]>>);

impl Joined {
    const fn none() -> Self {
        const fn nobody() -> SharedAddress {
            let ip = [const { AtomicU64::new(0) }; 2];
            SharedAddress { ip, port: AtomicU32::new(0), scope: AtomicU32::new(0) }
        }
        Self { group: nobody(), source: nobody() }
    }

    fn group(&self) -> Option<IpAddr> {
        Some(address::shared(&self.group).ip()).filter(IpAddr::is_multicast)
    }

    fn source(&self) -> Option<IpAddr> {
        Some(address::shared(&self.source).ip()).filter(|source| !source.is_unspecified())
    }

    fn blocks(&self) -> bool {
        self.source.port.load(Relaxed) == BLOCKED
    }

    /// Whether it is about this source, or about none.
    fn is_of(&self, source: Option<IpAddr>, blocks: bool) -> bool {
        self.source() == source && self.blocks() == blocks
    }

    /// The interface's number; 0: any.
    fn link(&self) -> u32 {
        self.group.scope.load(Relaxed)
    }

    /// The interface as the daemon is told it.
    fn at(&self) -> Where {
        let named_by = Ipv4Addr::from_bits(self.source.scope.load(Relaxed));
        (Some(named_by.into()).filter(|by: &IpAddr| !by.is_unspecified()), self.link())
    }

    fn put(&self, group: IpAddr, (source, blocks): (Option<IpAddr>, bool), at: Where) {
        let named_by = match at.0 {
            Some(IpAddr::V4(by)) => by.to_bits(),
            _ => 0,
        };
        store(&self.source, wide(source.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED))), named_by);
        self.source.port.store(if blocks { BLOCKED } else { 0 }, Relaxed);
        store(&self.group, wide(group), at.1);
    }

    fn forget(&self) {
        self.put(Ipv6Addr::UNSPECIFIED.into(), (None, false), (None, 0));
    }

    /// In words.
    fn words(&self) -> impl Iterator<Item = u32> {
        [&self.group, &self.source].into_iter().flat_map(|address| {
            let [high, low] = address.ip.each_ref().map(|half| half.load(Relaxed));
            let (port, scope) = (address.port.load(Relaxed), address.scope.load(Relaxed));
            [high as u32, (high >> 32) as u32, low as u32, (low >> 32) as u32, port, scope]
        })
    }

    fn set(&self, words: &[u32; WORDS]) {
        let half = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let (addresses, _) = words.as_chunks::<ADDRESS>();
        for (address, words) in [&self.group, &self.source].into_iter().zip(addresses) {
            let &[first, second, third, fourth, port, scope] = words;
            let halves = [half(first, second), half(third, fourth)];
            address.ip.iter().zip(halves).for_each(|(place, half)| place.store(half, Relaxed));
            address.port.store(port, Relaxed);
            address.scope.store(scope, Relaxed);
        }
    }
}

impl Early {
    /// None.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn all(&self) -> &[Joined] {
        self.0.get().map_or(&[], |all| all.as_slice())
    }

    fn make_room(&self) {
        if self.0.get().is_none() {
            // If another thread is first, its own is as good.
            let _ = self.0.set(Box::new([const { Joined::none() }; EARLY]));
        }
    }

    /// Whether [`note`](Self::note) can remember what is asked, if it is one of those things.
    pub fn has_room_for(&self, asked: &Call) -> bool {
        let adds = matches!(asked.change, Membership::Join | Membership::Add(_) | Membership::Block(_));
        let is_full = || self.0.get().is_some_and(|all| all.iter().all(|joined| joined.group().is_some()));
        let blocks = matches!(asked.change, Membership::Block(_));
        // What it knows already Linux refuses, for its own reason.
        let is_known = || {
            self.all().iter().any(|joined| {
                joined.group() == Some(asked.group)
                    && joined.link() == link_of(asked.at)
                    && joined.is_of(asked.change.source(), blocks)
            })
        };
        !adds || !is_full() || is_known()
    }

    /// Remembers what was asked; `false`: there is no room, or it is none of what is remembered.
    pub fn note(&self, asked: Call) -> bool {
        let (adds, source, blocks) = match asked.change {
            Membership::Join => (true, None, false),
            Membership::Leave => (false, None, false),
            Membership::Add(source) => (true, Some(source), false),
            Membership::Drop(source) => (false, Some(source), false),
            Membership::Block(source) => (true, Some(source), true),
            Membership::Unblock(source) => (false, Some(source), true),
        };
        let link = link_of(asked.at);
        if adds {
            self.make_room();
        }
        let of_group = self.all().iter().filter(|joined| joined.group() == Some(asked.group));
        // As in Linux, who leaves and names no interface leaves the first.
        let first = of_group.clone().next().filter(|_| !adds && link == 0);
        let link = first.map_or(link, Joined::link);
        // Which interface that is that nobody has named Linux knows, which has taken it.
        let may_be_at = |joined: &Joined| joined.link() == link || joined.link() == 0 || link == 0;
        let hears_all = |joined: &Joined| may_be_at(joined) && joined.source().is_none();
        if adds && blocks && !of_group.clone().any(hears_all) {
            return false;
        }
        let mut its = of_group.filter(|joined| joined.link() == link);
        let is_it = |joined: &&Joined| joined.is_of(source, blocks);
        match (adds, source) {
            // Whoever leaves a group leaves all its sources.
            (false, None) => return its.map(Joined::forget).count() > 0,
            (false, Some(_)) => return its.find(is_it).map(Joined::forget).is_some(),
            (true, _) if its.any(|joined| is_it(&joined)) => return true,
            (true, _) => {}
        }
        let free = self.all().iter().find(|joined| joined.group().is_none());
        free.map(|joined| joined.put(asked.group, (source, blocks), (asked.at.0, link))).is_some()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.all().iter().for_each(Joined::forget);
    }

    /// Each of them in [`WORDS`] words, for the image after an exec: its descriptor of Linux's is in those groups
    /// still.
    pub fn words(&self) -> impl Iterator<Item = impl Iterator<Item = u32>> {
        self.all().iter().filter(|joined| joined.group().is_some()).map(Joined::words)
    }

    /// Remembers one of those that the image before an exec has left, if there is room.
    pub fn take_over(&self, words: &[u32; WORDS]) {
        self.make_room();
        let free = self.all().iter().find(|joined| joined.group().is_none());
        free.into_iter().for_each(|joined| joined.set(words));
    }

    /// Takes them to the daemon, now that it serves the socket with this slot. What it refuses is Linux's alone, which is said.
    pub fn tell(&self, (slot, generation): (u32, u32)) {
        // A source is blocked in a group that is joined.
        let (blocking, joining): (Vec<_>, Vec<_>) = self.all().iter().partition(|joined| joined.blocks());
        for joined in joining.into_iter().chain(blocking) {
            if let Some(group) = joined.group() {
                let change = match (joined.source(), joined.blocks()) {
                    (None, _) => Membership::Join,
                    (Some(source), false) => Membership::Add(source),
                    (Some(source), true) => Membership::Block(source),
                };
                let request = Request::Group { slot, generation, group, at: joined.at(), change };
                if family::ask(&request, &[]) == Err(libc::ENOBUFS) {
                    speaking::say(&format_args!(
                        "the group {group}, which was joined before the socket was bound, is not heard over silk: \
                         all of them, with silk's addresses, have room for 16"
                    ));
                }
                joined.forget();
            }
        }
    }
}

/// The interface's number; 0: any.
fn link_of(at: Where) -> u32 {
    match at {
        (Some(IpAddr::V4(by)), 0) => number_of(by),
        (_, link) => link,
    }
}

fn wide(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn store(place: &SharedAddress, ip: Ipv6Addr, scope: u32) {
    place.ip[0].store((ip.to_bits() >> 64) as u64, Relaxed);
    place.ip[1].store(ip.to_bits() as u64, Relaxed);
    place.scope.store(scope, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_early_is_remembered_until_it_is_left() {
        let early = Early::new();
        let asked = |n, joins| Call {
            group: IpAddr::from([239, 0, 0, n]),
            at: (None, 0),
            change: if joins { Membership::Join } else { Membership::Leave },
        };
        assert!(!early.note(asked(1, false)) && early.has_room_for(&asked(1, true)));
        assert!((1..=24).all(|n| early.has_room_for(&asked(n, true)) && early.note(asked(n, true))));
        assert!(!early.has_room_for(&asked(99, true)) && !early.note(asked(99, true)));
        assert!(early.has_room_for(&asked(24, true)) && early.has_room_for(&asked(99, false)));
        assert!(!early.note(asked(99, false)));
        assert!(early.note(asked(1, false)) && early.has_room_for(&asked(99, true)));
        early.clear();
        assert!(!early.note(asked(2, false)) && early.note(asked(99, true)));
    }

    #[test]
    fn sources_that_were_chosen_early_are_remembered_until_their_group_is_left() {
        let early = Early::new();
        let group = IpAddr::from([232, 0, 0, 1]);
        let note = |change| early.note(Call { group, at: (None, 0), change });
        let source = |n| IpAddr::from([192, 0, 2, n]);
        assert!(note(Membership::Add(source(1))) && note(Membership::Add(source(2))));
        assert!(note(Membership::Drop(source(1))) && !note(Membership::Drop(source(1))));
        let known = || early.all().iter().filter_map(Joined::source).collect::<Vec<_>>();
        assert_eq!(known(), [source(2)]);
        assert!(note(Membership::Leave) && !note(Membership::Leave));
        assert!(known().is_empty());
    }

    #[test]
    fn sources_that_were_blocked_early_are_remembered_until_they_are_heard_again_or_their_group_is_left() {
        let early = Early::new();
        let group = IpAddr::from([239, 0, 0, 1]);
        let note = |change| early.note(Call { group, at: (None, 0), change });
        let source = |n| IpAddr::from([192, 0, 2, n]);
        assert!(!note(Membership::Block(source(3))), "of which group");
        assert!(note(Membership::Join) && (3..6).all(|n| note(Membership::Block(source(n)))));
        assert!(!note(Membership::Drop(source(3))), "it is not one that was chosen");
        assert!(
            early.note(Call { group, at: (None, 7), change: Membership::Block(source(9)) }),
            "at a number"
        );
        assert!(early.note(Call { group, at: (None, 7), change: Membership::Unblock(source(9)) }));
        assert!(note(Membership::Unblock(source(4))) && !note(Membership::Unblock(source(4))));
        let blocked = || early.all().iter().filter(|joined| joined.blocks()).filter_map(Joined::source);
        assert_eq!(blocked().collect::<Vec<_>>(), [source(3), source(5)]);
        assert!(note(Membership::Leave) && blocked().next().is_none());
    }

    #[test]
    fn a_group_is_joined_early_on_one_interface_and_on_another() {
        let early = Early::new();
        let group = IpAddr::from([239, 0, 0, 1]);
        let note = |at, change| early.note(Call { group, at, change });
        let loopback = (Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), 0);
        assert!(note(loopback, Membership::Join) && note((None, 7), Membership::Join));
        assert!(note((None, 1), Membership::Join), "once more");
        let known = || early.all().iter().filter(|joined| joined.group().is_some()).map(Joined::at);
        assert_eq!(known().collect::<Vec<_>>(), [(loopback.0, 1), (None, 7)]);
        assert!(note((None, 1), Membership::Leave) && !note(loopback, Membership::Leave));
        assert_eq!(known().collect::<Vec<_>>(), [(None, 7)]);
        assert!(note(loopback, Membership::Join) && note((None, 0), Membership::Leave));
        assert_eq!(known().count(), 1);
        assert!(note((None, 0), Membership::Leave) && known().next().is_none());
    }

    #[test]
    fn what_was_joined_early_is_the_same_in_the_image_after_an_exec() {
        let (before, after) = (Early::new(), Early::new());
        let group = IpAddr::from([239, 0, 0, 1]);
        let loopback = (Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), 0);
        let six = IpAddr::from([0xff15, 0, 0, 0, 0, 0, 0, 0x99]);
        let source = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        let blocked = IpAddr::from([192, 0, 2, 3]);
        for (group, at, change) in [
            (group, loopback, Membership::Join),
            (group, loopback, Membership::Block(blocked)),
            (six, (None, 7), Membership::Add(source)),
        ] {
            assert!(before.note(Call { group, at, change }));
        }
        let told = |early: &Early| {
            let known = early.all().iter().filter(|joined| joined.group().is_some());
            known.map(|one| (one.group(), one.source(), one.blocks(), one.at())).collect::<Vec<_>>()
        };
        for words in before.words() {
            let words: [u32; WORDS] = words.collect::<Vec<_>>().try_into().unwrap();
            after.take_over(&words);
        }
        assert_eq!((told(&after).len(), told(&after)), (3, told(&before)));
        assert_eq!(Early::new().words().count(), 0);
    }
}
