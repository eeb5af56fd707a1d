//! What the header of IP says of congestion: the ECN codepoint that a segment comes with, or leaves with.

/// The ECN field of an IP header (RFC 3168 §5), the two lowest of the service bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codepoint {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, as RFC 8311 leaves to experiments.
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Codepoint {
    /// The codepoint in an IP header's service bits.
    pub const fn from_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Its two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codepoint_is_the_two_lowest_service_bits() {
        for tos in 0..=255 {
            assert_eq!(Codepoint::from_tos(tos).bits(), tos & 3);
        }
    }
}
