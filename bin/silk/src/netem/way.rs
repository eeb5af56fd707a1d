//! One direction of the emulated link: what arrives at one interface, by way of the emulator, goes to
//! the other.

use silk_device::{Frame, Offload, Receive, Transmit};
use silk_testkit::faults::Faulty;
use std::os::fd::BorrowedFd;

/// Frames that are given at once, so that one direction never keeps the other waiting for long.
const BATCH: usize = 64;

/// From one interface to the other.
pub struct Way {
    receive: Faulty,
    transmit: Box<dyn Transmit>,
    frames: Vec<Frame>,
}

impl Way {
    pub fn new(receive: Faulty, transmit: Box<dyn Transmit>) -> Self {
        Self { receive, transmit, frames: Vec::with_capacity(BATCH) }
    }

    /// Takes what has come and gives what is due.
    pub fn carry(&mut self) {
        self.receive.receive(&mut self.frames, BATCH);
        for frame in self.frames.drain(..) {
            let packet = self.receive.bytes(frame).get(frame.range()).unwrap_or_default();
            self.transmit.send(packet, [&[], &[]], Offload::NONE);
            self.receive.release(frame);
        }
        self.transmit.flush();
    }

    /// Readable when something has come or is due.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.receive.fd()
    }

    /// What became of the packets, for people.
    pub fn summary(&self) -> String {
        let counts = self.receive.line().counts();
        format!("{counts}; refused by Linux {}", self.transmit.transmitted().dropped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_device::link::{self, Options};
    use silk_instant::Instant;
    use silk_testkit::emulator::Conditions;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn a_tag_does_not_make_a_packet_too_long() {
        let wide = Options { mtu: 2000, ..Options::default() };
        let (mut left, ours) = link::pair(&wide).unwrap();
        let (theirs, mut right) = link::pair(&wide).unwrap();
        let conditions = Conditions { longest: std::num::NonZeroU64::new(1514), ..Conditions::default() };
        let mut way = Way::new(Faulty::new(ours.receive, &conditions, 1).unwrap(), theirs.transmit);
        for length in [1500, 1501] {
            for kinds in [&[8, 0][..], &[0x81, 0, 0, 100, 8, 0]] {
                left.transmit.send(&[&[2; 12], kinds, &vec![0; length]].concat(), [&[], &[]], Offload::NONE);
            }
        }
        left.transmit.flush();
        way.carry();
        let mut frames = Vec::new();
        right.receive.receive(&mut frames, 9);
        assert_eq!(frames.iter().map(|frame| frame.len).collect::<Vec<_>>(), [1514, 1518]);
    }

    #[test]
    fn frames_cross_when_their_time_has_come() {
        let (mut left, ours) = link::pair(&Options::default()).unwrap();
        let (theirs, mut right) = link::pair(&Options::default()).unwrap();
        let conditions = Conditions { delay: Duration::from_millis(10), ..Conditions::default() };
        let millis = Arc::new(AtomicU64::new(0));
        let clock = millis.clone();
        let faulty = Faulty::new(ours.receive, &conditions, 1).unwrap();
        let faulty = faulty.by_clock(move || Instant::from_millis(clock.load(Ordering::Relaxed)));
        let mut way = Way::new(faulty, theirs.transmit);
        for n in 0..100 {
            left.transmit.send(&[n; 60], [&[], &[]], Offload::NONE);
        }
        left.transmit.flush();
        let mut frames = Vec::new();
        for (at, arrived) in [(0, 0), (9, 0), (10, 64), (10, 100)] {
            millis.store(at, Ordering::Relaxed);
            way.carry();
            right.receive.receive(&mut frames, 200);
            assert_eq!(frames.len(), arrived, "after {at} ms");
        }
        let first = |frame: &Frame| right.receive.bytes(*frame)[frame.range()][0];
        assert_eq!(frames.iter().map(first).collect::<Vec<_>>(), (0..100).collect::<Vec<u8>>());
        let counts = "sent 100, arrived 100, too long 0, lost 0, overflowed 0, managed 0, duplicated 0, \
                      corrupted 0, held back 0";
        assert_eq!(way.summary(), format!("{counts}; refused by Linux 0"));
    }
}
