//! Requests over connections that are kept: Debian's nginx, unmodified, one process that waits for all of them
//! at once (`epoll`), and `wrk`, whose clients ask again as soon as they are answered. And requests of which each
//! has a connection of its own, that wrk opens over the system.

use super::super::Failure;
use super::super::cpus::CLIENT_CPU;
use super::super::cpus::SERVER_CPU;
use super::super::ends::{Figure, Unit};
use super::super::stage::Stage;
use super::system::PORT;
use silk_testkit::netns::{CLIENT, Host, INTERFACE, Running, SERVER};
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

/// How many packets wait at the clients' end of the cable, where they do: as many as before a network card.
const QUEUE: u32 = 1000;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// Over so many connections.
    pub connections: u32,
    /// What they send waits while the server's end of the cable is full, instead of being lost.
    pub queued: bool,
}

impl Clients {
    /// So many, whose cable loses what the server does not receive in time, as a veth does.
    pub fn so_many(connections: u32) -> Self {
        Self { connections, queued: false }
    }
}

impl std::fmt::Display for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queued = if self.queued { ", queued" } else { "" };
        write!(f, "{} connections{queued}", self.connections)
    }
}

/// Longer than the longest wait after a loss that is mended.
const PATIENCE: &str = "10s";

/// One of the two hosts, and how a program runs there.
pub struct Side<'a> {
    host: &'a Host,
    peer: &'a Host,
    address: Ipv4Addr,
    cpu: &'a str,
    /// What stands before its command line.
    runner: &'a [String],
}

impl<'a> Side<'a> {
    /// The server's, over a system.
    pub fn server(stage: &'a Stage, runner: &'a [String]) -> Self {
        let (host, peer) = (&stage.rig.server, &stage.rig.client);
        Self { host, peer, address: SERVER, cpu: SERVER_CPU, runner }
    }

    /// The clients'.
    pub fn client(stage: &'a Stage) -> Self {
        let (host, peer) = (&stage.rig.client, &stage.rig.server);
        Self { host, peer, address: CLIENT, cpu: CLIENT_CPU, runner: &[] }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.host.command("taskset");
        command.args(["-c", self.cpu]).args(self.runner).arg(program);
        command
    }
}

/// Starts nginx at one side, and waits until it answers the other.
pub fn serve(stage: &Stage, side: &Side<'_>) -> Result<Running, Failure> {
    let config = stage.scratch.write("nginx.conf", &config(&stage.scratch.path().display().to_string()))?;
    let nginx = stage.scratch.start(side.command("nginx").arg("-c").arg(config), "serve.txt")?;
    let answers = || side.peer.run("curl", ["-sf", "--max-time", "2", &address(side.address)]).ok();
    match stage.watch.until(Duration::from_secs(10), answers)? {
        Some(_) => Ok(nginx),
        None => Err(Failure::NotServing { system: "nginx", log: stage.said() }),
    }
}

fn address(server: Ipv4Addr) -> String {
    format!("http://{server}:{PORT}/")
}

fn config(folder: &str) -> String {
    format!(
        "daemon off;\nmaster_process off;\nworker_rlimit_nofile 8192;\npid {folder}/nginx.pid;\nerror_log stderr;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 1000000000;\n  keepalive_timeout 600s;\n  server {{\n    \
         listen {PORT} backlog=4096;\n    location / {{ return 200 \"hello\"; }}\n  }}\n}}\n"
    )
}

/// The clients ask for whole seconds: what they saw.
pub fn ask(stage: &Stage, clients: Clients, milliseconds: u64) -> Result<Vec<Figure>, Failure> {
    if clients.queued {
        stage.rig.client.queue(INTERFACE, QUEUE)?;
    }
    let wrk = Side::client(stage).command("wrk");
    let Report { rate, p99, .. } = asked(stage, wrk, (clients.connections, SERVER), milliseconds, || {
        format!("kept connections ({clients})")
    })?;
    Ok(vec![
        Figure::new(format!("{clients}: rate"), rate, Unit::PerSecond),
        Figure::new(format!("{clients}: p99"), p99, Unit::Micros),
    ])
}

/// A program at one side opens a connection for each of its requests, so many at a time, for whole seconds: how
/// many in a second.
pub fn open(stage: &Stage, side: &Side<'_>, at_once: u32, milliseconds: u64) -> Result<Vec<Figure>, Failure> {
    let mut wrk = side.command("wrk");
    wrk.args(["-H", "Connection: close"]);
    let task = || format!("connections ({})", at_a_time(at_once));
    let Report { rate, .. } = asked(stage, wrk, (at_once, CLIENT), milliseconds, task)?;
    Ok(vec![Figure::new(format!("{}: rate", at_a_time(at_once)), rate, Unit::PerSecond)])
}

/// How so many connections read in a table.
pub fn at_a_time(connections: u32) -> String {
    format!("{connections} at a time")
}

/// What wrk saw, of whose requests none may have failed.
fn asked(
    stage: &Stage,
    mut wrk: Command,
    (connections, server): (u32, Ipv4Addr),
    milliseconds: u64,
    task: impl Fn() -> String,
) -> Result<Report, Failure> {
    const REPORT: &str = "wrk.txt";
    let seconds = milliseconds.div_ceil(1000);
    wrk.args(["--latency", "-t", "1", "--timeout", PATIENCE, "-c", &connections.to_string()]);
    wrk.args(["-d", &format!("{seconds}s"), &address(server)]);
    let mut wrk = stage.scratch.start(&mut wrk, REPORT)?;
    stage.ends(&mut wrk, Duration::from_secs(seconds), "wrk")?;
    let report = stage.scratch.path().join(REPORT);
    let said = fs::read_to_string(&report).map_err(Failure::file(&report))?;
    match Report::read(&said) {
        Some(report @ Report { failed: 0, .. }) => Ok(report),
        Some(Report { failed, .. }) => Err(Failure::Unanswered { task: task(), failed }),
        None => Err(Failure::Program { what: "`wrk`".to_owned(), said }),
    }
}

/// What wrk says.
#[derive(Debug, PartialEq)]
struct Report {
    /// Requests per second.
    rate: f64,
    /// The 99th percentile of the times, µs. wrk counts a long one as often as a client that did not wait for it
    /// would have asked meanwhile.
    p99: f64,
    /// Requests that failed.
    failed: u64,
}

impl Report {
    fn read(said: &str) -> Option<Self> {
        let after = |name: &str| said.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
        let counts = |line: &str| -> u64 {
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u64>().ok()).sum()
        };
        Some(Self {
            // Where nothing was answered wrk tells a percentile of 0, and no failure.
            rate: after("Requests/sec:")?.parse().ok().filter(|rate| *rate > 0.0)?,
            p99: micros(after("99%")?)?,
            failed: ["Socket errors:", "Non-2xx or 3xx responses:"]
                .into_iter()
                .filter_map(after)
                .map(counts)
                .sum(),
        })
    }
}

/// A time with its unit, in µs.
fn micros(time: &str) -> Option<f64> {
    let number = time.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &time[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 3s test @ http://10.98.0.2:7000/\n  1 threads and 16 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    90.29us   97.34us   4.18ms   98.94%\n    \
        Req/Sec   174.21k     2.04k  176.35k    93.55%\n  Latency Distribution\n     50%   79.00us\n     75%   86.00us\n     \
        90%  116.00us\n     99%    1.46ms\n  537093 requests in 3.10s, 81.96MB read\n";
    const RATE: &str = "Requests/sec: 173255.51\nTransfer/sec:     26.44MB\n";

    #[test]
    fn what_wrk_says_is_understood() {
        let read = |more: &str| Report::read(&format!("{SAID}{more}{RATE}"));
        let good = Report { rate: 173_255.51, p99: 1_460.0, failed: 0 };
        assert_eq!(read(""), Some(good));
        let failed = |more| read(more).map(|report| report.failed);
        assert_eq!(failed("  Socket errors: connect 1, read 20, write 0, timeout 300\n"), Some(321));
        assert_eq!(failed("  Non-2xx or 3xx responses: 7\n"), Some(7));
        assert_eq!(Report::read(SAID), None, "it was ended before it had a rate");
        let nothing = "     99%    0.00us\n  0 requests in 3.10s, 0.00B read\nRequests/sec:      0.00\n";
        assert_eq!(Report::read(nothing), None);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(micros("79.00us"), Some(79.0));
        assert_eq!(micros("1.46ms"), Some(1_460.0));
        assert_eq!(micros("2.71s"), Some(2_710_000.0));
        assert_eq!(micros("1.50m"), Some(90_000_000.0));
        assert_eq!(["", "ms", "12", "12h"].map(micros), [None; 4]);
    }
}
