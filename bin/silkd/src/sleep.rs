//! How an executor sleeps: one `epoll_wait` without a time-out over its receive ring, its
//! eventfd (programs and the control thread write it) and one timerfd. All are
//! edge-triggered, so waking costs no read; what is to be done is found by looking.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use silk_instant::Instant;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The sleeper.
pub struct Sleeper {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// When the timer will fire; FAR: it is off, or has fired.
    set: Instant,
    /// How often it slept: what a busy executor rarely does.
    pub sleeps: u64,
}

impl Sleeper {
    /// A sleeper that is woken by any of `sources` becoming readable.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn new(sources: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        for source in sources {
            epoll::add(&epoll, source, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?;
        }
        epoll::add(&epoll, &timer, EventData::new_u64(1), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, set: Instant::FAR, sleeps: 0 })
    }

    /// Sleeps until a source becomes readable or `due` has come. The caller has announced its
    /// sleep and looked once more. The timer is touched only to make it earlier.
    pub fn sleep(&mut self, now: Instant, due: Option<Instant>) {
        if self.set <= now {
            self.set = Instant::FAR;
        }
        if let Some(due) = due.filter(|due| *due < self.set) {
            self.arm(due.max(Instant::from_nanos(1)));
        }
        self.sleeps += 1;
        let mut ready = [const { std::mem::MaybeUninit::uninit() }; 4];
        // EINTR is a wake-up like any other; nothing else can fail on descriptors we hold.
        let _ = epoll::wait(&self.epoll, &mut ready, None);
    }

    fn arm(&mut self, at: Instant) {
        let value = Timespec {
            tv_sec: (at.nanos() / 1_000_000_000) as i64,
            tv_nsec: (at.nanos() % 1_000_000_000) as i64,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        if timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).is_ok() {
            self.set = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use silk_stream::wake;
    use std::os::fd::AsFd;
    use std::time::Duration;

    #[test]
    fn a_written_event_ends_the_sleep_each_time() {
        let event = wake::event().unwrap();
        let mut sleeper = Sleeper::new(&[event.as_fd()]).unwrap();
        for _ in 0..3 {
            wake::notify(event.as_fd());
            sleeper.sleep(clock::now(), None);
        }
        assert_eq!(sleeper.sleeps, 3);
    }

    #[test]
    fn what_is_due_ends_the_sleep() {
        let mut sleeper = Sleeper::new(&[]).unwrap();
        let due = clock::now() + Duration::from_millis(2);
        while clock::now() < due {
            sleeper.sleep(clock::now(), Some(due));
        }
        sleeper.sleep(clock::now(), Some(Instant::from_nanos(5)));
        assert!(sleeper.sleeps >= 2);
    }
}
