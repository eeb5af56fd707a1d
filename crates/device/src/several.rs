//! One domain's receive halves of several devices as one, so that an executor has one thing to ask and one to
//! sleep on. The devices take turns: none that is flooded keeps the others waiting. It must never be used for one
//! device, which would pay for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::Readiness;
use crate::{Frame, Queues, Receive, Received};

/// These receive halves as one, numbered from 0 as [`Frame::device`] says; one alone stays itself.
///
/// # Errors
/// The kernel lets nobody wait for all of them together.
pub fn several(mut ends: Vec<Box<dyn Receive>>) -> io::Result<Box<dyn Receive>> {
    match ends.len() {
        1 => Ok(ends.remove(0)),
        _ => {
            let any = Readiness::of(ends.iter().flat_map(|end| end.fds()))?;
            Ok(Box::new(Several { ends, any, first: 0 }))
        }
    }
}

struct Several {
    ends: Vec<Box<dyn Receive>>,
    any: Readiness,
    /// Who is asked first: each in turn.
    first: usize,
}

impl Several {
    /// Takes at most `limit` frames of one device: how many there were.
    fn receive_from(&mut self, device: usize, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        let count = self.ends[device].receive(frames, limit);
        frames[before..].iter_mut().for_each(|frame| frame.device = device as u8);
        count
    }

    /// The end that a frame is of.
    fn end(&mut self, frame: Frame) -> Option<(&mut Box<dyn Receive>, Frame)> {
        Some((self.ends.get_mut(usize::from(frame.device))?, Frame { device: 0, ..frame }))
    }
}

impl Receive for Several {
    fn fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.ends.iter().flat_map(|end| end.fds()).collect()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let count = self.ends.len();
        self.first = (self.first + 1) % count;
        let (mut left, mut hungry) = (limit, 0u64);
        for turn in 0..count {
            let device = (self.first + turn) % count;
            // An equal part of what is left for those still to be asked; all of them are, for then they give
            // frames back.
            let share = left.div_ceil(count - turn);
            let got = self.receive_from(device, frames, share);
            left -= got.min(left);
            hungry |= u64::from(got == share) << (device % 64);
        }
        // What the others did not need goes to those that have more.
        for turn in 0..count {
            let device = (self.first + turn) % count;
            if left > 0 && hungry >> (device % 64) & 1 == 1 {
                left -= self.receive_from(device, frames, left).min(left);
            }
        }
        limit - left
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        match self.end(frame) {
            Some((end, frame)) => end.bytes(frame),
            None => &mut [],
        }
    }

    fn release(&mut self, frame: Frame) {
        if let Some((end, frame)) = self.end(frame) {
            end.release(frame);
        }
    }

    fn brought(&mut self) -> Queues {
        let each = (0..).zip(&mut self.ends).map(|(device, end)| end.brought().on(device));
        each.fold(Queues::default(), |all, of| all | of)
    }

    fn received(&mut self) -> Received {
        let all = self.ends.iter_mut().map(|end| end.received());
        all.fold(Received::default(), |sum, of| Received {
            frames: sum.frames + of.frames,
            bytes: sum.bytes + of.bytes,
            ring_full: sum.ring_full + of.ring_full,
            no_buffer: sum.no_buffer + of.no_buffer,
            malformed: sum.malformed + of.malformed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{End, Offload, link, readable};
    use std::time::Duration;

    /// Two devices as one, and the other ends of both.
    fn two() -> (Box<dyn Receive>, [End; 2]) {
        let pair = || link::pair(&link::Options::default()).unwrap();
        let ((a, far_a), (b, far_b)) = (pair(), pair());
        (several(vec![a.receive, b.receive]).unwrap(), [far_a, far_b])
    }

    fn send(end: &mut End, count: usize, byte: u8) {
        (0..count).for_each(|_| end.transmit.send(&[byte; 60], [&[], &[]], Offload::NONE));
        end.transmit.flush();
    }

    #[test]
    fn a_frame_is_read_and_given_back_at_the_device_that_it_came_over() {
        let (mut both, [mut a, mut b]) = two();
        send(&mut a, 1, 7);
        send(&mut b, 1, 9);
        assert!(readable(both.fd(), Duration::from_secs(1)).unwrap());
        let mut frames = Vec::new();
        assert_eq!(both.receive(&mut frames, 64), 2);
        frames.sort_by_key(|frame| frame.device);
        for (frame, byte) in frames.iter().zip([7, 9]) {
            assert_eq!(both.bytes(*frame)[frame.range()], [byte; 60]);
            both.release(*frame);
            assert!(both.bytes(*frame).is_empty(), "it has been given back");
        }
        assert_eq!(both.received().frames, 2);
        // A device in memory does not tell.
        assert_eq!(both.brought(), Queues::all_of(0) | Queues::all_of(1));
        let stranger = Frame { device: 2, ..frames[0] };
        assert!(both.bytes(stranger).is_empty());
    }

    #[test]
    fn none_that_is_flooded_keeps_the_other_waiting() {
        let (mut both, [mut a, mut b]) = two();
        send(&mut a, 40, 7);
        send(&mut b, 3, 9);
        for expected in [[8 - 3, 3], [8, 0]] {
            let mut frames = Vec::new();
            assert_eq!(both.receive(&mut frames, 8), 8, "what one does not need the other gets");
            let of = |device| frames.iter().filter(|frame| frame.device == device).count();
            assert_eq!([of(0), of(1)], expected);
            frames.into_iter().for_each(|frame| both.release(frame));
        }
    }

    #[test]
    fn one_alone_stays_itself() {
        let (a, mut far) = link::pair(&link::Options::default()).unwrap();
        let mut one = several(vec![a.receive]).unwrap();
        send(&mut far, 1, 7);
        let mut frames = Vec::new();
        assert_eq!((one.receive(&mut frames, 8), frames[0].device), (1, 0));
    }
}
