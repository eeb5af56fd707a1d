//! Early discard (Scout §4.4): a path may say which packets of its flow are not worth delivering,
//! and they are dropped where packets are classified, in the XDP program where there is one. This
//! is step 11 of [`layout`](super::layout), and how a filter gets into the table. One entry
//! serves every path whose index has the same lower bits: the first takes it.
//!
//! Any thread reads; the filter of a path is changed by the thread that owns the path.

use super::flows::Found;
use super::layout::*;
use super::{Belongs, Tables};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Which header is behind that of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// MFLOW's.
    Mflow,
    /// RTP's (RFC 3550 §5.1) and that of MPEG video (RFC 2250 §3.4).
    RtpVideo,
}

impl Framed {
    const fn number(self) -> u64 {
        match self {
            Self::Mflow => DISCARD_MFLOW,
            Self::RtpVideo => DISCARD_RTP,
        }
    }
}

/// Which packets of a flow are not wanted. What does not look like the protocol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The protocol.
    pub framed: Framed,
    /// Bit *k*: no pictures of type *k* (1 I, 2 P, 3 B), for *k* below 8.
    pub types: u8,
    /// Of the types in `skips` only pictures whose number this divides; 0 and 1: all. MFLOW alone
    /// numbers pictures.
    pub every: u16,
    /// Bit *k*: pictures of type *k* may be skipped. Those that no other needs: B pictures, and I
    /// pictures of a stream that has nothing else.
    pub skips: u8,
    /// No B pictures with an older number or time stamp than this, in serial number arithmetic
    /// (RFC 1982).
    pub not_before: Option<u32>,
}

/// The entry is another path's, whose index has the same lower bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken;

/// What a filter looks at in a packet.
struct Seen {
    kind: u8,
    stamp: u32,
    // A message that the protocol needs, whatever picture it is of.
    needed: bool,
}

impl Filter {
    /// A filter that wants everything of this protocol, and would skip B pictures.
    pub const fn none(framed: Framed) -> Self {
        Self { framed, types: 0, every: 1, skips: 1 << KIND_B, not_before: None }
    }

    /// Whether the packet with this behind UDP's header is dropped where it is classified.
    pub fn drops(&self, payload: &[u8]) -> bool {
        self.seen(payload).is_some_and(|seen| !seen.needed && self.unwanted(seen.kind, seen.stamp))
    }

    /// Whether a picture of this type, with this number or time stamp, is not wanted.
    pub fn unwanted(&self, kind: u8, stamp: u32) -> bool {
        let is_of = |types: u8| kind < 8 && types >> kind & 1 != 0;
        let skipped = self.framed == Framed::Mflow
            && self.every > 1
            && is_of(self.skips)
            && !stamp.is_multiple_of(u32::from(self.every));
        let late =
            kind == KIND_B && self.not_before.is_some_and(|least| (stamp.wrapping_sub(least) as i32) < 0);
        is_of(self.types) || skipped || late
    }

    fn seen(&self, payload: &[u8]) -> Option<Seen> {
        let payload = payload.first_chunk::<DISCARD_BYTES>()?;
        let stamp = |at: usize| u32::from_be_bytes(core::array::from_fn(|n| payload[at + n]));
        match self.framed {
            Framed::Mflow => {
                let needed = payload[1] & MFLOW_NEEDED != 0;
                (payload[0] == MFLOW_DATA).then(|| Seen { kind: payload[2], stamp: stamp(8), needed })
            }
            Framed::RtpVideo => (payload[0] & RTP_MASK == RTP_PLAIN).then(|| Seen {
                kind: payload[14] & 7,
                stamp: stamp(4),
                needed: false,
            }),
        }
    }

    fn words(&self) -> (u64, u64) {
        let what = self.framed.number() << DISCARD_FRAMED_SHIFT
            | u64::from(self.types) << DISCARD_TYPES_SHIFT
            | u64::from(self.every) << DISCARD_EVERY_SHIFT;
        let least = self.not_before.map_or(0, |least| DISCARD_HAS_LEAST | u64::from(least));
        (what, least | u64::from(self.skips) << DISCARD_SKIPS_SHIFT)
    }

    fn from_words(what: u64, least: u64) -> Option<Self> {
        let framed = match what >> DISCARD_FRAMED_SHIFT & 0xff {
            DISCARD_MFLOW => Framed::Mflow,
            DISCARD_RTP => Framed::RtpVideo,
            _ => return None,
        };
        Some(Self {
            framed,
            types: (what >> DISCARD_TYPES_SHIFT) as u8,
            every: (what >> DISCARD_EVERY_SHIFT) as u16,
            skips: (least >> DISCARD_SKIPS_SHIFT) as u8,
            not_before: (least & DISCARD_HAS_LEAST != 0).then_some(least as u32),
        })
    }
}

/// The value that the flow table holds for a path of UDP.
fn value(path: Found) -> u64 {
    let domain = u32::from(path.domain) & DOMAIN_MASK;
    u64::from(VALUE_VALID | VALUE_UDP | domain << DOMAIN_SHIFT | path.index & INDEX_MASK)
}

/// The lower half of an entry's word 0.
const VALUE: u64 = 0xffff_ffff;

impl Tables {
    /// Sets which packets of a path of UDP are dropped where they are classified, in place of
    /// what was set before. The count of what was dropped goes on.
    pub fn discard(&self, path: Found, filter: &Filter) -> Result<(), Taken> {
        let (entry, value) = (self.entry(path), value(path));
        let (what, least) = filter.words();
        // No protocol: nothing is dropped while the words change.
        if entry[0].load(Acquire) & VALUE == value {
            entry[0].store(value, Release);
        } else {
            entry[0].compare_exchange(0, value, AcqRel, Relaxed).map_err(|_| Taken)?;
            entry[2].store(0, Relaxed);
        }
        entry[1].store(least, Release);
        entry[0].store(value | what, Release);
        Ok(())
    }

    /// Sets the number or time stamp before which B pictures are dropped, for a path that has a
    /// filter; one store, for whoever shows pictures says so often.
    pub fn discard_before(&self, path: Found, least: u32) {
        if self.filtered(path) {
            let word = &self.entry(path)[1];
            let skips = word.load(Relaxed) & 0xff << DISCARD_SKIPS_SHIFT;
            word.store(skips | DISCARD_HAS_LEAST | u64::from(least), Release);
        }
    }

    /// Lets every packet of the path through again, and forgets its count.
    pub fn discard_nothing(&self, path: Found) {
        if self.filtered(path) {
            self.entry(path)[0].store(0, Release);
        }
    }

    /// The filter of a path.
    pub fn filter(&self, path: Found) -> Option<Filter> {
        let (what, least) = read(self.entry(path), value(path))?;
        Filter::from_words(what, least)
    }

    /// How many packets of the path were discarded since its filter was first set.
    pub fn discarded(&self, path: Found) -> u64 {
        if self.filtered(path) { self.entry(path)[2].load(Relaxed) } else { 0 }
    }

    /// Counts a packet that was classified in user space, and dropped because the answer was
    /// [`Belongs::Discard`]. The XDP program counts its own.
    pub fn count_discard(&self, path: Found) {
        if self.filtered(path) {
            self.entry(path)[2].fetch_add(1, Relaxed);
        }
    }

    fn filtered(&self, path: Found) -> bool {
        self.entry(path)[0].load(Acquire) & VALUE == value(path)
    }

    fn entry(&self, path: Found) -> &[AtomicU64] {
        let at = (path.index as usize % DISCARDS) * DISCARD_WORDS;
        &self.discards[at..at + DISCARD_WORDS]
    }

    /// Step 11: a UDP packet whose flow was found, with this behind its header.
    #[inline]
    pub(super) fn or_discard(&self, found: Found, payload: &[u8]) -> Belongs {
        let entry = self.entry(found);
        if entry[0].load(Acquire) & VALUE != value(found) || found.index == INDEX_LISTEN {
            return found.belongs();
        }
        self.by_filter(found, entry, payload)
    }

    #[cold]
    fn by_filter(&self, found: Found, entry: &[AtomicU64], payload: &[u8]) -> Belongs {
        let filter = read(entry, value(found)).and_then(|(what, least)| Filter::from_words(what, least));
        match filter {
            Some(filter) if filter.drops(payload) => {
                Belongs::Discard { domain: found.domain, index: found.index }
            }
            _ => found.belongs(),
        }
    }
}

/// Words 0 and 1 of an entry that is this value's, as one writer wrote them.
fn read(entry: &[AtomicU64], value: u64) -> Option<(u64, u64)> {
    let what = entry[0].load(Acquire);
    let least = entry[1].load(Acquire);
    (what & VALUE == value && entry[0].load(Acquire) == what).then_some((what, least))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Found = Found { domain: 3, index: 7 };
    const MFLOW: Filter = Filter::none(Framed::Mflow);
    const RTP: Filter = Filter::none(Framed::RtpVideo);

    fn mflow(flags: u8, kind: u8, picture: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1], bytes[2]) = (0x10, flags, kind);
        bytes[8..12].copy_from_slice(&picture.to_be_bytes());
        bytes
    }

    fn rtp(first: u8, kind: u8, stamp: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        (bytes[0], bytes[14]) = (first, kind);
        bytes[4..8].copy_from_slice(&stamp.to_be_bytes());
        bytes
    }

    #[test]
    fn types_pictures_and_what_is_late_are_dropped() {
        let no_b = Filter { types: 1 << 3, ..MFLOW };
        assert_eq!([1, 2, 3, 200].map(|kind| no_b.drops(&mflow(3, kind, 0))), [false, false, true, false]);
        let third = Filter { every: 3, ..MFLOW };
        assert_eq!([0, 1, 2, 3].map(|n| third.drops(&mflow(0, 3, n))), [false, true, true, false]);
        assert!(!third.drops(&mflow(0, 2, 1)), "others are built on it");
        assert!(Filter { skips: 1 << 1, ..third }.drops(&mflow(0, 1, 1)));
        let late = Filter { not_before: Some(2), ..MFLOW };
        assert_eq!([1, 2, u32::MAX].map(|n| late.drops(&mflow(0, 3, n))), [true, false, true]);
        assert!(!late.drops(&mflow(0, 2, 1)), "others are built on a P picture");
    }

    #[test]
    fn what_asks_for_an_advertisement_and_the_end_of_the_stream_come_through() {
        let filter = Filter { types: 0xff, ..MFLOW };
        assert_eq!([0, 3, 4, 8].map(|flags| filter.drops(&mflow(flags, 1, 0))), [true, true, false, false]);
        assert!(filter.unwanted(1, 0), "the protocol's stage drops them");
    }

    #[test]
    fn only_plain_rtp_is_looked_into() {
        let filter = Filter { types: 1 << 3, every: 2, ..RTP };
        let first_bytes = [0x80, 0xa0, 0x40, 0x90, 0x81];
        assert_eq!(
            first_bytes.map(|first| filter.drops(&rtp(first, 3, 1))),
            [true, true, false, false, false]
        );
        assert!(!filter.drops(&rtp(0x80, 2, 1)), "RTP does not number pictures");
        let late = Filter { not_before: Some(3000), ..RTP };
        assert_eq!([2999, 3000].map(|stamp| late.drops(&rtp(0x80, 3, stamp))), [true, false]);
    }

    #[test]
    fn what_is_cut_short_or_another_protocol_is_delivered() {
        let all = Filter { types: 0xff, ..MFLOW };
        assert!(!all.drops(&mflow(0, 1, 0)[..15]));
        assert!(!all.drops(&rtp(0x80, 1, 0)));
        let advertisement = [0x11, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(!all.drops(&advertisement));
    }

    #[test]
    fn a_filter_reads_as_it_was_set_and_is_gone_when_it_is_cleared() {
        let tables = Tables::with_room(8, 1);
        for filter in [
            Filter { types: 0x88, every: 65_535, skips: 0x81, not_before: Some(u32::MAX), ..MFLOW },
            Filter { not_before: Some(0), ..RTP },
            RTP,
        ] {
            assert_eq!(tables.discard(PATH, &filter), Ok(()));
            assert_eq!(tables.filter(PATH), Some(filter));
        }
        tables.discard_before(PATH, 9);
        assert_eq!(tables.filter(PATH), Some(Filter { not_before: Some(9), ..RTP }));
        tables.count_discard(PATH);
        assert_eq!(tables.discard(PATH, &MFLOW).map(|()| tables.discarded(PATH)), Ok(1));
        tables.discard_nothing(PATH);
        assert_eq!((tables.filter(PATH), tables.discarded(PATH)), (None, 0));
    }

    #[test]
    fn an_entry_has_one_path_at_a_time() {
        let tables = Tables::with_room(8, 1);
        tables.discard(PATH, &MFLOW).unwrap();
        for other in [Found { index: PATH.index + 256, ..PATH }, Found { domain: 4, ..PATH }] {
            assert_eq!(tables.discard(other, &RTP), Err(Taken));
            tables.discard_nothing(other);
            tables.discard_before(other, 5);
            tables.count_discard(other);
            assert_eq!((tables.filter(other), tables.discarded(other)), (None, 0));
            let all = Filter { types: 0xff, ..MFLOW };
            tables.discard(PATH, &all).unwrap();
            assert_eq!(tables.or_discard(other, &mflow(0, 1, 0)), other.belongs());
        }
        assert_eq!(tables.discarded(PATH), 0);
        assert_eq!(
            tables.or_discard(PATH, &mflow(0, 1, 0)),
            Belongs::Discard { domain: PATH.domain, index: PATH.index }
        );
    }

    #[test]
    fn what_was_discarded_of_the_path_before_is_not_counted_of_the_next() {
        let tables = Tables::with_room(8, 1);
        tables.discard(PATH, &MFLOW).unwrap();
        tables.count_discard(PATH);
        assert_eq!(tables.discarded(PATH), 1);
        tables.discard_nothing(PATH);
        tables.discard(PATH, &RTP).unwrap();
        assert_eq!(tables.discarded(PATH), 0);
    }
}
