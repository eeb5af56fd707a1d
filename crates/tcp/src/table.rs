//! A bounded table of small entries with deadlines, for connections that are not yet, or no longer,
//! connections. Looking up, inserting, removing and rescheduling take constant time; memory grows
//! to the capacity and no further. Keys are hashed with a secret, so that nobody outside can fill
//! one bucket (RFC 4987 §3.5). Deadlines are kept in lanes: within one lane they must be given in ascending order,
//! which a constant delay provides.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hash;

use silk_instant::Instant;

use crate::isn::IsnSecret;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Names an entry as long as it is in the table.
pub(crate) type Index = u32;

#[derive(Debug)]
struct Slot<K, V> {
    /// None in a free slot.
    entry: Option<(K, V)>,
    /// The next slot of the bucket, or the next free slot.
    chain: Index,
    lane: u8,
    earlier: Index,
    later: Index,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    first: Index,
    last: Index,
}

/// Entries by key and by deadline.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    secret: IsnSecret,
    capacity: usize,
    len: usize,
    slots: Vec<Slot<K, V>>,
    free: Index,
    /// Heads of the chains; a power of two, at least the number of slots.
    buckets: Vec<Index>,
    lanes: Vec<Lane>,
}

impl<K: Hash + Eq + Copy, V> Table<K, V> {
    pub(crate) fn new(secret: IsnSecret, capacity: usize, lanes: usize) -> Self {
        let lanes = vec![Lane { first: NONE, last: NONE }; lanes.clamp(1, 256)];
        let capacity = capacity.clamp(1, 1 << 24);
        Self { secret, capacity, len: 0, slots: Vec::new(), free: NONE, buckets: vec![NONE; 1], lanes }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    fn bucket(&self, key: &K) -> usize {
        // The upper half: the lower one goes into initial sequence numbers, which everybody sees.
        (self.secret.hash(key) >> 32) as usize & (self.buckets.len() - 1)
    }

    pub(crate) fn find(&self, key: &K) -> Option<Index> {
        let mut at = self.buckets[self.bucket(key)];
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.entry.as_ref().is_some_and(|entry| entry.0 == *key) {
                return Some(at);
            }
            at = slot.chain;
        }
        None
    }

    pub(crate) fn get(&self, at: Index) -> Option<&(K, V)> {
        self.slots.get(at as usize)?.entry.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: Index) -> Option<&mut V> {
        Some(&mut self.slots.get_mut(at as usize)?.entry.as_mut()?.1)
    }

    /// Adds an entry; the key must not be in the table. Answers `None` when the table is full.
    pub(crate) fn insert(&mut self, key: K, value: V, lane: u8, deadline: Instant) -> Option<Index> {
        if self.is_full() {
            return None;
        }
        let at = self.vacant();
        let bucket = self.bucket(&key);
        let slot = &mut self.slots[at as usize];
        slot.entry = Some((key, value));
        slot.chain = core::mem::replace(&mut self.buckets[bucket], at);
        self.len += 1;
        self.link(at, lane, deadline);
        Some(at)
    }

    /// A slot for a new entry, taken off the free list or added.
    fn vacant(&mut self) -> Index {
        if let Some(slot) = self.slots.get(self.free as usize) {
            return core::mem::replace(&mut self.free, slot.chain);
        }
        let at = self.slots.len() as Index;
        let (lane, deadline) = (0, Instant::FAR);
        self.slots.reserve_exact(self.more_slots());
        self.slots.push(Slot { entry: None, chain: NONE, lane, earlier: NONE, later: NONE, deadline });
        if self.slots.capacity() > self.buckets.len() {
            self.rehash();
        }
        at
    }

    /// Slots that are added where none is vacant: as many as there are.
    fn more_slots(&self) -> usize {
        let (there_are, room) = (self.slots.len(), self.slots.capacity());
        if there_are < room { 0 } else { there_are.max(4).min(self.capacity - there_are) }
    }

    /// Bytes that one entry more takes; 0 where it has a place, or there is none.
    pub(crate) fn growth(&self) -> usize {
        if self.is_full() || self.free != NONE {
            return 0;
        }
        let slots = self.more_slots();
        let buckets = (self.slots.capacity() + slots).next_power_of_two() - self.buckets.len();
        slots * size_of::<Slot<K, V>>() + buckets * size_of::<Index>()
    }

    fn rehash(&mut self) {
        self.buckets = vec![NONE; self.slots.capacity().next_power_of_two()];
        for at in 0..self.slots.len() {
            let Some((key, _)) = &self.slots[at].entry else { continue };
            let bucket = self.bucket(key);
            self.slots[at].chain = core::mem::replace(&mut self.buckets[bucket], at as Index);
        }
    }

    pub(crate) fn remove(&mut self, at: Index) -> Option<(K, V)> {
        let key = self.get(at)?.0;
        let bucket = self.bucket(&key);
        self.unlink(at);
        let next = self.slots[at as usize].chain;
        if self.buckets[bucket] == at {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.slots[before as usize].chain != at {
                before = self.slots[before as usize].chain;
            }
            self.slots[before as usize].chain = next;
        }
        self.slots[at as usize].chain = core::mem::replace(&mut self.free, at);
        self.len -= 1;
        self.slots[at as usize].entry.take()
    }

    /// Moves an entry to the end of a lane.
    pub(crate) fn reschedule(&mut self, at: Index, lane: u8, deadline: Instant) {
        self.unlink(at);
        self.link(at, lane, deadline);
    }

    fn link(&mut self, at: Index, lane: u8, deadline: Instant) {
        let lane = lane.min((self.lanes.len() - 1) as u8);
        let ends = &mut self.lanes[usize::from(lane)];
        let earlier = core::mem::replace(&mut ends.last, at);
        if earlier == NONE {
            ends.first = at;
        } else {
            self.slots[earlier as usize].later = at;
        }
        let slot = &mut self.slots[at as usize];
        (slot.lane, slot.earlier, slot.later, slot.deadline) = (lane, earlier, NONE, deadline);
    }

    fn unlink(&mut self, at: Index) {
        let Slot { lane, earlier, later, .. } = self.slots[at as usize];
        let ends = &mut self.lanes[usize::from(lane)];
        if earlier == NONE {
            ends.first = later;
        }
        if later == NONE {
            ends.last = earlier;
        }
        if let Some(slot) = self.slots.get_mut(earlier as usize) {
            slot.later = later;
        }
        if let Some(slot) = self.slots.get_mut(later as usize) {
            slot.earlier = earlier;
        }
    }

    /// The entry with the earliest deadline.
    pub(crate) fn first(&self) -> Option<(Index, Instant)> {
        self.earliest(0)
    }

    fn earliest(&self, from_lane: usize) -> Option<(Index, Instant)> {
        let heads = self.lanes.iter().skip(from_lane).filter_map(|lane| {
            let slot = self.slots.get(lane.first as usize)?;
            Some((lane.first, slot.deadline))
        });
        heads.min_by_key(|head| head.1)
    }

    /// The entry that has been longest in the lanes from `lane` up, by deadline.
    pub(crate) fn first_from_lane(&self, lane: u8) -> Option<Index> {
        self.earliest(usize::from(lane)).map(|first| first.0)
    }

    /// The entry with the earliest deadline, if that has come.
    pub(crate) fn due(&self, now: Instant) -> Option<Index> {
        self.first().filter(|(_, deadline)| *deadline <= now).map(|(at, _)| at)
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<K, V>>()
            + self.buckets.capacity() * size_of::<Index>()
            + self.lanes.capacity() * size_of::<Lane>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn table(capacity: usize) -> Table<u16, u32> {
        Table::new(IsnSecret::new([7, 8]), capacity, 3)
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut table = table(2);
        let taken = [1, 2, 3].map(|key| table.insert(key, 0, 0, Instant::ZERO).is_some());
        assert_eq!((taken, table.len()), ([true, true, false], 2));
    }

    #[test]
    fn the_earliest_deadline_of_all_lanes_is_first() {
        let mut table = table(8);
        for (key, lane, millis) in [(1, 0, 5), (2, 1, 3), (3, 0, 9)] {
            table.insert(key, 0, lane, Instant::from_millis(millis));
        }
        assert_eq!(table.due(Instant::from_millis(2)), None);
        let due = table.due(Instant::from_millis(3)).and_then(|at| table.remove(at));
        assert_eq!(due, Some((2, 0)));
        assert_eq!(table.first().map(|first| first.1), Some(Instant::from_millis(5)));
    }

    proptest! {
        /// Against a map: the same entries, the same earliest deadline, after any operations.
        #[test]
        fn it_agrees_with_a_map(operations in prop::collection::vec((0u8..4, 0u16..40, 0u8..3), 0..300)) {
            let mut table = table(24);
            let mut map: BTreeMap<u16, (u32, Instant)> = BTreeMap::new();
            for (step, (operation, key, lane)) in operations.into_iter().enumerate() {
                let deadline = Instant::from_millis(step as u64 + 1_000 * u64::from(lane));
                match (operation, table.find(&key)) {
                    (0 | 1, None) => {
                        let expected = table.memory() + table.growth();
                        let inserted = table.insert(key, step as u32, lane, deadline).is_some();
                        prop_assert_eq!(inserted, map.len() < 24);
                        prop_assert_eq!(table.memory(), expected);
                        if inserted {
                            map.insert(key, (step as u32, deadline));
                        }
                    }
                    (2, Some(at)) => {
                        let removed = table.remove(at).map(|entry| entry.1);
                        prop_assert_eq!(removed, map.remove(&key).map(|entry| entry.0));
                    }
                    (3, Some(at)) => {
                        table.reschedule(at, lane, deadline);
                        map.get_mut(&key).unwrap().1 = deadline;
                    }
                    (_, found) => prop_assert_eq!(found.is_some(), map.contains_key(&key)),
                }
                prop_assert_eq!(table.len(), map.len());
                let earliest = map.values().map(|entry| entry.1).min();
                prop_assert_eq!(table.first().map(|first| first.1), earliest);
                for (key, (value, _)) in &map {
                    let found = table.find(key).and_then(|at| table.get(at)).map(|entry| entry.1);
                    prop_assert_eq!(found, Some(*value));
                }
            }
        }
    }
}
