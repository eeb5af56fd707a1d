//! Faults as a wrapper: loss, duplication, corruption, reordering, delay and a rate limit
//! around any device's transmit half, because this machine's kernel has no netem. Seeded, and
//! in whatever time `flush` is given, so that a bad network repeats exactly. It must never
//! hold more than its queue allows, nor touch a frame that the dice spared.

use std::collections::BinaryHeap;
use std::time::Duration;

use silk_instant::Instant;

use crate::{Offload, Transmit, Transmitted, segment};

/// What goes wrong. Probabilities are per packet, from 0 to 1; large messages are cut into
/// packets first.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Where the dice start: the same seed and the same frames give the same faults.
    pub seed: u64,
    /// Packets that vanish.
    pub loss: f64,
    /// Packets that arrive twice.
    pub duplicate: f64,
    /// Packets in which one bit is turned over.
    pub corrupt: f64,
    /// Packets that are held back by [`reorder_by`](Self::reorder_by) and so overtaken.
    pub reorder: f64,
    /// How long those are held back.
    pub reorder_by: Duration,
    /// How long every packet is on its way.
    pub delay: Duration,
    /// A random part of the delay, at most this much more; it never reorders.
    pub jitter: Duration,
    /// Bits per second; none: no limit.
    pub rate: Option<u64>,
    /// How many packets may be on their way; one more is lost, as in a router's queue.
    pub queue: usize,
}

impl Default for Faults {
    /// No faults at all.
    fn default() -> Self {
        Self {
            seed: 0,
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            reorder_by: Duration::ZERO,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            queue: 10_000,
        }
    }
}

/// A transmit half with [`Faults`].
pub struct Faulty<T> {
    inner: T,
    faults: Faults,
    dice: Dice,
    /// Sent since the last flush: their way begins with the next.
    sent: Vec<Vec<u8>>,
    /// On their way, the first due first.
    carried: BinaryHeap<Carried>,
    count: u64,
    /// When the last packet that was not held back arrives: the others do not overtake it.
    last_due: Instant,
    /// When the rate limiter is free again.
    free_at: Instant,
    packet: Vec<u8>,
    lost: u64,
    transmitted: Transmitted,
}

impl<T: Transmit> Faulty<T> {
    /// `inner` with faults.
    pub fn new(inner: T, faults: Faults) -> Self {
        Self {
            inner,
            dice: Dice(faults.seed),
            faults,
            sent: Vec::new(),
            carried: BinaryHeap::new(),
            count: 0,
            last_due: Instant::ZERO,
            free_at: Instant::ZERO,
            packet: Vec::new(),
            lost: 0,
            transmitted: Transmitted::default(),
        }
    }

    /// How many packets were lost on the way: the dice or the queue. To the sender they were
    /// taken, as on any network.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Lets one packet set out at `now`.
    fn depart(&mut self, mut packet: Vec<u8>, now: Instant) {
        if self.dice.falls(self.faults.loss) {
            self.lost += 1;
            return;
        }
        if self.dice.falls(self.faults.corrupt) {
            let bit = self.dice.below(packet.len() as u64 * 8) as usize;
            if let Some(byte) = packet.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        let copies = if self.dice.falls(self.faults.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            if self.carried.len() < self.faults.queue {
                let due = self.due_of(packet.len(), now);
                self.count += 1;
                self.carried.push(Carried { due, order: self.count, bytes: packet.clone() });
            } else {
                self.lost += 1;
            }
        }
    }

    fn due_of(&mut self, len: usize, now: Instant) -> Instant {
        if let Some(rate) = self.faults.rate {
            let nanos = len as u128 * 8 * 1_000_000_000 / u128::from(rate.max(1));
            let nanos = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.free_at = self.free_at.max(now) + nanos;
        }
        let jitter = self.dice.below(self.faults.jitter.as_nanos() as u64 + 1);
        let due = self.free_at.max(now) + self.faults.delay + Duration::from_nanos(jitter);
        if self.dice.falls(self.faults.reorder) {
            return due + self.faults.reorder_by;
        }
        self.last_due = self.last_due.max(due);
        self.last_due
    }
}

impl<T: Transmit> Transmit for Faulty<T> {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        let message = [head, payload[0], payload[1]].concat();
        let sent = &mut self.sent;
        let cut = segment::cut(&message, offload, &mut self.packet, |packet| sent.push(packet.to_vec()));
        match cut {
            Ok(()) => self.transmitted.took(message.len()),
            Err(why) => self.transmitted.refused(why),
        }
    }

    fn flush(&mut self, now: Instant) {
        for packet in std::mem::take(&mut self.sent) {
            self.depart(packet, now);
        }
        while let Some(next) = self.carried.peek()
            && next.due <= now
            && let Some(next) = self.carried.pop()
        {
            self.inner.send(&next.bytes, [&[], &[]], Offload::NONE);
        }
        self.inner.flush(now);
    }

    fn due(&self) -> Option<Instant> {
        let ours = self.carried.peek().map(|next| next.due);
        ours.into_iter().chain(self.inner.due()).min()
    }

    fn transmitted(&self) -> Transmitted {
        self.transmitted
    }
}

impl Transmit for Box<dyn Transmit> {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        (**self).send(head, payload, offload);
    }

    fn flush(&mut self, now: Instant) {
        (**self).flush(now);
    }

    fn due(&self) -> Option<Instant> {
        (**self).due()
    }

    fn transmitted(&self) -> Transmitted {
        (**self).transmitted()
    }
}

/// A packet on its way. The heap gives the greatest first, so the earliest is the greatest;
/// of two due together, the one that set out first.
struct Carried {
    due: Instant,
    order: u64,
    bytes: Vec<u8>,
}

impl Ord for Carried {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl PartialOrd for Carried {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Carried {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Carried {}

/// SplitMix64 (Steele, Lea, Flood 2014): small, seedable and good enough for weather.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, 0 for a bound of 0.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn falls(&mut self, probability: f64) -> bool {
        // 53 bits are what an f64 holds exactly.
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;

    /// Sends `count` numbered frames with `faults`, one every millisecond, and gives what
    /// arrived and when (in milliseconds).
    fn weather(count: u8, faults: Faults) -> Vec<(u64, u8)> {
        let (ours, mut theirs) = link::pair(&link::Options::default()).unwrap();
        let mut transmit = Faulty::new(ours.transmit, faults);
        let mut arrived = Vec::new();
        for milli in 0..u64::from(count) + 100 {
            if milli < u64::from(count) {
                transmit.send(&[0; 59], [&[milli as u8], &[]], Offload::NONE);
            }
            transmit.flush(Instant::from_millis(milli));
            let mut frames = Vec::new();
            theirs.receive.receive(&mut frames, 64);
            for frame in frames {
                arrived.push((milli, theirs.receive.bytes(frame)[frame.range()][59]));
                theirs.receive.release(frame);
            }
        }
        assert_eq!(transmit.due(), None, "nothing is left on its way");
        arrived
    }

    #[test]
    fn without_faults_nothing_happens() {
        let expected: Vec<_> = (0..20).map(|at| (u64::from(at), at)).collect();
        assert_eq!(weather(20, Faults::default()), expected);
    }

    #[test]
    fn a_seed_repeats_and_another_does_not() {
        let faults =
            |seed| Faults { seed, loss: 0.2, duplicate: 0.2, jitter: MILLIS * 3, ..Faults::default() };
        assert_eq!(weather(100, faults(1)), weather(100, faults(1)));
        assert_ne!(weather(100, faults(1)), weather(100, faults(2)));
    }

    #[test]
    fn loss_loses_about_its_share() {
        let arrived = weather(200, Faults { loss: 0.3, ..Faults::default() }).len();
        assert!((120..=160).contains(&arrived), "{arrived} of 200");
    }

    #[test]
    fn a_delay_is_kept_and_jitter_never_reorders() {
        let faults = Faults { delay: MILLIS * 10, jitter: MILLIS * 5, ..Faults::default() };
        let arrived = weather(50, faults);
        assert!(arrived.iter().all(|&(at, sent)| (10..=16).contains(&(at - u64::from(sent)))));
        assert!(arrived.is_sorted_by_key(|&(_, sent)| sent));
        assert_eq!(arrived.len(), 50);
    }

    #[test]
    fn what_is_held_back_is_overtaken() {
        let arrived = weather(50, Faults { reorder: 0.2, reorder_by: MILLIS * 3, ..Faults::default() });
        assert!(!arrived.is_sorted_by_key(|&(_, sent)| sent));
        assert_eq!(arrived.len(), 50);
    }

    #[test]
    fn a_rate_spaces_packets_and_a_full_queue_loses_them() {
        // 60 bytes at 240 kb/s: two milliseconds each, sent one a millisecond.
        let faults = Faults { rate: Some(240_000), queue: 5, ..Faults::default() };
        let arrived = weather(40, faults);
        assert!(arrived.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 2));
        assert!((20..30).contains(&arrived.len()), "{} of 40", arrived.len());
    }

    #[test]
    fn corruption_turns_one_bit() {
        let (ours, mut theirs) = link::pair(&link::Options::default()).unwrap();
        let mut transmit = Faulty::new(ours.transmit, Faults { corrupt: 1.0, ..Faults::default() });
        transmit.send(&[0; 60], [&[], &[]], Offload::NONE);
        transmit.flush(Instant::ZERO);
        let mut frames = Vec::new();
        theirs.receive.receive(&mut frames, 1);
        let bytes = &theirs.receive.bytes(frames[0])[frames[0].range()];
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }

    const MILLIS: Duration = Duration::from_millis(1);
}
