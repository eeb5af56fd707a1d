//! A module of one's own: POLICE lets so many messages a second up a path and drops the rest
//! at once, a token bucket (RFC 2697 with one colour). It stands between any two modules that
//! speak in messages, here between UDP and ECHO. It must never delay a message: there are no
//! queues in the middle of a path (Scout §4.1).
//!
//! `cargo run -p silk-modules --example police` floods an echo path and prints what became of
//! it; `cargo test -p silk-modules --example police` tests it. To have it in the daemon: a file
//! in `crates/modules/src` and its row in `catalogue.rs` (see CONTRIBUTING.md).
//!
//! # Configuration
//! `rate` — messages a second, 1 to 1 000 000; needed. `burst` — messages that may come at
//! once; default 1.
//!
//! # Services
//! `up` (net): whoever wants to be protected. `down` (net, needed): a protocol of messages.
//!
//! # Attributes
//! None.
//!
//! # Example
//! ```toml
//! links = ["echo.down -> police.up", "police.down -> udp.up"]
//!
//! [[module]]
//! name = "police"
//! rate = 1000
//! burst = 32
//! ```
//!
//! # See also
//! `crates/modules/src/echo.rs` above, `udp.rs` below.

use core::net::Ipv4Addr;
use silk_instant::Instant;
use silk_modules::arp::Arp;
use silk_modules::{Device, Setup, Standing, catalogue};
use silk_path::classify::{Domains, Owned, Tables};
use silk_path::service::{NET, Service};
use silk_path::{
    Attrs, BadParameter, Catalogue, Create, CreateError, Cx, DropReason, Event, Graph, GraphSpec, Kind,
    Message, Meta, Module, ModuleSpec, Next, Parameter, ParameterKind, PathId, Paths, Port, Request, Stage,
    Step, Value, Verdict,
};
use silk_wire::{MacAddr, checksum, eth, ipv4, udp};
use std::time::Duration;

const SERVICES: &[Service] = &[Service::offered("up", NET), Service::needed("down", NET)];
const DOWN: u8 = 1;
const PARAMETERS: &[Parameter] = &[
    Parameter { name: "rate", kind: ParameterKind::Number(1, 1_000_000), required: true },
    Parameter { name: "burst", kind: ParameterKind::Number(1, 1_000_000), required: false },
];

/// The module: what its stages begin with.
struct Police {
    /// Time that one message is worth.
    cost: Duration,
    /// The most that can be saved up.
    most: Duration,
}

impl Police {
    fn new(rate: u32, burst: u32) -> Self {
        let cost = Duration::from_secs(1) / rate;
        Self { cost, most: cost * burst }
    }
}

impl Module for Police {
    fn kind(&self) -> &'static str {
        "police"
    }

    fn services(&self) -> &'static [Service] {
        SERVICES
    }

    fn create_stage(&mut self, create: &mut Create<'_>) -> Result<Step, CreateError> {
        let stage = PoliceStage { cost: self.cost, most: self.most, saved: self.most, last: create.now };
        Ok(Step { stage: Some(Box::new(stage)), next: Next::Service(DOWN) })
    }
}

/// The stage: one bucket for each path.
struct PoliceStage {
    cost: Duration,
    most: Duration,
    // Invariant: saved <= most.
    saved: Duration,
    last: Instant,
}

impl Stage for PoliceStage {
    fn up(&mut self, cx: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        let earned = cx.now().since(self.last);
        self.last = cx.now();
        self.saved = self.saved.saturating_add(earned).min(self.most);
        match self.saved.checked_sub(self.cost) {
            Some(left) => {
                self.saved = left;
                Verdict::Forward
            }
            // The nearest of the reasons there are; a module that joins the house adds its
            // own to `crates/path/src/drops.rs`.
            None => Verdict::Drop(DropReason::QueueFull),
        }
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        Verdict::Forward
    }
}

/// The house's modules, and ours.
struct WithPolice<C> {
    house: C,
    kinds: Vec<Kind>,
}

impl<C: Catalogue> WithPolice<C> {
    fn new(house: C) -> Self {
        let police = Kind { name: "police", services: SERVICES, parameters: PARAMETERS };
        let kinds = house.kinds().iter().copied().chain([police]).collect();
        Self { house, kinds }
    }
}

impl<C: Catalogue> Catalogue for WithPolice<C> {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn make(&self, spec: &ModuleSpec) -> Result<Box<dyn Module>, BadParameter> {
        // The graph has checked presence and range already.
        let number = |name| match spec.parameter(name) {
            Some(Value::Number(number)) => u32::try_from(*number).ok(),
            _ => None,
        };
        match spec.kind.as_str() {
            "police" => Ok(Box::new(Police::new(number("rate").unwrap_or(1), number("burst").unwrap_or(1)))),
            _ => self.house.make(spec),
        }
    }
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const THEIR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const HEADROOM: usize = 128;

/// The world around the path, as small as it can be: frames that leave are counted.
#[derive(Default)]
struct World {
    sent: usize,
}

impl Port for World {
    fn transmit(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        self.sent += 1;
        Ok(())
    }
    fn deliver(&mut self, _: PathId, _: &Message<'_>) -> Result<(), DropReason> {
        Err(DropReason::NoReceiver)
    }
    fn arm(&mut self, _: PathId, _: Instant) {}
    fn event(&mut self, _: PathId, _: Event) {}
    fn request(&mut self, _: Request) {}
    fn random(&mut self) -> u64 {
        4
    }
}

/// A host whose echo path is policed.
struct Host {
    tables: Tables,
    paths: Paths,
    world: World,
    echo: PathId,
}

impl Host {
    fn new(rate: i64, burst: i64) -> Self {
        let tables = Tables::with_room(64, 0x5eed);
        tables.configure(Owned::default(), Domains::default(), &[], &[HERE]).expect("one address");
        let setup =
            Setup { standing: Standing::of(&[(HERE.into(), 24)], None), ..Setup::new(tables.clone()) };
        let police = [("rate", Value::Number(rate)), ("burst", Value::Number(burst))];
        let spec = GraphSpec::default()
            .module("net", "vnet", &[])
            .module("eth", "eth", &[])
            .module("arp", "arp", &[])
            .module("ip", "ip", &[])
            .module("udp", "udp", &[])
            .module("police", "police", &police)
            .module("echo", "echo", &[])
            .link("eth.down", "net.up")
            .link("arp.down", "eth.up")
            .link("ip.down", "eth.up")
            .link("ip.res", "arp.res")
            .link("udp.down", "ip.up")
            .link("police.down", "udp.up")
            .link("echo.down", "police.up");
        let graph = Graph::build(&spec, &WithPolice::new(catalogue(setup))).expect("a sound graph");
        let (mut paths, mut world) = (Paths::new(graph, Vec::new()), World::default());
        let arp = paths.module_mut::<Arp>().expect("in the graph");
        arp.learn(Instant::ZERO, (0, THERE), Some(THEIR_MAC), &mut world);
        let top = paths.graph().modules().find("echo").expect("in the graph");
        let echo = paths.create(top, Attrs::new(), None, Instant::ZERO, &mut world).expect("a path");
        Self { tables, paths, world, echo }
    }

    /// A datagram arrives for the echo path.
    fn arrive(&mut self, now: Instant) {
        let mut buffer = datagram();
        let frame = &buffer[HEADROOM..];
        let path = self.paths.target(frame, self.tables.classify(frame)).expect("the echo path's");
        let end = buffer.len();
        let mut message = Message::new(&mut buffer, HEADROOM, end, Meta { arrival: now, ..Meta::default() });
        self.paths.up(path, now, &mut self.world, &mut message);
    }

    fn dropped(&self) -> u32 {
        self.paths.path(self.echo).map_or(0, |path| path.state.drops.of(DropReason::QueueFull))
    }
}

/// A datagram from port 9 of the other host to the echo port, with headroom.
fn datagram() -> Vec<u8> {
    const DATA: usize = 64;
    let mut buffer = vec![7; HEADROOM + eth::HEADER + ipv4::HEADER + udp::HEADER + DATA];
    let bytes = &mut buffer[HEADROOM..];
    eth::Header::new(MacAddr(Device::default().address), THEIR_MAC, eth::IPV4).emit(bytes);
    let ip = ipv4::Emit {
        protocol: ipv4::UDP,
        source: THERE,
        destination: HERE,
        payload_len: (udp::HEADER + DATA) as u16,
        ..Default::default()
    };
    ip.emit(&mut bytes[eth::HEADER..]);
    let datagram = &mut bytes[eth::HEADER + ipv4::HEADER..];
    udp::emit(9, 7, DATA as u16, 0, datagram);
    let sum = checksum::pseudo(THERE, HERE, ipv4::UDP, datagram.len() as u16).bytes(datagram);
    datagram[udp::CHECKSUM..udp::HEADER].copy_from_slice(&udp::seal(sum).to_be_bytes());
    buffer
}

fn main() {
    let mut host = Host::new(1000, 32);
    let names: Vec<_> = host.paths.graph().modules().iter().map(|(_, name, _)| name.to_owned()).collect();
    println!("modules: {}", names.join(" "));
    // A flood of 100 000 messages in a second, of which 1 000 may pass.
    for message in 0..100_000 {
        host.arrive(Instant::ZERO + Duration::from_micros(10) * message);
    }
    println!("echoed {}, dropped {}", host.world.sent, host.dropped());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_rest_is_dropped_with_a_reason() {
        let mut host = Host::new(10, 4);
        (0..10).for_each(|_| host.arrive(Instant::ZERO));
        assert_eq!((host.world.sent, host.dropped()), (4, 6));
    }

    #[test]
    fn a_flood_gets_its_rate_and_no_more() {
        let mut host = Host::new(1000, 32);
        (0..100_000).for_each(|n| host.arrive(Instant::ZERO + Duration::from_micros(10) * n));
        assert!((1030..=1032).contains(&host.world.sent), "{} echoed", host.world.sent);
        assert_eq!(host.world.sent + host.dropped() as usize, 100_000);
    }

    #[test]
    fn silence_saves_up_a_burst_and_not_more() {
        let mut host = Host::new(10, 4);
        (0..4).for_each(|_| host.arrive(Instant::ZERO));
        (0..10).for_each(|_| host.arrive(Instant::ZERO + Duration::from_secs(3600)));
        assert_eq!((host.world.sent, host.dropped()), (8, 6));
    }

    #[test]
    fn a_path_that_ends_gives_everything_back() {
        let mut host = Host::new(10, 4);
        let statement = host.paths.destroy(host.echo, Instant::ZERO, &mut host.world).expect("a live path");
        assert_eq!(statement.account.memory(), 0);
        assert!(host.paths.is_empty());
    }

    #[test]
    fn a_rate_that_is_missing_is_a_fault_of_the_graph() {
        let tables = Tables::with_room(64, 0x5eed);
        let spec = GraphSpec::default().module("police", "police", &[]);
        let faults = Graph::build(&spec, &WithPolice::new(catalogue(Setup::new(tables))));
        assert!(faults.err().is_some_and(|faults| format!("{faults:?}").contains("rate")));
    }
}
