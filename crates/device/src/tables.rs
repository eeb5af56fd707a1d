//! The memory of the classifier's tables, whose words `silk-path`'s `classify::layout`
//! describes. With the `xdp` device they are the XDP program's own maps, mapped, so that a
//! path enters the classifier without a system call; the other devices classify in user space
//! and use the same tables in plain memory. Nothing here reads or writes a word.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::sys::Mapping;

/// Words (`u64`) of one bucket of the flow table.
pub(crate) const BUCKET_WORDS: usize = 8;
/// Words (`u32`) of the ports table.
pub(crate) const PORTS: usize = 65_536;
/// Words (`u64`) of the rules table.
pub(crate) const RULES_WORDS: usize = 768;
/// Words (`u64`) of the settings.
pub(crate) const SETTINGS_WORDS: usize = 30;
/// Words (`u64`) of who is refused.
pub(crate) const REFUSED_WORDS: usize = 163_840;
/// Words (`u64`) of the discards.
pub(crate) const DISCARDS_WORDS: usize = 1024;

/// Lines of 64 bytes that the homes of so many buckets take, a byte for each.
pub(crate) fn homes_lines(buckets: u32) -> u32 {
    buckets.div_ceil(64)
}

/// Words (`u64`) of as many lines.
pub(crate) fn homes_words(buckets: u32) -> usize {
    homes_lines(buckets) as usize * 8
}

/// The tables, all zero when new: no path owns anything. They stay for the life of the
/// process, for classifiers on every thread refer to them; a daemon makes them once.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// The flow table.
    pub flows: &'static [AtomicU64],
    /// How many flows are at home in each bucket of it, a byte each.
    pub homes: &'static [AtomicU64],
    /// The ports table.
    pub ports: &'static [AtomicU32],
    /// The rules table, both banks.
    pub rules: &'static [AtomicU64],
    /// Who is refused, both banks.
    pub refused: &'static [AtomicU64],
    /// The settings.
    pub settings: &'static [AtomicU64],
    /// Which packets of which paths are dropped at once.
    pub discards: &'static [AtomicU64],
}

impl Tables {
    /// Tables in plain memory, in huge pages where there are any; `buckets`, a power of two,
    /// each hold four flows.
    pub fn in_memory(buckets: u32) -> io::Result<Self> {
        Self::mapped(buckets, |_, bytes| Mapping::anonymous(bytes).map(leak))?
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// The tables in the mappings that `map` makes, of a table's name and its length in bytes; `None` when one is too small or
    /// `buckets` is not a power of two.
    pub(crate) fn mapped<E>(
        buckets: u32,
        map: impl Fn(&'static str, usize) -> Result<&'static Mapping, E>,
    ) -> Result<Option<Self>, E> {
        if !buckets.is_power_of_two() || buckets < 4 {
            return Ok(None);
        }
        let words64 = |name, words: usize| Ok(map(name, words * 8)?.words64(0, words));
        let tables = (
            words64("flows", buckets as usize * BUCKET_WORDS)?,
            words64("homes", homes_words(buckets))?,
            map("ports", PORTS * 4)?.words32(0, PORTS),
            words64("rules", RULES_WORDS)?,
            words64("refused", REFUSED_WORDS)?,
            words64("settings", SETTINGS_WORDS)?,
            words64("discards", DISCARDS_WORDS)?,
        );
        let (
            Some(flows),
            Some(homes),
            Some(ports),
            Some(rules),
            Some(refused),
            Some(settings),
            Some(discards),
        ) = tables
        else {
            return Ok(None);
        };
        Ok(Some(Self { flows, homes, ports, rules, refused, settings, discards }))
    }
}

/// Keeps a mapping for the life of the process.
pub(crate) fn leak(mapping: Mapping) -> &'static Mapping {
    Box::leak(Box::new(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn new_tables_own_nothing() {
        let tables = Tables::in_memory(1 << 16).unwrap();
        assert_eq!(tables.flows.len(), 8 << 16);
        assert!(tables.flows.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert_eq!(tables.homes.len(), (1 << 16) / 8);
        assert!(tables.ports.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert_eq!(tables.flows.as_ptr() as usize % 64, 0, "a bucket is a cache line");
    }

    #[test]
    fn a_table_that_no_hash_can_address_is_refused() {
        assert!(Tables::in_memory(0).is_err());
        assert!(Tables::in_memory(2).is_err());
        assert!(Tables::in_memory(48).is_err());
    }
}
