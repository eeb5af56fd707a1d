//! What programs have rung for: bytes they wrote, room they made, requests and options in their
//! slots, taken from the arenas to the paths. Nothing here trusts what a slot says.

use crate::between::names::SocketName;
use crate::domain::engine::Engine;
use crate::domain::socket_end::SocketEnd;
use silk_instant::Instant;
use silk_path::{Bell, Cork, PathId, Report};
use silk_stream::{option, request};
use std::sync::atomic::Ordering::SeqCst;

/// Sockets of one family that are looked at in one turn: it may have rung for as many as there can be, of which it has none.
const RUNG: usize = 256;
/// Of all families together: there may be many that ring all the time.
const RUNG_IN_ALL: usize = 4 * RUNG;

impl Engine {
    /// Takes what the families have rung for to the paths: of each what it has rung for first. Where that is too much for one turn,
    /// the families that were not heard are the first of the next. Whether there was anything.
    pub fn take_doorbells(&mut self, now: Instant) -> bool {
        let (mut rang, mut room) = (false, RUNG_IN_ALL);
        for _ in 0..self.families.len() {
            if room == 0 {
                break;
            }
            let from = |index| self.families.range(index..).next().map(|(index, _)| *index);
            let Some(index) = from(self.heard_next).or_else(|| from(0)) else { break };
            self.heard_next = index.wrapping_add(1);
            let Some(family) = self.families.get_mut(&index) else { continue };
            let mut left = family.hear(self.domain);
            rang |= !left.is_empty();
            let some = left.len().min(RUNG).min(room);
            room -= some;
            for slot in left.drain(..some) {
                self.rung(SocketName { family: index, slot }, now);
            }
            if let Some(family) = self.families.get_mut(&index) {
                family.leave(left);
            }
        }
        rang
    }

    /// A socket has rung.
    fn rung(&mut self, name: SocketName, now: Instant) {
        let Some(socket) = self.sockets.find(name) else {
            if !self.rung_spare(name, now) {
                self.listener_rung(name);
            }
            return;
        };
        match socket.path {
            Some(id) => {
                socket.rung = true;
                self.wake(id, now);
            }
            None => self.answer_ended(name),
        }
    }

    fn listener_rung(&self, name: SocketName) {
        if let Some(hold) = self.listening.get(&name) {
            self.call_acceptor(hold);
        }
    }

    /// Whether a family has rung and not been heard.
    pub fn has_rung(&self) -> bool {
        self.families.values().any(|family| family.has_rung(self.domain))
    }

    /// An end of a path has rung, the program's or Linux's: tells the path what for.
    pub(crate) fn answer_doorbell(&mut self, id: PathId, now: Instant) {
        let Some(name) = self.end_of(id).map(|end| end.name()) else { return };
        let Some(socket) = self.sockets.find(name) else { return };
        // What arrived at a socket's other path may be why this one is looked at.
        let id = socket.path.unwrap_or(id);
        let (rung, ready) = (std::mem::take(&mut socket.rung), std::mem::take(&mut socket.ready));
        if ready {
            self.core.report(id, Report::Ready, now);
        }
        if !rung {
            return;
        }
        if self.core.port.datagrams(id).is_some() {
            return self.send_datagrams(id, now);
        }
        // Bytes before requests: a cork that was set before they were written is then seen.
        let mut new_bytes = self.look(id);
        let Some(end) = self.end_of(id) else { return };
        if end.is_nonsense() {
            end.fail(libc::ECONNRESET);
            self.core.bell(id, Bell::Abort, now);
        }
        let Some(end) = self.end_of(id) else { return };
        let asked = end.slot().request.swap(0, SeqCst);
        let is_last = asked & (request::SHUT_WRITE | request::CLOSE) != 0;
        if asked & request::OPTIONS != 0 {
            self.apply_service(id, now);
        }
        if asked & request::URGENT != 0 {
            // What it is about may have been written after the first look.
            new_bytes |= self.look(id);
            self.mark_urgent(id, now);
        }
        if is_last {
            // Whatever was written before the end is to leave before the FIN, and the FIN rides
            // on the last of it, so nothing else may let it go first.
            self.look(id);
            if asked & request::ABORT != 0 {
                // A reset has no text with it: Linux would have sent this when it was written.
                self.core.bell(id, Bell::Sent, now);
            }
            self.answer_request(id, name, asked, now);
        }
        if asked & request::PUSH != 0 {
            for bell in [Bell::NoDelay(true), Bell::Cork(Cork::Out)] {
                self.core.bell(id, bell, now);
            }
        }
        if asked & (request::OPTIONS | request::PUSH) != 0 {
            self.apply_options(id, now);
        }
        if asked & request::WISHES != 0 {
            self.apply_wishes(id, now);
        }
        if !is_last {
            if new_bytes {
                self.core.bell(id, Bell::Sent, now);
            }
            self.answer_request(id, name, asked, now);
        }
        // A closed socket has nothing more to read.
        if asked & request::CLOSE == 0 {
            self.core.bell(id, Bell::Read, now);
        }
    }

    /// The bits a program has set in its slot's `request`.
    fn answer_request(&mut self, id: PathId, name: SocketName, asked: u32, now: Instant) {
        let mut ring = |bell| {
            self.core.bell(id, bell, now);
        };
        if asked & request::SHUT_READ != 0 {
            ring(Bell::ShutdownRead);
        }
        if asked & request::SHUT_WRITE != 0 {
            ring(Bell::ShutdownWrite);
        }
        if asked & request::CLOSE != 0 {
            ring(if asked & request::ABORT != 0 { Bell::Abort } else { Bell::Close });
        }
        // Other processes that hold the socket may wait for what does not come any more, or watch it by edge, and so may threads that
        // have a bell. Who sleeps on a socket that nobody else holds was woken by the process itself.
        let ends = |end: &&mut SocketEnd| {
            let slot = end.slot();
            let is_watched = || slot.bells.iter().any(|bells| bells.load(SeqCst) != 0);
            let others = asked & request::SHUT_WRITE != 0 && (slot.holders.load(SeqCst) > 1 || is_watched());
            others || asked & request::SHUT_READ != 0
        };
        self.end_of(id).filter(ends).into_iter().for_each(SocketEnd::tell_anyway);
        if asked & request::SHUT_WRITE != 0 {
            self.end_of(id).into_iter().for_each(SocketEnd::finish);
        }
        if asked & request::TAKEN != 0 {
            self.taken(name);
        }
        if asked & request::INFO != 0 {
            self.tell_info(id, name);
        }
        if asked & request::CLOSE != 0 {
            self.note_closed(name);
        }
    }

    /// Where urgent data ends is said before what is urgent may leave.
    fn mark_urgent(&mut self, id: PathId, now: Instant) {
        if let Some(octets) = self.end_of(id).and_then(|end| end.urgent_octets()) {
            self.core.bell(id, Bell::Urgent(octets), now);
        }
    }

    /// The service bits come before anything that may let go what is to bear them.
    fn apply_service(&mut self, id: PathId, now: Instant) {
        if let Some(service) = self.end_of(id).and_then(SocketEnd::new_service) {
            // The two lowest bits are ECN's, which TCP would have to negotiate (RFC 3168 §6.1).
            self.core.bell(id, Bell::Service(service & !3), now);
        }
    }

    /// A new connection has the options of its listening socket from the start.
    pub(crate) fn apply_first_options(&mut self, id: PathId, now: Instant) {
        self.apply_service(id, now);
        if self.end_of(id).is_some_and(|end| end.slot().options.load(SeqCst) != 0) {
            self.apply_options(id, now);
        }
    }

    fn apply_options(&mut self, id: PathId, now: Instant) {
        let keepalive = self.keepalive;
        let Some(end) = self.end_of(id) else { return };
        end.limit_receiving();
        let slot = end.slot();
        let options = slot.options.load(SeqCst);
        let or = |value: u32, default: u32| if value == 0 { default } else { value };
        let keep = (options & option::KEEPALIVE != 0).then(|| {
            (
                or(slot.keep_idle.load(SeqCst), keepalive.idle.as_secs() as u32),
                or(slot.keep_interval.load(SeqCst), keepalive.interval.as_secs() as u32),
                or(slot.keep_count.load(SeqCst), keepalive.probes.into()).min(255) as u8,
            )
        });
        let cork = match options {
            _ if options & option::CORK != 0 => Cork::Tight,
            _ if options & option::MORE != 0 => Cork::Loose,
            _ => Cork::Out,
        };
        // A cork first: it holds what would go without delay.
        for bell in [Bell::Cork(cork), Bell::NoDelay(options & option::NODELAY != 0), Bell::KeepAlive(keep)] {
            self.core.bell(id, bell, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::family_end::FamilyEnd;
    use crate::domain::rig;
    use silk_stream::{Arena, Sizes};
    use std::sync::Arc;

    #[test]
    fn of_many_families_that_ring_all_the_time_each_is_heard_in_its_turn() {
        let mut engine = rig::engine("[[class]]\nname = \"all\"\ndefault = true\n");
        let heard_at_once = (RUNG_IN_ALL / RUNG) as u32;
        let families = 2 * heard_at_once - 1;
        let arenas: Vec<_> =
            (0..families).map(|_| Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap()).collect();
        for (index, arena) in (0..).zip(&arenas) {
            engine.families.insert(index, FamilyEnd::new(arena.clone(), Arc::from([]), (0, 1)));
        }
        let ring = |arena: &Arena| {
            let set = &arena.doorbell(0).unwrap().set;
            (0..=RUNG as u32).for_each(|slot| set.mark(slot));
        };
        let unheard = || -> Vec<u32> {
            let rings = |arena: &Arc<Arena>| arena.doorbell(0).unwrap().set.is_marked();
            (0..).zip(&arenas).filter(|(_, arena)| rings(arena)).map(|(index, _)| index).collect()
        };
        arenas.iter().for_each(|arena| ring(arena));
        assert!(engine.take_doorbells(Instant::ZERO));
        assert_eq!(unheard(), (heard_at_once..families).collect::<Vec<_>>());
        // Those that go on do not keep the others from being heard.
        arenas.iter().take(heard_at_once as usize).for_each(|arena| ring(arena));
        assert!(engine.take_doorbells(Instant::ZERO));
        assert!(unheard().iter().all(|index| *index < heard_at_once), "{:?}", unheard());
        assert!(engine.has_rung());
    }
}
