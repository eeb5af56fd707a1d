//! Starting the daemon, in the order in which things can fail: configuration, device,
//! executors, control socket. Nothing is left behind by a failed start.

use crate::classes::Classes;
use crate::command::Orders;
use crate::datagrams::Sibling;
use crate::engine::{Engine, Parts};
use crate::executor::{Executor, Placement};
use crate::host_socket;
use crate::linux_share::LinuxShare;
use crate::priority::{self, Scheduling};
use crate::receiving::Receiving;
use crate::server::{self, Server};
use crate::settings::Settings;
use crate::sleep::Sleeper;
use crate::stack::{self, Link};
use crate::strangers::Gate;
use crate::sys;
use crate::watchdog::{self, Watched};
use silk_config::{Config, DeviceKind, HugePages, Napi, Policy, Source, XdpMode};
use silk_device::netlink::Standing;
use silk_device::{End, OpenError, Steered, netlink, packet, tap, xdp};
use silk_executor::join::{random, tables_of};
use silk_executor::link::{self, GSO, own_mac, tables_in_memory};
use silk_path::classify::{ClassRule, Domains, Owned, Tables};
use silk_stream::wake;
use silk_wire::ipv6;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Why the daemon did not start, or ended.
pub enum Failure {
    /// The configuration is wrong: the operator's to mend. Rendered, every fault.
    Configuration(String),
    /// The machine cannot do it, or not now: a sentence.
    Machine(String),
}

/// Buckets of the flow table: a quarter of a million connections at half load.
const BUCKETS: u32 = 1 << 17;
/// Paths one domain can have.
const PATHS: u32 = 1 << 20;
/// An opened device.
struct Opened {
    ends: Vec<End>,
    tables: Tables,
    link: Link,
    /// The interface's number, where Linux shares it.
    interface: Option<u32>,
    /// The threads that do the receive work, with `napi = "threaded"`.
    receiving: Receiving,
    /// Kept while the daemon runs: dropping it detaches the XDP program.
    gate: Gate,
}

/// Runs the daemon until a signal ends it.
///
/// # Errors
/// [`Failure`].
pub fn run(file: &Path) -> Result<(), Failure> {
    let source = Source::read(file).map_err(|error| Failure::Machine(error.to_string()))?;
    let config = Config::try_from(&source).map_err(|faults| Failure::Configuration(faults.to_string()))?;
    let mut settings = Settings::new(config, file.to_owned());
    let machine = Failure::Machine;
    host_socket::allow_many();
    let signals = sys::signals().map_err(|e| machine(format!("cannot take signals: {e}")))?;
    if settings.config.memory.huge_pages == HugePages::Auto {
        allow_huge_pages();
    }
    settings.recipes = stack::recipes(&settings.config).map_err(Failure::Configuration)?;
    let mut opened = open(&mut settings).map_err(machine)?;
    configure(&opened.tables, &settings, &settings.classes).map_err(machine)?;
    // What is sent to everyone comes to sockets that are bound to any address, as far as there is room.
    settings
        .broadcasts()
        .chain([Ipv4Addr::BROADCAST])
        .for_each(|everyone| _ = opened.tables.hear(everyone.into()));
    let neighbours = opened.interface.map(netlink::Finder::open).transpose();
    let neighbours = neighbours.map_err(|error| machine(error.to_string()))?;
    let events = channel();
    let event = wake::event().map(Arc::new).map_err(|e| machine(format!("no eventfd: {e}")))?;
    let ends = std::mem::take(&mut opened.ends);
    let (orders, threads) = executors(&settings, &opened, ends, &events.0, &event).map_err(machine)?;
    let name = settings.config.device.interface.as_ref().map_or("a link", |name| name.as_str()).to_owned();
    let vlan = settings.config.device.vlan.map_or(String::new(), |vlan| format!(" VLAN {vlan}"));
    let (domains, socket) = (settings.classes.domains(), settings.config.control.socket.clone());
    let tables = opened.tables.clone();
    let watched = Watched::default();
    let (limit, cap) = (settings.config.scheduler.watchdog, settings.config.scheduler.realtime_cap);
    let (dog, receiving) = (watched.clone(), opened.receiving.clone());
    std::thread::Builder::new()
        .name("silk-watchdog".into())
        .spawn(move || watchdog::run(&dog, &receiving, limit, f64::from(cap.millionths()) / 1e6))
        .map_err(|e| machine(format!("the watchdog cannot start: {e}")))?;
    let gate = opened.gate.clone();
    let parts = server::Parts { settings, orders, events, event, signals, neighbours, tables, gate, watched };
    let mut server = Server::open(parts).map_err(machine)?;
    server.join_standing_groups();
    let base = i32::from(server.settings().config.scheduler.base_priority);
    // The control thread answers programs that wait; it does little and must not wait itself.
    let _ = priority::set(0, Scheduling::Fifo(base));
    println!(
        "silkd: ready on {name}{vlan}, {domains} domain{}, control socket {}",
        if domains == 1 { "" } else { "s" },
        socket.display()
    );
    let ended = server.run();
    server.stop();
    for thread in threads {
        let _ = thread.join();
    }
    opened.receiving.end();
    ended.map(drop).map_err(|e| machine(format!("cannot wait for requests: {e}")))
}

/// Where Linux says whether shared memory may be in huge pages.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Lets streams be in huge pages where they are switched off altogether: `advise` gives them
/// to nobody who does not ask.
fn allow_huge_pages() {
    let off = std::fs::read_to_string(HUGE_PAGES).is_ok_and(|state| state.contains("[never]"));
    if !off {
        return;
    }
    match std::fs::write(HUGE_PAGES, "advise") {
        Ok(()) => eprintln!(
            "silkd: {HUGE_PAGES} was never and is advise now; [memory] huge_pages = \"never\" leaves it"
        ),
        Err(error) => {
            eprintln!("silkd: streams are in small pages, which costs large transfers: {HUGE_PAGES}: {error}")
        }
    }
}

/// Opens the configured device and learns from it which addresses are ours.
fn open(settings: &mut Settings) -> Result<Opened, String> {
    let opened = match settings.config.device.kind {
        DeviceKind::Xdp => open_xdp(settings)?,
        _ => open_own(settings)?,
    };
    let Standing { addresses, gateway, gateway6 } = &opened.link.standing;
    settings.addresses = addresses.iter().map(|(address, _)| *address).collect();
    settings.networks = addresses.clone();
    settings.configured = addresses.clone();
    settings.routers = [gateway.map(IpAddr::from), gateway6.map(IpAddr::from)];
    settings.speaks_v6 = stack::speaks_v6(&settings.config)?;
    settings.mtu = opened.link.device.mtu;
    settings.interface = opened.interface.unwrap_or(0);
    if settings.addresses.iter().all(IpAddr::is_ipv6) {
        return Err(
            "the interface has no IPv4 address: give it one (`ip address add`), then start again".into()
        );
    }
    Ok(opened)
}

fn secret() -> [u64; 2] {
    std::array::from_fn(|_| random())
}

fn open_xdp(settings: &Settings) -> Result<Opened, String> {
    let device = &settings.config.device;
    let name = device.interface.as_ref().map_or("", |name| name.as_str());
    let options = xdp::Options {
        domains: settings.classes.domains() as u32,
        only: device.queues.as_ref().map(|queues| queues.iter().map(|queue| u32::from(*queue)).collect()),
        ring: device.ring,
        buckets: BUCKETS,
        mode: mode(device, name),
        ..xdp::Options::default()
    };
    let mut opened = xdp::open(name, &options).map_err(|error| error.to_string())?;
    let told = |error: netlink::NetlinkError| error.to_string();
    let mut kernel = netlink::Netlink::open().map_err(told)?;
    let vlan = device.vlan.unwrap_or(0);
    let shared = shared(&mut kernel, &opened.interface, vlan)?;
    let six = stack::speaks_v6(&settings.config)?;
    let standing = link::served(kernel.standing(shared.index).map_err(told)?, six);
    let (ends, words, interface) =
        (std::mem::take(&mut opened.ends), opened.tables, opened.interface.clone());
    let opened = Arc::new(Mutex::new(opened));
    let gate = Gate::of(&opened);
    let limited = gate.set_openings(&settings.classes).and_then(|()| gate.set_linux(device.linux_packets));
    limited.map_err(|error| error.to_string())?;
    let receiving = match device.napi {
        Napi::Threaded => thread_napi(&interface, &opened, settings)?,
        _ => Receiving::default(),
    };
    let tables = tables_of(words, vlan)?;
    let mtu = device.mtu.map_or(shared.mtu, u32::from).min(u32::from(u16::MAX)) as u16;
    Ok(Opened {
        ends,
        tables,
        link: Link {
            device: silk_modules::Device { address: shared.mac.0, mtu, gso: GSO, checksum_offload: true },
            standing,
            shared: true,
            secret: secret(),
        },
        interface: Some(shared.index),
        receiving,
        gate,
    })
}

/// Where the XDP program runs. On a veth a program in the driver takes the neighbour's segmentation offload, which
/// costs more than it saves there; but only with it has a veth a thread to receive by.
fn mode(device: &silk_config::Device, name: &str) -> xdp::Mode {
    let is_veth = || {
        let interface = netlink::Netlink::open().and_then(|mut kernel| kernel.interface(name));
        interface.is_ok_and(|interface| interface.veth)
    };
    match device.mode {
        XdpMode::Native => xdp::Mode::Native,
        XdpMode::Generic => xdp::Mode::Generic,
        XdpMode::Auto if device.napi == Napi::Inherit && is_veth() => xdp::Mode::Generic,
        XdpMode::Auto => xdp::Mode::Best,
    }
}

/// The interface whose addresses and routes are shared with Linux: Linux's for the virtual LAN `vlan` of the
/// device's, or that itself. It is itself, too, where something else than such an interface moves tags
/// (a program of traffic control, on a kernel without VLANs), which is the operator's to know.
fn shared(
    kernel: &mut netlink::Netlink,
    device: &netlink::Interface,
    vlan: u16,
) -> Result<netlink::Interface, String> {
    if vlan == 0 {
        return Ok(device.clone());
    }
    let found = kernel.vlan(device.index, vlan).map_err(|error| error.to_string())?;
    let found = found.unwrap_or_else(|| {
        eprintln!(
            "silkd: Linux has no interface for VLAN {vlan} of `{0}`, so the addresses of `{0}` itself are \
             shared; if that is not meant: `ip link add link {0} name {0}.{vlan} type vlan id {vlan}`, \
             give it the addresses, set it up, and start again",
            device.name
        );
        device.clone()
    });
    if let Some(why) = silk_device::vlan::kept_apart(kernel, device) {
        eprintln!("silkd: packets of VLAN {vlan} will be Linux's: {why}");
    }
    Ok(found)
}

/// Receive processing in a thread of its own, on its CPU, scheduled like the executor of the
/// highest domain while that has work. It is the interrupt of all others; what nothing may
/// overtake need not be interrupted to learn what else has arrived, and lets it run when it
/// blocks or yields.
fn thread_napi(
    interface: &netlink::Interface,
    opened: &Arc<Mutex<xdp::Device>>,
    settings: &Settings,
) -> Result<Receiving, String> {
    let device = &settings.config.device;
    let highest = settings.classes.priorities.iter().copied().max().unwrap_or(0);
    let failed = |error: silk_device::napi::NapiError| format!("napi = \"threaded\": {error}");
    let threads = silk_device::napi::make_threaded(interface).map_err(failed)?;
    if let Some(cpu) = device.napi_cpu {
        threads.iter().try_for_each(|thread| thread.pin(&[cpu.into()])).map_err(failed)?;
    }
    let priority = match priority::extended(settings.config.scheduler.base_priority.into(), highest) {
        Scheduling::Fifo(priority) => u8::try_from(priority).ok(),
        Scheduling::Ordinary | Scheduling::Batch | Scheduling::Idle => None,
    };
    let wish = (priority, device.receive);
    Ok(Receiving::start(threads, wish, opened, settings.classes.domains() as u32).unwrap_or_else(|error| {
        eprintln!("silkd: receive processing is not scheduled as it should be: {error}");
        Receiving::default()
    }))
}

/// A device whose address is silk's alone.
fn open_own(settings: &mut Settings) -> Result<Opened, String> {
    let device = settings.config.device.clone();
    let name = device.interface.as_ref().map_or("", |name| name.as_str());
    let vlan = device.vlan.unwrap_or(0);
    let network = device.address.ok_or("the device has no address")?;
    let ((ends, words), mac, mtu, offload) = match device.kind {
        DeviceKind::Packet => {
            // What of IPv6 is ours is known once the device's address is.
            let told = |error: netlink::NetlinkError| error.to_string();
            let interface = netlink::Netlink::open().and_then(|mut n| n.interface(name)).map_err(told)?;
            let mac = device.mac.map_or(interface.mac.0, |mac| mac.0);
            let addresses =
                own_addresses(&device, network.address, mac).into_iter().map(|(ip, _)| ip).collect();
            if device.router_advertisements && device.mac.is_none() && linux_heeds_routers(name) {
                return Err(format!(
                    "Linux heeds the routers on `{name}` too and would have the same addresses: \
                     `sysctl net.ipv6.conf.{name}.accept_ra=0`, or give silk a `mac` of its own"
                ));
            }
            let station = device.router_advertisements.then(|| ipv6::station(mac));
            let options = packet::Options { addresses, station, vlan, ..packet::Options::default() };
            let opened = open_ends(
                settings,
                |domains| packet::open_domains(name, domains, BUCKETS, &options),
                || packet::open(name, &options),
            )?;
            (opened, interface.mac.0, interface.mtu, true)
        }
        DeviceKind::Tap => {
            let options = tap::Options::default();
            let opened = open_ends(
                settings,
                |domains| tap::open_domains(name, domains, BUCKETS, &options),
                || tap::open(name, &options),
            )?;
            (opened, own_mac(), 1500, true)
        }
        _ => {
            let pair =
                silk_device::link::pair(&silk_device::link::Options::default()).map_err(|e| e.to_string())?;
            ((vec![pair.0], tables_in_memory(BUCKETS)?), own_mac(), 1500, false)
        }
    };
    let mac = device.mac.map_or(mac, |mac| mac.0);
    let mtu = device.mtu.map_or(mtu, u32::from).min(u32::from(u16::MAX)) as u16;
    Ok(Opened {
        ends,
        tables: tables_of(words, vlan)?,
        link: Link {
            device: silk_modules::Device {
                address: mac,
                mtu,
                gso: if offload { GSO } else { 0 },
                checksum_offload: offload,
            },
            standing: link::served(
                Standing {
                    addresses: own_addresses(&device, network.address, mac),
                    gateway: device.gateway,
                    gateway6: device.gateway6,
                },
                stack::speaks_v6(&settings.config)?,
            ),
            shared: false,
            secret: secret(),
        },
        interface: None,
        receiving: Receiving::default(),
        gate: Gate::default(),
    })
}

/// Whether Linux makes addresses of what routers advertise on the interface.
fn linux_heeds_routers(interface: &str) -> bool {
    let setting = std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{interface}/accept_ra"));
    setting.is_ok_and(|setting| setting.trim() != "0")
}

/// The addresses of a device that is silk's alone: those of the configuration, and with one of
/// IPv6, or where routers give some, the link-local one that goes with it (RFC 4291 §2.1).
fn own_addresses(device: &silk_config::Device, four: Ipv4Addr, mac: [u8; 6]) -> Vec<(IpAddr, u8)> {
    let mut addresses = vec![(four.into(), device.address.map_or(32, |network| network.prefix.length()))];
    if let Some(six) = device.address6 {
        addresses.push((six.address.into(), six.prefix.length()));
    }
    if device.address6.is_some() || device.router_advertisements {
        addresses.push((ipv6::link_local(mac).into(), 64));
    }
    addresses
}

type Ends = (Vec<End>, silk_device::Tables);

/// The ends of a device whose packets Linux hands over, with the classifier's tables: one for
/// each domain, Linux choosing among them; or one for all classes, where we may not load the
/// program that chooses.
fn open_ends(
    settings: &mut Settings,
    several: impl FnOnce(u32) -> Result<Steered, OpenError>,
    one: impl FnOnce() -> Result<End, OpenError>,
) -> Result<Ends, String> {
    let domains = settings.classes.domains() as u32;
    if domains > 1 {
        match several(domains) {
            Ok(Steered { ends, tables }) => return Ok((ends, tables)),
            Err(OpenError::Privilege { what }) => {
                eprintln!(
                    "silkd: all classes share one domain, for silkd is not allowed to {what} (CAP_BPF)"
                );
                settings.join_classes();
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok((vec![one().map_err(|error| error.to_string())?], tables_in_memory(BUCKETS)?))
}

/// Writes addresses, rules and domains into the classifier's tables, all at once.
///
/// # Errors
/// There are more addresses or rules than the tables hold.
pub fn configure(tables: &Tables, settings: &Settings, classes: &Classes) -> Result<(), String> {
    let own = stack::owns_link(&settings.config);
    let rules: Vec<ClassRule> = classes
        .rules
        .iter()
        .map(|(class, rule)| ClassRule {
            source: rule.source.map(|source| (source.address(), source.length())),
            dscp: rule.dscp.map(|dscp| dscp.get()),
            local_port: rule.local_port,
            domain: classes.domain(*class) as u8,
        })
        .collect();
    let default = classes.domain(classes.default) as u8;
    let domains = Domains { default, fragment: default, control: default };
    // On a shared interface ARP, echo and fragments stay Linux's; errors about our own
    // packets come to us all the same.
    let owned = Owned { arp: own, icmp: own, fragments: own };
    tables.configure(owned, domains, &rules, &settings.addresses).map_err(|_| {
        "the interface has more addresses, or the classes more rules, than the classifier holds".into()
    })
}

type Started = (Vec<Orders>, Vec<JoinHandle<()>>);

/// Starts an executor for each domain.
fn executors(
    settings: &Settings,
    opened: &Opened,
    ends: Vec<End>,
    events: &std::sync::mpsc::Sender<crate::command::Event>,
    control_event: &Arc<std::os::fd::OwnedFd>,
) -> Result<Started, String> {
    let failed = |e: std::io::Error| format!("an executor cannot start: {e}");
    let mut ways = Vec::new();
    for _ in &ends {
        let event = wake::event().map(Arc::new).map_err(failed)?;
        let (orders, queue) = Orders::new(event);
        ways.push((orders, queue, Arc::new(AtomicUsize::new(0))));
    }
    let siblings = || -> Vec<Sibling> {
        let sibling = |(orders, _, under_way): &(Orders, _, Arc<AtomicUsize>)| Sibling {
            orders: orders.queue().clone(),
            event: orders.event().clone(),
            under_way: under_way.clone(),
        };
        ways.iter().map(sibling).collect()
    };
    let (mut parts, mut sleepers) = (Vec::new(), Vec::new());
    for ((domain, end), (way, ..)) in ends.into_iter().enumerate().zip(&ways) {
        let sleeper = Sleeper::new(&[end.receive.fd(), way.event().as_fd()]).map_err(failed)?;
        parts.push(Parts {
            domain,
            paths: stack::paths(settings, &opened.link, &opened.tables, domain)?,
            end,
            policy: stack::policy(&settings.config, PATHS),
            classes: Arc::new(settings.classes.clone()),
            extend: settings.config.scheduler.extend,
            base: settings.config.scheduler.base_priority.into(),
            rings: (
                settings.config.memory.receive_ring.get() as u32,
                settings.config.memory.send_ring.get() as u32,
            ),
            listen: settings.config.listen.clone(),
            keepalive: settings.config.tcp.keepalive,
            congestion: stack::algorithm(settings.config.tcp.congestion),
            tables: opened.tables.clone(),
            events: events.clone(),
            control_event: control_event.clone(),
            siblings: siblings(),
            watch: sleeper.watch(),
        });
        sleepers.push(sleeper);
    }
    let (mut orders, mut threads) = (Vec::new(), Vec::new());
    for ((parts, sleeper), (way, queue, _)) in parts.into_iter().zip(sleepers).zip(ways) {
        let domain = parts.domain;
        let placement = placement(settings, domain);
        let mut engine = Engine::new(parts);
        engine.stand(stack::owns_link(&settings.config))?;
        let executor = Executor::new(engine, queue, sleeper, opened.receiving.clone());
        let thread = std::thread::Builder::new().name(format!("silk-domain-{domain}"));
        threads.push(thread.spawn(move || executor.run(&placement)).map_err(failed)?);
        orders.push(way);
    }
    Ok((orders, threads))
}

fn placement(settings: &Settings, domain: usize) -> Placement {
    let scheduler = &settings.config.scheduler;
    let priority = settings.classes.priorities.get(domain).copied().unwrap_or(0);
    let scheduling = match priority::extended(scheduler.base_priority.into(), priority) {
        Scheduling::Ordinary => Scheduling::Batch,
        other => other,
    };
    let cpus = scheduler.cpus.iter().flatten().map(|cpu| usize::from(*cpu)).collect();
    let divides = matches!(scheduler.policy, Policy::Wfq | Policy::Bert);
    let linux = divides.then(|| LinuxShare::new(scheduler.linux_share, scheduler.quantum));
    Placement { cpus, scheduling, linux }
}
