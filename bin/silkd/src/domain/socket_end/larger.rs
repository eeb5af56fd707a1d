//! A connection that its rings hold back gets larger ones, while memory and the arena have room: one whose program reads
//! more in a round trip than the receive ring lets a peer send, and one whose program waits to write while the send ring
//! holds less than its congestion window could use. Why, and how neither side notices: `docs/design/larger-rings.md`.

use super::SocketEnd;
use silk_stream::{Pool, RingPlace};
use std::sync::atomic::Ordering::Relaxed;

/// What a connection with larger rings has besides those that it uses.
#[derive(Debug, Default)]
pub struct Larger {
    /// The receive ring and the send ring that it began with, once it uses others. They stay its own, without memory,
    /// since they return to the book that they are from, which is not always the one that larger rings are from.
    first: [Option<RingPlace>; 2],
    /// The receive ring that it uses as soon as the one it has is empty.
    next: Option<RingPlace>,
    /// A receive ring that it has used until now.
    left: Option<RingPlace>,
}

impl Larger {
    /// The ring to be used from now on, since the one that has been, this one, is empty.
    pub(super) fn go_over_from(&mut self, ring: RingPlace) -> Option<RingPlace> {
        // Of two that were left the first would be lost.
        let next = self.next.take_if(|_| self.left.is_none())?;
        // The connection may end before anybody looks at what was left.
        self.first[RECEIVE].get_or_insert(ring);
        self.left = Some(ring);
        Some(next)
    }
}

/// Which of [`Larger::first`].
pub(super) const RECEIVE: usize = 0;
/// The other.
pub(super) const SEND: usize = 1;

impl SocketEnd {
    /// Whether there is something for [`SocketEnd::enlarge`] to do.
    pub fn wants_larger(&self) -> bool {
        self.to_program.side.wanted | self.from_program.side.wanted != 0
            || self.to_program.larger.as_ref().is_some_and(|larger| larger.left.is_some())
    }

    /// Takes larger rings, of `largest` bytes at most, where they are wanted and there are any, and returns those that were
    /// left.
    #[cold]
    pub fn enlarge(&mut self, pool: &mut Pool, largest: u32) {
        self.leave_receive_ring(pool);
        let wanted = std::mem::take(&mut self.to_program.side.wanted);
        let limit = self.socket_slot().receive_limit.load(Relaxed);
        if let Some(size) = larger_size(wanted, self.to_program.side.size, limit, largest)
            && self.larger().next.is_none()
        {
            self.larger().next = pool.take_larger(size);
        }
        let wanted = std::mem::take(&mut self.from_program.side.wanted);
        let limit = self.slot().send_limit.load(Relaxed);
        if let Some(size) = larger_size(wanted, self.from_program.side.size, limit, largest)
            && let Some(ring) = pool.take_larger(size)
        {
            let before = self.from_program.side.ring();
            if self.from_program.move_to(ring) {
                self.leave(SEND, before, pool);
            } else {
                pool.return_ring(ring);
            }
        }
    }

    fn leave_receive_ring(&mut self, pool: &mut Pool) {
        if let Some(ring) = self.to_program.larger.as_mut().and_then(|larger| larger.left.take()) {
            self.leave(RECEIVE, ring, pool);
        }
    }

    /// A ring is used no more.
    fn leave(&mut self, which: usize, ring: RingPlace, pool: &mut Pool) {
        let first = *self.larger().first[which].get_or_insert(ring);
        if first == ring {
            self.to_program.side.arena.give_back(ring);
        } else {
            pool.return_ring(ring);
        }
    }

    fn larger(&mut self) -> &mut Larger {
        self.to_program.larger.get_or_insert_default()
    }

    /// The ring of this side that it began with.
    pub(super) fn first_ring(&self, which: usize) -> RingPlace {
        let used = [&self.to_program.side, &self.from_program.side][which].ring();
        self.to_program.larger.as_ref().and_then(|larger| larger.first[which]).unwrap_or(used)
    }

    /// The connection has ended: its larger rings return to `pool`.
    pub fn return_larger(&self, pool: &mut Pool) {
        let Some(larger) = &self.to_program.larger else { return };
        let used = [&self.to_program.side, &self.from_program.side].map(super::Side::ring);
        let others = used.into_iter().chain(larger.next).chain(larger.left);
        let first = [RECEIVE, SEND].map(|which| self.first_ring(which));
        others.filter(|ring| !first.contains(ring)).for_each(|ring| pool.return_ring(ring));
    }
}

/// The size of a larger ring than one of `size` bytes, for 2 to the power of `wanted` bytes, of which the program wants no
/// more than `limit` to be used; 0: as much as there is.
fn larger_size(wanted: u8, size: u32, limit: u32, largest: u32) -> Option<u32> {
    let limit = if limit == 0 { largest } else { limit.checked_next_power_of_two()?.min(largest) };
    let wanted = 1u32.checked_shl(wanted.into())?.min(limit);
    (wanted > size).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{end_with, sizes_of};
    use super::*;
    use crate::domain::files::Files;
    use proptest::prelude::*;
    use silk_path::{ByteStream, Incoming, Outgoing};
    use silk_stream::{Arena, Sizes, waiting};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;

    const LARGEST: u32 = 64 << 10;

    fn arena() -> Arc<Arena> {
        Arena::create(Sizes { rings: 16 << 20, domains: 1 }).unwrap()
    }

    /// The program reads all there is.
    fn read(end: &SocketEnd) -> Vec<u8> {
        let slot = end.slot();
        let (read, write) = (slot.rx_read.load(SeqCst), slot.rx_write.load(SeqCst));
        let ring = end.to_program.side.arena.ring(slot.rx_place.load(SeqCst), slot.rx_size.load(SeqCst));
        let mut bytes = vec![0; write.wrapping_sub(read) as usize];
        ring.unwrap().beginning_at(slot.rx_first.load(SeqCst)).read(read, &mut bytes);
        slot.rx_read.store(write, SeqCst);
        bytes
    }

    /// The program writes.
    fn write(end: &SocketEnd, bytes: &[u8]) {
        let slot = end.slot();
        let at = slot.tx_write.load(SeqCst);
        let ring = end.to_program.side.arena.ring(slot.tx_place.load(SeqCst), slot.tx_size.load(SeqCst));
        ring.unwrap().beginning_at(slot.tx_first.load(SeqCst)).write(at, bytes);
        slot.tx_write.store(at.wrapping_add(bytes.len() as u32), SeqCst);
    }

    fn bytes(len: usize, first: u8) -> Vec<u8> {
        (0..len).map(|n| first.wrapping_add(n as u8)).collect()
    }

    #[test]
    fn a_receive_ring_that_is_wanted_larger_is_exchanged_when_it_is_empty() {
        let arena = arena();
        let mut pool = Pool::new(arena.clone());
        let mut end = end_with(&mut pool, [4096, 4096]);
        assert_eq!(end.split().0.write(&bytes(5000, 0)), 4096);
        end.to_program.want(4096);
        assert!(!end.wants_larger());
        end.to_program.want(9000);
        assert!(end.wants_larger());
        end.enlarge(&mut pool, LARGEST);
        assert!(!end.wants_larger());
        assert_eq!((end.to_program.room(), end.to_program.write(b"more")), (0, 0), "it is full");
        assert_eq!(read(&end), bytes(4096, 0));
        assert_eq!(end.to_program.write(&bytes(16_000, 7)), 16_000);
        assert_eq!((end.to_program.room(), end.to_program.write(&bytes(1000, 9))), (384, 384));
        assert_eq!(end.slot().rx_size.load(SeqCst), 16 << 10);
        let all = [bytes(16_000, 7), bytes(384, 9)].concat();
        assert_eq!(read(&end), all);
        // The ring it began with is kept, those between are returned.
        assert!(end.wants_larger());
        end.enlarge(&mut pool, LARGEST);
        end.to_program.want(1 << 20);
        end.enlarge(&mut pool, LARGEST);
        assert_eq!(end.to_program.write(&all), all.len());
        assert_eq!(end.to_program.room(), LARGEST as usize - all.len());
        assert_eq!(read(&end), all);
        end.enlarge(&mut pool, LARGEST);
        end.to_program.want(1 << 20);
        end.enlarge(&mut pool, LARGEST);
        assert_eq!(end.to_program.larger.as_ref().unwrap().next, None, "there is no larger one");
        assert_eq!(arena.rings_in_use(), 2 * 4096 + u64::from(LARGEST));
        end.return_larger(&mut pool);
        assert_eq!(sizes_of(&end), [4096, 4096]);
        assert_eq!(arena.rings_in_use(), 2 * 4096);
    }

    #[test]
    fn a_send_ring_is_exchanged_with_what_is_in_it_when_its_writer_waits() {
        let arena = arena();
        let mut pool = Pool::new(arena.clone());
        let mut end = end_with(&mut pool, [4096, 4096]);
        // What is in it crosses its end.
        write(&end, &bytes(3000, 0));
        end.look(&Files::default());
        end.from_program.consume(3000);
        write(&end, &bytes(4096, 1));
        end.look(&Files::default());
        end.from_program.sent(4096);
        end.from_program.want(20_000);
        assert!(!end.wants_larger(), "nobody wants to write");
        end.slot().waiting.store(waiting::WRITE, SeqCst);
        end.from_program.want(20_000);
        // Somebody of another process is just writing.
        end.slot().tx_writers.store(1, SeqCst);
        end.enlarge(&mut pool, LARGEST);
        assert_eq!((end.slot().tx_size.load(SeqCst), arena.rings_in_use()), (4096, 8192));
        end.slot().tx_writers.store(0, SeqCst);
        end.from_program.want(20_000);
        end.enlarge(&mut pool, LARGEST);
        assert_eq!(end.slot().tx_size.load(SeqCst), 32 << 10, "eight times as large");
        assert_eq!(end.slot().tx_vacating.load(SeqCst) & 1, 0);
        write(&end, &bytes(20_000, 99));
        assert!(end.look(&Files::default()));
        let all = [bytes(4096, 1), bytes(20_000, 99)].concat();
        assert_eq!(end.from_program.peek(0, 30_000).concat(), all);
        end.from_program.consume(24_096);
        end.return_larger(&mut pool);
        assert_eq!((sizes_of(&end), arena.rings_in_use()), ([4096, 4096], 8192));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever arrives, is read and is wanted, what is read is what arrived.
        #[test]
        fn what_arrives_in_rings_that_grow_is_a_byte_queue(
            start in any::<u32>(),
            steps in prop::collection::vec((0..4u8, 1..9000usize), 1..60),
        ) {
            let arena = arena();
            let mut pool = Pool::new(arena.clone());
            let mut end = end_with(&mut pool, [4096, 4096]);
            end.to_program.write = start;
            end.slot().rx_write.store(start, SeqCst);
            end.slot().rx_read.store(start, SeqCst);
            let (mut expected, mut next) = (Vec::new(), 0u8);
            for (what, n) in steps {
                match what {
                    0 | 1 => {
                        let text = bytes(n, next);
                        let taken = end.to_program.write(&text);
                        prop_assert!(taken == n || end.to_program.free() == 0);
                        expected.extend(&text[..taken]);
                        next = next.wrapping_add(taken as u8);
                    }
                    2 => prop_assert_eq!(read(&end), std::mem::take(&mut expected)),
                    _ => end.to_program.want(n * 8),
                }
                end.enlarge(&mut pool, LARGEST);
                prop_assert_eq!(end.unread() as usize, expected.len());
            }
            prop_assert_eq!(read(&end), expected);
            end.return_larger(&mut pool);
            prop_assert_eq!(arena.rings_in_use(), 8192);
        }
    }

    #[test]
    fn a_program_that_limits_itself_gets_no_more_than_that() {
        assert_eq!(larger_size(15, 4096, 0, LARGEST), Some(32 << 10));
        assert_eq!(larger_size(15, 4096, 10_000, LARGEST), Some(16 << 10));
        assert_eq!(larger_size(15, 4096, 3000, LARGEST), None);
        assert_eq!(larger_size(22, 4096, u32::MAX, LARGEST), None);
        assert_eq!(larger_size(22, 4096, 0, LARGEST), Some(LARGEST));
        assert_eq!(larger_size(200, 4096, 0, LARGEST), None);
        assert_eq!(larger_size(15, 32 << 10, 0, LARGEST), None);
        assert_eq!(larger_size(0, 4096, 0, LARGEST), None);
    }

    #[test]
    fn while_memory_is_short_rings_stay_as_they_are() {
        let arena = arena();
        let mut pool = Pool::new(arena.clone());
        let mut end = end_with(&mut pool, [4096, 4096]);
        arena.set_reach(Some(2048));
        end.to_program.want(9000);
        end.enlarge(&mut pool, LARGEST);
        assert!(!end.wants_larger());
        assert_eq!(arena.rings_in_use(), 8192);
    }
}
