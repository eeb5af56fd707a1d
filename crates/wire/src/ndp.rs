//! Neighbour discovery (RFC 4861 §4): who has this address, I have it, and what routers tell.
//! Only messages that no router can have forwarded (hop limit 255, RFC 4861 §11.2) with code 0
//! and well-formed options are read at all. The checksum is ICMPv6's own and checked there.
//! ```text
//!  0       1       2               4               8                              24
//! +-------+-------+---------------+---------------+------------------------------+--------
//! | type  |   0   |   checksum    | flags: R S O  |       target (16 bytes)      | options
//! +-------+-------+---------------+---------------+------------------------------+--------
//! option:  type (1) | length / 8 (1) | value
//! ```

use crate::ipv6::NEVER_FORWARDED;
use crate::{MacAddr, ParseError};
use core::net::Ipv6Addr;

/// Type of a router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// Type of a router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Type of a neighbour solicitation.
pub const SOLICITATION: u8 = 135;
/// Type of a neighbour advertisement.
pub const ADVERTISEMENT: u8 = 136;
/// Type of a redirect.
pub const REDIRECT: u8 = 137;

/// Bytes of a solicitation or an advertisement with its link address.
pub const MESSAGE: usize = 32;

/// Bytes of a router solicitation with its link address.
pub const QUESTION: usize = 16;

const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const ROUTE: u8 = 24;

/// Bytes of a router's advertisement before its options.
const ROUTER_HEADER: usize = 16;
/// A prefix is on the link; addresses may be made of it.
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;

const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// Whether a type is neighbour discovery's.
pub const fn is_discovery(kind: u8) -> bool {
    matches!(kind, ROUTER_SOLICITATION..=REDIRECT)
}

/// A message of neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who has this address?
    Solicitation {
        /// The address in question.
        target: Ipv6Addr,
        /// The asker's Ethernet address; none from one that has no address yet.
        link: Option<MacAddr>,
    },
    /// This station has it.
    Advertisement {
        /// The address.
        target: Ipv6Addr,
        /// Its station's Ethernet address.
        link: Option<MacAddr>,
        /// It is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It may replace what is known.
        overrides: bool,
    },
    /// A router is here.
    Router {
        /// How long it may be used as the default router, seconds; 0: not.
        lifetime: u16,
        /// Whether it is to be preferred to other default routers (RFC 4191 §2.2).
        preference: Preference,
        /// The hop limit it proposes; 0: none.
        hop_limit: u8,
        /// Its Ethernet address.
        link: Option<MacAddr>,
        /// The link's MTU, bytes.
        mtu: Option<u32>,
    },
    /// Is there a router?
    RouterSolicitation,
    /// Use another first hop.
    Redirect {
        /// Whom to give packets to: a router, or the destination itself.
        hop: Ipv6Addr,
        /// Where those packets go.
        destination: Ipv6Addr,
        /// The hop's Ethernet address.
        link: Option<MacAddr>,
    },
}

/// What a router tells of a prefix (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The network; what is behind its prefix means nothing.
    pub network: Ipv6Addr,
    /// The prefix's length, at most 128.
    pub length: u8,
    /// Its addresses are on the link.
    pub on_link: bool,
    /// Stations make their own addresses of it (RFC 4862).
    pub autonomous: bool,
    /// How long all that holds, seconds; [`FOREVER`].
    pub valid: u32,
    /// How long such addresses are to be preferred, seconds; [`FOREVER`].
    pub preferred: u32,
}

/// How much a router is to be preferred to others (RFC 4191 §2.1), the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    /// Only where there is no other.
    Low,
    /// As routers are that say nothing of it.
    #[default]
    Medium,
    /// Before others.
    High,
}

impl Preference {
    /// What two bits of a flags byte say; `None`: what must not be sent.
    fn of(flags: u8) -> Option<Self> {
        match flags >> 3 & 3 {
            0b00 => Some(Self::Medium),
            0b01 => Some(Self::High),
            0b11 => Some(Self::Low),
            _ => None,
        }
    }
}

/// What a router tells of a network that it leads to (RFC 4191 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteInformation {
    /// The network; what is behind its prefix means nothing.
    pub network: Ipv6Addr,
    /// The prefix's length, at most 128.
    pub length: u8,
    /// Whether it is to be preferred to other routers that lead there.
    pub preference: Preference,
    /// How long that holds, seconds; [`FOREVER`]. 0: no longer.
    pub lifetime: u32,
}

/// The networks in a router's advertisement that [`parse`] has accepted, in order.
pub fn routes(message: &[u8]) -> impl Iterator<Item = RouteInformation> + '_ {
    options_of(message.get(ROUTER_HEADER..).unwrap_or_default()).filter_map(Result::ok).filter_map(route)
}

/// Of the network as many bytes are there as its prefix needs, in steps of eight.
fn route((kind, option): (u8, &[u8])) -> Option<RouteInformation> {
    let [_, _, length, flags, l0, l1, l2, l3, network @ ..] = option else { return None };
    let mut octets = [0; 16];
    let there = network.len().min(octets.len());
    octets[..there].copy_from_slice(&network[..there]);
    let fits = *length <= 128 && usize::from(*length).div_ceil(64) * 8 <= there;
    let preference = Preference::of(*flags)?;
    (kind == ROUTE && fits).then(|| RouteInformation {
        network: octets.into(),
        length: *length,
        preference,
        lifetime: u32::from_be_bytes([*l0, *l1, *l2, *l3]),
    })
}

/// Seconds that never end.
pub const FOREVER: u32 = u32::MAX;

/// The prefixes in a router's advertisement that [`parse`] has accepted, in order.
pub fn prefixes(message: &[u8]) -> impl Iterator<Item = Prefix> + '_ {
    options_of(message.get(ROUTER_HEADER..).unwrap_or_default()).filter_map(Result::ok).filter_map(prefix)
}

fn prefix((kind, option): (u8, &[u8])) -> Option<Prefix> {
    let [_, _, length, flags, v0, v1, v2, v3, p0, p1, p2, p3, _, _, _, _, network @ ..] = option else {
        return None;
    };
    let network: [u8; 16] = network.try_into().ok()?;
    (kind == PREFIX && *length <= 128).then(|| Prefix {
        network: network.into(),
        length: *length,
        on_link: flags & ON_LINK != 0,
        autonomous: flags & AUTONOMOUS != 0,
        valid: u32::from_be_bytes([*v0, *v1, *v2, *v3]),
        preferred: u32::from_be_bytes([*p0, *p1, *p2, *p3]),
    })
}

/// What the options of a message say.
#[derive(Clone, Copy, Default)]
struct Options {
    source: Option<MacAddr>,
    target: Option<MacAddr>,
    mtu: Option<u32>,
}

/// The message in `bytes`, an ICMPv6 message that came with `hop_limit`.
pub fn parse(hop_limit: u8, bytes: &[u8]) -> Result<Message, ParseError> {
    let [kind, code, _, _, flags, ..] = *bytes else { return Err(ParseError::NdTruncated) };
    if hop_limit != NEVER_FORWARDED || code != 0 {
        return Err(ParseError::NdForwarded);
    }
    match kind {
        ROUTER_SOLICITATION => {
            options(bytes, 8)?;
            Ok(Message::RouterSolicitation)
        }
        ROUTER_ADVERTISEMENT => {
            let found = options(bytes, ROUTER_HEADER)?;
            let [_, _, _, _, hop_limit, flags, high, low, ..] = *bytes else {
                return Err(ParseError::NdTruncated);
            };
            let lifetime = u16::from_be_bytes([high, low]);
            // One that must not be sent means nothing (RFC 4191 §2.2), nor does any that is no default router's.
            let preference = Preference::of(flags).filter(|_| lifetime > 0).unwrap_or_default();
            Ok(Message::Router { lifetime, preference, hop_limit, link: found.source, mtu: found.mtu })
        }
        SOLICITATION => {
            let (target, found) = (target(bytes)?, options(bytes, 24)?);
            Ok(Message::Solicitation { target, link: found.source })
        }
        ADVERTISEMENT => {
            let (target, found) = (target(bytes)?, options(bytes, 24)?);
            Ok(Message::Advertisement {
                target,
                link: found.target,
                router: flags & ROUTER != 0,
                solicited: flags & SOLICITED != 0,
                overrides: flags & OVERRIDE != 0,
            })
        }
        REDIRECT => {
            let (hop, found) = (target(bytes)?, options(bytes, 40)?);
            let destination: &[u8; 16] =
                bytes.get(24..).and_then(|rest| rest.first_chunk()).ok_or(ParseError::NdTruncated)?;
            let destination = Ipv6Addr::from(*destination);
            // RFC 4861 §8.1.
            let is_sound = hop == destination || hop.is_unicast_link_local();
            if destination.is_multicast() || !is_sound {
                return Err(ParseError::NdMalformed);
            }
            Ok(Message::Redirect { hop, destination, link: found.target })
        }
        _ => Err(ParseError::NdMalformed),
    }
}

/// The address in question: never a group's (RFC 4861 §7.1).
fn target(bytes: &[u8]) -> Result<Ipv6Addr, ParseError> {
    let octets: &[u8; 16] =
        bytes.get(8..).and_then(|rest| rest.first_chunk()).ok_or(ParseError::NdTruncated)?;
    let target = Ipv6Addr::from(*octets);
    if target.is_multicast() { Err(ParseError::NdMalformed) } else { Ok(target) }
}

/// The options from `at` on. One of length zero spoils the message (RFC 4861 §4.6).
fn options(bytes: &[u8], at: usize) -> Result<Options, ParseError> {
    let mut found = Options::default();
    for option in options_of(bytes.get(at..).ok_or(ParseError::NdTruncated)?) {
        let (kind, option) = option?;
        let link = || option.get(2..8).and_then(|mac| mac.try_into().ok()).map(MacAddr);
        match kind {
            SOURCE_LINK => found.source = link(),
            TARGET_LINK => found.target = link(),
            MTU => {
                let word = option.get(4..8).and_then(|word| word.try_into().ok());
                found.mtu = word.map(u32::from_be_bytes);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Each option's type, and all of its bytes; after one that spoils the message nothing.
fn options_of(mut rest: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), ParseError>> {
    core::iter::from_fn(move || {
        let whole = core::mem::take(&mut rest);
        let kind = *whole.first()?;
        let length = usize::from(*whole.get(1).unwrap_or(&0)) * 8;
        if length == 0 || length > whole.len() {
            return Some(Err(ParseError::NdMalformed));
        }
        rest = &whole[length..];
        Some(Ok((kind, &whole[..length])))
    })
}

/// Writes the question whether there is a router to the front of `bytes` and answers its length. `link` is our
/// Ethernet address, left out when the address we ask from is still to be proved ours. The checksum is zero; room
/// for [`QUESTION`] bytes.
pub fn emit_router_solicitation(link: Option<MacAddr>, bytes: &mut [u8]) -> usize {
    bytes[..QUESTION].fill(0);
    bytes[0] = ROUTER_SOLICITATION;
    let Some(MacAddr(mac)) = link else { return 8 };
    [bytes[8], bytes[9]] = [SOURCE_LINK, 1];
    bytes[10..QUESTION].copy_from_slice(&mac);
    QUESTION
}

/// Writes a question for `target` to the front of `bytes` and answers its length. `link` is our
/// Ethernet address, left out when our address is still to be proved ours. The checksum is
/// zero; room for [`MESSAGE`] bytes.
pub fn emit_solicitation(target: Ipv6Addr, link: Option<MacAddr>, bytes: &mut [u8]) -> usize {
    emit(SOLICITATION, 0, target, link.map(|link| (SOURCE_LINK, link)), bytes)
}

/// Writes the answer that we are `target` to the front of `bytes` and answers its length; with
/// `solicited` it goes to who asked, where it `overrides` it replaces what he knows. The checksum is zero; room
/// for [`MESSAGE`] bytes.
pub fn emit_advertisement(
    target: Ipv6Addr,
    link: MacAddr,
    (solicited, overrides): (bool, bool),
    bytes: &mut [u8],
) -> usize {
    let flags = if overrides { OVERRIDE } else { 0 } | if solicited { SOLICITED } else { 0 };
    emit(ADVERTISEMENT, flags, target, Some((TARGET_LINK, link)), bytes)
}

fn emit(kind: u8, flags: u8, target: Ipv6Addr, link: Option<(u8, MacAddr)>, bytes: &mut [u8]) -> usize {
    bytes[..MESSAGE].fill(0);
    bytes[0] = kind;
    bytes[4] = flags;
    bytes[8..24].copy_from_slice(&target.octets());
    let Some((option, MacAddr(mac))) = link else { return 24 };
    bytes[24] = option;
    bytes[25] = 1;
    bytes[26..MESSAGE].copy_from_slice(&mac);
    MESSAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const HERE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);

    #[test]
    fn a_question_and_its_answer_read_as_written() {
        let mut bytes = [0xaa; MESSAGE];
        let length = emit_solicitation(HERE, Some(MAC), &mut bytes);
        let expected = Message::Solicitation { target: HERE, link: Some(MAC) };
        assert_eq!(parse(255, &bytes[..length]), Ok(expected));
        let length = emit_solicitation(HERE, None, &mut bytes);
        assert_eq!(parse(255, &bytes[..length]), Ok(Message::Solicitation { target: HERE, link: None }));
        let length = emit_advertisement(HERE, MAC, (true, true), &mut bytes);
        let expected = Message::Advertisement {
            target: HERE,
            link: Some(MAC),
            router: false,
            solicited: true,
            overrides: true,
        };
        assert_eq!(parse(255, &bytes[..length]), Ok(expected));
    }

    #[test]
    fn what_a_router_may_have_forwarded_is_refused() {
        let mut bytes = [0; MESSAGE];
        emit_solicitation(HERE, Some(MAC), &mut bytes);
        assert_eq!(parse(254, &bytes), Err(ParseError::NdForwarded));
        bytes[1] = 1;
        assert_eq!(parse(255, &bytes), Err(ParseError::NdForwarded));
    }

    #[test]
    fn an_option_without_length_and_a_group_as_target_spoil_the_message() {
        let mut bytes = [0; MESSAGE];
        emit_solicitation(HERE, Some(MAC), &mut bytes);
        let mut none = bytes;
        none[25] = 0;
        assert_eq!(parse(255, &none), Err(ParseError::NdMalformed));
        let mut beyond = bytes;
        beyond[25] = 2;
        assert_eq!(parse(255, &beyond), Err(ParseError::NdMalformed));
        bytes[8] = 0xff;
        assert_eq!(parse(255, &bytes), Err(ParseError::NdMalformed));
        assert_eq!(parse(255, &bytes[..23]), Err(ParseError::NdTruncated));
    }

    #[test]
    fn a_router_says_how_long_and_how_wide() {
        let bytes = [134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 0x05, 0xdc];
        let preference = Preference::Medium;
        let expected =
            Message::Router { lifetime: 1800, preference, hop_limit: 64, link: None, mtu: Some(1500) };
        assert_eq!(parse(255, &bytes), Ok(expected));
    }

    #[test]
    fn a_redirect_names_a_router_on_the_link_or_the_destination_itself() {
        let there = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
        let told = |hop: Ipv6Addr, destination: Ipv6Addr| {
            let mut bytes = std::vec![0; 48];
            bytes[0] = REDIRECT;
            bytes[8..24].copy_from_slice(&hop.octets());
            bytes[24..40].copy_from_slice(&destination.octets());
            bytes[40..].copy_from_slice(&[2, 1, 2, 0, 0, 0, 0, 9]);
            parse(255, &bytes)
        };
        let link = Some(MAC);
        assert_eq!(told(HERE, there), Ok(Message::Redirect { hop: HERE, destination: there, link }));
        assert_eq!(told(there, there), Ok(Message::Redirect { hop: there, destination: there, link }));
        let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        for (hop, destination) in [(there, HERE), (HERE, group), (group, group)] {
            assert_eq!(told(hop, destination), Err(ParseError::NdMalformed));
        }
        assert_eq!(parse(255, &[REDIRECT; 39]), Err(ParseError::NdForwarded));
    }

    #[test]
    fn a_router_says_whether_it_is_preferred_where_it_leads() {
        let preferred = |flags: u8, lifetime: u8| {
            let bytes = [134, 0, 0, 0, 64, flags, 0, lifetime, 0, 0, 0, 0, 0, 0, 0, 0];
            match parse(255, &bytes) {
                Ok(Message::Router { preference, .. }) => preference,
                other => panic!("{other:?}"),
            }
        };
        let all = [0x08, 0x00, 0x18, 0x10].map(|flags| preferred(flags, 9));
        assert_eq!(all, [Preference::High, Preference::Medium, Preference::Low, Preference::Medium]);
        assert_eq!(preferred(0x08, 0), Preference::Medium, "it leads nowhere");
    }

    #[test]
    fn a_router_tells_of_networks_that_it_leads_to() {
        let mut bytes = std::vec![0; 16];
        bytes[0] = 134;
        let mut tell = |length: u8, flags: u8, octets: &[u8]| {
            bytes.extend([24, 1 + octets.len() as u8 / 8, length, flags, 0, 0, 1, 0]);
            bytes.extend(octets);
        };
        let network = [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        tell(0, 0x08, &[]);
        tell(48, 0x18, &network[..8]);
        tell(128, 0x00, &network);
        // These mean nothing: too short for the prefix, longer than an address, a preference that must not be sent.
        tell(65, 0x00, &network[..8]);
        tell(129, 0x00, &network);
        tell(48, 0x10, &network[..8]);
        let all: std::vec::Vec<_> = routes(&bytes).collect();
        let information = |network: &str, length, preference| RouteInformation {
            network: network.parse().unwrap(),
            length,
            preference,
            lifetime: 256,
        };
        assert_eq!(
            all,
            [
                information("::", 0, Preference::High),
                information("2001:db8:9::", 48, Preference::Low),
                information("2001:db8:9::7", 128, Preference::Medium),
            ]
        );
        assert_eq!(prefixes(&bytes).count(), 0);
    }

    #[test]
    fn a_router_tells_of_prefixes() {
        let mut bytes = [0; 16 + 8 + 32 + 32];
        (bytes[0], bytes[7]) = (134, 9);
        (bytes[16], bytes[17]) = (5, 1);
        let known = Prefix {
            network: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
            length: 64,
            on_link: true,
            autonomous: true,
            valid: 86_400,
            preferred: FOREVER,
        };
        for (at, length) in [(24, 64), (56, 129)] {
            bytes[at..at + 4].copy_from_slice(&[3, 4, length, 0xc0]);
            bytes[at + 4..at + 8].copy_from_slice(&known.valid.to_be_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&known.preferred.to_be_bytes());
            bytes[at + 16..at + 32].copy_from_slice(&known.network.octets());
        }
        let preference = Preference::Medium;
        let expected = Message::Router { lifetime: 9, preference, hop_limit: 0, link: None, mtu: Some(0) };
        assert_eq!(parse(255, &bytes), Ok(expected));
        assert!(prefixes(&bytes).eq([known]), "one is longer than an address");
    }

    #[test]
    fn routers_are_asked_with_our_address() {
        let mut bytes = [0xaa; QUESTION];
        emit_router_solicitation(Some(MAC), &mut bytes);
        assert_eq!(parse(255, &bytes), Ok(Message::RouterSolicitation));
        assert_eq!(bytes[8..], [1, 1, 2, 0, 0, 0, 0, 9]);
        let length = emit_router_solicitation(None, &mut bytes);
        assert_eq!((parse(255, &bytes[..length]), length), (Ok(Message::RouterSolicitation), 8));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..100), kind in 133u8..138) {
            if let [first, code, ..] = &mut *bytes {
                (*first, *code) = (kind, 0);
            }
            if parse(255, &bytes).is_ok() {
                prop_assert!(prefixes(&bytes).all(|prefix| prefix.length <= 128));
            }
        }
    }
}
