//! Linux's rules for which of its routing tables are asked (ip-rule(8)): they are asked in their order until a table has a
//! route, which may depend on where a packet comes from and where it goes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::Nla;
use netlink_packet_route::route::RouteHeader;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, NetlinkError};

/// A rule. Conditions that packets of programs on silk do or do not fulfil whoever sends them are decided already: they carry
/// no mark, and come from this machine itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rules are asked by ascending priority, equals in the order in which the kernel tells them.
    pub priority: u32,
    /// The network that a packet comes from.
    pub from: (IpAddr, u8),
    /// The network that it goes to.
    pub to: (IpAddr, u8),
    /// Whether what else the rule asks for is so.
    pub others: bool,
    /// It holds where not all of that is so.
    pub inverted: bool,
    /// What to do where it holds.
    pub action: Action,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To ask a table, of which routes that lead somewhere do not count if their prefix is no longer than `suppressed`.
    Ask {
        /// The table's number.
        table: u32,
        /// The longest prefix that does not count.
        suppressed: Option<u8>,
    },
    /// To go on with the first rule of this priority.
    GoTo(u32),
    /// To send nothing.
    Refuse,
    /// To go on with the next rule.
    GoOn,
}

/// The rules of both IPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Those of IPv4, and those of IPv6.
    pub all: [Vec<Rule>; 2],
    /// How many ask for what is not known here: whose a program is, ports, protocols, services. None of these holds.
    pub unknown: usize,
}

impl Netlink {
    /// Linux's rules.
    ///
    /// # Errors
    /// The kernel tells nothing.
    pub fn rules(&mut self) -> Result<Rules, NetlinkError> {
        let mut rules = Rules::default();
        for (family, all) in [AddressFamily::Inet, AddressFamily::Inet6].into_iter().zip(&mut rules.all) {
            for message in self.rules_of(family)? {
                match Rule::of(message) {
                    Some(rule) => all.push(rule),
                    None => rules.unknown += 1,
                }
            }
            if all.is_empty() {
                all.push(Rule::main(family == AddressFamily::Inet6));
            }
        }
        Ok(rules)
    }

    fn rules_of(&mut self, family: AddressFamily) -> Result<Vec<RuleMessage>, NetlinkError> {
        let mut question = RuleMessage::default();
        question.header.family = family;
        let answers = match self.dump(RouteNetlinkMessage::GetRule(question)) {
            // A kernel without other tables than the main one has no rules, and one that has them for one IP alone
            // (`ipv6.disable=1`) does not know the other's.
            Err(NetlinkError::Refused(why))
                if matches!(why.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EAFNOSUPPORT)) =>
            {
                Vec::new()
            }
            answers => answers?,
        };
        let rule = |answer| match answer {
            RouteNetlinkMessage::NewRule(message) => Some(message),
            _ => None,
        };
        Ok(answers.into_iter().filter_map(rule).collect())
    }
}

impl Rules {
    /// Whether some rule asks a table.
    pub fn ask(&self, table: u32) -> bool {
        let asks = |rule: &Rule| matches!(rule.action, Action::Ask { table: asked, .. } if asked == table);
        self.all.iter().flatten().any(asks)
    }
}

impl Rule {
    /// That the main table of IPv4 or IPv6 (`six`) is asked for everything.
    pub fn main(six: bool) -> Self {
        let every: IpAddr = if six { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let action = Action::Ask { table: RouteHeader::RT_TABLE_MAIN.into(), suppressed: None };
        Self { priority: 0, from: (every, 0), to: (every, 0), others: true, inverted: false, action }
    }

    /// `None`: it asks for what is not known here.
    fn of(message: RuleMessage) -> Option<Self> {
        let header = message.header;
        if header.tos != 0 {
            return None;
        }
        let mut rule = Self::main(header.family == AddressFamily::Inet6);
        (rule.from.1, rule.to.1) = (header.src_len, header.dst_len);
        rule.inverted = header.flags.contains(RuleFlags::Invert);
        let (mut table, mut suppressed, mut next) = (u32::from(header.table), None, None);
        let (mut mark, mut mask) = (0, None);
        for attribute in message.attributes {
            match attribute {
                RuleAttribute::Priority(priority) => rule.priority = priority,
                RuleAttribute::Source(from) => rule.from.0 = from,
                RuleAttribute::Destination(to) => rule.to.0 = to,
                RuleAttribute::Table(full) => table = full,
                RuleAttribute::Goto(priority) => next = Some(priority),
                // -1: none.
                RuleAttribute::SuppressPrefixLen(length) => suppressed = u8::try_from(length).ok(),
                RuleAttribute::SuppressIfGroup(u32::MAX) => {}
                RuleAttribute::FwMark(wanted) => mark = wanted,
                RuleAttribute::FwMask(which) => mask = Some(which),
                RuleAttribute::Iifname(name) => rule.others &= name == "lo",
                // Of those that are bound to an interface; of a VRF's; of a tunnel's.
                RuleAttribute::Oifname(_) | RuleAttribute::L3MDev(true) => rule.others = false,
                RuleAttribute::TunId(tunnel) => rule.others &= tunnel == 0,
                RuleAttribute::UidRange(uids) if (uids.start, uids.end) != (0, u32::MAX) => return None,
                RuleAttribute::IpProtocol(_)
                | RuleAttribute::SourcePortRange(_)
                | RuleAttribute::DestinationPortRange(_)
                | RuleAttribute::SuppressIfGroup(_) => return None,
                RuleAttribute::Other(more) if more.kind() != PADDING => return None,
                _ => {}
            }
        }
        rule.others &= mark & mask.unwrap_or(u32::MAX) == 0;
        rule.action = match header.action {
            // Our own addresses are none of a route's business here.
            RuleAction::ToTable if table == LOCAL => Action::GoOn,
            RuleAction::ToTable => Action::Ask { table, suppressed },
            RuleAction::Goto => next.map_or(Action::GoOn, Action::GoTo),
            RuleAction::Blackhole | RuleAction::Unreachable | RuleAction::Prohibit => Action::Refuse,
            _ => Action::GoOn,
        };
        Some(rule)
    }
}

/// The table of a machine's own addresses (`RT_TABLE_LOCAL`, rtnetlink.h).
const LOCAL: u32 = 255;
/// `FRA_PAD` (fib_rules.h).
const PADDING: u16 = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_whose_rules_linux_does_not_know_has_none() {
        let mut netlink = Netlink::open().unwrap();
        assert_eq!(netlink.rules_of(AddressFamily::Phonet).unwrap(), []);
        assert_ne!(netlink.rules_of(AddressFamily::Inet).unwrap(), []);
    }
}
