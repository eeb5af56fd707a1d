//! Datagram sockets that share a port. Each has a path of its own, and UDP says which of them hears whom;
//! what was sent to a group or to everyone all of them hear, as on Linux.

use crate::engine::Engine;
use crate::settings::any_like;
use silk_executor::join::frame_of;
use silk_instant::Instant;
use silk_modules::udp::Udp;
use silk_path::classify::{Between, Protocol};
use silk_path::{Endpoint, Parcel, PathId, Paths, Ticket};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which domain serves the datagram sockets that are bound to an address, or to any, and a port.
#[derive(Default)]
pub(crate) struct Homes(BTreeMap<(u16, IpAddr), usize>);

impl Homes {
    /// Those that are bound to `local` are that domain's.
    pub fn enter(&mut self, local: Endpoint, domain: usize) {
        self.0.insert((local.port(), local.ip()), domain);
    }

    /// Nobody is bound to it any more.
    pub fn leave(&mut self, local: Endpoint) {
        self.0.remove(&(local.port(), local.ip()));
    }

    /// Nobody of any domain is bound to this port any more at this address, `None`: at any at all.
    pub fn desert(&mut self, port: u16, at: Option<IpAddr>) {
        let all = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(u128::MAX).into());
        let (first, last) = at.map_or(all, |at| (at, at));
        let there: Vec<_> = self.0.range((port, first)..=(port, last)).map(|(end, _)| *end).collect();
        there.iter().for_each(|end| _ = self.0.remove(end));
    }

    /// Whose those are that hear what is sent to `local`.
    pub fn find(&self, local: Endpoint) -> Option<usize> {
        let at = |address| self.0.get(&(local.port(), address)).copied();
        at(local.ip()).or_else(|| at(any_like(local.ip())))
    }
}

impl Engine {
    /// A datagram socket has gone from where it was bound, which another may share.
    pub(crate) fn leave_home(&mut self, local: Endpoint) {
        let next = self.waiting_for(local, local).and_then(|id| self.core.paths.path(id));
        if next.is_none_or(|path| path.state.attrs.local() != Some(local)) {
            self.homes.leave(local);
        }
    }

    /// The path without a peer that is for what `remote` sends to `local`. At any address: of all that wait there.
    pub(crate) fn waiting_for(&self, local: Endpoint, remote: Endpoint) -> Option<PathId> {
        let flow = Between { protocol: Protocol::Udp, local, remote };
        self.core.paths.taker(&Parcel::Listen(flow))
    }

    /// The other paths that what was sent to a group is for, if this frame, which was for `id`, was.
    pub(crate) fn sharers_in_group(&mut self, id: PathId, frame: &[u8]) -> Vec<PathId> {
        let group = if self.shares_groups(id) { Paths::parcel(frame) } else { None };
        let group = group.and_then(|parcel| self.to_group(parcel));
        group.map_or_else(Vec::new, |flow| self.others_in(id, flow))
    }

    /// Runs a frame of the ring, which was for `id`, up the others' paths too, if it was sent to a group.
    pub(crate) fn deliver_to_sharers(&mut self, id: PathId, ticket: Ticket, now: Instant) {
        if !self.shares_groups(id) {
            return;
        }
        let frame = frame_of(ticket);
        let bytes = self.core.device.bytes(frame).get(frame.range());
        let parcel = bytes.and_then(Paths::parcel);
        let Some(flow) = parcel.and_then(|parcel| self.to_group(parcel)) else { return };
        for other in self.others_in(id, flow) {
            let _ = self.core.up(other, ticket, false, now);
            self.tell_program(other);
        }
    }

    /// Whether a path hears groups, and others of its port may too.
    fn shares_groups(&self, id: PathId) -> bool {
        let attrs = self.core.paths.path(id).map(|path| &path.state.attrs);
        attrs.is_some_and(|attrs| attrs.shared().is_some() && attrs.groups() == Some(true))
    }

    /// Who sent a datagram to which group, or to everyone, if that is what it was sent to.
    fn to_group(&self, parcel: Parcel) -> Option<Between> {
        let Parcel::Listen(flow) = parcel else { return None };
        let is_group = flow.protocol == Protocol::Udp && !self.core.tables.is_local(flow.local.ip());
        is_group.then_some(flow)
    }

    fn others_in(&mut self, id: PathId, flow: Between) -> Vec<PathId> {
        let Some(udp) = self.core.paths.module_mut::<Udp>() else { return Vec::new() };
        udp.waiting_for(flow).filter(|other| *other != id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_bound_to_an_address_is_at_home_before_who_is_bound_to_any() {
        let [one, other, any] = ["10.0.0.1:53", "10.0.0.2:53", "0.0.0.0:53"]
            .map(|text| text.parse::<std::net::SocketAddr>().unwrap());
        let [one, other, any] = [one, other, any].map(|at| Endpoint::new(at.ip(), at.port()));
        let mut homes = Homes::default();
        homes.enter(one, 1);
        assert_eq!([one, other, any].map(|local| homes.find(local)), [Some(1), None, None]);
        homes.enter(any, 2);
        assert_eq!([one, other, any].map(|local| homes.find(local)), [Some(1), Some(2), Some(2)]);
        assert_eq!(homes.find(Endpoint::new(Ipv6Addr::LOCALHOST, 53)), None);
        homes.leave(one);
        assert_eq!(homes.find(one), Some(2));
        homes.leave(any);
        assert_eq!(homes.find(one), None);
        let elsewhere = Endpoint::new(one.ip(), 54);
        [one, other, any, elsewhere].into_iter().for_each(|at| homes.enter(at, 1));
        homes.desert(53, Some(one.ip()));
        assert_eq!((homes.0.len(), homes.find(other)), (3, Some(1)));
        homes.desert(53, None);
        assert_eq!((homes.0.len(), homes.find(elsewhere)), (1, Some(1)));
    }
}
