//! The kinds of modules there are, and how to make one of each from a graph file's
//! parameters and from what its surroundings are like.

use crate::arp::{self, Arp, CacheLimits};
use crate::echo::{self, Echo};
use crate::eth::{self, Eth};
use crate::host::{self, Host};
use crate::icmp::{self, Icmp};
use crate::icmp6::{self, Icmp6};
use crate::igmp::{self, Igmp};
use crate::ip::{self, Ip, ReassemblyLimits, Routes};
use crate::ip6::{self, Ip6};
use crate::mflow::{self, Mflow};
use crate::mld::{self, Mld};
use crate::nd::{self, Nd};
use crate::rtp::{self, Rtp};
use crate::shell::{self, Shell};
use crate::socket::{self, Socket};
use crate::tcp::{self, Tcp};
use crate::udp::{self, Udp};
use crate::vnet::{self, Vnet};
use crate::{Device, Standing};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use silk_path::classify::Tables;
use silk_path::{BadParameter, Catalogue, Kind, Module, ModuleSpec, Value, network};

/// What the modules of one domain find around them. Parameters of the graph come first.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The classifier's tables.
    pub tables: Tables,
    /// The domain.
    pub domain: u8,
    /// The devices, by number.
    pub devices: Vec<Device>,
    /// Our addresses, and the ways from there.
    pub standing: Standing,
    /// By which device what is sent to ourselves comes back; `None`: it has no way.
    pub itself: Option<u8>,
    /// Neighbours' addresses are told, not asked for: the interface is shared with Linux.
    pub neighbours_told: bool,
    /// Routers of IPv6 are asked for, and what they advertise is heeded (RFC 4861 §6.3).
    pub heeds_routers: bool,
    /// What routers say of better first hops is heeded (RFC 1122 §3.2.2.2, RFC 4861 §8.3).
    pub heeds_redirects: bool,
    /// What reassembly may hold.
    pub reassembly: ReassemblyLimits,
    /// What the neighbour cache may hold.
    pub neighbours: CacheLimits,
    /// The parameters of TCP connections.
    pub tcp: tcp::Parameters,
}

impl Setup {
    /// One device of the usual sort, no addresses: enough to check a graph.
    pub fn new(tables: Tables) -> Self {
        Self {
            tables,
            domain: 0,
            devices: alloc::vec![Device::default()],
            standing: Standing::default(),
            itself: None,
            neighbours_told: false,
            heeds_routers: false,
            heeds_redirects: false,
            reassembly: ReassemblyLimits::default(),
            neighbours: CacheLimits::default(),
            tcp: tcp::Parameters::default(),
        }
    }
}

/// Every kind of module.
pub const KINDS: &[Kind] = &[
    Kind { name: "vnet", services: vnet::SERVICES, parameters: vnet::PARAMETERS },
    Kind { name: "eth", services: eth::SERVICES, parameters: &[] },
    Kind { name: "arp", services: arp::SERVICES, parameters: arp::PARAMETERS },
    Kind { name: "ip", services: ip::SERVICES, parameters: ip::PARAMETERS },
    Kind { name: "icmp", services: icmp::SERVICES, parameters: icmp::PARAMETERS },
    Kind { name: "nd", services: nd::SERVICES, parameters: nd::PARAMETERS },
    Kind { name: "ip6", services: ip6::SERVICES, parameters: ip6::PARAMETERS },
    Kind { name: "icmp6", services: icmp6::SERVICES, parameters: &[] },
    Kind { name: "igmp", services: igmp::SERVICES, parameters: igmp::PARAMETERS },
    Kind { name: "mld", services: mld::SERVICES, parameters: mld::PARAMETERS },
    Kind { name: "tcp", services: tcp::SERVICES, parameters: &[] },
    Kind { name: "udp", services: udp::SERVICES, parameters: &[] },
    Kind { name: "host", services: host::SERVICES, parameters: &[] },
    Kind { name: "socket", services: socket::SERVICES, parameters: &[] },
    Kind { name: "echo", services: echo::SERVICES, parameters: echo::PARAMETERS },
    Kind { name: "rtp", services: rtp::SERVICES, parameters: rtp::PARAMETERS },
    Kind { name: "mflow", services: mflow::SERVICES, parameters: mflow::PARAMETERS },
    Kind { name: "shell", services: shell::SERVICES, parameters: shell::PARAMETERS },
];

/// The catalogue of every kind of module, for these surroundings.
pub fn catalogue(setup: Setup) -> impl Catalogue {
    Modules(setup)
}

struct Modules(Setup);

impl Catalogue for Modules {
    fn kinds(&self) -> &[Kind] {
        KINDS
    }

    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        let (setup, tables) = (&self.0, self.0.tables.clone());
        Ok(match spec.kind.as_str() {
            "vnet" => Box::new(self.vnet(spec)?),
            "eth" => Box::new(Eth::new(tables, &setup.devices)),
            "arp" => {
                let ours: Vec<Ipv4Addr> = self.ours(spec);
                let told = flag(spec, "told").unwrap_or(setup.neighbours_told);
                Box::new(Arp::new(tables, &ours, told, setup.neighbours))
            }
            "ip" => {
                let routes = self.routes::<Ipv4Addr>(spec);
                let ttl = number(spec, "ttl").unwrap_or(64) as u8;
                Box::new(Ip::new((tables, &setup.devices), routes, ttl, setup.reassembly))
            }
            "icmp" => {
                let redirects = flag(spec, "redirects").unwrap_or(setup.heeds_redirects);
                let errors = number(spec, "errors").unwrap_or(1000) as u32;
                Box::new(Icmp::new(tables, errors).heeding_redirects(redirects))
            }
            "nd" => {
                let ours: Vec<Ipv6Addr> = self.ours(spec);
                let told = flag(spec, "told").unwrap_or(setup.neighbours_told);
                let routers = flag(spec, "routers").unwrap_or(setup.heeds_routers);
                let redirects = flag(spec, "redirects").unwrap_or(setup.heeds_redirects);
                let nd = Nd::new(&ours, told, setup.neighbours);
                Box::new(nd.heeding_routers(routers).heeding_redirects(redirects))
            }
            "ip6" => {
                let routes = self.routes::<Ipv6Addr>(spec);
                let hops = number(spec, "hops").unwrap_or(64) as u8;
                let errors = number(spec, "errors").unwrap_or(1000) as u32;
                Box::new(Ip6::new((tables, &setup.devices), routes, hops, errors, setup.reassembly))
            }
            "icmp6" => Box::new(Icmp6::new(tables)),
            "igmp" => {
                let ours: Vec<Ipv4Addr> = self.ours(spec);
                Box::new(Igmp::new(&ours))
            }
            "mld" => {
                let ours: Vec<Ipv6Addr> = self.ours(spec);
                Box::new(Mld::new(&ours))
            }
            "tcp" => Box::new(Tcp::new(tables, setup.domain, &setup.tcp)),
            "udp" => Box::new(Udp::new(tables, setup.domain)),
            "host" => Box::<Host>::default(),
            "socket" => Box::new(Socket),
            "echo" => Box::new(Echo::new(number(spec, "port").unwrap_or(7) as u16)),
            "rtp" => {
                let port = number(spec, "port").unwrap_or(silk_wire::rtp::PORT.into()) as u16;
                let payload = spec.parameter("payload").and_then(text).and_then(rtp::Payload::named);
                let seconds = number(spec, "silence").and_then(|seconds| u64::try_from(seconds).ok());
                let silence = seconds.map_or(rtp::SILENCE, Duration::from_secs);
                Box::new(Rtp::new(tables, setup.domain, port, payload.unwrap_or_default(), silence))
            }
            "mflow" => {
                let mut bounds = mflow::Bounds::default();
                bounds.least = number(spec, "least").map_or(bounds.least, |least| least as u16);
                bounds.most = number(spec, "most").map_or(bounds.most, |most| most as u16);
                let port = number(spec, "port").map_or(silk_wire::mflow::PORT, |port| port as u16);
                Box::new(Mflow::new(tables, setup.domain, bounds, port))
            }
            "shell" => {
                let port = number(spec, "port").map_or(shell::PORT, |port| port as u16);
                Box::new(Shell::new(networks(spec, "controllers"), port))
            }
            kind => {
                return Err(BadParameter {
                    name: "kind".into(),
                    what: format!("no module is made for \"{kind}\""),
                });
            }
        })
    }
}

impl Modules {
    fn vnet(&self, spec: &ModuleSpec) -> Result<Vnet, BadParameter> {
        let Some(number) = number(spec, "device") else { return Ok(Vnet::of_all(&self.0.devices)) };
        let devices = self.0.devices.len();
        let device = usize::try_from(number).ok().and_then(|n| self.0.devices.get(n));
        let device = device.ok_or_else(|| BadParameter {
            name: "device".into(),
            what: format!("there is no device {number}: there are {devices}"),
        })?;
        Ok(Vnet::new(number as u8, *device))
    }

    /// The routes of a family: over every link that there is, or over the one that the graph tells of.
    fn routes<A: ip::Address>(&self, spec: &ModuleSpec) -> Routes<A> {
        let (standing, written) = (&self.0.standing, ["address", "gateway"]);
        if !written.iter().any(|name| spec.parameter(name).is_some()) {
            return Routes::of(standing).coming_back_by(self.0.itself);
        }
        let gateway = address(spec, "gateway").or_else(|| standing.router(A::BITS == Ipv6Addr::BITS as u8));
        let written = Routes::of(&Standing::of(&self.addresses(spec), gateway));
        written.fixed(true).coming_back_by(self.0.itself)
    }

    /// Our addresses: the parameter's, or those on the first link.
    fn addresses(&self, spec: &ModuleSpec) -> Vec<(IpAddr, u8)> {
        match spec.parameter("address") {
            Some(_) => networks(spec, "address"),
            None => self.0.standing.links.first().cloned().unwrap_or_default(),
        }
    }

    /// The same of one family.
    fn ours<A: ip::Address>(&self, spec: &ModuleSpec) -> Vec<A> {
        self.addresses(spec).iter().filter_map(|(address, _)| A::of(*address)).collect()
    }
}

/// The networks of a parameter; none where it is absent.
fn networks(spec: &ModuleSpec, name: &str) -> Vec<(IpAddr, u8)> {
    let Some(Value::List(values)) = spec.parameter(name) else { return Vec::new() };
    values.iter().filter_map(|value| network(text(value)?)).collect()
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn address<A: core::str::FromStr>(spec: &ModuleSpec, name: &str) -> Option<A> {
    text(spec.parameter(name)?)?.parse().ok()
}

fn number(spec: &ModuleSpec, name: &str) -> Option<i64> {
    if let Some(Value::Number(number)) = spec.parameter(name) { Some(*number) } else { None }
}

fn flag(spec: &ModuleSpec, name: &str) -> Option<bool> {
    if let Some(Value::Flag(flag)) = spec.parameter(name) { Some(*flag) } else { None }
}
