//! The user time-out: how long sent text, or a SYN, may stay unacknowledged before the connection
//! fails, by the program's wish or by the advice of the peer's User Timeout Option (RFC 5482). The
//! option is advice: it is neither acknowledged nor sent again.

use core::time::Duration;

use silk_instant::Instant;

use crate::advertised::Advertised;
use crate::config::{Config, millis};
use crate::connection::{Connection, Owed};

/// L_LIMIT: a peer's advice leads to no shorter time-out, so that it can not make a connection fail
/// over a short disturbance (RFC 5482 §3.1; R2 of RFC 9293 §3.8.3).
const SHORTEST: Duration = Duration::from_secs(100);
/// What one connection knows of time-outs. A time of its own is the program's, who is not overruled:
/// CHANGEABLE is false then (RFC 5482 §3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserTimeout {
    /// In milliseconds; zero for none.
    own_ms: u32,
    /// U_LIMIT in seconds; zero: the option is neither sent nor heard (ENABLED is false).
    longest: u16,
    /// REMOTE_UTO.
    peers: Option<Advertised>,
}

impl UserTimeout {
    pub(crate) fn new(config: &Config) -> Self {
        let seconds = |time: Duration| u16::try_from(time.as_secs()).unwrap_or(u16::MAX);
        let longest = config.user_timeout_option.map_or(0, seconds);
        let mut timeout = Self { own_ms: 0, longest, peers: None };
        timeout.set(config.user_timeout);
        timeout
    }

    /// The program's wish; `None` for none. Answers whether it is another than before.
    fn set(&mut self, own: Option<Duration>) -> bool {
        let before = core::mem::replace(&mut self.own_ms, own.map_or(0, |own| millis(own).max(1)));
        self.own_ms != before
    }

    /// The time-out that counts; without one retransmissions are counted instead.
    // RFC 5482 §3, §3.1.
    pub(crate) fn current(&self) -> Option<Duration> {
        let longest = Duration::from_secs(self.longest.into());
        let advised = || self.peers.map(|peers| peers.duration().max(SHORTEST).min(longest));
        self.own().or_else(advised)
    }

    /// ADV_UTO, where the option is used and there is a time-out to tell of.
    pub(crate) fn offer(&self) -> Option<Advertised> {
        self.own().filter(|_| self.longest > 0).map(Advertised::new)
    }

    /// What a segment of the peer's says.
    pub(crate) fn advise(&mut self, peers: Option<Advertised>) {
        if self.longest > 0 && peers.is_some() {
            self.peers = peers;
        }
    }

    fn own(&self) -> Option<Duration> {
        (self.own_ms > 0).then(|| Duration::from_millis(self.own_ms.into()))
    }
}

impl Connection {
    /// TCP_USER_TIMEOUT: how long sent text may stay unacknowledged, however often it is sent again;
    /// `None` for the configured number of retransmissions, or what the peer advises.
    // RFC 9293 MUST-21.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        if self.user_timeout.set(timeout) && self.state.is_synchronized() {
            self.owe_user_timeout();
        }
    }

    /// The next segment that has room says our time-out, if there is one to tell of.
    // RFC 5482 §3, §3.2.
    pub(crate) fn owe_user_timeout(&mut self) {
        self.owed.settle(Owed::USER_TIMEOUT);
        if self.user_timeout.offer().is_some() {
            self.owed.add(Owed::USER_TIMEOUT);
        }
    }

    /// Whether the user time-out is over, since the SYN, the first time-out or the first probe.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.gives_up_at().is_some_and(|at| now >= at)
    }

    /// `until`, or when the user time-out is over, which is not overslept.
    pub(crate) fn not_overslept(&self, until: Instant) -> Instant {
        self.gives_up_at().map_or(until, |at| until.min(at))
    }

    fn gives_up_at(&self) -> Option<Instant> {
        let since = Some(self.snd.stalled_since).filter(|since| *since != Instant::FAR)?;
        Some(since + self.user_timeout.current()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn with(option: Option<Duration>, own: Option<Duration>) -> UserTimeout {
        UserTimeout::new(&Config { user_timeout: own, user_timeout_option: option, ..Config::default() })
    }

    // RFC 5482 §3.1.
    #[test]
    fn advice_counts_within_limits_and_where_the_program_wants_nothing_itself() {
        let advised = |option, own, peers| {
            let mut timeout = with(option, own);
            timeout.advise(Some(Advertised::new(peers)));
            timeout.current()
        };
        let hour = Some(secs(3_600));
        assert_eq!(advised(hour, None, secs(600)), Some(secs(600)));
        assert_eq!(advised(hour, None, secs(5)), Some(secs(100)));
        assert_eq!(advised(hour, None, secs(86_400)), hour);
        assert_eq!(advised(hour, Some(secs(7)), secs(600)), Some(secs(7)));
        assert_eq!(advised(None, None, secs(600)), None);
    }

    #[test]
    fn no_time_is_none_and_a_tiny_one_is_kept() {
        assert_eq!(with(None, None).current(), None);
        assert_eq!(with(None, Some(Duration::from_nanos(1))).current(), Some(Duration::from_millis(1)));
    }
}
