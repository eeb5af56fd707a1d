//! IGMP: how a host tells routers which groups of IPv4 it hears (RFC 3376; RFC 2236 and RFC 1112 §6 where
//! an older router asks).
//! ```text
//!  0       1        2              4                               8
//! +-------+--------+--------------+-------------------------------+----------
//! | type  | within | checksum     | query: group                  | version 3: more
//! | 0x22  | 0      | checksum     | report: 0, number of records  | records
//! +-------+--------+--------------+-------------------------------+----------
//! record: | sort | 0 | number of sources (2) | group (4) | sources (4 each) |
//! ```

use crate::checksum::Sum;
use core::net::Ipv4Addr;

/// The protocol's number.
pub const PROTOCOL: u8 = 2;
/// Bytes of a message without records.
pub const HEADER: usize = 8;
/// Where every host hears queries.
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// Where routers hear that a group was left (version 2).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Where routers hear reports of version 3.
pub const REPORTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);

const QUERY: u8 = 0x11;
const REPORT1: u8 = 0x12;
const REPORT2: u8 = 0x16;
const LEAVE2: u8 = 0x17;
const REPORT3: u8 = 0x22;
/// Tenths of a second that version 1, which does not say, allows (RFC 2236 §4).
const USUAL: u32 = 100;

/// Whose language a router speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 1112.
    One,
    /// RFC 2236; of MLD, RFC 2710.
    Two,
    /// RFC 3376; of MLD, RFC 3810.
    Three,
}

/// What a record says of its group (RFC 3376 §4.2.12); its number in IGMP and MLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sort {
    /// These sources are heard, as before (MODE_IS_INCLUDE).
    Include = 1,
    /// All but these are (MODE_IS_EXCLUDE).
    Exclude = 2,
    /// From now on these alone (CHANGE_TO_INCLUDE_MODE).
    ToInclude = 3,
    /// From now on all but these (CHANGE_TO_EXCLUDE_MODE).
    ToExclude = 4,
    /// These, too, from now on (ALLOW_NEW_SOURCES).
    Allow = 5,
    /// These no longer (BLOCK_OLD_SOURCES).
    Block = 6,
}

/// What a report says of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a, A> {
    /// What.
    pub sort: Sort,
    /// The group.
    pub group: A,
    /// Of which sources.
    pub sources: &'a [A],
}

impl<A: Copy> Record<'_, A> {
    /// Its bytes, with addresses of so many.
    pub(crate) fn size(&self, address: usize) -> usize {
        4 + address * (1 + self.sources.len())
    }

    /// Writes records, for which there is room, one behind the other.
    pub(crate) fn write<const N: usize>(records: &[Self], mut to: &mut [u8], octets: fn(A) -> [u8; N]) {
        for record in records {
            let (own, rest) = to.split_at_mut(record.size(N));
            own[0] = record.sort as u8;
            own[2..4].copy_from_slice(&(record.sources.len() as u16).to_be_bytes());
            let addresses = core::iter::once(record.group).chain(record.sources.iter().copied());
            for (to, address) in own[4..].chunks_exact_mut(N).zip(addresses) {
                to.copy_from_slice(&octets(address));
            }
            to = rest;
        }
    }
}

/// What an older router, which knows of no sources, is told of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// It is heard.
    Heard,
    /// It was left.
    Left,
}

/// A router asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<G> {
    /// For this group, or for all.
    pub group: Option<G>,
    /// Milliseconds within which it wants to hear.
    pub within: u32,
    /// Whose language it speaks.
    pub version: Version,
}

/// The query in `bytes`, the payload of an IPv4 packet; `None`: it is none, or malformed.
pub fn parse(bytes: &[u8]) -> Option<Query<Ipv4Addr>> {
    let [kind, code, _, _, a, b, c, d, ..] = *bytes else { return None };
    if kind != QUERY || Sum::ZERO.bytes(bytes).folded() != 0xffff {
        return None;
    }
    let (version, tenths) = match (bytes.len(), code) {
        (HEADER, 0) => (Version::One, USUAL),
        (HEADER, code) => (Version::Two, code.into()),
        (9..12, _) => return None,
        // RFC 3376 §4.1.1.
        (_, code) if code < 128 => (Version::Three, code.into()),
        (_, code) => (Version::Three, u32::from(code & 15 | 16) << ((code >> 4 & 7) + 3)),
    };
    let group = Ipv4Addr::new(a, b, c, d);
    if !group.is_unspecified() && !group.is_multicast() {
        return None;
    }
    let group = Some(group).filter(|group| group.is_multicast());
    Some(Query { group, within: tenths * 100, version })
}

/// Bytes of a record of a report.
pub fn size(record: &Record<'_, Ipv4Addr>) -> usize {
    record.size(4)
}

/// Writes a report of version 3 to the front of `bytes`; its length, or `None` where there is no room.
pub fn emit_report(records: &[Record<'_, Ipv4Addr>], bytes: &mut [u8]) -> Option<usize> {
    let length = HEADER + records.iter().map(size).sum::<usize>();
    let message = bytes.get_mut(..length)?;
    message.fill(0);
    message[0] = REPORT3;
    message[6..HEADER].copy_from_slice(&(records.len() as u16).to_be_bytes());
    Record::write(records, &mut message[HEADER..], |address| address.octets());
    seal(message);
    Some(length)
}

/// Writes what an older router understands to the front of `bytes`, which has room for [`HEADER`] bytes:
/// one group is heard, or was left. `false`: it has no word for that.
pub fn emit_old(version: Version, group: Ipv4Addr, what: Old, bytes: &mut [u8; HEADER]) -> bool {
    let kind = match (version, what) {
        (Version::One, Old::Left) => return false,
        (_, Old::Left) => LEAVE2,
        (Version::One, _) => REPORT1,
        _ => REPORT2,
    };
    *bytes = [kind, 0, 0, 0, 0, 0, 0, 0];
    bytes[4..].copy_from_slice(&group.octets());
    seal(bytes);
    true
}

fn seal(message: &mut [u8]) {
    let checksum = Sum::ZERO.bytes(message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    fn query(code: u8, group: Ipv4Addr, more: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![QUERY, code, 0, 0];
        bytes.extend(group.octets());
        bytes.extend(more);
        seal(&mut bytes);
        bytes
    }

    #[test]
    fn a_query_says_whom_how_soon_and_in_which_language() {
        let none = Ipv4Addr::UNSPECIFIED;
        let of = |bytes: &[u8]| parse(bytes).map(|query| (query.group, query.within, query.version));
        assert_eq!(of(&query(0, none, &[])), Some((None, 10_000, Version::One)));
        assert_eq!(of(&query(10, GROUP, &[])), Some((Some(GROUP), 1000, Version::Two)));
        assert_eq!(of(&query(100, none, &[2, 125, 0, 0])), Some((None, 10_000, Version::Three)));
        assert_eq!(of(&query(0x80, none, &[2, 125, 0, 0])), Some((None, 12_800, Version::Three)));
        assert_eq!(of(&query(10, none, &[2])), None);
        assert_eq!(of(&query(10, Ipv4Addr::LOCALHOST, &[])), None);
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let mut bytes = query(10, GROUP, &[]);
        bytes[7] ^= 1;
        assert_eq!(parse(&bytes), None);
    }

    #[test]
    fn a_report_lists_its_groups() {
        let mut bytes = [0xff; 32];
        let record = |sort, group| Record { sort, group, sources: &[] };
        let records = [record(Sort::ToExclude, GROUP), record(Sort::ToInclude, REPORTS)];
        assert_eq!(emit_report(&records, &mut bytes), Some(24));
        assert_eq!(Sum::ZERO.bytes(&bytes[..24]).folded(), 0xffff);
        assert_eq!(bytes[..2], [0x22, 0]);
        assert_eq!(bytes[4..24], [0, 0, 0, 2, 4, 0, 0, 0, 239, 1, 2, 3, 3, 0, 0, 0, 224, 0, 0, 22]);
        assert_eq!(emit_report(&records, &mut bytes[..23]), None);
    }

    #[test]
    fn a_record_lists_its_sources() {
        let mut bytes = [0xff; 40];
        let sources = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
        let (one, two) = (
            Record { sort: Sort::Allow, group: GROUP, sources: &sources },
            Record { sort: Sort::Block, group: GROUP, sources: &[] },
        );
        assert_eq!(emit_report(&[one, two], &mut bytes), Some(32));
        assert_eq!(bytes[4..24], [0, 0, 0, 2, 5, 0, 0, 2, 239, 1, 2, 3, 10, 0, 0, 2, 10, 0, 0, 3]);
        assert_eq!(bytes[24..32], [6, 0, 0, 0, 239, 1, 2, 3]);
        assert_eq!(Sum::ZERO.bytes(&bytes[..32]).folded(), 0xffff);
    }

    #[test]
    fn older_routers_hear_of_one_group_at_a_time() {
        let mut bytes = [0; HEADER];
        assert!(!emit_old(Version::One, GROUP, Old::Left, &mut bytes));
        assert!(emit_old(Version::Two, GROUP, Old::Left, &mut bytes));
        assert_eq!((bytes[0], Sum::ZERO.bytes(&bytes).folded()), (0x17, 0xffff));
        assert!(emit_old(Version::One, GROUP, Old::Heard, &mut bytes));
        assert_eq!((bytes[0], &bytes[4..]), (0x12, &[239, 1, 2, 3][..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut sealed = bytes.clone();
            if sealed.len() >= HEADER {
                sealed[0] = QUERY;
                sealed[2..4].fill(0);
                seal(&mut sealed);
            }
            for bytes in [bytes, sealed] {
                if let Some(query) = parse(&bytes) {
                    prop_assert!(query.within <= 3_174_400 && query.group.is_none_or(|g| g.is_multicast()));
                }
            }
        }
    }
}
