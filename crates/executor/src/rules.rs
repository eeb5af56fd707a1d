//! The routes that count for packets from one address, where rules say which of Linux's tables are asked (ip-rule(8)). A rule
//! asks one table after the other; what comes of it is one list again, in which the longest prefix counts.

use silk_device::netlink::{Action, Rule, Table, TableRoute, Target};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// A table that is asked, or a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which table, and the longest prefix there that does not count; `None`: nothing is sent.
    table: Option<(u32, Option<u8>)>,
    /// For what goes to this network;
    to: (IpAddr, u8),
    /// or to all others.
    outside: bool,
}

/// What is asked for packets of IPv4 or IPv6 (`six`) that carry the address `source`, or none yet.
pub fn steps(table: &Table, six: bool, source: Option<IpAddr>) -> Vec<Step> {
    let rules = &table.rules.all[usize::from(six)];
    let (mut steps, mut next) = (Vec::new(), 0);
    while let Some(rule) = rules.get(next) {
        next += 1;
        let Some((to, outside)) = holds(rule, source) else { continue };
        let asked = match rule.action {
            Action::Ask { table, suppressed } => Some((table, suppressed)),
            Action::Refuse => None,
            Action::GoOn => continue,
            Action::GoTo(priority) => {
                let ahead = rules[next..].iter().position(|rule| rule.priority == priority);
                // For some destinations alone that is not followed.
                next += ahead.filter(|_| to.1 == 0 && !outside).unwrap_or(0);
                continue;
            }
        };
        steps.push(Step { table: asked, to, outside });
    }
    steps
}

/// For which destinations a rule holds; `None`: for none.
fn holds(rule: &Rule, source: Option<IpAddr>) -> Option<((IpAddr, u8), bool)> {
    let from = rule.from.1 == 0 || source.is_some_and(|source| is_in(source, rule.from));
    let everywhere = (rule.to.0, 0);
    match (from && rule.others, rule.inverted, rule.to.1) {
        (true, false, _) => Some((rule.to, false)),
        (false, true, _) => Some((everywhere, false)),
        (true, true, 1..) => Some((rule.to, true)),
        (true, true, 0) | (false, false, _) => None,
    }
}

/// The routes of IPv4 or IPv6 (`six`) that come of these steps, the better of equals first. `routes` are all of them, sorted so.
pub fn routes(routes: &[TableRoute], six: bool, steps: &[Step]) -> Vec<TableRoute> {
    let of_family = |route: &&TableRoute| route.network.is_ipv6() == six;
    let all = steps.iter().rev().fold(Vec::new(), |below, step| {
        let upper = step.routes(routes.iter().filter(of_family));
        if below.is_empty() { upper } else { over(upper, below) }
    });
    let nothing_beyond = |route: TableRoute| match route.target {
        // The last table that is asked has none.
        Target::Beyond => TableRoute { target: Target::Nowhere, ..route },
        _ => route,
    };
    all.into_iter().map(nothing_beyond).collect()
}

impl Step {
    /// What this step alone says.
    fn routes<'r>(&self, all: impl Iterator<Item = &'r TableRoute>) -> Vec<TableRoute> {
        let Some((number, suppressed)) = self.table else {
            let inside = vec![everywhere(self.to.0, Target::Nowhere)];
            return self.restrict(inside);
        };
        // A refusal counts however short its prefix is: the kernel asks for the prefix of what leads somewhere alone
        // (`fib_rules_lookup`).
        let counts = |route: &TableRoute| {
            route.target == Target::Nowhere || suppressed.is_none_or(|longest| route.prefix > longest)
        };
        let beyond = |route: TableRoute| TableRoute { target: Target::Beyond, ..route };
        let asked = all.filter(|route| route.table == number).cloned();
        self.restrict(asked.map(|route| if counts(&route) { route } else { beyond(route) }).collect())
    }

    /// The same for the destinations of this step.
    fn restrict(&self, all: Vec<TableRoute>) -> Vec<TableRoute> {
        let (network, prefix) = self.to;
        if prefix == 0 {
            return all;
        }
        let (mut inside, outside): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|route| route.prefix >= prefix && is_in(route.network, self.to));
        let of_all = |target| TableRoute { network, prefix, ..everywhere(network, target) };
        if self.outside {
            return outside.into_iter().chain([of_all(Target::Beyond)]).collect();
        }
        let around = outside.into_iter().filter(|route| is_in(network, (route.network, route.prefix)));
        inside.extend(narrowed(around.collect(), (network, prefix)));
        inside
    }
}

/// The routes of a table, and where it has none those of the tables below it.
fn over(upper: Vec<TableRoute>, below: Vec<TableRoute>) -> Vec<TableRoute> {
    let above = Known::of(&upper);
    let lies_open =
        |route: &TableRoute| above.longest(route.network, route.prefix).is_none_or(|beyond| beyond);
    // Of equals the first says whether they count.
    let counts = |route: &TableRoute| lies_open(route) == (route.target == Target::Beyond);
    let (beyond, mut all): (Vec<_>, Vec<_>) =
        upper.into_iter().filter(counts).partition(|route| route.target == Target::Beyond);
    for hole in beyond {
        let around = |route: &&TableRoute| {
            route.prefix <= hole.prefix && is_in(hole.network, (route.network, route.prefix))
        };
        let around = below.iter().filter(around).cloned().collect();
        let seen = narrowed(around, (hole.network, hole.prefix));
        all.extend(if seen.is_empty() { vec![hole] } else { seen });
    }
    let known: BTreeSet<_> = all.iter().map(|route| (route.prefix, route.network)).collect();
    let is_new = |route: &TableRoute| !known.contains(&(route.prefix, route.network));
    all.extend(below.into_iter().filter(|route| lies_open(route) && is_new(route)));
    all
}

/// Of routes that all lead to a network and beyond it those with the longest prefix, for that network alone.
fn narrowed(around: Vec<TableRoute>, (network, prefix): (IpAddr, u8)) -> Vec<TableRoute> {
    let longest = around.iter().map(|route| route.prefix).max();
    let those = around.into_iter().filter(|route| Some(route.prefix) == longest);
    those.map(|route| TableRoute { network, prefix, ..route }).collect()
}

/// Which networks a table knows, and whether it leaves them to the tables below it.
struct Known {
    prefixes: BTreeSet<u8>,
    beyond: HashMap<(u8, u128), bool>,
}

impl Known {
    fn of(routes: &[TableRoute]) -> Self {
        let mut beyond = HashMap::new();
        for route in routes {
            let key = (route.prefix, bits(route.network, route.prefix));
            beyond.entry(key).or_insert(route.target == Target::Beyond);
        }
        Self { prefixes: routes.iter().map(|route| route.prefix).collect(), beyond }
    }

    /// What the longest prefix says that has all of a network.
    fn longest(&self, network: IpAddr, prefix: u8) -> Option<bool> {
        let around = self.prefixes.range(..=prefix).rev();
        around.map(|length| (*length, bits(network, *length))).find_map(|key| self.beyond.get(&key).copied())
    }
}

fn everywhere(like: IpAddr, target: Target) -> TableRoute {
    let network = match like {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    };
    TableRoute { table: 0, network, prefix: 0, rank: (0, 1), source: None, mtu: None, target }
}

/// Whether an address is of a network.
fn is_in(address: IpAddr, (network, prefix): (IpAddr, u8)) -> bool {
    address.is_ipv6() == network.is_ipv6() && bits(address, prefix) == bits(network, prefix)
}

/// As many bits of an address as a prefix has.
fn bits(address: IpAddr, prefix: u8) -> u128 {
    let (bits, all) = match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    bits.checked_shr(u32::from(all - prefix.min(all))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use silk_device::netlink::Rules;

    /// A network of sixteen addresses is all there is.
    fn at(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn network() -> impl Strategy<Value = (IpAddr, u8)> {
        (0u8..16, prop::sample::select(vec![0u8, 28, 29, 30, 31, 32]))
            .prop_map(|(n, prefix)| {
                (if prefix == 0 { at(0) } else { at(n & (0xff << (32 - prefix))) }, prefix)
            })
            .prop_map(|(address, prefix)| (if prefix == 0 { [0; 4].into() } else { address }, prefix))
    }

    fn route() -> impl Strategy<Value = TableRoute> {
        let target = prop_oneof![
            4 => (1u32..9).prop_map(|interface| Target::Over(vec![(interface, None)])),
            1 => Just(Target::Nowhere),
            2 => Just(Target::Beyond),
        ];
        (1u32..4, network(), 0u32..3, target).prop_map(|(table, (network, prefix), metric, target)| {
            TableRoute { table, network, prefix, rank: (metric, 1), source: None, mtu: None, target }
        })
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let asked = (1u32..4, prop::option::weighted(0.3, prop::sample::select(vec![0u8, 28, 30])));
        let action = prop_oneof![
            8 => asked.prop_map(|(table, suppressed)| Action::Ask { table, suppressed }),
            1 => Just(Action::Refuse),
            1 => Just(Action::GoOn),
            1 => (0u32..8).prop_map(Action::GoTo),
        ];
        (network(), network(), any::<[bool; 2]>(), action).prop_map(
            |(from, to, [others, inverted], action)| {
                let to = if matches!(action, Action::GoTo(_)) { ([0; 4].into(), 0) } else { to };
                Rule { priority: 0, from, to, others, inverted, action }
            },
        )
    }

    /// As the kernel does it (`fib_rules_lookup`, `fib_table_lookup`).
    fn asked(table: &Table, source: IpAddr, to: IpAddr) -> Option<Target> {
        let rules = &table.rules.all[0];
        let mut next = 0;
        while let Some(rule) = rules.get(next) {
            next += 1;
            let is_so = is_in(source, rule.from) && is_in(to, rule.to) && rule.others;
            if is_so == rule.inverted {
                continue;
            }
            match rule.action {
                Action::GoOn => {}
                Action::Refuse => return None,
                Action::GoTo(priority) => {
                    let ahead = rules[next..].iter().position(|rule| rule.priority == priority);
                    next += ahead.unwrap_or(0);
                }
                Action::Ask { table: number, suppressed } => {
                    let all = table.routes.iter().filter(|route| route.table == number);
                    match longest(all, to) {
                        Some(TableRoute { target: Target::Nowhere, .. }) => return None,
                        Some(route) if suppressed.is_some_and(|longest| route.prefix <= longest) => {}
                        Some(TableRoute { target: Target::Beyond, .. }) | None => {}
                        Some(route) => return Some(route.target.clone()),
                    }
                }
            }
        }
        None
    }

    fn longest<'r>(routes: impl Iterator<Item = &'r TableRoute>, to: IpAddr) -> Option<&'r TableRoute> {
        let all: Vec<_> = routes.filter(|route| is_in(to, (route.network, route.prefix))).collect();
        let longest = all.iter().map(|route| route.prefix).max()?;
        all.into_iter().find(|route| route.prefix == longest)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn one_list_says_what_the_rules_and_their_tables_say(
            mut routes in prop::collection::vec(route(), 0..12),
            mut rules in prop::collection::vec(rule(), 0..8),
            source in 0u8..16,
        ) {
            routes.sort_by_key(|route| route.rank);
            (0..).zip(&mut rules).for_each(|(n, rule)| rule.priority = n);
            let table = Table { rules: Rules { all: [rules, Vec::new()], unknown: 0 }, routes, beyond: 0 };
            let source = at(source);
            let list = super::routes(&table.routes, false, &steps(&table, false, Some(source)));
            for to in (0..16).map(at).chain([IpAddr::from([8, 8, 8, 8])]) {
                let found = longest(list.iter(), to).map(|route| route.target.clone());
                let found = found.filter(|target| *target != Target::Nowhere);
                prop_assert_eq!(found, asked(&table, source, to), "to {}", to);
            }
        }
    }

    #[test]
    fn a_refusal_counts_though_routes_of_its_length_are_suppressed() {
        let all = |table, metric, target| TableRoute {
            table,
            rank: (metric, 1),
            ..everywhere([0; 4].into(), target)
        };
        let tunnel = Target::Over(vec![(7, None)]);
        let ask = |table, suppressed| Rule { action: Action::Ask { table, suppressed }, ..Rule::main(false) };
        let rules = Rules { all: [vec![ask(254, Some(0)), ask(7, None)], vec![]], unknown: 0 };
        let led = |main: &[Target]| {
            let main = main.iter().zip(0..).map(|(target, metric)| all(254, metric, target.clone()));
            let routes = main.chain([all(7, 0, tunnel.clone())]).collect();
            let table = Table { rules: rules.clone(), routes, beyond: 0 };
            let list = super::routes(&table.routes, false, &steps(&table, false, None));
            longest(list.iter(), [8, 8, 8, 8].into()).map(|route| route.target.clone())
        };
        let router = Target::Over(vec![(1, None)]);
        assert_eq!(led(&[]), Some(tunnel.clone()));
        assert_eq!(led(std::slice::from_ref(&router)), Some(tunnel.clone()));
        assert_eq!(led(&[Target::Nowhere]), Some(Target::Nowhere));
        // Where there is a better route it is not asked for.
        assert_eq!(led(&[router, Target::Nowhere]), Some(tunnel.clone()));
    }

    #[test]
    fn what_has_no_address_yet_fulfils_no_rule_that_asks_for_one() {
        let own = Rule {
            from: (at(1), 32),
            action: Action::Ask { table: 7, suppressed: None },
            ..Rule::main(false)
        };
        let rules = Rules { all: [vec![own, Rule::main(false)], vec![Rule::main(true)]], unknown: 0 };
        let table = Table { rules, ..Table::default() };
        let tables = |source| -> Vec<_> {
            let steps = steps(&table, false, source);
            steps.into_iter().map(|step| step.table.unwrap().0).collect()
        };
        assert_eq!([tables(None), tables(Some(at(2)))], [[254], [254]]);
        assert_eq!(tables(Some(at(1))), [7, 254]);
    }
}
