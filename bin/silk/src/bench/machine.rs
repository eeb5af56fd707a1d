//! What the figures were measured on, for whoever reads them later.

use super::Failure;
use super::counters::Moment;
use super::output::say;
use super::rights::Rights;
use super::watch::Watch;
use serde::{Deserialize, Serialize};
use silk_testkit::netns::output;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A machine is quiet while its CPUs are busy for less than this share of the time.
const QUIET: f64 = 0.1;

/// Says aloud where others keep a CPU so busy that it spoils the figures.
pub fn warn_if_busy(experiment: &str, busy: f64) {
    if busy > QUIET {
        let percent = busy * 100.0;
        say(&format_args!(
            "{experiment}: other programs keep a CPU {percent:.0} % busy; the figures will not be true"
        ));
    }
}

/// How busy others keep the CPUs of an experiment's hosts, over a second; said aloud where it is too much.
pub fn busy_before(experiment: &str, watch: &Watch) -> Result<f64, Failure> {
    let before = Moment::now(None);
    watch.pause(Duration::from_secs(1))?;
    let cpu = before.cpu_until(&Moment::now(None));
    let busy = cpu.server.max(cpu.client);
    warn_if_busy(experiment, busy);
    Ok(busy)
}

/// The machine and the programs of the experiment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Processors in the system.
    pub cpus: usize,
    /// The kernel's version.
    pub kernel: String,
    /// The hypervisor, or `none`.
    pub hypervisor: String,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// When the experiment ended, as `date --iso-8601=seconds` writes it.
    pub date: String,
    /// The busiest CPU's share of time before the experiment: what others were doing here, 0 to 1.
    #[serde(default)]
    pub busy_before: f64,
    /// Whether idle CPUs polled instead of halting during the experiment.
    #[serde(default)]
    pub awake: bool,
    /// Whether it was the machine's root that ran it: others cannot say which CPU processes received packets.
    #[serde(default = "yes")]
    pub root: bool,
    /// The web server.
    pub apache: String,
    /// The peer in front of it.
    pub haproxy: String,
    /// The load generator.
    pub ab: String,
    /// This program's version.
    pub silk: String,
}

impl Machine {
    /// Why figures of hosts on it are not to be trusted.
    pub fn doubts(&self) -> Vec<String> {
        let busy = (self.busy_before > QUIET).then(|| {
            let percent = self.busy_before * 100.0;
            format!("a CPU was {percent:.0} % busy with other programs: distrust these figures")
        });
        let elsewhere = (!self.root).then(|| {
            "without root, received packets were processed on whichever CPU: do not compare these figures"
                .to_owned()
        });
        busy.into_iter().chain(elsewhere).collect()
    }

    /// Describes the machine this runs on, how busy others kept it, and whether its CPUs were kept from
    /// halting. What cannot be found out is an empty string.
    pub fn describe(busy_before: f64, awake: bool) -> Self {
        Self {
            busy_before,
            awake,
            root: Rights::here() == Rights::Root,
            cpu: field("/proc/cpuinfo", "model name"),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            hypervisor: hypervisor(),
            memory_mib: field("/proc/meminfo", "MemTotal")
                .split(' ')
                .next()
                .and_then(|kib| kib.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
            date: says("date", "--iso-8601=seconds"),
            apache: says("apache2", "-v"),
            haproxy: says("haproxy", "-v"),
            ab: says("ab", "-V"),
            silk: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Earlier results that do not say it were root's.
fn yes() -> bool {
    true
}

/// The first value under a name in a file of `name : value` lines.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn hypervisor() -> String {
    let flags = field("/proc/cpuinfo", "flags");
    if flags.split(' ').any(|flag| flag == "hypervisor") { "yes".into() } else { "none".into() }
}

/// The first line that a program prints.
fn says(program: &str, argument: &str) -> String {
    let text = output(Command::new(program).arg(argument)).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
