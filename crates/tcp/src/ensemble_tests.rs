//! Tests of what connections to one peer share.

use super::*;
use core::net::Ipv4Addr;
use proptest::prelude::*;
use std::vec;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn at(seconds: u64) -> Instant {
    Instant::from_millis(1_000 * seconds)
}

/// Connections to one peer, as they are seen.
struct Peer {
    all: Ensembles,
    way: u32,
}

impl Peer {
    fn new() -> Self {
        let mut all = Ensembles::new(IsnSecret::new([1, 2]));
        let way = all.make_way(at(1), PEER).unwrap();
        Self { all, way }
    }

    fn room(&self, now: Instant) -> u32 {
        self.all.ways.get(self.way).unwrap().1.room(now, 0)
    }

    /// A connection that sends so much at once, all of which arrives.
    fn delivers(&mut self, now: Instant, octets: u32) {
        let member = self.all.join(self.way, Seen::default());
        self.all.see(now, member, Seen { outstanding: octets, ..Seen::default() });
        self.all.see(now, member, Seen { acknowledged: octets, ..Seen::default() });
        self.all.leave(member);
    }

    /// A connection of which something is lost.
    fn loses(&mut self, now: Instant) {
        let member = self.all.join(self.way, Seen::default());
        self.all.see(now, member, Seen { outstanding: 9_000, ..Seen::default() });
        self.all.see(now, member, Seen { acknowledged: 1_000, outstanding: 8_000, lost: 1_000 });
        self.all.leave(member);
    }
}

#[test]
fn who_comes_next_begins_with_twice_what_has_arrived() {
    let mut peer = Peer::new();
    assert_eq!(peer.room(at(1)), 0);
    peer.delivers(at(1), 40_000);
    assert_eq!(peer.room(at(1)), 80_000);
    // Less is no news.
    peer.delivers(at(2), 10_000);
    assert_eq!(peer.room(at(2)), 80_000);
}

#[test]
fn a_loss_leaves_nothing_and_later_less_than_arrived() {
    let mut peer = Peer::new();
    peer.delivers(at(1), 40_000);
    peer.loses(at(2));
    assert_eq!(peer.room(at(2)), 0);
    peer.delivers(at(3), 20_000);
    assert_eq!(peer.room(at(3)), 14_000);
}

#[test]
fn what_is_proven_halves_every_ten_seconds() {
    let mut peer = Peer::new();
    peer.delivers(at(1), 40_000);
    assert_eq!([10, 11, 21, 80, 81].map(|second| peer.room(at(second))), [80_000, 40_000, 20_000, 624, 0]);
    peer.delivers(at(21), 11_000);
    assert_eq!(peer.room(at(21)), 22_000, "it is more than what is left of the first");
}

#[test]
fn what_others_have_outstanding_or_were_promised_is_taken() {
    let mut peer = Peer::new();
    peer.delivers(at(1), 50_000);
    // Small answers have passed before.
    let before = Seen { acknowledged: 7_000, ..Seen::default() };
    let first = peer.all.join(peer.way, before);
    peer.all.promise(first, 60_000);
    assert_eq!(peer.room(at(1)), 40_000);
    peer.all.see(at(1), first, Seen { outstanding: 25_000, ..before });
    assert_eq!(peer.room(at(1)), 40_000, "it is outstanding instead of promised");
    peer.all.see(at(2), first, Seen { outstanding: 20_000, acknowledged: 12_000, lost: 0 });
    assert_eq!(peer.room(at(2)), 80_000, "a promise ends with the round trip");
    peer.all.leave(first);
    assert_eq!(peer.room(at(2)), 100_000);
}

#[test]
fn who_begins_again_counts_itself_out() {
    let mut peer = Peer::new();
    peer.delivers(at(1), 50_000);
    let member = peer.all.join(peer.way, Seen::default());
    peer.all.see(at(1), member, Seen { outstanding: 10_000, ..Seen::default() });
    let (_, way) = *peer.all.ways.get(peer.way).unwrap();
    assert_eq!([way.room(at(1), 0), way.room(at(1), 10_000)], [90_000, 100_000]);
}

#[test]
fn several_prove_together_what_none_had_alone() {
    let mut peer = Peer::new();
    let members: Vec<_> = (0..4).map(|_| peer.all.join(peer.way, Seen::default())).collect();
    for member in &members {
        peer.all.see(at(1), *member, Seen { outstanding: 10_000, ..Seen::default() });
    }
    for member in &members {
        peer.all.see(at(1), *member, Seen { acknowledged: 10_000, ..Seen::default() });
    }
    assert_eq!(peer.room(at(1)), 80_000);
}

#[test]
fn peers_are_bounded_and_those_with_members_stay() {
    let mut all = Ensembles::new(IsnSecret::new([1, 2]));
    let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number));
    let kept = all.make_way(at(1), address(0)).unwrap();
    let member = all.join(kept, Seen::default());
    for number in 1..3 * PEERS as u32 {
        assert!(all.make_way(at(1), address(number)).is_some(), "{number}");
    }
    assert_eq!((all.ways.len(), all.ways.find(&address(0))), (PEERS, Some(kept)));
    all.leave(member);
    all.make_way(at(100), address(1 << 20));
    all.make_way(at(200), address(1 << 21));
    assert!(all.ways.len() < PEERS, "what is old is forgotten a few at a time");
}

proptest! {
    /// Whatever connections do, the sums are those of the members, and end at nothing.
    #[test]
    fn the_sums_are_those_of_the_members(
        steps in prop::collection::vec((0usize..6, 0u8..3, 0u32..1 << 30, any::<u32>(), 0u32..3), 0..200)
    ) {
        let mut peer = Peer::new();
        let mut members = vec![Member::NONE; 6];
        for (step, (which, what, outstanding, acknowledged, lost)) in steps.into_iter().enumerate() {
            let member = &mut members[which];
            match what {
                0 if member.is_some() => peer.all.leave(core::mem::replace(member, Member::NONE)),
                _ if !member.is_some() => {
                    *member = peer.all.join(peer.way, Seen { outstanding, acknowledged, lost });
                    peer.all.promise(*member, outstanding);
                }
                _ => peer.all.see(at(step as u64), *member, Seen { outstanding, acknowledged, lost }),
            }
            let entries = || {
                let live = members.iter().filter(|member| member.is_some());
                live.map(|member| peer.all.members[member.0 as usize])
            };
            let (_, way) = *peer.all.ways.get(peer.way).unwrap();
            prop_assert_eq!(way.members as usize, entries().count());
            prop_assert_eq!(way.outstanding, entries().map(|it| u64::from(it.seen.outstanding)).sum::<u64>());
            prop_assert_eq!(way.promised, entries().map(|it| u64::from(it.promise)).sum::<u64>());
        }
        members.into_iter().filter(|member| member.is_some()).for_each(|member| peer.all.leave(member));
        let (_, way) = *peer.all.ways.get(peer.way).unwrap();
        prop_assert_eq!((way.members, way.outstanding, way.promised), (0, 0, 0));
        prop_assert!(peer.all.members.len() <= 6);
    }
}
