//! A domain's lanes: of datagram sockets that less important domains serve, what this one's class sends to them.

use crate::between::command::Command;
use crate::between::names::SocketName;
use crate::between::reported::Reported;
use crate::between::sockets::Rings;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use crate::domain::socket_end::SocketEnd;
use silk_instant::Instant;
use silk_modules::place;
use silk_path::{Attr, Endpoint, Report, Sharing};
use silk_stream::{SLOTS, status};

/// By which a socket is chosen among those that share its port: in each domain the same, so that a peer has the same socket there.
pub(super) fn number(socket: SocketName) -> u32 {
    socket.family.wrapping_mul(SLOTS).wrapping_add(socket.slot)
}

impl Engine {
    /// A datagram socket that another domain serves has a lane in this one, or that hears again.
    pub fn open_lane(
        &mut self,
        (name, rings): (SocketName, Rings),
        of: u32,
        (locals, sharing): (&[Endpoint], Option<Sharing>),
        now: Instant,
    ) {
        let (Some(local), Some(top)) = (locals.first(), self.top()) else { return };
        let known = self.sockets.find(name);
        if known.as_ref().is_some_and(|lane| lane.path.is_some()) {
            return;
        }
        let kept = known.and_then(|lane| lane.end.take());
        let fresh = || {
            let mut end = SocketEnd::new(&self.families.get(&name.family)?.arena, name, rings)?;
            end.be_lane_of(of);
            Some(Box::new(end))
        };
        let Some(end) = kept.or_else(fresh) else { return };
        let class = self.classes.first_of(self.domain).unwrap_or(self.classes.default);
        let socket = SocketName { family: name.family, slot: of };
        let attrs = self.attrs_of(*local, class).with(place(number(socket), true));
        let attrs = sharing.map_or(attrs, |sharing| attrs.with(Attr::Shared(sharing)));
        self.put_on_path(name, top, attrs, class, end, now);
        if let [_, other] = locals {
            self.add_twin(name, top, attrs.with(Attr::Local(*other)), class, now);
        }
        let paths = self.sockets.get(name).map(|lane| (lane.path.is_some(), lane.twin.is_some()));
        if paths != Some((true, locals.len() == 2)) {
            self.tell_control(Told::NoLane { port: local.port() });
        }
    }

    /// A lane hears nothing any more. What it has heard waits for the program.
    pub fn deafen(&mut self, name: SocketName, now: Instant) {
        let Some(id) = self.sockets.find(name).and_then(|lane| lane.path) else { return };
        self.deliver_what_waits(name, now);
        let Some(mut end) = self.core.port.take_datagrams(id) else { return };
        self.send_what_is_there((id, name), &mut end, now);
        self.drop_twin(name, now);
        self.destroy(id, now);
        // The program sends nothing over it.
        end.change_status(0, status::CONNECTED);
        if let Some(lane) = self.sockets.find(name) {
            (lane.path, lane.end) = (None, Some(end));
        }
    }

    /// A datagram may have left over a lane of its socket's, whose path must know how large the next may be.
    pub(super) fn pass_to_lanes(&mut self, said: &Reported) {
        if !matches!(said.report, Report::PathMtu { .. }) {
            return;
        }
        for sibling in self.siblings.iter().skip(self.domain + 1) {
            let said = Reported { quoted: None, to_lane: true, ..*said };
            if let Err(reason) = sibling.give(|| Command::Reported(Box::new(said))) {
                self.core.drops.count(reason);
            }
        }
    }
}
