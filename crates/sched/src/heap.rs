//! A binary heap of members with the smallest key first, in which a member's key can be
//! changed and a member taken out of the middle: it remembers where each one is. A member
//! is in it at most once. It allocates only in [`Heap::reach`].

use alloc::vec::Vec;

const NOWHERE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// No entry is smaller than its parent, which is at `(index - 1) / 2`.
    entries: Vec<Entry>,
    /// `entries[places[id]].id == id` unless `places[id]` is `NOWHERE`.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    id: u32,
}

impl Heap {
    /// Makes room for members below `len`.
    pub(crate) fn reach(&mut self, len: usize) {
        if self.places.len() < len {
            self.places.resize(len, NOWHERE);
            self.entries.reserve(len - self.entries.len());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        self.places.get(id as usize).is_some_and(|&place| place != NOWHERE)
    }

    /// The key of `id`, if it is in.
    pub(crate) fn key(&self, id: u32) -> Option<u128> {
        self.entries.get(*self.places.get(id as usize)? as usize).map(|entry| entry.key)
    }

    /// The smallest key and who has it.
    pub(crate) fn peek(&self) -> Option<(u128, u32)> {
        self.entries.first().map(|entry| (entry.key, entry.id))
    }

    /// Puts `id` in, or gives it a new key.
    pub(crate) fn set(&mut self, id: u32, key: u128) {
        let mut place = self.places[id as usize] as usize;
        if place == NOWHERE as usize {
            place = self.entries.len();
            self.entries.push(Entry { key, id });
        }
        self.settle(place, Entry { key, id });
    }

    /// Takes out the smallest.
    pub(crate) fn pop(&mut self) -> Option<(u128, u32)> {
        let (key, id) = self.peek()?;
        self.remove(id);
        Some((key, id))
    }

    /// Takes `id` out; whether it was in.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        if !self.contains(id) {
            return false;
        }
        let place = core::mem::replace(&mut self.places[id as usize], NOWHERE) as usize;
        if let Some(last) = self.entries.pop()
            && last.id != id
        {
            self.settle(place, last);
        }
        true
    }

    /// Writes `entry` where it belongs, starting from the free `place`.
    fn settle(&mut self, place: usize, entry: Entry) {
        let risen = self.rise(place, entry.key);
        let settled = if risen == place { self.sink(place, entry.key) } else { risen };
        self.put(settled, entry);
    }

    fn rise(&mut self, mut place: usize, key: u128) -> usize {
        while place > 0 {
            let parent = self.entries[(place - 1) / 2];
            if parent.key <= key {
                break;
            }
            self.put(place, parent);
            place = (place - 1) / 2;
        }
        place
    }

    fn sink(&mut self, mut place: usize, key: u128) -> usize {
        while let Some(child) = self.smaller_child(place) {
            let entry = self.entries[child];
            if key <= entry.key {
                break;
            }
            self.put(place, entry);
            place = child;
        }
        place
    }

    fn smaller_child(&self, place: usize) -> Option<usize> {
        let left = 2 * place + 1;
        let right = left + 1;
        let left_key = self.entries.get(left)?.key;
        Some(if self.entries.get(right).is_some_and(|entry| entry.key < left_key) { right } else { left })
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.entries[place] = entry;
        self.places[entry.id as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Against a map from member to key.
        #[test]
        fn agrees_with_a_sorted_map(calls in proptest::collection::vec((0u32..12, 0u128..40, 0u8..4), 0..300)) {
            let mut heap = Heap::default();
            heap.reach(12);
            let mut map = BTreeMap::new();
            for (id, key, call) in calls {
                match call {
                    0 | 1 => {
                        heap.set(id, key);
                        map.insert(id, key);
                    }
                    2 => prop_assert_eq!(heap.remove(id), map.remove(&id).is_some()),
                    _ => {
                        let popped = heap.pop();
                        prop_assert_eq!(popped.map(|p| p.0), map.values().min().copied());
                        if let Some((key, id)) = popped {
                            prop_assert_eq!(map.remove(&id), Some(key));
                        }
                    }
                }
                prop_assert_eq!(heap.is_empty(), map.is_empty());
                prop_assert_eq!(heap.key(id), map.get(&id).copied());
                prop_assert_eq!(heap.contains(id), map.contains_key(&id));
            }
        }
    }
}
