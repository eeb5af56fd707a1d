//! One family as one executor knows it: its arena, the executor's own slots and rings of it,
//! and how to reach its threads and event sets.

use crate::between::thread_end::ThreadEnd;
use crate::domain::delivery::Delivery;
use crate::domain::files::Files;
use crate::domain::unblock::Histogram;
use crate::threads::priority;
use crate::threads::ringing::Ringing;
use silk_executor::clock;
use silk_instant::Instant;
use silk_stream::{Arena, BELLS, Bell, Listener, Pool, Slot, THREADS, named, wake};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// How long a thread may be on its way to queued connections before another is called as well.
const PATIENCE: Duration = Duration::from_millis(5);

/// Who is to be woken at the end of the executor's turn.
enum Waking {
    /// A thread that sleeps in `accept`.
    Thread(u32),
    /// The threads that sleep on a socket.
    Sleepers {
        /// The socket's slot.
        slot: u32,
        /// The thread that serves it.
        served_by: Option<u32>,
        /// That thread follows the class of what wakes it.
        leads: bool,
    },
    /// An event set.
    Bell(u32),
}

/// All of them.
#[derive(Default)]
struct Wakings {
    list: Vec<Waking>,
    /// Somebody among them has more to do than to clean up.
    pressing: bool,
    /// The event sets among them, a bit each. One is rung once a turn, whatever has happened to how many of its sockets: who wakes up
    /// looks at all that happened and sleeps again, and would be woken for each of the others in vain.
    bells: [u64; BELLS as usize / 64],
}

impl Wakings {
    fn push(&mut self, waking: Waking) {
        self.list.push(waking);
        self.pressing = true;
    }

    fn bell(&mut self, number: u32) {
        self.pressing = true;
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if let Some(word) = self.bells.get_mut(word)
            && *word & bit == 0
        {
            *word |= bit;
            self.list.push(Waking::Bell(number));
        }
    }
}

/// Puts something in the place of that number, of those below `most`, or takes it away; most families need few. What was there.
fn put<T>(places: &mut Vec<Option<T>>, number: u32, most: u32, what: Option<T>) -> Option<T> {
    let at = number as usize;
    if at >= places.len() && number < most {
        places.resize_with(at + 1, || None);
    }
    std::mem::replace(places.get_mut(at)?, what)
}

/// What [`FamilyEnd::wake_all`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woke {
    /// There was somebody to be woken.
    pub any: bool,
    /// An event set let its writer wait, which was interrupted.
    pub kept_waiting: bool,
}

/// The family.
pub struct FamilyEnd {
    /// What it shares with the daemon.
    pub arena: Arc<Arena>,
    /// This executor's slots and rings.
    pub pool: Pool,
    /// The files that its programs may send by reference.
    pub files: Files,
    /// The sockets that it has rung for and that were not looked at yet, in order.
    left: VecDeque<u32>,
    threads: Vec<Option<ThreadEnd>>,
    bells: Vec<Option<Arc<OwnedFd>>>,
    /// The priority each thread has now, plus one; shared by the executors.
    priorities: Arc<[AtomicU32]>,
    waking: RefCell<Wakings>,
    /// Of each listener, whom we last saw called, and since when.
    calls: RefCell<BTreeMap<u32, (u32, Instant)>>,
}

impl FamilyEnd {
    /// A family nobody of which is known yet, as `domain` of `domains` knows it.
    pub fn new(arena: Arc<Arena>, priorities: Arc<[AtomicU32]>, (domain, domains): (usize, usize)) -> Self {
        Self {
            pool: Pool::of_domain(arena.clone(), domain, domains),
            arena,
            files: Files::default(),
            left: VecDeque::new(),
            threads: Vec::new(),
            bells: Vec::new(),
            priorities,
            waking: RefCell::default(),
            calls: RefCell::default(),
        }
    }

    /// The sockets that it has rung for, of which those that are not looked at now are to be [left](Self::leave). What is new waits
    /// until nothing is left.
    pub fn hear(&mut self, domain: usize) -> VecDeque<u32> {
        let mut heard = std::mem::take(&mut self.left);
        if heard.is_empty()
            && let Some(doorbell) = self.arena.doorbell(domain)
            && doorbell.set.is_marked()
        {
            doorbell.set.take(|slot| heard.push_back(slot));
        }
        heard
    }

    /// These are to be looked at the next time.
    pub fn leave(&mut self, sockets: VecDeque<u32>) {
        self.left = sockets;
    }

    /// Whether it has rung for what was not looked at.
    pub fn has_rung(&self, domain: usize) -> bool {
        !self.left.is_empty() || self.arena.doorbell(domain).is_some_and(|bell| bell.set.is_marked())
    }

    /// A thread came or went. One that goes leaves its record as new, and its priority here: it may go on, as something else.
    pub fn set_thread(&mut self, number: u32, thread: Option<ThreadEnd>) {
        let before = put(&mut self.threads, number, THREADS, thread);
        if self.thread(number).is_none() {
            self.lower(number, before.as_ref());
            if let Some(record) = self.arena.thread(number) {
                record.extended.store(0, SeqCst);
            }
        }
    }

    /// The family has ended, be it that its threads live on: none of them keeps a priority that nobody watches.
    pub fn let_threads_go(&self) {
        self.threads().for_each(|(number, thread)| self.lower(number, Some(thread)));
    }

    /// Takes the priority that a thread has, if it has one: another domain may have given it.
    fn lower(&self, number: u32, thread: Option<&ThreadEnd>) {
        let Some(known) = self.priorities.get(number as usize).filter(|known| known.load(SeqCst) != 0) else {
            return;
        };
        match thread {
            Some(end) => end.thread.demote(|| known.store(0, SeqCst)),
            None => known.store(0, SeqCst),
        }
    }

    /// An event set came or went.
    pub fn set_bell(&mut self, number: u32, event: Option<Arc<OwnedFd>>) {
        put(&mut self.bells, number, BELLS, event);
    }

    /// How many threads there are.
    pub fn threads(&self) -> impl Iterator<Item = (u32, &ThreadEnd)> {
        self.threads.iter().enumerate().filter_map(|(n, thread)| Some((n as u32, thread.as_ref()?)))
    }

    /// The thread of that number.
    pub fn thread(&self, number: u32) -> Option<&ThreadEnd> {
        self.threads.get(number as usize)?.as_ref()
    }

    /// The priority that thread has been given, if it has one.
    pub fn priority_of(&self, number: u32) -> Option<u32> {
        self.priorities.get(number as usize)?.load(SeqCst).checked_sub(1)
    }

    /// The class, as its place among the accept queues, that thread has its priority from.
    pub fn rank_of(&self, number: u32) -> Option<usize> {
        Some(self.arena.thread(number)?.extended.load(SeqCst).checked_sub(1)? as usize)
    }

    fn note_priority(&self, number: u32, priority: u32, rank: u32) {
        if let Some(known) = self.priorities.get(number as usize) {
            known.store(priority, SeqCst);
        }
        if let Some(record) = self.arena.thread(number) {
            record.extended.store(rank, SeqCst);
        }
    }

    /// Schedules a thread for paths of `path_priority`, of the class at `rank` among the accept
    /// queues, only if it is scheduled otherwise now.
    /// Whether it is scheduled so afterwards.
    pub fn extend(&self, number: u32, base: i32, path_priority: u32, rank: usize) -> bool {
        let Some(thread) = self.thread(number) else { return false };
        let (shown, class) = if path_priority == 0 { (0, 0) } else { (path_priority + 1, rank as u32 + 1) };
        let said = self.arena.thread(number).map(|record| record.extended.load(SeqCst));
        // It gives a priority back by itself where it serves somebody else next.
        let has_stepped_down = said == Some(0) && class != 0;
        let is_so = self.priorities.get(number as usize).is_none_or(|known| known.load(SeqCst) == shown);
        if is_so && !has_stepped_down {
            // A path of another class may have been raised to the same priority.
            if said.is_some_and(|said| said != class) {
                self.note_priority(number, shown, class);
            }
            return true;
        }
        thread.thread.reschedule(priority::extended(base, path_priority), |done| match done {
            true => self.note_priority(number, shown, class),
            false => self.note_priority(number, 0, 0),
        })
    }

    /// A thread that sleeps in `accept` is to be woken.
    pub fn wake_thread(&self, number: u32) {
        self.waking.borrow_mut().push(Waking::Thread(number));
    }

    /// Every thread that sleeps on a socket is to be woken. `served_by` is the thread that
    /// serves it, whose wake-up is timed (SILK Table 2); one that has said that it follows what wakes it counts as that.
    pub fn wake_sleepers(&self, number: u32, slot: &Slot, served_by: Option<u32>) {
        let said = slot.thread.load(Relaxed);
        let leads = said & named::FOLLOWS != 0;
        let served_by = if leads { named::number(said) } else { served_by };
        self.waking.borrow_mut().push(Waking::Sleepers { slot: number, served_by, leads });
    }

    /// The event sets that watch a socket are to be told.
    pub fn ring_bells(&self, number: u32, slot: &Slot) {
        self.each_bell(slot, |bell, shared| {
            shared.set.mark(number);
            self.waking.borrow_mut().bell(bell);
        });
    }

    /// The bells of those who watch a socket.
    fn each_bell(&self, slot: &Slot, mut told: impl FnMut(u32, &Bell)) {
        for (word, bits) in slot.bells.iter().enumerate() {
            let mut bits = bits.load(SeqCst);
            while bits != 0 {
                let bell = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                self.arena.bell(bell).into_iter().for_each(|shared| told(bell, shared));
            }
        }
    }

    /// Whether a thread waits for datagrams of a socket, or did last, that runs at the priority of this class or a higher one.
    pub fn is_awaited_by(&self, slot: u32, rank: usize) -> bool {
        let Some(slot) = self.arena.slot(slot) else { return false };
        let runs_so = |sleeper: &AtomicU32| {
            let own = named::number(sleeper.load(Relaxed)).and_then(|thread| self.rank_of(thread));
            own.is_some_and(|own| own >= rank)
        };
        let mut is_so = runs_so(&slot.thread);
        self.each_bell(slot, |_, shared| is_so |= runs_so(&shared.thread));
        is_so
    }

    /// The connection of a socket has ended: who watches it is to be woken, also the threads that sleep on it or not, of which
    /// `served_by` is the one that serves it, and will only clean up.
    pub fn tell_of_end(&self, number: u32, slot: &Slot, threads: bool, served_by: Option<u32>) {
        let pressing = self.waking.borrow().pressing;
        if threads {
            self.wake_sleepers(number, slot, served_by);
        }
        self.ring_bells(number, slot);
        self.waking.borrow_mut().pressing = pressing;
    }

    /// Whether somebody is to be woken.
    pub fn has_news(&self) -> bool {
        !self.waking.borrow().list.is_empty()
    }

    /// Whether somebody is to be woken who has more to do than to clean up.
    pub fn has_pressing_news(&self) -> bool {
        self.waking.borrow().pressing
    }

    /// Whether a thread is on its way to the connections queued at a listener. Who has been for
    /// longer than [`PATIENCE`] (it is stopped, or others run instead of it) or is gone no
    /// longer counts.
    pub fn is_called(&self, number: u32, listener: &Listener) -> bool {
        let called = listener.called.load(SeqCst);
        let Some(thread) = called.checked_sub(1) else { return false };
        let now = clock::now();
        let mut calls = self.calls.borrow_mut();
        let call = calls.entry(number).or_insert((called, now));
        if call.0 != called {
            *call = (called, now);
        }
        let counts = now.since(call.1) < PATIENCE && self.thread(thread).is_some();
        if !counts {
            calls.remove(&number);
        }
        counts
    }

    /// Wakes everybody who is to be woken. The executor does so when it has sent what its turn
    /// has produced: a thread of its own priority could not run before anyway, and would only
    /// wait longer. With `lead` a thread that waits for events gets the priority of what wakes
    /// it.
    pub fn wake_all(&self, lead: Option<Delivery>, ringing: &Ringing) -> Woke {
        if !self.has_news() {
            return Woke::default();
        }
        ringing.during(|| self.wake(lead, ringing))
    }

    fn wake(&self, lead: Option<Delivery>, ringing: &Ringing) -> Woke {
        let mut waking = self.waking.borrow_mut();
        let mut woke = Woke { any: true, kept_waiting: false };
        (waking.bells, waking.pressing) = Default::default();
        for waking in waking.list.drain(..) {
            match waking {
                Waking::Thread(number) => {
                    let Some(record) = self.arena.thread(number) else { continue };
                    record.woken_at.store(clock::now().nanos(), Relaxed);
                    record.wake.fetch_add(1, SeqCst);
                    wake::wake(&record.wake, 1);
                }
                Waking::Sleepers { slot, served_by, leads } => {
                    let Some(slot) = self.arena.slot(slot) else { continue };
                    if let Some((thread, delivery)) = served_by.zip(lead).filter(|_| leads) {
                        self.lead(thread, true, delivery);
                    }
                    if let Some(record) = served_by.and_then(|n| self.arena.thread(n)) {
                        record.woken_at.store(clock::now().nanos(), Relaxed);
                    }
                    slot.event.fetch_add(1, SeqCst);
                    wake::wake(&slot.event, i32::MAX);
                }
                Waking::Bell(number) => {
                    let event = self.bells.get(number as usize).and_then(Option::as_ref);
                    if let (Some(shared), Some(event)) = (self.arena.bell(number), event) {
                        if let Some((thread, delivery)) = named::number(shared.thread.load(Relaxed)).zip(lead)
                        {
                            self.lead(thread, shared.armed.load(SeqCst) != 0, delivery);
                        }
                        woke.kept_waiting |=
                            wake::is_to_be_woken(&shared.armed) && !ringing.notify(event.as_fd());
                    }
                }
            }
        }
        woke
    }

    /// A thread follows the class of what it is woken for. One that is not `asleep` there
    /// is raised, but not lowered: it may be about to serve who raised it.
    fn lead(&self, thread: u32, asleep: bool, delivery: Delivery) {
        let Delivery { rank, base, extend_to } = delivery;
        if asleep || self.rank_of(thread).is_none_or(|own| own < rank) {
            self.extend(thread, base, extend_to.unwrap_or(0), rank);
        }
    }

    /// Collects how long the last wake-up of a thread took to arrive, if it has said so.
    pub fn take_unblock_time(&self, number: u32, into: &mut Histogram) {
        if let Some(record) = self.arena.thread(number) {
            match record.woken_after.swap(0, Relaxed) {
                0 => {}
                nanos => into.add(nanos),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::Sizes;

    /// How often `event` was written since it was last asked.
    fn written(event: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(event, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
    }

    #[test]
    fn an_event_set_is_rung_once_a_turn_however_many_of_its_sockets_have_news() {
        const SET: u32 = 70;
        const SOCKETS: u32 = 20;
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut family = FamilyEnd::new(arena.clone(), Arc::from([]), (0, 1));
        let event = Arc::new(wake::event().unwrap());
        family.set_bell(SET, Some(event.clone()));
        let bell = arena.bell(SET).unwrap();
        for turn in 0..3 {
            bell.armed.store(1, SeqCst);
            for number in 0..SOCKETS {
                let slot = arena.slot(number).unwrap();
                slot.bells[SET as usize / 64].store(1 << (SET % 64), SeqCst);
                family.ring_bells(number, slot);
            }
            assert_eq!(family.waking.borrow().list.len(), 1, "turn {turn}");
            assert!(family.wake_all(None, &Ringing::default()).any);
            assert_eq!(written(&event), 1, "turn {turn}");
            let mut told = 0;
            bell.set.take(|_| told += 1);
            assert_eq!(told, SOCKETS, "turn {turn}");
        }
        assert!(!family.wake_all(None, &Ringing::default()).any, "nobody has news");
    }

    #[test]
    fn who_rings_for_all_sockets_that_there_can_be_is_heard_in_parts_and_in_turn() {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let mut family = FamilyEnd::new(arena.clone(), Arc::from([]), (0, 1));
        let doorbell = arena.doorbell(0).unwrap();
        assert!(!family.has_rung(0) && family.hear(0).is_empty());
        (0..silk_stream::MARKS).for_each(|number| doorbell.set.mark(number));
        let mut looked_at = Vec::new();
        while family.has_rung(0) {
            let mut heard = family.hear(0);
            looked_at.extend(heard.drain(..1000.min(heard.len())));
            family.leave(heard);
            // It rings again, for what was looked at already.
            if looked_at.len() < silk_stream::MARKS as usize {
                doorbell.set.mark(0);
            }
        }
        assert_eq!(looked_at.pop(), Some(0), "what is new comes last");
        assert!(looked_at.into_iter().eq(0..silk_stream::MARKS));
    }

    #[test]
    fn news_of_an_end_presses_nobody_unless_there_is_other_news_too() {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let family = FamilyEnd::new(arena.clone(), Arc::from([]), (0, 1));
        let slot = arena.slot(3).unwrap();
        slot.bells[0].store(1 << 5, SeqCst);
        let seen = || (family.has_news(), family.has_pressing_news());
        assert_eq!(seen(), (false, false));
        family.tell_of_end(3, slot, true, None);
        assert_eq!(seen(), (true, false));
        // The same event set has more to do.
        family.ring_bells(3, slot);
        family.tell_of_end(3, slot, true, Some(1));
        assert_eq!(seen(), (true, true));
        family.wake_all(None, &Ringing::default());
        assert_eq!(seen(), (false, false));
        family.wake_thread(1);
        assert_eq!(seen(), (true, true));
    }
}
