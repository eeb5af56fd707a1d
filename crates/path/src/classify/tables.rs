//! All tables of a classifier in one place, each in the words of [`layout`](super::layout), and what
//! its settings say at once. What stands in a table, a file for each idea has.

use super::flows::Flows;
use super::layout::*;
use super::store::{Store, Store32, Store64};
use core::sync::atomic::Ordering::{Acquire, Release};

/// What the settings' flags say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// ARP goes to the control domain.
    pub arp: bool,
    /// ICMP to a local address goes to the control domain.
    pub icmp: bool,
    /// Fragments to a local address go to the fragment domain.
    pub fragments: bool,
}

/// The domains for packets without an exact entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    /// Where no rule matches.
    pub default: u8,
    /// Fragments.
    pub fragment: u8,
    /// ARP and ICMP.
    pub control: u8,
}

/// More rules or addresses than the tables hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// All tables of a classifier.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The exact flows.
    pub flows: Flows,
    pub(super) ports: Store32,
    pub(super) rules: Store64,
    pub(super) refused: Store64,
    pub(super) settings: Store64,
    pub(super) discards: Store64,
    // As the settings had it when this was made.
    vlans: [u16; DEVICES],
}

impl Tables {
    /// The tables in words that somebody else holds; `None` when one is too short. Both
    /// seeds and the virtual LAN are read from the settings, so they must be there already.
    pub fn from_words(
        flows: Store64,
        homes: Store64,
        ports: Store32,
        rules: Store64,
        refused: Store64,
        settings: Store64,
        discards: Store64,
    ) -> Option<Self> {
        let long_enough = ports.len() >= PORTS
            && rules.len() >= RULES_WORDS
            && refused.len() >= REFUSED_WORDS
            && settings.len() >= SETTINGS_WORDS
            && discards.len() >= DISCARDS_WORDS;
        if !long_enough {
            return None;
        }
        let seeds = [SETTINGS_SEED, SETTINGS_SEED2].map(|word| settings[word].load(Acquire));
        let vlans = vlans_of(settings[SETTINGS_VLAN].load(Acquire));
        Some(Self {
            flows: Flows::new(flows, homes, seeds)?,
            ports,
            rules,
            refused,
            settings,
            discards,
            vlans,
        })
    }

    /// Tables in memory of their own with room for about `flows` flows.
    pub fn with_room(flows: usize, seed: u64) -> Self {
        let settings = Store64::zeroed(SETTINGS_WORDS);
        settings[SETTINGS_SEED].store(seed, Release);
        settings[SETTINGS_SEED2].store(Flows::second_seed(seed), Release);
        Self {
            flows: Flows::with_room(flows, seed),
            ports: Store::zeroed(PORTS),
            rules: Store::zeroed(RULES_WORDS),
            refused: Store::zeroed(REFUSED_WORDS),
            settings,
            discards: Store::zeroed(DISCARDS_WORDS),
            vlans: [0; DEVICES],
        }
    }

    /// The same tables for frames of the virtual LAN `vid`, 0: for those without a tag, over whichever device.
    #[must_use]
    pub fn on_vlan(self, vid: u16) -> Self {
        self.on_vlans([vid; DEVICES])
    }

    /// The same tables for frames of these virtual LANs, one for each device.
    #[must_use]
    pub fn on_vlans(self, vlans: [u16; DEVICES]) -> Self {
        self.settings[SETTINGS_VLAN].store(vlans_word(vlans), Release);
        Self { vlans, ..self }
    }

    /// The virtual LAN whose frames are ours over this device (IEEE 802.1Q-2018 §9.6); 0: frames without a
    /// tag are.
    pub fn vlan(&self, device: u8) -> u16 {
        self.vlans.get(usize::from(device)).copied().unwrap_or(0)
    }

    /// The domains in force.
    pub fn domains(&self) -> Domains {
        let word = self.settings[0].load(Acquire);
        let domain = |shift: u32| (word >> shift) as u8 & DOMAIN_MASK as u8;
        Domains {
            default: domain(DEFAULT_SHIFT),
            fragment: domain(FRAGMENT_SHIFT),
            control: domain(CONTROL_SHIFT),
        }
    }

    /// The flags in force.
    pub fn owned(&self) -> Owned {
        let word = self.settings[0].load(Acquire);
        Owned { arp: word & OWN_ARP != 0, icmp: word & OWN_ICMP != 0, fragments: word & OWN_FRAGMENTS != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tables_are_refused() {
        let words = |n| Store64::zeroed(n);
        let made = |[flows, homes, ports, rules, refused, settings, discards]: [usize; 7]| {
            let [flows, homes, rules, refused, settings, discards] =
                [flows, homes, rules, refused, settings, discards].map(words);
            let ports = Store32::zeroed(ports);
            Tables::from_words(flows, homes, ports, rules, refused, settings, discards).is_some()
        };
        let enough = [32, 1, PORTS, RULES_WORDS, REFUSED_WORDS, SETTINGS_WORDS, DISCARDS_WORDS];
        assert!(made(enough));
        for short in 0..enough.len() {
            let mut sizes = enough;
            sizes[short] -= 1;
            assert!(!made(sizes), "table {short}");
        }
    }
}
