//! What modules must know of a link, whoever knows it: Linux, where it shares the interface, or the
//! configuration, where the address is a program's own.

use crate::join::random;
use crate::rules;
use silk_device::netlink::{LocalAddress, Table, TableRoute, Target};
use silk_modules::{Leads, Standing, Way};
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use std::net::IpAddr;

/// The largest message a Linux device cuts up itself, bytes with headers.
pub const GSO: u32 = 65_000;

/// As many routes of each IP are followed.
pub const ROUTES: usize = 4096;

/// Leaves out of the links' addresses those that the classifier has no room for, which holds them together: of addresses
/// of IPv6 as many are left as it holds, none without `six`, and fewer on the last link first.
pub fn serve_all(standing: &mut Standing, six: bool) {
    let four = standing.addresses().filter(|(address, _)| address.is_ipv4()).count();
    let mut room = if six { ADDRESSES6.min(ADDRESSES.saturating_sub(four)) } else { 0 };
    for link in &mut standing.links {
        let all = std::mem::take(link).into_iter();
        let (four, mut wide): (Vec<_>, Vec<_>) = all.partition(|(address, _)| address.is_ipv4());
        wide.truncate(room);
        room -= wide.len();
        *link = [four, wide].concat();
    }
}

/// The addresses of a device that is a program's own: those that it is told to have, and with one of IPv6, or where it is
/// to `have_six` all the same, the link-local one that goes with its Ethernet address (RFC 4291 §2.1).
pub fn own(told: impl IntoIterator<Item = (IpAddr, u8)>, mac: [u8; 6], have_six: bool) -> Vec<(IpAddr, u8)> {
    let mut addresses: Vec<_> = told.into_iter().collect();
    if have_six || addresses.iter().any(|(address, _)| address.is_ipv6()) {
        addresses.push((silk_wire::ipv6::link_local(mac).into(), 64));
    }
    addresses
}

/// How the links stand of interfaces that Linux shares, by device: its addresses on each, and its routes.
pub fn shared(locals: &[Vec<LocalAddress>], table: &Table, interfaces: &[u32]) -> Standing {
    let own = |local: &LocalAddress| (local.address, local.prefix);
    let deprecated = locals.iter().flatten().filter(|local| local.deprecated);
    Standing {
        links: locals.iter().map(|link| link.iter().map(own).collect()).collect(),
        // Linux finds out itself who else has its addresses.
        duplicate: Vec::new(),
        deprecated: deprecated.map(|local| local.address).collect(),
        ways: ways(table, None, interfaces),
        from: own_ways(table, locals, interfaces),
        narrowest: None,
    }
}

/// The ways for packets from each of our addresses for which other rules hold than for those that have none yet.
fn own_ways(table: &Table, locals: &[Vec<LocalAddress>], interfaces: &[u32]) -> Vec<(IpAddr, Vec<Way>)> {
    let special = |address: &IpAddr| {
        let steps = |source| rules::steps(table, address.is_ipv6(), source);
        steps(Some(*address)) != steps(None)
    };
    let addresses = locals.iter().flatten().map(|local| local.address).filter(special);
    addresses.map(|address| (address, ways(table, Some(address), interfaces))).collect()
}

/// The ways of Linux's tables for packets from an address of ours, or of those that have none yet, where silk shares these
/// interfaces, by device. Of the ways of one route the first is taken that leads over one of them.
fn ways(table: &Table, source: Option<IpAddr>, interfaces: &[u32]) -> Vec<Way> {
    let mut all = table.routes.clone();
    // What the kernel tells earlier of equals comes first.
    all.sort_by_key(|route| route.rank);
    let families =
        [false, true].into_iter().filter(|six| source.is_none_or(|source| source.is_ipv6() == *six));
    let routes = families.flat_map(|six| rules::routes(&all, six, &rules::steps(table, six, source)));
    let device = |index: u32| interfaces.iter().position(|interface| *interface == index);
    let way = |TableRoute { network, prefix, source, mtu, target, .. }: TableRoute| {
        let mtu = mtu.map(|mtu| mtu.min(u16::MAX.into()) as u16);
        let leads = match target {
            Target::Nowhere | Target::Beyond => Leads::Nowhere,
            Target::Over(hops) => {
                let ours = hops.into_iter().find_map(|(index, gateway)| Some((device(index)?, gateway)));
                ours.map_or(Leads::Elsewhere, |(link, gateway)| Leads::Over {
                    link: link as u8,
                    gateway,
                    source,
                    mtu,
                })
            }
        };
        Way { network, prefix, leads }
    };
    routes.map(way).collect()
}

/// A locally administered address of a link.
pub fn own_mac() -> [u8; 6] {
    let [_, _, a, b, c, d, e, _] = random().to_be_bytes();
    [2, a, b, c, d, e]
}

/// Words for the classifier's tables where no device has some: a flow table of so many buckets.
///
/// # Errors
/// There is no memory.
pub fn tables_in_memory(buckets: u32) -> Result<silk_device::Tables, String> {
    silk_device::Tables::in_memory(buckets).map_err(|error| format!("no memory for the classifier: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_device::netlink::{Rule, Rules};

    #[test]
    fn all_addresses_of_ipv4_are_served_and_of_ipv6_as_many_as_there_is_room_for() {
        let four: Vec<_> = (1..=12).map(|n| (IpAddr::from([10, 0, 0, n]), 24)).collect();
        let six: Vec<_> = (1..=12).map(|n| (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]), 64)).collect();
        let of = |addresses: &[(IpAddr, u8)], six| {
            let mut standing = Standing::of(addresses, None);
            serve_all(&mut standing, six);
            standing.links.remove(0)
        };
        let both = [&six[..], &four[..]].concat();
        assert_eq!(of(&both, false), four);
        let room = ADDRESSES6.min(ADDRESSES - four.len());
        assert_eq!(of(&both, true), [&four[..], &six[..room]].concat());
        assert_eq!(of(&six, true), six[..ADDRESSES6.min(12)]);
    }

    #[test]
    fn several_links_share_the_room() {
        let six = |n: u16, count: u16| -> Vec<(IpAddr, u8)> {
            (1..=count).map(|m| (IpAddr::from([0xfd00, n, 0, 0, 0, 0, 0, m]), 64)).collect()
        };
        let mut standing = Standing::of(&six(1, 5), None).and(&six(2, 5), None);
        serve_all(&mut standing, true);
        assert_eq!(standing.links, [six(1, 5), six(2, ADDRESSES6 as u16 - 5)]);
    }

    #[test]
    fn routes_are_ways_over_our_interfaces_elsewhere_or_nowhere() {
        let (network, router) = (IpAddr::from([172, 16, 0, 0]), Some(IpAddr::from([10, 0, 0, 9])));
        let route = |metric, target| TableRoute {
            table: 254,
            network,
            prefix: 12,
            rank: (metric, 1),
            source: None,
            mtu: Some(70_000),
            target,
        };
        let over = |hops: &[u32]| Target::Over(hops.iter().map(|index| (*index, router)).collect());
        let routes = vec![
            route(9, Target::Nowhere),
            route(1, over(&[7, 4, 3])),
            route(1, over(&[7])),
            route(0, Target::Over(Vec::new())),
        ];
        let rules = Rules { all: [vec![Rule::main(false)], vec![Rule::main(true)]], unknown: 0 };
        let told = ways(&Table { rules, routes, beyond: 0 }, None, &[3, 4]);
        let leads = Leads::Over { link: 1, gateway: router, source: None, mtu: Some(u16::MAX) };
        assert_eq!(
            told.iter().map(|way| way.leads).collect::<Vec<_>>(),
            [Leads::Elsewhere, leads, Leads::Elsewhere, Leads::Nowhere]
        );
    }

    #[test]
    fn a_link_address_of_ones_own_is_one_hosts_and_no_makers() {
        assert_eq!(own_mac()[0] & 3, 2);
    }
}
