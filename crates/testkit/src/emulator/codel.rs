//! CoDel, Controlled Delay (RFC 8289): a queue may be long for a moment but must not stand. When
//! every packet of an interval waited longer than the target, the queue drops from its head, at
//! first rarely and then more and more often, until the delay is back. The names are those of the
//! RFC's §5.

use std::time::Duration;

use silk_instant::Instant;

use super::Packet;
use super::fifo::{Fifo, Left};

/// The delay that a standing queue may have: 5 ms, 5 % of the interval (RFC 8289 §4.3).
const TARGET: Duration = Duration::from_millis(5);
/// How long the delay may stay above the target: 100 ms, a round trip of nearly all paths (RFC 8289
/// §4.2).
const INTERVAL: Duration = Duration::from_millis(100);
/// For how many intervals after dropping ended its pace is remembered (RFC 8289 §5.5).
const MEMORY: u32 = 16;

/// The state of one queue (RFC 8289 §5.2).
#[derive(Clone, Debug, Default)]
pub(super) struct CoDel {
    /// When the delay will have been above the target for an interval; none: it is below.
    first_above_time: Option<Instant>,
    /// When the next packet is dropped, while `dropping`.
    drop_next: Instant,
    /// Packets dropped since dropping began.
    count: u32,
    /// What `count` was when dropping last began.
    lastcount: u32,
    dropping: bool,
}

/// A packet from the head, and whether it may be dropped.
struct Head<P> {
    packet: Option<P>,
    ok_to_drop: bool,
}

impl CoDel {
    /// The packet to transmit at `now`, and how many had to go before it (RFC 8289 §5.5).
    pub(super) fn dequeue<P: Packet>(&mut self, now: Instant, fifo: &mut Fifo<P>) -> Left<P> {
        let mut head = self.head(now, fifo);
        let mut dropped = 0;
        if self.dropping {
            self.dropping = head.ok_to_drop;
            while self.dropping && now >= self.drop_next {
                dropped += 1;
                self.count = self.count.saturating_add(1);
                head = self.head(now, fifo);
                self.dropping = head.ok_to_drop;
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, self.count);
                }
            }
        } else if head.ok_to_drop {
            dropped = 1;
            head = self.head(now, fifo);
            self.begin(now);
        }
        Left { packet: head.packet, dropped }
    }

    /// Dropping begins; soon after it ended, at the pace it had then.
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now - self.drop_next < MEMORY * INTERVAL;
        self.count = if recent && delta > 1 { delta } else { 1 };
        self.lastcount = self.count;
        self.drop_next = control_law(now, self.count);
    }

    /// Takes the head and looks how long it waited (RFC 8289 §5.6, dodequeue).
    fn head<P: Packet>(&mut self, now: Instant, fifo: &mut Fifo<P>) -> Head<P> {
        let Some((came, packet)) = fifo.pop() else {
            self.first_above_time = None;
            return Head { packet: None, ok_to_drop: false };
        };
        // A queue of one packet is no standing queue, however slow the line (RFC 8289 §4.1).
        if now - came < TARGET || fifo.is_short() {
            self.first_above_time = None;
            return Head { packet: Some(packet), ok_to_drop: false };
        }
        let since = *self.first_above_time.get_or_insert(now + INTERVAL);
        Head { packet: Some(packet), ok_to_drop: now >= since }
    }
}

/// When the next packet is dropped: sooner, with the root of how many were (RFC 8289 §5.6).
fn control_law(after: Instant, count: u32) -> Instant {
    after + INTERVAL.div_f64(f64::from(count.max(1)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::queue::Queue;
    use super::super::{Conditions, Discipline};
    use super::*;

    /// A queue that always stands at 50 packets, one leaving each millisecond: when it drops.
    fn drops_of_a_standing_queue(millis: u64) -> Vec<u64> {
        let conditions = Conditions { discipline: Discipline::CoDel, ..Conditions::default() };
        let mut queue = Queue::new(&conditions);
        let mut drops = Vec::new();
        for now in 0..millis {
            while queue.len() < 50 {
                queue.push(Instant::from_millis(now), vec![0; 100]);
            }
            let left = queue.pop(Instant::from_millis(now));
            drops.extend((0..left.dropped).map(|_| now));
        }
        drops
    }

    #[test]
    fn a_standing_queue_drops_after_an_interval_and_then_more_and_more_often() {
        // At 5 ms the delay passes the target, at 105 ms it has for an interval; then after
        // 100 ms, 100/√2, 100/√3, …
        assert_eq!(drops_of_a_standing_queue(450), [105, 205, 276, 334, 384, 429]);
    }

    #[test]
    fn a_queue_that_empties_once_an_interval_drops_nothing() {
        let conditions = Conditions { discipline: Discipline::CoDel, ..Conditions::default() };
        let mut queue = Queue::new(&conditions);
        for burst in 0..20 {
            (0..90).for_each(|_| assert!(queue.push(Instant::from_millis(100 * burst), vec![0; 100])));
            for milli in 0..100 {
                assert_eq!(queue.pop(Instant::from_millis(100 * burst + milli)).dropped, 0);
            }
        }
    }

    #[test]
    fn one_packet_is_never_a_standing_queue() {
        let conditions = Conditions { discipline: Discipline::CoDel, ..Conditions::default() };
        let mut queue = Queue::new(&conditions);
        for second in 0..100 {
            queue.push(Instant::from_millis(1_000 * second), vec![0; 100]);
            let left = queue.pop(Instant::from_millis(1_000 * second + 999));
            assert_eq!(left, Left { packet: Some(vec![0; 100]), dropped: 0 });
        }
    }

    #[test]
    fn dropping_goes_on_at_its_pace_when_it_ended_a_moment_ago() {
        let mut codel = CoDel { count: 9, lastcount: 1, ..CoDel::default() };
        codel.begin(Instant::from_millis(10));
        assert_eq!((codel.count, codel.drop_next), (8, control_law(Instant::from_millis(10), 8)));
        codel.begin(codel.drop_next + MEMORY * INTERVAL);
        assert_eq!(codel.count, 1);
    }
}
