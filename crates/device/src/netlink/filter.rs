//! Linux's packet filter (nft(8)), as much as tells whether it has rules that do not hold for what is silk's: packets that a
//! program is given before Linux's protocols see them pass its chains by.

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::NetlinkError;
use super::line::{Attribute, Line, attributes_of};

/// `NFT_MSG_GETCHAIN` of `NFNL_SUBSYS_NFTABLES` (nfnetlink.h, nf_tables.h).
const GET_CHAIN: u16 = 10 << 8 | 4;
/// Attributes of a chain, and of what it is hooked to (nf_tables.h).
const TABLE: u16 = 1;
const HOOK: u16 = 4;
const POLICY: u16 = 5;
const USE: u16 = 6;
const KIND: u16 = 7;
const HOOK_NUMBER: u16 = 1;
/// The families of tables that see IP packets (netfilter.h), and how `nft` calls them.
const FAMILIES: [(u8, &str); 3] = [(1, "inet"), (2, "ip"), (10, "ip6")];
/// The hooks that packets pass from and to programs: all but that of packets which are forwarded, and the device's own, which
/// silk's may pass, too.
const HOOKS: [u32; 4] = [0, 1, 3, 4];

/// The tables that filter what comes to programs or leaves them, as `nft` calls them: `inet filter`. Those that `iptables` makes
/// with the kernel's older interface are not among them.
///
/// # Errors
/// The kernel has no such filter, or does not tell.
pub fn tables() -> Result<Vec<String>, NetlinkError> {
    let chains = Line::open(NETLINK_NETFILTER)?.ask((GET_CHAIN, NLM_F_DUMP), [0; 4], &[])?;
    let mut tables: Vec<String> =
        chains.iter().filter_map(|([family, ..], chain)| table(*family, chain)).collect();
    tables.sort();
    tables.dedup();
    Ok(tables)
}

/// The table of a chain that filters such packets.
fn table(family: u8, chain: &[Attribute]) -> Option<String> {
    let (_, family) = FAMILIES.into_iter().find(|(number, _)| *number == family)?;
    let find = |attributes: &[Attribute], number| {
        attributes.iter().find(|(found, _)| *found == number).map(|(_, value)| value.clone())
    };
    let word = |value: Option<Vec<u8>>| value?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let text =
        |value: Option<Vec<u8>>| Some(String::from_utf8_lossy(value?.strip_suffix(&[0])?).into_owned());
    let hook = word(find(&attributes_of(&find(chain, HOOK)?), HOOK_NUMBER))?;
    // It has rules, or drops what comes.
    let does_something = word(find(chain, USE)) != Some(0) || word(find(chain, POLICY)) == Some(0);
    let filters = text(find(chain, KIND)).as_deref() == Some("filter");
    if !(does_something && filters && HOOKS.contains(&hook)) {
        return None;
    }
    Some(format!("{family} {}", text(find(chain, TABLE))?))
}
