//! Class rules: which domain a packet without an exact entry belongs to. The first that fits decides.

use super::flow::halves;
use super::layout::*;
use super::tables::Tables;
use core::net::{IpAddr, Ipv6Addr};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// A class rule: which domain the first packet of a flow belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// The network of the sender and the length of its prefix; `None`: any sender of either
    /// family.
    pub source: Option<(IpAddr, u8)>,
    /// The differentiated services code point; `None`: any.
    pub dscp: Option<u8>,
    /// The local port; `None`: any.
    pub local_port: Option<u16>,
    /// The domain.
    pub domain: u8,
}

impl ClassRule {
    /// The rule in the words of its table.
    pub(super) fn words(&self) -> [u64; RULE_WORDS] {
        let port = u64::from(self.local_port.unwrap_or(0).swap_bytes());
        let dscp = self.dscp.map_or(RULE_ANY_DSCP, |dscp| u64::from(dscp) << 16);
        let what = port | dscp | u64::from(self.domain) << 24;
        match self.source {
            None => [0, what, 0, 0, 0, 0],
            Some((IpAddr::V4(network), prefix)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
                let source = u32::from_le_bytes((u32::from(network) & mask).to_be_bytes());
                let mask = u32::from_le_bytes(mask.to_be_bytes());
                [u64::from(source) | u64::from(mask) << 32, what | RULE_NOT_V6, 0, 0, 0, 0]
            }
            Some((IpAddr::V6(network), prefix)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
                let [a, b] = halves(Ipv6Addr::from_bits(network.to_bits() & mask));
                let [c, d] = halves(Ipv6Addr::from_bits(mask));
                [0, what | RULE_NOT_V4, a, b, c, d]
            }
        }
    }
}

impl Tables {
    /// The domain of a packet from `source` for `local_port` without an exact entry.
    pub fn domain_for(&self, source: impl Into<IpAddr>, local_port: u16, dscp: u8) -> u8 {
        let source = source.into();
        let settings = self.settings[0].load(Acquire);
        let port = u64::from(local_port.swap_bytes());
        let bank = (settings >> BANK_SHIFT & 1) as usize * RULES;
        let count = ((settings >> RULE_COUNT_SHIFT & 0xff) as usize).min(RULES);
        for words in self.rules[RULE_WORDS * bank..].chunks(RULE_WORDS).take(count) {
            let rule = words[1].load(Relaxed);
            let port_fits = rule & 0xffff == 0 || rule & 0xffff == port;
            let dscp_fits = rule & RULE_ANY_DSCP != 0 || rule >> 16 & 0xff == u64::from(dscp);
            if port_fits && dscp_fits && source_fits(words, rule, source) {
                return (rule >> 24) as u8 & DOMAIN_MASK as u8;
            }
        }
        self.domains().default
    }
}

/// Whether a rule is for this sender.
fn source_fits(words: &[AtomicU64], rule: u64, source: IpAddr) -> bool {
    let word = |n: usize| words[n].load(Relaxed);
    match source {
        IpAddr::V4(source) => {
            let (source, prefix) = (u64::from(u32::from_le_bytes(source.octets())), word(0));
            rule & RULE_NOT_V4 == 0 && source & prefix >> 32 == prefix & 0xffff_ffff
        }
        IpAddr::V6(source) => {
            let [first, second] = halves(source);
            rule & RULE_NOT_V6 == 0 && first & word(4) == word(2) && second & word(5) == word(3)
        }
    }
}
