//! One direction of the emulated link: what arrives at one interface goes through the emulator to
//! the other.

use silk_device::{Frame, Offload, Receive, Transmit};
use silk_instant::Instant;
use silk_testkit::emulator::Link;
use std::os::fd::BorrowedFd;

/// Frames that are taken at once, so that one direction never keeps the other waiting for long.
const BATCH: usize = 64;

/// From one interface to the other.
pub struct Way {
    receive: Box<dyn Receive>,
    transmit: Box<dyn Transmit>,
    link: Link,
    frames: Vec<Frame>,
}

impl Way {
    pub fn new(receive: Box<dyn Receive>, transmit: Box<dyn Transmit>, link: Link) -> Self {
        Self { receive, transmit, link, frames: Vec::with_capacity(BATCH) }
    }

    /// Takes what has come and gives what is due at `now`. Answers whether more may have come.
    pub fn carry(&mut self, now: Instant) -> bool {
        let taken = self.receive.receive(&mut self.frames, BATCH);
        for frame in self.frames.drain(..) {
            let packet = self.receive.bytes(frame).get(frame.range()).unwrap_or_default().to_vec();
            self.receive.release(frame);
            self.link.send(now, packet);
        }
        while let Some(packet) = self.link.arrive(now) {
            self.transmit.send(&packet, [&[], &[]], Offload::NONE);
        }
        self.transmit.flush();
        taken == BATCH
    }

    /// When the link is to be looked at again.
    pub fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }

    /// Readable when something has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.receive.fd()
    }

    /// What became of the packets, for people.
    pub fn summary(&self) -> String {
        format!("{}; refused by Linux {}", self.link.counts(), self.transmit.transmitted().dropped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_device::link::{self, Options};
    use silk_testkit::emulator::Conditions;
    use std::time::Duration;

    #[test]
    fn a_tag_does_not_make_a_packet_too_long() {
        let wide = Options { mtu: 2000, ..Options::default() };
        let (mut left, ours) = link::pair(&wide).unwrap();
        let (theirs, mut right) = link::pair(&wide).unwrap();
        let conditions = Conditions { longest: std::num::NonZeroU64::new(1514), ..Conditions::default() };
        let mut way = Way::new(ours.receive, theirs.transmit, Link::new(&conditions, 1));
        for length in [1500, 1501] {
            for kinds in [&[8, 0][..], &[0x81, 0, 0, 100, 8, 0]] {
                left.transmit.send(&[&[2; 12], kinds, &vec![0; length]].concat(), [&[], &[]], Offload::NONE);
            }
        }
        left.transmit.flush();
        way.carry(Instant::ZERO);
        let mut frames = Vec::new();
        right.receive.receive(&mut frames, 9);
        assert_eq!(frames.iter().map(|frame| frame.len).collect::<Vec<_>>(), [1514, 1518]);
    }

    #[test]
    fn frames_cross_when_their_time_has_come() {
        let (mut left, ours) = link::pair(&Options::default()).unwrap();
        let (theirs, mut right) = link::pair(&Options::default()).unwrap();
        let conditions = Conditions { delay: Duration::from_millis(10), ..Conditions::default() };
        let mut way = Way::new(ours.receive, theirs.transmit, Link::new(&conditions, 1));
        for n in 0..100 {
            left.transmit.send(&[n; 60], [&[], &[]], Offload::NONE);
        }
        left.transmit.flush();
        assert_eq!((way.carry(Instant::ZERO), way.carry(Instant::ZERO)), (true, false));
        let due = Instant::from_millis(10);
        let mut frames = Vec::new();
        assert_eq!((way.next_event(), right.receive.receive(&mut frames, 200)), (Some(due), 0));
        way.carry(due);
        assert_eq!((way.next_event(), right.receive.receive(&mut frames, 200)), (None, 100));
        let first = |frame: &Frame| right.receive.bytes(*frame)[frame.range()][0];
        assert_eq!(frames.iter().map(first).collect::<Vec<_>>(), (0..100).collect::<Vec<u8>>());
        let counts = "sent 100, arrived 100, too long 0, lost 0, overflowed 0, managed 0, duplicated 0, \
                      corrupted 0, held back 0";
        assert_eq!(way.summary(), format!("{counts}; refused by Linux 0"));
    }
}
