//! Keeps real-time priorities from stopping the machine. Above every domain, it
//! looks now and then at the programs' threads that have one: a thread that has not slept for
//! too long loses it, and so does the hungriest when all of them together use more of a CPU
//! than they may. Past Linux's own limit (95 %) *every* real-time thread would stop for 50 ms.

use crate::say::say;
use crate::threads::priority::{self, Scheduling};
use crate::threads::program_thread::ProgramThread;
use crate::threads::receiving::Receiving;
use crate::threads::ringing::Patience;
use crate::threads::stepping_down::SteppingDown;
use silk_executor::clock;
use silk_stream::Arena;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks whether anybody has a real-time priority, while nobody has: a thread that is given one just then loses it
/// in time all the same.
const RARE_LOOK: Duration = Duration::from_millis(200);
/// Over how long it is counted what all of them use: less than the second in which Linux counts,
/// so that the hungriest is demoted before Linux stops all.
const WINDOW: Duration = Duration::from_millis(800);
/// Of the time between two looks, what counts as not having slept, in hundredths: a tick is
/// missing where the thread runs on another CPU now.
const AWAKE: u128 = 90;

/// A thread that may have a real-time priority.
struct Thread {
    /// Gone when no executor knows the thread any more.
    thread: Weak<ProgramThread>,
    number: u32,
    /// Its family's priorities, plus one; zero: none.
    priorities: Arc<[AtomicU32]>,
    arena: Arc<Arena>,
    /// CPU time when last asked for, ns; `None`: it had no priority then.
    used: Option<u64>,
    /// CPU time since the last look.
    in_look: Duration,
    /// How long it has not slept.
    awake: Duration,
    /// CPU time in this window.
    in_window: Duration,
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
    /// How much of the window has passed.
    window: Duration,
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
    pub fn add(
        &self,
        thread: &Arc<ProgramThread>,
        number: u32,
        priorities: Arc<[AtomicU32]>,
        arena: Arc<Arena>,
    ) {
        let thread = Thread {
            thread: Arc::downgrade(thread),
            number,
            priorities,
            arena,
            used: None,
            in_look: Duration::ZERO,
            awake: Duration::ZERO,
            in_window: Duration::ZERO,
        };
        self.lock().threads.push(thread);
    }

    /// The last demotions.
    pub fn demotions(&self) -> Vec<Demotion> {
        self.lock().demotions.clone()
    }

    /// What they have used at real-time priorities since this was last asked.
    fn used(&self) -> Duration {
        let mut state = self.lock();
        state.threads.retain(|thread| thread.thread.strong_count() > 0);
        state.threads.iter_mut().map(Thread::account).sum()
    }

    /// Whether one of them has a real-time priority.
    fn any(&self) -> bool {
        self.lock().threads.iter().any(Thread::has_priority)
    }

    /// Looks at every thread; `passed` since the last look.
    fn look(&self, passed: Duration, limit: Duration, cap: f64) {
        let mut state = self.lock();
        let State { threads, demotions, window } = &mut *state;
        for thread in threads.iter_mut() {
            let ran = std::mem::take(&mut thread.in_look);
            let slept = ran.as_nanos() * 100 < passed.as_nanos() * AWAKE;
            thread.awake = if slept { Duration::ZERO } else { thread.awake + passed };
            if thread.awake >= limit {
                thread.demote("it ran at a real-time priority without sleeping", demotions);
            }
        }
        *window += passed;
        if *window >= WINDOW {
            let used: Duration = threads.iter().map(|thread| thread.in_window).sum();
            let hungriest = threads.iter_mut().max_by_key(|thread| thread.in_window);
            if let Some(thread) = hungriest.filter(|_| used.as_secs_f64() > window.as_secs_f64() * cap) {
                thread.demote("real-time threads used more of a CPU than realtime_cap", demotions);
            }
            threads.iter_mut().for_each(|thread| thread.in_window = Duration::ZERO);
            *window = Duration::ZERO;
        }
    }
}

impl Thread {
    fn has_priority(&self) -> bool {
        self.priorities.get(self.number as usize).is_some_and(|p| p.load(SeqCst) != 0)
            && !self.has_stepped_down()
    }

    /// Whether it says that it has given its priority back, and Linux does, too.
    fn has_stepped_down(&self) -> bool {
        let says = self.arena.thread(self.number).is_some_and(|record| record.extended.load(SeqCst) == 0);
        says && self.thread.upgrade().is_some_and(|thread| !thread.is_real_time())
    }

    /// Takes to its accounts what it has used since the last time, and tells.
    fn account(&mut self) -> Duration {
        if !self.has_priority() {
            self.forget();
            return Duration::ZERO;
        }
        let ran = self.ran().unwrap_or_default();
        self.in_look += ran;
        self.in_window += ran;
        ran
    }

    /// CPU time since it was last asked for, if it had a priority then.
    fn ran(&mut self) -> Option<Duration> {
        let now = self.thread.upgrade()?.cpu.used()?;
        let before = self.used.replace(now)?;
        Some(Duration::from_nanos(now.saturating_sub(before)))
    }

    /// What it did with a priority it has no longer.
    fn forget(&mut self) {
        (self.used, self.awake) = (None, Duration::ZERO);
        (self.in_look, self.in_window) = (Duration::ZERO, Duration::ZERO);
    }

    fn demote(&mut self, why: &'static str, demotions: &mut Vec<Demotion>) {
        let Some(thread) = self.thread.upgrade() else { return };
        let tid = thread.tid();
        thread.demote(|| {
            if let Some(known) = self.priorities.get(self.number as usize) {
                known.store(0, SeqCst);
            }
            if let Some(record) = self.arena.thread(self.number) {
                record.extended.store(0, SeqCst);
            }
        });
        self.forget();
        say!(Warning, "silkd: thread {tid} lost its priority: {why}");
        if demotions.len() == REMEMBERED {
            demotions.remove(0);
        }
        demotions.push(Demotion { tid, why });
    }
}

/// Runs until the daemon ends. `limit`: how long a thread may run without sleeping; `cap`:
/// the part of a CPU all of them may use. It looks after the receive threads as well, lets
/// the daemon's own threads step down in time, and executors wait for programs with `patience`.
pub fn run(
    watched: &Watched,
    receiving: &Receiving,
    (mut own, mut patience): (SteppingDown, Patience),
    limit: Duration,
    cap: f64,
) {
    // Without the right to, there are no real-time threads to watch either.
    let _ = priority::set(0, Scheduling::Fifo(priority::HIGHEST + 1));
    let (mut asked, mut looked) = (clock::now(), clock::now());
    let mut rings = false;
    loop {
        let usual = if own.may_be_needed() || watched.any() || rings { LOOK } else { RARE_LOOK };
        std::thread::sleep(own.next_look().unwrap_or(usual));
        let now = clock::now();
        own.look(now.since(asked), watched.used());
        asked = now;
        if now.since(looked) >= LOOK {
            rings = patience.look();
            watched.look(now.since(looked), limit, cap);
            receiving.look(now.since(looked), || own.executors().highest_waited());
            looked = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_stream::{Sizes, THREADS};
    use std::process::{Child, Command};

    /// A program that works until it is ended.
    struct Busy(Child);

    impl Busy {
        fn start() -> Self {
            Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The thread of a program, watched; with what keeps it known, and its priorities.
    fn one(busy: &Busy) -> (Watched, Arc<ProgramThread>, Arc<[AtomicU32]>) {
        let arena = Arena::create(Sizes { rings: 4 << 20, domains: 1 }).unwrap();
        let priorities: Arc<[AtomicU32]> = (0..THREADS).map(|_| AtomicU32::new(0)).collect();
        let thread = Arc::new(ProgramThread::of(busy.0.id()).unwrap());
        let watched = Watched::default();
        arena.thread(0).unwrap().extended.store(1, SeqCst);
        watched.add(&thread, 0, priorities.clone(), arena);
        (watched, thread, priorities)
    }

    fn look(watched: &Watched, passed: Duration, limit: Duration, cap: f64) {
        watched.used();
        watched.look(passed, limit, cap);
    }

    fn wait_until_it_has_worked(thread: &ProgramThread) {
        let before = thread.cpu.used();
        while thread.cpu.used().unwrap_or(0) <= before.unwrap_or(0) + 1000 {}
    }

    #[test]
    fn a_thread_that_never_sleeps_is_demoted_and_remembered() {
        let busy = Busy::start();
        let (watched, thread, priorities) = one(&busy);
        wait_until_it_has_worked(&thread);
        priorities[0].store(3, SeqCst);
        look(&watched, Duration::from_nanos(1), Duration::from_nanos(1), 1e18);
        assert!(watched.demotions().is_empty(), "one look compares nothing");
        wait_until_it_has_worked(&thread);
        look(&watched, Duration::from_nanos(100), Duration::from_nanos(100), 1e18);
        assert_eq!(priorities[0].load(SeqCst), 0);
        assert_eq!(watched.demotions()[0].tid, busy.0.id());
    }

    #[test]
    fn a_thread_that_has_given_its_priority_back_may_run_but_not_if_it_only_says_so() {
        let busy = Busy::start();
        let (watched, thread, priorities) = one(&busy);
        priorities[0].store(3, SeqCst);
        let runs_on = |says: u32| {
            watched.lock().threads[0].arena.thread(0).unwrap().extended.store(says, SeqCst);
            for _ in 0..3 {
                wait_until_it_has_worked(&thread);
                look(&watched, Duration::from_nanos(100), Duration::from_nanos(100), 1e18);
            }
            watched.demotions().is_empty()
        };
        assert!(runs_on(0), "Linux says so too");
        if thread.schedule(Scheduling::Fifo(1)).is_ok() {
            assert!(!runs_on(0), "Linux says that it has one");
            return;
        }
        assert!(!runs_on(1));
    }

    #[test]
    fn the_hungriest_pays_for_all() {
        let busy = Busy::start();
        let (watched, thread, priorities) = one(&busy);
        wait_until_it_has_worked(&thread);
        priorities[0].store(3, SeqCst);
        look(&watched, WINDOW, Duration::from_secs(9), 1e-9);
        wait_until_it_has_worked(&thread);
        look(&watched, Duration::from_nanos(10), Duration::from_secs(9), 1e-9);
        assert!(watched.demotions().is_empty(), "a window is not over");
        look(&watched, WINDOW, Duration::from_secs(9), 1e-9);
        assert!(watched.demotions()[0].why.contains("realtime_cap"));
    }

    #[test]
    fn who_has_no_priority_is_left_alone_and_who_is_gone_forgotten() {
        let busy = Busy::start();
        let (watched, thread, _) = one(&busy);
        wait_until_it_has_worked(&thread);
        for _ in 0..3 {
            look(&watched, Duration::from_nanos(1), Duration::from_nanos(1), 0.0);
        }
        assert!(watched.demotions().is_empty());
        assert_eq!(watched.lock().threads.len(), 1);
        drop(thread);
        look(&watched, Duration::from_nanos(1), Duration::from_nanos(1), 0.0);
        assert_eq!(watched.lock().threads.len(), 0);
    }
}
