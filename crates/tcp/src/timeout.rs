//! A deadline has come: retransmission with back-off (RFC 6298 §5.4 to §5.7), probes of a closed
//! window and of an idle peer, delayed acknowledgements, and the ends of waiting. How long to
//! insist is bounded everywhere (RFC 9293 §3.8.3).

use silk_instant::Instant;

use crate::congestion::Congestion;
use crate::connection::{Connection, Owed};
use crate::keepalive::Due;
use crate::progress::Progress;
use crate::receiver::Reader;
use crate::recovery::{Phase, Wait};
use crate::state::State;
use crate::timers::Timer;

impl Connection {
    /// When [`Connection::on_timeout`] wants to be called; `None` when nothing is waited for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Time has passed. Then poll for transmission. Calling it early or late does no harm.
    pub fn on_timeout(&mut self, now: Instant) -> Progress {
        let mut progress = Progress::NONE;
        // Each at most once: a deadline that is set again for a time that has passed waits for the
        // next call.
        for timer in Timer::ALL {
            if !self.timers.expire(timer, now) {
                continue;
            }
            progress |= match timer {
                Timer::Retransmit => self.on_retransmit_timeout(now),
                Timer::Persist => self.on_persist_timeout(now),
                Timer::DelayedAck => self.on_delayed_ack_timeout(),
                Timer::Keepalive => self.on_keepalive_timeout(now),
                Timer::Linger => self.finish(Progress::NONE),
                Timer::Pacing => Progress::NONE,
            };
        }
        progress
    }

    fn on_retransmit_timeout(&mut self, now: Instant) -> Progress {
        match self.state {
            State::SynSent | State::SynReceived => self.on_syn_timeout(now),
            _ if self.snd.is_idle() => Progress::NONE,
            _ if self.is_overdue(now) => self.finish(Progress::TIMED_OUT),
            _ if self.recovery.wait == Wait::Probe => self.on_probe_timeout(now),
            _ if self.recovery.wait == Wait::Reordering => self.on_reordering_timeout(now),
            _ if self.is_hopeless(now) => self.finish(Progress::TIMED_OUT),
            _ => self.on_text_timeout(now),
        }
    }

    // RFC 9293 MUST-22.
    fn on_syn_timeout(&mut self, now: Instant) -> Progress {
        // Other than for text, a time-out does not replace the count (as on Linux).
        if self.snd.timeouts >= self.limits.syn_retries || self.is_overdue(now) {
            return self.finish(Progress::TIMED_OUT);
        }
        self.counters.note_timeout(now, self.snd.timeouts == 0);
        self.snd.timeouts += 1;
        self.rto.back_off();
        self.syn_lost = true;
        self.owed.add(Owed::SYN);
        Progress::NONE
    }

    // RFC 6298 §5.4, §5.5, §5.6.
    fn on_text_timeout(&mut self, now: Instant) -> Progress {
        if self.recovery.phase() == Phase::Fast
            && self.recovery.forced()
            && let Some(due) = self.timers.to_come(Timer::Pacing, now)
        {
            // What is to be sent again has not left yet, only for the rate at which it may: its time begins when it does.
            self.wait(Wait::Timeout, due + self.rto.current());
            return Progress::NONE;
        }
        let first = self.snd.timeouts == 0;
        self.on_probe_timed_out(now);
        if first || !self.is_refused(now) {
            self.snd.timeouts = self.snd.timeouts.saturating_add(1);
            self.suspect_black_hole(now);
        }
        let out = self.outstanding();
        if first {
            self.snd.stalled_since = now;
        }
        // Of a series of time-outs the first is what may have been a mistake.
        if first || self.recovery.phase() != Phase::Loss {
            self.remember_for_undo(true);
        }
        self.start_frto(first);
        self.congestion.on_timeout(out.octets().min(self.congestion.window()), out.mss, first);
        self.ecn.on_reduced(out.nxt);
        let lost = self.recovery.lost_ever();
        self.recovery.start_loss(now, self.rto.srtt(), self.rto.current(), out);
        self.tell_lost(lost);
        self.rto.back_off();
        self.counters.note_timeout(now, first);
        self.wait(Wait::Timeout, now + self.rto.current());
        Progress::NONE
    }

    /// R2 of RFC 9293 §3.8.3: a number of times, where no user time-out (RFC 5482) takes its place.
    // RFC 9293 MUST-20, SHLD-17.
    fn is_hopeless(&self, now: Instant) -> bool {
        let counts = self.user_timeout.current().is_none() && !self.is_refused(now);
        counts && self.snd.timeouts >= self.patience()
    }

    /// Whether a peer that closed its window on what was sent refuses it, and is not gone: it answers (§3.8.6.1, MUST-37).
    /// Then what is sent again is a probe, and is not counted, but where the program has gone.
    // RFC 9293 MUST-37.
    fn is_refused(&self, now: Instant) -> bool {
        let answers = self.snd.wnd == 0 && self.last_heard + self.rto.current() >= now;
        answers && self.rcv.reader != Reader::Gone
    }

    fn patience(&self) -> u8 {
        let orphan = self.rcv.reader == Reader::Gone;
        if orphan { self.limits.orphan_retries } else { self.limits.retries }
    }

    /// Nothing is outstanding and text is held back: by the window, then the peer is probed, for
    /// ever if it answers (§3.8.6.1, MUST-37), but not for a program that has gone; or by Nagle, a
    /// cork or silly-window avoidance, then it goes out now (§3.8.6.2.1).
    // RFC 9293 MUST-35, MUST-36, MUST-37, MUST-60.
    fn on_persist_timeout(&mut self, now: Instant) -> Progress {
        if self.snd.usable_window() > 0 {
            self.owed.add(Owed::PUSH);
            return Progress::NONE;
        }
        if self.snd.probes == 0 {
            self.snd.stalled_since = now;
        } else if self.is_overdue(now) {
            // Who limits the wait does not wait for a peer that answers and takes nothing, either.
            return self.finish(Progress::TIMED_OUT);
        }
        let probes = if self.rcv.reader == Reader::Gone { self.snd.probes } else { self.snd.unanswered };
        if probes >= self.patience() {
            return self.finish(Progress::TIMED_OUT);
        }
        self.snd.probes = self.snd.probes.saturating_add(1);
        self.snd.unanswered = self.snd.unanswered.saturating_add(1);
        self.owed.add(Owed::PROBE);
        Progress::NONE
    }

    // RFC 9293 MUST-26.
    fn on_keepalive_timeout(&mut self, now: Instant) -> Progress {
        let busy = !self.snd.is_idle() || self.timers.is_armed(Timer::Persist);
        match self.keepalive.on_timeout(now, self.last_heard, busy, self.user_timeout.current()) {
            Due::Later(at) => self.timers.arm(Timer::Keepalive, at),
            Due::Probe(next) => {
                self.timers.arm(Timer::Keepalive, next);
                self.owed.add(Owed::PROBE);
            }
            Due::Failed => {
                self.abort();
                return Progress::TIMED_OUT | Progress::CLOSED;
            }
        }
        Progress::NONE
    }
}
