//! MLD: how a host tells routers which groups of IPv6 it hears (RFC 3810; RFC 2710 where an older router
//! asks). Messages of ICMPv6, behind a router alert (RFC 2711), never forwarded.
//! ```text
//!  0       1       2          4          6          8
//! +-------+-------+----------+----------+----------+------------------+---------
//! | 130   | 0     | checksum | within   | 0        | query: group (16) | version 2: more
//! | 143   | 0     | checksum | 0        | number   | records
//! +-------+-------+----------+----------+----------+------------------+---------
//! record: | sort | 0 | number of sources (2) | group (16) | sources (16 each) |
//! ```

use crate::igmp::{Old, Query, Record, Version};
use core::net::Ipv6Addr;

/// The first and the last type that are MLD's, but for reports of version 2.
pub const FIRST: u8 = 130;
/// See [`FIRST`].
pub const LAST: u8 = 132;
/// Bytes of a message without records.
pub const HEADER: usize = 8;
/// Bytes of a message of version 1.
pub const OLD: usize = 24;
/// Where every host hears queries.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Where routers hear that a group was left (version 1).
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Where routers hear reports of version 2.
pub const REPORTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// The hop-by-hop header with the router alert for MLD, before ICMPv6.
pub const ALERT: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];

const QUERY: u8 = 130;
const REPORT1: u8 = 131;
const DONE1: u8 = 132;
const REPORT2: u8 = 143;

/// The query in `bytes`, a message of ICMPv6 whose checksum was checked; `None`: it is none, or
/// malformed.
pub fn parse(bytes: &[u8]) -> Option<Query<Ipv6Addr>> {
    let (head, group) = bytes.get(..OLD)?.split_at(HEADER);
    if head[0] != QUERY || head[1] != 0 {
        return None;
    }
    let code = u16::from_be_bytes([head[4], head[5]]);
    let (version, within) = match (bytes.len(), code) {
        (OLD, code) => (Version::Two, code.into()),
        (25..28, _) => return None,
        // RFC 3810 §5.1.3.
        (_, code) if code < 0x8000 => (Version::Three, code.into()),
        (_, code) => (Version::Three, u32::from(code & 0xfff | 0x1000) << ((code >> 12 & 7) + 3)),
    };
    let group = Ipv6Addr::from(*group.first_chunk::<16>()?);
    if !group.is_unspecified() && !group.is_multicast() {
        return None;
    }
    Some(Query { group: Some(group).filter(|group| group.is_multicast()), within, version })
}

/// Bytes of a record of a report.
pub fn size(record: &Record<'_, Ipv6Addr>) -> usize {
    record.size(16)
}

/// Writes a report of version 2 to the front of `bytes`, its checksum zero; its length, or `None` where
/// there is no room.
pub fn emit_report(records: &[Record<'_, Ipv6Addr>], bytes: &mut [u8]) -> Option<usize> {
    let length = HEADER + records.iter().map(size).sum::<usize>();
    let message = bytes.get_mut(..length)?;
    message.fill(0);
    message[0] = REPORT2;
    message[6..HEADER].copy_from_slice(&(records.len() as u16).to_be_bytes());
    Record::write(records, &mut message[HEADER..], |address| address.octets());
    Some(length)
}

/// What an older router understands, its checksum zero: one group is heard, or was left.
pub fn old(group: Ipv6Addr, what: Old) -> [u8; OLD] {
    let mut message = [0; OLD];
    message[0] = if what == Old::Left { DONE1 } else { REPORT1 };
    message[HEADER..].copy_from_slice(&group.octets());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::igmp::Sort;
    extern crate std;
    use proptest::prelude::*;
    use std::vec::Vec;

    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x99);

    fn query(code: u16, group: Ipv6Addr, more: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![QUERY, 0, 0, 0];
        bytes.extend(code.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(group.octets());
        bytes.extend(more);
        bytes
    }

    #[test]
    fn a_query_says_whom_how_soon_and_in_which_language() {
        let none = Ipv6Addr::UNSPECIFIED;
        let of = |bytes: &[u8]| parse(bytes).map(|query| (query.group, query.within, query.version));
        assert_eq!(of(&query(1000, GROUP, &[])), Some((Some(GROUP), 1000, Version::Two)));
        assert_eq!(of(&query(10_000, none, &[2, 125, 0, 0])), Some((None, 10_000, Version::Three)));
        assert_eq!(of(&query(0x8000, none, &[2, 125, 0, 0])), Some((None, 32_768, Version::Three)));
        assert_eq!(of(&query(1000, none, &[2])), None);
        assert_eq!(of(&query(1000, Ipv6Addr::LOCALHOST, &[])), None);
    }

    #[test]
    fn reports_list_their_groups_and_sources() {
        let mut bytes = [0xff; 64];
        let sources = [Ipv6Addr::LOCALHOST];
        let (one, two) = (
            Record { sort: Sort::ToExclude, group: GROUP, sources: &sources },
            Record { sort: Sort::ToInclude, group: REPORTS, sources: &[] },
        );
        assert_eq!(emit_report(&[one, two], &mut bytes), Some(64));
        assert_eq!((bytes[0], bytes[7], bytes[8], bytes[11], bytes[44]), (143, 2, 4, 1, 3));
        assert_eq!((&bytes[12..28], &bytes[28..44]), (&GROUP.octets()[..], &sources[0].octets()[..]));
        assert_eq!(emit_report(&[one], &mut bytes[..43]), None);
        assert_eq!((old(GROUP, Old::Left)[0], old(GROUP, Old::Heard)[0]), (132, 131));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), ours: bool) {
            if let (true, Some(first)) = (ours, bytes.first_mut()) {
                *first = QUERY;
            }
            let query = parse(&bytes);
            prop_assert!(query.is_none_or(|query| query.group.is_none_or(|group| group.is_multicast())));
        }
    }
}
