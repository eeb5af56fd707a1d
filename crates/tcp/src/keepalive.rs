//! Keep-alive (RFC 9293 §3.8.4): after a silence the peer is probed, and after several unanswered
//! probes the connection has failed. Off unless asked for. The deadline is not moved by every
//! segment; when it comes, it looks how long the silence really was.

use core::time::Duration;

use silk_instant::Instant;

use crate::config::{KeepaliveConfig, millis};

/// When to probe; all in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    idle_ms: u32,
    interval_ms: u32,
    probes: u8,
    /// Probes since the peer was last heard.
    pub(crate) sent: u8,
    pub(crate) on: bool,
}

/// What a due keep-alive timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The silence was not long enough yet: look again then.
    Later(Instant),
    /// Send a probe, and look again then.
    Probe(Instant),
    /// The peer is gone.
    Failed,
}

impl Keepalive {
    pub(crate) fn new(config: Option<KeepaliveConfig>) -> Self {
        let on = config.is_some();
        let KeepaliveConfig { idle, interval, probes } = config.unwrap_or_default();
        let at_least_one = |duration| millis(duration).max(1);
        Self { idle_ms: at_least_one(idle), interval_ms: at_least_one(interval), probes, sent: 0, on }
    }

    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(u64::from(self.idle_ms))
    }

    /// The timer went off. `busy` when text is outstanding, whose own timer finds out. With a user time-out
    /// (RFC 5482) the time since the peer was last heard decides, and not the number of probes.
    // RFC 9293 MUST-26, MUST-29; RFC 5482 §4.2.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        last_heard: Instant,
        busy: bool,
        limit: Option<Duration>,
    ) -> Due {
        let silent_until = last_heard + self.idle();
        if busy {
            return Due::Later(now + self.idle());
        }
        if self.sent == 0 && now < silent_until {
            return Due::Later(silent_until);
        }
        let enough = limit.map_or(self.sent >= self.probes, |limit| now - last_heard >= limit);
        if self.sent > 0 && enough {
            return Due::Failed;
        }
        self.sent = self.sent.saturating_add(1);
        Due::Probe(now + Duration::from_millis(u64::from(self.interval_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Instant {
        Instant::from_millis(secs * 1_000)
    }

    fn keepalive() -> Keepalive {
        let (idle, interval) = (Duration::from_secs(60), Duration::from_secs(5));
        Keepalive::new(Some(KeepaliveConfig { idle, interval, probes: 2 }))
    }

    #[test]
    fn it_looks_again_when_the_peer_was_heard() {
        assert_eq!(keepalive().on_timeout(secs(60), secs(50), false, None), Due::Later(secs(110)));
    }

    // RFC 9293 MUST-29.
    #[test]
    fn it_probes_and_then_gives_up() {
        let mut keepalive = keepalive();
        let due = [60, 65, 70].map(|now| keepalive.on_timeout(secs(now), secs(0), false, None));
        assert_eq!(due, [Due::Probe(secs(65)), Due::Probe(secs(70)), Due::Failed]);
    }

    // RFC 9293 MUST-26.
    #[test]
    fn outstanding_text_is_probe_enough() {
        assert_eq!(keepalive().on_timeout(secs(60), secs(0), true, None), Due::Later(secs(120)));
    }

    // RFC 5482 §4.2.
    #[test]
    fn with_a_user_timeout_the_silence_decides_and_not_the_probes() {
        let asked = |limit| {
            let mut keepalive = keepalive();
            let mut ask =
                |now| keepalive.on_timeout(secs(now), secs(0), false, Some(Duration::from_secs(limit)));
            [60, 65, 70, 75].map(&mut ask)
        };
        let probe = |next| Due::Probe(secs(next));
        assert_eq!(asked(75), [probe(65), probe(70), probe(75), Due::Failed]);
        assert_eq!(asked(62)[..2], [probe(65), Due::Failed]);
        // One probe goes in any case.
        assert_eq!(asked(1)[..2], [probe(65), Due::Failed]);
    }
}
