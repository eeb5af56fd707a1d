//! Silk's host and its peer, for one test.

use crate::programs::{beside, skipped, text, within};
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, Rig, Running, SERVER};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The longest that anything may take which is not a measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// As much of a line of the daemon's log is shown where a test fails.
const LONGEST: usize = 200;

/// Two hosts; silkd runs on the one that the rig calls server.
pub struct Silk {
    daemon: Option<Running>,
    pub rig: Rig,
    folder: TempDir,
    device: String,
    classes: String,
}

/// The places where packets can be told apart.
pub const MODES: [&str; 3] = ["native", "generic", "ingress"];

impl Silk {
    /// Hosts with a running daemon, or `None` with a loud word where the machine cannot.
    pub fn start() -> Option<Self> {
        Self::start_in("auto")
    }

    /// The same with its XDP program in that place.
    pub fn start_in(mode: &str) -> Option<Self> {
        Self::start_with(
            &format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\n"),
            &format!(
                "[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}/32\"]\n\n\
                 [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
            ),
        )
    }

    /// As [`Self::start`], with these keys of `[device]` and these classes.
    pub fn start_with(device: &str, classes: &str) -> Option<Self> {
        let mut silk = Self::without_daemon(device, classes)?;
        silk.start_daemon();
        Some(silk)
    }

    /// As [`Self::start_with`], but for the daemon, which is still to be started.
    pub fn without_daemon(device: &str, classes: &str) -> Option<Self> {
        Self::with_queues(1, device, classes)
    }

    /// The same with so many queues each way at both ends of the cable.
    pub fn with_queues(queues: u32, device: &str, classes: &str) -> Option<Self> {
        for program in ["silkd", "libsilk.so"] {
            if !beside(program).exists() {
                return skipped(&format!("{} is not built", beside(program).display()));
            }
        }
        let rig = Rig::for_test(queues)?;
        let folder = TempDir::with_prefix("silk-test-").expect("a folder for the test");
        open_to_all(folder.path());
        let (device, classes) = (device.to_owned(), classes.to_owned());
        Some(Self { daemon: None, rig, folder, device, classes })
    }

    /// Starts the daemon and waits until it says that it is ready.
    pub fn start_daemon(&mut self) {
        self.start_daemon_by(&[]);
    }

    /// The same by another program, with its arguments, which executes it.
    pub fn start_daemon_by(&mut self, other: &[&str]) {
        let config = self.path("silk.toml");
        fs::write(&config, self.config()).unwrap();
        let silkd = beside("silkd");
        let words: Vec<&OsStr> = other.iter().map(OsStr::new).chain([silkd.as_os_str()]).collect();
        let mut command = self.rig.server.command(words[0]);
        command.args(&words[1..]);
        self.logged(command.arg("--config").arg(&config), "silkd");
        self.daemon = Some(Running::start(&mut command).unwrap());
        let ready = || self.log("silkd").contains("ready");
        assert!(within(PATIENCE, ready), "silkd is not ready:\n{}", self.log("silkd"));
    }

    /// Ends the daemon and starts it again.
    pub fn restart_daemon(&mut self, limit: Duration) {
        self.stop_daemon(limit);
        self.start_daemon();
    }

    /// Ends the daemon.
    pub fn stop_daemon(&mut self, limit: Duration) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(limit);
        }
    }

    /// Starts the daemon again, with these keys of `[device]`.
    pub fn move_to(&mut self, device: &str) {
        device.clone_into(&mut self.device);
        self.restart_daemon(PATIENCE);
    }

    fn config(&self) -> String {
        let socket = self.path("control.sock");
        let Self { device, classes, .. } = self;
        // A test may bring a graph of its own.
        let graph = self.path("graph.toml");
        let graph = if graph.exists() { format!("graph = \"{}\"\n", graph.display()) } else { String::new() };
        // Several devices bring their own headings.
        let heading = if device.starts_with("[[device]]") { "" } else { "[device]\n" };
        format!("{graph}{heading}{device}\n[control]\nsocket = \"{}\"\n\n{classes}", socket.display())
    }

    /// The daemon.
    pub fn daemon(&mut self) -> &mut Running {
        self.daemon.as_mut().expect("the daemon was started")
    }

    /// A path in the test's own folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the test's own folder.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A program of this C source, compiled with these options beside the usual.
    pub fn compile(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let (source, program) = (self.write(&format!("{name}.c"), source), self.path(name));
        let mut compiler = Command::new("cc");
        let compiled =
            compiler.args(["-O1", "-pthread"]).args(options).arg("-o").args([&program, &source]).status();
        assert!(compiled.is_ok_and(|status| status.success()));
        program
    }

    /// What a program started as `name` has written so far.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    /// Waits until a line of the log called `name` holds `what`. A line counts once it has ended: what a program writes
    /// of it at a time is its own affair.
    pub fn until_says(&self, name: &str, what: &str) {
        let lines = || self.log(name).rsplit_once('\n').is_some_and(|(ended, _)| ended.contains(what));
        assert!(within(Duration::from_secs(60), lines), "{name} has not said {what:?}: {}", self.log(name));
    }

    /// A command whose sockets will be on paths.
    pub fn on_paths(&self, program: &str) -> Command {
        let mut command = self.rig.server.command(env!("CARGO_BIN_EXE_silk"));
        command.env("SILK_SOCKET", self.path("control.sock")).args(["run", "--", program]);
        command.current_dir(self.folder.path());
        command
    }

    /// A command on silk's host, over Linux's own stack.
    pub fn on_linux(&self, program: &str) -> Command {
        let mut command = self.rig.server.command(program);
        command.current_dir(self.folder.path());
        command
    }

    /// A command on the peer, over Linux's own stack.
    pub fn on_peer(&self, program: &str) -> Command {
        let mut command = self.rig.client.command(program);
        command.current_dir(self.folder.path());
        command
    }

    /// A command on the host at the second cable, over Linux's own stack.
    pub fn on_second(&self, program: &str) -> Command {
        let host = self.rig.second.as_ref().expect("there is a second cable");
        let mut command = host.command(program);
        command.current_dir(self.folder.path());
        command
    }

    /// What the daemon tells of its paths.
    pub fn report(&self) -> serde_json::Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        command.env("SILK_SOCKET", self.path("control.sock")).args(["paths", "--json"]);
        serde_json::from_str(&text(&mut command)).unwrap()
    }

    /// The established connections among them.
    pub fn connections(&self) -> Vec<serde_json::Value> {
        let report = self.report();
        let paths = report["paths"].as_array().unwrap();
        paths.iter().filter(|path| path["state"] == "ESTABLISHED").cloned().collect()
    }

    /// The paths that lead over Linux's own sockets.
    pub fn over_linux(&self) -> Vec<serde_json::Value> {
        let report = self.report();
        let paths = report["paths"].as_array().unwrap();
        paths.iter().filter(|path| path["modules"][0] == "host").cloned().collect()
    }

    /// What the daemon keeps at this moment: how many paths, and bytes of memory charged to them and in rings.
    pub fn kept(&self) -> (usize, u64, u64) {
        let report = self.report();
        let paths = report["paths"].as_array().unwrap();
        let charged = paths.iter().map(|path| path["memory"].as_u64().unwrap()).sum();
        (paths.len(), charged, report["arena_bytes"].as_u64().unwrap())
    }

    /// Starts a server on paths and waits until `port` takes connections from the peer.
    pub fn serve<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S], port: u16) -> Running {
        self.serve_at(program, arguments, SERVER, port)
    }

    /// As [`Self::serve`], where silk has another address than Linux.
    pub fn serve_at<S: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[S],
        at: impl Into<IpAddr>,
        port: u16,
    ) -> Running {
        let server = self.start_logged(self.on_paths(program).args(arguments), program);
        self.wait_for(server, program, at.into(), port)
    }

    /// Starts a server on the peer and waits until `port` takes connections there.
    pub fn serve_on_peer<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S], port: u16) -> Running {
        let server = self.start_logged(self.on_peer(program).args(arguments), program);
        self.wait_for(server, program, CLIENT.into(), port)
    }

    fn wait_for(&self, mut server: Running, name: &str, at: IpAddr, port: u16) -> Running {
        let connect = format!("exec 3<>/dev/tcp/{at}/{port}");
        let connects = || self.rig.client.run("timeout", ["1", "bash", "-c", &connect]).is_ok();
        let up = within(PATIENCE, || connects() || server.ended().is_some());
        assert!(
            up && server.ended().is_none(),
            "{name} does not serve:\n{}{}",
            self.log(name),
            self.log("silkd")
        );
        server
    }

    /// Starts a program whose words `log` will read under that name.
    pub fn start_logged(&self, command: &mut Command, name: &str) -> Running {
        Running::start(self.logged(command, name)).unwrap()
    }

    /// Sends a command's output to the file that `log` reads.
    fn logged<'c>(&self, command: &'c mut Command, name: &str) -> &'c mut Command {
        let out = File::create(self.path(&format!("{name}.log"))).unwrap();
        command.stderr(out.try_clone().unwrap()).stdout(out)
    }

    /// What programs asked for that silk left to Linux.
    pub fn unserved(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silk"));
        text(command.env("SILK_SOCKET", self.path("control.sock")).args(["paths", "--not-accelerated"]))
    }

    /// Asserts that no connection of this test was Linux's: silk's host neither opened nor took any.
    pub fn linux_saw_nothing(&self) {
        let snmp = self.rig.server.run("cat", ["/proc/net/snmp"]).unwrap();
        let tcp: Vec<Vec<&str>> =
            snmp.lines().filter(|line| line.starts_with("Tcp:")).map(|l| l.split(' ').collect()).collect();
        for name in ["ActiveOpens", "PassiveOpens"] {
            let column = tcp[0].iter().position(|word| *word == name).unwrap();
            assert_eq!(tcp[1][column], "0", "connections went over Linux's own stack: {name}");
        }
    }
}

impl Drop for Silk {
    /// Apache and others end their children when they are asked to; the rig kills what is left. A test
    /// that fails shows what the daemon said.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.log("silkd");
            // Most of what hostile programs have said says nothing.
            let lines = said.lines().map(|line| line.chars().take(LONGEST).collect::<String>());
            eprintln!("silkd said:\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(Duration::from_secs(5));
        }
    }
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}
