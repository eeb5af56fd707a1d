//! Keeps real-time priorities from stopping the machine (design §6). Above every domain, it
//! looks now and then at the programs' threads that have one: a thread that has not slept for
//! too long loses it, and so does the hungriest when all of them together use more of a CPU
//! than they may. Past Linux's own limit (95 %) *every* real-time thread would stop for 50 ms.

use crate::clock;
use crate::priority::{self, Scheduling};
use crate::sys;
use silk_instant::Instant;
use silk_stream::Arena;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);
/// Of the time between two looks, what counts as not having slept, in hundredths.
const AWAKE: u128 = 97;

/// A thread that may have a real-time priority.
struct Thread {
    tid: u32,
    number: u32,
    /// Its family's priorities, plus one; zero: none.
    priorities: Arc<[AtomicU32]>,
    arena: Arc<Arena>,
    /// CPU time when last looked at, ns; `None`: it had no priority then.
    cpu: Option<u64>,
    /// How long it has not slept.
    awake: Duration,
}

/// Why a thread was demoted, and which.
#[derive(Clone, Debug)]
pub struct Demotion {
    /// The thread.
    pub tid: u32,
    /// Why.
    pub why: &'static str,
}

#[derive(Default)]
struct State {
    threads: Vec<Thread>,
    /// The last demotions, newest last, at most [`REMEMBERED`].
    demotions: Vec<Demotion>,
}

/// Demotions that are remembered for `silk paths`.
const REMEMBERED: usize = 64;

/// The threads that are watched; shared by the control thread and the watchdog.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<State>>);

impl Watched {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing in here can be left half-changed by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that may be given a priority.
    pub fn add(&self, tid: u32, number: u32, priorities: Arc<[AtomicU32]>, arena: Arc<Arena>) {
        let mut state = self.lock();
        state.threads.retain(|thread| thread.tid != tid);
        state.threads.push(Thread { tid, number, priorities, arena, cpu: None, awake: Duration::ZERO });
    }

    /// The last demotions.
    pub fn demotions(&self) -> Vec<Demotion> {
        self.lock().demotions.clone()
    }

    /// Looks at every thread; `passed` since the last look.
    fn look(&self, passed: Duration, limit: Duration, cap: f64) {
        let mut state = self.lock();
        let State { threads, demotions } = &mut *state;
        let mut used = Duration::ZERO;
        let mut hungriest: Option<(Duration, usize)> = None;
        threads.retain_mut(|thread| thread.is_there());
        for (place, thread) in threads.iter_mut().enumerate() {
            let Some(ran) = thread.ran() else { continue };
            used += ran;
            if hungriest.is_none_or(|(most, _)| ran > most) {
                hungriest = Some((ran, place));
            }
            let slept = ran.as_nanos() * 100 < passed.as_nanos() * AWAKE;
            thread.awake = if slept { Duration::ZERO } else { thread.awake + passed };
            if thread.awake >= limit {
                thread.demote("it ran at a real-time priority without sleeping", demotions);
            }
        }
        if let Some((_, place)) = hungriest.filter(|_| used.as_secs_f64() > passed.as_secs_f64() * cap) {
            threads[place].demote("real-time threads used more of a CPU than realtime_cap", demotions);
        }
    }
}

impl Thread {
    fn has_priority(&self) -> bool {
        self.priorities.get(self.number as usize).is_some_and(|p| p.load(SeqCst) != 0)
    }

    fn is_there(&self) -> bool {
        !self.has_priority() || sys::thread_cpu(self.tid).is_some()
    }

    /// CPU time since the last look, if it had a priority then and has one now.
    fn ran(&mut self) -> Option<Duration> {
        if !self.has_priority() {
            self.cpu = None;
            self.awake = Duration::ZERO;
            return None;
        }
        let now = sys::thread_cpu(self.tid)?;
        let before = self.cpu.replace(now)?;
        Some(Duration::from_nanos(now.saturating_sub(before)))
    }

    fn demote(&mut self, why: &'static str, demotions: &mut Vec<Demotion>) {
        // A thread that has ended needs no priority.
        let _ = priority::set(self.tid, Scheduling::Ordinary);
        if let Some(known) = self.priorities.get(self.number as usize) {
            known.store(0, SeqCst);
        }
        if let Some(record) = self.arena.thread(self.number) {
            record.extended.store(0, SeqCst);
        }
        self.cpu = None;
        self.awake = Duration::ZERO;
        eprintln!("silkd: thread {} lost its priority: {why}", self.tid);
        if demotions.len() == REMEMBERED {
            demotions.remove(0);
        }
        demotions.push(Demotion { tid: self.tid, why });
    }
}

/// Runs until the daemon ends. `limit`: how long a thread may run without sleeping; `cap`:
/// the part of a CPU all of them may use.
pub fn run(watched: &Watched, limit: Duration, cap: f64) {
    // Without the right to, there are no real-time threads to watch either.
    let _ = priority::set(0, Scheduling::Fifo(priority::HIGHEST));
    let mut last: Instant = clock::now();
    loop {
        std::thread::sleep(LOOK);
        let now = clock::now();
        watched.look(now.since(last), limit, cap);
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::{Sizes, THREADS};

    fn one(tid: u32) -> (Watched, Arc<[AtomicU32]>) {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1, huge_pages: false }).unwrap();
        let priorities: Arc<[AtomicU32]> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
        let watched = Watched::default();
        watched.add(tid, 0, priorities.clone(), arena);
        (watched, priorities)
    }

    fn own_tid() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
    }

    #[test]
    fn a_thread_that_never_sleeps_is_demoted_and_remembered() {
        let (watched, priorities) = one(own_tid());
        priorities[0].store(3, SeqCst);
        watched.look(Duration::from_nanos(1), Duration::from_nanos(1), 1e18);
        assert!(watched.demotions().is_empty(), "one look compares nothing");
        let before = sys::thread_cpu(own_tid()).unwrap();
        while sys::thread_cpu(own_tid()).unwrap() < before + 1000 {}
        watched.look(Duration::from_nanos(100), Duration::from_nanos(100), 1e18);
        assert_eq!(priorities[0].load(SeqCst), 0);
        assert_eq!(watched.demotions()[0].tid, own_tid());
    }

    #[test]
    fn the_hungriest_pays_for_all() {
        let (watched, priorities) = one(own_tid());
        priorities[0].store(3, SeqCst);
        watched.look(Duration::from_secs(1), Duration::from_secs(9), 0.9);
        let before = sys::thread_cpu(own_tid()).unwrap();
        while sys::thread_cpu(own_tid()).unwrap() < before + 1000 {}
        watched.look(Duration::from_nanos(10), Duration::from_secs(9), 0.9);
        assert!(watched.demotions()[0].why.contains("realtime_cap"));
    }

    #[test]
    fn who_has_no_priority_is_left_alone() {
        let (watched, _) = one(own_tid());
        for _ in 0..3 {
            watched.look(Duration::from_nanos(1), Duration::from_nanos(1), 0.0);
        }
        assert!(watched.demotions().is_empty());
    }
}
