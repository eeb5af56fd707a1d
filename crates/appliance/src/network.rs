//! Opens a device for an appliance, and says what its modules must know of it: addresses, routers,
//! who keeps the neighbours.

use crate::receiving::Receiving;
use silk_device::netlink::{Interface, Netlink, NetlinkError};
use silk_device::xdp::{Limit, Strangers};
use silk_device::{End, Schedule, packet, tap, xdp};
use silk_executor::join::tables_of;
use silk_executor::link::{self, GSO, own_mac, tables_in_memory};
use silk_modules::{Device, Setup, Standing};
use silk_path::classify::layout::DEVICES;
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
    pub address: Option<(IpAddr, u8)>,
    /// The router, with an address of its own.
    pub gateway: Option<IpAddr>,
    /// Entries of the receive ring with `Xdp`, a power of two.
    pub ring: u32,
    /// With `Xdp`: the receive work is done on the appliance's own CPUs; where threads do it, scheduled like this.
    pub receive_here: Option<Schedule>,
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
    /// The receive work, where it is done on the appliance's own CPUs.
    pub receiving: Option<Receiving>,
}

/// Buckets of the flow table: an appliance has few paths.
const BUCKETS: u32 = 1 << 10;

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

    /// Every address of an IP that it has one of: of IPv4, if it has.
    pub fn anywhere(&self) -> IpAddr {
        let four = self.setup.standing.addresses().any(|(address, _)| address.is_ipv4());
        if four { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
    }

    /// A network on one end of a memory link, where the appliance has `address`. For tests.
    ///
    /// # Errors
    /// No memory.
    pub fn on_link(address: (Ipv4Addr, u8)) -> Result<(Self, End), String> {
        let pair = silk_device::link::pair(&silk_device::link::Options::default());
        let (end, other) = pair.map_err(|error| error.to_string())?;
        let standing = Standing::of(&[(address.0.into(), address.1)], None);
        let tables = tables_of(tables_in_memory(BUCKETS)?, [0; DEVICES])?;
        Ok((assemble(end, tables, Device::default(), standing, false)?, other))
    }
}

fn open_xdp(options: &NetworkOptions) -> Result<Network, String> {
    let mode = match options.receive_here {
        Some(_) => Receiving::mode(&interface_called(&options.interface)?),
        None => xdp::Mode::Best,
    };
    let wish = xdp::Options { ring: options.ring, buckets: BUCKETS, mode, ..xdp::Options::default() };
    let mut device = xdp::open(&options.interface, &wish).map_err(|error| error.to_string())?;
    let end = device.ends.pop().ok_or("the device has no end")?;
    let interface = device.interface.clone();
    for strangers in [Strangers::Linux(0), Strangers::Neighbours(0)] {
        let limit = options.linux_packets.map(Limit::per_second);
        device.limit(strangers, limit).map_err(|error| error.to_string())?;
    }
    let receiving =
        options.receive_here.map(|schedule| Receiving::start(&interface, schedule)).transpose()?;
    let standing = stands(&interface).map_err(|error| error.to_string())?;
    if standing.addresses().next().is_none() {
        return Err(format!(
            "`{}` has no address: give it one (`ip address add`), then start again",
            options.interface
        ));
    }
    let mtu = u16::try_from(interface.mtu).unwrap_or(u16::MAX);
    let link = Device { address: interface.mac.0, mtu, gso: GSO, checksum_offload: true };
    let network = assemble(end, tables_of(device.tables, [0; DEVICES])?, link, standing, true)?;
    Ok(Network { interface: Some(interface), xdp: Some(device), receiving, ..network })
}

fn open_own(options: &NetworkOptions) -> Result<Network, String> {
    let name = options.interface.as_str();
    let network = options.address.ok_or(
        "an address is missing: `packet` and `tap` need one of their own, which Linux does not have",
    )?;
    let (end, mac, mtu) = match options.kind {
        DeviceKind::Tap => {
            let end = tap::open(name, &tap::Options::default()).map_err(|error| error.to_string())?;
            (end, own_mac(), 1500)
        }
        _ => {
            let interface = interface_called(name)?;
            let addresses =
                link::own([network], interface.mac.0, false).into_iter().map(|(own, _)| own).collect();
            let wish = packet::Options { addresses, ..packet::Options::default() };
            let end = packet::open(name, &wish).map_err(|error| error.to_string())?;
            (end, interface.mac.0, u16::try_from(interface.mtu).unwrap_or(u16::MAX))
        }
    };
    let standing = Standing::of(&link::own([network], mac, false), options.gateway);
    let link = Device { address: mac, mtu, gso: GSO, checksum_offload: true };
    assemble(end, tables_of(tables_in_memory(BUCKETS)?, [0; DEVICES])?, link, standing, false)
}

/// How an interface stands that Linux shares.
fn stands(interface: &Interface) -> Result<Standing, NetlinkError> {
    let mut kernel = Netlink::open()?;
    let locals = [kernel.addresses(interface.index)?];
    let mut standing = link::shared(&locals, &kernel.table(link::ROUTES)?, &[interface.index]);
    link::serve_all(&mut standing, true);
    Ok(standing)
}

fn interface_called(name: &str) -> Result<Interface, String> {
    Netlink::open().and_then(|mut kernel| kernel.interface(name)).map_err(|error| error.to_string())
}

/// `shared`: Linux has the addresses too.
fn assemble(
    end: End,
    tables: Tables,
    device: Device,
    standing: Standing,
    shared: bool,
) -> Result<Network, String> {
    let owned = Owned { arp: !shared, icmp: !shared, fragments: !shared };
    let here: Vec<IpAddr> = standing.addresses().map(|(address, _)| address).collect();
    tables
        .configure(owned, Domains::default(), &[], &here)
        .map_err(|_| "the interface has more addresses than the classifier holds".to_owned())?;
    let setup = Setup { devices: vec![device], standing, neighbours_told: shared, ..Setup::new(tables) };
    Ok(Network { end, setup, interface: None, xdp: None, receiving: None })
}
