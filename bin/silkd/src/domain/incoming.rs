//! A connection that comes in: a handshake has completed, and it gets a path, a slot and rings, and is brought to the
//! program that listens.

use crate::between::listener_hold::ListenerHold;
use crate::between::names::SocketName;
use crate::between::sockets::Rings;
use crate::domain::acceptance::{Brought, bring};
use crate::domain::engine::Engine;
use crate::domain::family_end::FamilyEnd;
use crate::domain::socket_end::SocketEnd;
use crate::domain::sockets::Socket;
use crate::domain::wishes;
use crate::slots::{clear, place_rings, retire, store_address};
use silk_instant::Instant;
use silk_path::{Attr, Attrs, DropReason, Endpoint, ModuleId, PathId};
use silk_stream::{OWNER_NOBODY, kind, status};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A handshake has completed, with a packet of this `service`.
    pub(crate) fn accept(&mut self, (top, attrs): (ModuleId, Attrs), by: PathId, service: u8, now: Instant) {
        let Some(hold) = self.next_listener(by) else { return };
        // Without a path (its class has as many as it may) the handshake is forgotten: what the peer sends next is
        // answered with a reset.
        let _ = self.take_connection((top, attrs), service, &hold, now);
    }

    /// A path, a slot and rings for a connection to a listening socket. `None`: the arena is
    /// full, the class refuses it (which counts that), it is gone meanwhile, or the peer has become refused.
    pub(crate) fn take_connection(
        &mut self,
        (top, attrs): (ModuleId, Attrs),
        service: u8,
        hold: &Arc<ListenerHold>,
        now: Instant,
    ) -> Option<PathId> {
        let (local, remote) = (attrs.local()?, attrs.remote()?);
        if self.core.tables.refuses(remote.ip()) {
            self.core.drops.count(DropReason::Refused);
            return None;
        }
        let Some((name, end)) = self.new_socket(hold, local, remote) else {
            self.core.drops.count(DropReason::NoMemory);
            return None;
        };
        let class = self.classes.class_of(remote.ip(), service >> 2, local.port());
        let attrs = attrs
            .with(Attr::Class(class as u8))
            .with(Attr::InputQueue(self.input_queue(class)))
            .with(Attr::Owner(name.as_owner()));
        let rings = end.rings();
        match self.core.paths.create(top, attrs, Some(Box::new(end)), now, &mut self.core.port) {
            Ok(id) => {
                self.admit(id, class);
                self.show_priority(name, self.classes.priority(class));
                self.sockets.insert(name, Socket::on(id, false));
                self.accepted.push((name, hold.clone()));
                self.apply_first_wishes(id, now);
                self.apply_first_options(id, now);
                Some(id)
            }
            Err(_) => {
                if let Some(family) = self.families.get_mut(&name.family) {
                    give_back(family, name, rings);
                }
                None
            }
        }
    }

    /// A slot with rings, for a connection that a program of the listener's family will
    /// accept. `None` when the arena is full.
    fn new_socket(
        &mut self,
        hold: &ListenerHold,
        local: Endpoint,
        remote: Endpoint,
    ) -> Option<(SocketName, SocketEnd)> {
        let (receive, send) = self.rings;
        let domain = self.domain;
        let family = self.families.get_mut(&hold.name.family)?;
        let slot = family.pool.take_slot()?;
        let name = SocketName { family: hold.name.family, slot };
        let Some(rings) = take_rings(family, receive, send) else {
            family.pool.return_slot(slot);
            return None;
        };
        let record = family.arena.slot(slot)?;
        clear(record);
        record.kind.store(kind::STREAM, SeqCst);
        record.owner.store(OWNER_NOBODY, SeqCst);
        record.holders.store(1, SeqCst);
        record.domain.store(domain as u32, SeqCst);
        record.status.store(status::CONNECTED, SeqCst);
        place_rings(record, rings);
        store_address(&record.local, local);
        store_address(&record.peer, remote);
        if let Some(listening) = family.arena.slot(hold.name.slot) {
            wishes::inherit(listening, record, remote.is_v6());
        }
        let end = SocketEnd::new(&family.arena, name, rings)?;
        Some((name, end))
    }

    /// Brings the connections accepted in the last run to their programs. What is full, or
    /// gone, is reset.
    pub(crate) fn bring_accepted(&mut self, now: Instant) {
        while let Some((name, hold)) = self.accepted.pop() {
            self.giving_back.wake(now);
            match self.bring_one(name, &hold) {
                Some(Brought::Handed(thread)) => self.serve(name, thread),
                Some(Brought::Queued) => {}
                Some(Brought::Full) | None => self.close(name, None, true, now),
            }
        }
    }

    fn bring_one(&mut self, name: SocketName, hold: &ListenerHold) -> Option<Brought> {
        let delivery = self.delivery();
        let family = self.families.get(&name.family)?;
        let listener = family.arena.listener(hold.listener)?;
        if listener.queue.get(delivery.rank)?.len() >= hold.backlog.load(SeqCst) {
            return Some(Brought::Full);
        }
        let on = (hold.name.slot, family.arena.slot(hold.name.slot)?);
        let connection = (name.slot, family.arena.slot(name.slot)?);
        Some(bring(family, (hold.listener, listener), on, connection, delivery))
    }
}

fn take_rings(family: &mut FamilyEnd, receive: u32, send: u32) -> Option<Rings> {
    let rx = family.pool.take_ring(receive)?;
    let Some(tx) = family.pool.take_ring(send) else {
        family.pool.return_ring(rx);
        return None;
    };
    Some(Rings { rx, tx })
}

/// A slot and its rings return to the domain's book.
pub(crate) fn give_back(family: &mut FamilyEnd, name: SocketName, rings: Rings) {
    retire(&family.arena, name.slot);
    family.pool.return_ring(rings.rx);
    family.pool.return_ring(rings.tx);
    family.pool.return_slot(name.slot);
}
