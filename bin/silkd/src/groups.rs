//! Groups that programs join (RFC 1112, RFC 4291 §2.7): who is in which, and from when on the classifier
//! lets packets to one come to silk. They come to every datagram socket that is bound to any address,
//! as on Linux unless a socket asks otherwise. A shared interface is Linux's to tell routers of
//! groups on, and each socket's descriptor of Linux's joins beside it.

use crate::command::{Command, SocketName};
use crate::server::Server;
use crate::stack;
use silk_control::{Refusal, Reply, SlotNumber};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Groups that one socket may be in: Linux's `igmp_max_memberships`.
const MOST: usize = 20;

/// Who is in which group.
#[derive(Default)]
pub struct Groups(BTreeMap<IpAddr, Vec<SocketName>>);

impl Groups {
    /// Whether the socket is in the group.
    fn has(&self, group: IpAddr, name: SocketName) -> bool {
        self.0.get(&group).is_some_and(|members| members.contains(&name))
    }

    fn of(&self, name: SocketName) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.iter().filter(move |(_, members)| members.contains(&name)).map(|(group, _)| *group)
    }

    /// All that somebody is in.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.0.keys().copied()
    }

    fn enter(&mut self, group: IpAddr, name: SocketName) {
        self.0.entry(group).or_default().push(name);
    }

    /// The socket leaves; whether it was the last one.
    fn leave(&mut self, group: IpAddr, name: SocketName) -> bool {
        let Some(members) = self.0.get_mut(&group) else { return false };
        members.retain(|member| *member != name);
        let last = members.is_empty();
        if last {
            self.0.remove(&group);
        }
        last
    }
}

impl Server {
    /// A datagram socket of a process joins a group or leaves it. `at` names the interface, by an
    /// address of it or by its number; neither: any.
    pub(crate) fn group(
        &mut self,
        (family, process): (u32, u32),
        slot: SlotNumber,
        group: IpAddr,
        at: (Option<IpAddr>, u32),
        join: bool,
    ) -> Result<Reply, Refusal> {
        let refuse = |errno, why: &str| Refusal { errno, why: why.into() };
        let known = self.families.get(&family).and_then(|known| known.sockets.get(&slot));
        if !known.is_some_and(|socket| socket.holders.contains(&process)) {
            return Err(refuse(libc::EBADF, "that socket is not this process's"));
        }
        if !group.is_multicast() {
            return Err(refuse(libc::EINVAL, "that is not a group's address"));
        }
        let by_address = at.0.filter(|at| !at.is_unspecified());
        let ours = by_address.is_none_or(|at| self.settings.addresses.contains(&at));
        // Linux knows silk's own interface by no number, or by one that is not told here.
        let own = stack::owns_link(&self.settings.config);
        let named = at.1 == 0 || self.settings.links.iter().any(|link| link.interface == at.1);
        if !ours || (!own && !named) {
            return Ok(Reply::NotOurs);
        }
        let name = SocketName { family, slot };
        match (join, self.groups.has(group, name)) {
            (true, true) => return Err(refuse(libc::EADDRINUSE, "the socket is in that group")),
            (false, false) => return Err(refuse(libc::EADDRNOTAVAIL, "the socket is not in that group")),
            (true, false) => {
                if self.groups.of(name).count() >= MOST {
                    return Err(refuse(libc::ENOBUFS, "the socket is in too many groups"));
                }
                if !self.tables.hear(group) {
                    return Err(refuse(libc::ENOBUFS, "the classifier holds no more groups"));
                }
                self.groups.enter(group, name);
                self.tell_link(group, true);
            }
            (false, true) => self.leave(group, name),
        }
        Ok(Reply::Done)
    }

    fn leave(&mut self, group: IpAddr, name: SocketName) {
        if self.groups.leave(group, name) {
            self.tables.ignore(group);
            self.tell_link(group, false);
        }
    }

    /// Where the interface is silk's, the domain that answers for it tells of its groups.
    fn tell_link(&self, group: IpAddr, joined: bool) {
        let control = usize::from(self.tables.domains().control);
        let ours = stack::owns_link(&self.settings.config);
        if let Some(orders) = self.orders.get(control).filter(|_| ours) {
            // An executor that has ended says so at the daemon's end.
            let _ = orders.give(Command::Group { group, joined });
        }
    }

    /// The groups through which neighbours ask for our addresses: a switch may want to know of them.
    pub fn join_standing_groups(&self) {
        for address in &self.settings.addresses {
            if let IpAddr::V6(address) = address {
                self.tell_link(silk_wire::ipv6::solicited_node(*address).into(), true);
            }
        }
    }

    /// A socket is gone.
    pub(crate) fn leave_groups(&mut self, name: SocketName) {
        let joined: Vec<IpAddr> = self.groups.of(name).collect();
        joined.into_iter().for_each(|group| self.leave(group, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_with_its_last_member() {
        let mut groups = Groups::default();
        let (group, [one, two]) =
            (IpAddr::from([239, 1, 2, 3]), [1, 2].map(|slot| SocketName { family: 0, slot }));
        groups.enter(group, one);
        groups.enter(group, two);
        assert_eq!((groups.has(group, one), groups.of(two).count()), (true, 1));
        assert_eq!((groups.leave(group, one), groups.has(group, one)), (false, false));
        assert_eq!((groups.leave(group, two), groups.leave(group, two)), (true, false));
    }
}
