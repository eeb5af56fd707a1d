//! Groups that programs join (RFC 1112, RFC 4291 §2.7), and which of their sources each member hears (RFC 3678).

use crate::between::names::SocketName;
use silk_control::{Membership, Refusal};
use silk_modules::filter::Filter;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Sources that one socket may list of a group: Linux's `igmp_max_msf` and `mld_max_msf`.
const fn most_sources(group: IpAddr) -> usize {
    if group.is_ipv4() { 10 } else { 64 }
}

/// Who is in which group, and hears which of its sources.
#[derive(Default)]
pub struct Groups(BTreeMap<IpAddr, BTreeMap<SocketName, Filter<IpAddr>>>);

impl Groups {
    /// Those that a socket is in.
    pub fn of(&self, name: SocketName) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.iter().filter(move |(_, members)| members.contains_key(&name)).map(|(group, _)| *group)
    }

    /// All that somebody is in.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.keys().copied()
    }

    /// What is heard of a group by any of its members.
    pub fn whole(&self, group: IpAddr) -> Filter<IpAddr> {
        let members = self.0.get(&group).into_iter().flat_map(BTreeMap::values);
        members.fold(Filter::nobody(), |all, one| all.or(one))
    }

    /// What a member hears of a group.
    pub fn get(&self, group: IpAddr, name: SocketName) -> Option<&Filter<IpAddr>> {
        self.0.get(&group)?.get(&name)
    }

    /// A socket hears this of a group from now on; nobody: it has left.
    pub fn set(&mut self, group: IpAddr, name: SocketName, filter: Filter<IpAddr>) {
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
///
/// # Errors
/// Linux's.
pub fn changed(
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
