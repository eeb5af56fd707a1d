//! Puts a domain together: the graph with its modules, the paths that stand from the start,
//! and the policy. The only place where `path`, `sched`, `modules` and the configuration meet.

use crate::classes::{Classes, algorithm};
use crate::recipes::Recipe;
use crate::settings::Settings;
use silk_config::{Config, Ecn, Graph as GraphFile, MtuProbing, Percent, Policy as PolicyName, Source};
use silk_modules::{Device, HeaderTemplate, Setup, Standing, catalogue, tcp};
use silk_path::classify::Tables;
use silk_path::transform::{Measure, Rule};
use silk_path::{Catalogue, Fault, Graph, Limits, Paths};
use silk_sched::{Bert, DeadlineWorkahead, Edf, Fixed, Policy, Refused, Shares, Wfq};
use std::time::Duration;

/// The graph of a server, unless the configuration names another.
pub const WEB: &str = include_str!("../../../graphs/web.toml");
/// One message of so many is measured: of a flood of small ones measuring each took a sixteenth of the processor.
const MEASURED: u8 = 8;

/// What is known of the links.
#[derive(Clone, Debug)]
pub struct Links {
    /// The devices as the modules see them. There is at least one.
    pub devices: Vec<Device>,
    /// How the link of each stands.
    pub standing: Standing,
    /// Linux shares the interfaces and keeps the neighbours.
    pub shared: bool,
    /// 128 random bits for initial sequence numbers, the same in all domains.
    pub secret: [u64; 2],
}

impl Links {
    /// The device, after all others, by which what is sent to our own addresses comes back. Where Linux has these addresses, too, it
    /// serves who connects to them.
    pub fn itself(&self) -> Option<u8> {
        (!self.shared).then_some(self.devices.len() as u8)
    }

    /// The largest IP packet that every one of them takes, bytes.
    pub fn mtu(&self) -> u16 {
        self.devices.iter().map(|device| device.mtu).min().unwrap_or(0)
    }
}

/// The paths of one domain, none yet, through the graph of a server.
///
/// # Errors
/// Everything that is wrong with the graph.
pub fn paths(settings: &Settings, links: &Links, tables: &Tables, domain: usize) -> Result<Paths, String> {
    let itself = links.itself();
    let devices = links.devices.iter().copied().chain(itself.map(|_| Device::itself())).collect();
    let setup = Setup {
        domain: domain as u8,
        devices,
        itself,
        standing: links.standing.clone(),
        neighbours_told: links.shared,
        // Where neighbour discovery arrives.
        heeds_routers: settings.config.device.router_advertisements
            && domain == settings.classes.domain(settings.classes.default),
        heeds_redirects: settings.config.device.redirects,
        tcp: tcp::Parameters {
            config: tcp_config(&settings.config, links.mtu()),
            secret: links.secret,
            time_wait: settings.config.tcp.time_wait_max as usize,
            share_windows: settings.config.tcp.share_windows,
        },
        ..Setup::new(tables.clone())
    };
    let catalogue = catalogue(setup);
    let file = graph_file(&settings.config, &catalogue)?;
    let in_words = |faults: Vec<Fault>| {
        let words: Vec<String> = faults.iter().map(|fault| fault.what.to_string()).collect();
        format!("the graph cannot be built: {}", words.join("; "))
    };
    let graph = Graph::build(&file.spec(), &catalogue).map_err(in_words)?;
    let measure = Measure { one_of: MEASURED, ..Measure::default() };
    let rules: Vec<Box<dyn Rule>> = vec![Box::new(HeaderTemplate), Box::new(measure)];
    let mut paths = Paths::new(graph, rules);
    set_limits(&mut paths, &settings.classes);
    Ok(paths)
}

/// The graph the configuration names, or that of a server, checked against the modules there
/// are.
///
/// # Errors
/// Everything that is wrong with it, rendered.
fn graph_file(config: &Config, catalogue: &impl Catalogue) -> Result<GraphFile, String> {
    let named = config.graph.as_ref().map(|path| Source::read(path)).transpose();
    let named = named.map_err(|error| error.to_string())?;
    let (name, text) = named.as_ref().map_or(("web.toml", WEB), |source| (&source.name, &source.text));
    GraphFile::check_for(config, (name, text), catalogue).map_err(|faults| faults.to_string())
}

/// The graph's paths that programs can ask for.
///
/// # Errors
/// What is wrong with the graph.
pub fn recipes(config: &Config) -> Result<Vec<Recipe>, String> {
    let catalogue = catalogue(Setup::new(Tables::with_room(64, 1)));
    Ok(crate::recipes::recipes(&graph_file(config, &catalogue)?))
}

/// Takes over what the paths of each class may have.
pub fn set_limits(paths: &mut Paths, classes: &Classes) {
    for (number, (class, _)) in classes.classes.iter().enumerate() {
        paths.classes.set_limits(number as u8, limits(class));
    }
}

fn limits(class: &silk_config::Class) -> Limits {
    let none = Limits::NONE;
    Limits {
        paths: class.limits.paths.unwrap_or(none.paths),
        path_memory: class.limits.path_memory.map_or(none.path_memory, |size| size.get()),
        class_memory: class.limits.memory.map_or(none.class_memory, |size| size.get()),
    }
}

fn tcp_config(config: &Config, mtu: u16) -> silk_tcp::Config {
    let tcp = &config.tcp;
    let ring = config.memory.receive_ring.get() as u32;
    silk_tcp::Config {
        mss: mtu.saturating_sub(40),
        receive_window: ring.min(64 << 10),
        receive_window_max: ring.max(config.memory.largest_ring.get() as u32),
        window_scaling: tcp.window_scaling,
        timestamps: tcp.timestamps,
        sack: tcp.sack,
        congestion: algorithm(tcp.congestion),
        ecn: match tcp.ecn {
            Ecn::Off => silk_tcp::Ecn::Off,
            Ecn::Accept => silk_tcp::Ecn::Accept,
            Ecn::Ask => silk_tcp::Ecn::Ask,
        },
        mtu_probing: match tcp.mtu_probing {
            MtuProbing::Off => silk_tcp::MtuProbing::Off,
            MtuProbing::BlackHoles => silk_tcp::MtuProbing::BlackHoles,
            MtuProbing::Always => silk_tcp::MtuProbing::Always,
        },
        initial_window: tcp.initial_window,
        min_rto: tcp.min_rto,
        delayed_ack: tcp.delayed_ack,
        syn_retries: tcp.syn_retries,
        syn_ack_retries: tcp.syn_ack_retries,
        syn_cookies: tcp.syn_cookies,
        retries: tcp.retries,
        user_timeout_option: (!tcp.user_timeout_option.is_zero()).then_some(tcp.user_timeout_option),
        fin_wait_2: tcp.fin_wait,
        time_wait: tcp.time_wait,
        ..silk_tcp::Config::default()
    }
}

/// The policy of a domain with room for `limit` paths, or all of them with their shares (Scout §3.3).
///
/// # Errors
/// The shares are more than there is, which the configuration does not allow.
pub fn policy(config: &Config, limit: u32) -> Result<Box<dyn Policy + Send>, Refused> {
    let Config { scheduler, policies, .. } = config;
    let one = |kind, share| one_policy(kind, limit, scheduler.quantum, scheduler.part_of(kind, share));
    if policies.is_empty() {
        return Ok(one(scheduler.policy, None));
    }
    let shares =
        policies.iter().map(|policy| (policy.share.millionths(), one(policy.kind, Some(policy.share))));
    Ok(Box::new(Shares::new(scheduler.quantum, shares.collect())?))
}

/// A policy of this kind that has this part of the processor whatever others do, and promises no more of it.
fn one_policy(kind: PolicyName, limit: u32, quantum: Duration, part: Percent) -> Box<dyn Policy + Send> {
    let part = part.millionths();
    match kind {
        PolicyName::FixedPriority => Box::new(Fixed::new(limit)),
        PolicyName::Edf => Box::new(Edf::with_capacity(limit, part)),
        PolicyName::Wfq => Box::new(Wfq::new(limit, quantum)),
        PolicyName::Bert => Box::new(Bert::new(limit, quantum, part)),
        PolicyName::DeadlineWorkahead => Box::new(DeadlineWorkahead::with_capacity(limit, part)),
    }
}

/// Whether the graph that the configuration names speaks IPv6.
///
/// # Errors
/// As [`recipes`].
pub fn speaks_v6(config: &Config) -> Result<bool, String> {
    let catalogue = catalogue(Setup::new(Tables::with_room(64, 1)));
    let file = graph_file(config, &catalogue)?;
    Ok(file.spec().modules.iter().any(|module| module.kind == "ip6"))
}
