//! The ECN codepoint of a datagram that came in fragments, which may have been marked one by one (RFC 3168 §5.3): a
//! mark on any of them is one on the whole. Fragments of which only some say that their sender knows ECN were
//! never one datagram of his, and no mark of such may be lost or made.

use silk_path::DropReason;

/// The ECN field of the service bits (RFC 3168 §5).
pub(crate) const ECN: u8 = 3;
/// The sender does not know ECN (RFC 3168 §5).
const NOT_ECT: u8 = 0b00;
/// Congestion was experienced on the way.
const CE: u8 = 0b11;

/// The codepoints that the fragments of a datagram have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Codepoints(u8);

impl Codepoints {
    /// A fragment came with these service bits (IPv6: this traffic class).
    pub fn see(&mut self, tos: u8) {
        self.0 |= 1 << (tos & ECN);
    }

    /// The service bits of the whole, where those of its first fragment are `tos`; as Linux has it
    /// (`ip_frag_ecn_table`), which also refuses ECT beside Not-ECT. Of ECT(0) and ECT(1) the first counts.
    pub fn of_whole(self, tos: u8) -> Result<u8, DropReason> {
        let has = |codepoint: u8| self.0 & 1 << codepoint != 0;
        let alone = self.0.is_power_of_two();
        match () {
            () if has(NOT_ECT) && !alone => Err(DropReason::IpFragmentEcn),
            () if has(CE) => Ok(tos | CE),
            () => Ok(tos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not-ECT, ECT(1), ECT(0) and CE, by their bits.
    #[test]
    fn the_whole_has_what_its_fragments_agree_on() {
        let refused = Err(DropReason::IpFragmentEcn);
        for (seen, whole) in [
            (&[0, 0][..], Ok(0)),
            (&[1, 1], Ok(1)),
            (&[2, 2], Ok(2)),
            (&[3, 3], Ok(3)),
            (&[1, 2], Ok(1)),
            (&[2, 1], Ok(2)),
            (&[1, 3], Ok(3)),
            (&[2, 3], Ok(3)),
            (&[3, 2], Ok(3)),
            (&[2, 1, 3], Ok(3)),
            (&[0, 1], refused),
            (&[0, 2], refused),
            (&[0, 3], refused),
            (&[3, 0], refused),
            (&[2, 1, 0], refused),
            (&[3, 2, 1, 0], refused),
        ] {
            let mut codepoints = Codepoints::default();
            seen.iter().for_each(|codepoint| codepoints.see(0xb8 | codepoint));
            assert_eq!(
                codepoints.of_whole(0xb8 | seen[0]),
                whole.map(|codepoint: u8| 0xb8 | codepoint),
                "{seen:?}"
            );
        }
    }
}
