//! The paths of a domain that wait at a port for anyone, shared by UDP and TCP, and what both
//! do with the classifier's tables. No two of them may have overlapping addresses, but for those that all
//! want to share their port. Then the one that came last hears, or each its part of the peers, and a peer always the same
//! path while that lasts (rendezvous hashing, Thaler and Ravishankar 1998). When one comes or ends, only the
//! peers that it gets or had hear another.

use alloc::vec::Vec;
use core::net::IpAddr;
use silk_path::classify::{Answer, Between, FlowError, Found, Protocol, Tables, View};
use silk_path::{Attr, Attrs, CreateError, Endpoint, NOWHERE, PathId, Sharing};

/// A path that waits.
struct Waiting {
    local: Endpoint,
    /// Whom it hears alone.
    remote: Option<Endpoint>,
    path: PathId,
    share: Share,
}

/// What a path has of its port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// It shares that with all others that do.
    sharing: Option<Sharing>,
    /// The number by which it is chosen among them.
    sharer: u32,
    /// The port is another domain's.
    is_lane: bool,
}

/// The key of [`place`].
const PLACE: u16 = 0x5044;

/// What a path that waits at a port is there besides its socket: which of those that share the port, to whoever chooses one for a
/// peer (paths of one socket in several domains have the same number; absent: the path's own), and whether it `is_lane`: the port is
/// another domain's, which has a path of the same socket, and this one neither takes it nor gives it back.
pub fn place(sharer: u32, is_lane: bool) -> Attr {
    Attr::User(PLACE, u64::from(is_lane) << 32 | u64::from(sharer))
}

impl Share {
    /// As a path of these attributes has it.
    pub fn of(attrs: &Attrs, path: PathId) -> Self {
        let place = attrs.user(PLACE).unwrap_or(path.index.into());
        Self { sharing: attrs.shared(), sharer: place as u32, is_lane: place >> 32 != 0 }
    }
}

/// Paths by the address and port they wait at. Few, so a list.
#[derive(Default)]
pub(crate) struct Bound(Vec<Waiting>);

impl Bound {
    /// Enters a path, which hears `remote` alone if there is one: takes the port for silk. An unspecified address means all
    /// of ours of its family. A [group's](is_groups) port is for whoever joins and leaves groups to take.
    pub fn enter(
        &mut self,
        tables: &Tables,
        protocol: Protocol,
        (local, remote): (Endpoint, Option<Endpoint>),
        (path, share): (PathId, Share),
    ) -> Result<(), CreateError> {
        let overlap = CreateError::Overlap { local, remote: NOWHERE };
        let excludes = |known: &Waiting| known.share.sharing.is_none() || share.sharing.is_none();
        if self.0.iter().any(|known| overlaps(&known.local, &local) && excludes(known)) {
            return Err(overlap);
        }
        let taken = || tables.own_port(protocol, Some(local.ip()), local.port());
        if !share.is_lane && !is_groups(tables, local.ip()) && !taken() {
            return Err(CreateError::NoRoute(local.ip()));
        }
        self.0.push(Waiting { local, remote, path, share });
        Ok(())
    }

    /// Takes a path out, and gives the port back as far as no other waits there.
    pub fn leave(&mut self, tables: &Tables, protocol: Protocol, local: Endpoint, path: PathId) {
        let Some(at) = self.0.iter().position(|known| known.local == local && known.path == path) else {
            return;
        };
        let left = self.0.remove(at);
        if left.share.is_lane || is_groups(tables, local.ip()) {
            return;
        }
        // What waits at all addresses has that of the one that has left, and the other way round.
        let others = self.0.iter().filter(|known| !known.share.is_lane).map(|known| known.local);
        let others = others.filter(|known| overlaps(known, &local));
        tables.disown_port_but(protocol, Some(local.ip()), local.port(), others.map(|known| known.ip()));
    }

    /// Every path that waits for packets of this flow.
    pub fn all(&self, flow: Between) -> impl Iterator<Item = PathId> + '_ {
        self.0.iter().filter(move |known| known.hears(&flow)).map(|known| known.path)
    }

    /// The path that waits for packets of this flow: one at just this address before one at all, and of several
    /// the last, or one of those that share the peers as it does.
    pub fn find(&self, flow: &Between) -> Option<PathId> {
        let is_at = |known: &Waiting| known.local.ip() == flow.local.ip();
        let there = self.0.iter().filter(|known| known.hears(flow));
        // Of equals this is the last.
        let latest = there.clone().max_by_key(|known| (is_at(known), known.remote.is_some()))?;
        if latest.share.sharing != Some(Sharing::Peers) {
            return Some(latest.path);
        }
        let like =
            |known: &&Waiting| (known.share.sharing, known.remote) == (latest.share.sharing, latest.remote);
        let rivals = there.filter(|known| is_at(known) == is_at(latest) && like(known));
        rivals.max_by_key(|known| weight(flow.remote, known.share.sharer)).map(|known| known.path)
    }
}

impl Waiting {
    /// Whether it waits for packets of this flow.
    fn hears(&self, flow: &Between) -> bool {
        overlaps(&self.local, &flow.local) && self.remote.is_none_or(|remote| remote == flow.remote)
    }
}

/// Whether an address is a group's, or everyone's on a network: heard here by several hosts, and nobody's to send from.
pub(crate) fn is_groups(tables: &Tables, address: IpAddr) -> bool {
    address.is_multicast() || !tables.is_local(address) && tables.is_heard(address)
}

/// How much a peer prefers one of those that share a port.
fn weight(remote: Endpoint, sharer: u32) -> u64 {
    let (high, low) = match remote.ip() {
        IpAddr::V4(ip) => (0, u64::from(ip.to_bits())),
        IpAddr::V6(ip) => ((ip.to_bits() >> 64) as u64, ip.to_bits() as u64),
    };
    let peer = mix(mix(high).wrapping_add(low)).wrapping_add(remote.port().into());
    mix(mix(peer).wrapping_add(sharer.into()))
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit depends on all.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Whether one packet could be for both.
fn overlaps(a: &Endpoint, b: &Endpoint) -> bool {
    let addresses = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    addresses && a.is_v6() == b.is_v6() && a.port() == b.port()
}

/// Enters an exact flow.
pub(crate) fn enter_flow(tables: &Tables, flow: &Between, found: Found) -> Result<(), CreateError> {
    tables.flows.insert(flow, found).map_err(|error| match error {
        FlowError::Overlap => CreateError::Overlap { local: flow.local, remote: flow.remote },
        FlowError::Full => CreateError::ClassifierFull,
    })
}

/// The part of the classifier of a protocol whose header begins with the ports and has at
/// least `header` bytes.
pub(crate) fn classify(tables: &Tables, protocol: Protocol, header: usize, view: &mut View<'_>) -> Answer {
    let [a, b, c, d, ..] = *view.bytes() else { return Answer::Pass };
    if view.bytes().len() < header {
        return Answer::Pass;
    }
    view.remote.set_port(u16::from_be_bytes([a, b]));
    view.local.set_port(u16::from_be_bytes([c, d]));
    if view.group {
        let belongs = tables.group_listener(view.local, view.remote.ip(), view.dscp);
        return belongs.filter(|_| protocol == Protocol::Udp).map_or(Answer::Pass, Answer::Found);
    }
    let flow = Between { protocol, local: view.local, remote: view.remote };
    tables.whose(&flow, view.dscp, view.bytes()).map_or(Answer::Pass, Answer::Found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use silk_path::classify::{Domains, Owned};

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn path(index: u32) -> PathId {
        PathId { index, generation: 0 }
    }

    fn shares(sharer: u32, sharing: Option<Sharing>) -> Share {
        Share { sharing, sharer, is_lane: false }
    }

    fn tables() -> Tables {
        let tables = Tables::with_room(8, 1);
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).unwrap();
        tables
    }

    fn flow(local: Endpoint, peer: u16) -> Between {
        Between { protocol: Protocol::Udp, local, remote: Endpoint::v4(Ipv4Addr::new(10, 0, 0, 2), peer) }
    }

    /// Enters paths that share their port.
    fn enter_shared(bound: &mut Bound, tables: &Tables, local: Endpoint, paths: core::ops::Range<u32>) {
        for n in paths {
            bound
                .enter(tables, Protocol::Udp, (local, None), (path(n), shares(n, Some(Sharing::Peers))))
                .unwrap();
        }
    }

    #[test]
    fn overlapping_addresses_are_refused() {
        let tables = tables();
        let mut bound = Bound::default();
        let mut enter = |ip, port, n| {
            bound.enter(
                &tables,
                Protocol::Udp,
                (Endpoint::v4(ip, port), None),
                (path(n), shares(n, (n > 8).then_some(Sharing::Peers))),
            )
        };
        assert_eq!(enter(HERE, 53, 1), Ok(()));
        assert!(matches!(enter(Ipv4Addr::UNSPECIFIED, 53, 2), Err(CreateError::Overlap { .. })));
        assert!(matches!(enter(HERE, 53, 3), Err(CreateError::Overlap { .. })));
        assert_eq!(enter(Ipv4Addr::UNSPECIFIED, 54, 4), Ok(()));
        assert_eq!(enter(Ipv4Addr::LOCALHOST, 55, 5), Err(CreateError::NoRoute(Ipv4Addr::LOCALHOST.into())));
        assert!(matches!(enter(HERE, 53, 9), Err(CreateError::Overlap { .. })), "one does not share");
        assert_eq!(enter(HERE, 56, 10), Ok(()));
        assert!(matches!(enter(HERE, 56, 6), Err(CreateError::Overlap { .. })), "the other does not");
        assert_eq!(bound.find(&flow(Endpoint::v4(HERE, 54), 1)), Some(path(4)));
    }

    #[test]
    fn those_that_share_a_port_share_the_peers_and_what_one_had_goes_to_the_others() {
        let (tables, mut bound, local) = (tables(), Bound::default(), Endpoint::v4(HERE, 53));
        enter_shared(&mut bound, &tables, local, 0..4);
        let all = |bound: &Bound| {
            (0..4000).map(|peer| bound.find(&flow(local, peer)).unwrap().index).collect::<Vec<_>>()
        };
        let before = all(&bound);
        for n in 0..4 {
            let share = before.iter().filter(|path| **path == n).count();
            assert!((850..1150).contains(&share), "{n} has {share}");
        }
        bound.leave(&tables, Protocol::Udp, local, path(1));
        let after = all(&bound);
        assert!(before.iter().zip(&after).all(|(was, is)| if *was == 1 { *is != 1 } else { was == is }));
        assert!([0, 2, 3].iter().all(|n| before.iter().zip(&after).any(|pair| pair == (&1, n))));
        [0, 2].into_iter().for_each(|n| bound.leave(&tables, Protocol::Udp, local, path(n)));
        assert!(tables.owns_port(Protocol::Udp, HERE, 53) && all(&bound).iter().all(|path| *path == 3));
        bound.leave(&tables, Protocol::Udp, local, path(3));
        assert!(!tables.owns_port(Protocol::Udp, HERE, 53) && bound.find(&flow(local, 1)).is_none());
    }

    #[test]
    fn a_peer_has_the_same_of_those_that_share_a_port_in_every_domain_and_lanes_leave_the_port_alone() {
        let (tables, local) = (tables(), Endpoint::v4(HERE, 53));
        let [mut home, mut lanes] = [Bound::default(), Bound::default()];
        let share = |sharer, is_lane| Share { sharing: Some(Sharing::Peers), sharer, is_lane };
        let enter = |bound: &mut Bound, n, share| {
            bound.enter(&tables, Protocol::Udp, (local, None), (path(n), share)).unwrap();
        };
        (0..4).for_each(|n| enter(&mut lanes, 9 - n, share(n, true)));
        assert!(!tables.owns_port(Protocol::Udp, HERE, 53));
        (0..4).for_each(|n| enter(&mut home, n, share(n, false)));
        let find = |bound: &Bound, peer| bound.find(&flow(local, peer)).unwrap().index;
        assert!((0..1000).all(|peer| find(&home, peer) == 9 - find(&lanes, peer)));
        (6..10).for_each(|n| lanes.leave(&tables, Protocol::Udp, local, path(n)));
        assert!(tables.owns_port(Protocol::Udp, HERE, 53));
    }

    #[test]
    fn who_waits_at_an_address_hears_before_who_waits_at_all_and_each_ends_alone() {
        let (tables, mut bound) = (tables(), Bound::default());
        let (any, here) = (Endpoint::v4(Ipv4Addr::UNSPECIFIED, 53), Endpoint::v4(HERE, 53));
        enter_shared(&mut bound, &tables, any, 0..2);
        enter_shared(&mut bound, &tables, here, 2..3);
        let group = Endpoint::v4(Ipv4Addr::new(239, 1, 2, 3), 53);
        assert_eq!(
            bound.all(flow(group, 1)).collect::<Vec<_>>(),
            [path(0), path(1)],
            "groups are for all of these"
        );
        let (is_here, owned) =
            (|bound: &Bound| bound.find(&flow(here, 1)), || tables.owns_port(Protocol::Udp, HERE, 53));
        assert!((0..100).all(|peer| bound.find(&flow(here, peer)) == Some(path(2))));
        assert!((0..100).all(|peer| bound.find(&flow(any, peer)) != Some(path(2))));
        [0, 1].into_iter().for_each(|n| bound.leave(&tables, Protocol::Udp, any, path(n)));
        assert_eq!((owned(), is_here(&bound)), (true, Some(path(2))));
        enter_shared(&mut bound, &tables, any, 3..4);
        bound.leave(&tables, Protocol::Udp, here, path(2));
        assert_eq!((owned(), is_here(&bound)), (true, Some(path(3))));
    }

    #[test]
    fn who_came_last_hears_until_it_leaves_unless_it_shares_the_peers() {
        let (tables, mut bound, local) = (tables(), Bound::default(), Endpoint::v4(HERE, 53));
        let heard_by = |bound: &Bound| {
            let all = (0..100).map(|peer| bound.find(&flow(local, peer)).unwrap().index);
            all.collect::<alloc::collections::BTreeSet<_>>()
        };
        let modes = [Sharing::Latest, Sharing::Peers, Sharing::Peers, Sharing::Latest];
        for (n, sharing) in (0..).zip(modes) {
            bound.enter(&tables, Protocol::Udp, (local, None), (path(n), shares(n, Some(sharing)))).unwrap();
        }
        assert_eq!(heard_by(&bound), [3].into());
        bound.leave(&tables, Protocol::Udp, local, path(3));
        assert_eq!(heard_by(&bound), [1, 2].into());
        [1, 2].into_iter().for_each(|n| bound.leave(&tables, Protocol::Udp, local, path(n)));
        assert_eq!(heard_by(&bound), [0].into());
    }

    #[test]
    fn who_waits_at_a_group_hears_it_alone_and_its_port_is_not_theirs_to_take_who_hear_all() {
        let (tables, mut bound) = (tables(), Bound::default());
        let [group, other] = [3, 4].map(|last| Ipv4Addr::new(239, 1, 2, last));
        let at = |ip| Endpoint::v4(ip, 53);
        assert!(tables.hear(group.into()) && tables.hear(other.into()));
        let owned = || [group, other].map(|group| tables.owns_port_of_group(Protocol::Udp, group, 53));
        enter_shared(&mut bound, &tables, at(group), 0..1);
        assert_eq!(owned(), [false, false], "that is for whoever knows of groups");
        assert!(tables.own_port(Protocol::Udp, Some(group.into()), 53));
        enter_shared(&mut bound, &tables, at(Ipv4Addr::UNSPECIFIED), 1..2);
        let all = |bound: &Bound, ip| bound.all(flow(at(ip), 1)).map(|path| path.index).collect::<Vec<_>>();
        let heard = |bound: &Bound| [group, other, HERE].map(|ip| all(bound, ip));
        assert_eq!(
            (owned(), heard(&bound)),
            ([true; 2], [alloc::vec![0, 1], alloc::vec![1], alloc::vec![1]])
        );
        bound.leave(&tables, Protocol::Udp, at(Ipv4Addr::UNSPECIFIED), path(1));
        let nobody = alloc::vec![];
        assert_eq!(heard(&bound), [alloc::vec![0], nobody.clone(), nobody]);
        assert_eq!((owned(), tables.owns_port(Protocol::Udp, HERE, 53)), ([true, false], false));
        bound.leave(&tables, Protocol::Udp, at(group), path(0));
        assert_eq!(owned(), [true, false]);
    }

    #[test]
    fn who_waits_at_a_group_for_one_peer_hears_that_before_who_waits_there_for_all() {
        let (tables, mut bound) = (tables(), Bound::default());
        let group = Endpoint::v4(Ipv4Addr::new(239, 1, 2, 3), 53);
        let mut enter = |n, remote| {
            bound
                .enter(&tables, Protocol::Udp, (group, remote), (path(n), shares(n, Some(Sharing::Peers))))
                .unwrap();
        };
        enter(1, Some(flow(group, 7).remote));
        enter(2, None);
        assert_eq!(
            [7, 8].map(|peer| bound.find(&flow(group, peer)).map(|path| path.index)),
            [Some(1), Some(2)]
        );
        assert_eq!([7, 8].map(|peer| bound.all(flow(group, peer)).count()), [2, 1]);
    }

    #[test]
    fn leaving_gives_the_port_back() {
        let (tables, mut bound, local) = (tables(), Bound::default(), Endpoint::v4(HERE, 53));
        bound.enter(&tables, Protocol::Udp, (local, None), (path(1), shares(1, None))).unwrap();
        assert!(tables.owns_port(Protocol::Udp, HERE, 53));
        bound.leave(&tables, Protocol::Udp, local, path(1));
        assert!(!tables.owns_port(Protocol::Udp, HERE, 53) && bound.find(&flow(local, 1)).is_none());
    }
}
