//! Linux's turns, as an executor keeps them: until one is over it runs only when nothing else wants to (`SCHED_IDLE`). Where
//! something always wants to it would see the end much too late, so a thread of its own, above all programs, ends each turn in time.

use crate::say::say;
use crate::threads::linux_share::{LinuxShare, Turn, own_time};
use crate::threads::priority::{self, HIGHEST, Scheduling};
use crate::threads::thread_number;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use silk_executor::clock;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The turns that an executor gives Linux.
pub struct LinuxTurns {
    share: LinuxShare,
    usual: Scheduling,
    keeper: Keeper,
}

impl LinuxTurns {
    /// Those of the calling thread, which is scheduled as `usual` between them. `None`, which is said, where it could not come back from
    /// the first: without the right to, nobody may leave `SCHED_IDLE`.
    pub fn new(share: LinuxShare, usual: Scheduling) -> Option<Self> {
        // Who was refused its real-time priority is an ordinary thread, which was said.
        let Some(usual) = [usual, Scheduling::Batch].into_iter().find(|usual| comes_back(*usual)) else {
            say!(
                Warning,
                "silkd: [scheduler] linux_share is left to Linux's own scheduler: an executor that steps back could not come \
                 forward again; run as root, or with CAP_SYS_NICE"
            );
            return None;
        };
        let keeper = Keeper::of_this_thread(usual, share.quantum());
        let failed = |error: &io::Error| {
            say!(Error, "silkd: [scheduler] linux_share is left to Linux's own scheduler: {error}");
        };
        Some(Self { share, usual, keeper: keeper.inspect_err(failed).ok()? })
    }

    /// The executor's paths have run for `paths` since the last time: begins or ends a turn.
    pub fn ran(&mut self, paths: Duration) {
        // What the kernel refuses leaves the shares to it.
        match self.share.ran(paths, own_time(), clock::now()) {
            Turn::Same => {}
            Turn::Linux => {
                // In this order: it may not run again before its keeper says so.
                self.keeper.begin(self.share.turn());
                let _ = priority::set(0, Scheduling::Idle);
            }
            Turn::Paths => self.end(),
        }
    }

    /// The executor is about to sleep, which ends a turn: who wakes it must not find it behind everything else.
    pub fn rest(&mut self) {
        if self.share.rest(clock::now()) {
            self.end();
        }
    }

    /// It has slept for so long.
    pub fn slept(&mut self, slept: Duration) {
        self.share.slept(slept, own_time());
    }

    fn end(&self) {
        self.keeper.end();
        let _ = priority::set(0, self.usual);
    }
}

/// Whether a thread may be scheduled so again after it was idle: tried with one that has nothing to lose.
fn comes_back(usual: Scheduling) -> bool {
    let (tell, told) = mpsc::channel();
    let (done, wait) = mpsc::channel::<()>();
    let trial = move || {
        let _ = tell.send(thread_number::own());
        let _ = wait.recv();
    };
    let Ok(thread) = Builder::new().name("silk-trial".to_owned()).spawn(trial) else { return false };
    let tried = told.recv().map_err(io::Error::other).and_then(|trial| {
        priority::set(trial, Scheduling::Idle)?;
        priority::set(trial, usual)
    });
    drop(done);
    let _ = thread.join();
    tried.is_ok()
}

/// Who ends turns in time.
struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    quantum: Duration,
}

struct Shared {
    /// Expires when a turn is over, and from then on every quantum until it is set anew.
    timer: OwnedFd,
    /// It is Linux's turn.
    turn: AtomicBool,
    /// There are no more.
    last: AtomicBool,
}

impl Keeper {
    fn of_this_thread(usual: Scheduling, quantum: Duration) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let (turn, last) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { timer, turn, last });
        let executor = thread_number::own();
        let keeps = shared.clone();
        let keeper = move || {
            // Where that is refused the executor is an ordinary thread, too.
            let _ = priority::set(0, Scheduling::Fifo(HIGHEST));
            while keeps.expires() {
                // A turn that has just begun, where another has just ended, may be cut short: it is made up for by the next.
                if keeps.turn.load(SeqCst) {
                    let _ = priority::set(executor, usual);
                }
            }
        };
        let thread = Some(Builder::new().name("silk-turns".to_owned()).spawn(keeper)?);
        Ok(Self { shared, thread, quantum })
    }

    fn begin(&self, turn: Duration) {
        self.shared.turn.store(true, SeqCst);
        self.shared.set(turn, self.quantum);
    }

    fn end(&self) {
        self.shared.turn.store(false, SeqCst);
        self.shared.set(Duration::ZERO, Duration::ZERO);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.last.store(true, SeqCst);
        self.shared.set(Duration::from_nanos(1), Duration::from_millis(1));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Has it expire `after` so long, and then again and again; never, where that is nothing.
    fn set(&self, after: Duration, again: Duration) {
        let spec =
            |time: Duration| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let times = Itimerspec { it_interval: spec(again), it_value: spec(after) };
        // Refused are only times that are none.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times);
    }

    /// Waits until it has; `false`: that is of no use any more.
    fn expires(&self) -> bool {
        let mut times = [0; 8];
        loop {
            match rustix::io::read(&self.timer, &mut times) {
                Ok(_) => return !self.last.load(SeqCst),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::scheduler_of;
    use silk_config::Percent;
    use std::io::{Write, stderr};

    const QUANTUM: Duration = Duration::from_millis(1);

    /// The turns of the calling thread; a thread of the test, so that nothing else is left idle.
    fn turns() -> Option<LinuxTurns> {
        let turns = LinuxTurns::new(LinuxShare::new(Percent::of_hundred(50), QUANTUM), Scheduling::Batch);
        if turns.is_none() {
            let _ = writeln!(stderr(), "SKIPPED, tests little: nobody may leave SCHED_IDLE here");
        }
        assert_eq!(turns.is_some(), comes_back(Scheduling::Batch));
        turns
    }

    /// Works until a turn has begun.
    fn works(turns: &mut LinuxTurns) {
        turns.ran(Duration::ZERO);
        let counted = own_time().unwrap();
        while own_time().unwrap() < counted + 2 * QUANTUM {}
        turns.ran(Duration::ZERO);
    }

    #[test]
    fn what_an_executor_uses_beside_its_paths_begins_a_turn_and_a_sleep_ends_it() {
        let executor = std::thread::spawn(|| {
            let Some(mut turns) = turns() else { return };
            // A turn that is longer than the test, or its keeper might end it first.
            turns.share = LinuxShare::new(Percent::WHOLE, QUANTUM);
            works(&mut turns);
            assert_eq!(scheduler_of(0).unwrap(), libc::SCHED_IDLE);
            turns.rest();
            assert_eq!(scheduler_of(0).unwrap(), libc::SCHED_BATCH);
        });
        executor.join().unwrap();
    }

    #[test]
    fn a_turn_ends_in_time_though_the_executor_does_not_run() {
        let (tell, told) = mpsc::channel();
        let (done, wait) = mpsc::channel::<()>();
        let executor = std::thread::spawn(move || {
            let Some(mut turns) = turns() else { return };
            works(&mut turns);
            tell.send(thread_number::own()).unwrap();
            // Not at its turns again: as good as one that never gets to run.
            let _ = wait.recv();
        });
        if let Ok(tid) = told.recv() {
            let looks = (0..5_000).map(|_| std::thread::sleep(QUANTUM));
            let policies = looks.map(|()| scheduler_of(tid).unwrap());
            assert!(policies.into_iter().any(|policy| policy == libc::SCHED_BATCH), "still idle");
        }
        drop(done);
        executor.join().unwrap();
    }
}
