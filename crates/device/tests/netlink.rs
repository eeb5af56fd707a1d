//! What Linux knows about an interface, and the changes of it.

mod rig;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use silk_device::netlink::{Change, LocalAddress, Neighbour, Netlink, NetlinkError, Reach, Route, Watch};
use silk_device::readable;
use silk_wire::MacAddr;

const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// `right` as a host has it: an address, a gateway, and metrics of its own for one network.
fn configure() -> (Netlink, u32) {
    rig::ip("link set right address 02:00:00:00:00:02");
    rig::ip("addr add 10.0.0.2/24 dev right");
    rig::ip("route add default via 10.0.0.1");
    rig::ip("route add 198.51.100.0/24 via 10.0.0.1 mtu 1400 advmss 1200 initcwnd 20 rto_min 50ms");
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
        let address = LocalAddress { interface: index, address: OURS, prefix: 24 };
        assert_eq!(netlink.addresses(index).unwrap(), [address]);
        std::fs::write("/proc/sys/net/ipv6/conf/right/disable_ipv6", "0").unwrap();
        rig::ip("address add fd00::2/64 dev right nodad");
        let wide = LocalAddress { interface: index, address: "fd00::2".parse().unwrap(), prefix: 64 };
        let all = netlink.addresses(index).unwrap();
        assert!(all.contains(&address) && all.contains(&wide), "{all:?}");

        rig::ip("link set left down");
        assert!(!netlink.interface("right").unwrap().running, "the carrier is gone");
        assert!(!netlink.interface("lo").unwrap().veth);
        assert!(matches!(netlink.interface("nothing"), Err(NetlinkError::Refused(_))));
    });
}

#[test]
fn the_route_that_linux_would_take() {
    rig::with_veth(|| {
        let (mut netlink, index) = configure();
        let source = Some(OURS);
        let near = netlink.route(THEIRS, None).unwrap();
        assert_eq!(near, Route { interface: index, source, ..Route::default() });
        assert_eq!(near.next_hop(THEIRS), THEIRS);
        let far = netlink.route(FAR, None).unwrap();
        assert_eq!(far, Route { interface: index, gateway: Some(THEIRS), source, ..Route::default() });
        assert_eq!(far.next_hop(FAR), THEIRS);
        let metrics = netlink.route(Ipv4Addr::new(198, 51, 100, 7).into(), source).unwrap().metrics;
        let said = (metrics.mtu, metrics.advmss, metrics.initcwnd, metrics.initrwnd, metrics.rto_min);
        assert_eq!(said, (1400, 1200, 20, 0, 50));
        assert!(netlink.route(OURS, None).unwrap().local);
        rig::ip("route del default");
        assert!(matches!(netlink.route(FAR, None), Err(NetlinkError::Refused(_))));
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
