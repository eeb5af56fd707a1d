//! The daemon's real-time threads among the ordinary ones, for a moment now and then. Linux keeps 50 ms of every second
//! for ordinary threads (its deadline server since 6.12, its limit of 95 % before): where real-time threads leave them
//! less it stops *all* real-time threads for as long, receive threads too, and what comes meanwhile is lost. But who is
//! an ordinary thread itself is not stopped, and what it uses counts. So the executors and the receive threads step
//! down before Linux stops them, to the lowest nice value, and are ordinary threads until these have had their
//! part, most of which they take themselves.
//!
//! Why, and what was tried before: `docs/design/stepping-down.md`.

use crate::threads::cpu_time::CpuTime;
use crate::threads::priority::{self, Scheduling};
use crate::threads::receiving::Receiving;
use crate::threads::thread_number;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What ordinary threads are to have had: a little more than what Linux sees to.
const PART: Duration = Duration::from_millis(56);
/// Within how long: with what a step down takes after it still well within Linux's second.
const WITHIN: Duration = Duration::from_millis(750);
/// How long a step down takes at most: programs' threads may use all of it at their real-time priorities.
const LONGEST: Duration = Duration::from_millis(150);

/// How often it is looked whether a step down is over.
const DOWN_LOOK: Duration = Duration::from_millis(5);

/// A while: how long, and what of it ordinary threads had.
#[derive(Clone, Copy, Debug, Default)]
struct While {
    passed: Duration,
    had: Duration,
}

/// Whether ordinary threads have had their part, as Linux counts.
#[derive(Debug, Default)]
struct Part {
    /// The looks of the last [`WITHIN`], and all of them together.
    looks: VecDeque<While>,
    sum: While,
    /// Stepped down, since when.
    down: Option<While>,
}

impl Part {
    /// Real-time threads used `used` of the time that `passed`: whether it is time to be an ordinary thread.
    fn is_due(&mut self, passed: Duration, used: Duration) -> bool {
        let look = While { passed, had: passed.saturating_sub(used) };
        match &mut self.down {
            Some(down) => {
                down.add(look);
                if down.had >= PART || down.passed >= LONGEST {
                    *self = Self::default();
                }
            }
            None => {
                self.looks.push_back(look);
                self.sum.add(look);
                while let Some(oldest) =
                    self.looks.front().filter(|look| self.sum.passed >= WITHIN + look.passed)
                {
                    self.sum.passed -= oldest.passed;
                    self.sum.had -= oldest.had;
                    self.looks.pop_front();
                }
                let lacks = self.sum.passed >= WITHIN && self.sum.had < PART;
                self.down = lacks.then(While::default);
            }
        }
        self.down.is_some()
    }
}

impl While {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.had += other.had;
    }
}

/// An executor's thread.
struct Executor {
    time: CpuTime,
    usual: Scheduling,
}

#[derive(Default)]
struct Shared {
    executors: Mutex<Vec<Executor>>,
    down: AtomicBool,
}

/// The executors that have real-time priorities; shared by them and the watchdog.
#[derive(Clone, Default)]
pub struct RealTime(Arc<Shared>);

impl RealTime {
    /// The calling thread is an executor's, and scheduled as `usual` unless it has stepped down.
    pub fn join(&self, usual: Scheduling) {
        let time = CpuTime::of(thread_number::own());
        self.0.executors.lock().unwrap_or_else(PoisonError::into_inner).push(Executor { time, usual });
    }

    /// They have stepped down.
    pub fn is_down(&self) -> bool {
        self.0.down.load(Relaxed)
    }

    fn any(&self) -> bool {
        !self.0.executors.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// CPU time they have used since the start, ns.
    fn used(&self) -> u64 {
        let executors = self.0.executors.lock().unwrap_or_else(PoisonError::into_inner);
        executors.iter().filter_map(|executor| executor.time.used()).sum()
    }

    /// How long that of the highest priority has waited for a CPU since the start, ns.
    pub fn highest_waited(&self) -> u64 {
        let executors = self.0.executors.lock().unwrap_or_else(PoisonError::into_inner);
        let highest = executors.iter().max_by_key(|executor| {
            if let Scheduling::Fifo(priority) = executor.usual { priority } else { 0 }
        });
        highest.and_then(|executor| executor.time.waited()).unwrap_or(0)
    }

    fn step(&self, down: bool) {
        self.0.down.store(down, Relaxed);
        for executor in self.0.executors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let to = if down { Scheduling::First } else { executor.usual };
            // The first time was allowed; one that has ended needs no priority.
            let _ = priority::set(executor.time.tid(), to);
        }
    }
}

/// Steps down in time, and up again.
pub struct SteppingDown {
    executors: RealTime,
    receiving: Receiving,
    part: Part,
    /// What executors and receive threads had used at the last look, ns.
    used: u64,
}

impl SteppingDown {
    /// Of these threads.
    pub fn new(executors: RealTime, receiving: Receiving) -> Self {
        Self { executors, receiving, part: Part::default(), used: 0 }
    }

    /// The executors.
    pub fn executors(&self) -> &RealTime {
        &self.executors
    }

    /// Whether there is anybody who would have to step down.
    pub fn may_be_needed(&self) -> bool {
        self.executors.any() || self.receiving.serve_priority()
    }

    /// When to look next, if it is urgent.
    pub fn next_look(&self) -> Option<Duration> {
        self.executors.is_down().then_some(DOWN_LOOK)
    }

    /// Programs' threads have used `programs` at real-time priorities, of the time that `passed` since the last look.
    pub fn look(&mut self, passed: Duration, programs: Duration) {
        let before = std::mem::replace(&mut self.used, self.executors.used() + self.receiving.used());
        let down = self.executors.is_down();
        let own = if down { 0 } else { self.used.saturating_sub(before) };
        let due = self.part.is_due(passed, programs + Duration::from_nanos(own));
        if due != down {
            self.executors.step(due);
            self.receiving.step(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    const MS: Duration = Duration::from_millis(1);
    const LOOK: Duration = Duration::from_millis(50);
    const SECOND: Duration = Duration::from_secs(1);
    /// What Linux keeps for ordinary threads of each second.
    const KEPT: Duration = Duration::from_millis(50);

    /// Linux: stops real-time threads where ordinary ones have not had [`KEPT`] when no more than that is left of a second
    /// that began when they last had (the deadline server), or of any second (the limit).
    struct Linux {
        server: While,
        last: VecDeque<While>,
    }

    impl Linux {
        /// Whether this moment is one in which it stops them.
        fn stops(&mut self, moment: While) -> bool {
            self.server.add(moment);
            if self.server.had >= KEPT {
                self.server = While::default();
            }
            self.last.push_back(moment);
            if self.last.len() as u128 > SECOND.as_millis() {
                self.last.pop_front();
            }
            let had: Duration = self.last.iter().map(|moment| moment.had).sum();
            let lacks = self.last.len() as u128 == SECOND.as_millis() && had < KEPT;
            self.server.passed > SECOND - KEPT || lacks
        }
    }

    /// What threads do for a while: how many ms, how much of the processor they use at real-time priorities, and which part of
    /// that is the daemon's.
    type Load = (u32, f64, f64);

    /// Whether Linux ever stops them, of ten seconds in which these loads come in turn.
    fn is_stopped(loads: &[Load]) -> bool {
        let mut linux = Linux { server: While::default(), last: VecDeque::new() };
        let (mut part, mut down, mut look) = (Part::default(), false, (Duration::ZERO, Duration::ZERO));
        let moments = loads.iter().cycle().flat_map(|(time, all, own)| (0..*time).map(|_| (*all, *own)));
        moments.take(10_000).any(|(all, own)| {
            let used = MS.mul_f64(if down { all * (1.0 - own) } else { all });
            look = (look.0 + MS, look.1 + used);
            if look.0 >= if down { DOWN_LOOK } else { LOOK } {
                down = part.is_due(look.0, look.1);
                look = Default::default();
            }
            linux.stops(While { passed: MS, had: MS - used })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn linux_never_has_to_stop_them(
            loads in prop::collection::vec((1..900u32, prop_oneof![Just(1.0), 0.9..1.0, 0.0..1.0], 0.4..1.0), 1..20),
        ) {
            prop_assert!(!is_stopped(&loads));
        }
    }

    #[test]
    fn it_stops_those_who_never_step_down() {
        assert!(is_stopped(&[(1, 1.0, 0.0)]), "what programs use, nobody steps down with");
        assert!(!is_stopped(&[(1, 0.94, 0.0)]));
    }

    /// When it steps down, and up again, with looks this far apart while threads use `used` of each.
    fn steps(used: f64, looks: u32) -> Vec<u32> {
        let mut part = Part::default();
        let down = |part: &mut Part| part.is_due(LOOK, LOOK.mul_f64(used));
        let states: Vec<_> = (0..looks).map(|_| down(&mut part)).collect();
        (1..looks).filter(|&look| states[look as usize] != states[look as usize - 1]).collect()
    }

    #[test]
    fn who_leaves_others_their_part_does_not_step_down() {
        // 56 ms of 750 are 7.5 %.
        assert_eq!(steps(0.92, 100), []);
        assert!(!steps(0.93, 100).is_empty());
    }

    #[test]
    fn a_step_down_ends_when_they_have_had_it_or_never_will() {
        // 750 ms in looks of 50; and programs use all of it: three looks, and again.
        assert_eq!(steps(1.0, 36), [14, 17, 32, 35]);
        assert_eq!(steps(0.95, 17), [14]);
        let mut part = Part::default();
        while !part.is_due(LOOK, LOOK) {}
        assert!(part.is_due(LOOK, Duration::ZERO), "they have had 50 ms");
        assert!(!part.is_due(DOWN_LOOK * 2, Duration::ZERO), "they have had their part");
    }

    /// Policy and nice value of a thread of ours (proc(5)).
    fn scheduled(tid: u32) -> (String, String) {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (fields[41 - 3].to_owned(), fields[19 - 3].to_owned())
    }

    #[test]
    fn an_executor_is_an_ordinary_thread_meanwhile() {
        let usual = Scheduling::Fifo(3);
        if let Err(error) = priority::set(0, usual) {
            let _ = writeln!(std::io::stderr(), "SKIPPED, tests nothing: no real-time priorities: {error}");
            return;
        }
        let executors = RealTime::default();
        executors.join(usual);
        let tid = executors.0.executors.lock().unwrap()[0].time.tid();
        let mut stepping = SteppingDown::new(executors.clone(), Receiving::default());
        assert!(stepping.may_be_needed());
        assert!(!SteppingDown::new(RealTime::default(), Receiving::default()).may_be_needed());
        let (fifo, other) = (libc::SCHED_FIFO.to_string(), libc::SCHED_OTHER.to_string());
        assert_eq!(scheduled(tid).0, fifo);
        assert_eq!(stepping.next_look(), None);
        stepping.look(WITHIN, WITHIN);
        assert_eq!(scheduled(tid), (other, "-20".to_owned()));
        assert!(executors.is_down());
        assert_eq!(stepping.next_look(), Some(DOWN_LOOK));
        stepping.look(PART, Duration::ZERO);
        assert_eq!(scheduled(tid).0, fifo);
        assert!(!executors.is_down());
    }
}
