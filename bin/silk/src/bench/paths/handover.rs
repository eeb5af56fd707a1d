//! What it costs to hand bytes from one CPU to another through a shared ring, while both sides look all
//! the time. Halving a round trip, since no two CPUs' clocks have to agree for that.

use super::case::{Case, Work, timed};
use super::copies::{PASSED, Rings};
use super::cpu;
use super::row::Peers;
use silk_stream::Bytes;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Looks after which a side lets others run: the other side may wait for this very CPU.
const LOOKS: u32 = 20_000;

/// The case; none where there is one CPU, or no shared memory.
pub fn case() -> Option<Case> {
    let work = Handover::new(Rings::new()?, cpu::other()?)?;
    Some(Case::new("64 bytes through a shared ring, to another CPU", Peers::NONE, work))
}

/// One side: this thread. The other sends back what it gets, while there is something to measure.
struct Handover {
    rings: Arc<Rings>,
    playing: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    other: Option<JoinHandle<()>>,
}

impl Handover {
    fn new(rings: Rings, on: usize) -> Option<Self> {
        let rings = Arc::new(rings);
        let (playing, ended) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let other = thread::Builder::new().spawn({
            let (rings, playing, ended) = (rings.clone(), playing.clone(), ended.clone());
            move || {
                cpu::keep_to(on);
                while !ended.load(Acquire) {
                    if playing.load(Acquire) { send_back(&rings, &playing) } else { thread::park() }
                }
            }
        });
        Some(Self { rings, playing, ended, other: Some(other.ok()?) })
    }

    fn wake(&self) {
        if let Some(other) = &self.other {
            other.thread().unpark();
        }
    }
}

impl Work for Handover {
    fn run(&mut self, operations: u64) -> Duration {
        self.playing.store(true, Release);
        self.wake();
        let slot = self.rings.slot();
        let trip = || {
            pass(&self.rings.send(), &slot.tx_write);
            take(&self.rings.receive(), &slot.rx_write, &slot.rx_read, || true);
        };
        // Once so that the other side is there.
        trip();
        let took = timed(|| (0..operations).for_each(|_| trip()));
        self.playing.store(false, Release);
        took / 2
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        self.ended.store(true, Release);
        self.wake();
        // It ends with the process at the latest.
        let _ = self.other.take().map(JoinHandle::join);
    }
}

fn send_back(rings: &Rings, playing: &AtomicBool) {
    let slot = rings.slot();
    while take(&rings.send(), &slot.tx_write, &slot.tx_read, || playing.load(Relaxed)) {
        pass(&rings.receive(), &slot.rx_write);
    }
}

/// Writes into a ring and tells.
fn pass(ring: &Bytes<'_>, write: &AtomicU32) {
    let at = write.load(Relaxed);
    ring.write(at, black_box(&[7; PASSED]));
    write.store(at.wrapping_add(PASSED as u32), Release);
}

/// Waits for something in a ring and reads it; `false` when there is nothing and nothing will come.
fn take(ring: &Bytes<'_>, write: &AtomicU32, read: &AtomicU32, more: impl Fn() -> bool) -> bool {
    let at = read.load(Relaxed);
    let mut looks = 0;
    while write.load(Acquire) == at {
        if !more() {
            return false;
        }
        looks += 1;
        if looks % LOOKS == 0 { thread::yield_now() } else { spin_loop() }
    }
    let mut bytes = [0; PASSED];
    ring.read(at, &mut bytes);
    black_box(bytes);
    read.store(at.wrapping_add(PASSED as u32), Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_comes_back_and_the_other_side_ends() {
        let mut handover = Handover::new(Rings::new().unwrap(), 0).unwrap();
        for operations in [1, 10] {
            assert!(handover.run(operations) > Duration::ZERO);
        }
        let (rings, slot) = (handover.rings.clone(), |rings: &Rings| rings.slot().rx_read.load(Relaxed));
        drop(handover);
        assert_eq!(slot(&rings), 13 * PASSED as u32);
        assert_eq!(Arc::strong_count(&rings), 1);
    }
}
