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
        // Sixteen bytes in turn as native words: the sum of swapped words is the swapped sum
        // (RFC 1071 §2 B), so the order is put right once, at the end.
        let (mut low, mut high) = (0u64, 0u64);
        let mut chunks = bytes.chunks_exact(16);
        for chunk in &mut chunks {
            let (a, b) = (word64(&chunk[..8]), word64(&chunk[8..]));
            low += (a & 0xffff_ffff) + (b & 0xffff_ffff);
            high += (a >> 32) + (b >> 32);
        }
        let mut rest = chunks.remainder().chunks_exact(2);
        for pair in &mut rest {
            low += u64::from(u16::from_ne_bytes([pair[0], pair[1]]));
        }
        if let [last] = rest.remainder() {
            low += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        let native = fold(u64::from(fold(low)) + u64::from(fold(high)));
        self.word(u16::from_be_bytes(native.to_ne_bytes()))
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

fn word64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
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
    match accept {
        Accept::Verified => true,
        Accept::FullOrPartial if field == pseudo.folded() => true,
        Accept::Full | Accept::FullOrPartial => pseudo.bytes(segment).folded() == 0xffff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
