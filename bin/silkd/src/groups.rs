//! Groups that programs join (RFC 1112, RFC 4291 §2.7): who is in which, and from when on the classifier
//! lets packets to one come to silk. They come to every datagram socket that is bound to any address,
//! or to the group itself, as on Linux unless a socket asks otherwise, but for sources that a member has not chosen (RFC 3678). A shared interface is Linux's to tell routers of
//! groups on, and each socket's descriptor of Linux's joins beside it.

use crate::command::{Command, SocketName};
use crate::family::State;
use crate::ports::{Held, Sides};
use crate::server::Server;
use crate::settings::any_like;
use crate::stack;
use silk_control::{Kind, Membership, Refusal, Reply, SlotNumber};
use silk_modules::filter::Filter;
use silk_path::Endpoint;
use silk_path::classify::Protocol;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Groups that one socket may be in: Linux's `igmp_max_memberships`.
const MOST: usize = 20;
/// The scope of groups of IPv6 that are on one link; those of one interface are below it (RFC 7346 §2).
const LINK_LOCAL: u8 = 2;
/// Sources that one socket may list of a group: Linux's `igmp_max_msf` and `mld_max_msf`.
const fn most_sources(group: IpAddr) -> usize {
    if group.is_ipv4() { 10 } else { 64 }
}

/// Who is in which group, and hears which of its sources.
#[derive(Default)]
pub struct Groups(BTreeMap<IpAddr, BTreeMap<SocketName, Filter<IpAddr>>>);

impl Groups {
    fn of(&self, name: SocketName) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.iter().filter(move |(_, members)| members.contains_key(&name)).map(|(group, _)| *group)
    }

    /// All that somebody is in.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.keys().copied()
    }

    /// What is heard of a group by any of its members.
    fn whole(&self, group: IpAddr) -> Filter<IpAddr> {
        let members = self.0.get(&group).into_iter().flat_map(BTreeMap::values);
        members.fold(Filter::nobody(), |all, one| all.or(one))
    }

    /// What a member hears of a group.
    fn get(&self, group: IpAddr, name: SocketName) -> Option<&Filter<IpAddr>> {
        self.0.get(&group)?.get(&name)
    }

    /// A socket hears this of a group from now on; nobody: it has left.
    fn set(&mut self, group: IpAddr, name: SocketName, filter: Filter<IpAddr>) {
        let members = self.0.entry(group).or_default();
        if filter.is_nobody() {
            members.remove(&name);
        } else {
            members.insert(name, filter);
        }
        if members.is_empty() {
            self.0.remove(&group);
        }
    }
}

/// What a socket hears of a group after a change, as Linux has it (`ip_mc_source`).
fn changed(
    group: IpAddr,
    before: Option<&Filter<IpAddr>>,
    change: Membership,
) -> Result<Filter<IpAddr>, Refusal> {
    let refuse = |errno, why: &str| Refusal { errno, why: why.into() };
    if change.source().is_some_and(|source| source.is_ipv4() != group.is_ipv4()) {
        return Err(refuse(libc::EADDRNOTAVAIL, "a group's sources are of its own IP"));
    }
    let not_in = || refuse(libc::EINVAL, "the socket is not in that group");
    let mut filter = match (change, before) {
        (Membership::Join, None) => return Ok(Filter::everybody()),
        (Membership::Join, Some(_)) => return Err(refuse(libc::EADDRINUSE, "the socket is in that group")),
        (Membership::Leave, Some(_)) => return Ok(Filter::nobody()),
        (Membership::Leave, None) => {
            return Err(refuse(libc::EADDRNOTAVAIL, "the socket is not in that group"));
        }
        (Membership::Add(_), None) => Filter::nobody(),
        // Who has listed none yet may choose how.
        (Membership::Add(_), Some(before)) if before.sources().is_empty() => Filter::nobody(),
        (_, before) => before.ok_or_else(not_in)?.clone(),
    };
    let lists_those_that_are_not = matches!(change, Membership::Block(_) | Membership::Unblock(_));
    if filter.excludes() != lists_those_that_are_not && !filter.sources().is_empty() {
        return Err(refuse(libc::EINVAL, "the socket lists sources of the other sort"));
    }
    let (done, why) = match change {
        Membership::Add(source) | Membership::Block(source) => {
            if filter.sources().len() >= most_sources(group) {
                return Err(refuse(libc::ENOBUFS, "the socket lists too many sources"));
            }
            (filter.list(source), "that source is listed already")
        }
        Membership::Drop(source) | Membership::Unblock(source) => {
            (filter.strike(&source), "that source is not listed")
        }
        Membership::Join | Membership::Leave => (true, ""),
    };
    if done { Ok(filter) } else { Err(refuse(libc::EADDRNOTAVAIL, why)) }
}

impl Server {
    /// A datagram socket of a process hears other sources of a group from now on. `at` names the interface, by an
    /// address of it or by its number; neither: any.
    pub(crate) fn group(
        &mut self,
        (family, process): (u32, u32),
        (slot, generation): (SlotNumber, u32),
        group: IpAddr,
        at: (Option<IpAddr>, u32),
        change: Membership,
    ) -> Result<Reply, Refusal> {
        let refuse = |errno, why: &str| Refusal { errno, why: why.into() };
        let known = self.families.get_mut(&family);
        let held = known.and_then(|known| known.held(process, (slot, generation)));
        if held.is_none_or(|socket| socket.kind != Kind::Datagram) {
            return Err(refuse(libc::EBADF, "that socket is not this process's"));
        }
        if !group.is_multicast() {
            return Err(refuse(libc::EINVAL, "that is not a group's address"));
        }
        let by_address = at.0.filter(|at| !at.is_unspecified());
        let ours = by_address.is_none_or(|at| self.settings.has(at));
        // Linux knows silk's own interface by no number, or by one that is not told here.
        let own = stack::owns_link(&self.settings.config);
        let named = at.1 == 0 || self.settings.interfaces.contains(&at.1);
        if !ours || (!own && !named) {
            return Ok(Reply::NotOurs);
        }
        let name = SocketName { family, slot };
        let before = self.groups.get(group, name);
        let filter = changed(group, before, change)?;
        if before.is_none() {
            if self.groups.of(name).count() >= MOST {
                return Err(refuse(libc::ENOBUFS, "the socket is in too many groups"));
            }
            if !self.tables.hear(group) {
                return Err(refuse(libc::ENOBUFS, "the classifier holds no more groups"));
            }
            self.take_ports_of(group);
        }
        self.set_sources(group, name, filter);
        Ok(Reply::Done)
    }

    /// A socket hears these sources of a group, and the link is told where that changes what anybody does.
    fn set_sources(&mut self, group: IpAddr, name: SocketName, filter: Filter<IpAddr>) {
        let known = self.families.get(&name.family).and_then(|known| known.sockets.get(&name.slot));
        if let Some(State::Served { domain }) = known.map(|socket| socket.state)
            && let Some(orders) = self.orders.get(domain)
        {
            // An executor that has ended says so at the daemon's end.
            let _ = orders.give(Command::Sources { socket: name, group, filter: filter.clone() });
        }
        let before = self.groups.whole(group);
        self.groups.set(group, name, filter);
        let after = self.groups.whole(group);
        if after.is_nobody() {
            self.give_back_ports_of(group);
            self.tables.ignore(group);
        }
        if after != before {
            self.tell_link(group, after);
        }
    }

    /// Our own form of the address of a group, or of everyone, that a datagram socket is bound to; `None` where that is Linux's
    /// business. A group of one link has to be named with it, which silk's end cannot be.
    pub(crate) fn group_of_ours(&self, address: SocketAddr) -> Option<(Endpoint, Sides)> {
        let ip = address.ip().to_canonical();
        let served = match ip {
            IpAddr::V4(four) => {
                self.settings.serves_v4() && (four.is_multicast() || self.tables.is_heard(four))
            }
            IpAddr::V6(six) => {
                self.settings.serves_v6() && six.is_multicast() && six.octets()[1] & 0xf > LINK_LOCAL
            }
        };
        served.then(|| (Endpoint::new(ip, address.port()), Sides::of(ip)))
    }

    /// A socket is bound to a port at a group, which may be heard.
    pub(crate) fn take_port_of_group(&self, local: Endpoint) {
        if self.settings.is_groups(local.ip()) {
            self.tables.own_port(Protocol::Udp, Some(local.ip()), local.port());
        }
    }

    /// A socket has left its port, which may be one at a group, and of others too.
    pub(crate) fn give_back_port_of_group(&self, held: &Held) {
        if held.kind == Kind::Datagram && !self.ports.has_datagrams(held.address, held.port) {
            self.leave_port_of_group(held.address, held.port);
        }
    }

    /// The ports at which sockets are bound to a group are silk's there from now on: it is heard.
    pub(crate) fn take_ports_of(&self, group: IpAddr) {
        self.ports.datagrams_at(group).for_each(|port| self.take_port_of_group(Endpoint::new(group, port)));
    }

    /// They are no longer, and the group's place in the classifier may become another's.
    pub(crate) fn give_back_ports_of(&self, group: IpAddr) {
        self.ports.datagrams_at(group).for_each(|port| self.leave_port_of_group(group, port));
    }

    /// A group's port is Linux's, unless a socket that is bound to any address hears all groups there.
    fn leave_port_of_group(&self, group: IpAddr, port: u16) {
        if self.settings.is_groups(group) && !self.ports.has_datagrams(any_like(group), port) {
            self.tables.disown_port(Protocol::Udp, Some(group), port);
        }
    }

    /// Where the interface is silk's, the domain that answers for it tells of its groups.
    fn tell_link(&self, group: IpAddr, filter: Filter<IpAddr>) {
        let control = usize::from(self.tables.domains().control);
        let ours = stack::owns_link(&self.settings.config);
        if let Some(orders) = self.orders.get(control).filter(|_| ours) {
            let _ = orders.give(Command::Group { group, filter });
        }
    }

    /// The groups through which neighbours ask for our addresses: a switch may want to know of them.
    pub fn join_standing_groups(&self) {
        for address in &self.settings.addresses {
            if let IpAddr::V6(address) = address {
                self.tell_link(silk_wire::ipv6::solicited_node(*address).into(), Filter::everybody());
            }
        }
    }

    /// A socket is gone.
    pub(crate) fn leave_groups(&mut self, name: SocketName) {
        let joined: Vec<IpAddr> = self.groups.of(name).collect();
        joined.into_iter().for_each(|group| self.set_sources(group, name, Filter::nobody()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
    const ONE: IpAddr = source(1);
    const TWO: IpAddr = source(2);

    const fn source(n: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
    }

    fn names() -> [SocketName; 2] {
        [1, 2].map(|slot| SocketName { family: 0, slot })
    }

    #[test]
    fn a_group_ends_with_its_last_member() {
        let (mut groups, [one, two]) = (Groups::default(), names());
        groups.set(GROUP, one, Filter::everybody());
        groups.set(GROUP, two, Filter::everybody());
        assert_eq!((groups.get(GROUP, one).is_some(), groups.of(two).count()), (true, 1));
        groups.set(GROUP, one, Filter::nobody());
        assert_eq!((groups.get(GROUP, one), groups.all().count()), (None, 1));
        groups.set(GROUP, two, Filter::nobody());
        assert_eq!((groups.all().count(), groups.whole(GROUP).is_nobody()), (0, true));
    }

    #[test]
    fn what_is_heard_of_a_group_is_what_any_member_hears() {
        let (mut groups, [one, two]) = (Groups::default(), names());
        let only = |source| changed(GROUP, None, Membership::Add(source)).unwrap();
        groups.set(GROUP, one, only(ONE));
        groups.set(GROUP, two, only(TWO));
        assert_eq!(groups.whole(GROUP).sources().len(), 2);
        let but = changed(GROUP, Some(&Filter::everybody()), Membership::Block(ONE)).unwrap();
        groups.set(GROUP, two, but);
        assert_eq!(groups.whole(GROUP), Filter::everybody(), "the other hears whom it has blocked");
    }

    #[test]
    fn a_socket_changes_its_sources_as_on_linux() {
        use Membership::{Add, Block, Drop, Join, Leave, Unblock};
        let mut filter = None;
        let mut change = |change| match changed(GROUP, filter.as_ref(), change) {
            Ok(next) => {
                let told = (next.excludes(), next.sources().len());
                filter = Some(next).filter(|next| !next.is_nobody());
                Ok(told)
            }
            Err(refusal) => Err(refusal.errno),
        };
        assert_eq!(
            [Leave, Drop(ONE), Block(ONE)].map(&mut change).map(Result::unwrap_err),
            [libc::EADDRNOTAVAIL, libc::EINVAL, libc::EINVAL]
        );
        assert_eq!(change(Add(ONE)), Ok((false, 1)));
        assert_eq!(change(Add(ONE)), Err(libc::EADDRNOTAVAIL));
        assert_eq!(
            [Block(TWO), Unblock(ONE), Join].map(&mut change).map(Result::unwrap_err),
            [libc::EINVAL, libc::EINVAL, libc::EADDRINUSE]
        );
        assert_eq!((change(Add(TWO)), change(Drop(ONE))), (Ok((false, 2)), Ok((false, 1))));
        assert_eq!((change(Drop(ONE)), change(Drop(TWO))), (Err(libc::EADDRNOTAVAIL), Ok((false, 0))));
        assert_eq!(
            (change(Join), change(Block(ONE)), change(Block(ONE))),
            (Ok((true, 0)), Ok((true, 1)), Err(libc::EADDRNOTAVAIL))
        );
        assert_eq!((change(Add(TWO)), change(Unblock(ONE))), (Err(libc::EINVAL), Ok((true, 0))));
        assert_eq!((change(Unblock(ONE)), change(Add(TWO))), (Err(libc::EADDRNOTAVAIL), Ok((false, 1))));
        assert_eq!(change(Leave), Ok((false, 0)));
        assert_eq!(change(Add(IpAddr::from([0; 16]))), Err(libc::EADDRNOTAVAIL), "of the other IP");
        assert!((0..10).all(|n| change(Add(source(n))).is_ok()));
        assert_eq!(change(Add(source(10))), Err(libc::ENOBUFS));
    }
}
