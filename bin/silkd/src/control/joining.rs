//! Who joins a group, and from when on the classifier lets packets to it come to silk. They come to every datagram socket that is
//! bound to any address, or to the group itself, as on Linux unless a socket asks otherwise, but for sources that a member has not
//! chosen (RFC 3678). A shared interface is Linux's to tell routers of groups on, and each socket's descriptor of Linux's joins beside it.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::binding::{Sides, any_like};
use crate::control::family::State;
use crate::control::groups::changed;
use crate::control::ports::Held;
use crate::control::server::Server;
use crate::settings::owns_link;
use silk_control::{Kind, Membership, Refusal, Reply, SlotNumber};
use silk_modules::filter::Filter;
use silk_path::Endpoint;
use silk_path::classify::Protocol;
use std::net::{IpAddr, SocketAddr};

/// Groups that one socket may be in: Linux's `igmp_max_memberships`.
const MOST: usize = 20;
/// The scope of groups of IPv6 that are on one link; those of one interface are below it (RFC 7346 §2).
const LINK_LOCAL: u8 = 2;
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
        let own = owns_link(&self.settings.config);
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
            self.deafen_port_of(name);
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
        if held.kind == Kind::Datagram
            && self.settings.is_groups(held.address)
            && !self.ports.has_datagrams(held.address, held.port)
        {
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
        if !self.ports.has_datagrams(any_like(group), port) {
            self.tables.disown_port(Protocol::Udp, Some(group), port);
        }
    }

    /// Where the interface is silk's, the domain that answers for it tells of its groups.
    fn tell_link(&self, group: IpAddr, filter: Filter<IpAddr>) {
        let control = usize::from(self.tables.domains().control);
        let ours = owns_link(&self.settings.config);
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
