//! Puts fragments of either IP together (RFC 791 §3.2, RFC 815, RFC 1122 §3.3.2, RFC 8200 §4.5),
//! bounded in datagrams, pieces and bytes, and in time. Overlapping pieces spoil their datagram
//! whole, as RFC 5722 has it for IPv6: no sender makes them, attacks do. An exact repetition is
//! only ignored.

use super::ecn::Codepoints;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{Checksum, DropReason};

/// What reassembly may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Datagrams at once.
    pub datagrams: usize,
    /// Bytes at once, with what it costs to keep them.
    pub memory: usize,
    /// How long after its first piece a datagram is given up.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { datagrams: 64, memory: 512 * 1024, timeout: Duration::from_secs(30) }
    }
}

/// Pieces of one datagram: over the narrowest link of IPv4 (68 bytes, RFC 791 §3.2) the longest has 1 365, over Ethernet 45.
const PIECES: usize = 1400;
/// What keeping a piece costs beside its bytes.
const PIECE_COST: usize = 64;

/// A piece of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'p> {
    /// Where it lies in its datagram, in bytes.
    pub offset: usize,
    /// Not the last one.
    pub more: bool,
    /// Its service bits, or traffic class.
    pub tos: u8,
    /// What the device knows of its datagram's checksum.
    pub checksum: Checksum,
    /// What stands in front of its bytes, as it came: of the first one that is kept.
    pub headers: &'p [u8],
    /// Its bytes.
    pub payload: &'p [u8],
}

impl Piece<'_> {
    /// What holding it costs.
    pub fn cost(&self) -> usize {
        self.payload.len() + PIECE_COST + if self.offset == 0 { self.headers.len() } else { 0 }
    }
}

struct Datagram<H> {
    expires: Instant,
    // By offset, without overlap; in whatever order they come, none costs more than the logarithm of their number.
    pieces: BTreeMap<usize, Vec<u8>>,
    // Their bytes together.
    held: usize,
    // Known once the last fragment is here.
    total: Option<usize>,
    // The header of the fragment at offset 0, and all that stood in front of its bytes.
    header: Option<H>,
    headers: Vec<u8>,
    // Its service bits, and the ECN of all.
    tos: u8,
    ecn: Codepoints,
    // What the device knows of its checksum, if it knows the same of all pieces.
    checksum: Option<Checksum>,
    // Overlapping pieces came: everything of it is dropped until it expires.
    spoiled: bool,
}

/// Datagrams in pieces: `K` ties the pieces of one together, `H` is what is kept of the first
/// one's header.
pub(crate) struct Reassembly<K, H> {
    datagrams: BTreeMap<K, Datagram<H>>,
    limits: Limits,
    // Sum over all pieces of their bytes and their cost.
    memory: usize,
    /// Datagrams that were given up since somebody has counted them, so that others have room.
    pub crowded_out: u32,
}

/// A datagram given up, with its first fragment where that had come: what an ICMP "time exceeded" quotes.
pub(crate) struct Expired<H> {
    /// Bytes that it held, with what it cost to keep them.
    pub freed: usize,
    pub first: Option<First<H>>,
}

/// The first fragment of a datagram.
pub(crate) struct First<H> {
    /// Its header.
    pub header: H,
    /// All of it, as it came.
    pub packet: Vec<u8>,
    /// Bytes of it in front of its payload.
    pub headers_len: usize,
}

/// A datagram that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole<H> {
    /// The header of the fragment at its front.
    pub header: H,
    /// Its service bits, or traffic class: those of that fragment with the ECN of all.
    pub tos: u8,
    /// What is known of its checksum.
    pub checksum: Checksum,
    /// Room in front, then its payload.
    pub bytes: Vec<u8>,
}

impl<K: Copy + Ord, H: Copy> Reassembly<K, H> {
    pub fn new(limits: Limits) -> Self {
        Self { datagrams: BTreeMap::new(), limits, memory: 0, crowded_out: 0 }
    }

    /// Bytes held, with what it costs to keep them.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// When the first datagram is to be given up.
    pub fn deadline(&self) -> Instant {
        self.datagrams.values().map(|datagram| datagram.expires).min().unwrap_or(Instant::FAR)
    }

    /// Takes a fragment in. When it completes its datagram: that, with `front` bytes of room
    /// before the payload.
    pub fn insert(
        &mut self,
        now: Instant,
        (key, header): (K, H),
        piece: Piece<'_>,
        front: usize,
    ) -> Result<Option<Whole<H>>, DropReason> {
        self.make_room(&key, piece.cost())?;
        let expires = now + self.limits.timeout;
        let datagram = self.datagrams.entry(key).or_insert_with(|| Datagram::new(expires));
        let added = datagram.insert(header, piece);
        if datagram.spoiled {
            let held = datagram.cost();
            datagram.forget();
            self.memory -= held;
        }
        if !added? {
            return Ok(None);
        }
        self.memory += piece.cost();
        if !datagram.is_complete() {
            return Ok(None);
        }
        let Some(datagram) = self.datagrams.remove(&key) else { return Ok(None) };
        self.memory -= datagram.cost();
        datagram.whole(front)
    }

    /// Makes room for `bytes` of datagram `key` by giving up the oldest others.
    fn make_room(&mut self, key: &K, bytes: usize) -> Result<(), DropReason> {
        let known = self.datagrams.contains_key(key);
        while self.memory + bytes > self.limits.memory
            || (!known && self.datagrams.len() >= self.limits.datagrams)
        {
            self.give_up_oldest(key).ok_or(DropReason::IpFragmentLimit)?;
        }
        Ok(())
    }

    /// Gives up the oldest datagram but `but`: what it has cost. `None`: there is no other.
    pub fn give_up_oldest(&mut self, but: &K) -> Option<usize> {
        let others = self.datagrams.iter().filter(|(other, _)| *other != but);
        let oldest = others.min_by_key(|(_, datagram)| datagram.expires).map(|(other, _)| *other)?;
        let given_up = self.remove(&oldest)?;
        // Of one that was spoiled that was counted.
        self.crowded_out += u32::from(!given_up.spoiled);
        Some(given_up.cost())
    }

    fn remove(&mut self, key: &K) -> Option<Datagram<H>> {
        let datagram = self.datagrams.remove(key)?;
        self.memory -= datagram.cost();
        Some(datagram)
    }

    /// Gives up one datagram whose time is over.
    pub fn expire(&mut self, now: Instant) -> Option<Expired<H>> {
        let key = self.datagrams.iter().find(|(_, datagram)| datagram.expires <= now).map(|(key, _)| *key)?;
        let datagram = self.remove(&key)?;
        Some(Expired { freed: datagram.cost(), first: datagram.first() })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.datagrams.clear();
        self.memory = 0;
    }
}

impl<H: Copy> Datagram<H> {
    fn new(expires: Instant) -> Self {
        Self {
            expires,
            pieces: BTreeMap::new(),
            held: 0,
            total: None,
            header: None,
            headers: Vec::new(),
            tos: 0,
            ecn: Codepoints::default(),
            checksum: None,
            spoiled: false,
        }
    }

    fn cost(&self) -> usize {
        self.headers.len() + self.held + self.pieces.len() * PIECE_COST
    }

    /// Forgets all that was held of it.
    fn forget(&mut self) {
        (self.pieces, self.headers, self.held) = (BTreeMap::new(), Vec::new(), 0);
    }

    /// Adds a fragment; `false` when it was here already.
    fn insert(&mut self, header: H, piece: Piece<'_>) -> Result<bool, DropReason> {
        let (start, end) = (piece.offset, piece.offset + piece.payload.len());
        if self.pieces.get(&start).is_some_and(|bytes| bytes == piece.payload) {
            return Ok(false);
        }
        let end_of = |(at, bytes): (&usize, &Vec<u8>)| at + bytes.len();
        let before = self.pieces.range(..start).next_back().map_or(0, end_of);
        let after = self.pieces.range(start..).next().map_or(usize::MAX, |(at, _)| *at);
        let last = !piece.more;
        let wrong_end = self.total.is_some_and(|total| end > total || (last && end != total))
            || (last && self.pieces.last_key_value().map_or(0, end_of) > end);
        if self.spoiled || before > start || after < end || after == start || wrong_end {
            self.spoiled = true;
            return Err(DropReason::IpFragmentOverlap);
        }
        if self.pieces.len() >= PIECES {
            return Err(DropReason::IpFragmentLimit);
        }
        self.pieces.insert(start, piece.payload.to_vec());
        self.held += piece.payload.len();
        if last {
            self.total = Some(end);
        }
        if start == 0 {
            self.header = Some(header);
            self.headers = piece.headers.to_vec();
            self.tos = piece.tos;
        }
        self.ecn.see(piece.tos);
        let known = *self.checksum.get_or_insert(piece.checksum);
        self.checksum = Some(if known == piece.checksum { known } else { Checksum::Unknown });
        Ok(true)
    }

    fn is_complete(&self) -> bool {
        // Without overlap, as many bytes as the whole are the whole.
        self.total == Some(self.held) && self.header.is_some()
    }

    fn first(self) -> Option<First<H>> {
        let (at, bytes) = self.pieces.into_iter().next()?;
        let headers_len = self.headers.len();
        let packet = [self.headers, bytes].concat();
        Some(First { header: self.header?, packet, headers_len }).filter(|_| at == 0)
    }

    fn whole(&self, front: usize) -> Result<Option<Whole<H>>, DropReason> {
        let (Some(header), Some(total)) = (self.header, self.total) else { return Ok(None) };
        let tos = self.ecn.of_whole(self.tos)?;
        let mut bytes = vec![0; front + total];
        for (at, piece) in &self.pieces {
            let start = front + at;
            bytes[start..start + piece.len()].copy_from_slice(piece);
        }
        Ok(Some(Whole { header, tos, checksum: self.checksum.unwrap_or_default(), bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Key;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use silk_wire::ipv4;

    const NOW: Instant = Instant::ZERO;

    fn fragment(identification: u16, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; ipv4::HEADER];
        let header = ipv4::Emit {
            identification,
            dont_fragment: false,
            protocol: 17,
            source: Ipv4Addr::new(10, 0, 0, 2),
            destination: Ipv4Addr::new(10, 0, 0, 1),
            payload_len: payload.len() as u16,
            offset: offset as u16,
            more_fragments: more,
            ..Default::default()
        };
        header.emit(&mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    type Fragments = Reassembly<Key, ipv4::Header>;

    fn insert(reassembly: &mut Fragments, bytes: &[u8]) -> Result<Option<Vec<u8>>, DropReason> {
        let packet = ipv4::parse(bytes).unwrap();
        let piece = Piece {
            offset: packet.header.fragment_offset(),
            more: packet.header.more_fragments(),
            tos: packet.header.tos,
            checksum: Checksum::Unknown,
            headers: &bytes[..packet.header.header_len()],
            payload: packet.payload,
        };
        let whole = reassembly.insert(NOW, (Key::of(packet.header), *packet.header), piece, 0);
        Ok(whole?.map(|whole| whole.bytes))
    }

    #[test]
    fn a_teardrop_spoils_its_datagram() {
        let mut reassembly = Fragments::new(Limits::default());
        assert_eq!(insert(&mut reassembly, &fragment(1, 0, true, &[1; 40])), Ok(None));
        let inside = fragment(1, 24, false, &[2; 8]);
        assert_eq!(insert(&mut reassembly, &inside), Err(DropReason::IpFragmentOverlap));
        let rest = fragment(1, 40, false, &[3; 8]);
        assert_eq!(insert(&mut reassembly, &rest), Err(DropReason::IpFragmentOverlap));
        assert_eq!(reassembly.memory(), 0);
    }

    #[test]
    fn a_repeated_fragment_is_ignored() {
        let mut reassembly = Fragments::new(Limits::default());
        let first = fragment(1, 0, true, &[1; 8]);
        assert_eq!((insert(&mut reassembly, &first), insert(&mut reassembly, &first)), (Ok(None), Ok(None)));
        let whole = insert(&mut reassembly, &fragment(1, 8, false, &[2; 3])).unwrap().unwrap();
        assert_eq!(whole, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2]);
        assert_eq!(reassembly.memory(), 0);
    }

    #[test]
    fn two_last_fragments_that_disagree_spoil() {
        let mut reassembly = Fragments::new(Limits::default());
        assert_eq!(insert(&mut reassembly, &fragment(1, 16, false, &[1; 8])), Ok(None));
        let other = fragment(1, 32, false, &[1; 8]);
        assert_eq!(insert(&mut reassembly, &other), Err(DropReason::IpFragmentOverlap));
    }

    #[test]
    fn what_never_completes_is_given_up() {
        let mut reassembly = Fragments::new(Limits::default());
        insert(&mut reassembly, &fragment(1, 0, true, &[7; 16])).unwrap();
        insert(&mut reassembly, &fragment(2, 8, true, &[7; 16])).unwrap();
        assert_eq!(reassembly.deadline(), NOW + Duration::from_secs(30));
        let later = Instant::from_millis(30_000);
        let (held, mut freed) = (reassembly.memory(), 0);
        let quoted: Vec<_> = core::iter::from_fn(|| reassembly.expire(later))
            .inspect(|given_up| freed += given_up.freed)
            .map(|given_up| given_up.first.map(|first| (first.packet, first.headers_len)))
            .collect();
        assert_eq!(quoted, [Some((fragment(1, 0, true, &[7; 16]), ipv4::HEADER)), None], "as it came");
        assert_eq!((reassembly.memory(), freed), (0, held));
        assert_eq!(reassembly.deadline(), Instant::FAR);
    }

    // RFC 1122 §3.3.2.
    #[test]
    fn the_longest_datagram_over_the_narrowest_link_is_put_together_in_any_order() {
        let data: Vec<u8> = (0..65_515u32).map(|n| (n % 251) as u8).collect();
        let chunks = data.chunks(48).enumerate();
        let pieces: Vec<_> =
            chunks.map(|(n, piece)| fragment(1, n * 48, n * 48 + piece.len() < data.len(), piece)).collect();
        let (even, odd) = (pieces.iter().step_by(2), pieces.iter().skip(1).step_by(2));
        let orders: [Vec<&Vec<u8>>; 3] =
            [pieces.iter().collect(), pieces.iter().rev().collect(), even.chain(odd).collect()];
        for order in orders {
            let mut reassembly = Fragments::new(Limits::default());
            let (last, others) = order.split_last().unwrap();
            others.iter().for_each(|piece| assert_eq!(insert(&mut reassembly, piece), Ok(None)));
            let held: usize = others.iter().map(|piece| piece.len() - ipv4::HEADER + PIECE_COST).sum();
            let first = if others.contains(&&pieces[0]) { ipv4::HEADER } else { 0 };
            assert_eq!(reassembly.memory(), held + first, "each is paid for");
            assert_eq!(insert(&mut reassembly, last), Ok(Some(data.clone())));
            assert_eq!(reassembly.memory(), 0);
        }
    }

    #[test]
    fn a_datagram_of_crumbs_has_no_more_of_them_than_one_needs() {
        let mut reassembly = Fragments::new(Limits::default());
        let mut crumb = |n: usize| insert(&mut reassembly, &fragment(1, n * 16, true, &[1; 8]));
        assert!((0..PIECES).all(|n| crumb(n) == Ok(None)));
        assert_eq!(crumb(PIECES), Err(DropReason::IpFragmentLimit));
        assert_eq!(reassembly.memory(), PIECES * (8 + PIECE_COST) + ipv4::HEADER);
    }

    #[test]
    fn a_flood_of_first_fragments_stays_within_the_limits() {
        let limits = Limits { datagrams: 8, memory: 4096, ..Limits::default() };
        let mut reassembly = Fragments::new(limits);
        for n in 0..1000 {
            let _ = insert(&mut reassembly, &fragment(n, 0, true, &[0; 800]));
            assert!(reassembly.memory() <= limits.memory && reassembly.datagrams.len() <= limits.datagrams);
        }
        assert!(reassembly.memory() > 0);
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_make_the_whole(payload in proptest::collection::vec(any::<u8>(), 1..400), order in any::<u64>(), unit in 1usize..6) {
            let mut pieces: Vec<Vec<u8>> = Vec::new();
            for (n, piece) in payload.chunks(unit * 8).enumerate() {
                let at = n * unit * 8;
                pieces.push(fragment(5, at, at + piece.len() < payload.len(), piece));
            }
            let mut reassembly = Fragments::new(Limits::default());
            let mut whole = None;
            let mut seed = order;
            while !pieces.is_empty() {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                let bytes = pieces.swap_remove((seed >> 33) as usize % pieces.len());
                let done = if unit * 8 >= payload.len() { None } else { insert(&mut reassembly, &bytes).unwrap() };
                prop_assert_eq!(done.is_some(), pieces.is_empty() && unit * 8 < payload.len());
                whole = done.or(whole);
            }
            if let Some(whole) = whole { prop_assert_eq!(&whole[..], &payload[..]); }
            prop_assert_eq!(reassembly.memory(), 0);
        }
    }

    #[test]
    fn what_lies_behind_the_end_of_its_datagram_spoils_it_whichever_comes_first() {
        let overlap = Err(DropReason::IpFragmentOverlap);
        let mut reassembly = Fragments::new(Limits::default());
        assert_eq!(insert(&mut reassembly, &fragment(1, 16, false, &[1; 8])), Ok(None));
        assert_eq!(insert(&mut reassembly, &fragment(1, 24, true, &[2; 8])), overlap);
        assert_eq!(insert(&mut reassembly, &fragment(1, 0, true, &[3; 8])), overlap, "the whole of it");
        // As many bytes as the end says are there, but not where it says.
        assert_eq!(insert(&mut reassembly, &fragment(2, 0, true, &[1; 8])), Ok(None));
        assert_eq!(insert(&mut reassembly, &fragment(2, 40, true, &[2; 8])), Ok(None));
        assert_eq!(insert(&mut reassembly, &fragment(2, 16, false, &[3; 8])), overlap);
        assert_eq!(reassembly.memory(), 0);
    }
}
