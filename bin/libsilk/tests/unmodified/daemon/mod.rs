//! A daemon for tests: answers the control protocol and plays the daemon's part of the
//! arena, with all addresses on one imaginary network. What one socket sends, the other
//! finds in its ring. One thread, no protocols.

mod network;

use network::Network;
use silk_control::{
    FAMILY_VARIABLE, Lifeline, Membership, Received, Refusal, Reply, Request, SOCKET_VARIABLE, WireError,
};
use silk_stream::{Arena, Sizes, wake};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// What the tests ask about afterwards.
#[derive(Default)]
pub struct Seen {
    /// Processes attached or forked.
    pub processes: AtomicU32,
    /// `Unserved` messages.
    pub unserved: std::sync::Mutex<Vec<String>>,
    /// Connections that ended with a reset.
    pub aborted: AtomicU32,
    /// Connections handed to a waiting thread.
    pub handed: AtomicU32,
    /// Slots in use.
    pub live: AtomicU32,
    /// `TAKEN` requests.
    pub taken: AtomicU32,
    /// What sockets have changed of which groups.
    pub groups: std::sync::Mutex<Vec<(IpAddr, Membership)>>,
}

/// A running daemon.
pub struct Daemon {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// What happened.
    pub seen: Arc<Seen>,
    /// A client has ended well, so its server is there.
    served: AtomicBool,
}

impl Daemon {
    /// Starts one, whose listeners keep `reserve` waiters for preferred connections.
    pub fn start(reserve: u32) -> Self {
        let name = format!("libsilk-test-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
        let listener = listen(&folder.join("control"));
        let (stopped, watched) = (stop.clone(), seen.clone());
        let thread = std::thread::spawn(move || Loop::new(listener, watched, reserve).run(&stopped));
        Self { folder, stop, thread: Some(thread), seen, served: AtomicBool::new(false) }
    }

    /// A command whose sockets are ours.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env(SOCKET_VARIABLE, self.folder.join("control"))
            .env(FAMILY_VARIABLE, "7")
            .stdin(Stdio::null());
        // SAFETY: one system call between fork and exec: whoever outlives the test is killed.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        command
    }

    /// Runs a Python program and gives what it printed; it must end well.
    pub fn python(&self, program: &str) -> String {
        let mut command = self.command("/usr/bin/python3");
        command.args(["-X", "faulthandler", "-c", program]);
        said(run(command))
    }

    /// A folder for the test's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a server that is killed, with its children, when the value goes.
    pub fn server(&self, mut command: Command) -> Server {
        let log = std::fs::File::create(self.folder.join("server.log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log).process_group(0);
        Server(command.spawn().unwrap(), self.folder.join("server.log"))
    }

    /// Runs a command line of a client; it must end well. The first is run again until the server is there.
    pub fn client(&self, program: &str, args: &[&str]) -> String {
        let mut last = None;
        let tries = if self.served.load(SeqCst) { 1 } else { 100 };
        for _ in 0..tries {
            let mut command = self.command(program);
            command.args(args);
            let output = run(command);
            if output.status.success() {
                self.served.store(true, SeqCst);
                return said(output);
            }
            last = Some(output);
            std::thread::sleep(Duration::from_millis(50));
        }
        said(last.unwrap())
    }

    /// Builds a C program of `tests/programs` and runs it, over Linux's own stack and over
    /// ours; it must end well both times, and says so.
    pub fn c(&self, name: &str) {
        let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let binary = self.folder.join(name);
        let built = Command::new("cc")
            .args(["-O2", "-Wall", "-Werror", "-D_FORTIFY_SOURCE=2", "-pthread", "-o"])
            .args([binary.as_os_str(), source.as_ref()])
            .status();
        assert!(built.unwrap().success(), "{name}.c does not build");
        let mut linux = Command::new(&binary);
        linux.arg("127.0.0.1");
        assert_eq!(said(run(linux)), "ok", "over Linux");
        let mut ours = self.command(binary.to_str().unwrap());
        ours.arg("10.77.0.1");
        assert_eq!(said(run(ours)), "ok", "over silk");
    }

    /// Ends the daemon as a kill would: its descriptors close, and nobody says anything.
    pub fn kill(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server in a process group of its own.
pub struct Server(Child, PathBuf);

impl Server {
    /// Its process.
    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.1).unwrap_or_default()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(self.pid(), signal) };
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: the group was made for our own child.
        unsafe { libc::killpg(self.pid(), libc::SIGKILL) };
        let _ = self.0.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.ancestors().map(|folder| folder.join("libsilk.so")).find(|file| file.exists()).expect("libsilk.so")
}

fn run(mut command: Command) -> Output {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().unwrap();
    let pid = child.id();
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    // The longest takes a tenth of that on two CPUs; what hangs is killed and fails.
    let guard = std::thread::spawn(move || {
        if waiting.recv_timeout(Duration::from_secs(120)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: the child has not been waited for, so the number is still its own.
            unsafe { libc::killpg(pid as i32, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    guard.join().unwrap();
    output
}

/// What a program printed; it must have ended well.
pub fn said(output: Output) -> String {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(!err.contains("Linux serves"), "{err}");
    out.trim().to_owned()
}

fn listen(path: &Path) -> OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&socket, 64).unwrap();
    socket
}

struct Loop {
    listener: OwnedFd,
    lines: Vec<(Lifeline, u32)>,
    network: Network,
    events: [OwnedFd; 2],
    next_process: u32,
}

impl Loop {
    fn new(listener: OwnedFd, seen: Arc<Seen>, reserve: u32) -> Self {
        let sizes = Sizes { rings: 64 << 20, domains: 2 };
        Self {
            listener,
            lines: Vec::new(),
            network: Network::new(Arena::create(sizes).unwrap(), seen, reserve),
            events: [wake::event().unwrap(), wake::event().unwrap()],
            next_process: 1,
        }
    }

    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(SeqCst) {
            self.network.work();
            if self.network.fall_asleep() {
                self.sleep();
                self.network.wake_up();
            }
            while let Ok(fd) = rustix::net::accept_with(&self.listener, rustix::net::SocketFlags::CLOEXEC) {
                self.lines.push((Lifeline::from_descriptor(fd), 0));
            }
            self.hear();
        }
    }

    fn sleep(&self) {
        let fds = self.lines.iter().map(|(line, _)| line.as_fd()).chain(self.events.iter().map(AsFd::as_fd));
        let fds = fds.chain([self.listener.as_fd()]);
        let mut all: Vec<_> =
            fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
        // SAFETY: the array is as long as said.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as _, 20) };
        self.events.iter().for_each(|event| wake::drain(event.as_fd()));
    }

    fn hear(&mut self) {
        let mut at = 0;
        while at < self.lines.len() {
            match self.lines[at].0.try_receive::<Request>() {
                Ok(got) => self.answer(at, got),
                Err(WireError::WouldBlock) => at += 1,
                Err(_) => {
                    let (_, process) = self.lines.swap_remove(at);
                    self.network.process_gone(process);
                }
            }
        }
    }

    fn answer(&mut self, at: usize, mut got: Received<Request>) {
        let process = self.lines[at].1;
        let reply = match got.message {
            Request::Attach { .. } => {
                self.lines[at].1 = self.take_process();
                let reply = Reply::Attached { family: 7, process: self.lines[at].1, domains: 2 };
                let fds = [self.network.arena.file(), self.events[0].as_fd(), self.events[1].as_fd()];
                self.lines[at].0.send(&reply, &fds).unwrap();
                return;
            }
            Request::Fork => {
                let child = self.take_process();
                self.lines.push((Lifeline::from_descriptor(got.descriptors.pop().unwrap()), child));
                self.network.fork(process, child);
                Some(Reply::Forked { process: child })
            }
            Request::Pass { slot, .. } => {
                let carrier = self.take_process();
                self.lines.push((Lifeline::from_descriptor(got.descriptors.pop().unwrap()), carrier));
                Some(self.network.pass(process, slot, carrier))
            }
            Request::Bell => Some(self.network.bell(process, got.descriptors.pop().unwrap())),
            request => self.network.serve(process, request),
        };
        if let Some(reply) = reply {
            let _ = self.lines[at].0.send(&reply, &[]);
        }
    }

    fn take_process(&mut self) -> u32 {
        self.network.seen.processes.fetch_add(1, SeqCst);
        self.next_process += 1;
        self.next_process - 1
    }
}

/// A refusal.
pub fn refused(errno: i32) -> Reply {
    Reply::Refused(Refusal { errno, why: format!("refused with {errno}") })
}
