//! What goes wrong: no daemon, a dead daemon, killed programs, what silk does not serve; and
//! what is special: preferred connections, `PF_SCOUT`, `SOL_SILK`.

use crate::daemon::{Daemon, Server};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Waits until `count` is `wanted`, for as long as a test may take.
pub fn becomes(count: &AtomicU32, wanted: u32) -> u32 {
    for _ in 0..200 {
        if count.load(SeqCst) == wanted {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    count.load(SeqCst)
}

fn python_server(daemon: &Daemon, program: &str) -> Server {
    let mut command = daemon.command("/usr/bin/python3");
    command.args(["-u", "-c", program]);
    daemon.server(command)
}

fn says(server: &Server, what: &str) {
    for _ in 0..200 {
        if server.log().contains(what) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what} was not said: {}", server.log());
}

#[test]
fn without_a_daemon_linux_serves_and_one_line_says_so() {
    let daemon = Daemon::start(0);
    let mut command = daemon.command("/usr/bin/python3");
    command.env("SILK_SOCKET", daemon.folder().join("nobody"));
    command.args(["-c", "import socket as s; a=s.socket(); a.bind(('127.0.0.1',0)); b=s.socket(); b.bind(('127.0.0.1',0)); print('ok')"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
    assert_eq!(said.matches("no silkd answers").count(), 1, "{said}");
}

#[test]
fn it_is_said_where_the_program_has_put_its_standard_error_and_in_no_other_file() {
    for (way, lines) in [("os.dup2(file(), 2)", 1), ("os.close(2); assert file() == 2", 0)] {
        let daemon = Daemon::start(0);
        let name = daemon.folder().join("file");
        let mut command = daemon.command("/usr/bin/python3");
        command.env("SILK_SOCKET", daemon.folder().join("nobody"));
        let program = format!(
            "import os, socket; file = lambda: os.open({name:?}, os.O_CREAT | os.O_WRONLY); {way}; socket.socket().bind(('127.0.0.1', 0))"
        );
        let output = command.args(["-c", &program]).output().unwrap();
        let said = std::fs::read_to_string(&name).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{way}: {said}");
        assert_eq!(said.matches("no silkd answers").count(), lines, "{way}: {said}");
    }
}

#[test]
fn a_strict_program_gets_an_error_instead() {
    let daemon = Daemon::start(0);
    let mut command = daemon.command("/usr/bin/python3");
    command.env("SILK_SOCKET", daemon.folder().join("nobody")).env("SILK_STRICT", "1");
    command.args(["-c", "import socket as s; a=s.socket(); a.bind(('127.0.0.1',0))"]);
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("Network is down"));
}

/// A filter of system calls that refuses `futex_waitv`, as those of older containers do.
fn refuse_to_wait_on_several_words(command: &mut Command) {
    const WAITV: libc::c_long = libc::SYS_futex_waitv;
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (load, is, answer) = (
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        (libc::BPF_RET | libc::BPF_K) as u16,
    );
    let mut code = [
        line(load, 0, 0, 0),
        line(is, 0, 1, WAITV as u32),
        line(answer, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        line(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = move || {
        let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
        // SAFETY: system calls alone; the program is there until they have returned.
        let refused = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
        };
        if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(filter) };
}

#[test]
fn who_accepts_hears_of_the_daemons_death_where_a_filter_refuses_to_wait_on_several_words() {
    // A lone thread is kept for nobody, and sleeps on the daemon's word beside its own.
    let mut daemon = Daemon::start(2);
    let mut command = daemon.command("/usr/bin/python3");
    let program = "import socket
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
c = socket.create_connection(('10.77.0.1', 80)); l.accept(); print('waiting')
try: l.accept()
except OSError as e: print(e.strerror)
";
    command.args(["-u", "-c", program]);
    refuse_to_wait_on_several_words(&mut command);
    let server = daemon.server(command);
    says(&server, "waiting");
    std::thread::sleep(Duration::from_millis(100));
    daemon.kill();
    says(&server, "Network is down");
}

#[test]
fn everybody_hears_of_the_daemons_death() {
    let mut daemon = Daemon::start(0);
    let server = python_server(
        &daemon,
        r"
import socket, threading, select, os
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
pairs = []
for n in range(4):
    c = socket.create_connection(('10.77.0.1', 80)); pairs.append((c, l.accept()[0]))
def told(what, call):
    try: got = call()
    except OSError as e: got = e.strerror
    os.write(1, f'{what} {got}\n'.encode())
def polled():
    p = select.poll(); p.register(pairs[1][0], select.POLLIN); return p.poll(20000)[0][1] & select.POLLHUP
def epolled():
    e = select.epoll(); e.register(pairs[2][0], select.EPOLLIN); return e.poll(20)[0][1] & select.EPOLLHUP
def mixed():
    r, w = os.pipe(); p = select.poll(); p.register(r, select.POLLIN); p.register(pairs[3][0], select.POLLIN)
    return p.poll(20000)[0][1] & select.POLLHUP
calls = [('read', lambda: pairs[0][0].recv(1)), ('poll', polled), ('epoll', epolled), ('mixed', mixed), ('accept', l.accept)]
threads = [threading.Thread(target=told, args=c) for c in calls]
[t.start() for t in threads]
print('waiting')
[t.join() for t in threads]
told('write', lambda: pairs[0][1].send(b'x'))
told('bind', lambda: socket.socket().bind(('10.77.0.1', 81)))
print('end')
",
    );
    says(&server, "waiting");
    std::thread::sleep(Duration::from_millis(100));
    daemon.kill();
    says(&server, "end");
    let log = server.log();
    let mut lines: Vec<_> = log.lines().filter(|line| !line.contains("waiting")).collect();
    lines.sort_unstable();
    let reset = "Connection reset by peer";
    let wanted = [
        "accept Network is down".to_owned(),
        format!("bind {reset}"),
        "end".to_owned(),
        "epoll 16".to_owned(),
        "mixed 16".to_owned(),
        "poll 16".to_owned(),
        format!("read {reset}"),
        format!("write {reset}"),
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn what_a_program_leaves_open_is_closed_in_order_and_reset_where_something_was_not_read() {
    let daemon = Daemon::start(0);
    let program = r"
import socket, os, signal, sys
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
def end(how, not_read=b''):
    if os.fork() == 0:
        c = socket.create_connection(('10.77.0.1', 80)); c.sendall(b'last words')
        if not_read: c.recv(1, socket.MSG_PEEK)
        how()
    c, _ = l.accept(); got = b''; c.sendall(not_read)
    try:
        while d := c.recv(100): got += d
        print(got.decode(), end=', ')
    except ConnectionResetError: print('reset', end=', ')
    os.wait(); c.close()
end(lambda: os._exit(0))
end(lambda: os.execl('/bin/true', 'true'))
end(kill)
end(kill, b'unread')
l.close()
";
    assert_eq!(daemon.python(program), "last words, last words, last words, reset,");
    assert_eq!(daemon.seen.aborted.load(SeqCst), 1);
    assert_eq!(becomes(&daemon.seen.live, 0), 0);
}

#[test]
fn behind_the_peers_end_a_failure_is_for_who_writes() {
    let said = Daemon::start(0).python(
        r"
import errno, select, socket
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
s = socket.create_connection(('10.77.0.1', 80)); c, _ = l.accept()
c.shutdown(socket.SHUT_WR); assert s.recv(1) == b''
s.send(b'never read'); c.recv(1, socket.MSG_PEEK); c.close()
p = select.poll(); p.register(s, 0); p.poll()
print(s.recv(1), s.recv(1), end=' ')
try: s.send(b'x')
except OSError as error: print(errno.errorcode[error.errno])
",
    );
    assert_eq!(said, "b'' b'' ECONNRESET");
}

#[test]
fn a_call_is_ended_by_who_was_told_to_before_its_handler_was_installed() {
    let said = Daemon::start(0).python(
        r"
import ctypes, errno, os, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
s = socket.create_connection(('10.77.0.1', 80))
guard = threading.Timer(30, lambda: os._exit(1)); guard.daemon = True; guard.start()
assert libc.siginterrupt(14, 1) == 0
libc.signal(14, handler); libc.alarm(1)
got = libc.recv(s.fileno(), ctypes.create_string_buffer(1), 1, 0)
print(got, errno.errorcode[ctypes.get_errno()])
",
    );
    assert_eq!(said, "-1 EINTR");
}

#[test]
fn what_is_written_beside_a_shutdown_comes_or_is_refused() {
    let said = Daemon::start(0).python(
        r"
import socket, threading
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
lost = 0
for n in range(150):
    s = socket.create_connection(('10.77.0.1', 80)); c, _ = l.accept()
    sent = 0
    def write():
        global sent
        try:
            while True: sent += s.send(bytes(60000))
        except BrokenPipeError: pass
    got = 0
    def read():
        global got
        while d := c.recv(1 << 20): got += len(d)
    threads = [threading.Thread(target=t) for t in (write, read)]
    [t.start() for t in threads]
    while got < n * 10000: pass
    s.shutdown(socket.SHUT_WR)
    [t.join() for t in threads]
    lost += sent - got
    s.close(); c.close()
print('lost', lost)
",
    );
    assert_eq!(said, "lost 0");
}

#[test]
fn a_killed_server_leaves_nothing() {
    let daemon = Daemon::start(0);
    let server = python_server(
        &daemon,
        r"
import socket, os, time
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('10.77.0.1', 80))
a = [(socket.create_connection(('10.77.0.1', 80)), l.accept()[0]) for n in range(20)]
os.fork(); os.write(1, b'ready\n'); time.sleep(100)
",
    );
    says(&server, "ready\nready");
    assert_eq!(daemon.seen.live.load(SeqCst), 42);
    drop(server);
    assert_eq!(becomes(&daemon.seen.live, 0), 0);
}

#[test]
fn a_preferred_connection_is_handed_to_a_kept_thread() {
    let daemon = Daemon::start(2);
    let said = daemon.python(
        r"
import socket, threading, time
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
served = []
def serve():
    while True:
        try: c, who = l.accept()
        except OSError: return
        served.append(who[1])
        while d := c.recv(100): c.sendall(d)
        c.close()
threads = [threading.Thread(target=serve, daemon=True) for n in range(4)]
[t.start() for t in threads]
time.sleep(0.2)
def ask(port=None):
    s = socket.socket()
    if port: s.bind(('10.77.0.1', port))
    s.connect(('10.77.0.1', 80)); return s
busy = [ask() for n in range(3)]   # two are served, two threads are kept, one waits
for b in busy[:2]:
    b.sendall(b'x'); b.recv(1)
first = ask(7777); first.sendall(b'y'); first.recv(1)
print(7777 in served, len(served) <= 4)
[b.close() for b in busy]; first.close()
",
    );
    assert_eq!(said, "True True");
    assert_eq!(daemon.seen.handed.load(SeqCst), 1);
}

#[test]
fn too_few_threads_to_keep_any_serve_everybody() {
    let daemon = Daemon::start(2);
    let said = daemon.python(
        r"
import socket, os, time
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
children = []
for n in range(3):
    if (pid := os.fork()) == 0:
        while True:
            c, _ = l.accept(); c.sendall(b'hi'); c.close()
    children.append(pid)
time.sleep(0.2)
os.kill(children[0], 9); os.wait()
for n in range(5):
    s = socket.create_connection(('10.77.0.1', 80)); assert s.recv(2) == b'hi'; s.close()
[os.kill(c, 9) for c in children[1:]]
print('served')
",
    );
    assert_eq!(said, "served");
}

#[test]
fn a_waiting_thread_takes_a_queued_preferred_connection_and_says_so() {
    let daemon = Daemon::start(0);
    let said = daemon.python(
        r"
import socket
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
s = socket.socket(); s.bind(('10.77.0.1', 7777)); s.connect(('10.77.0.1', 80))
o = socket.create_connection(('10.77.0.1', 80))
print(l.accept()[1][1])
",
    );
    assert_eq!(said, "7777");
    assert_eq!(becomes(&daemon.seen.taken, 1), 1);
}

#[test]
fn what_is_not_served_is_told_once() {
    let daemon = Daemon::start(0);
    daemon.python(
        r"
import socket
l = socket.socket(); l.setsockopt(socket.IPPROTO_TCP, 23, 5); l.bind(('10.77.0.1', 80)); l.listen()
for n in range(3):
    s = socket.create_connection(('10.77.0.1', 80))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 3)
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 3
# An address that is not silk's is Linux's without a word.
v6 = socket.socket(socket.AF_INET6); v6.bind(('::1', 0)); v6.listen()
assert v6.getsockname()[0] == '::1'
",
    );
    let mut told = daemon.seen.unserved.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["getsockopt(SO_PRIORITY)", "setsockopt(SO_PRIORITY)", "setsockopt(TCP_FASTOPEN)"]);
}

#[test]
fn what_silk_cannot_keep_makes_a_socket_linuxs_or_is_refused() {
    let daemon = Daemon::start(0);
    let said = daemon.python(
        r"
import errno, socket
def attempt(s, *option):
    try:
        s.setsockopt(*option); return 'ok'
    except OSError as e:
        return errno.errorcode[e.errno]
MINTTL, ZEROCOPY = (socket.IPPROTO_IP, 21, 9), (socket.SOL_SOCKET, 60, 1)
l = socket.socket(); print(attempt(l, *MINTTL)); l.bind(('127.0.0.1', 0)); l.listen()
s = socket.create_connection(l.getsockname()); print(s.getpeername() == l.getsockname())
# Not silk's address any more.
b = socket.socket(); attempt(b, *MINTTL)
try: b.bind(('10.77.0.1', 80))
except OSError as e: print(errno.errorcode[e.errno])
z = socket.socket(); print(attempt(z, *ZEROCOPY), z.getsockopt(*ZEROCOPY[:2]))
z.bind(('10.77.0.1', 80)); z.listen(); print(attempt(z, *ZEROCOPY), attempt(z, *MINTTL))
",
    );
    assert_eq!(said, "ok\nTrue\nEADDRNOTAVAIL\nENOTSUP 0\nENOTSUP ENOPROTOOPT");
    let mut told = daemon.seen.unserved.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["setsockopt(IP_MINTTL)", "setsockopt(SO_ZEROCOPY)"]);
}

#[test]
fn a_dual_stack_socket_serves_its_ipv4_part() {
    let said = Daemon::start(0).python(
        r"
import socket
l = socket.create_server(('', 80), family=socket.AF_INET6, dualstack_ipv6=True)
print(l.getsockname()[:2])
s = socket.create_connection(('10.77.0.1', 80))
c, who = l.accept(); print(who[0], c.getsockname()[0], c.family == socket.AF_INET6)
m = socket.socket(socket.AF_INET6); m.connect(('::ffff:10.77.0.1', 80)); print(m.getpeername()[0])
",
    );
    assert_eq!(said, "('::', 80)\n::ffff:10.77.0.1 ::ffff:10.77.0.1 True\n::ffff:10.77.0.1");
}

#[test]
fn a_path_of_the_graph_is_a_socket() {
    let daemon = Daemon::start(0);
    daemon.python(
        r"
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def build(name):
    fd = libc.socket(0x5c, socket.SOCK_DGRAM, 0)
    addr = (0x5c).to_bytes(2, 'little') + name
    return fd, libc.connect(fd, addr, len(addr))
fd, ok = build(b'echo'); assert ok == 0
assert libc.send(fd, b'hello', 5, 0) == 5
b = ctypes.create_string_buffer(16)
assert libc.recv(fd, b, 16, 0) == 5 and b.value == b'hello'
path, n = ctypes.c_ulong(), ctypes.c_uint(8)
assert libc.getsockopt(fd, 0x5117, 2, ctypes.byref(path), ctypes.byref(n)) == 0 and path.value >= 1000
p = ctypes.c_int(3)
assert libc.setsockopt(fd, 0x5117, 1, ctypes.byref(p), 4) == 0
q, n = ctypes.c_int(), ctypes.c_uint(4)
assert libc.getsockopt(fd, 0x5117, 1, ctypes.byref(q), ctypes.byref(n)) == 0 and q.value == 3
p.value = 9
assert libc.setsockopt(fd, 0x5117, 1, ctypes.byref(p), 4) == -1 and ctypes.get_errno() == 1
fd, ok = build(b'nothing'); assert ok == -1 and ctypes.get_errno() == 93
",
    );
}

#[test]
fn closing_with_so_linger_waits_for_the_peer() {
    let said = Daemon::start(0).python(
        r"
import socket, struct, threading, time
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
s = socket.create_connection(('10.77.0.1', 80)); c, _ = l.accept()
s.setblocking(False)
for again in range(5):
    try:
        while True: s.send(b'x' * 65536)
    except BlockingIOError: time.sleep(0.05)
s.setblocking(True)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 1000))
drains = []
def drain():
    time.sleep(0.2); drains.append(True)
    while c.recv(65536): pass
t = threading.Thread(target=drain); t.start()
s.close(); print(drains)
t.join()
",
    );
    assert_eq!(said, "[True]");
}

#[test]
fn a_subprocess_inherits_a_socket_as_its_standard_input() {
    let said = Daemon::start(0).python(
        r"
import socket, subprocess
l = socket.socket(); l.bind(('10.77.0.1', 80)); l.listen()
s = socket.create_connection(('10.77.0.1', 80)); c, _ = l.accept()
p = subprocess.Popen(['/bin/cat'], stdin=c, stdout=c, close_fds=True); c.close()
s.sendall(b'through cat'); s.shutdown(socket.SHUT_WR)
got = b''
while d := s.recv(100): got += d
p.wait(); print(got.decode())
",
    );
    assert_eq!(said, "through cat");
}
