//! The Internet checksum (RFC 1071) over wide words, its pseudo-headers (RFC 9293 §3.1,
//! RFC 768, RFC 8200 §8.1) and its incremental update (RFC 1624). Sums are kept in network order: a [`Sum`]
//! is the 16-bit one's complement sum of big-endian words, not yet complemented.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A one's complement sum in the making. Words are added in any order; the *bytes* added by
/// one call start at an even offset of what is summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Nothing added yet.
    pub const ZERO: Self = Self(0);

    /// A sum that goes on from a folded one.
    pub const fn from_folded(folded: u16) -> Self {
        Self(folded as u64)
    }

    /// With one 16-bit word added.
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// With an address added.
    pub const fn address(self, address: Ipv4Addr) -> Self {
        let [a, b, c, d] = address.octets();
        self.word(u16::from_be_bytes([a, b])).word(u16::from_be_bytes([c, d]))
    }

    /// With `bytes` added; an odd last byte counts as if a zero followed.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut lanes = Lanes::default();
        let (chunks, rest) = bytes.as_chunks::<CHUNK>();
        for chunk in chunks {
            lanes.add(chunk);
        }
        self.word(lanes.sum(rest))
    }

    /// With `part` added, the sum of bytes that begin at offset `at` of what is summed: at an odd one
    /// each of them is in the other half of its word (RFC 1071 §2 B).
    pub const fn joined(self, at: usize, part: Self) -> Self {
        let folded = part.folded();
        self.word(if at.is_multiple_of(2) { folded } else { folded.swap_bytes() })
    }

    /// The folded sum, not complemented: what a partial checksum field holds.
    pub const fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum: the complement of the folded sum.
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Bytes that are added in one go.
const CHUNK: usize = 64;

/// A chunk in turn as native words: the sum of swapped words is the swapped sum (RFC 1071 §2 B), so
/// the order is put right once, at the end. Four pairs of sums, for compilers make vectors of them.
#[derive(Clone, Copy, Default)]
struct Lanes {
    low: [u64; 4],
    high: [u64; 4],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, chunk: &[u8; CHUNK]) {
        let (words, _) = chunk.as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            let word = u64::from_ne_bytes(*word);
            self.low[at % 4] += word & 0xffff_ffff;
            self.high[at % 4] += word >> 32;
        }
    }

    /// The folded sum, with the bytes that are less than a chunk.
    #[inline(always)]
    fn sum(self, rest: &[u8]) -> u16 {
        // Halves of words: no sum of less than 2^32 of them comes near 2^64.
        let mut sum: u64 = self.low.iter().chain(&self.high).sum();
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            let word = u64::from_ne_bytes(*word);
            sum += (word & 0xffff_ffff) + (word >> 32);
        }
        let (pairs, last) = rest.as_chunks::<2>();
        for pair in pairs {
            sum += u64::from(u16::from_ne_bytes(*pair));
        }
        if let [last] = last {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        u16::from_be_bytes(fold(sum).to_ne_bytes())
    }
}

/// Copies `from` to the front of `to` and sums it on the way, in one pass (integrated layer
/// processing: Scout §4.1, Clark and Tennenhouse 1990). The sum of what was copied: as much as `to`
/// has room for.
pub fn copy_and_sum(from: &[u8], to: &mut [u8]) -> Sum {
    let length = from.len().min(to.len());
    let mut lanes = Lanes::default();
    let (chunks, rest) = from[..length].as_chunks::<CHUNK>();
    let (to_chunks, to_rest) = to[..length].as_chunks_mut::<CHUNK>();
    for (from, to) in chunks.iter().zip(to_chunks) {
        let chunk = *from;
        lanes.add(&chunk);
        *to = chunk;
    }
    to_rest.copy_from_slice(rest);
    Sum::from_folded(lanes.sum(rest))
}

/// Folds the carries of a sum into 16 bits.
const fn fold(sum: u64) -> u16 {
    let mut sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// The pseudo-header's sum for `length` bytes of protocol `protocol`.
pub const fn pseudo(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    Sum::ZERO.address(source).address(destination).word(protocol as u16).word(length)
}

/// The IPv6 pseudo-header's sum for `length` bytes of upper-layer protocol `protocol` (RFC 8200
/// §8.1).
pub fn pseudo6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u16) -> Sum {
    let addresses = Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets());
    addresses.word(protocol as u16).word(length)
}

/// The pseudo-header's sum for `length` bytes of protocol `protocol` between two addresses of one
/// family; of two families, which no packet has, it is that of nothing.
pub fn pseudo_of(source: IpAddr, destination: IpAddr, protocol: u8, length: u16) -> Sum {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => pseudo(source, destination, protocol, length),
        (IpAddr::V6(source), IpAddr::V6(destination)) => pseudo6(source, destination, protocol, length),
        _ => Sum::ZERO,
    }
}

/// The checksum after the 16-bit word `old` it covers became `new` (RFC 1624 eqn. 3).
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).word(!old).word(new).checksum()
}

/// Which checksums are accepted on a received segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// A right one.
    #[default]
    Full,
    /// A right one, or exactly the folded pseudo-header sum in the field: what a virtual
    /// Ethernet pair hands over when the sender left the work to a device that is not there.
    /// Only for devices known to do this; on a wire it would switch the checksum off.
    FullOrPartial,
    /// Any: the device has verified it.
    Verified,
}

/// Whether `segment`, whose checksum field reads `field`, is accepted. `pseudo` is the
/// pseudo-header's sum.
pub fn accepted(pseudo: Sum, segment: &[u8], field: u16, accept: Accept) -> bool {
    accepted_unread(pseudo, field, accept) || is_right(pseudo.bytes(segment))
}

/// Whether it is accepted without a look at the segment.
pub fn accepted_unread(pseudo: Sum, field: u16, accept: Accept) -> bool {
    match accept {
        Accept::Verified => true,
        Accept::FullOrPartial => field == pseudo.folded(),
        Accept::Full => false,
    }
}

/// The sum of a datagram whose middle, `length` bytes, was summed on its own: of its folded pseudo-header,
/// what stands before the middle, that, and what stands behind it.
pub fn around(pseudo: u16, before: &[u8], middle: Sum, length: usize, behind: &[u8]) -> Sum {
    let front = Sum::from_folded(pseudo).bytes(before).joined(before.len(), middle);
    front.joined(before.len() + length, Sum::ZERO.bytes(behind))
}

/// Whether the sum of the whole, pseudo-header and checksum included, says that it arrived as it was
/// sent.
pub const fn is_right(whole: Sum) -> bool {
    whole.folded() == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, as the reference.
    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
    }

    #[test]
    fn a_partial_checksum_is_accepted_only_when_told_so() {
        let pseudo = pseudo(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 17, 9);
        let field = pseudo.folded();
        let mut segment = [0x30, 0x39, 0, 80, 0, 9, 0, 0, 7];
        segment[6..8].copy_from_slice(&field.to_be_bytes());
        assert!(!accepted(pseudo, &segment, field, Accept::Full));
        assert!(accepted(pseudo, &segment, field, Accept::FullOrPartial));
        segment[6..8].copy_from_slice(&(field ^ 1).to_be_bytes());
        assert!(!accepted(pseudo, &segment, field ^ 1, Accept::FullOrPartial));
    }

    proptest! {
        /// Whatever the length and however both sides lie in memory.
        #[test]
        fn copying_while_summing_is_copying_and_then_summing(
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
            skip in 0usize..20,
            at in 0usize..20,
            more in 0usize..40,
        ) {
            let from = &bytes[skip.min(bytes.len())..];
            let mut to = std::vec![0xaa; at + from.len() + more];
            let sum = copy_and_sum(from, &mut to[at..]);
            prop_assert_eq!(sum.folded(), Sum::ZERO.bytes(from).folded());
            let (front, back) = (&to[..at], &to[at + from.len()..]);
            prop_assert_eq!(&to[at..at + from.len()], from);
            prop_assert!(front.iter().chain(back).all(|byte| *byte == 0xaa));
        }

        #[test]
        fn a_sum_of_parts_is_that_of_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            a in 0usize..100,
            b in 0usize..100,
        ) {
            let (a, b) = (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            let sum = |part: &[u8]| Sum::ZERO.bytes(part);
            let joined = sum(&bytes[..a]).joined(a, sum(&bytes[a..b])).joined(b, sum(&bytes[b..]));
            prop_assert_eq!(joined.folded() % 0xffff, slow(&bytes) % 0xffff);
            let whole = around(7, &bytes[..a], sum(&bytes[a..b]), b - a, &bytes[b..]);
            prop_assert_eq!(whole.folded() % 0xffff, Sum::from_folded(slow(&bytes)).word(7).folded() % 0xffff);
        }

        #[test]
        fn wide_words_sum_like_narrow_ones(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(Sum::ZERO.bytes(&bytes).folded(), slow(&bytes));
        }

        #[test]
        fn a_sum_in_two_parts_is_the_sum(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..150) {
            let at = (2 * at).min(bytes.len() & !1);
            let (a, b) = bytes.split_at(at);
            let parts = Sum::ZERO.bytes(a).bytes(b).folded();
            prop_assert_eq!(parts % 0xffff, slow(&bytes) % 0xffff);
        }

        #[test]
        fn an_updated_checksum_is_the_new_one(mut bytes in proptest::collection::vec(any::<u8>(), 20), new: u16) {
            bytes[0] = 0x45; // An all-zero sum has two representations; a header never has it.
            let before = Sum::ZERO.bytes(&bytes).checksum();
            let old = u16::from_be_bytes([bytes[8], bytes[9]]);
            bytes[8..10].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), Sum::ZERO.bytes(&bytes).checksum());
        }
    }
}
