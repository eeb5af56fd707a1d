//! The servers and clients of the world, unmodified, on sockets of a daemon made for tests.
//! What they serve is compared byte for byte.

use crate::daemon::Daemon;
use crate::faults::becomes;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A folder with files of several sizes, from one byte to more than any ring.
fn site(daemon: &Daemon) -> std::path::PathBuf {
    let root = daemon.folder().join("site");
    fs::create_dir_all(&root).unwrap();
    for size in [1usize, 1000, 50_000, 700_000] {
        let bytes: Vec<u8> = (0..size).map(|i| (i * i % 251) as u8).collect();
        fs::write(root.join(size.to_string()), bytes).unwrap();
    }
    root
}

/// Every file arrives as it is, several times over.
fn fetch_all(daemon: &Daemon, root: &Path, port: u16) {
    for round in 0..3 {
        for size in ["1", "1000", "50000", "700000"] {
            let out = daemon.folder().join("out");
            let url = format!("http://10.77.0.1:{port}/{size}");
            daemon.client("curl", &["-sSf", "--max-time", "10", "-o", out.to_str().unwrap(), &url]);
            assert!(fs::read(&out).unwrap() == fs::read(root.join(size)).unwrap(), "{url}, round {round}");
        }
    }
    let out = daemon.folder().join("out");
    let url = format!("http://10.77.0.1:{port}/700000");
    daemon.client("wget", &["-q", "-O", out.to_str().unwrap(), &url]);
    assert!(fs::read(&out).unwrap() == fs::read(root.join("700000")).unwrap());
}

/// A client that has begun to fetch the largest file, and reads on when it is told.
struct Begun(Child);

impl Begun {
    fn fetch(daemon: &Daemon) -> Self {
        let program = r"
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536); s.connect(('10.77.0.1', 8000))
s.sendall(b'GET /700000 HTTP/1.0\r\n\r\n')
text = s.recv(5000); print('begun', flush=True); sys.stdin.readline()
while part := s.recv(65536): text += part
sys.stdout.buffer.write(text.partition(b'\r\n\r\n')[2])
";
        let mut command = daemon.command("/usr/bin/python3");
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut begun = Self(command.spawn().unwrap());
        let mut word = [0; 6];
        begun.0.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"begun\n");
        begun
    }

    /// The rest arrives as well.
    fn finish(mut self, root: &Path) {
        self.0.stdin.take().unwrap().write_all(b"on\n").unwrap();
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout == fs::read(root.join("700000")).unwrap());
    }
}

#[test]
fn pythons_http_server() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let mut command = daemon.command("/usr/bin/python3");
    command.args(["-m", "http.server", "8000"]).current_dir(&root);
    let _server = daemon.server(command);
    fetch_all(&daemon, &root, 8000);
}

fn apache(daemon: &Daemon, model: &str, extra: &str) -> Command {
    let folder = daemon.folder().display().to_string();
    let config = format!(
        "ServerRoot {folder}\nPidFile {folder}/pid\nServerName test\nListen 8000\nErrorLog {folder}/error\n\
         LoadModule mpm_{model}_module /usr/lib/apache2/modules/mod_mpm_{model}.so\n\
         LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
         DocumentRoot {folder}/site\n{extra}\n<Directory />\nRequire all granted\n</Directory>\n"
    );
    fs::write(daemon.folder().join("apache.conf"), config).unwrap();
    let mut command = daemon.command("/usr/sbin/apache2");
    command.args(["-D", "FOREGROUND", "-f", &format!("{folder}/apache.conf")]);
    command
}

#[test]
fn apache_prefork() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let _server = daemon.server(apache(&daemon, "prefork", "StartServers 6\nMaxRequestWorkers 8"));
    fetch_all(&daemon, &root, 8000);
}

#[test]
fn apache_prefork_with_sendfile_and_without_mmap() {
    let daemon = Daemon::start(0);
    let root = site(&daemon);
    let _server = daemon.server(apache(&daemon, "prefork", "EnableSendfile On\nEnableMMAP Off\nListen 8001"));
    fetch_all(&daemon, &root, 8001);
}

#[test]
fn apache_event() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let _server =
        daemon.server(apache(&daemon, "event", "StartServers 2\nThreadsPerChild 8\nMaxRequestWorkers 16"));
    fetch_all(&daemon, &root, 8000);
}

#[test]
fn apache_restarts_gracefully() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let server = daemon.server(apache(&daemon, "prefork", "StartServers 3"));
    fetch_all(&daemon, &root, 8000);
    let under_way = Begun::fetch(&daemon);
    server.signal(libc::SIGUSR1);
    let restarts =
        || fs::read_to_string(daemon.folder().join("error")).unwrap().matches("resuming normal").count();
    assert!((0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        restarts() == 2
    }));
    fetch_all(&daemon, &root, 8000);
    under_way.finish(&root);
}

fn nginx(daemon: &Daemon, workers: u32) -> Command {
    let folder = daemon.folder().display().to_string();
    let config = format!(
        "daemon off; worker_processes {workers}; pid {folder}/pid; error_log stderr notice; user root;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/b;\n\
         proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;\n\
         scgi_temp_path {folder}/s;\n\
         server {{ listen 8000; root {folder}/site; }} }}\n"
    );
    fs::write(daemon.folder().join("nginx.conf"), config).unwrap();
    let mut command = daemon.command("/usr/sbin/nginx");
    command.args(["-c", &format!("{folder}/nginx.conf"), "-p", &folder]);
    command
}

#[test]
fn nginx_with_one_worker() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let _server = daemon.server(nginx(&daemon, 1));
    fetch_all(&daemon, &root, 8000);
}

#[test]
fn nginx_with_four_workers_reloads() {
    let daemon = Daemon::start(2);
    let root = site(&daemon);
    let server = daemon.server(nginx(&daemon, 4));
    fetch_all(&daemon, &root, 8000);
    server.signal(libc::SIGHUP);
    fetch_all(&daemon, &root, 8000);
    assert!(server.log().contains("reconfiguring"), "{}", server.log());
}

#[test]
fn redis() {
    let daemon = Daemon::start(2);
    let mut command = daemon.command("redis-server");
    command.args(["--port", "8000", "--save", "", "--protected-mode", "no", "--bind", "10.77.0.1"]);
    command.current_dir(daemon.folder());
    let _server = daemon.server(command);
    let cli =
        |args: &[&str]| daemon.client("redis-cli", &[&["-h", "10.77.0.1", "-p", "8000"], args].concat());
    assert_eq!(cli(&["set", "key", &"x".repeat(100_000)]), "OK");
    assert_eq!(cli(&["strlen", "key"]), "100000");
    let said = daemon.client(
        "redis-benchmark",
        &[
            "-h",
            "10.77.0.1",
            "-p",
            "8000",
            "-q",
            "-n",
            "2000",
            "-c",
            "20",
            "-P",
            "4",
            "-t",
            "set,get,lrange_100",
        ],
    );
    assert_eq!(said.matches("requests per second").count(), 4, "{said}");
}

#[test]
fn iperf3_in_both_directions() {
    let daemon = Daemon::start(2);
    let mut command = daemon.command("iperf3");
    command.args(["-s", "-p", "8000"]);
    let _server = daemon.server(command);
    for extra in [&["-n", "20M"][..], &["-n", "20M", "-R"], &["-n", "10M", "-P", "3"]] {
        let said = daemon.client("iperf3", &[&["-c", "10.77.0.1", "-p", "8000"], extra].concat());
        assert!(said.contains("receiver"), "{said}");
    }
}

#[test]
fn dig_asks_a_small_server() {
    let daemon = Daemon::start(2);
    let mut command = daemon.command("/usr/bin/python3");
    command.args([
        "-c",
        r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.77.0.1', 5300))
while True:
    q, who = s.recvfrom(4096)
    question = q[12:q.index(0, 12) + 5]
    answer = b'\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4' + bytes([10, 9, 8, 7])
    s.sendto(q[:2] + b'\x84\0\0\1\0\1\0\0\0\0' + question + answer, who)
",
    ]);
    let _server = daemon.server(command);
    assert_eq!(becomes(&daemon.seen.live, 1), 1, "its socket");
    let said =
        daemon.client("dig", &["+short", "+noedns", "+time=2", "-p", "5300", "@10.77.0.1", "host.test"]);
    assert_eq!(said, "10.9.8.7");
}

#[test]
fn an_asyncio_server() {
    let daemon = Daemon::start(2);
    let said = daemon.python(
        r"
import asyncio, os
async def serve(r, w):
    while d := await r.read(65536):
        w.write(d); await w.drain()
    w.close()
async def ask(n):
    r, w = await asyncio.open_connection('10.77.0.1', 8000)
    data = os.urandom(n)
    async def send():
        w.write(data); await w.drain(); w.write_eof()
    t = asyncio.create_task(send())
    got = await r.read(-1)
    await t; w.close()
    return got == data
async def main():
    server = await asyncio.start_server(serve, '10.77.0.1', 8000)
    print(all(await asyncio.gather(*[ask(1 + n * 20011) for n in range(20)])))
    server.close()
asyncio.run(main())
",
    );
    assert_eq!(said, "True");
}
