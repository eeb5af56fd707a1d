//! `[device]`: what connects silk to the network (design: devices link, tap, packet, xdp).
//! Whether the interface exists is found out when it is opened, not here.

use crate::address::{Interface, Mac, Network};
use crate::read::{Notes, Section, words};
use crate::route::{self, Route};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

words! {
    /// How frames come and go.
    pub enum DeviceKind {
        /// An interface shared with Linux: AF_XDP receives what belongs to paths.
        Xdp = "xdp",
        /// An interface shared with Linux, without XDP: AF_PACKET, an address of silk's own.
        Packet = "packet",
        /// A tap interface, made by the daemon.
        Tap = "tap",
        /// Memory: nobody is at its other end.
        Link = "link",
    }
}

words! {
    /// Where packets are told apart.
    pub enum XdpMode {
        /// In the interface's driver where it can, else in Linux's receive path; there, too, on a veth without a receive thread.
        Auto = "auto",
        /// In the driver, before Linux makes anything of a packet.
        Native = "native",
        /// In Linux's receive path, where large TCP messages arrive whole.
        Generic = "generic",
        /// At the ingress of Linux's traffic control: as `Generic`, but nothing is copied for it.
        Ingress = "ingress",
    }
}

words! {
    /// In which context the interface's receive processing runs.
    pub enum Napi {
        /// As it is set already.
        Inherit = "inherit",
        /// In a thread of the kernel's that can be pinned and is charged like any other.
        Threaded = "threaded",
    }
}

words! {
    /// How soon threaded receive processing takes packets in while a class above the ordinary is
    /// served.
    pub enum Receive {
        /// At once: it interrupts whatever has a lower priority.
        Prompt = "prompt",
        /// Whenever an ordinary thread sleeps: it interrupts none.
        Batched = "batched",
    }
}

/// `[device]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// How frames come and go.
    pub kind: DeviceKind,
    /// The interface; `None` for `link` alone.
    pub interface: Option<Interface>,
    /// Which hardware queues to receive from; `None` for all of them (xdp).
    pub queues: Option<Vec<u16>>,
    /// Where packets are told apart (xdp).
    pub mode: XdpMode,
    /// Frames in a receive ring; a power of two.
    pub ring: u32,
    /// Largest IP packet; `None` for the interface's own.
    pub mtu: Option<u16>,
    /// The IPv4 address that silk answers for; `None`: it speaks no IPv4 there, or shares Linux's (xdp).
    pub address: Option<Network>,
    /// Where packets for other networks go; in `address`'s network.
    pub gateway: Option<Ipv4Addr>,
    /// The IPv6 address that silk answers for, beside the link-local one of `mac`; `None`: it
    /// speaks no IPv6 there, or shares Linux's (xdp).
    pub address6: Option<Network<Ipv6Addr>>,
    /// Where packets for other networks go over IPv6.
    pub gateway6: Option<Ipv6Addr>,
    /// Networks that are reached by other routers, of either IP, or on the link (not xdp).
    pub routes: Vec<Route>,
    /// What routers of IPv6 advertise is heeded: addresses are made of their prefixes, and they lead to
    /// other networks where there is no `gateway6` (not xdp).
    pub router_advertisements: bool,
    /// What routers say of better first hops is heeded (not xdp).
    pub redirects: bool,
    /// The virtual LAN whose frames are silk's, 1 to 4094 (IEEE 802.1Q-2018 §9.6); `None`: frames
    /// without a tag are.
    pub vlan: Option<u16>,
    /// The hardware address, where silk has its own.
    pub mac: Option<Mac>,
    /// In which context receive processing runs (xdp).
    pub napi: Napi,
    /// The CPU that threaded receive processing is pinned to.
    pub napi_cpu: Option<u16>,
    /// How soon threaded receive processing takes packets in.
    pub receive: Receive,
    /// Packets in a second that are left to Linux where no path owns them, on each CPU that receives; `None`
    /// for as many as come (xdp).
    pub linux_packets: Option<u32>,
}

/// The least MTU of a link of IPv6 (RFC 8200 §5).
const LEAST_MTU6: u16 = 1280;
/// The most interfaces that one daemon serves: as many as its classifier tells apart.
const MOST: usize = 4;

/// `[device]`, or each `[[device]]`: the first, and the further ones.
pub(crate) fn read_all(file: &mut Section<'_, '_>) -> (Device, Vec<Device>) {
    if !file.is_list("device") {
        return (Device::read(file.table("device", "[device]")), Vec::new());
    }
    let place = file.span_of("device");
    let mut all = file.tables("device", "[[device]]", |section| {
        let spans = [section.span_of("kind"), section.span_of("interface")];
        (Device::read(section), spans)
    });
    if all.is_empty() {
        let help = "say at least where: `[device]` and `interface = \"eth0\"`";
        file.notes.missing(place.clone(), "there is no device in the list".to_owned(), help.to_owned());
        return (Device::read(Section::new("[[device]]", place, None, file.notes)), Vec::new());
    }
    check_all(&all, file.notes);
    let (first, _) = all.remove(0);
    (first, all.into_iter().map(|(device, _)| device).collect())
}

/// What goes with what among several. Of each the places of its kind and its interface.
fn check_all(all: &[(Device, [Range<usize>; 2])], notes: &mut Notes) {
    if all.len() == 1 {
        return;
    }
    for (n, (device, [kind, interface])) in all.iter().enumerate() {
        if device.kind != DeviceKind::Xdp {
            let message = format!("a device of `kind = \"{}\"` must be the only one", device.kind);
            let help = "several interfaces are served together with `kind = \"xdp\"` alone, where their addresses \
                        are Linux's";
            notes.advise(kind.clone(), message, help);
        }
        let name = device.interface.as_ref().filter(|_| device.kind == DeviceKind::Xdp);
        if let Some(name) =
            name.filter(|_| all[..n].iter().any(|(before, _)| before.interface == device.interface))
        {
            notes.advise(
                interface.clone(),
                format!("`{name}` is named twice"),
                "each interface has one `[[device]]`",
            );
        }
        if n == MOST {
            let message = format!("there are {} devices", all.len());
            notes.advise(kind.clone(), message, format!("one daemon serves {MOST} interfaces at most"));
        }
    }
}

impl Device {
    pub(crate) fn read(mut section: Section<'_, '_>) -> Self {
        let kind = section.or("kind", DeviceKind::Xdp);
        let routes = section.tables("route", "[[device.route]]", route::read);
        let (routes, places): (Vec<_>, Vec<_>) =
            routes.into_iter().flatten().map(|placed| (placed.value, placed.span)).unzip();
        let device = Self {
            kind,
            interface: read_interface(&mut section, kind),
            queues: read_queues(&mut section),
            mode: section.or("mode", XdpMode::Auto),
            ring: read_ring(&mut section),
            mtu: section.between("mtu", 576..=9216),
            address: section.read("address"),
            gateway: section.read("gateway"),
            address6: section.read("address6"),
            gateway6: section.read("gateway6"),
            routes,
            router_advertisements: section.or("router_advertisements", false),
            redirects: section.or("redirects", false),
            vlan: section.between("vlan", 1..=4094),
            mac: section.read("mac"),
            napi: section.or("napi", Napi::Inherit),
            napi_cpu: section.read("napi_cpu"),
            receive: section.or("receive", Receive::Prompt),
            linux_packets: section.between("linux_packets", 1..=u32::MAX),
        };
        device.check(&mut section);
        device.check_routes(&places, &mut section);
        section.finish();
        device
    }

    /// What goes with what.
    fn check(&self, section: &mut Section<'_, '_>) {
        if !section.is_wrong("kind") {
            self.check_kind(section);
        }
        if self.mode == XdpMode::Ingress {
            section.forbid("queues", "`mode = \"ingress\"` receives from all");
        }
        if self.napi != Napi::Threaded && !section.is_wrong("napi") && self.kind == DeviceKind::Xdp {
            for key in ["napi_cpu", "receive"] {
                section.forbid(key, "it needs `napi = \"threaded\"`");
            }
        }
        if let Some(mtu) = self.mtu.filter(|mtu| self.speaks_v6() && *mtu < LEAST_MTU6) {
            let message = format!("`mtu` is {mtu}, and IPv6 needs {LEAST_MTU6} (RFC 8200 §5)");
            section.notes.fault(section.span_of("mtu"), message);
        }
        if !self.speaks_v6() && self.kind != DeviceKind::Xdp {
            section.forbid("gateway6", "it needs an `address6`, or `router_advertisements = true`");
        }
    }

    /// What goes with the kind.
    fn check_kind(&self, section: &mut Section<'_, '_>) {
        if self.kind == DeviceKind::Xdp {
            for key in [
                "address",
                "gateway",
                "address6",
                "gateway6",
                "route",
                "router_advertisements",
                "redirects",
                "mac",
            ] {
                section.forbid(key, "with `kind = \"xdp\"` Linux's own addresses and routes are used");
            }
        } else {
            if !self.speaks_v6() {
                section.require(
                    "address",
                    format!(
                        "with `kind = \"{}\"` silk has an address of its own: `address = \"10.0.0.2/24\"`, or \
                         `address6 = \"2001:db8::2/64\"`",
                        self.kind
                    ),
                );
            }
            for key in ["queues", "mode", "ring", "napi", "napi_cpu", "receive", "linux_packets"] {
                section.forbid(key, "only `kind = \"xdp\"` has it");
            }
        }
    }

    /// Whether silk has an IPv6 address of its own there, or is to have one.
    const fn speaks_v6(&self) -> bool {
        self.address6.is_some() || self.router_advertisements
    }

    /// Whether every router can be reached, and every network in one way. `places` are those of the routes'.
    fn check_routes(&self, places: &[Range<usize>], section: &mut Section<'_, '_>) {
        if self.kind == DeviceKind::Xdp || self.address.is_none() && !self.speaks_v6() {
            return;
        }
        let gateway = self.gateway.map(|gateway| (IpAddr::V4(gateway), section.span_of("gateway")));
        // It may be in a network that routers are still to tell of.
        let gateway6 = self.gateway6.filter(|_| !self.router_advertisements);
        let gateway6 = gateway6.map(|gateway| (IpAddr::V6(gateway), section.span_of("gateway6")));
        let by_routes = self.routes.iter().zip(places);
        let by_routes = by_routes.filter_map(|(route, place)| Some((route.via?, place.clone())));
        for (router, place) in gateway.into_iter().chain(gateway6).chain(by_routes) {
            if let Some(why) = route::keeps_from(router, self.address, self.address6) {
                section.notes.fault(place, why);
            }
        }
        for (n, (route, place)) in self.routes.iter().zip(places).enumerate() {
            if self.routes[..n].iter().any(|before| before.to == route.to) {
                section.notes.fault(place.clone(), format!("there is a way to {} already", route.to));
            }
        }
    }
}

fn read_interface(section: &mut Section<'_, '_>, kind: DeviceKind) -> Option<Interface> {
    let interface = section.read("interface");
    match kind {
        // What it needs nobody knows.
        _ if section.is_wrong("kind") => interface,
        DeviceKind::Xdp | DeviceKind::Packet => {
            section.require("interface", "say which one: `interface = \"eth0\"`; `ip link` lists them");
            interface
        }
        DeviceKind::Tap => interface.or_else(|| Interface::new("silk0")),
        DeviceKind::Link => {
            section.forbid("interface", "`kind = \"link\"` is memory inside one process");
            None
        }
    }
}

/// `"all"`, or a list of numbers.
fn read_queues(section: &mut Section<'_, '_>) -> Option<Vec<u16>> {
    use toml::de::DeValue;
    struct Queues(Option<Vec<u16>>);
    impl crate::read::Value for Queues {
        fn read(value: &toml::Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<Self> {
            match value.get_ref() {
                DeValue::String(text) if text == "all" => Some(Self(None)),
                DeValue::Array(array) if array.is_empty() => {
                    notes.fault(value.span(), "without a queue nothing is received");
                    None
                }
                DeValue::Array(_) | DeValue::Integer(_) => Vec::read(value, notes).map(|all| Self(Some(all))),
                _ => crate::read::expected("`\"all\"` or a list of queue numbers", value, notes),
            }
        }
    }
    let mut queues = section.read::<Queues>("queues")?.0?;
    queues.sort_unstable();
    queues.dedup();
    Some(queues)
}

fn read_ring(section: &mut Section<'_, '_>) -> u32 {
    let ring: u32 = section.within("ring", 2048, 64..=65536);
    if !ring.is_power_of_two() {
        let (below, above) = (ring.next_power_of_two() / 2, ring.next_power_of_two());
        let span = section.span_of("ring");
        section.notes.advise(
            span,
            format!("{ring} is not a power of two"),
            format!("the nearest are {below} and {above}"),
        );
    }
    ring
}
