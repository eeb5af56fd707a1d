//! How sockets and their paths end, in whichever order: the program closes, the connection
//! ends, the process dies. A slot and its rings return when both have happened.

use crate::between::names::SocketName;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use crate::domain::incoming::give_back;
use crate::domain::socket_end::{SocketEnd, Wake};
use crate::slots::retire;
use silk_instant::Instant;
use silk_path::{Bell, PathId};
use silk_stream::{kind, request};
use std::sync::atomic::Ordering::SeqCst;

impl Engine {
    /// A path has ended: it is destroyed, and its socket keeps its end until the program has
    /// closed it.
    pub(crate) fn finish(&mut self, id: PathId, now: Instant) {
        let end = self.take_end(id);
        if let Some(name) = end.as_ref().map(|end| end.name())
            && self.sockets.find(name).is_some_and(|socket| !socket.closed)
        {
            self.write_info(id, name);
        }
        let class = self.core.paths.path(id).map_or(0, |path| path.state.class);
        self.destroy(id, now);
        let Some(mut end) = end else { return };
        let name = end.name();
        let Some(socket) = self.sockets.find(name) else { return self.is_over(name) };
        socket.path = None;
        socket.past_class = class;
        if socket.closed {
            return self.free(&end);
        }
        let wake = end.take_news();
        socket.end = Some(end);
        self.tell_ended(name, wake);
        // The program may have closed it already, and rings for that once.
        self.answer_ended(name);
    }

    /// Tells the program of a socket without a path what it has not been told yet.
    pub(crate) fn tell_ended(&mut self, name: SocketName, wake: Option<Wake>) {
        let Some(wake) = wake else { return };
        let served_by = self.thread_of(name);
        let Some(family) = self.families.get(&name.family) else { return };
        if let Some(slot) = family.arena.slot(name.slot) {
            family.tell_of_end(name.slot, slot, wake.threads, served_by);
        }
    }

    /// Destroys a path and gives its frames back; reports that are being made tell of it before.
    pub(crate) fn destroy(&mut self, id: PathId, now: Instant) {
        self.tell_of_ending(id);
        self.host.stirred.remove(&id.index);
        self.core.destroy(id, now);
    }

    /// The program has closed a socket that has a path.
    pub(crate) fn note_closed(&mut self, name: SocketName) {
        let cpu = self.end_serving(name);
        let Some(socket) = self.sockets.find(name) else { return };
        socket.closed = true;
        let path = socket.path;
        if let Some(id) = path {
            self.core.paths.charge_cpu(id, 0, cpu);
        }
    }

    /// A socket whose path has ended has rung: only its close still means anything.
    pub(crate) fn answer_ended(&mut self, name: SocketName) {
        let Some(family) = self.families.get(&name.family) else { return };
        let Some(slot) = family.arena.slot(name.slot) else { return };
        let asked = slot.request.swap(0, SeqCst);
        if asked & request::INFO != 0 {
            self.answer_info(name);
        }
        if asked & request::CLOSE != 0 {
            self.close_ended(name);
        }
    }

    /// A socket whose path has ended is closed: nothing is left of it.
    fn close_ended(&mut self, name: SocketName) {
        let cpu = self.end_serving(name);
        let Some(socket) = self.sockets.find(name) else { return };
        let (class, end) = (socket.past_class, socket.end.take());
        self.core.paths.charge_past(class, cpu);
        if let Some(end) = end {
            let had_port = end.slot().kind.load(SeqCst) == kind::DATAGRAM;
            self.free(&end);
            if had_port {
                // Somebody may wait for it.
                self.wake_control();
            }
        }
    }

    /// The last holder of a socket is gone, in order or (`abort`) not. With `generation`, one that was accepted is closed only if its
    /// slot has not been used anew since. That of another is used anew when the control thread has heard that it is gone, whatever the
    /// program has written there.
    pub fn close(&mut self, name: SocketName, generation: Option<u32>, abort: bool, now: Instant) {
        let current = self.slot_of(name);
        let current = current.map(|slot| slot.generation.load(SeqCst));
        let was_accepted = self.sockets.get(name).is_some_and(|socket| !socket.named);
        if was_accepted && generation.is_some_and(|wanted| current != Some(wanted)) {
            return;
        }
        let Some(socket) = self.sockets.find(name) else { return self.forget_spare(name) };
        if socket.closed {
            return;
        }
        match socket.path {
            None => self.close_ended(name),
            Some(id) if self.core.port.datagrams(id).is_some() => self.close_datagrams(id, name, now),
            Some(id) => {
                self.look(id);
                let reset = |end: &mut SocketEnd| {
                    end.unread() > 0 || end.slot().request.load(SeqCst) & request::ABORT != 0
                };
                // Data nobody will read is a reset (RFC 2525 §2.17), as is a process's death, and what a program asks for.
                let bell =
                    if abort || self.end_of(id).is_some_and(reset) { Bell::Abort } else { Bell::Close };
                self.note_closed(name);
                self.core.bell(id, Bell::Sent, now);
                self.core.bell(id, bell, now);
                self.settle(id, now);
            }
        }
    }

    /// Whether the program has asked that a socket be closed in order, and not been heard yet.
    pub(crate) fn asked_to_close(&self, name: SocketName) -> bool {
        let slot = self.slot_of(name);
        let asked = slot.map_or(0, |slot| slot.request.load(SeqCst));
        asked & request::CLOSE != 0 && asked & request::ABORT == 0
    }

    /// A path has ended whose socket's family was gone before.
    fn is_over(&mut self, name: SocketName) {
        if self.going_on.remove(&name) {
            let _ = self.events.send(Told::SocketGone { name });
        }
    }

    /// Takes the socket's end out of a path that is about to be destroyed.
    fn take_end(&mut self, id: PathId) -> Option<Box<SocketEnd>> {
        match self.core.paths.path_mut(id)?.take_stream() {
            Some(stream) => (stream as Box<dyn std::any::Any>).downcast().ok(),
            None => self.core.port.take_datagrams(id),
        }
    }

    /// A slot and its rings return to the book that they are from, this domain's or the control thread's. In another, the one they are
    /// from would run out of them.
    pub(crate) fn free(&mut self, end: &SocketEnd) {
        let name = end.name();
        let named = self.sockets.remove(name).is_some_and(|socket| socket.named);
        let Some(family) = self.families.get_mut(&name.family) else { return };
        end.return_larger(&mut family.pool);
        if named {
            retire(&family.arena, name.slot);
            let _ = self.events.send(Told::SocketGone { name });
        } else {
            give_back(family, name, end.rings());
        }
    }
}
