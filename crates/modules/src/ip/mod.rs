//! IP: IPv4 for hosts (RFC 791, RFC 1122 §3). It routes, has next hops resolved, reassembles
//! fragments on the path that leads up to it (Scout §3.4), fragments what may be, and keeps
//! path MTUs (RFC 1191). It must never forward for others, nor hold more than 128 KB of a path's
//! messages, the latest, while a next hop is being resolved (and as much of each of 64 paths that have ended meanwhile).
//!
//! # Configuration
//! `address` — our addresses with their prefixes, a list; default: the interface's.
//! `gateway` — the router for everything that is not on the link; default: the interface's.
//! `ttl` — hops our packets may take, 1 to 255; default 64.
//!
//! # Services
//! `up` (net): TCP, UDP, ICMP. `down` (net, needed): ETH.
//! `res` (resolve, client, wanted): ARP. Without it packets go to the sender of what they
//! answer, or to everyone on the link.
//!
//! # Attributes
//! Reads `ProtId` (which protocol is above; absent on IP's own path),
//! `Remote`, `Local`, `Mtu` and `Tos`. Sets `ProtId` to 0x0800, and with a `Remote` also
//! `Local`, `NextHop` and `Device`, the route's.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "ip"
//! kind = "ip"
//! address = ["10.0.0.1/24"]
//! gateway = "10.0.0.254"
//!
//! [[link]]
//! from = "ip.res"
//! to = "arp.res"
//! ```
//!
//! # See also
//! [`eth`](crate::eth) and [`arp`](crate::arp) below; [`udp`](crate::udp), [`tcp`](crate::tcp) and
//! [`icmp`](crate::icmp) above, which says how often a sender is told that its fragments were given up.

mod address;
mod ecn;
mod families;
mod fragment;
mod group;
pub(crate) mod held;
pub(crate) mod next_hop;
pub(crate) mod path_mtu;
pub(crate) mod reassembly;
pub(crate) mod redirects;
mod routes;
mod source;
mod stage;

pub use address::Address;
pub(crate) use address::impossible_source;
pub(crate) use ecn::ECN;
pub(crate) use group::multicast;
pub(crate) use path_mtu::LEAST as LEAST_MTU;
pub use reassembly::Limits as ReassemblyLimits;
pub use routes::{Route, Routes, Whither};
pub(crate) use stage::{GROUP_TTL, IpStage, add_pseudo_header, complete_checksum, packet_len};

use crate::Device;
use crate::stations::Stations;
use alloc::boxed::Box;
use core::net::Ipv4Addr;
use held::OwnPath;
use path_mtu::PathMtus;
use reassembly::Reassembly;
use redirects::Redirects;
use silk_instant::Instant;
use silk_path::classify::{Answer, Belongs, Tables, View};
use silk_path::service::{NET, RESOLVES, Service};
use silk_path::{Attr, Create, CreateError, Module, Next, Parameter, ParameterKind, Parcel, PathId, Step};
use silk_wire::{eth, igmp, ipv4};

/// Its services.
pub const SERVICES: &[Service] =
    &[Service::offered("up", NET), Service::needed("down", NET), Service::wanted("res", RESOLVES)];
const UP: u8 = 0;
const DOWN: u8 = 1;
const RES: u8 = 2;

/// Its parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "address", kind: ParameterKind::List(&ParameterKind::Network), required: false },
    Parameter { name: "gateway", kind: ParameterKind::Address, required: false },
    Parameter { name: "ttl", kind: ParameterKind::Number(1, 255), required: false },
];

/// The module.
pub struct Ip {
    tables: Tables,
    stations: Stations,
    /// Where packets go.
    pub routes: Routes,
    path_mtus: PathMtus<Ipv4Addr>,
    redirects: Redirects<Ipv4Addr>,
    reassembly: Reassembly<Key, ipv4::Header>,
    own: OwnPath<IpStage>,
    ttl: u8,
}

impl Ip {
    /// The module with these routes over these devices; `tables` says which fragments are ours.
    pub fn new(
        (tables, devices): (Tables, &[Device]),
        routes: Routes,
        ttl: u8,
        limits: ReassemblyLimits,
    ) -> Self {
        Self {
            tables,
            stations: Stations::of(devices),
            routes,
            path_mtus: PathMtus::new(LEAST_MTU),
            redirects: Redirects::default(),
            reassembly: Reassembly::new(limits),
            own: OwnPath::default(),
            ttl,
        }
    }

    /// Our Ethernet address at this device is another from now on: what is put together of pieces is for it.
    pub fn become_station(&mut self, device: u8, address: [u8; 6]) {
        self.stations.become_another(device, address);
    }

    /// IP's own path, where there is one: it sends what comes with a header of whatever protocol its message names.
    pub fn own_path(&self) -> Option<PathId> {
        self.own.path
    }

    /// Other routes from now on, unless the graph has written them down. What routers said before of better hops is forgotten.
    pub fn follow(&mut self, routes: Routes) {
        self.routes.become_these(routes);
        self.redirects = Redirects::default();
    }

    /// A router has told that packets to `destination` are better given to `hop` (RFC 1122 §3.2.2.2). Whether it is believed,
    /// and that is news.
    pub fn redirect(&mut self, now: Instant, router: Ipv4Addr, destination: Ipv4Addr, hop: Ipv4Addr) -> bool {
        self.redirects.heed(now, &self.routes, router, (destination, hop))
    }
}

impl Module for Ip {
    fn kind(&self) -> &'static str {
        "ip"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(eth::IPV4)
    }

    // RFC 9293 MUST-43, MUST-44.
    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let protocol = create.attrs.prot_id().unwrap_or(0) as u8;
        let remote = create.attrs.remote().and_then(|remote| remote.ipv4());
        if let Some(remote) = remote {
            next_hop::route(create, &self.routes, remote)?;
        }
        create.set(Attr::ProtId(eth::IPV4))?;
        Ok(Step {
            stage: Some(Box::new(IpStage::new(protocol, remote, self.ttl))),
            next: Next::Service(DOWN),
        })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        // The checksum is the stage's business: a classifier may be wrong about a broken packet.
        let Ok(packet) = ipv4::parse_quoted(view.bytes()) else { return Answer::Pass };
        let header = packet.header;
        if header.total_len() < header.header_len() || header.total_len() > view.bytes().len() {
            return Answer::Pass;
        }
        let payload = header.total_len() - header.header_len();
        if header.protocol == igmp::PROTOCOL && !header.is_fragment() && payload >= igmp::HEADER {
            let ours = Belongs::Control { domain: self.tables.domains().control };
            return if self.tables.owned().arp { Answer::Found(ours) } else { Answer::Pass };
        }
        if view.group && (header.is_fragment() || header.protocol != ipv4::UDP) {
            return Answer::Pass;
        }
        if header.is_fragment() {
            let ours = self.tables.owned().fragments && self.tables.is_local(header.destination());
            let belongs = Belongs::Fragment { domain: self.tables.domains().fragment };
            return if ours { Answer::Found(belongs) } else { Answer::Pass };
        }
        view.remote.set_ip(header.source());
        view.local.set_ip(header.destination());
        view.dscp = header.dscp();
        view.truncate(header.total_len());
        view.advance(header.header_len());
        Answer::Ask { service: UP, protocol: Some(header.protocol.into()) }
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if *parcel == Parcel::Fragment { self.own.path } else { None }
    }
}

/// What ties fragments together (RFC 791 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    identification: u16,
}

impl Key {
    fn of(header: &ipv4::Header) -> Self {
        Self {
            source: header.source(),
            destination: header.destination(),
            protocol: header.protocol,
            identification: header.identification(),
        }
    }
}
