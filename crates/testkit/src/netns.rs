//! Two hosts on one machine: a pair of network namespaces joined by a veth cable, for the end-to-end
//! tests and the web experiment (SILK §4's server and traffic generators); and where a test wants it, a third at
//! a second cable.
//!
//! Everything is done by calling `ip` from iproute2, so the file needs no `unsafe` and a person can
//! repeat each step by hand. It must never touch a namespace, an interface or a process that a rig did
//! not make: names carry the maker's process id, and whatever lives in a rig's namespaces dies with it.

use crate::skip;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fmt, fs, io};

/// The server's address on the cable.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// The address of ordinary clients, and the source the client host uses by default.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
/// A second address of the client host, for preferred clients.
pub const PREFERRED: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 3);
/// The server's IPv6 address on the cable.
pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 1);
/// The IPv6 address of ordinary clients.
pub const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2);
/// A second IPv6 address of the client host, for preferred clients.
pub const PREFERRED6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 3);
/// The name of the cable's interface, the same inside both hosts.
pub const INTERFACE: &str = "eth0";
/// The name of a second cable's interface on the server or the client; the host at its other end calls it [`INTERFACE`].
pub const INTERFACE_B: &str = "eth1";
/// The server's address on the second cable.
pub const SERVER_B: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 1);
/// The address of the host at its other end.
pub const CLIENT_B: Ipv4Addr = Ipv4Addr::new(10, 97, 0, 2);
/// The server's IPv6 address on the second cable.
pub const SERVER6_B: Ipv6Addr = Ipv6Addr::new(0xfd97, 0, 0, 0, 0, 0, 0, 1);
/// The IPv6 address of the host at its other end.
pub const CLIENT6_B: Ipv6Addr = Ipv6Addr::new(0xfd97, 0, 0, 0, 0, 0, 0, 2);

/// Numbers the rigs of this process, so that tests may run at the same time.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Why a rig could not be built or used.
#[derive(Debug)]
pub enum RigError {
    /// The program is not installed or cannot be started: the machine's fault.
    NotStarted {
        /// The program's name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program ran and refused: usually the caller's fault, or missing rights.
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to its standard error.
        stderr: String,
    },
}

impl fmt::Display for RigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted { program, source } => write!(f, "cannot start `{program}`: {source}"),
            Self::Failed { command, status, stderr } => {
                write!(f, "`{command}` ended with {status}: {}", stderr.trim_end())
            }
        }
    }
}

impl std::error::Error for RigError {}

/// Two hosts and the cable between them; both end, with every process in them, when this is dropped.
#[derive(Debug)]
pub struct Rig {
    /// The host with the addresses [`SERVER`] and [`SERVER6`].
    pub server: Host,
    /// The host with the addresses [`CLIENT`] and [`PREFERRED`], and their like of IPv6.
    pub client: Host,
    /// The host with the addresses [`CLIENT_B`] and [`CLIENT6_B`], once there is one.
    pub second: Option<Host>,
    number: u32,
}

impl Rig {
    /// Builds both hosts and brings the cable up. Needs root, or root in a user namespace of its own.
    pub fn new() -> Result<Self, RigError> {
        Self::with_queues(1)
    }

    /// The same with so many queues each way at both ends of the cable.
    pub fn with_queues(queues: u32) -> Result<Self, RigError> {
        remove_stale()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let server = Host::new(name(number, "server"))?;
        let client = Host::new(name(number, "client"))?;
        cable((&server, INTERFACE), &client, queues)?;
        server.connect(INTERFACE, &[SERVER.into(), SERVER6.into()])?;
        let v6 = [PREFERRED6.into(), CLIENT6.into()];
        client.connect(INTERFACE, &[&[CLIENT.into(), PREFERRED.into()][..], &v6].concat())?;
        Ok(Self { server, client, second: None, number })
    }

    /// The same for a test: `None`, and a loud word, where this process may make no hosts.
    ///
    /// # Panics
    /// If it may, and they cannot be joined all the same: then something is broken.
    pub fn for_test(queues: u32) -> Option<Self> {
        let error = match Self::with_queues(queues) {
            Ok(rig) => return Some(rig),
            Err(error) => error,
        };
        let trial = Host::new(name(NEXT.fetch_add(1, Ordering::Relaxed), "trial"));
        assert!(trial.is_err(), "a host can be made here, and yet: {error}");
        skip(format_args!("no network namespaces: {error}"));
        None
    }

    /// Joins a third host to the server by a cable of its own.
    pub fn add_second(&mut self) -> Result<(), RigError> {
        let second = Host::new(name(self.number, "second"))?;
        cable((&self.server, INTERFACE_B), &second, 1)?;
        self.server.connect(INTERFACE_B, &[SERVER_B.into(), SERVER6_B.into()])?;
        second.connect(INTERFACE, &[CLIENT_B.into(), CLIENT6_B.into()])?;
        self.second = Some(second);
        Ok(())
    }

    /// A host that is joined to the client by a cable of its own, [`INTERFACE_B`] there. Nobody has an address on that, so
    /// whatever is sent there is thrown away.
    pub fn bystander(&self) -> Result<Host, RigError> {
        let bystander = Host::new(name(self.number, "bystander"))?;
        cable((&self.client, INTERFACE_B), &bystander, 1)?;
        self.client.ip(["link", "set", INTERFACE_B, "up"])?;
        bystander.ip(["link", "set", INTERFACE, "up"])?;
        Ok(bystander)
    }
}

/// What a host of this process's rig is called.
fn name(number: u32, role: &str) -> String {
    format!("silk-{}-{number}-{role}", std::process::id())
}

/// A cable from an interface of one host to [`INTERFACE`] of the other, with so many queues each way.
fn cable((from, interface): (&Host, &str), to: &Host, queues: u32) -> Result<(), RigError> {
    let end = |name, host: &Host| {
        format!("{name} netns {} numrxqueues {queues} numtxqueues {queues}", host.namespace)
    };
    let all = format!("link add {} type veth peer name {}", end(interface, from), end(INTERFACE, to));
    output(Command::new("ip").args(all.split(' '))).map(drop)
}

/// One host: a network namespace with a cable, the server with two where there is a third host.
#[derive(Debug)]
pub struct Host {
    namespace: String,
}

impl Host {
    fn new(namespace: String) -> Result<Self, RigError> {
        ip(["netns", "add", &namespace])?;
        let host = Self { namespace };
        host.ip(["link", "set", "lo", "up"])?;
        Ok(host)
    }

    /// Gives the host its addresses on a cable and brings its end of that up. Without duplicate address
    /// detection, IPv6 addresses are ready at once and a test need not wait for them.
    fn connect(&self, interface: &str, addresses: &[IpAddr]) -> Result<(), RigError> {
        self.set(&format!("/proc/sys/net/ipv6/conf/{interface}/accept_dad"), "0").ok();
        for address in addresses {
            let length = if address.is_ipv6() { 64 } else { 24 };
            self.ip(["addr", "add", &format!("{address}/{length}"), "dev", interface])?;
        }
        self.ip(["link", "set", interface, "up"])
    }

    /// Lets so many packets wait at this host's end of a cable while there is no room at the other (since Linux 6.16); otherwise, and before
    /// that, a veth loses them.
    pub fn queue(&self, interface: &str, packets: u32) -> Result<(), RigError> {
        let packets = packets.to_string();
        let queue = ["qdisc", "replace", "dev", interface, "root", "pfifo", "limit", &packets];
        output(Command::new("tc").args(["-n", &self.namespace]).args(queue)).map(drop)
    }

    /// The namespace's name, as `ip netns` shows it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A command that will run inside this host. It dies when the thread that starts it dies, even by
    /// SIGKILL, and its process id is the program's own: nothing stays in between.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "ip", "netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// Runs a program inside this host to its end and returns its standard output.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, RigError> {
        output(self.command(program).args(arguments))
    }

    /// Starts a program inside this host; it is killed when the answer is dropped.
    pub fn spawn<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Running, RigError> {
        Running::start(self.command(program).args(arguments))
    }

    /// Writes a value to a file as this host sees it: `/proc/sys/net/…` or `/sys/class/net/…`.
    pub fn set(&self, file: &str, value: &str) -> Result<(), RigError> {
        self.run("sh", ["-c", r#"printf '%s' "$1" > "$2""#, "sh", value, file]).map(drop)
    }

    /// Runs `ip` on this host's links, addresses and routes.
    pub fn ip<const N: usize>(&self, arguments: [&str; N]) -> Result<(), RigError> {
        output(Command::new("ip").args(["-n", &self.namespace]).args(arguments)).map(drop)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        remove(&self.namespace);
    }
}

/// A program that was started on a host. Dropping it kills it at once; its own children are the
/// host's to end.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts the command with nothing on its standard input, in a process group of its own: Apache,
    /// when told to end, sends its whole group the same signal.
    pub fn start(command: &mut Command) -> Result<Self, RigError> {
        match command.stdin(Stdio::null()).process_group(0).spawn() {
            Ok(child) => Ok(Self { child }),
            Err(source) => Err(RigError::NotStarted { program: line(command), source }),
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, to take its pipes from.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How the program ended, or `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for the end, at most so long.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            sleep(Duration::from_millis(5));
        }
        self.ended()
    }

    /// Asks the program to end (SIGTERM), waits at most so long, then kills it.
    pub fn stop(mut self, grace: Duration) {
        signal(&[self.id()], "TERM");
        self.wait(grace);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, by name, to processes that the rig started. One that has ended already is as good.
pub fn signal(processes: &[u32], name: &str) {
    let mut kill = Command::new("sh");
    kill.args(["-c", r#"kill -s "$@""#, "sh", name]).args(processes.iter().map(u32::to_string));
    let _ = output(&mut kill);
}

/// Removes what earlier runs left because they were killed: rigs whose maker no longer exists.
fn remove_stale() -> Result<(), RigError> {
    for line in output(Command::new("ip").args(["netns", "list"]))?.lines() {
        let Some(namespace) = line.split_whitespace().next() else { continue };
        if maker(namespace).is_some_and(|process| !fs::exists(format!("/proc/{process}")).unwrap_or(true)) {
            remove(namespace);
        }
    }
    Ok(())
}

/// The process that made a rig's namespace, or `None` where the name is not a rig's.
fn maker(namespace: &str) -> Option<u32> {
    let mut parts = namespace.strip_prefix("silk-")?.split('-');
    let process = parts.next()?.parse().ok()?;
    let _number: u32 = parts.next()?.parse().ok()?;
    (matches!(parts.next()?, "server" | "client" | "second" | "bystander") && parts.next().is_none())
        .then_some(process)
}

/// Ends every process of a namespace and the namespace. A program may fork while it is being killed,
/// so this looks until nobody is left; a namespace that is gone already is as good.
fn remove(namespace: &str) {
    for _ in 0..50 {
        let listed = output(Command::new("ip").args(["netns", "pids", namespace])).unwrap_or_default();
        let processes: Vec<u32> = listed.split_whitespace().filter_map(|p| p.parse().ok()).collect();
        if processes.is_empty() {
            break;
        }
        signal(&processes, "KILL");
        sleep(Duration::from_millis(10));
    }
    let _ = ip(["netns", "delete", namespace]);
}

fn ip<const N: usize>(arguments: [&str; N]) -> Result<(), RigError> {
    output(Command::new("ip").args(arguments)).map(drop)
}

/// Runs a command to its end and returns its standard output, or why there is none. It has a process group of its own: a
/// terminal's Ctrl-C is for whoever runs it, and would end what removes a namespace, too.
pub fn output(command: &mut Command) -> Result<String, RigError> {
    let done = match command.stdin(Stdio::null()).process_group(0).output() {
        Ok(done) => done,
        Err(source) => return Err(RigError::NotStarted { program: line(command), source }),
    };
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    Err(RigError::Failed { command: line(command), status: done.status, stderr })
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rigs_name_has_a_maker() {
        assert_eq!(maker("silk-41-0-server"), Some(41));
        assert_eq!(maker("silk-41-7-client"), Some(41));
        assert_eq!(maker("silk-41-7-second"), Some(41));
        assert_eq!(maker("silk-41-7-bystander"), Some(41));
        for other in ["silk-41-server", "silk-x-0-server", "silk-41-0-router", "silk-41-0-server-2", "other"]
        {
            assert_eq!(maker(other), None, "{other}");
        }
    }

    #[test]
    fn a_failing_command_says_what_it_was_and_why() {
        let error = output(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c echo broken >&2; exit 3` ended with exit status: 3: broken");
    }

    #[test]
    fn the_terminals_interrupt_does_not_reach_a_command() {
        // Its id, and its process group (proc(5)).
        let told = output(Command::new("sh").args(["-c", "echo $$; cut -d' ' -f5 /proc/$$/stat"])).unwrap();
        let numbers: Vec<&str> = told.split_whitespace().collect();
        assert!(numbers.len() == 2 && numbers[0] == numbers[1], "{told}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut Command::new("/no/such/program")).unwrap_err();
        assert!(matches!(error, RigError::NotStarted { program, .. } if program == "/no/such/program"));
    }

    #[test]
    fn a_running_program_dies_with_its_handle() {
        let running = Running::start(Command::new("sleep").arg("1000")).unwrap();
        let process = running.id();
        drop(running);
        assert!(!fs::exists(format!("/proc/{process}")).unwrap());
    }
}
