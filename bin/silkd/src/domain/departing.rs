//! What a process, a family or a listening socket that is gone leaves behind: its sockets are closed some in each turn, since there
//! may be many and nobody's packets are to wait until all are. Who is gone first ends first.

use crate::between::names::{FamilyIndex, SocketName};
use crate::between::obeyed::Obeyed;
use crate::between::told::Told;
use crate::domain::engine::Engine;
use silk_instant::Instant;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::vec;

/// Sockets that are closed in one turn, and that are looked at.
const CLOSED: usize = 64;
const LOOKED_AT: usize = 1024;

/// Who is gone.
#[derive(Debug)]
enum Who {
    /// A process: what it alone held is closed; reset where it has died, and is not another program now, which has closed all that.
    Process { process: u32, died: bool },
    /// A whole family.
    Family,
    /// A listening socket: connections that nobody has accepted are reset, those of these slots.
    Listener(vec::IntoIter<u32>),
}

/// How far the sockets of one who is gone are closed.
#[derive(Debug)]
pub struct Departing {
    family: FamilyIndex,
    who: Who,
    /// The slots before this have been looked at.
    next: u32,
    /// What is let go of when all of them are closed.
    marks: Vec<Arc<Obeyed>>,
}

impl Departing {
    fn new(family: FamilyIndex, who: Who) -> Self {
        Self { family, who, next: 0, marks: Vec::new() }
    }
}

impl Engine {
    /// A process has died: what it alone held is reset. Or it is another program now, and has closed all that.
    pub fn process_gone(&mut self, family: FamilyIndex, (process, died): (u32, bool)) {
        self.departing.push_back(Departing::new(family, Who::Process { process, died }));
    }

    /// A family has died: everything of it is reset and freed, but for what it had closed: that
    /// sends what is left of its text, and its path ends by itself, as on Linux.
    pub fn family_gone(&mut self, family: FamilyIndex, now: Instant) {
        // It may live on: it connects no more.
        self.spares.retain(|name, _| name.family != family);
        let listening = self.listeners.values().flatten().map(|hold| hold.name);
        for name in listening.filter(|name| name.family == family).collect::<Vec<_>>() {
            self.unlisten(name, now);
        }
        self.departing.push_back(Departing::new(family, Who::Family));
    }

    /// A listening socket is gone: these connections, which nobody has accepted and nobody can any more, are reset.
    pub(crate) fn listener_gone(&mut self, family: FamilyIndex, unaccepted: Vec<u32>) {
        if !unaccepted.is_empty() {
            let who = Who::Listener(unaccepted.into_iter());
            self.departing.push_back(Departing::new(family, who));
        }
    }

    /// Lets go of a mark when those who are gone by now have left nothing, at once where nobody is.
    pub fn mark(&mut self, obeyed: Arc<Obeyed>) {
        if let Some(last) = self.departing.back_mut() {
            last.marks.push(obeyed);
        }
    }

    /// Goes on with whoever was gone first.
    pub fn close_some(&mut self, now: Instant) {
        let Some(mut departing) = self.departing.pop_front() else { return };
        if !self.close_some_of(&mut departing, now) {
            self.departing.push_front(departing);
        } else if let Who::Family = departing.who {
            self.end_family(departing.family);
        }
    }

    /// Closes some of the sockets of one who is gone. Whether these were the last.
    fn close_some_of(&mut self, departing: &mut Departing, now: Instant) -> bool {
        let mut closed = 0;
        for _ in 0..LOOKED_AT {
            if closed == CLOSED {
                break;
            }
            let Some(name) = self.next_to_close(departing) else { return true };
            closed += usize::from(match departing.who {
                Who::Process { process, died } => self.close_where_last(name, (process, died), now),
                Who::Family => self.close_of_nobody(name, now),
                Who::Listener(_) => {
                    self.close(name, None, true, now);
                    true
                }
            });
        }
        false
    }

    /// The next socket that may have to be closed.
    fn next_to_close(&self, departing: &mut Departing) -> Option<SocketName> {
        let family = departing.family;
        if let Who::Listener(unaccepted) = &mut departing.who {
            return unaccepted.next().map(|slot| SocketName { family, slot });
        }
        let name = self.sockets.next_of(family, departing.next)?;
        departing.next = name.slot + 1;
        Some(name)
    }

    /// Closes a socket if this process alone held it. Whether it did.
    fn close_where_last(&mut self, name: SocketName, (process, died): (u32, bool), now: Instant) -> bool {
        let is_last =
            |slot: &silk_stream::Slot| slot.owner.load(SeqCst) == process && slot.holders.load(SeqCst) <= 1;
        let is_last = self.slot_of(name).is_some_and(is_last);
        if is_last {
            // What it had closed before it died is closed as it asked.
            self.close(name, None, died && !self.asked_to_close(name), now);
        }
        is_last
    }

    /// Closes a socket whose family is gone. Whether that was any work.
    fn close_of_nobody(&mut self, name: SocketName, now: Instant) -> bool {
        if self.asked_to_close(name) {
            self.close(name, None, false, now);
        }
        if self.sockets.get(name).is_some_and(|socket| socket.closed) {
            // It goes on, and nobody looks after the family's files any more.
            self.keep_copy(name, None);
            return true;
        }
        self.close(name, None, true, now);
        // Whatever a reset leaves to be sent later is not worth a dead program's memory.
        if let Some(id) = self.sockets.find(name).and_then(|socket| socket.path) {
            self.finish(id, now);
        }
        true
    }

    /// All sockets of a family that is gone are closed.
    fn end_family(&mut self, family: FamilyIndex) {
        let left = self.sockets.of_family(family).into_iter();
        let going_on: Vec<_> = left.filter(|name| self.goes_on(*name)).collect();
        let slots = going_on.iter().map(|name| name.slot).collect();
        self.going_on.extend(going_on);
        self.tell_control(Told::FamilyEnded { family, going_on: slots });
        self.sockets.remove_family(family);
        if let Some(family) = self.families.remove(&family) {
            family.let_threads_go();
            family.wake_all(None, &self.ringing);
        }
    }

    /// Whether the control thread is told when a connection that was closed is over.
    fn goes_on(&self, name: SocketName) -> bool {
        let is_open = |id| self.core.paths.path(id).is_some();
        self.sockets.get(name).is_some_and(|socket| socket.named && socket.path.is_some_and(is_open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::command::Command;
    use crate::between::sockets::Rings;
    use crate::domain::family_end::FamilyEnd;
    use crate::domain::orders;
    use crate::domain::rig;
    use crate::domain::socket_end::SocketEnd;
    use crate::domain::sockets::Socket;
    use silk_executor::clock;
    use silk_stream::mail::mail;
    use silk_stream::{Arena, Sizes, wake};

    const RING: u32 = 4096;

    /// A domain with a family of so many sockets, whose connections have ended, of each of these processes.
    fn engine(of: &[(u32, usize)]) -> Engine {
        let mut engine = rig::engine("[[class]]\nname = \"all\"\ndefault = true\n");
        let arena = Arena::create(Sizes { rings: 8 << 20, domains: 1 }).unwrap();
        let mut family = FamilyEnd::new(arena.clone(), Arc::from([]), (0, 1));
        for (process, sockets) in of {
            for _ in 0..*sockets {
                let name = SocketName { family: 0, slot: family.pool.take_slot().unwrap() };
                let [rx, tx] = [(); 2].map(|()| family.pool.take_ring(RING).unwrap());
                let slot = arena.slot(name.slot).unwrap();
                slot.owner.store(*process, SeqCst);
                slot.holders.store(1, SeqCst);
                let end = SocketEnd::new(&arena, name, Rings { rx, tx }).unwrap();
                let mut socket = Socket::without_path(false);
                socket.end = Some(Box::new(end));
                engine.sockets.insert(name, socket);
            }
        }
        engine.families.insert(0, family);
        engine
    }

    /// How many sockets are left after each turn.
    fn turns(engine: &mut Engine) -> Vec<usize> {
        let mut left = Vec::new();
        while !engine.is_idle() {
            engine.close_some(clock::now());
            left.push(engine.sockets.of_family(0).len());
        }
        left
    }

    #[test]
    fn what_a_process_leaves_is_closed_in_parts_and_what_others_hold_stays() {
        let mut engine = engine(&[(7, 150), (8, 50)]);
        engine.process_gone(0, (7, true));
        assert_eq!(turns(&mut engine), [136, 72, 50]);
        let is_8s = |name: SocketName| engine.slot_of(name).map(|slot| slot.owner.load(SeqCst)) == Some(8);
        assert!(engine.sockets.of_family(0).into_iter().all(is_8s));
    }

    #[test]
    fn what_a_listening_socket_has_not_accepted_is_closed_in_parts() {
        let mut engine = engine(&[(7, 150), (8, 50)]);
        let is_7s =
            |engine: &Engine, name| engine.slot_of(name).map(|slot| slot.owner.load(SeqCst)) == Some(7);
        let unaccepted = engine.sockets.of_family(0).into_iter().filter(|name| is_7s(&engine, *name));
        let unaccepted = unaccepted.map(|name| name.slot).collect();
        engine.listener_gone(0, unaccepted);
        assert_eq!(turns(&mut engine), [136, 72, 50]);
        assert!(!engine.sockets.of_family(0).into_iter().any(|name| is_7s(&engine, name)));
    }

    #[test]
    fn a_mark_waits_until_what_those_before_it_have_left_is_closed_and_for_nobody_else() {
        let mut engine = engine(&[(7, 150), (8, 50)]);
        let (events, mut told) = mail();
        let control = Arc::new(wake::event().unwrap());
        let mark = |engine: &mut Engine| {
            let obeyed = Obeyed::telling(Told::CaughtUp { family: 0 }, &events, &control);
            orders::obey(engine, Command::Mark(obeyed));
        };
        let mut is_told = || matches!(told.receive(), Ok(Told::CaughtUp { family: 0 }));
        mark(&mut engine);
        assert!(is_told(), "nobody was gone");
        engine.process_gone(0, (7, true));
        mark(&mut engine);
        engine.process_gone(0, (8, true));
        let mut turn = || {
            engine.close_some(clock::now());
            is_told()
        };
        assert_eq!([(); 3].map(|()| turn()), [false, false, true]);
        assert!(!engine.is_idle(), "another is still there");
    }

    #[test]
    fn a_family_is_gone_when_all_of_it_is_closed_and_before_it_goes_what_went_earlier() {
        let mut engine = engine(&[(7, 70), (8, 70)]);
        let (events, mut told) = mail();
        engine.events = events;
        engine.process_gone(0, (7, true));
        engine.family_gone(0, clock::now());
        assert_eq!(turns(&mut engine), [76, 70, 6, 0]);
        assert!(engine.families.is_empty());
        assert!(
            matches!(told.receive(), Ok(Told::FamilyEnded { family: 0, going_on }) if going_on.is_empty())
        );
    }
}
