//! Unmodified programs on sockets of a daemon made for tests: what they see must be what
//! they would see on Linux.

use crate::daemon::Daemon;
use silk_control::Membership;
use std::io::{Write, stderr};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

/// A server thread and a client in one program.
const ECHO: &str = r#"
import socket, threading
s = socket.socket(); s.bind(('10.77.0.1', 80)); s.listen()
def serve():
    c, who = s.accept()
    assert who == c.getpeername() and c.getsockname() == ('10.77.0.1', 80), who
    while d := c.recv(70000): c.sendall(d)
    c.close()
t = threading.Thread(target=serve); t.start()
c = socket.create_connection(('10.77.0.1', 80))
import hashlib, os
data = os.urandom(1 << 20)
def send():
    c.sendall(data); c.shutdown(socket.SHUT_WR)
w = threading.Thread(target=send); w.start()
got = b''
while d := c.recv(65536): got += d
w.join(); t.join()
print(got == data)
"#;

#[test]
fn a_stream_comes_back_byte_for_byte() {
    assert_eq!(Daemon::start(0).python(ECHO), "True");
}

/// Both ways to a ring, before there is any socket.
const RING: &str = r#"
import ctypes
c = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(1024)
print(c.syscall(425, 8, room), ctypes.get_errno(), c.io_uring_queue_init(8, room, 0), c.io_uring_queue_init_params(8, room, room))
"#;

#[test]
fn a_program_on_silk_gets_no_io_uring() {
    let refused = libc::ENOSYS;
    assert_eq!(Daemon::start(0).python(RING), format!("-1 {refused} -{refused} -{refused}"));
}

#[test]
fn one_thread_that_accepts_is_not_kept_for_preferred_connections() {
    assert_eq!(Daemon::start(2).python(ECHO), "True");
}

/// Streams and datagrams go to and fro, far more than their rings are long; prints by how many KB the
/// memory has grown that is shared with the daemon.
const SHORT: &str = r#"
import os, socket
def shared():
    names = {fd: os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')}
    return sum(os.fstat(int(fd)).st_blocks // 2 for fd, name in names.items() if 'memfd:silk' in name)
s = socket.socket(); s.bind(('10.77.0.1', 80)); s.listen()
a = socket.create_connection(('10.77.0.1', 80))
b, _ = s.accept()
c, d = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
c.bind(('10.77.0.1', 81)); d.bind(('10.77.0.1', 82)); c.connect(('10.77.0.1', 82)); d.connect(('10.77.0.1', 81))
pairs = [(a, b), (b, a), (c, d), (d, c)]
def exchange(times):
    for n in range(times):
        for one, other in pairs:
            data = n.to_bytes(4, 'little') * 250
            one.send(data)
            got = other.recv(1000)
            while len(got) < 1000: got += other.recv(1000 - len(got))
            assert got == data, n
exchange(1)
before = shared()
assert before > 0
exchange(1000)
print(shared() - before)
"#;

#[test]
fn short_exchanges_use_the_start_of_their_rings_only() {
    let grown: u32 = Daemon::start(0).python(SHORT).parse().unwrap();
    // A page now and then where the second was written before the first was done with.
    assert!(grown <= 32, "{grown} KB");
}

#[test]
fn streams_behave_as_on_linux() {
    Daemon::start(2).c("stream");
}

#[test]
fn options_behave_as_on_linux() {
    Daemon::start(2).c("options");
}

#[test]
fn waiting_behaves_as_on_linux() {
    Daemon::start(2).c("waiting");
}

#[test]
fn waiting_where_a_filter_refuses_to_wait_on_several_words_behaves_as_on_linux() {
    Daemon::start(2).c("refusing");
}

#[test]
fn who_shuts_himself_in_may_wait_beside_others_descriptors() {
    Daemon::start(2).c("shut_in");
}

#[test]
fn event_sets_behave_as_on_linux_whoever_waits_in_them() {
    Daemon::start(2).c("sets");
}

#[test]
fn datagrams_behave_as_on_linux() {
    Daemon::start(2).c("datagram");
}

#[test]
fn several_datagrams_in_a_call_behave_as_on_linux() {
    Daemon::start(2).c("segments");
}

#[test]
fn how_a_datagram_arrived_is_told_as_on_linux() {
    Daemon::start(2).c("arrival");
}

#[test]
fn streams_of_stdio_behave_as_on_linux() {
    Daemon::start(2).c("stdio");
}

#[test]
fn standing_streams_of_stdio_behave_as_on_linux() {
    Daemon::start(2).c("standing");
}

#[test]
fn sockets_that_are_passed_to_another_process_behave_as_on_linux() {
    Daemon::start(2).c("passing");
}

#[test]
fn whoever_gives_up_the_way_to_the_daemon_has_joined_before() {
    let daemon = Daemon::start(2);
    daemon.c("rights");
    assert_eq!(daemon.seen.processes.load(SeqCst), 3, "the program and two children");
}

#[test]
fn descriptors_and_processes_behave_as_on_linux() {
    Daemon::start(2).c("process");
}

#[test]
fn what_a_descriptor_is_changes_at_one_moment() {
    Daemon::start(2).c("together");
}

#[test]
fn spawned_children_behave_as_on_linux() {
    Daemon::start(2).c("spawn");
}

/// Executes with a datagram socket that is in a group, and has no address yet.
const JOINED: &str = r#"
import os, socket, sys
bind = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])); s.bind(('10.77.0.1', 4300)); print(s.getsockname()[1])"
t = socket.socket(); t.bind(('10.77.0.1', 80))
s = socket.socket(type=socket.SOCK_DGRAM); s.set_inheritable(True)
group, here, source = map(socket.inet_aton, ('239.1.2.3', '127.0.0.1', '192.0.2.1'))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + here)
s.setsockopt(socket.IPPROTO_IP, 38, group + here + source)
os.dup2(s.fileno(), 100)
os.execv(sys.executable, [sys.executable, '-c', bind, '100'])
"#;

#[test]
fn what_a_socket_joined_before_an_exec_is_told_when_it_is_bound_behind_it() {
    let daemon = Daemon::start(0);
    assert_eq!(daemon.python(JOINED), "4300");
    let group = IpAddr::from([239, 1, 2, 3]);
    let blocked = Membership::Block(IpAddr::from([192, 0, 2, 1]));
    assert_eq!(*daemon.seen.groups.lock().unwrap(), [(group, Membership::Join), (group, blocked)]);
}

/// A library that asks for an option, and loads another by its own search path.
const LIBRARY: &str = r#"
#include <dlfcn.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
int without_delay(int fd) { int v = -1; socklen_t n = sizeof v; getsockopt(fd, 6, TCP_NODELAY, &v, &n); return v; }
void *beside(void) { return dlopen("libbeside.so", RTLD_NOW | RTLD_DEEPBIND); }
"#;

/// Loads it so that it finds its functions in the C library first.
const LOADING: &str = r#"
import ctypes, os, socket, sys
s = socket.socket(); s.bind(('10.77.0.1', 80)); s.listen()
c = socket.create_connection(('10.77.0.1', 80))
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
library = ctypes.CDLL(FOLDER + '/libloaded.so', os.RTLD_NOW | os.RTLD_DEEPBIND)
library.beside.restype = ctypes.c_void_p
print(library.without_delay(c.fileno()), library.beside() is not None)
"#;

#[test]
fn a_library_that_binds_deeply_has_silks_sockets_too() {
    let daemon = Daemon::start(0);
    let folder = daemon.folder();
    std::fs::write(folder.join("loaded.c"), LIBRARY).unwrap();
    for name in ["libloaded.so", "libbeside.so"] {
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,--enable-new-dtags,-rpath,$ORIGIN", "-o", name, "loaded.c"])
            .current_dir(folder)
            .status();
        assert!(built.unwrap().success());
    }
    assert_eq!(daemon.python(&LOADING.replace("FOLDER", &format!("{folder:?}"))), "1 True");
}

/// Executes twice where there is nothing, with a socket that goes on.
const ROOTS: &str = r#"
import os, socket
s = socket.socket(); s.bind(('10.77.0.1', 80)); s.listen(); s.set_inheritable(True)
os.chroot(FOLDER)
for _ in range(2):
    try: os.execv('/none', ['none'])
    except FileNotFoundError: print('back', flush=True)
"#;

#[test]
fn who_executes_where_the_library_is_not_is_told_so_once() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        // The test harness keeps what `eprintln!` says in a test that passes.
        let _ = writeln!(stderr(), "SKIPPED, tests nothing: another root needs root");
        return;
    }
    let daemon = Daemon::start(0);
    let mut python = daemon.command("/usr/bin/python3");
    let output =
        python.args(["-c", &ROOTS.replace("FOLDER", &format!("{:?}", daemon.folder()))]).output().unwrap();
    let said = "libsilk: what is executed in a root that does not have this library cannot use the sockets that it inherits\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert_eq!(output.stdout, b"back\nback\n");
}
