//! What Linux knows about an interface, and the changes of it.

mod rig;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use silk_device::netlink::{
    Action, Change, Finder, LocalAddress, Neighbour, Netlink, NetlinkError, Reach, Rule, Table, TableRoute,
    Target, Watch,
};
use silk_device::readable;
use silk_wire::MacAddr;

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// `right` as a host has it: an address, a gateway, and an MTU of its own for one network.
fn configure() -> (Netlink, u32) {
    rig::ip("link set right address 02:00:00:00:00:02");
    rig::ip("addr add 10.0.0.2/24 dev right");
    rig::ip("route add default via 10.0.0.1");
    rig::ip("route add 198.51.100.0/24 via 10.0.0.1 mtu 1400 initcwnd 20");
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.interface("right").unwrap().index;
    (netlink, index)
}

#[test]
fn an_interface_and_its_addresses() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        let right = netlink.interface("right").unwrap();
        assert_eq!((right.name.as_str(), right.mac), ("right", MacAddr([2, 0, 0, 0, 0, 2])));
        assert_eq!((right.mtu, right.running, right.veth), (1500, true, true));
        let address = LocalAddress { interface: index, address: OURS, prefix: 24, deprecated: false };
        assert_eq!(netlink.addresses(index).unwrap(), [address]);
        std::fs::write("/proc/sys/net/ipv6/conf/right/disable_ipv6", "0").unwrap();
        rig::ip("address add fd00::2/64 dev right nodad");
        rig::ip("address add fd00::3/64 dev right nodad preferred_lft 0");
        let wide = |address: &str, deprecated| LocalAddress {
            interface: index,
            address: address.parse().unwrap(),
            prefix: 64,
            deprecated,
        };
        let all = netlink.addresses(index).unwrap();
        let expected = [address, wide("fd00::2", false), wide("fd00::3", true)];
        assert!(expected.iter().all(|local| all.contains(local)), "{all:?}");

        rig::ip("link set left down");
        assert!(!netlink.interface("right").unwrap().running, "the carrier is gone");
        assert!(!netlink.interface("lo").unwrap().veth);
        assert!(matches!(netlink.interface("nothing"), Err(NetlinkError::Refused(_))));
    });
}

#[test]
fn the_tables_that_rules_ask() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        for key in ["all", "right", "lo"] {
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{key}/disable_ipv6"), "0").unwrap();
        }
        rig::ip("link set lo up");
        rig::ip("address add fd00::2/64 dev right nodad");
        rig::ip("route add 203.0.113.0/25 via 10.0.0.9 metric 7 src 10.0.0.2");
        rig::ip("route add blackhole 203.0.113.128/25");
        rig::ip("route add unreachable 2001:db8::/32");
        rig::ip("route add prohibit 2001:db8:1::/48");
        rig::ip("route add throw 100.64.0.0/10");
        rig::ip("route add 192.0.2.0/24 nexthop via 10.0.0.3 dev right nexthop dev lo");
        rig::ip("route add 100.64.9.0/24 via inet6 fd00::9 dev right");
        // None of these is followed: that of a table that no rule asks, one for a service, one for some sources.
        rig::ip("route add 100.65.0.0/16 via 10.0.0.3 table 7");
        rig::ip("route add 100.66.0.0/16 via 10.0.0.3 tos 0x10");
        rig::ip("route add 2001:db8:2::/48 from fd00::/64 dev right");
        rig::ip("route add 2001:db8:3::/48 via fd00::9 metric 5");
        let Table { routes, beyond, rules } = netlink.table(100).unwrap();
        assert!(rules.ask(254) && !rules.ask(7));
        assert_eq!(beyond, 0);
        let mut told: Vec<String> = routes
            .iter()
            .filter(|route| !route.network.to_string().starts_with("fe80"))
            .map(|TableRoute { table: _, network, prefix, rank, source, mtu, target }| {
                let source = source.map_or(String::new(), |source| format!(" from {source}"));
                let hop = |&(on, router): &(u32, Option<IpAddr>)| {
                    let on = if on == index { "right" } else { "other" };
                    router.map_or(format!(" {on}"), |router| format!(" {router}@{on}"))
                };
                let to = match target {
                    Target::Over(hops) if hops.is_empty() => " Linux".to_owned(),
                    Target::Over(hops) => hops.iter().map(hop).collect(),
                    Target::Nowhere => " nowhere".to_owned(),
                    Target::Beyond => " beyond".to_owned(),
                };
                let mtu = mtu.map_or(String::new(), |mtu| format!(" of {mtu}"));
                format!("{network}/{prefix}{to} {}{source}{mtu}", rank.0)
            })
            .collect();
        told.sort();
        let expected = [
            "0.0.0.0/0 10.0.0.1@right 0",
            "10.0.0.0/24 right 0 from 10.0.0.2",
            "100.64.0.0/10 beyond 0",
            "100.64.9.0/24 Linux 0",
            "192.0.2.0/24 10.0.0.3@right other 0",
            "198.51.100.0/24 10.0.0.1@right 0 of 1400",
            "2001:db8:1::/48 nowhere 1024",
            "2001:db8:3::/48 fd00::9@right 5",
            "2001:db8::/32 nowhere 1024",
            "203.0.113.0/25 10.0.0.9@right 7 from 10.0.0.2",
            "203.0.113.128/25 nowhere 0",
            "fd00::/64 right 256",
        ];
        assert_eq!(told, expected);
        let few = netlink.table(2).unwrap();
        assert_eq!((few.routes.len(), few.beyond), (4, routes.len() - 4), "of each IP so many");
        rig::ip("rule add from 10.0.0.2 lookup 7");
        let more = netlink.table(100).unwrap();
        let new: Vec<_> = more.routes.iter().filter(|route| !routes.contains(route)).collect();
        let expected = (7, IpAddr::from([100, 65, 0, 0]), 16);
        assert_eq!(new.iter().map(|r| (r.table, r.network, r.prefix)).collect::<Vec<_>>(), [expected]);
    });
}

#[test]
fn the_rules_of_both_families() {
    rig::with_veth(|| {
        let (mut netlink, _) = configure();
        let mut watch = Watch::open().unwrap();
        rig::ip("rule add priority 1 from 10.0.0.0/24 to 192.0.2.0/25 lookup 1000");
        rig::ip("rule add priority 2 not fwmark 51820 lookup 51820");
        rig::ip("rule add priority 3 lookup main suppress_prefixlength 0");
        rig::ip("rule add priority 4 fwmark 0x10/0xf0 goto 9");
        rig::ip("rule add priority 5 fwmark 0/0xf0 iif lo nop");
        rig::ip("rule add priority 6 iif right lookup 7");
        rig::ip("rule add priority 7 oif right lookup 7");
        rig::ip("rule add priority 8 to 198.51.100.0/24 prohibit");
        rig::ip("rule add priority 9 from all blackhole");
        // What is asked here is not known.
        rig::ip("rule add priority 10 uidrange 1000-1000 lookup 7");
        rig::ip("rule add priority 11 dport 80 lookup 7");
        rig::ip("rule add priority 12 tos 0x10 lookup 7");
        rig::ip("rule add priority 13 ipproto tcp lookup 7");
        rig::ip("-6 rule add priority 1 from fd00::/64 unreachable");
        assert!(watch.changes().unwrap().contains(&Change::Routes));
        let told = netlink.rules().unwrap();
        assert_eq!(told.unknown, 4);
        let [four, six] = told.all;
        let ask = |table| Action::Ask { table, suppressed: None };
        let (any, all) = ((IpAddr::from([0; 4]), 0), Rule::main(false));
        let own = |priority, action| Rule { priority, action, ..all.clone() };
        let network = |text: &str, length| (text.parse::<IpAddr>().unwrap(), length);
        let expected = [
            own(0, Action::GoOn),
            Rule { from: network("10.0.0.0", 24), to: network("192.0.2.0", 25), ..own(1, ask(1000)) },
            Rule { others: false, inverted: true, ..own(2, ask(51820)) },
            own(3, Action::Ask { table: 254, suppressed: Some(0) }),
            Rule { others: false, ..own(4, Action::GoTo(9)) },
            own(5, Action::GoOn),
            Rule { others: false, ..own(6, ask(7)) },
            Rule { others: false, ..own(7, ask(7)) },
            Rule { to: network("198.51.100.0", 24), ..own(8, Action::Refuse) },
            Rule { from: any, ..own(9, Action::Refuse) },
            own(32766, ask(254)),
            own(32767, ask(253)),
        ];
        assert_eq!(four, expected);
        let wide =
            Rule { priority: 1, from: network("fd00::", 64), action: Action::Refuse, ..Rule::main(true) };
        let expected = [
            Rule { action: Action::GoOn, ..Rule::main(true) },
            wide,
            Rule { priority: 32766, ..Rule::main(true) },
        ];
        assert_eq!(six, expected);
    });
}

#[test]
fn a_route_with_hundreds_of_next_hops_hides_no_other() {
    rig::with_veth(|| {
        let (mut netlink, _) = configure();
        let hop = |n: u8| format!(" nexthop via 10.0.0.{n} dev right");
        rig::ip(&format!("route add 172.16.0.0/12{}", (3..=250).map(hop).collect::<String>()));
        rig::ip("route add 192.168.0.0/16 via 10.0.0.1");
        let routes = netlink.table(100).unwrap().routes;
        let hops = |network: [u8; 4]| {
            let route = routes.iter().find(|route| route.network == IpAddr::from(network))?;
            if let Target::Over(hops) = &route.target { Some(hops.len()) } else { None }
        };
        assert_eq!((hops([172, 16, 0, 0]), hops([192, 168, 0, 0])), (Some(248), Some(1)));
    });
}

#[test]
fn a_neighbour_is_probed_and_found() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        let mut watch = Watch::open().unwrap();
        assert_eq!(netlink.neighbour(index, THEIRS).unwrap(), None);
        netlink.probe(index, THEIRS).unwrap();
        let is = |reach| Some(Neighbour { interface: index, address: THEIRS, reach });
        assert_eq!(netlink.neighbour(index, THEIRS).unwrap(), is(Reach::Pending));

        // The answer of a host that is not there to ask.
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        rig::ip("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 nud reachable dev right");
        assert_eq!(netlink.neighbour(index, THEIRS).unwrap(), is(Reach::At(mac)));
        let changes = watch.changes().unwrap();
        assert!(changes.contains(&Change::Neighbour(is(Reach::At(mac)).unwrap())), "{changes:?}");

        rig::ip("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 nud stale dev right");
        assert_eq!(netlink.neighbours(index).unwrap(), [is(Reach::Stale(mac)).unwrap()]);
    });
}

#[test]
fn a_neighbour_that_nobody_is_to_be_asked_about_is_found() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        rig::ip("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 nud noarp dev right");
        let found = Neighbour { interface: index, address: THEIRS, reach: Reach::At(mac) };
        assert_eq!(netlink.neighbour(index, THEIRS).unwrap(), Some(found));
        assert_eq!(Finder::open(index).unwrap().ask(THEIRS), Some((THEIRS, Some(mac.0))));

        rig::ip("neigh replace 10.0.0.1 lladdr 00:00:00:00:00:00 nud noarp dev right");
        assert_eq!(netlink.neighbour(index, THEIRS).unwrap(), None);
    });
}

#[test]
fn an_interface_that_is_gone_stays_gone_whoever_gets_its_number() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        let device = netlink.interface("left").unwrap().index;
        let open = || Finder::open(index).unwrap();
        let (mut own, mut upon) = (open(), open().over(device));
        // One that leaves a bridge is still there.
        rig::ip("link add bridge type bridge");
        rig::ip("link set right master bridge");
        rig::ip("link set right nomaster");
        for finder in [&mut own, &mut upon] {
            finder.changes();
            assert_eq!(finder.interface().unwrap().map(|now| now.index), Some(index));
            assert_ne!(finder.addresses().unwrap(), []);
        }
        rig::ip("link del right");
        rig::ip(&format!("link add right index {index} type bridge"));
        rig::ip("addr add 10.0.0.2/24 dev right");
        for finder in [&mut own, &mut upon] {
            finder.changes();
            assert!(finder.has_moved());
            assert_eq!(finder.interface().unwrap(), None);
            assert_eq!(finder.addresses().unwrap(), []);
        }
        assert_ne!(open().addresses().unwrap(), []);
    });
}

#[test]
fn a_neighbour_that_linux_is_not_sure_of_is_used_and_looked_for_until_it_is_found_to_be_gone() {
    rig::with_veth(|| {
        let (_, index) = configure();
        for (key, value) in [("delay_first_probe_time", "1"), ("retrans_time_ms", "50")] {
            std::fs::write(format!("/proc/sys/net/ipv4/neigh/right/{key}"), value).unwrap();
        }
        rig::ip("neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 nud stale dev right");
        let mut finder = Finder::open(index).unwrap();
        assert_eq!(finder.ask(THEIRS), Some((THEIRS, Some([2, 0, 0, 0, 0, 1]))));
        while !finder.changes().contains(&(THEIRS, None)) {
            assert!(readable(finder.fd(), Duration::from_secs(20)).unwrap(), "Linux does not look for it");
        }
    });
}

#[test]
fn changes_are_told_as_they_happen() {
    rig::with_veth(|| {
        let mut watch = Watch::open().unwrap();
        assert_eq!(watch.changes().unwrap(), []);
        let (mut netlink, index) = configure();
        assert!(readable(watch.fd(), Duration::from_secs(2)).unwrap());
        let changes = watch.changes().unwrap();
        assert!(changes.contains(&Change::Addresses) && changes.contains(&Change::Routes), "{changes:?}");
        let now = Change::Interface(netlink.interface("right").unwrap());
        assert!(changes.contains(&now), "{changes:?}");
        rig::ip("link del right");
        assert!(watch.changes().unwrap().contains(&Change::Gone(index)));
    });
}
