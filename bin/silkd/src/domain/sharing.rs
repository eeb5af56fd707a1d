//! Datagram sockets that share a port. Each has a path of its own, and UDP says which of them hears whom;
//! what was sent to a group or to everyone all of them hear, as on Linux.

use crate::domain::engine::Engine;
use silk_executor::join::frame_of;
use silk_instant::Instant;
use silk_modules::udp::Udp;
use silk_path::classify::{Between, Protocol};
use silk_path::{Endpoint, Parcel, PathId, Paths, Ticket};

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
