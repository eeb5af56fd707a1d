//! How an executor sleeps: one `epoll_wait` without a time-out over its receive ring, its
//! eventfd (programs and the control thread write it), one timerfd, and the sockets of Linux's
//! that its paths have. All are edge-triggered, so waking costs no read; what is to be done is
//! found by looking, but for those sockets, which may be many and are told by name.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use silk_instant::Instant;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// What is no socket of Linux's.
const SOURCE: u64 = 0;
const TIMER: u64 = 1;
/// Sockets come after these: by the index of their path.
const FIRST: u64 = 2;
/// How many sockets are heard of at once; the others the next time.
const MOST: usize = 64;
/// How long a busy executor does not ask Linux's sockets.
const DEAF: Duration = Duration::from_millis(1);

/// Watches sockets of Linux's for an executor.
#[derive(Clone)]
pub struct Watch(Arc<OwnedFd>);

impl Watch {
    /// From now on the executor is told when something changes at `socket`, which the path of
    /// this index has. It ends with the socket.
    ///
    /// # Errors
    /// The kernel's, such as too many watched.
    pub fn add(&self, socket: impl AsFd, path: u32) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.0, socket, EventData::new_u64(FIRST + u64::from(path)), flags)?)
    }

    /// The executor is told no more.
    pub fn remove(&self, socket: impl AsFd) {
        // One that is not there is as good.
        let _ = epoll::delete(&self.0, socket);
    }
}

/// The sleeper.
pub struct Sleeper {
    epoll: Arc<OwnedFd>,
    timer: OwnedFd,
    /// When the timer will fire; FAR: it is off, or has fired.
    set: Instant,
    /// How often it slept: what a busy executor rarely does.
    pub sleeps: u64,
    /// The paths at whose sockets of Linux's something has changed.
    pub stirred: Vec<u32>,
    /// When these were asked last; FAR: just now.
    asked: Instant,
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
            epoll::add(&epoll, source, EventData::new_u64(SOURCE), EventFlags::IN | EventFlags::ET)?;
        }
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let (epoll, stirred) = (Arc::new(epoll), Vec::with_capacity(MOST));
        Ok(Self { epoll, timer, set: Instant::FAR, sleeps: 0, stirred, asked: Instant::FAR })
    }

    /// What sockets of Linux's are added to.
    pub fn watch(&self) -> Watch {
        Watch(self.epoll.clone())
    }

    /// Asks the sockets of Linux's, now and then, while the executor has no time to sleep.
    pub fn ask(&mut self, now: Instant) {
        if self.asked == Instant::FAR {
            self.asked = now;
        } else if now.since(self.asked) >= DEAF {
            self.asked = now;
            self.wait(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        }
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
        self.wait(None);
        self.asked = Instant::FAR;
    }

    fn wait(&mut self, limit: Option<&Timespec>) {
        let mut ready = [const { MaybeUninit::uninit() }; MOST];
        // EINTR is a wake-up like any other; nothing else can fail on descriptors we hold.
        let Ok((ready, _)) = epoll::wait(&self.epoll, &mut ready, limit) else { return };
        let paths = ready.iter().filter_map(|event| event.data.u64().checked_sub(FIRST));
        self.stirred.extend(paths.map(|path| path as u32));
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
    use silk_executor::clock;
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
    fn a_socket_of_linuxs_is_told_by_its_path_asleep_and_awake() {
        let mut sleeper = Sleeper::new(&[]).unwrap();
        let event = wake::event().unwrap();
        sleeper.watch().add(&event, 7).unwrap();
        sleeper.sleep(clock::now(), None);
        assert_eq!(std::mem::take(&mut sleeper.stirred), [7]);
        wake::notify(event.as_fd());
        let woken = clock::now();
        sleeper.ask(woken);
        assert!(sleeper.stirred.is_empty(), "it has just slept");
        sleeper.ask(woken + DEAF);
        assert_eq!(std::mem::take(&mut sleeper.stirred), [7]);
        sleeper.watch().remove(&event);
        wake::notify(event.as_fd());
        sleeper.ask(woken + 2 * DEAF);
        assert!(sleeper.stirred.is_empty());
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
