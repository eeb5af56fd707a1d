//! Starting the daemon, in the order in which things can fail: configuration, device,
//! executors, control socket. Nothing is left behind by a failed start.

use crate::between::command::Orders;
use crate::classes::algorithm;
use crate::control::closing_apart::ClosingApart;
use crate::control::control_socket;
use crate::control::server::{self, Server};
use crate::device::{self, Opened};
use crate::domain::engine::{Engine, Parts};
use crate::domain::executor::{Executor, Placement};
use crate::domain::host_socket;
use crate::domain::sibling::Sibling;
use crate::domain::sleep::Sleeper;
use crate::say::{self, say};
use crate::settings::{Settings, owns_link};
use crate::tables::configure;
use crate::threads::heir::Heir;
use crate::threads::linux_share::LinuxShare;
use crate::threads::priority::{self, Scheduling};
use crate::threads::receiving::Receiving;
use crate::threads::ringing::{Patience, Ringers};
use crate::threads::stepping_down::{RealTime, SteppingDown};
use crate::threads::watchdog::{self, Watched};
use crate::{cpus, stack, sys};
use silk_config::{Config, Device, Scheduler, Source, Unlisted, Unreadable};
use silk_device::{End, Receive, Transmit, netlink, several};
use silk_stream::mail::mail;
use silk_stream::wake;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

/// Why the daemon did not start, or ended.
pub enum Failure {
    /// The configuration is wrong: the operator's to mend. Rendered, every fault.
    Configuration(String),
    /// The machine cannot do it, or not now: a sentence.
    Machine(String),
}

/// Paths one domain can have.
const PATHS: u32 = 1 << 20;

/// Runs the daemon until a signal ends it.
///
/// # Errors
/// [`Failure`].
pub fn run(file: &Path) -> Result<(), Failure> {
    let source = Source::read(file).map_err(unreadable)?;
    let config = Config::try_from(&source).map_err(|faults| Failure::Configuration(faults.to_string()))?;
    let graph_is_read = |graph| Source::read(graph).map(drop).map_err(|why| why.graph_of(&source.name));
    config.graph.as_deref().map_or(Ok(()), graph_is_read).map_err(unreadable)?;
    is_possible_here(&config).map_err(|why| Failure::Configuration(format!("silkd: {why}")))?;
    let refused = config.refuse.everybody(&source.name).map_err(|why| match why {
        Unlisted::Unreadable(why) => unreadable(why),
        why => Failure::Configuration(why.to_string()),
    })?;
    let mut settings = Settings::new(config, file.to_owned());
    settings.refused = Arc::new(refused);
    settings.recipes = stack::recipes(&settings.config).map_err(Failure::Configuration)?;
    let machine = Failure::Machine;
    host_socket::allow_many();
    let signals = sys::signals().map_err(|e| machine(format!("cannot take signals: {e}")))?;
    let mut opened = device::open(&mut settings).map_err(machine)?;
    let heir = heir(&opened.receiving);
    let ended = serve(settings, &mut opened, signals);
    // Where that could not begin, too.
    opened.receiving.end();
    drop(heir);
    ended
}

/// Whether the machine has what the configuration names: a device is not opened, which may interrupt its link, for a daemon that
/// could not start.
///
/// # Errors
/// What it has not: a sentence.
fn is_possible_here(config: &Config) -> Result<(), String> {
    let cpus = cpus_of(&config.scheduler);
    cpus::check(&cpus).map_err(|why| format!("[scheduler] cpus = {cpus:?}: {why}"))?;
    for cpu in config.devices().filter_map(|device| device.napi_cpu) {
        cpus::check(&[cpu.into()]).map_err(|why| format!("[device] napi_cpu = {cpu}: {why}"))?;
    }
    config
        .control
        .group
        .as_deref()
        .map_or(Ok(()), |group| control_socket::group_id(group).map(drop))
        .map_err(|why| why.to_string())
}

/// Tells a service manager, if one has started us and wants to know, that programs are served from now on (sd_notify(3)).
fn tell_who_waits() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        say!(
            Warning,
            "silkd: the service manager that waits for it cannot be told that it is ready: {error}"
        );
    }
}

/// Serves programs over the opened devices until a signal ends it.
fn serve(settings: Settings, opened: &mut Opened, signals: OwnedFd) -> Result<(), Failure> {
    let machine = Failure::Machine;
    configure(&opened.tables, &settings, &settings.classes).map_err(machine)?;
    // There is room: that was looked at.
    let _ = opened.tables.refuse(&settings.refused);
    // What is sent to everyone comes to sockets that are bound to any address, as far as there is room.
    settings.everyone().for_each(|everyone| _ = opened.tables.hear(everyone));
    // Of a virtual LAN Linux's interface is another than that which packets come by.
    let both = opened.interfaces.iter().zip(opened.gate.interfaces());
    let finder = |(interface, device): (&u32, u32)| Ok(netlink::Finder::open(*interface)?.over(device));
    let neighbours: Result<Vec<_>, netlink::NetlinkError> = both.map(finder).collect();
    let neighbours = neighbours.map_err(|error| machine(error.to_string()))?;
    let events = mail();
    let event = wake::event().map(Arc::new).map_err(|e| machine(format!("no eventfd: {e}")))?;
    let ends = std::mem::take(&mut opened.ends);
    let (real_time, ringers) = (RealTime::default(), Ringers::default());
    sys::may_be_interrupted().map_err(|e| machine(format!("cannot take signals: {e}")))?;
    let (orders, threads) =
        executors(&settings, opened, ends, &events.0, &event, (&real_time, &ringers)).map_err(machine)?;
    let names = settings.config.devices().map(named).collect::<Vec<_>>().join(", ");
    let (domains, socket) = (settings.classes.domains(), settings.config.control.socket.clone());
    let tables = opened.tables.clone();
    let watched = Watched::default();
    let (limit, cap) = (settings.config.scheduler.watchdog, settings.config.scheduler.realtime_cap);
    let (dog, receiving) = (watched.clone(), opened.receiving.clone());
    let own = (SteppingDown::new(real_time, receiving.clone()), Patience::with(ringers.clone()));
    std::thread::Builder::new()
        .name("silk-watchdog".into())
        .spawn(move || watchdog::run(&dog, &receiving, own, limit, f64::from(cap.millionths()) / 1e6))
        .map_err(|e| machine(format!("the watchdog cannot start: {e}")))?;
    let closing = ClosingApart::begin(ringers.clone(), event.clone())
        .map_err(|e| machine(format!("the thread that closes what programs send cannot start: {e}")))?;
    let gate = opened.gate.clone();
    let receiving = opened.receiving.clone();
    let parts = server::Parts {
        settings,
        orders,
        events,
        event,
        signals,
        neighbours,
        tables,
        gate,
        watched,
        receiving,
        closing,
        ringers,
    };
    let mut server = Server::open(parts).map_err(machine)?;
    server.join_standing_groups();
    let base = i32::from(server.settings().config.scheduler.base_priority);
    // The control thread answers programs that wait; it does little and must not wait itself.
    let _ = priority::set(0, Scheduling::Fifo(base));
    tell_what_is_passed_by(opened.interfaces.is_empty());
    let plural = if domains == 1 { "" } else { "s" };
    say::print(format_args!(
        "silkd: ready on {names}, {domains} domain{plural}, control socket {}",
        socket.display()
    ));
    tell_who_waits();
    let ended = server.run();
    server.stop();
    for thread in threads {
        let _ = thread.join();
    }
    ended.map(drop).map_err(|e| machine(format!("cannot wait for requests: {e}")))
}

/// Linux's packet filter and its IPsec do not see what programs on silk receive and send: who relies on them is to know. Where
/// the address is silk's alone (`own`) they never have seen that.
fn tell_what_is_passed_by(own: bool) {
    if own {
        return;
    }
    // Without an answer there is none, or nobody who may know of it.
    let tables = netlink::filter::tables().unwrap_or_default();
    if netlink::ipsec::policies().is_ok_and(|policies| policies > 0) {
        say!(
            Warning,
            "silkd: programs on silk are not behind Linux's IPsec (`ip xfrm policy`): what it would encrypt they send as it is, so leave \
             those that are to be reached by it alone to Linux"
        );
    }
    if !tables.is_empty() {
        say!(
            Warning,
            "silkd: programs on silk are not behind Linux's packet filter ({}): whoever it keeps from their ports reaches them, \
             but for chains at the ingress of the interface with `mode = \"ingress\"`",
            tables.join(", ")
        );
    }
}

/// Who makes receive threads ordinary ones if this process is killed, where there are such threads.
fn heir(receiving: &Receiving) -> Option<Heir> {
    let interfaces = receiving.interfaces();
    let heir = (!interfaces.is_empty()).then(|| Heir::of(interfaces))?;
    heir.inspect_err(|error| {
        say!(Warning, "silkd: where it is killed, receive threads will keep their priority: {error}")
    })
    .ok()
}

/// A file that is there and is no text is a fault of the configuration, as for `silk check`: no restart mends it.
fn unreadable(why: Unreadable) -> Failure {
    if why.is_of_contents() {
        Failure::Configuration(format!("silkd: {why}"))
    } else {
        Failure::Machine(why.to_string())
    }
}

/// A device as messages name it.
fn named(device: &Device) -> String {
    let name = device.interface.as_ref().map_or("a link", |name| name.as_str());
    device.vlan.map_or(name.to_owned(), |vlan| format!("{name} VLAN {vlan}"))
}

/// Where a domain's frames arrive, and where they leave over each device.
type DomainEnd = (Box<dyn Receive>, Vec<Box<dyn Transmit>>);

/// The ends of each domain, from those of each device.
fn domain_ends(devices: Vec<Vec<End>>) -> std::io::Result<Vec<DomainEnd>> {
    let domains = devices.first().map_or(0, Vec::len);
    let mut all: Vec<_> = devices.into_iter().map(Vec::into_iter).collect();
    let mut of_domain =
        || all.iter_mut().filter_map(Iterator::next).map(|end| (end.receive, end.transmit)).unzip();
    (0..domains)
        .map(|_| {
            let (receives, transmits) = of_domain();
            Ok((several(receives)?, transmits))
        })
        .collect()
}

type Started = (Vec<Orders>, Vec<JoinHandle<()>>);

/// What leads back to ourselves: as many messages under way as a veth holds packets.
const ITSELF: silk_device::link::Options =
    silk_device::link::Options { mtu: u16::MAX as usize, queue: 256, buffers: 256, cut: false };

/// Starts an executor for each domain.
fn executors(
    settings: &Settings,
    opened: &Opened,
    mut ends: Vec<Vec<End>>,
    events: &silk_stream::mail::Sender<crate::between::told::Told>,
    control_event: &Arc<OwnedFd>,
    (real_time, ringers): (&RealTime, &Ringers),
) -> Result<Started, String> {
    let failed = |e: std::io::Error| format!("an executor cannot start: {e}");
    let (mut ways, mut sleepers) = (Vec::new(), Vec::new());
    let interface = |device: &Device| device.interface.as_ref().map_or("", |name| name.as_str()).to_owned();
    let devices: Arc<[String]> = settings.config.devices().map(interface).collect();
    let itself = opened.links.itself();
    if itself.is_some() {
        let back = |_| silk_device::link::back(&ITSELF);
        let domains = 0..ends.first().map_or(0, Vec::len);
        ends.push(domains.map(back).collect::<Result<_, _>>().map_err(failed)?);
    }
    let domains = domain_ends(ends).map_err(failed)?;
    for (receive, _) in &domains {
        let event = wake::event().map(Arc::new).map_err(failed)?;
        let sleeper = Sleeper::new(&receive.fds(), event.as_fd()).map_err(failed)?;
        let (orders, queue) = Orders::new(event, sleeper.watch());
        ways.push((orders, queue, Arc::new(AtomicUsize::new(0))));
        sleepers.push(sleeper);
    }
    let siblings = || -> Vec<Sibling> {
        let sibling = |(orders, _, under_way): &(Orders, _, Arc<AtomicUsize>)| Sibling {
            orders: orders.queue().clone(),
            event: orders.event().clone(),
            under_way: under_way.clone(),
        };
        ways.iter().map(sibling).collect()
    };
    let mut parts = Vec::new();
    for ((domain, (receive, transmits)), sleeper) in domains.into_iter().enumerate().zip(&sleepers) {
        parts.push(Parts {
            domain,
            paths: stack::paths(settings, &opened.links, &opened.tables, domain)?,
            receive,
            transmits,
            interfaces: opened.interfaces.clone(),
            devices: devices.clone(),
            itself,
            policy: stack::policy(&settings.config, PATHS).map_err(|refused| refused.to_string())?,
            classes: Arc::new(settings.classes.clone()),
            extend: settings.config.scheduler.extend,
            base: settings.config.scheduler.base_priority.into(),
            rings: (
                settings.config.memory.receive_ring.get() as u32,
                settings.config.memory.send_ring.get() as u32,
            ),
            largest_ring: settings.config.memory.largest_ring.get() as u32,
            listen: settings.config.listen.clone(),
            keepalive: settings.config.tcp.keepalive,
            congestion: algorithm(settings.config.tcp.congestion),
            tables: opened.tables.clone(),
            events: events.clone(),
            control_event: control_event.clone(),
            siblings: siblings(),
            watch: sleeper.watch(),
        });
    }
    let (mut orders, mut threads) = (Vec::new(), Vec::new());
    for ((parts, sleeper), (way, queue, _)) in parts.into_iter().zip(sleepers).zip(ways) {
        let domain = parts.domain;
        let placement = placement(settings, domain);
        let mut engine = Engine::new(parts);
        engine.stand(owns_link(&settings.config))?;
        let others = (opened.receiving.clone(), real_time.clone(), ringers.clone());
        let executor = Executor::new(engine, queue, sleeper, others);
        let thread = std::thread::Builder::new().name(format!("silk-domain-{domain}"));
        threads.push(thread.spawn(move || executor.run(&placement)).map_err(failed)?);
        orders.push(way);
    }
    Ok((orders, threads))
}

fn cpus_of(scheduler: &Scheduler) -> Vec<usize> {
    scheduler.cpus.iter().flatten().map(|cpu| usize::from(*cpu)).collect()
}

fn placement(settings: &Settings, domain: usize) -> Placement {
    let scheduler = &settings.config.scheduler;
    let priority = settings.classes.priorities.get(domain).copied().unwrap_or(0);
    let scheduling = match priority::extended(scheduler.base_priority.into(), priority) {
        Scheduling::Ordinary => Scheduling::Batch,
        other => other,
    };
    let cpus = cpus_of(scheduler);
    let divides = scheduler.policy.divides() || !settings.config.policies.is_empty();
    let linux = divides.then(|| LinuxShare::new(scheduler.linux_share, scheduler.quantum));
    // Programs below it would wait for an executor that waits, and Linux's share is measured by who sleeps.
    let anticipates = scheduler.extend && linux.is_none();
    Placement { cpus, scheduling, linux, anticipates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn what_is_no_text_is_a_fault_of_the_configuration_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("silk.toml");
        assert!(matches!(run(&file), Err(Failure::Machine(why)) if why.starts_with("there is no file")));
        std::fs::write(&file, b"interface = \"\xff\"").unwrap();
        assert!(matches!(run(&file), Err(Failure::Configuration(why)) if why.contains("is not text")));
        let graph = "graph = \"/nonexistent/graph.toml\"\n[device]\ninterface = \"eth0\"\n";
        std::fs::write(&file, graph).unwrap();
        let told =
            format!("there is no file `/nonexistent/graph.toml`; `{}` names it as its graph", file.display());
        assert!(matches!(run(&file), Err(Failure::Machine(why)) if why == told));
    }

    #[test]
    fn what_the_machine_has_not_is_told_before_a_device_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("silk.toml");
        let told = |rest: &str| {
            std::fs::write(&file, format!("[device]\ninterface = \"nosuch0\"\n{rest}")).unwrap();
            match run(&file) {
                Err(Failure::Configuration(why)) => why,
                Err(Failure::Machine(why)) => panic!("{why}"),
                Ok(()) => panic!("it ran"),
            }
        };
        let cpu = told("napi = \"threaded\"\nnapi_cpu = 1000\n");
        assert!(cpu.starts_with("silkd: [device] napi_cpu = 1000: Invalid argument"), "{cpu}");
        let cpus = told("[scheduler]\ncpus = [1000]\n");
        assert!(cpus.starts_with("silkd: [scheduler] cpus = [1000]: Invalid argument"), "{cpus}");
        let group = told("[control]\ngroup = \"no-such-group\"\n");
        assert_eq!(group, "silkd: [control] group: there is no group `no-such-group`");
        let graph = folder.path().join("graph.toml");
        std::fs::write(&graph, stack::WEB.replace("name = \"vnet\"", "name = \"vnet\"\ndevice = 7")).unwrap();
        std::fs::write(&file, format!("graph = {graph:?}\n[device]\ninterface = \"nosuch0\"\n")).unwrap();
        assert!(matches!(run(&file), Err(Failure::Configuration(why)) if why.contains("has no device 7")));
    }

    #[test]
    fn who_anticipates_keeps_the_processor_from_nobody_it_needs() {
        let anticipates = |scheduler: &str| {
            let text = format!(
                "[device]\ninterface = \"eth0\"\n[scheduler]\n{scheduler}\n[[class]]\nname = \"preferred\"\n\
                 priority = 2\nsource = \"10.0.0.0/24\"\n[[class]]\nname = \"all\"\ndefault = true\n"
            );
            let config = Config::parse("test", &text).unwrap_or_else(|faults| panic!("{faults}"));
            placement(&Settings::new(config, PathBuf::new()), 1).anticipates
        };
        assert!(anticipates("extend = true"));
        assert!(!anticipates("extend = false"), "its programs are ordinary ones");
        assert!(!anticipates("extend = true\npolicy = \"wfq\""), "Linux has its share while it sleeps");
    }
}
