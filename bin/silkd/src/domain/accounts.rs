//! Which thread serves which socket, and what that costs: the extended path as an account
//! (SILK §3.3, Scout §4.4).

use crate::between::names::SocketName;
use crate::domain::delivery::Delivery;
use crate::domain::engine::Engine;
use silk_stream::named;
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// The priority of this domain.
    pub(crate) fn priority(&self) -> u32 {
        self.classes.priorities.get(self.domain).copied().unwrap_or(0)
    }

    /// How this domain's connections are brought to threads.
    pub(crate) fn delivery(&self) -> Delivery {
        let priority = self.priority();
        Delivery {
            rank: self.domain,
            extend_to: Some(priority).filter(|p| self.extend && *p > 0),
            base: self.base,
        }
    }

    /// A thread serves this socket from now on.
    pub(crate) fn serve(&mut self, name: SocketName, thread: u32) {
        let raised = self.sockets.find(name).is_some_and(|socket| socket.raised.is_some());
        let extended = raised || self.delivery().extend_to.is_some();
        let used = || self.families.get(&name.family)?.thread(thread)?.thread.cpu.used();
        let cpu = extended.then(used).flatten();
        if let Some(socket) = self.sockets.find(name) {
            socket.serve_by(thread, cpu.unwrap_or(0));
        }
    }

    /// A thread took a connection from a queue by itself and has not been raised yet.
    pub(crate) fn taken(&mut self, name: SocketName) {
        let delivery = self.delivery();
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(slot) = family.arena.slot(name.slot) else { return };
        let Some(thread) = named::number(slot.thread.load(SeqCst)).filter(|n| family.thread(*n).is_some())
        else {
            return;
        };
        if let Some(priority) = delivery.extend_to {
            family.extend(thread, delivery.base, priority, delivery.rank);
        }
        self.serve(name, thread);
    }

    /// The thread is done with the socket: its CPU time is charged to the path, and how long
    /// it took to wake up is noted.
    pub(crate) fn end_serving(&mut self, name: SocketName) -> u64 {
        let Some(socket) = self.sockets.find(name) else { return 0 };
        let raised = socket.raised.take();
        let Some((thread, began)) = socket.end_service() else { return 0 };
        if let Some(priority) = raised {
            self.release_thread(name, thread, priority);
        }
        let Some(family) = self.families.get(&name.family) else { return 0 };
        family.take_unblock_time(thread, &mut self.unblock);
        if began == 0 {
            return 0;
        }
        let now = family.thread(thread).and_then(|end| end.thread.cpu.used());
        now.map_or(0, |now| now.saturating_sub(began))
    }
}
