//! The table of half-open connections beside a plain model of it. What it answers must follow from
//! what it was told: a handshake completes only with an acknowledgement of a SYN-ACK that was sent,
//! an entry goes only for a reason, and each is asked again when its time has come.

use super::{Key, check_syn_ack, window};
use silk_instant::Instant;
use silk_tcp::listen::{Admission, Established, ListenAction, SynTable};
use silk_tcp::{Config, DropReason, Flags, Header, IsnSecret, Options, Segment, SeqNumber, reset_for};
use std::collections::BTreeMap;
use std::time::Duration;

/// A handshake that has begun.
#[derive(Clone, Copy)]
struct Half {
    iss: SeqNumber,
    irs: SeqNumber,
    offered: Options,
    flags: Flags,
    stamped: bool,
    mss: u16,
    answered_at: Instant,
    overdue: u8,
    deadline: Instant,
    deferred: bool,
}

/// A cookie that was given out.
struct Cookie {
    key: Key,
    irs: SeqNumber,
    seq: SeqNumber,
    at: Instant,
    stamped: bool,
}

/// How long a cookie is good at most, and at least.
const COOKIE: (Duration, Duration) = (Duration::from_secs(128), Duration::from_secs(64));

/// A listener.
pub struct Listener {
    pub table: SynTable<Key>,
    secret: IsnSecret,
    halves: BTreeMap<Key, Half>,
    cookies: Vec<Cookie>,
    backlog: usize,
}

impl Listener {
    pub fn new(config: Config, secret: IsnSecret, backlog: usize) -> Self {
        let table = SynTable::new(config, secret, backlog);
        let (halves, cookies) = (BTreeMap::new(), Vec::new());
        Self { table, secret, halves, cookies, backlog }
    }

    /// A segment arrives. With an established connection come the peer's number and the largest segment to be sent to it.
    pub fn on_segment(
        &mut self,
        now: Instant,
        key: Key,
        seg: &Segment,
        admission: Admission,
    ) -> (ListenAction, (SeqNumber, u16)) {
        let known = self.halves.get(&key).copied();
        let action = self.table.on_segment(now, key, seg, admission);
        let mut agreed = (SeqNumber::default(), 0);
        match (&action, known) {
            (ListenAction::Reply(header), _) => self.replied(now, key, seg, header, admission),
            (ListenAction::Cookie(header), None) => self.baked(now, key, seg, header, admission),
            (ListenAction::Established(half), _) => {
                assert!(
                    !admission.accept_queue_full && (seg.flags.ack() && !seg.flags.syn() && !seg.flags.rst())
                );
                agreed = self.established(now, key, seg, half);
            }
            (ListenAction::Challenge(_, header), Some(half)) => {
                assert_eq!((header.flags, header.seq, header.ack), (Flags::ACK, half.iss + 1, half.irs + 1));
            }
            (ListenAction::Reset(header), _) => {
                assert_eq!(reset_for(seg).as_ref(), Some(header));
                assert!(!self.must_be_taken(now, known.as_ref(), seg, admission), "it was right");
            }
            (ListenAction::Drop(why), _) => self.dropped(now, (key, known), seg, *why, admission),
            (action, None) => panic!("{action:?} of nothing half-open"),
            (action, Some(_)) => panic!("{action:?} of what is half-open"),
        }
        self.compare(known.is_none(), &action);
        (action, agreed)
    }

    fn replied(&mut self, now: Instant, key: Key, seg: &Segment, header: &Header, admission: Admission) {
        let flags = seg.flags;
        assert!(flags.syn() && !flags.ack() && !flags.rst());
        assert_eq!(header.ack, seg.seq + 1);
        if let Some(half) = self.halves.get_mut(&key) {
            // The same SYN once more.
            check_syn_ack(header, (half.flags, &half.offered), self.table.config());
            assert_eq!((header.seq, header.ack), (half.iss, half.irs + 1));
            return;
        }
        check_syn_ack(header, (flags, &seg.options), self.table.config());
        assert!(!flags.fin() && !admission.accept_queue_full);
        let iss = self.secret.iss(now, &key);
        assert_eq!(header.seq, admission.iss_floor.map_or(iss, |floor| iss.max(floor)));
        let config = self.table.config();
        let echo = header.options.timestamp.map(|(_, echo)| echo);
        assert!(echo.is_none() || echo == seg.options.timestamp.map(|(value, _)| value));
        let half = Half {
            iss: header.seq,
            irs: seg.seq,
            offered: seg.options,
            flags,
            stamped: echo.is_some(),
            mss: seg.options.mss.unwrap_or(536).max(48).min(config.mss),
            answered_at: now,
            overdue: 0,
            deadline: now + config.initial_rto,
            deferred: false,
        };
        self.halves.insert(key, half);
    }

    fn baked(&mut self, now: Instant, key: Key, seg: &Segment, header: &Header, admission: Admission) {
        let flags = seg.flags;
        assert!(flags.syn() && !flags.ack() && !flags.rst() && !flags.fin());
        assert!(self.table.config().syn_cookies && self.table.len() >= self.backlog.max(1));
        assert!(!admission.accept_queue_full && admission.iss_floor.is_none());
        assert_eq!(header.ack, seg.seq + 1);
        check_syn_ack(header, (flags, &seg.options), self.table.config());
        let stamped = header.options.timestamp.is_some();
        self.cookies.push(Cookie { key, irs: seg.seq, seq: header.seq, at: now, stamped });
    }

    /// Answers the peer's number, and the largest segment that may be sent to it.
    fn established(&mut self, now: Instant, key: Key, seg: &Segment, half: &Established) -> (SeqNumber, u16) {
        let config = self.table.config();
        if let Some(known) = self.halves.remove(&key) {
            assert_eq!(seg.ack, known.iss + 1, "not what was sent: {half:?}");
            assert!(seg.seq - (known.irs + 1) <= window(config), "outside the window");
            assert!(!known.stamped || seg.options.timestamp.is_some());
            assert!(!known.defers(now, config, seg), "it waits for text");
            return (known.irs, known.mss);
        }
        let (irs, iss) = (seg.seq - 1, seg.ack - 1);
        // Who has one can make of it those that say another MSS.
        let given = self.cookies.iter().any(|cookie| {
            (cookie.key, cookie.irs) == (key, irs)
                && (iss + 7) - cookie.seq <= 14
                && now - cookie.at < COOKIE.0
        });
        assert!(given || self.is_lucky(now, key, irs, iss), "nobody was sent that: {half:?}");
        (irs, 8960)
    }

    /// One guess in 2²⁸ is right, which so long a search finds.
    fn is_lucky(&self, now: Instant, key: Key, irs: SeqNumber, iss: SeqNumber) -> bool {
        let hidden = (self.secret.hash(&("cookie", key)) as u32).wrapping_add(irs.raw());
        let plain = iss.raw().wrapping_sub(hidden);
        let tick = (now.nanos() / COOKIE.1.as_nanos() as u64) as u32;
        (0..2u32).map(|age| tick.wrapping_sub(age)).any(|tick| {
            let signature = self.secret.hash(&("signature", key, irs, tick)) as u32;
            plain >> 24 == tick & 0xff && plain.wrapping_sub(signature) & 0xff_ffff < 8
        })
    }

    /// Whether a segment completes a handshake beyond doubt.
    fn must_be_taken(&self, now: Instant, known: Option<&Half>, seg: &Segment, admission: Admission) -> bool {
        if seg.flags != Flags::ACK || admission.accept_queue_full {
            return false;
        }
        match known {
            Some(half) => {
                let exact = (seg.seq, seg.ack) == (half.irs + 1, half.iss + 1);
                exact && !half.stamped && !half.defers(now, self.table.config(), seg)
            }
            None => false,
        }
    }

    /// The same of a cookie.
    fn is_good_cookie(&self, now: Instant, key: Key, seg: &Segment, admission: Admission) -> bool {
        let plain =
            seg.flags == Flags::ACK && seg.options.timestamp.is_none() && !admission.accept_queue_full;
        plain
            && self.cookies.iter().any(|cookie| {
                let said = (cookie.key, cookie.irs + 1, cookie.seq + 1);
                said == (key, seg.seq, seg.ack) && !cookie.stamped && now - cookie.at < COOKIE.1
            })
    }

    fn dropped(
        &mut self,
        now: Instant,
        (key, known): (Key, Option<Half>),
        seg: &Segment,
        why: DropReason,
        admission: Admission,
    ) {
        assert!(!self.must_be_taken(now, known.as_ref(), seg, admission), "{why:?}");
        assert!(known.is_some() || !self.is_good_cookie(now, key, seg, admission), "{why:?}");
        match why {
            DropReason::AcceptQueueFull => assert!(admission.accept_queue_full),
            DropReason::Deferred => {
                let half = self.halves.get_mut(&key).expect("of something half-open");
                assert!(half.defers(now, self.table.config(), seg) && seg.ack == half.iss + 1);
                half.deferred = true;
            }
            DropReason::HandshakeReset => {
                let half = self.halves.remove(&key).expect("of something half-open");
                assert!(seg.flags.rst() && seg.seq == half.irs + 1);
            }
            DropReason::BacklogFull => {
                assert!(known.is_none() && seg.flags.syn() && self.table.len() >= self.backlog.max(1));
            }
            _ => {}
        }
    }

    /// Who is missing has made room for a SYN, and was late.
    fn compare(&mut self, fresh: bool, action: &ListenAction) {
        let gone: Vec<Key> = self.halves.keys().copied().filter(|key| !self.table.contains(key)).collect();
        for key in &gone {
            let half = self.halves.remove(key).expect("it is there");
            assert!(half.overdue > 0, "it was still in time");
            let for_syn = matches!(
                action,
                ListenAction::Reply(_)
                    | ListenAction::Cookie(_)
                    | ListenAction::Drop(DropReason::BacklogFull)
            );
            assert!(fresh && for_syn, "{action:?} costs another's place");
        }
        assert!(gone.len() <= 1);
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.halves.len());
        assert!(self.table.len() <= self.backlog.max(1));
        let slots = self.backlog.next_power_of_two().max(4);
        assert!(self.table.memory() <= slots * 256 + 4096, "{} bytes", self.table.memory());
        let next = self.halves.values().map(|half| half.deadline).min();
        assert_eq!(self.table.poll_timeout(), next, "the next that is overdue");
    }

    /// Time has passed: whoever is overdue is asked again.
    pub fn on_timeout(&mut self, now: Instant) -> Vec<(Key, Header)> {
        let mut sent = Vec::new();
        let config = self.table.config().clone();
        while let Some((key, header)) = self.table.on_timeout(now) {
            let half = self.halves.get_mut(&key).expect("only what is half-open is asked again");
            assert!(half.deadline <= now && half.overdue < config.syn_ack_retries, "too early, or too often");
            assert_eq!((header.seq, header.ack), (half.iss, half.irs + 1));
            check_syn_ack(&header, (half.flags, &half.offered), &config);
            half.overdue += 1;
            half.deadline = now + backed_off(&config, half.overdue);
            sent.push((key, header));
        }
        let table = &self.table;
        self.halves.retain(|key, half| {
            if half.deadline > now {
                return true;
            }
            let waits = half.deferred && half.waits(now, &config);
            assert_eq!(table.contains(key), waits, "forgotten when it was asked often enough");
            half.deadline = now + backed_off(&config, half.overdue);
            waits
        });
        self.check();
        sent
    }

    /// The listener closes.
    pub fn drain(&mut self) {
        while let Some((key, header)) = self.table.drain() {
            let half = self.halves.remove(&key).expect("it was half-open");
            assert_eq!((header.seq, header.ack), (half.iss + 1, half.irs + 1));
            assert_eq!(header.flags, Flags::RST | Flags::ACK);
        }
        self.check();
        assert!(self.table.is_empty() && self.halves.is_empty());
    }
}

impl Half {
    fn waits(&self, now: Instant, config: &Config) -> bool {
        config.defer_accept.is_some_and(|wait| now - self.answered_at < wait)
    }

    fn defers(&self, now: Instant, config: &Config, seg: &Segment) -> bool {
        self.waits(now, config) && seg.payload.is_empty() && !seg.flags.fin()
    }
}

fn backed_off(config: &Config, times: u8) -> Duration {
    config.initial_rto.saturating_mul(1 << times.min(16)).min(config.max_rto)
}
