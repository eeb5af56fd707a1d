//! Opens a device for an appliance, and says what its modules must know of it: addresses, routers,
//! who keeps the neighbours.

use crate::join::{random, tables_of};
use crate::receiving::Receiving;
use silk_device::napi::Schedule;
use silk_device::netlink::{Interface, Netlink, NetlinkError};
use silk_device::xdp::{Limit, Strangers};
use silk_device::{End, link, packet, tap, xdp};
use silk_modules::{Device, Setup};
use silk_path::Endpoint;
use silk_path::classify::layout::{ADDRESSES, ADDRESSES6};
use silk_path::classify::{Domains, Owned, Tables};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// AF_XDP: shares the interface and its addresses with Linux.
    Xdp,
    /// AF_PACKET: an address of its own on an interface that is there.
    Packet,
    /// A tap interface: Linux is the neighbour.
    Tap,
}

/// How the network is opened.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Which device.
    pub kind: DeviceKind,
    /// The interface.
    pub interface: String,
    /// The appliance's own address and its network's prefix; with `Xdp` Linux's are taken.
    pub address: Option<(Ipv4Addr, u8)>,
    /// The router, with an address of its own.
    pub gateway: Option<Ipv4Addr>,
    /// Entries of the receive ring with `Xdp`, a power of two.
    pub ring: u32,
    /// With `Xdp`: the receive work is done by threads on the appliance's own CPUs, scheduled like this.
    pub receive_threads: Option<Schedule>,
    /// With `Xdp`: so many packets in a second that no path owns are left to Linux, on each CPU that
    /// receives, and as many that neighbours ask by; what is more is dropped at interrupt time. `None`: all.
    pub linux_packets: Option<u64>,
}

/// An opened network.
pub struct Network {
    /// The appliance's end of the device.
    pub end: End,
    /// What the modules find around them.
    pub setup: Setup,
    /// The interface, where Linux shares it.
    pub interface: Option<Interface>,
    /// The XDP program, where there is one: dropping it detaches it.
    pub xdp: Option<xdp::Device>,
    /// The threads that do the receive work, where it has some of its own.
    pub receiving: Option<Receiving>,
}

/// Buckets of the flow table: an appliance has few paths.
const BUCKETS: u32 = 1 << 10;
/// The largest message a Linux device cuts up itself, bytes with headers.
const GSO: u32 = 65_000;

impl Network {
    /// Opens the network.
    ///
    /// # Errors
    /// What is wrong and what to do, as a sentence.
    pub fn open(options: &NetworkOptions) -> Result<Self, String> {
        match options.kind {
            DeviceKind::Xdp => open_xdp(options),
            DeviceKind::Packet | DeviceKind::Tap => open_own(options),
        }
    }

    /// A network on one end of a memory link, where the appliance has `address`. For tests.
    ///
    /// # Errors
    /// No memory.
    pub fn on_link(address: (Ipv4Addr, u8)) -> Result<(Self, End), String> {
        let (end, other) = link::pair(&link::Options::default()).map_err(|error| error.to_string())?;
        let own =
            Own { addresses: vec![(address.0.into(), address.1)], gateway: [None, None], shared: false };
        Ok((assemble(end, tables_in_memory()?, Device::default(), own)?, other))
    }
}

/// What is known of our addresses.
struct Own {
    addresses: Vec<(IpAddr, u8)>,
    /// The routers, over IPv4 and IPv6.
    gateway: [Option<IpAddr>; 2],
    /// Linux has the addresses too.
    shared: bool,
}

fn open_xdp(options: &NetworkOptions) -> Result<Network, String> {
    let wish = xdp::Options { ring: options.ring, buckets: BUCKETS, ..xdp::Options::default() };
    let mut device = xdp::open(&options.interface, &wish).map_err(|error| error.to_string())?;
    let end = device.ends.pop().ok_or("the device has no end")?;
    let interface = device.interface.clone();
    for strangers in [Strangers::Linux, Strangers::Neighbours] {
        let limit = options.linux_packets.map(Limit::per_second);
        device.limit(strangers, limit).map_err(|error| error.to_string())?;
    }
    let receiving = options.receive_threads.map(|schedule| Receiving::start(&interface, schedule));
    let receiving = receiving.transpose().map_err(|error| error.to_string())?;
    let own = linux_addresses(&interface).map_err(|error| error.to_string())?;
    if own.addresses.is_empty() {
        return Err(format!(
            "`{}` has no address: give it one (`ip address add`), then start again",
            options.interface
        ));
    }
    let mtu = u16::try_from(interface.mtu).unwrap_or(u16::MAX);
    let link = Device { address: interface.mac.0, mtu, gso: GSO, checksum_offload: true };
    let network = assemble(end, tables_of(device.tables, 0)?, link, own)?;
    Ok(Network { interface: Some(interface), xdp: Some(device), receiving, ..network })
}

/// The addresses that Linux has there, as many as the classifier holds.
fn linux_addresses(interface: &Interface) -> Result<Own, NetlinkError> {
    let mut kernel = Netlink::open()?;
    let all = kernel.addresses(interface.index)?;
    let (mut addresses, mut six): (Vec<_>, Vec<_>) =
        all.iter().map(|local| (local.address, local.prefix)).partition(|(address, _)| address.is_ipv4());
    six.truncate(ADDRESSES6.min(ADDRESSES.saturating_sub(addresses.len())));
    addresses.extend(six);
    // Any far address shows where the default route leads; nothing is sent there.
    let far: [IpAddr; 2] =
        [Ipv4Addr::new(192, 0, 2, 1).into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()];
    let gateway = far.map(|far| {
        let route = kernel.route(far, None).ok().filter(|route| route.interface == interface.index);
        route.and_then(|route| route.gateway)
    });
    Ok(Own { addresses, gateway, shared: true })
}

fn open_own(options: &NetworkOptions) -> Result<Network, String> {
    let name = options.interface.as_str();
    let (address, prefix) = options.address.ok_or(
        "an address is missing: `packet` and `tap` need one of their own, which Linux does not have",
    )?;
    let (end, mac, mtu) = match options.kind {
        DeviceKind::Tap => {
            let end = tap::open(name, &tap::Options::default()).map_err(|error| error.to_string())?;
            (end, own_mac(), 1500)
        }
        _ => {
            let interface = Netlink::open().and_then(|mut kernel| kernel.interface(name));
            let interface = interface.map_err(|error| error.to_string())?;
            let wish = packet::Options { addresses: vec![address.into()], ..packet::Options::default() };
            let end = packet::open(name, &wish).map_err(|error| error.to_string())?;
            (end, interface.mac.0, u16::try_from(interface.mtu).unwrap_or(u16::MAX))
        }
    };
    let own = Own {
        addresses: vec![(address.into(), prefix)],
        gateway: [options.gateway.map(IpAddr::from), None],
        shared: false,
    };
    let link = Device { address: mac, mtu, gso: GSO, checksum_offload: true };
    assemble(end, tables_in_memory()?, link, own)
}

/// A locally administered address.
fn own_mac() -> [u8; 6] {
    let [_, _, a, b, c, d, e, _] = random().to_be_bytes();
    [2, a, b, c, d, e]
}

fn tables_in_memory() -> Result<Tables, String> {
    let words = silk_device::Tables::in_memory(BUCKETS);
    tables_of(words.map_err(|error| format!("no memory for the classifier: {error}"))?, 0)
}

fn assemble(end: End, tables: Tables, device: Device, own: Own) -> Result<Network, String> {
    let owned = Owned { arp: !own.shared, icmp: !own.shared, fragments: !own.shared };
    let addresses: Vec<IpAddr> = own.addresses.iter().map(|(address, _)| *address).collect();
    tables
        .configure(owned, Domains::default(), &[], &addresses)
        .map_err(|_| "the interface has more addresses than the classifier holds".to_owned())?;
    let [four, six] = own.gateway.map(|gateway| gateway.map(|address| Endpoint::new(address, 0)));
    let setup = Setup {
        devices: vec![device],
        addresses: own.addresses,
        gateway: four.and_then(|end| end.ipv4()),
        gateway6: six.and_then(|end| end.ipv6()),
        neighbours_told: own.shared,
        ..Setup::new(tables)
    };
    Ok(Network { end, setup, interface: None, xdp: None, receiving: None })
}
