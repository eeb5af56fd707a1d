//! A thread of a program's, as the daemon knows it: by its number, which may be another's once it has ended. So nothing is done to that
//! number unless a descriptor says that the thread lives (pidfd_open(2), `PIDFD_THREAD`); where the kernel has none for
//! threads, before Linux 6.9, it is taken to live.

use crate::threads::cpu_time::CpuTime;
use crate::threads::priority::{self, Scheduling};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// The thread.
#[derive(Debug)]
pub struct ProgramThread {
    /// Its number, and what it has used of the CPU.
    pub cpu: CpuTime,
    /// Readable once it has ended.
    ended: Option<OwnedFd>,
    /// How often somebody has begun to take its real-time priority, and how often that was done.
    demotions: [AtomicU32; 2],
    /// How often somebody has scheduled it otherwise.
    turns: AtomicU32,
}

impl ProgramThread {
    /// The thread that has this number now.
    ///
    /// # Errors
    /// There is none, or the daemon has no descriptor left.
    pub fn of(tid: u32) -> io::Result<Self> {
        const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        let pid = i32::try_from(tid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let ended = match pidfd_open(pid, THREAD) {
            // The last is a filter's of system calls.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => None,
            opened => Some(opened?),
        };
        Ok(Self { ended, ..Self::numbered(tid) })
    }

    fn numbered(tid: u32) -> Self {
        let demotions = [const { AtomicU32::new(0) }; 2];
        Self { cpu: CpuTime::of(tid), ended: None, demotions, turns: AtomicU32::new(0) }
    }

    /// A record only: no thread that there is.
    #[cfg(test)]
    pub fn nobody() -> Self {
        Self::numbered(u32::MAX >> 2)
    }

    /// Its number, which may be another's by now.
    pub fn tid(&self) -> u32 {
        self.cpu.tid()
    }

    /// Schedules it so, and never what it makes: that is its program's own affair. A number is given out again once all others were, which takes longer
    /// than what lies between the look and the call.
    ///
    /// # Errors
    /// As [`priority::set`]; `ESRCH`, too, where its number is another's.
    pub fn schedule(&self, scheduling: Scheduling) -> io::Result<()> {
        if self.has_ended() {
            return Err(Errno::SRCH.into());
        }
        match scheduling {
            Scheduling::Fifo(priority) => {
                crate::sys::set_scheduler(self.tid(), libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
            }
            other => priority::set(self.tid(), other),
        }
    }

    /// Takes its real-time priority, which `note` writes down, whoever [reschedules](Self::reschedule) it meanwhile.
    pub fn demote(&self, note: impl Fn()) {
        let [begun, done] = &self.demotions;
        begun.fetch_add(1, SeqCst);
        loop {
            let turns = self.turns.load(SeqCst);
            // A thread that has ended needs no priority.
            let _ = self.schedule(Scheduling::Ordinary);
            note();
            // Who has not begun by now sees that it is being demoted.
            if self.turns.load(SeqCst) == turns {
                break;
            }
        }
        done.fetch_add(1, SeqCst);
    }

    /// Schedules it so, which `note` writes down with `true`; but where another has demoted or rescheduled it meanwhile, so that nobody
    /// knows which of the two came last, it becomes an ordinary one, which `note` writes down with `false`. Whether it is scheduled so.
    pub fn reschedule(&self, scheduling: Scheduling, note: impl Fn(bool)) -> bool {
        let [begun, done] = self.demotions.each_ref().map(|count| count.load(SeqCst));
        if begun != done {
            return false;
        }
        let turn = self.turns.fetch_add(1, SeqCst).wrapping_add(1);
        if self.schedule(scheduling).is_err() {
            return false;
        }
        note(true);
        let lasts = self.turns.load(SeqCst) == turn && self.demotions[0].load(SeqCst) == begun;
        if !lasts {
            self.demote(|| note(false));
        }
        lasts
    }

    /// Whether Linux schedules it in real time now, as far as it tells.
    pub fn is_real_time(&self) -> bool {
        priority::is_real_time(self.tid())
    }

    fn has_ended(&self) -> bool {
        let Some(ended) = &self.ended else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_number_that_is_anothers_by_now_is_left_alone() {
        let [mut before, mut after] = [sleeper(), sleeper()];
        let (old, new) = (ProgramThread::of(before.id()).unwrap(), ProgramThread::of(after.id()).unwrap());
        old.schedule(Scheduling::Batch).unwrap();
        before.kill().unwrap();
        before.wait().unwrap();
        let reused = ProgramThread { cpu: CpuTime::of(after.id()), ..old };
        let error = reused.schedule(Scheduling::Batch).unwrap_err();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", after.id())).unwrap();
        new.schedule(Scheduling::Batch).unwrap();
        after.kill().unwrap();
        after.wait().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        // The policy is the 41st field (proc_pid_stat(5)), the state the third.
        let fields = stat.rsplit_once(") ").unwrap().1;
        assert_eq!(fields.split(' ').nth(38), Some("0"), "{stat}");
    }

    #[test]
    fn a_demotion_lasts_whatever_an_executor_does_meanwhile() {
        use std::cell::Cell;
        let mut sleeper = sleeper();
        let thread = ProgramThread::of(sleeper.id()).unwrap();
        let book = Cell::new(1);
        let note = |raised| book.set(u32::from(raised) * 2);
        let during = Cell::new(None);
        thread.demote(|| {
            book.set(0);
            during.set(Some(thread.reschedule(Scheduling::Batch, note)));
        });
        assert_eq!((during.get(), book.get()), (Some(false), 0), "one that begins while it is demoted");
        let before = thread.reschedule(Scheduling::Batch, |raised| {
            note(raised);
            if raised {
                thread.demote(|| book.set(0));
            }
        });
        assert_eq!((before, book.get()), (false, 0), "one that it came between");
        assert!(
            thread.reschedule(Scheduling::Batch, note) && book.get() == 2,
            "later it may be raised again"
        );
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }

    #[test]
    fn what_two_executors_do_at_once_is_what_is_written_down() {
        use std::cell::Cell;
        let mut sleeper = sleeper();
        let thread = ProgramThread::of(sleeper.id()).unwrap();
        let (book, is_first) = (Cell::new(9), Cell::new(true));
        let lasts = thread.reschedule(Scheduling::Ordinary, |_| {
            if is_first.replace(false) {
                assert!(thread.reschedule(Scheduling::Batch, |done| book.set(u32::from(done) * 2)));
            }
            book.set(0);
        });
        let policy = crate::sys::scheduler_of(sleeper.id()).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!((lasts, book.get(), policy), (false, 0, libc::SCHED_OTHER));
    }

    #[test]
    fn what_a_raised_thread_makes_is_ordinary() {
        let gate = std::sync::mpsc::channel::<()>();
        let known = std::sync::mpsc::channel();
        let raised = std::thread::spawn(move || {
            known.0.send(crate::threads::thread_number::own()).unwrap();
            gate.1.recv().unwrap();
            let is_fifo = |policy: io::Result<i32>| policy.unwrap() & 0xff == libc::SCHED_FIFO;
            let own = is_fifo(crate::sys::scheduler_of(0));
            let made = std::thread::spawn(move || is_fifo(crate::sys::scheduler_of(0)));
            (own, made.join().unwrap())
        });
        let thread = ProgramThread::of(known.1.recv().unwrap()).unwrap();
        let is_raised = thread.schedule(Scheduling::Fifo(1)).is_ok();
        assert_eq!(thread.is_real_time(), is_raised);
        gate.0.send(()).unwrap();
        assert_eq!(raised.join().unwrap(), (is_raised, false));
        if !is_raised {
            crate::say::say!(Notice, "SKIPPED, tests little: no real-time priorities");
        }
    }

    #[test]
    fn a_thread_that_is_no_process_is_known_as_well_and_one_that_is_not_there_is_not() {
        let there = std::thread::spawn(|| ProgramThread::of(crate::threads::thread_number::own()).unwrap());
        let thread = there.join().unwrap();
        while thread.schedule(Scheduling::Ordinary).is_ok() {}
        assert!(ProgramThread::of(u32::MAX >> 2).is_err() && ProgramThread::of(0).is_err());
    }
}
