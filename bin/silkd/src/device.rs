//! Opens the devices that are configured, and learns from them what the modules must know of the links: addresses,
//! routers, who keeps the neighbours, and where packets are received.

use crate::control::moves::tell_of_table;
use crate::cpus;
use crate::say::say;
use crate::settings::Settings;
use crate::stack::{self, Links};
use crate::strangers::Gate;
use crate::threads::priority::{self, Scheduling};
use crate::threads::receive_thread::Place;
use crate::threads::receiving::Receiving;
use silk_config::{DeviceKind, Napi, XdpMode};
use silk_device::{End, OpenError, Steered, netlink, packet, tap, xdp};
use silk_executor::join::{random, tables_of};
use silk_executor::link::{self, GSO, ROUTES, own_mac, tables_in_memory};
use silk_modules::{Leads, Standing, Way};
use silk_path::classify::Tables;
use silk_path::classify::layout::DEVICES;
use silk_wire::ipv6;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// Buckets of the flow table: a quarter of a million connections at half load.
const BUCKETS: u32 = 1 << 17;

/// The opened devices.
pub struct Opened {
    /// Of each device one for each domain.
    pub ends: Vec<Vec<End>>,
    /// The classifier's tables.
    pub tables: Tables,
    /// What the modules must know.
    pub links: Links,
    /// The interfaces' numbers, where Linux shares them.
    pub interfaces: Vec<u32>,
    /// What people have heard already of routes and rules that are not followed.
    pub told_of_table: [bool; 2],
    /// The threads that do the receive work, with `napi = "threaded"`.
    pub receiving: Receiving,
    /// Kept while the daemon runs: dropping it detaches the XDP program.
    pub gate: Gate,
}

/// Opens the configured devices and learns from them which addresses are ours.
pub fn open(settings: &mut Settings) -> Result<Opened, String> {
    let opened = match settings.config.device.kind {
        DeviceKind::Xdp => open_xdp(settings)?,
        _ => open_own(settings)?,
    };
    settings.interfaces.clone_from(&opened.interfaces);
    settings.told_of_table = opened.told_of_table;
    settings.devices.clone_from(&opened.links.devices);
    settings.configured = opened.links.standing.clone();
    settings.stand(opened.links.standing.clone());
    settings.addresses = settings.standing.addresses().map(|(address, _)| address).collect();
    settings.speaks_v6 = stack::speaks_v6(&settings.config)?;
    settings.mtu = opened.links.mtu();
    if settings.addresses.is_empty() { Err(no_address(settings.speaks_v6)) } else { Ok(opened) }
}

fn no_address(speaks_v6: bool) -> String {
    let ip = if speaks_v6 { "" } else { "IPv4 " };
    format!("the interface has no {ip}address: give it one (`ip address add`), then start again")
}

/// Whether any of the interfaces has an address yet. Many drivers take their link down to attach an XDP program, and whoever waits for
/// an address, and tries again each second, would keep it away so.
fn have_addresses(settings: &Settings, kernel: &mut netlink::Netlink) -> Result<(), String> {
    let speaks_v6 = stack::speaks_v6(&settings.config)?;
    for device in settings.config.devices() {
        let name = device.interface.as_ref().map_or("", |name| name.as_str());
        // What is wrong with the interface itself is said where it is opened.
        let Ok(interface) = kernel.interface(name) else { return Ok(()) };
        let of_vlan = device.vlan.and_then(|vlan| kernel.vlan(interface.index, vlan).ok().flatten());
        let index = of_vlan.map_or(interface.index, |shared| shared.index);
        let addresses = kernel.addresses(index).map_err(|error| error.to_string())?;
        if addresses.iter().any(|own| speaks_v6 || own.address.is_ipv4()) {
            return Ok(());
        }
    }
    Err(no_address(speaks_v6))
}

fn secret() -> [u64; 2] {
    std::array::from_fn(|_| random())
}

fn open_xdp(settings: &Settings) -> Result<Opened, String> {
    let wishes: Vec<_> = settings.config.devices().map(|device| wish(settings, device)).collect();
    let told = |error: netlink::NetlinkError| error.to_string();
    let mut kernel = netlink::Netlink::open().map_err(told)?;
    have_addresses(settings, &mut kernel)?;
    let mut opened = xdp::open_all(&wishes).map_err(|error| error.to_string())?;
    let mut ends = vec![std::mem::take(&mut opened.ends)];
    let mut interfaces = vec![(opened.interface.clone(), opened.mode)];
    for further in &mut opened.further {
        ends.push(std::mem::take(&mut further.ends));
        interfaces.push((further.interface.clone(), further.mode));
    }
    for ((_, wish), (interface, mode)) in wishes.iter().zip(&interfaces) {
        if wish.mode == xdp::Mode::Best && *mode == xdp::Mode::Generic {
            say!(
                Warning,
                "silkd: the driver of `{}` takes no XDP program as it is set up, so packets are told apart behind it, \
                 which costs more (`mode = \"native\"` says why)",
                interface.name
            );
        }
    }
    let words = opened.tables;
    let opened = Arc::new(Mutex::new(opened));
    let gate = Gate::of(&opened);
    gate.set_openings(&settings.classes).map_err(|error| error.to_string())?;
    let (mut devices, mut locals, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut vlans, mut receiving) = ([0; DEVICES], Receiving::default());
    for (number, (device, (interface, mode))) in (0u32..).zip(settings.config.devices().zip(&interfaces)) {
        gate.set_linux(number, device.linux_packets).map_err(|error| error.to_string())?;
        let vlan = device.vlan.unwrap_or(0);
        let shared = shared(&mut kernel, (interface, *mode), vlan)?;
        locals.push(kernel.addresses(shared.index).map_err(told)?);
        numbers.push(shared.index);
        let mtu = device.mtu.map_or(shared.mtu, u32::from).min(u32::from(u16::MAX)) as u16;
        devices.push(silk_modules::Device { address: shared.mac.0, mtu, gso: GSO, checksum_offload: true });
        vlans.iter_mut().skip(number as usize).take(1).for_each(|of| *of = vlan);
        if device.napi == Napi::Threaded {
            receiving = receiving.and(thread_napi((number, device), interface, &opened, settings)?);
        }
    }
    let table = kernel.table(ROUTES).map_err(told)?;
    let mut told_of_table = [false; 2];
    tell_of_table(&table, &mut told_of_table);
    let mut standing = link::shared(&locals, &table, &numbers);
    link::serve_all(&mut standing, stack::speaks_v6(&settings.config)?);
    Ok(Opened {
        ends,
        tables: tables_of(words, vlans)?,
        links: Links { devices, standing, shared: true, secret: secret() },
        interfaces: numbers,
        told_of_table,
        receiving,
        gate,
    })
}

/// How a device is to be opened.
fn wish<'c>(settings: &Settings, device: &'c silk_config::Device) -> (&'c str, xdp::Options) {
    let name = device.interface.as_ref().map_or("", |name| name.as_str());
    let options = xdp::Options {
        domains: settings.classes.domains() as u32,
        only: device.queues.as_ref().map(|queues| queues.iter().map(|queue| u32::from(*queue)).collect()),
        ring: device.ring,
        buckets: BUCKETS,
        mode: mode(device, name),
        vlan: device.vlan.unwrap_or(0),
        ..xdp::Options::default()
    };
    (name, options)
}

/// Where packets are told apart. On a veth a program in the driver takes the neighbour's segmentation offload, which
/// costs more than it saves there; but only with it has a veth a thread to receive by.
fn mode(device: &silk_config::Device, name: &str) -> xdp::Mode {
    let is_veth = || {
        let interface = netlink::Netlink::open().and_then(|mut kernel| kernel.interface(name));
        interface.is_ok_and(|interface| interface.veth)
    };
    match device.mode {
        XdpMode::Native => xdp::Mode::Native,
        XdpMode::Generic => xdp::Mode::Generic,
        XdpMode::Ingress => xdp::Mode::Ingress,
        XdpMode::Auto if device.napi == Napi::Inherit && is_veth() => xdp::Mode::Generic,
        XdpMode::Auto => xdp::Mode::Best,
    }
}

/// The interface whose addresses and routes are shared with Linux: Linux's for the virtual LAN `vlan` of the
/// device's, or that itself. It is itself, too, where something else than such an interface moves tags
/// (a program of traffic control, on a kernel without VLANs), which is the operator's to know.
fn shared(
    kernel: &mut netlink::Netlink,
    (device, mode): (&netlink::Interface, xdp::Mode),
    vlan: u16,
) -> Result<netlink::Interface, String> {
    if vlan == 0 {
        return Ok(device.clone());
    }
    let found = kernel.vlan(device.index, vlan).map_err(|error| error.to_string())?;
    let found = found.unwrap_or_else(|| {
        say!(
            Warning,
            "silkd: Linux has no interface for VLAN {vlan} of `{0}`, so the addresses of `{0}` itself are \
             shared; if that is not meant: `ip link add link {0} name {0}.{vlan} type vlan id {vlan}`, \
             give it the addresses, set it up, and start again",
            device.name
        );
        device.clone()
    });
    let kept_apart = || silk_device::vlan::kept_apart(kernel, device);
    if let Some(why) = (mode != xdp::Mode::Ingress).then(kept_apart).flatten() {
        say!(Warning, "silkd: packets of VLAN {vlan} will be Linux's: {why}");
    }
    Ok(found)
}

/// Receive processing in a thread of its own, on its CPU, scheduled like the executor of the
/// highest domain while that has work. It is the interrupt of all others; what nothing may
/// overtake need not be interrupted to learn what else has arrived, and lets it run when it
/// blocks or yields.
fn thread_napi(
    (number, device): (u32, &silk_config::Device),
    interface: &netlink::Interface,
    opened: &Arc<Mutex<xdp::Device>>,
    settings: &Settings,
) -> Result<Receiving, String> {
    let highest = settings.classes.priorities.iter().copied().max().unwrap_or(0);
    let failed = |error: silk_device::napi::NapiError| format!("napi = \"threaded\": {error}");
    let threads = silk_device::napi::make_threaded(interface).map_err(failed)?;
    if let Some(cpu) = device.napi_cpu {
        let pinned = threads.iter().try_for_each(|thread| thread.pin(&[cpu.into()]));
        pinned.map_err(|error| format!("napi_cpu = {cpu}: {error}; {}", cpus::those_there_are()))?;
    }
    let place = Place { number, interface: interface.clone(), cpu: device.napi_cpu.map(usize::from) };
    let priority = match priority::extended(settings.config.scheduler.base_priority.into(), highest) {
        Scheduling::Fifo(priority) => u8::try_from(priority).ok(),
        Scheduling::Ordinary | Scheduling::Batch | Scheduling::Idle | Scheduling::First => None,
    };
    let wish = (priority, device.receive);
    Ok(Receiving::start((place, threads), wish, opened, settings.classes.domains() as u32).unwrap_or_else(
        |error| {
            say!(Warning, "silkd: receive processing is not scheduled as it should be: {error}");
            Receiving::default()
        },
    ))
}

/// A device whose address is silk's alone.
fn open_own(settings: &mut Settings) -> Result<Opened, String> {
    let device = settings.config.device.clone();
    let name = device.interface.as_ref().map_or("", |name| name.as_str());
    let vlan = device.vlan.unwrap_or(0);
    if device.kind != DeviceKind::Link {
        is_nobody_elses(&device)?;
    }
    let ((ends, words), mac, mtu, offload) = match device.kind {
        DeviceKind::Packet => {
            // What of IPv6 is ours is known once the device's address is.
            let interface = netlink::Interface::to_serve(name).map_err(|error| error.to_string())?;
            let mac = device.mac.map_or(interface.mac.0, |mac| mac.0);
            let addresses = own_addresses(&device, mac).into_iter().map(|(ip, _)| ip).collect();
            if device.router_advertisements && device.mac.is_none() && linux_heeds_routers(name) {
                return Err(format!(
                    "Linux heeds the routers on `{name}` too and would have the same addresses: \
                     `sysctl net.ipv6.conf.{name}.accept_ra=0`, or give silk a `mac` of its own"
                ));
            }
            let station = device.router_advertisements.then(|| ipv6::station(mac));
            let own = device.mac.map(|mac| mac.0);
            let options =
                packet::Options { addresses, station, mac: own, vlan, ..packet::Options::default() };
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
            let end = silk_device::link::alone(&silk_device::link::Options::default());
            let end = end.map_err(|error| error.to_string())?;
            ((vec![end], tables_in_memory(BUCKETS)?), own_mac(), 1500, false)
        }
    };
    let mac = device.mac.map_or(mac, |mac| mac.0);
    let mtu = device.mtu.map_or(mtu, u32::from).min(u32::from(u16::MAX)) as u16;
    let routers = device.gateway.map(IpAddr::from).into_iter().chain(device.gateway6.map(IpAddr::from));
    let mut standing = Standing::of(&own_addresses(&device, mac), routers);
    standing.ways.extend(device.routes.iter().map(|route| {
        let leads = Leads::Over { link: 0, gateway: route.via, source: None, mtu: None };
        Way { network: route.to.address(), prefix: route.to.length(), leads }
    }));
    link::serve_all(&mut standing, stack::speaks_v6(&settings.config)?);
    let gso = if offload { GSO } else { 0 };
    let devices = vec![silk_modules::Device { address: mac, mtu, gso, checksum_offload: offload }];
    Ok(Opened {
        ends: vec![ends],
        tables: tables_of(words, [vlan; DEVICES])?,
        links: Links { devices, standing, shared: false, secret: secret() },
        interfaces: Vec::new(),
        told_of_table: [false; 2],
        receiving: Receiving::default(),
        gate: Gate::default(),
    })
}

/// Linux would answer beside silk what is sent to an address of its own, and reset what is opened to it; and what is
/// sent to it from the machine itself would never leave it.
fn is_nobody_elses(device: &silk_config::Device) -> Result<(), String> {
    let own = [device.address.map(|four| four.address.into()), device.address6.map(|six| six.address.into())];
    let own = own.into_iter().flatten().collect::<Vec<IpAddr>>();
    // Without an answer nothing is known of them.
    let Ok(mut kernel) = netlink::Netlink::open() else { return Ok(()) };
    let linuxs = kernel.all_addresses().unwrap_or_default();
    let Some(both) = linuxs.iter().find(|linuxs| own.contains(&linuxs.address)) else { return Ok(()) };
    let interface = kernel.interface_at(both.interface).map_or_else(|_| "another".to_owned(), |one| one.name);
    Err(format!(
        "Linux has the address {} too, on `{interface}`, and would answer beside silk: give silk one that nobody has, or share Linux's \
         (`kind = \"xdp\"`)",
        both.address
    ))
}

/// Whether Linux makes addresses of what routers advertise on the interface.
fn linux_heeds_routers(interface: &str) -> bool {
    let setting = std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{interface}/accept_ra"));
    setting.is_ok_and(|setting| setting.trim() != "0")
}

/// The addresses of a device that is silk's alone.
fn own_addresses(device: &silk_config::Device, mac: [u8; 6]) -> Vec<(IpAddr, u8)> {
    let four = device.address.map(|four| (four.address.into(), four.prefix.length()));
    let six = device.address6.map(|six| (six.address.into(), six.prefix.length()));
    link::own(four.into_iter().chain(six), mac, device.router_advertisements)
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
                say!(
                    Warning,
                    "silkd: all classes share one domain, for silkd is not allowed to {what} (CAP_BPF)"
                );
                settings.join_classes();
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok((vec![one().map_err(|error| error.to_string())?], tables_in_memory(BUCKETS)?))
}
