//! Where a system is measured: two hosts, and the settings that make the systems comparable.

use super::cpus::{CLIENT_CPU, SERVER_CPU};
use super::rights::Rights;
use super::scratch::Scratch;
use super::watch::Watch;
use super::{Failure, programs};
use silk_testkit::netns::{Host, INTERFACE, PREFERRED, Rig, Running};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Settings of both hosts, so that no queue but the measured system's own limits anything and no
/// connection fails for want of a port. CUBIC everywhere: it is what silk's own TCP uses.
const SETTINGS: [(&str, &str); 6] = [
    ("core/somaxconn", "8192"),
    ("ipv4/tcp_max_syn_backlog", "8192"),
    ("ipv4/ip_local_port_range", "1024 64999"),
    ("ipv4/tcp_tw_reuse", "1"),
    ("ipv4/ip_unprivileged_port_start", "0"),
    ("ipv4/tcp_congestion_control", "cubic"),
];

/// Two hosts ready for one system.
#[derive(Debug)]
pub struct Stage<'e> {
    /// The hosts; a new pair for each system, since a threaded NAPI cannot be undone.
    pub rig: Rig,
    /// The experiment's folder.
    pub scratch: &'e Scratch,
    /// The signal watch.
    pub watch: &'e Watch,
    /// What the experiment may do here.
    pub rights: Rights,
    /// Whether real-time priorities are granted.
    pub realtime: bool,
    /// What puts the preferred client's packets on their queue.
    _steering: Option<Running>,
    _cubic: Cubic,
}

/// How many receive queues the hosts' interfaces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// One, for everybody.
    One,
    /// Two: packets of the preferred address arrive by the second, as a network card's flow steering would have it.
    ByClass,
}

impl Queues {
    fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::ByClass => 2,
        }
    }
}

impl<'e> Stage<'e> {
    /// A command that floods the server from the clients' CPU, as far as the clients leave it idle: one that
    /// took turns with the preferred client would be a measurement of that CPU.
    pub fn flooder(&self) -> Command {
        let mut command = self.rig.client.command("chrt");
        command.args(["--idle", "0", "taskset", "-c", CLIENT_CPU]);
        command
    }

    /// Builds the hosts.
    pub fn new(
        scratch: &'e Scratch,
        watch: &'e Watch,
        rights: Rights,
        queues: Queues,
    ) -> Result<Self, Failure> {
        let cubic = Cubic::allow();
        let rig = Rig::with_queues(queues.count())?;
        for (host, cpu) in [(&rig.server, SERVER_CPU), (&rig.client, CLIENT_CPU)] {
            SETTINGS.iter().for_each(|(name, value)| offer(host, &format!("/proc/sys/net/{name}"), value));
            (0..queues.count()).for_each(|queue| receive_on(host, queue, cpu));
        }
        let _steering = match queues {
            Queues::One => None,
            Queues::ByClass => Some(steer(&rig.client, scratch, watch)?),
        };
        Ok(Self { rig, scratch, watch, rights, realtime: rights.realtime(), _steering, _cubic: cubic })
    }

    /// Waits until the server answers the client, at most ten seconds.
    pub fn serves(&self, kb: u32) -> Result<bool, Failure> {
        let asks = || {
            let address = format!("http://{}/{kb}.bin", silk_testkit::netns::SERVER);
            self.rig.client.run("ab", ["-q", "-s", "2", "-n", "1", &address]).ok()
        };
        Ok(self.watch.until(Duration::from_secs(10), asks)?.is_some())
    }
}

/// Starts what puts the preferred client's packets on the second queue, and waits until it does. A flood that goes past traffic control
/// leaves by the queue with its CPU's number, which is the first. (A map of CPUs, `xps_cpus`, would come before what puts them there.)
fn steer(client: &Host, scratch: &Scratch, watch: &Watch) -> Result<Running, Failure> {
    const LOG: &str = "steer.txt";
    let mut command = client.command(programs::beside("silk"));
    command.args(["bench", "end", "steer", "--interface", INTERFACE, "--queue", "1"]);
    command.args(["--source", &PREFERRED.to_string()]);
    let mut steering = scratch.start(&mut command, LOG)?;
    let said = || fs::read_to_string(scratch.path().join(LOG)).unwrap_or_default();
    let steers = || (said().contains("steers") || steering.ended().is_some()).then_some(());
    watch.until(Duration::from_secs(10), steers)?;
    if said().contains("steers") {
        return Ok(steering);
    }
    Err(Failure::Program { what: "`silk bench end steer`".into(), said: said() })
}

/// Steers a host's processing of packets that it receives by a queue to one CPU (receive packet steering).
pub fn receive_on(host: &Host, queue: u32, cpu: &str) {
    let mask = 1 << cpu.parse::<u32>().unwrap_or(0);
    offer(host, &format!("/sys/class/net/{INTERFACE}/queues/rx-{queue}/rps_cpus"), &format!("{mask:x}"));
}

/// Sets what this machine lets us set: inside a user namespace some settings are refused, for every
/// system alike.
fn offer(host: &Host, file: &str, value: &str) {
    let _ = host.set(file, value);
}

/// Namespaces may choose CUBIC only where the machine allows it: it is among what the machine allows as long as this is there.
#[derive(Debug)]
struct Cubic {
    /// What was allowed before, where CUBIC was not.
    before: Option<String>,
}

impl Cubic {
    const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

    fn allow() -> Self {
        let before = fs::read_to_string(Self::ALLOWED).ok();
        let before = before.filter(|allowed| !allowed.split_whitespace().any(|name| name == "cubic"));
        if let Some(before) = &before {
            let _ = fs::write(Self::ALLOWED, format!("{} cubic", before.trim()));
        }
        Self { before }
    }
}

impl Drop for Cubic {
    fn drop(&mut self) {
        self.before.as_ref().map(|before| fs::write(Self::ALLOWED, before));
    }
}
