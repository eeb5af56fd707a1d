//! The exact flow table: remote and local address and port, and the protocol → domain and
//! path index; flows over IPv6 by a [fingerprint](super::fingerprint) of these. Lock-free: domain threads insert and remove while others and the XDP program
//! look up. The layout and the rules for readers and writers stand in [`layout`](super::layout).

use super::Belongs;
use super::fingerprint::second_half;
use super::flow::{Flow, Key};
use super::homes::Homes;
use super::layout::*;
use super::store::{Store, Store64};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, fence};

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The domain.
    pub domain: u8,
    /// The path's index, or [`INDEX_LISTEN`].
    pub index: u32,
}

impl Found {
    pub(super) fn from_value(value: u32) -> Self {
        Self { domain: (value >> DOMAIN_SHIFT & DOMAIN_MASK) as u8, index: value & INDEX_MASK }
    }

    /// Where packets of the flow belong.
    pub fn belongs(self) -> Belongs {
        match self.index {
            INDEX_LISTEN => Belongs::Listen { domain: self.domain },
            index => Belongs::Path { domain: self.domain, index },
        }
    }
}

/// Why a flow was not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowError {
    /// The flow is in the table already: overlapping entries are refused.
    Overlap,
    /// Every place the flow may have is taken.
    Full,
}

/// The flow table.
#[derive(Clone, Debug)]
pub struct Flows {
    words: Store64,
    homes: Homes,
    mask: u64,
    seed: u64,
    // The key of the names of flows over IPv6.
    secret: [u64; 2],
}

/// A pair of buckets with this many free places is not crowded.
const UNCROWDED: usize = 3;
/// Flows in one go of [`Flows::lookup_batch`] whose memory accesses overlap.
const BATCH: usize = 16;

impl Flows {
    /// A table in `words`, as many whole buckets of it as make a power of two; `None` when it
    /// has not [`MIN_BUCKETS`], or `homes` has not a byte for each of them. All users of the table must have
    /// the same seeds.
    pub fn new(words: Store64, homes: Store64, [seed, second]: [u64; 2]) -> Option<Self> {
        let buckets = words.len() / BUCKET_WORDS;
        if buckets < MIN_BUCKETS {
            return None;
        }
        let buckets = 1usize << buckets.ilog2();
        let homes = Homes::new(homes, buckets)?;
        Some(Self { words, homes, mask: buckets as u64 - 1, seed, secret: [seed, second] })
    }

    /// A table in memory of its own with room for about `flows` flows at half load.
    pub fn with_room(flows: usize, seed: u64) -> Self {
        let buckets = (2 * flows).div_ceil(BUCKET_ENTRIES).next_power_of_two().max(MIN_BUCKETS);
        let (words, homes) = (Store::zeroed(buckets * BUCKET_WORDS), Homes::zeroed(buckets));
        Self { words, homes, mask: buckets as u64 - 1, seed, secret: [seed, second_half(seed)] }
    }

    /// The second half of the key that [`Self::with_room`] takes.
    pub(super) fn second_seed(seed: u64) -> u64 {
        second_half(seed)
    }

    /// Buckets of the table.
    pub fn buckets(&self) -> usize {
        self.mask as usize + 1
    }

    /// Finds a flow.
    pub fn lookup(&self, flow: &impl Key) -> Option<Found> {
        let (key, want) = flow.words(self.secret);
        let at = self.find(key, want, hash(self.seed, key, want))?;
        Some(Found::from_value(at.1))
    }

    /// Finds several flows at once, their cache misses overlapping: the buckets most
    /// likely to hold them are touched before any is searched.
    pub fn lookup_batch(&self, flows: &[Flow], found: &mut [Option<Found>]) {
        for (flows, found) in flows.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut hashes = [0; BATCH];
            let mut touched = 0;
            for (flow, hash_) in flows.iter().zip(&mut hashes) {
                let (key, want) = flow.words(self.secret);
                *hash_ = hash(self.seed, key, want);
                let home = home(*hash_, self.mask);
                if !self.homes.is_empty(home) {
                    touched |= self.words[home * BUCKET_WORDS].load(Relaxed);
                }
            }
            core::hint::black_box(touched);
            for ((flow, hash), found) in flows.iter().zip(hashes).zip(found) {
                let (key, want) = flow.words(self.secret);
                *found = self.find(key, want, hash).map(|(_, value)| Found::from_value(value));
            }
        }
    }

    /// Enters a flow.
    ///
    /// Two threads that enter the same flow at once may both be refused, but never both be
    /// let in.
    pub fn insert(&self, flow: &impl Key, found: Found) -> Result<(), FlowError> {
        let (key, want) = flow.words(self.secret);
        let hash = hash(self.seed, key, want);
        let at = match self.survey(key, want, hash) {
            Survey::Taken => return Err(FlowError::Overlap),
            Survey::Free(first) => self.claim(hash, first).ok_or(FlowError::Full)?,
        };
        let home = home(hash, self.mask);
        self.homes.enter(home);
        self.words[at].store(key, Relaxed);
        self.words[at + 1].store(state(want, found), Release);
        // The entry must be visible before the table is searched again, or two writers could
        // each miss the other's.
        fence(SeqCst);
        if self.twin(at, key, want, hash) {
            self.words[at + 1].store(0, Release);
            self.homes.leave(home);
            return Err(FlowError::Overlap);
        }
        Ok(())
    }

    /// Points a flow somewhere else; answers whether it was there.
    pub fn replace(&self, flow: &impl Key, found: Found) -> bool {
        let (key, want) = flow.words(self.secret);
        self.change(key, want, hash(self.seed, key, want), state(want, found))
    }

    /// Removes a flow; answers whether it was there.
    pub fn remove(&self, flow: &impl Key) -> bool {
        let (key, want) = flow.words(self.secret);
        let hash = hash(self.seed, key, want);
        let removed = self.change(key, want, hash, 0);
        if removed {
            self.homes.leave(home(hash, self.mask));
        }
        removed
    }

    /// Gives a flow's entry another state; answers whether it was there. Of two threads that remove it one is
    /// told so.
    fn change(&self, key: u64, want: u64, hash: u64, to: u64) -> bool {
        while let Some((at, value)) = self.find(key, want, hash) {
            let now = want | u64::from(value) << 32;
            if self.words[at + 1].compare_exchange(now, to, Release, Relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    /// Entries in use: reads the whole table.
    pub fn count(&self) -> usize {
        let states = self.words.iter().skip(1).step_by(ENTRY_WORDS);
        states.filter(|word| word.load(Relaxed) >> 32 & u64::from(VALUE_VALID) != 0).count()
    }

    /// The buckets a flow may be in, in probing order: the first word of each, and its words.
    fn buckets_of(&self, hash: u64) -> impl Iterator<Item = (usize, &[AtomicU64])> {
        buckets(hash, self.mask)
            .into_iter()
            .map(|bucket| bucket * BUCKET_WORDS)
            .filter_map(|at| Some((at, self.words.get(at..at + BUCKET_WORDS)?)))
    }

    /// The place and value of a key.
    fn find(&self, key: u64, want: u64, hash: u64) -> Option<(usize, u32)> {
        if self.homes.is_empty(home(hash, self.mask)) {
            return None;
        }
        for (at, bucket) in self.buckets_of(hash) {
            for (n, entry) in bucket.chunks_exact(ENTRY_WORDS).enumerate() {
                if let Some(value) = read(entry, key, want) {
                    return Some((at + n * ENTRY_WORDS, value));
                }
            }
        }
        None
    }

    /// Whether the key is somewhere else than at `at`, too.
    fn twin(&self, at: usize, key: u64, want: u64, hash: u64) -> bool {
        self.buckets_of(hash).any(|(first, bucket)| {
            let mut entries = bucket.chunks_exact(ENTRY_WORDS).enumerate();
            entries.any(|(n, entry)| first + n * ENTRY_WORDS != at && read(entry, key, want).is_some())
        })
    }

    /// Looks once at every place a new flow may have: is it there, and which pair of buckets
    /// is it to go to? The first while that is not crowded, so that most lookups end there;
    /// then the emptier of the two, so that neither fills up.
    fn survey(&self, key: u64, want: u64, hash: u64) -> Survey {
        let mut free = [0; 4];
        for ((_, bucket), free) in self.buckets_of(hash).zip(&mut free) {
            for entry in bucket.chunks_exact(ENTRY_WORDS) {
                if read(entry, key, want).is_some() {
                    return Survey::Taken;
                }
                *free += usize::from(entry[1].load(Relaxed) == 0);
            }
        }
        let (first, second) = (free[0] + free[1], free[2] + free[3]);
        Survey::Free(first >= UNCROWDED || first >= second)
    }

    /// Takes a free place, in the first or the second pair of buckets if there is one.
    fn claim(&self, hash: u64, first: bool) -> Option<usize> {
        let [a, b, c, d] = buckets(hash, self.mask);
        let order = if first { [a, b, c, d] } else { [c, d, a, b] };
        let places = order.into_iter().flat_map(|bucket| {
            (0..BUCKET_ENTRIES).map(move |entry| bucket * BUCKET_WORDS + entry * ENTRY_WORDS)
        });
        let take = |at: &usize| self.words[at + 1].compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok();
        places.into_iter().find(take)
    }
}

/// What [`Flows::survey`] saw: the flow itself, or whether the first pair of buckets is where a
/// new one goes.
enum Survey {
    Taken,
    Free(bool),
}

/// The value of an entry when it is the key's. The reader's rules stand in the layout.
fn read(entry: &[AtomicU64], key: u64, want: u64) -> Option<u32> {
    let [word, state] = entry else { return None };
    let before = state.load(Acquire);
    if before & MATCH_MASK != want | u64::from(VALUE_VALID) << 32 {
        return None;
    }
    if word.load(Acquire) != key || state.load(Relaxed) != before {
        return None;
    }
    Some((before >> 32) as u32)
}

fn state(want: u64, found: Found) -> u64 {
    let value = VALUE_VALID | u32::from(found.domain) << DOMAIN_SHIFT | found.index & INDEX_MASK;
    want | u64::from(value) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use crate::classify::flow::{Between, Protocol};
    extern crate std;
    use core::net::{IpAddr, Ipv4Addr, SocketAddrV4};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    fn flow(n: u32) -> Flow {
        let protocol = if n.is_multiple_of(5) { Protocol::Udp } else { Protocol::Tcp };
        Flow {
            protocol,
            local: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 80),
            remote: SocketAddrV4::new(Ipv4Addr::from(0x0a01_0000 + (n >> 4)), 1024 + (n & 15) as u16),
        }
    }

    fn found(n: u32) -> Found {
        Found { domain: (n % 60) as u8, index: n }
    }

    #[test]
    fn the_words_are_the_wire_bytes_loaded_little_endian() {
        let flow = Flow {
            protocol: Protocol::Udp,
            local: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 53),
            remote: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 0x1234),
        };
        assert_eq!(flow.words([0; 2]), (0x3500_3412_0100_000a, 0x4000_0000_0200_000a));
    }

    #[test]
    fn the_same_flow_twice_is_an_overlap() {
        let flows = Flows::with_room(8, 1);
        assert_eq!(flows.insert(&flow(1), found(1)), Ok(()));
        assert_eq!(flows.insert(&flow(1), found(2)), Err(FlowError::Overlap));
        assert_eq!(flows.lookup(&flow(1)), Some(found(1)));
    }

    #[test]
    fn flows_over_either_ip_share_the_table() {
        let flows = Flows::with_room(100, 1);
        let between = |n: u16, six: bool| {
            let ip = |v4: &str, v6: &str| if six { v6.parse() } else { v4.parse() }.unwrap();
            let (local, remote): (IpAddr, IpAddr) = (ip("10.0.0.1", "fd00::1"), ip("10.0.0.2", "fd00::2"));
            Between {
                protocol: Protocol::Tcp,
                local: Endpoint::new(local, 80),
                remote: Endpoint::new(remote, n),
            }
        };
        for n in 0..100 {
            assert_eq!(flows.insert(&between(n, n % 2 == 0), found(n.into())), Ok(()));
        }
        assert_eq!(flows.insert(&between(0, true), found(0)), Err(FlowError::Overlap));
        for n in 0..100 {
            let six = n % 2 == 0;
            assert_eq!(flows.lookup(&between(n, six)), Some(found(n.into())));
            assert_eq!(flows.lookup(&between(n, !six)), None);
            let other = Between { protocol: Protocol::Udp, ..between(n, six) };
            assert_eq!(flows.lookup(&other), None);
        }
        assert!(flows.remove(&between(0, true)) && !flows.remove(&between(0, true)));
    }

    #[test]
    fn a_flow_over_ipv4_has_one_name() {
        let flow = flow(7);
        let between =
            Between { protocol: flow.protocol, local: flow.local.into(), remote: flow.remote.into() };
        assert_eq!(between.words([1, 2]), flow.words([3, 4]));
    }

    #[test]
    fn protocols_are_apart() {
        let flows = Flows::with_room(8, 1);
        let tcp = Flow { protocol: Protocol::Tcp, ..flow(0) };
        let udp = Flow { protocol: Protocol::Udp, ..flow(0) };
        assert_eq!((flows.insert(&tcp, found(1)), flows.insert(&udp, found(2))), (Ok(()), Ok(())));
        assert_eq!((flows.lookup(&tcp), flows.lookup(&udp)), (Some(found(1)), Some(found(2))));
    }

    #[test]
    fn a_time_wait_flow_belongs_to_the_listen_path() {
        let flows = Flows::with_room(8, 1);
        flows.insert(&flow(1), found(1)).unwrap();
        assert!(flows.replace(&flow(1), Found { domain: 1, index: INDEX_LISTEN }));
        assert_eq!(flows.lookup(&flow(1)).map(Found::belongs), Some(Belongs::Listen { domain: 1 }));
    }

    #[test]
    fn a_table_of_half_load_takes_every_flow() {
        let flows = Flows::with_room(100_000, 0x5eed);
        for n in 0..100_000 {
            assert_eq!(flows.insert(&flow(n), found(n)), Ok(()), "flow {n}");
        }
        let all: Vec<Flow> = (0..100_100).map(flow).collect();
        let mut results = std::vec![None; all.len()];
        flows.lookup_batch(&all, &mut results);
        for (n, result) in results.iter().enumerate() {
            let n = n as u32;
            assert_eq!(*result, (n < 100_000).then(|| found(n)), "flow {n}");
        }
        assert_eq!(flows.count(), 100_000);
    }

    #[test]
    fn a_full_neighbourhood_says_so_and_breaks_nothing() {
        let flows = Flows::with_room(8, 3);
        let entered: Vec<u32> = (0..1000).filter(|n| flows.insert(&flow(*n), found(*n)).is_ok()).collect();
        assert_eq!(entered.len(), flows.count());
        assert!(entered.len() <= MIN_BUCKETS * BUCKET_ENTRIES);
        assert_eq!(flows.insert(&flow(2000), found(0)), Err(FlowError::Full));
        for n in &entered {
            assert!(flows.remove(&flow(*n)));
        }
        assert_eq!(flows.count(), 0);
    }

    #[test]
    fn threads_enter_and_remove_side_by_side() {
        let flows = Flows::with_room(4096, 9);
        let wins = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for n in 0..4096 {
                        match flows.insert(&flow(n), found(n)) {
                            Ok(()) => wins.fetch_add(1, Relaxed),
                            Err(FlowError::Overlap) => 0,
                            Err(FlowError::Full) => panic!("no room for {n}"),
                        };
                    }
                });
            }
        });
        let wins = wins.into_inner();
        assert_eq!(wins, flows.count(), "never both let in");
        assert!(wins <= 4096 && wins > 0);
        let removed = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let gone = (0..4096).filter(|n| flows.remove(&flow(*n))).count();
                    removed.fetch_add(gone, Relaxed);
                });
            }
        });
        assert_eq!(removed.into_inner(), wins, "each is removed by one of them");
        assert!((0..flows.buckets()).all(|bucket| flows.homes.is_empty(bucket)), "and counted no more");
    }

    #[test]
    fn a_reader_never_sees_another_flows_value() {
        // Four flows take turns in the few places of the smallest table.
        let flows = Flows::with_room(1, 5);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..200_000u32 {
                    let n = n % 4;
                    let _ = flows.insert(&flow(n), found(n));
                    flows.remove(&flow((n + 2) % 4));
                }
                done.store(true, SeqCst);
            });
            while !done.load(SeqCst) {
                for n in 0..4 {
                    let seen = flows.lookup(&flow(n));
                    assert!(seen.is_none_or(|seen| seen == found(n)), "flow {n}: {seen:?}");
                }
            }
        });
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in proptest::collection::vec((0u32..40, 0u8..4), 1..300), seed: u64) {
            let flows = Flows::with_room(64, seed);
            let mut model = HashMap::new();
            for (n, what) in steps {
                match what {
                    0 => prop_assert_eq!(flows.remove(&flow(n)), model.remove(&flow(n)).is_some()),
                    1 => {
                        let there = model.get_mut(&flow(n)).map(|value| *value = found(n + 7)).is_some();
                        prop_assert_eq!(flows.replace(&flow(n), found(n + 7)), there);
                    }
                    _ => {
                        let expected = if model.contains_key(&flow(n)) { Err(FlowError::Overlap) } else { Ok(()) };
                        let entered = flows.insert(&flow(n), found(n));
                        if entered == Err(FlowError::Full) {
                            // Rare: both its pairs of buckets are one, and others have filled it.
                            prop_assert!(model.len() >= 2 * BUCKET_ENTRIES && !model.contains_key(&flow(n)));
                            continue;
                        }
                        prop_assert_eq!(entered, expected);
                        model.entry(flow(n)).or_insert(found(n));
                    }
                }
                prop_assert_eq!(flows.lookup(&flow(n)), model.get(&flow(n)).copied());
            }
            prop_assert_eq!(flows.count(), model.len());
        }
    }
}
