//! An Ethernet address (IEEE 802.3 §3.2.3). Six bytes, nothing else.

use core::{fmt, str::FromStr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An Ethernet address.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Every station of the link.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// No address: what an ARP request carries as the target.
    pub const ZERO: Self = Self([0; 6]);

    /// Broadcast or multicast: the group bit is set.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
    /// An address one station can have: not a group and not zero.
    pub fn is_unicast(self) -> bool {
        !self.is_group() && self != Self::ZERO
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six pairs of hexadecimal digits joined by colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMac;

impl fmt::Display for NotAMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an Ethernet address such as 02:00:00:00:00:01")
    }
}

impl core::error::Error for NotAMac {}

impl FromStr for MacAddr {
    type Err = NotAMac;

    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part =
                parts.next().filter(|part| part.len() == 2 && !part.starts_with('+')).ok_or(NotAMac)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| NotAMac)?;
        }
        parts.next().is_none().then_some(Self(bytes)).ok_or(NotAMac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn text_and_back() {
        let mac = MacAddr([2, 0, 0, 0xab, 0xcd, 1]);
        assert_eq!(mac.to_string(), "02:00:00:ab:cd:01");
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "02:00:00:00:00:xy",
            "+2:00:00:00:00:01",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(NotAMac), "{text}");
        }
    }

    #[test]
    fn the_group_bit_is_the_lowest_of_the_first_byte() {
        assert!(MacAddr::BROADCAST.is_group() && MacAddr([1, 0, 0x5e, 0, 0, 1]).is_group());
        assert!(MacAddr([2, 0, 0, 0, 0, 1]).is_unicast() && !MacAddr::ZERO.is_unicast());
    }
}
