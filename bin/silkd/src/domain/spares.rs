//! Sockets made ready beforehand, at the executor: who claims one connects with it (`docs/design/spares.md`).

use crate::between::names::SocketName;
use crate::between::sockets::Spare;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use crate::slots::{retire, store_address};
use silk_instant::Instant;
use silk_path::Endpoint;
use silk_stream::{request, status};
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A spare was made.
    pub fn take_spare(&mut self, name: SocketName, spare: Spare, now: Instant) {
        self.spares.insert(name, spare);
        // Its process may have been quicker.
        self.rung_spare(name, now);
    }

    /// A spare may have rung, to connect. Whether the socket is one.
    pub(crate) fn rung_spare(&mut self, name: SocketName, now: Instant) -> bool {
        let Some(spare) = self.spares.get(&name).copied() else { return false };
        let slot = self.slot_of(name);
        let Some(slot) = slot.filter(|slot| slot.request.load(SeqCst) & request::CONNECT != 0) else {
            return true;
        };
        slot.request.fetch_and(!request::CONNECT, SeqCst);
        let peer = Endpoint::new(spare.remote, slot.peer.port.load(SeqCst) as u16);
        store_address(&slot.peer, peer);
        slot.status.store(status::CONNECTING, SeqCst);
        self.spares.remove(&name);
        self.connect(name, spare.rings, (spare.local, peer), None, now);
        true
    }

    /// A spare that nobody has claimed is closed.
    pub(crate) fn forget_spare(&mut self, name: SocketName) {
        if self.spares.remove(&name).is_some()
            && let Some(family) = self.families.get(&name.family)
        {
            retire(&family.arena, name.slot);
            let _ = self.events.send(Told::SocketGone { name });
        }
    }
}
