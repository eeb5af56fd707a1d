//! Receive buffers of the devices that read their frames by system call: a bounded pool, and
//! who holds what. It must never hand out the bytes of a buffer that nobody holds.

use crate::{Frame, HEADROOM};

/// A bounded pool of equal buffers. Invariant: every buffer is either in `free` or has
/// `held` set, never both.
pub(crate) struct Pool {
    buffers: Vec<Box<[u8]>>,
    held: Vec<bool>,
    /// Last in, first out, so that the warmest buffer is used next.
    free: Vec<u32>,
}

impl Pool {
    /// `count` buffers of `size` bytes behind the headroom.
    pub fn new(count: u32, size: usize) -> Self {
        Self {
            buffers: (0..count).map(|_| vec![0; HEADROOM + size].into_boxed_slice()).collect(),
            held: vec![false; count as usize],
            free: (0..count).rev().collect(),
        }
    }

    /// Takes a buffer out, index and all; [`put`](Self::put) or [`hold`](Self::hold) must
    /// follow.
    pub fn take(&mut self) -> Option<(u32, Box<[u8]>)> {
        let index = self.free.pop()?;
        Some((index, std::mem::take(&mut self.buffers[index as usize])))
    }

    /// Puts back a buffer that was taken out and not used.
    pub fn put(&mut self, index: u32, buffer: Box<[u8]>) {
        self.buffers[index as usize] = buffer;
        self.free.push(index);
    }

    /// Puts back a buffer that was taken out and now holds a frame.
    pub fn hold(&mut self, index: u32, buffer: Box<[u8]>) {
        self.buffers[index as usize] = buffer;
        self.held[index as usize] = true;
    }

    /// The index of a buffer that now holds a copy of `packet`, behind the headroom; `None` where all are in
    /// use. One that is shorter than that, as an MTU that was raised can make it, is a longer one from then on.
    pub fn hold_copy(&mut self, packet: &[u8]) -> Option<u32> {
        let (index, mut buffer) = self.take()?;
        let end = HEADROOM + packet.len();
        if buffer.len() < end {
            buffer = vec![0; end].into_boxed_slice();
        }
        buffer[HEADROOM..end].copy_from_slice(packet);
        self.hold(index, buffer);
        Some(index)
    }

    /// How many buffers there are.
    pub fn size(&self) -> usize {
        self.buffers.len()
    }

    /// How many buffers are free.
    pub fn left(&self) -> usize {
        self.free.len()
    }

    /// The buffer of a held frame, empty for any other.
    pub fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        match self.held.get(frame.index as usize) {
            Some(true) => &mut self.buffers[frame.index as usize],
            _ => &mut [],
        }
    }

    /// Frees a held buffer; anything else is ignored.
    pub fn release(&mut self, frame: Frame) {
        if let Some(held) = self.held.get_mut(frame.index as usize)
            && std::mem::take(held)
        {
            self.free.push(frame.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksum;

    fn ticket(index: u32) -> Frame {
        Frame { index, device: 0, offset: 0, len: 0, path: 0, segment: 0, checksum: Checksum::Unknown }
    }

    #[test]
    fn a_frame_released_twice_is_freed_once() {
        let mut pool = Pool::new(1, 64);
        let (index, buffer) = pool.take().unwrap();
        pool.hold(index, buffer);
        assert_eq!(pool.bytes(ticket(index)).len(), HEADROOM + 64);
        pool.release(ticket(index));
        pool.release(ticket(index));
        assert_eq!(pool.free, [0]);
    }

    #[test]
    fn a_copy_that_is_longer_than_its_buffer_makes_it_longer() {
        let mut pool = Pool::new(1, 4);
        let index = pool.hold_copy(b"longer").unwrap();
        assert_eq!(&pool.bytes(ticket(index))[HEADROOM..], b"longer");
        assert_eq!(pool.hold_copy(b"no"), None, "it is held");
    }

    #[test]
    fn tickets_of_nobody_open_nothing() {
        let mut pool = Pool::new(1, 64);
        assert!(pool.bytes(ticket(0)).is_empty());
        assert!(pool.bytes(ticket(7)).is_empty());
        pool.release(ticket(7));
        assert_eq!(pool.free, [0]);
    }
}
