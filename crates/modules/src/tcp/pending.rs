//! Handshakes that are complete and whose paths have been asked for: they wait here, under a
//! number that travels as an attribute, for the few moments until the path is made. Bounded;
//! what nobody came for is overwritten.

use super::Key;
use alloc::vec::Vec;
use silk_tcp::listen::Established;

/// The most that wait at once: a batch of segments, and then some.
const MOST: usize = 1024;

/// Handshakes by number.
#[derive(Default)]
pub(super) struct Pending {
    waiting: Vec<(u32, Key, Established)>,
    next: u32,
}

impl Pending {
    /// Keeps a handshake and answers its number.
    pub fn put(&mut self, key: Key, half: Established) -> u32 {
        if self.waiting.len() >= MOST {
            self.waiting.remove(0);
        }
        self.next = self.next.wrapping_add(1);
        self.waiting.push((self.next, key, half));
        self.next
    }

    /// Takes the handshake with this number, when it is that connection's.
    pub fn take(&mut self, number: u32, key: &Key) -> Option<Established> {
        let is_it = |(n, k, _): &(u32, Key, Established)| *n == number && k == key;
        let at = self.waiting.iter().rposition(is_it)?;
        Some(self.waiting.swap_remove(at).2)
    }
}
