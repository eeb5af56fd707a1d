//! The Ethernet addresses of IPv4's groups.

use core::net::Ipv4Addr;

/// The group address of a multicast destination (RFC 1112 §6.4).
pub(crate) fn multicast(destination: Ipv4Addr) -> [u8; 6] {
    let [_, b, c, d] = destination.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_23_bits_of_its_own() {
        assert_eq!(multicast(Ipv4Addr::new(239, 129, 2, 3)), [1, 0, 0x5e, 1, 2, 3]);
    }
}
