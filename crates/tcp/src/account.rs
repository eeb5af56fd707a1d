//! How sending goes, for whoever asks why it is slow (`busy_time`, `rwnd_limited`, `sndbuf_limited` and `delivery_rate` of Linux's
//! `TCP_INFO`). While any text is outstanding or held back, the connection is busy, and text waits for the network, for a
//! peer whose window is full, or for a program that would write more if the buffer took it. And how fast the peer has come to hold
//! it lately. Nothing is decided by any of this.

use core::time::Duration;

use silk_instant::Instant;

use crate::buffer::SendBuffer;
use crate::congestion::Congestion;
use crate::connection::Connection;

/// What has to happen for more text to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitsFor {
    /// There is none.
    Nothing,
    /// Acknowledgements: congestion control, or nothing at all, holds it back.
    Network,
    /// The peer's window takes no more.
    Peer,
    /// All was sent, and the program waits for room in the send buffer.
    Room,
}

/// Time that passes now and then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stopwatch {
    /// Stopped: nanoseconds that have passed. Running: when it would have started had it never stopped.
    nanos: u64,
}

impl Stopwatch {
    /// Starts it if it is stopped, and stops it if it runs.
    pub(crate) const fn press(&mut self, now: Instant) {
        self.nanos = now.nanos().saturating_sub(self.nanos);
    }

    /// The time that has passed.
    pub(crate) const fn time(mut self, now: Instant, runs: bool) -> Duration {
        if runs {
            self.press(now);
        }
        Duration::from_nanos(self.nanos)
    }
}

/// The account of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// Runs while anything is waited for.
    busy: Stopwatch,
    /// When the present sample of the rate began.
    since: Instant,
    /// Octets per second, of the last sample that says something; 0 before the first.
    rate: u64,
    /// Octets delivered since the present sample began.
    delivered: u32,
    waits_for: WaitsFor,
    /// In the present sample there was nothing to send although the windows had room.
    app_limited: bool,
    /// It was so in the sample that `rate` is from.
    rate_app_limited: bool,
}

impl Account {
    pub(crate) const fn new() -> Self {
        Self {
            busy: Stopwatch { nanos: 0 },
            since: Instant::ZERO,
            rate: 0,
            delivered: 0,
            waits_for: WaitsFor::Nothing,
            app_limited: false,
            rate_app_limited: false,
        }
    }

    /// The rate in octets per second, and whether the program and not the path set it.
    pub(crate) const fn delivery_rate(&self) -> (Option<u64>, bool) {
        (if self.rate > 0 { Some(self.rate) } else { None }, self.rate_app_limited)
    }

    /// `octets` have arrived. A sample over less than the least round trip is of an aggregate and not of the path, and
    /// one in which there was too little to send counts only if it shows that the path is faster than was known
    /// (draft-cheng-iccrg-delivery-rate-estimation §3.3, `tcp_rate_gen` of Linux).
    fn on_delivered(&mut self, now: Instant, octets: u32, min_rtt: Duration) {
        self.delivered = self.delivered.saturating_add(octets);
        let time = now - self.since;
        if time.is_zero() || time < min_rtt {
            return;
        }
        let rate = u128::from(self.delivered) * 1_000_000_000 / time.as_nanos();
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if !self.app_limited || self.rate_app_limited || rate >= self.rate {
            (self.rate, self.rate_app_limited) = (rate, self.app_limited);
        }
        self.begin_sample(now);
    }

    fn begin_sample(&mut self, now: Instant) {
        (self.since, self.delivered, self.app_limited) = (now, 0, false);
    }
}

/// How much time sending has waited, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    busy: Stopwatch,
    peer: Stopwatch,
    room: Stopwatch,
    now: WaitsFor,
}

impl Waits {
    /// Time in which any text was outstanding or held back.
    pub fn busy(&self, now: Instant) -> Duration {
        self.busy.time(now, self.now != WaitsFor::Nothing)
    }

    /// Of that, time in which the peer's window held text back.
    pub fn for_the_peer(&self, now: Instant) -> Duration {
        self.peer.time(now, self.now == WaitsFor::Peer)
    }

    /// Of that, time in which a program waited to write, all that it had written was sent, and both windows had room.
    pub fn for_room(&self, now: Instant) -> Duration {
        self.room.time(now, self.now == WaitsFor::Room)
    }
}

impl Connection {
    /// What sending has waited for.
    pub(crate) fn waits(&self) -> Waits {
        let [peer, room] = self.counters.held_back();
        Waits { busy: self.account.busy, peer, room, now: self.account.waits_for }
    }

    /// New text is sent.
    #[inline]
    pub(crate) fn note_busy(&mut self, now: Instant) {
        if self.account.waits_for == WaitsFor::Nothing {
            self.wait_for(now, WaitsFor::Network);
        }
    }

    /// All that was sent is acknowledged, and the program has written no more as far as is known.
    pub(crate) fn note_idle(&mut self, now: Instant) {
        self.wait_for(now, WaitsFor::Nothing);
    }

    /// Text is held back by the windows, of which the peer's would let `window` octets go and the other `congestion`.
    pub(crate) fn note_held(&mut self, now: Instant, window: u32, congestion: u32) {
        self.wait_for(now, if window < congestion { WaitsFor::Peer } else { WaitsFor::Network });
    }

    /// There is nothing that was not sent.
    pub(crate) fn note_all_sent<S: SendBuffer + ?Sized>(&mut self, now: Instant, tx: &S) {
        if self.snd.is_idle() {
            return;
        }
        let (in_flight, window) = (self.snd.nxt - self.snd.una, self.congestion.window());
        self.account.app_limited |= in_flight < window;
        let has_room = in_flight + u32::from(self.snd.mss) <= window.min(self.snd.wnd);
        let is_short = has_room && tx.is_waited_for();
        self.wait_for(now, if is_short { WaitsFor::Room } else { WaitsFor::Network });
    }

    /// `octets` have arrived.
    #[inline]
    pub(crate) fn note_delivered(&mut self, now: Instant, octets: u32) {
        if octets > 0 {
            self.account.on_delivered(now, octets, self.recovery.rack.min_rtt());
        }
    }

    #[inline]
    fn wait_for(&mut self, now: Instant, what: WaitsFor) {
        if self.account.waits_for != what {
            self.turn_to(now, what);
        }
    }

    fn turn_to(&mut self, now: Instant, what: WaitsFor) {
        let before = core::mem::replace(&mut self.account.waits_for, what);
        if before == WaitsFor::Nothing {
            self.account.begin_sample(now);
        }
        if before == WaitsFor::Nothing || what == WaitsFor::Nothing {
            self.account.busy.press(now);
        }
        for which in [before, what] {
            match which {
                WaitsFor::Nothing | WaitsFor::Network => {}
                WaitsFor::Peer => self.counters.mishaps().waited_for_peer.press(now),
                WaitsFor::Room => self.counters.mishaps().waited_for_room.press(now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const RTT: Duration = Duration::from_millis(10);

    #[test]
    fn a_stopwatch_counts_while_it_runs() {
        let mut watch = Stopwatch::default();
        watch.press(at(100));
        assert_eq!(watch.time(at(105), true), Duration::from_millis(5));
        watch.press(at(110));
        assert_eq!(watch.time(at(500), false), Duration::from_millis(10));
        watch.press(at(1_000));
        assert_eq!(watch.time(at(1_001), true), Duration::from_millis(11));
        watch.press(at(1_002));
        assert_eq!(watch.time(at(1_002), false), Duration::from_millis(12));
    }

    #[test]
    fn the_rate_is_what_arrived_over_a_round_trip() {
        let mut account = Account::new();
        account.begin_sample(at(100));
        account.on_delivered(at(109), 4_000, RTT);
        assert_eq!(account.delivery_rate(), (None, false), "no round trip yet");
        account.on_delivered(at(120), 6_000, RTT);
        assert_eq!(account.delivery_rate(), (Some(500_000), false));
        account.on_delivered(at(120), 6_000, RTT);
        account.on_delivered(at(130), 4_000, RTT);
        assert_eq!(account.delivery_rate(), (Some(1_000_000), false));
    }

    #[test]
    fn a_program_with_too_little_to_send_does_not_make_the_path_slower() {
        let mut account = Account::new();
        account.begin_sample(at(0));
        for (until, octets, app_limited, known) in [
            (10, 100, true, (10_000, true)),
            (20, 50, true, (5_000, true)),
            (30, 1_000, false, (100_000, false)),
            (40, 100, true, (100_000, false)),
            (50, 2_000, true, (200_000, true)),
            (60, 500, false, (50_000, false)),
        ] {
            account.app_limited = app_limited;
            account.on_delivered(at(until), octets, RTT);
            assert_eq!(account.delivery_rate(), (Some(known.0), known.1), "{until} ms");
        }
    }
}
