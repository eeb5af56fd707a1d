//! What wakes whoever sleeps on a device with faults: the device's own descriptors and a timer as
//! one descriptor, readable while any of them is. It must never stay readable when nothing is due.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A timer beside descriptors.
pub(super) struct Alarm {
    any: OwnedFd,
    timer: OwnedFd,
    set: bool,
}

impl Alarm {
    /// Beside these descriptors; each drops out when it is closed.
    pub(super) fn beside(fds: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let any = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        for fd in fds.iter().copied().chain([timer.as_fd()]) {
            epoll::add(&any, fd, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self { any, timer, set: false })
    }

    /// Becomes readable in so long, or not by itself, and is not until then. So who watches for edges
    /// is woken by each.
    pub(super) fn ring_in(&mut self, patience: Option<Duration>) {
        if patience.is_none() && !self.set {
            return;
        }
        // Zero would stop it.
        let it_value = patience.map_or(ZERO, |patience| timespec(patience.max(Duration::from_nanos(1))));
        let once = Itimerspec { it_interval: ZERO, it_value };
        // It fails for times that are none and for descriptors that are no timers.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        self.set = patience.is_some();
    }

    /// The timer alone.
    pub(super) fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}

/// What a timer is told; the longest time that it knows for one that is longer.
fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_device::readable;

    fn rings(alarm: &Alarm, patience: Duration) -> bool {
        readable(alarm.as_fd(), patience).unwrap()
    }

    #[test]
    fn it_rings_when_it_is_time_until_it_is_set_anew() {
        let mut alarm = Alarm::beside(&[]).unwrap();
        assert!(!rings(&alarm, Duration::ZERO));
        for patience in [Duration::ZERO, Duration::from_millis(1)] {
            alarm.ring_in(Some(patience));
            assert!(rings(&alarm, Duration::from_secs(10)));
            assert!(rings(&alarm, Duration::ZERO), "nobody has answered it");
            alarm.ring_in(Some(Duration::MAX));
            assert!(!rings(&alarm, Duration::ZERO));
            alarm.ring_in(None);
            assert!(!rings(&alarm, Duration::ZERO));
        }
    }

    #[test]
    fn it_is_readable_while_what_it_stands_beside_is() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let alarm = Alarm::beside(&[reader.as_fd()]).unwrap();
        assert!(!rings(&alarm, Duration::ZERO));
        rustix::io::write(&writer, b"!").unwrap();
        assert!(rings(&alarm, Duration::ZERO));
        rustix::io::read(&reader, &mut [0; 1][..]).unwrap();
        assert!(!rings(&alarm, Duration::ZERO));
    }
}
