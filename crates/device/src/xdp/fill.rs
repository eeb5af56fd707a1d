//! The fill ring, through which frames go back to the kernel. The sockets of one queue share
//! one, so every domain produces into it, and **none may ever wait for another**: a producer
//! that was preempted half way by a higher domain must not hold that domain up. A try-lock
//! would not do: a low domain could be preempted inside it for as long as a high one is busy,
//! and the high one's frames would pile up outside while the ring ran dry.
//!
//! So a producer publishes with two compare-and-swaps and whoever comes next finishes a half
//! done publication first (the array queue of Michael and Scott's 1996 scheme). To tell a
//! slot that was written in this lap from one of the lap before, the lap's number stands in
//! the low bits of the address, which the kernel masks off: a frame's address is a multiple
//! of its size (Documentation/networking/af_xdp.rst, aligned chunks).
//!
//! The ring is never full: it has at least as many slots as its queue has frames, and a frame
//! is never given twice, which the caller answers for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An atomic word: the kernel's in use, a model's in the tests.
pub(crate) trait Word<T> {
    /// Reads it; what was written before it was written is seen.
    fn read(&self) -> T;
    /// Writes `to` if it is `from`, and says whether it did; what was written before is seen
    /// by whoever reads it.
    fn turn(&self, from: T, to: T) -> bool;
}

impl Word<u32> for AtomicU32 {
    fn read(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    fn turn(&self, from: u32, to: u32) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Word<u64> for AtomicU64 {
    fn read(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn turn(&self, from: u64, to: u64) -> bool {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The most slots a ring may have for frames of `frame` bytes: with more of them the producer, which counts to 2^32,
/// would begin anew in the middle of the laps, and a slot that is two laps behind is never written.
pub(crate) const fn most_slots(frame: u64) -> u64 {
    (1 << 32) / frame
}

/// The lap in which slot `at` is written. They count from one: a slot that was never written is of lap zero.
fn lap(at: u32, slots: usize, frame: u64) -> u64 {
    (u64::from(at >> slots.trailing_zeros()) + 1) & (frame - 1)
}

/// Gives the kernel the frame at `address`, a multiple of `frame`; both and the number of
/// slots are powers of two.
pub(crate) fn give(producer: &impl Word<u32>, slots: &[impl Word<u64>], frame: u64, address: u64) {
    let laps = frame - 1;
    loop {
        let at = producer.read();
        let slot = &slots[at as usize & (slots.len() - 1)];
        let lap = lap(at, slots.len(), frame);
        let seen = slot.read();
        if seen & laps == lap {
            publish(producer, at);
        } else if seen & laps == lap.wrapping_sub(1) & laps && slot.turn(seen, address | lap) {
            return publish(producer, at);
        }
        // Otherwise `at` was old: look again.
    }
}

/// Moves the producer past slot `at`, which is written. When it has moved already, somebody
/// helped.
fn publish(producer: &impl Word<u32>, at: u32) {
    producer.turn(at, at.wrapping_add(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Mutex;

    const FRAME: u64 = 2048;

    /// The kernel's side: takes the next frame, and masks its address.
    fn take(producer: &AtomicU32, consumer: &AtomicU32, slots: &[AtomicU64]) -> Option<u64> {
        let at = consumer.load(Ordering::Relaxed);
        if producer.load(Ordering::Acquire) == at {
            return None;
        }
        let address = slots[at as usize & (slots.len() - 1)].load(Ordering::Relaxed) & !(FRAME - 1);
        consumer.store(at.wrapping_add(1), Ordering::Release);
        Some(address)
    }

    fn slots(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn frames_come_out_as_they_went_in_through_every_lap() {
        let (slots, producer, consumer) = (slots(4), AtomicU32::new(0), AtomicU32::new(0));
        let mut oracle = VecDeque::new();
        // More laps than the tag can count.
        for round in 0..3 * 2048 * 4u64 {
            let address = round % 4 * FRAME;
            give(&producer, &slots, FRAME, address);
            oracle.push_back(address);
            if oracle.len() == 1 + round as usize % 4 {
                oracle.drain(..).for_each(|sent| assert_eq!(take(&producer, &consumer, &slots), Some(sent)));
            }
        }
    }

    #[test]
    fn the_producer_may_wrap() {
        // Near 2^32, in the state that an honest past would have left.
        let start = u32::MAX - 5;
        let slots = slots(4);
        for (at, slot) in slots.iter().enumerate() {
            let position = (0..4).map(|back| start - 4 + back).find(|at_| *at_ as usize % 4 == at).unwrap();
            slot.store((u64::from(position >> 2) + 1) & (FRAME - 1), Ordering::Relaxed);
        }
        let (producer, consumer) = (AtomicU32::new(start), AtomicU32::new(start));
        for round in 0..40 {
            give(&producer, &slots, FRAME, round * FRAME);
            assert_eq!(take(&producer, &consumer, &slots), Some(round * FRAME));
        }
    }

    #[test]
    fn laps_go_on_where_the_producer_wraps_in_a_ring_of_as_many_slots_as_it_may_have() {
        for frame in [FRAME, 4096] {
            let goes_on = |slots| lap(0, slots, frame) == (lap(u32::MAX, slots, frame) + 1) & (frame - 1);
            let most = most_slots(frame) as usize;
            assert!(goes_on(64) && goes_on(most) && !goes_on(2 * most), "{frame}");
        }
    }

    #[test]
    fn a_half_done_publication_is_finished_by_the_next() {
        let (slots, producer, consumer) = (slots(4), AtomicU32::new(0), AtomicU32::new(0));
        // A producer that was preempted between its two steps.
        slots[0].store((7 * FRAME) | 1, Ordering::Relaxed);
        give(&producer, &slots, FRAME, 8 * FRAME);
        assert_eq!(take(&producer, &consumer, &slots), Some(7 * FRAME));
        assert_eq!(take(&producer, &consumer, &slots), Some(8 * FRAME));
        assert_eq!(take(&producer, &consumer, &slots), None);
    }

    #[test]
    fn producers_on_many_threads_lose_and_double_nothing() {
        const FRAMES: u64 = 64;
        const ROUNDS: usize = 20_000;
        let (slots, producer, consumer) = (slots(64), AtomicU32::new(0), AtomicU32::new(0));
        // Frames that the kernel handed out and that wait to be given back.
        let outside = Mutex::new((0..FRAMES).map(|at| at * FRAME).collect::<Vec<_>>());
        let (give_one, outside_ref) = (|address| give(&producer, &slots, FRAME, address), &outside);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let next = outside_ref.lock().unwrap().pop();
                        next.map_or_else(std::thread::yield_now, give_one);
                    }
                });
            }
            for _ in 0..ROUNDS {
                match take(&producer, &consumer, &slots) {
                    Some(address) => outside.lock().unwrap().push(address),
                    None => std::thread::yield_now(),
                }
            }
        });
        let mut all = outside.into_inner().unwrap();
        all.extend(std::iter::from_fn(|| take(&producer, &consumer, &slots)));
        all.sort_unstable();
        assert_eq!(all, (0..FRAMES).map(|at| at * FRAME).collect::<Vec<_>>());
    }

    mod model {
        //! Every interleaving of two producers and the kernel.

        use super::super::{Word, give};
        use super::FRAME;
        use loom::sync::Arc;
        use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
        use loom::thread;

        impl Word<u32> for AtomicU32 {
            fn read(&self) -> u32 {
                self.load(Ordering::Acquire)
            }

            fn turn(&self, from: u32, to: u32) -> bool {
                self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
        }

        impl Word<u64> for AtomicU64 {
            fn read(&self) -> u64 {
                self.load(Ordering::Acquire)
            }

            fn turn(&self, from: u64, to: u64) -> bool {
                self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
        }

        struct Ring {
            producer: AtomicU32,
            slots: Vec<AtomicU64>,
        }

        impl Ring {
            /// Everything published from `consumer` on, as the kernel reads it.
            fn published(&self, consumer: &mut u32) -> Vec<u64> {
                let producer = self.producer.load(Ordering::Acquire);
                let mut all = Vec::new();
                while *consumer != producer {
                    let slot = &self.slots[*consumer as usize & (self.slots.len() - 1)];
                    all.push(slot.load(Ordering::Relaxed) & !(FRAME - 1));
                    *consumer += 1;
                }
                all
            }
        }

        #[test]
        fn every_interleaving_publishes_every_frame_once() {
            loom::model(|| {
                let slots = (0..4).map(|_| AtomicU64::new(0)).collect();
                let ring = Arc::new(Ring { producer: AtomicU32::new(0), slots });
                // Three of the slots were used in the lap before.
                (1..4).for_each(|frame| give(&ring.producer, &ring.slots, FRAME, frame * FRAME));
                let mut consumer = 0;
                assert_eq!(ring.published(&mut consumer), [1, 2, 3].map(|frame| frame * FRAME));
                let producers = [1, 2].map(|frame| {
                    let ring = ring.clone();
                    thread::spawn(move || give(&ring.producer, &ring.slots, FRAME, frame * FRAME))
                });
                let mut seen = ring.published(&mut consumer);
                for producer in producers {
                    producer.join().unwrap();
                }
                seen.extend(ring.published(&mut consumer));
                seen.sort_unstable();
                assert_eq!(seen, [FRAME, 2 * FRAME]);
            });
        }
    }
}
