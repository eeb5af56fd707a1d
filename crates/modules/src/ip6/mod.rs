//! IP6: IPv6 for hosts (RFC 8200, RFC 8504). It routes, has next hops resolved, looks at
//! extension headers, reassembles fragments on the path that leads up to it (Scout §3.4),
//! fragments what may be, and keeps path MTUs (RFC 8201). It must never forward for others,
//! follow a routing header, or hold more than 128 KB of a path's messages, the latest, while a next hop is being resolved (and as
//! much of each of 64 paths that have ended meanwhile).
//!
//! # Configuration
//! `address` — our addresses with their prefixes, a list; default: the interface's.
//! `gateway` — the router for everything that is not on the link; default: the interface's.
//! `hops` — the hop limit of our packets, 1 to 255; default 64.
//! `errors` — errors we send in a second, at most; default 1000.
//!
//! # Services
//! `up` (net): TCP, UDP, ICMP6. `down` (net, needed): ETH.
//! `res` (resolve, client, wanted): ND. Without it packets go to the sender of what they
//! answer, or to everyone on the link.
//!
//! # Attributes
//! Reads `ProtId` (which protocol is above; absent on IP's own path),
//! `Remote`, `Local`, `Mtu` and `Tos`, the traffic class. Sets `ProtId` to 0x86dd, and with a
//! `Remote` also `Local`, `NextHop` and `Device`, the route's.
//!
//! # Example
//! ```toml
//! [[module]]
//! name = "ip6"
//! kind = "ip6"
//! address = ["2001:db8::1/64"]
//! gateway = "fe80::1"
//!
//! [[link]]
//! from = "ip6.res"
//! to = "nd.res"
//! ```
//!
//! # See also
//! [`eth`](crate::eth) and [`nd`](crate::nd) below; [`udp`](crate::udp), [`tcp`](crate::tcp) and
//! [`icmp6`](crate::icmp6) above; [`ip`](crate::ip), its elder sister.

mod fragment;
mod stage;

use crate::Device;
use crate::ip::held::OwnPath;
use crate::ip::next_hop::route;
use crate::ip::path_mtu::PathMtus;
use crate::ip::reassembly::Reassembly;
use crate::ip::redirects::Redirects;
use crate::ip::{ReassemblyLimits, Routes};
use crate::limit::Limit;
use crate::stations::Stations;
use alloc::boxed::Box;
use core::net::Ipv6Addr;
use core::time::Duration;
use silk_instant::Instant;
use silk_path::classify::{Answer, Belongs, Tables, View, skip_extensions};
use silk_path::service::{NET, RESOLVES, Service};
use silk_path::{Attr, Create, CreateError, Module, Next, Parameter, ParameterKind, Parcel, PathId, Step};
use silk_wire::{eth, ipv4, ipv6};
use stage::Ip6Stage;

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
    Parameter { name: "hops", kind: ParameterKind::Number(1, 255), required: false },
    Parameter { name: "errors", kind: ParameterKind::Number(0, 1_000_000), required: false },
];

/// How long a datagram's pieces are waited for (RFC 8200 §4.5).
const REASSEMBLY: Duration = Duration::from_secs(60);

/// What ties fragments together (RFC 8200 §4.5): the protocol is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    identification: u32,
}

/// The module.
pub struct Ip6 {
    tables: Tables,
    stations: Stations,
    /// Where packets go.
    pub routes: Routes<Ipv6Addr>,
    path_mtus: PathMtus<Ipv6Addr>,
    redirects: Redirects<Ipv6Addr>,
    // With what the fragment header says that the datagram carries.
    reassembly: Reassembly<Key, (ipv6::Header, u8)>,
    // IP's own path takes what no other takes, too.
    own: OwnPath<Ip6Stage>,
    hops: u8,
    // What routers have told.
    told_hops: Option<u8>,
    told_mtu: Option<u16>,
    errors: Limit,
}

impl Ip6 {
    /// The module with these routes, which sends at most `errors` errors in a second; `tables`
    /// says which fragments are ours.
    pub fn new(
        (tables, devices): (Tables, &[Device]),
        routes: Routes<Ipv6Addr>,
        hops: u8,
        errors: u32,
        limits: ReassemblyLimits,
    ) -> Self {
        Self {
            tables,
            stations: Stations::of(devices),
            routes,
            path_mtus: PathMtus::new(ipv6::MIN_MTU),
            redirects: Redirects::default(),
            reassembly: Reassembly::new(ReassemblyLimits { timeout: REASSEMBLY, ..limits }),
            own: OwnPath::default(),
            hops,
            told_hops: None,
            told_mtu: None,
            errors: Limit::new(errors),
        }
    }

    /// Our Ethernet address at this device is another from now on: what is put together of pieces is for it.
    pub fn become_station(&mut self, device: u8, address: [u8; 6]) {
        self.stations.become_another(device, address);
    }

    /// IP6's own path, as [`crate::ip::Ip::own_path`].
    pub fn own_path(&self) -> Option<PathId> {
        self.own.path
    }

    /// Routers have told the hop limit of what is sent, and the link's MTU, if it is not the device's: for paths that
    /// begin from now on (RFC 4861 §6.3.4).
    pub fn heed(&mut self, hops: Option<u8>, mtu: Option<u16>) {
        (self.told_hops, self.told_mtu) = (hops, mtu.filter(|mtu| *mtu >= ipv6::MIN_MTU));
    }

    /// Other routes from now on, unless the graph has written them down. What routers said before of better hops is forgotten.
    pub fn follow(&mut self, routes: Routes<Ipv6Addr>) {
        self.routes.become_these(routes);
        self.redirects = Redirects::default();
    }

    /// A router has told that packets to `destination` are better given to `hop` (RFC 4861 §8.3). Whether it is believed, and
    /// that is news.
    pub fn redirect(&mut self, now: Instant, router: Ipv6Addr, destination: Ipv6Addr, hop: Ipv6Addr) -> bool {
        self.redirects.heed(now, &self.routes, router, (destination, hop))
    }
}

impl Module for Ip6 {
    fn kind(&self) -> &'static str {
        "ip6"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn protocol(&self) -> Option<u16> {
        Some(eth::IPV6)
    }

    // RFC 9293 MUST-43, MUST-44.
    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let protocol = create.attrs.prot_id().unwrap_or(0) as u8;
        let remote = create.attrs.remote().and_then(|remote| remote.ipv6());
        if let Some(remote) = remote {
            route(create, &self.routes, remote)?;
        }
        create.set(Attr::ProtId(eth::IPV6))?;
        Ok(Step {
            stage: Some(Box::new(Ip6Stage::new(protocol, remote, self.told_hops.unwrap_or(self.hops)))),
            next: Next::Service(DOWN),
        })
    }

    fn classify(&self, view: &mut View<'_>) -> Answer {
        // Lengths and options are the stage's business: a classifier may be wrong about a broken
        // packet.
        let Ok(header) = ipv6::parse_header(view.bytes()) else { return Answer::Pass };
        view.remote.set_ip(header.source());
        view.local.set_ip(header.destination());
        view.dscp = header.dscp();
        view.truncate(ipv6::HEADER + header.payload_len());
        view.advance(ipv6::HEADER);
        let Some((protocol, fragment, rest)) = skip_extensions(header.next_header, view.bytes()) else {
            return Answer::Pass;
        };
        if fragment {
            let ours =
                !view.group && self.tables.owned().fragments && self.tables.is_local(header.destination());
            let belongs = Belongs::Fragment { domain: self.tables.domains().fragment };
            return if ours { Answer::Found(belongs) } else { Answer::Pass };
        }
        if view.group && !matches!(protocol, ipv6::ICMP | ipv4::UDP) {
            return Answer::Pass;
        }
        view.advance(view.bytes().len() - rest.len());
        Answer::Ask { service: UP, protocol: Some(protocol.into()) }
    }

    fn takes(&self, parcel: &Parcel) -> Option<PathId> {
        if matches!(parcel, Parcel::Fragment6 | Parcel::Nobodys6) { self.own.path } else { None }
    }
}

/// Addresses no packet for a host can come from (RFC 4291 §2.5.3, §2.5.5 and §2.7): a mapped one
/// would be taken for another host's.
pub(crate) fn impossible_source(source: Ipv6Addr) -> bool {
    source.is_multicast() || source.is_loopback() || source.to_ipv4_mapped().is_some()
}
