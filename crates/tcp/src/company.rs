//! When an acknowledgement is sent alone. Every second full segment is acknowledged at once, the first waits for
//! company (RFC 9293 §3.8.6.3, RFC 5681 §4.2): another segment, or text that goes back. Behind a short segment the
//! peer may wait for the acknowledgement itself, with the next one that it has (Nagle), so how long it waits there
//! depends on what became of those before. While text has carried them back, one after the other, it waits as long
//! as any. Where nothing is known it waits a moment, and goes as soon as the program has read everything and has still
//! nothing to say. Behind one that went alone the next goes at once, until text follows one so soon that it would have
//! carried it.

use core::time::Duration;

use silk_instant::Instant;

use crate::buffer::{RecvBuffer, SendBuffer};
use crate::connection::{Connection, Owed};
use crate::progress::Progress;
use crate::timers::Timer;

/// A program that has something to say to what it has just read says it within this time, as a rule.
const MOMENT: Duration = Duration::from_millis(1);
/// So many acknowledgements that text carried, one after the other, are a habit.
const HABIT: u8 = 4;
/// Text shorter than that is taken for the end of what the peer has to say, whatever its segments are like.
const SHORT: u16 = 536;

/// What became of the acknowledgements that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Company {
    /// So many were carried by text, one after the other, up to [`HABIT`].
    carried: u8,
    /// The last one went alone.
    missed: bool,
    /// The one that waits does so for as long as any.
    patient: bool,
}

impl Company {
    /// Nothing is known.
    pub(crate) const NEW: Self = Self { carried: 0, missed: false, patient: false };

    fn came(&mut self) {
        (self.carried, self.missed) = ((self.carried + 1).min(HABIT), false);
    }

    fn missed(&mut self) {
        (self.carried, self.missed) = (0, true);
    }

    const fn is_usual(self) -> bool {
        self.carried == HABIT
    }
}

impl Connection {
    /// Text in order came. What came as one may have been several segments on the wire.
    // RFC 9293 MUST-40, SHLD-18, SHLD-19.
    pub(crate) fn delay_ack(&mut self, now: Instant, octets: usize) {
        let segments = (octets / self.full_text()).clamp(1, 2) as u8;
        self.rcv.unacked = self.rcv.unacked.saturating_add(segments);
        let is_short = octets < usize::from(self.rcv.largest.max(SHORT));
        if self.rcv.unacked >= 2 || self.rcv.quickack || (is_short && self.rcv.company.missed) {
            self.owed.add(Owed::ACK);
        } else if !self.timers.is_armed(Timer::DelayedAck) {
            let long = self.limits.delayed_ack();
            self.rcv.company.patient = !is_short || self.rcv.company.is_usual() || long <= MOMENT;
            self.timers.arm(Timer::DelayedAck, now + if self.rcv.company.patient { long } else { MOMENT });
        }
    }

    /// Octets of text in a full segment: ours, and as a rule the peer's, which has the same options in it.
    fn full_text(&self) -> usize {
        self.outstanding().mss as usize
    }

    /// Octets of text in the largest segment that the peer may send.
    pub(crate) fn offered_text(&self) -> usize {
        let options = self.snd.mss.saturating_sub(self.full_text() as u16);
        self.rcv.offered_mss.saturating_sub(options).into()
    }

    /// An acknowledgement has waited, for a moment or for as long as any.
    pub(crate) fn on_delayed_ack_timeout(&mut self) -> Progress {
        self.owed.add(Owed::LONE_ACK);
        Progress::NONE
    }

    /// Text carries the acknowledgement, if one waits, or would have if it had waited a moment.
    pub(crate) fn note_company(&mut self, now: Instant) {
        let company = self.rcv.company;
        if self.timers.is_armed(Timer::DelayedAck) || (company.missed && now <= self.rcv.last_text + MOMENT) {
            self.rcv.company.came();
        }
    }

    /// Whether the acknowledgement that has waited goes alone. One that has waited for a moment, for what the program
    /// has not read, or has answered and nobody has looked at, waits on.
    pub(crate) fn goes_alone<S, R>(&mut self, now: Instant, tx: &S, rx: &R) -> bool
    where
        S: SendBuffer + ?Sized,
        R: RecvBuffer + ?Sized,
    {
        if !self.owed.settle(Owed::LONE_ACK) || self.rcv.unacked == 0 {
            return false;
        }
        let last = self.rcv.last_text + self.limits.delayed_ack();
        if !self.rcv.company.patient && now < last && (rx.unread() > 0 || tx.has_more()) {
            self.rcv.company.patient = true;
            self.timers.arm(Timer::DelayedAck, last);
            return false;
        }
        self.rcv.company.missed();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_that_came_often_is_a_habit_until_it_is_missed() {
        let mut company = Company::NEW;
        for _ in 0..HABIT {
            assert!(!company.is_usual());
            company.came();
        }
        company.came();
        assert!(company.is_usual() && !company.missed);
        company.missed();
        assert!(!company.is_usual() && company.missed);
    }
}
