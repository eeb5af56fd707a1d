//! How an executor sleeps: one `epoll_wait` without a time-out over its receive ring, its
//! eventfd (the daemon's threads write it), one for each family (which its programs write), one timerfd, and the sockets of Linux's
//! that its paths have. All are edge-triggered, so waking costs no read; what is to be done is
//! found by looking, but for those sockets, which may be many and are told by name.
//!
//! One that may fetch packets itself can also sleep on the same by `io_uring`, and fetches them for a moment before
//! (`anticipation.rs` says when).

use crate::between::watch::Watch;
use crate::domain::timers::SOON;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use silk_device::busy_poll::BusyPoll;
use silk_instant::Instant;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// What a sleep ends by besides rings: the event, the timer, sockets of Linux's.
const EVENTS: usize = 3;
/// How many of what is ready is heard of at once; of sockets the others the next time.
const MOST: usize = 64;
/// How long a busy executor does not ask Linux's sockets.
const DEAF: Duration = Duration::from_millis(1);

/// The other way to sleep.
enum Fetching {
    /// Nobody has asked for it.
    NotYet,
    Can(Box<BusyPoll>),
    /// The kernel cannot, or could once and failed.
    Never,
}

/// The sleeper.
pub struct Sleeper {
    /// All of the following, and what each family rings.
    epoll: Arc<OwnedFd>,
    /// Of the device: readable while it has something.
    rings: Vec<OwnedFd>,
    /// What the daemon's own threads write.
    event: OwnedFd,
    /// What families ring.
    programs: Arc<OwnedFd>,
    /// The sockets of Linux's.
    sockets: Arc<OwnedFd>,
    timer: OwnedFd,
    /// The other way to sleep.
    fetching: Fetching,
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
    /// A sleeper that is woken by any of a device's `rings` having something, and by `event` being written to.
    ///
    /// # Errors
    /// The kernel's, such as too many open files.
    pub fn new(rings: &[BorrowedFd<'_>], event: BorrowedFd<'_>) -> io::Result<Self> {
        let set = || epoll::create(CreateFlags::CLOEXEC);
        let [epoll, sockets, programs] = [set()?, set()?, set()?];
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let events: [_; EVENTS] = [event, timer.as_fd(), sockets.as_fd()];
        for (place, source) in rings.iter().chain(&events).enumerate() {
            epoll::add(&epoll, source, EventData::new_u64(place as u64), EventFlags::IN | EventFlags::ET)?;
        }
        let rings = rings.iter().map(BorrowedFd::try_clone_to_owned).collect::<io::Result<_>>()?;
        Ok(Self {
            epoll: Arc::new(epoll),
            rings,
            event: event.try_clone_to_owned()?,
            programs: Arc::new(programs),
            sockets: Arc::new(sockets),
            timer,
            fetching: Fetching::NotYet,
            set: Instant::FAR,
            sleeps: 0,
            stirred: Vec::with_capacity(MOST),
            asked: Instant::FAR,
        })
    }

    /// What sockets of Linux's, and families, are added to.
    pub fn watch(&self) -> Watch {
        Watch::new(self.sockets.clone(), [self.epoll.clone(), self.programs.clone()])
    }

    /// Whether its next sleep can begin with fetching packets that `napi` has, for `patience`; if there is one, only the calling thread may
    /// let it sleep from now on. What the kernel cannot do it is asked for once.
    pub fn can_fetch(&mut self, napi: Option<u32>, patience: Duration) -> bool {
        let Some(napi) = napi else { return false };
        if let Fetching::NotYet = self.fetching {
            let rings: Vec<_> = self.rings.iter().map(AsFd::as_fd).collect();
            let events =
                [self.event.as_fd(), self.timer.as_fd(), self.sockets.as_fd(), self.programs.as_fd()];
            let poll = BusyPoll::new(napi, patience, (&rings, &events));
            self.fetching = poll.map_or(Fetching::Never, |poll| Fetching::Can(Box::new(poll)));
        }
        let Fetching::Can(poll) = &mut self.fetching else { return false };
        let can = poll.turn_to(napi).is_ok();
        if !can {
            self.fetching = Fetching::Never;
        }
        can
    }

    /// Asks the sockets of Linux's, now and then, while the executor has no time to sleep.
    pub fn ask(&mut self, now: Instant) {
        if self.asked == Instant::FAR {
            self.asked = now;
        } else if now.since(self.asked) >= DEAF {
            self.asked = now;
            self.hear_sockets();
        }
    }

    /// Sleeps until a source becomes readable or `due` has come; `fetching` if it is to, and can. The caller has announced its
    /// sleep and looked once more.
    pub fn sleep(&mut self, now: Instant, due: Option<Instant>, fetching: bool) {
        if self.set <= now {
            self.set = Instant::FAR;
        }
        if let Some(due) = due.filter(|due| self.is_out_by(now, *due)) {
            self.arm(due.max(Instant::from_nanos(1)));
        }
        self.sleeps += 1;
        let sockets = self.rings.len() + EVENTS - 1;
        let mut stirred = false;
        let mut news = |place| stirred |= place == sockets;
        match &mut self.fetching {
            Fetching::Can(poll) if fetching => {
                if poll.sleep(&mut news).is_err() {
                    // What cannot sleep would only keep the processor busy.
                    self.fetching = Fetching::Never;
                }
            }
            _ => _ = wait(&self.epoll, None, |place| news(usize::try_from(place).unwrap_or(usize::MAX))),
        }
        if stirred {
            self.hear_sockets();
        }
        self.asked = Instant::FAR;
    }

    /// Hears of all sockets of Linux's at which something has changed.
    fn hear_sockets(&mut self) {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        while wait(&self.sockets, Some(&at_once), |path| self.stirred.push(path as u32)) == MOST {}
    }

    /// Whether the timer is to be set anew for what is `due`: it would fire too late, or soon and for nothing. (A timer that is put off while
    /// the kernel's next tick comes before it costs a system call. One that fires costs an interrupt and, where this executor runs, its time.)
    fn is_out_by(&self, now: Instant, due: Instant) -> bool {
        due < self.set || self.set.since(now) < SOON && due.since(self.set) > SOON
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

/// Waits until something is ready, or for so long: how much is, each `told` by what it was added with.
fn wait(epoll: &OwnedFd, limit: Option<&Timespec>, told: impl FnMut(u64)) -> usize {
    let mut ready = [const { MaybeUninit::uninit() }; MOST];
    // EINTR is a wake-up like any other; nothing else can fail on descriptors we hold.
    let Ok((ready, _)) = epoll::wait(epoll, &mut ready, limit) else { return 0 };
    ready.iter().map(|event| event.data.u64()).for_each(told);
    ready.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::watch::RUNG;
    use silk_executor::clock;
    use silk_stream::wake;
    use std::io::{Write, stderr};

    /// A NAPI that is not there.
    const NOBODY: u32 = u32::MAX;
    const WAYS: [bool; 2] = [false, true];

    /// Sleepers without a device, and what programs would write to, asleep in one way and the other.
    fn in_both_ways(test: impl Fn(Sleeper, BorrowedFd<'_>, bool)) {
        for fetching in WAYS {
            let event = wake::event().unwrap();
            let mut sleeper = Sleeper::new(&[], event.as_fd()).unwrap();
            if fetching && !sleeper.can_fetch(Some(NOBODY), Duration::from_micros(1)) {
                let _ = writeln!(stderr(), "SKIPPED, tests nothing: io_uring cannot poll NAPIs here");
                return;
            }
            test(sleeper, event.as_fd(), fetching);
        }
    }

    #[test]
    fn a_written_event_ends_the_sleep_each_time() {
        in_both_ways(|mut sleeper, event, fetching| {
            for _ in 0..3 {
                wake::notify(event);
                sleeper.sleep(clock::now(), None, fetching);
            }
            assert_eq!(sleeper.sleeps, 3);
        });
    }

    #[test]
    fn a_family_ends_the_sleep_each_time_it_rings_as_long_as_it_is_there() {
        in_both_ways(|mut sleeper, _, fetching| {
            let [first, other] = [0, 1].map(|_| sleeper.watch().doorbell().unwrap());
            for _ in 0..3 {
                wake::notify(first.as_fd());
                sleeper.sleep(clock::now(), None, fetching);
            }
            // What one does to its own it does to itself.
            rustix::io::write(&first, &(u64::MAX - 4).to_ne_bytes()).unwrap();
            sleeper.sleep(clock::now(), None, fetching);
            wake::notify(other.as_fd());
            sleeper.sleep(clock::now(), None, fetching);
            // Programs may have it for longer than the daemon.
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let rung = || {
                [&sleeper.epoll, &sleeper.programs].map(|set| {
                    let mut count = 0;
                    wait(set, Some(&at_once), |place| count += usize::from(place == RUNG));
                    count
                })
            };
            let kept = first.as_fd().try_clone_to_owned().unwrap();
            rung();
            wake::drain(kept.as_fd());
            wake::notify(kept.as_fd());
            assert_eq!(rung(), [1, 1]);
            drop(first);
            wake::notify(kept.as_fd());
            assert_eq!(rung(), [0, 0]);
        });
    }

    #[test]
    fn a_socket_of_linuxs_is_told_by_its_path_asleep_and_awake() {
        in_both_ways(|mut sleeper, _, fetching| {
            let socket = wake::event().unwrap();
            sleeper.watch().add(&socket, 7).unwrap();
            sleeper.sleep(clock::now(), None, fetching);
            assert_eq!(std::mem::take(&mut sleeper.stirred), [7]);
            wake::notify(socket.as_fd());
            let woken = clock::now();
            sleeper.ask(woken);
            assert!(sleeper.stirred.is_empty(), "it has just slept");
            sleeper.ask(woken + DEAF);
            assert_eq!(std::mem::take(&mut sleeper.stirred), [7]);
            sleeper.watch().remove(&socket);
            wake::notify(socket.as_fd());
            sleeper.ask(woken + 2 * DEAF);
            assert!(sleeper.stirred.is_empty());
        });
    }

    #[test]
    fn more_sockets_than_are_told_at_once_are_told_all_the_same() {
        in_both_ways(|mut sleeper, _, fetching| {
            let sockets: Vec<_> = (0..2 * MOST).map(|_| wake::event().unwrap()).collect();
            for (path, socket) in sockets.iter().enumerate() {
                sleeper.watch().add(socket, path as u32).unwrap();
            }
            sleeper.sleep(clock::now(), None, fetching);
            sleeper.stirred.sort_unstable();
            assert!(sleeper.stirred.iter().copied().eq(0..2 * MOST as u32), "{:?}", sleeper.stirred);
        });
    }

    #[test]
    fn what_is_due_ends_the_sleep() {
        in_both_ways(|mut sleeper, _, fetching| {
            let due = clock::now() + Duration::from_millis(2);
            while clock::now() < due {
                sleeper.sleep(clock::now(), Some(due), fetching);
            }
            sleeper.sleep(clock::now(), Some(Instant::from_nanos(5)), fetching);
            assert!(sleeper.sleeps >= 2);
        });
    }

    #[test]
    fn what_was_due_soon_and_is_put_off_does_not_end_the_sleep() {
        in_both_ways(|mut sleeper, event, fetching| {
            let now = clock::now();
            wake::notify(event);
            sleeper.sleep(now, Some(now + SOON / 2), fetching);
            let due = clock::now() + 4 * SOON;
            sleeper.sleep(clock::now(), Some(due), fetching);
            assert!(clock::now() >= due);
        });
    }
}
