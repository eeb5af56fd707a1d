//! Where a system is measured: two hosts, the CPUs they have, the settings that make the systems
//! comparable, and the files that Apache serves.

use super::evidence::{self, Place};
use super::load::CLIENT_CPU;
use super::rights::Rights;
use super::watch::Watch;
use super::{Failure, apache, silkd};
use silk_testkit::netns::{Host, INTERFACE, PREFERRED, Rig, Running};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;
use tempfile::TempDir;

/// The CPU of everything on the server's side: the web server, what stands in front of it, silkd, and
/// the processing of received packets.
pub const SERVER_CPU: &str = "1";

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

/// So much longer than planned, and a phase hangs. Less than `ab` waits for an answer (30 s): what it waits
/// for is still there to be looked at.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the folders of experiments are called, before their maker's process id.
const PREFIX: &str = "silk-bench-";

/// The folder of an experiment: the served files, configurations, logs and reports. Removed at the end.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    evidence: Place,
}

impl Scratch {
    /// A folder with a file of random bytes for each size. What is to be kept of a run that hangs goes to
    /// `evidence`.
    pub fn new(sizes: &[u32], evidence: Place) -> Result<Self, Failure> {
        remove_stale();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = TempDir::with_prefix(prefix).map_err(Failure::file(std::env::temp_dir()))?;
        let scratch = Self { folder, evidence };
        scratch.open_to_all(scratch.path())?;
        fs::create_dir(scratch.site()).map_err(Failure::file(scratch.site()))?;
        scratch.open_to_all(&scratch.site())?;
        sizes.iter().try_for_each(|kb| scratch.random_file(*kb))?;
        Ok(scratch)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where to keep what a run that hangs shows.
    pub fn evidence(&self) -> &Place {
        &self.evidence
    }

    /// The folder that Apache serves.
    pub fn site(&self) -> PathBuf {
        self.path().join("site")
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(Failure::file(&path))?;
        Ok(path)
    }

    /// Starts a program. What it says goes to this file of the folder.
    pub fn start(&self, command: &mut Command, log: &str) -> Result<Running, Failure> {
        let log = self.path().join(log);
        let out = fs::File::create(&log).map_err(Failure::file(&log))?;
        let errors = out.try_clone().map_err(Failure::file(&log))?;
        Ok(Running::start(command.stdout(out).stderr(errors))?)
    }

    fn random_file(&self, kb: u32) -> Result<(), Failure> {
        let path = self.site().join(format!("{kb}.bin"));
        let mut bytes = Vec::new();
        let random = fs::File::open("/dev/urandom").map_err(Failure::file("/dev/urandom"))?;
        random.take(u64::from(kb) * 1024).read_to_end(&mut bytes).map_err(Failure::file("/dev/urandom"))?;
        fs::write(&path, bytes).map_err(Failure::file(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(Failure::file(&path))
    }

    /// Apache's processes run as another user.
    fn open_to_all(&self, folder: &Path) -> Result<(), Failure> {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(Failure::file(folder))
    }
}

/// Removes the folders of experiments that were killed before they could.
fn remove_stale() {
    for folder in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let maker = folder.file_name().to_str().and_then(maker);
        if maker.is_some_and(|process| !fs::exists(format!("/proc/{process}")).unwrap_or(true)) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

/// The process that made an experiment's folder, or `None` where the name is not one.
fn maker(folder: &str) -> Option<u32> {
    folder.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

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

    /// What silkd and the servers have said.
    pub fn said(&self) -> String {
        let served = fs::read_to_string(self.scratch.path().join("serve.txt")).unwrap_or_default();
        silkd::log(self) + &apache::log(self) + &served
    }

    /// Waits for the end of a program that is to take `time`. Where it takes much longer it hangs: then the
    /// state of everything is kept, and the failure names the folder.
    pub fn ends(&self, program: &mut Running, time: Duration, what: &str) -> Result<ExitStatus, Failure> {
        if let Some(status) = self.watch.wait(program, time + PATIENCE)? {
            return Ok(status);
        }
        let kept = evidence::keep(self);
        self.watch.check()?;
        Err(Failure::Hangs { what: what.to_owned(), kept: kept.map_err(|why| why.to_string()) })
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

/// Starts what puts the preferred client's packets on the second queue, and waits until it does.
fn steer(client: &Host, scratch: &Scratch, watch: &Watch) -> Result<Running, Failure> {
    const LOG: &str = "steer.txt";
    let mut command = client.command(silkd::beside("silk"));
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
fn receive_on(host: &Host, queue: u32, cpu: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_experiments_folder_has_a_maker() {
        assert_eq!(maker("silk-bench-41-x7Yz"), Some(41));
        assert_eq!([maker("silk-bench-x-41"), maker("silk-test-41-x"), maker("silk-bench-41")], [None; 3]);
    }

    #[test]
    fn every_size_is_served_in_full_and_readable_by_all() {
        let scratch = Scratch::new(&[1, 16], Place::beside(None)).unwrap();
        for kb in [1u32, 16] {
            let file = fs::metadata(scratch.site().join(format!("{kb}.bin"))).unwrap();
            assert_eq!((file.len(), file.permissions().mode() & 0o777), (u64::from(kb) * 1024, 0o644));
        }
    }
}
