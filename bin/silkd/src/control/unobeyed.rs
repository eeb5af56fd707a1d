//! What executors are ordered for a family, and have not obeyed yet, is bounded. The control thread waits for
//! none of them, so programs that ask faster than they obey would fill their orders without end: nothing more is
//! heard of that family until they have, while all others are heard. What is ordered is counted here alone. Now
//! and then a mark follows it, and whichever executor comes to that last says so.
//!
//! Threads and event sets among them, which have a descriptor of the daemon's each, are fewer: a number is
//! another's only when every executor has let go of whose it was.
//!
//! What nobody has asked for (a port that is free since an executor has told of an end, a spare that nobody
//! wants) is not counted. It ends something that was, of which a family has so much and no more.

use crate::between::command::{Command, Orders};
use crate::between::names::FamilyIndex;
use crate::between::obeyed::Obeyed;
use crate::between::told::Told;
use crate::control::server::Server;
use rustix::event::epoll;
use std::collections::BTreeSet;
use std::os::fd::AsFd;

/// Orders for one family that all executors together may have before them. A process that dies with as many
/// sockets as a family can have leaves as many at once.
const MOST: u64 = 64 << 10;

/// What the executors were ordered for a family, and may not have obeyed yet.
#[derive(Debug, Default)]
pub struct Unobeyed {
    /// So much before the mark that is under way; zero: none is.
    before: u64,
    /// So much since.
    since: u64,
    /// The lifelines that are not heard as long as it is too much.
    waiting: BTreeSet<u64>,
}

impl Unobeyed {
    /// So much more was ordered. Whether a mark is to follow.
    fn add(&mut self, more: u64) -> bool {
        self.since += more;
        self.marks()
    }

    /// The mark was obeyed, and all before it. Whether another is to follow.
    fn obeyed(&mut self) -> bool {
        self.before = 0;
        self.marks()
    }

    /// One is under way whenever it is too much: somebody will say when it is no longer.
    fn marks(&mut self) -> bool {
        let marks = self.before == 0 && self.since >= MOST / 2;
        if marks {
            self.before = std::mem::take(&mut self.since);
        }
        marks
    }

    fn is_too_much(&self) -> bool {
        self.before + self.since >= MOST
    }
}

impl Server {
    /// Does something for a family, and counts what the executors are ordered by that.
    pub(crate) fn for_family<T>(&mut self, family: FamilyIndex, what: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.given();
        let done = what(self);
        let more = self.given() - before;
        if self.families.get_mut(&family).is_some_and(|known| known.unobeyed.add(more)) {
            self.mark(family);
        }
        done
    }

    /// How many orders were given, whatever for.
    fn given(&self) -> u64 {
        self.orders.iter().map(Orders::given).sum()
    }

    /// The last executor to have obeyed what was ordered until now says so.
    fn mark(&self, family: FamilyIndex) {
        let obeyed = Obeyed::telling(Told::CaughtUp { family }, &self.report_events, &self.event);
        self.tell_all(|| Command::Mark(obeyed.clone()));
    }

    /// Whether a lifeline is not to be heard for now, since its family is too far ahead of the executors. Then it
    /// is not looked at until they have caught up.
    pub(crate) fn is_ahead(&mut self, number: u64) -> bool {
        let Some(peer) = self.peers.get(&number) else { return false };
        let Some((family, _)) = peer.member else { return false };
        let known = self.families.get_mut(&family).filter(|known| known.unobeyed.is_too_much());
        let Some(known) = known else { return false };
        // Its end is heard behind what it has said, and the kernel would tell of that again and again meanwhile.
        let _ = epoll::delete(&self.epoll, peer.line.as_fd());
        known.unobeyed.waiting.insert(number);
        true
    }

    /// The executors have obeyed what was ordered for a family before its last mark: it is heard again.
    pub(crate) fn caught_up(&mut self, family: FamilyIndex) {
        let Some(known) = self.families.get_mut(&family) else { return };
        let marks = known.unobeyed.obeyed();
        let is_heard = !known.unobeyed.is_too_much();
        let waiting = if is_heard { std::mem::take(&mut known.unobeyed.waiting) } else { BTreeSet::new() };
        if marks {
            self.mark(family);
        }
        waiting.into_iter().for_each(|number| self.look_again_at(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::family::{Family, Socket, State};
    use crate::control::server::Member;
    use crate::control::server::tests::with_executor;
    use rustix::fs::Timespec;
    use silk_control::{Kind, Lifeline, Request};
    use silk_stream::mail::Receiver;
    use silk_stream::{Arena, Sizes};

    /// Messages that are heard at one time.
    const HEARD: u64 = 16;

    /// A program with one process, by its lifeline.
    struct Program {
        number: u64,
        line: Lifeline,
        /// What it asks of the executor that serves its socket.
        asks: Request,
    }

    impl Program {
        fn new(server: &mut Server) -> Self {
            let family = server.families.len() as u32;
            let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
            let mut known = Family::new(family, 7, arena, "test".into());
            let process = known.join(None);
            let slot = known.pool.take_slot().unwrap();
            let socket = Socket {
                kind: Kind::Stream,
                generation: 1,
                local: None,
                held: None,
                state: State::Served { domain: 0 },
                holders: vec![process],
                chose_port: false,
                has_peer: false,
                is_of_graph: false,
                opened: 0,
                rings: None,
            };
            known.sockets.insert(slot, socket);
            server.families.insert(family, known);
            let (number, line) = server.adopt_peer();
            server.set_member(number, family, Member::Process(process));
            Self { number, line, asks: Request::SetPriority { slot, generation: 1, priority: 0 } }
        }

        /// Asks as often as there is room for, so many times at most, and is heard.
        fn ask(&self, server: &mut Server, times: u64) {
            for _ in 0..times {
                let _ = self.line.try_send(&self.asks, &[]);
            }
            server.hear(self.number);
        }

        /// Whether the control thread would wake for what it has asked.
        fn is_looked_at(&self, server: &Server) -> bool {
            let (mut ready, now) = (Vec::with_capacity(64), Timespec { tv_sec: 0, tv_nsec: 0 });
            epoll::wait(&server.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&now)).unwrap();
            ready.iter().any(|event| event.data.u64() == self.number)
        }
    }

    /// Obeys whatever is ordered: how much that is.
    fn obey(executor: &mut Receiver<Command>) -> u64 {
        std::iter::from_fn(|| executor.receive().ok()).count() as u64
    }

    /// Whether executors have said that they have caught up with the first program; that is taken note of.
    fn has_caught_up(server: &mut Server) -> bool {
        let is_so = matches!(server.events.receive(), Ok(Told::CaughtUp { family: 0 }));
        if is_so {
            server.caught_up(0);
        }
        is_so
    }

    #[test]
    fn who_asks_faster_than_executors_obey_is_heard_when_they_have_and_others_are_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, mut executor) = with_executor(folder.path());
        let [hasty, other] = [(); 2].map(|()| Program::new(&mut server));
        (0..2 * MOST / HEARD).for_each(|_| hasty.ask(&mut server, HEARD));
        assert!(!hasty.is_looked_at(&server) && !has_caught_up(&mut server));
        other.ask(&mut server, 1);
        // What the one has asked so far, a mark in the middle, and what the other has.
        assert_eq!(obey(&mut executor), MOST + 1 + 1);
        assert!(!hasty.is_looked_at(&server));
        assert!(has_caught_up(&mut server) && hasty.is_looked_at(&server));
        // The second half has a mark, too.
        hasty.ask(&mut server, 0);
        assert_eq!(obey(&mut executor), 1 + HEARD);
        assert!(has_caught_up(&mut server) && !has_caught_up(&mut server));
        hasty.ask(&mut server, 0);
        assert_eq!(obey(&mut executor), HEARD);
    }

    #[test]
    fn what_a_process_leaves_is_counted_like_what_it_asks() {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, mut executor) = with_executor(folder.path());
        let program = Program::new(&mut server);
        server.families.get_mut(&0).unwrap().join(None);
        program.ask(&mut server, 3);
        assert_eq!(server.families[&0].unobeyed.since, 3);
        server.hang_up(program.number);
        // Its socket is closed, and it is gone.
        assert_eq!((server.families[&0].unobeyed.since, obey(&mut executor)), (5, 5));
    }

    #[test]
    fn whenever_it_is_too_much_a_mark_is_under_way() {
        let mut unobeyed = Unobeyed::default();
        let half = MOST / 2;
        assert!(!unobeyed.add(half - 1) && unobeyed.add(1));
        assert!(!unobeyed.add(half - 1) && !unobeyed.is_too_much());
        assert!(!unobeyed.add(1) && unobeyed.is_too_much());
        assert!(unobeyed.obeyed() && !unobeyed.is_too_much(), "the second half has its own");
        assert!(!unobeyed.obeyed() && !unobeyed.add(half - 1));
        // Whatever is ordered at once.
        assert!(unobeyed.add(3 * MOST) && !unobeyed.add(3 * MOST) && unobeyed.is_too_much());
        assert!(unobeyed.obeyed() && unobeyed.is_too_much());
        assert!(!unobeyed.obeyed() && !unobeyed.is_too_much());
    }
}
