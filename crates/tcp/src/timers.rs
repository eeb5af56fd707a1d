//! The deadlines of a connection. At most one per purpose; which are armed is said where they are
//! armed. A deadline that moves later needs no work from whoever runs the timer wheel: it is asked
//! for again after every call.

use core::time::Duration;
use silk_instant::Instant;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Timer {
    /// RFC 6298: the oldest outstanding segment is overdue.
    Retransmit,
    /// RFC 9293 §3.8.6.1: nothing is outstanding and the peer's window holds text back, or
    /// §3.8.6.2.1: silly-window avoidance or a cork does.
    Persist,
    /// RFC 9293 §3.8.6.3: an acknowledgement waited long enough for company.
    DelayedAck,
    /// RFC 9293 §3.8.4: the connection has been silent.
    Keepalive,
    /// TIME-WAIT, or FIN-WAIT-2 without a program, ends.
    Linger,
    /// Paced text may leave again.
    Pacing,
}

impl Timer {
    /// Each of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Retransmit, Self::Persist, Self::DelayedAck, Self::Keepalive, Self::Linger, Self::Pacing];
}

/// The deadlines; `Instant::FAR` is unarmed.
#[derive(Clone, Debug)]
pub(crate) struct Timers([Instant; Timer::ALL.len()]);

impl Timers {
    pub(crate) const fn new() -> Self {
        Self([Instant::FAR; Timer::ALL.len()])
    }

    /// Sets the deadline, also when one is set already.
    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = at;
    }

    /// Sets the deadline so long after the one that is set, or after now where there is none to come.
    pub(crate) fn put_off(&mut self, timer: Timer, now: Instant, by: Duration) {
        self.arm(timer, self.to_come(timer, now).unwrap_or(now) + by);
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        self.0[timer as usize] = Instant::FAR;
    }

    pub(crate) fn cancel_all(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn is_armed(&self, timer: Timer) -> bool {
        self.0[timer as usize] != Instant::FAR
    }

    /// Whether the deadline is set and still to come.
    pub(crate) fn is_armed_beyond(&self, timer: Timer, now: Instant) -> bool {
        self.is_armed(timer) && self.0[timer as usize] > now
    }

    /// The deadline, if it is set and still to come.
    pub(crate) fn to_come(&self, timer: Timer, now: Instant) -> Option<Instant> {
        self.is_armed_beyond(timer, now).then(|| self.0[timer as usize])
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.iter().copied().min().filter(|at| *at != Instant::FAR)
    }

    /// Whether a timer's deadline has come; it is disarmed then.
    pub(crate) fn expire(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.is_armed(timer) && !self.is_armed_beyond(timer, now);
        if due {
            self.cancel(timer);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_is_next_and_expires_once() {
        let mut timers = Timers::new();
        assert_eq!(timers.next(), None);
        timers.arm(Timer::Persist, Instant::from_millis(5));
        timers.arm(Timer::DelayedAck, Instant::from_millis(3));
        assert_eq!(timers.next(), Some(Instant::from_millis(3)));
        let at = Instant::from_millis;
        assert!(!timers.expire(Timer::DelayedAck, at(2)));
        assert!(timers.expire(Timer::DelayedAck, at(4)));
        assert!(!timers.expire(Timer::DelayedAck, at(4)));
        assert!(!timers.expire(Timer::Persist, at(4)));
        assert_eq!(timers.next(), Some(Instant::from_millis(5)));
    }
}
