//! The closed-loop clients: ApacheBench (`ab`), which opens a new connection for each request and times
//! it from before the connection is opened to the last byte, as SILK §4.1 does, in microseconds. (`wrk`
//! starts its clock only when the request is written, so the time a connection waits in the listen queue
//! would not count.)
//!
//! The preferred client runs at a real-time priority on the clients' CPU: it stands for a host of its
//! own, and must not wait for the standard clients' program to give that CPU up.

use super::Failure;
use super::cpus::CLIENT_CPU;
use serde::{Deserialize, Serialize};
use silk_testkit::netns::{Host, Running, SERVER};
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Above everything else on the clients' CPU, so that it is the server that is measured.
pub const CLIENT_PRIORITY: &str = "90";
/// More requests a second than one CPU can make, so that time and not the count ends a phase.
pub const RATE_LIMIT: u64 = 60_000;

/// With so few requests the 99th percentile that ab tells is the longest of them; of 50 and fewer it looks for one behind that.
const FEW: u64 = 150;

/// Response times of one client, in microseconds from opening the connection to the last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Micros {
    /// The mean.
    pub mean: f64,
    /// Half of the requests took at most this.
    pub p50: f64,
    /// 99 of 100 requests took at most this.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// A number of clients asking for one file again and again.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Connections open at any time.
    pub clients: u32,
    /// Size of the file, in units of 1 024 bytes.
    pub kb: u32,
    /// How long, in whole seconds (ab counts no others).
    pub seconds: u64,
    /// Not more requests than this.
    pub requests: u64,
    /// Where the connections come from, if not from the host's first address.
    pub source: Option<Ipv4Addr>,
    /// Whether to run at a real-time priority.
    pub urgent: bool,
}

/// What one group of clients saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Requests answered.
    pub requests: u64,
    /// Requests per second.
    pub rps: f64,
    /// Requests that failed or whose answer had a wrong length or status.
    pub failed: u64,
    /// Response times.
    pub times: Micros,
}

/// A group of clients at work.
#[derive(Debug)]
pub struct Clients {
    /// The load generator.
    pub program: Running,
    load: Load,
    report: PathBuf,
    percentiles: PathBuf,
}

impl Load {
    /// Sets the clients to work. `scratch` is a folder for their reports.
    pub fn start(self, host: &Host, scratch: &Path) -> Result<Clients, Failure> {
        let group = if self.source.is_some() { "preferred" } else { "standard" };
        let name = |kind| scratch.join(format!("{group}.{kind}"));
        let (report, percentiles) = (name("txt"), name("csv"));
        let _ = fs::remove_file(&percentiles);
        let out = File::create(&report).map_err(Failure::file(&report))?;
        let errors = out.try_clone().map_err(Failure::file(&report))?;
        let mut command = self.command(host, &percentiles);
        command.stdout(out).stderr(errors);
        Ok(Clients { program: Running::start(&mut command)?, load: self, report, percentiles })
    }

    /// How long the phase takes.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    fn command(&self, host: &Host, percentiles: &Path) -> Command {
        let mut command = host.command("taskset");
        command.args(["-c", CLIENT_CPU]);
        if self.urgent {
            command.args(["chrt", "-f", CLIENT_PRIORITY]);
        }
        command.args(["ab", "-q", "-r", "-s", "30"]).arg("-e").arg(percentiles);
        command.arg("-t").arg(self.seconds.to_string());
        command.arg("-n").arg(self.requests.to_string());
        command.arg("-c").arg(self.clients.to_string());
        if let Some(source) = self.source {
            command.arg("-B").arg(source.to_string());
        }
        command.arg(format!("http://{SERVER}/{}.bin", self.kb));
        command
    }
}

impl Clients {
    /// What the clients saw, once their program has ended.
    pub fn seen(&self) -> Result<Seen, Failure> {
        let read = |path: &Path| fs::read_to_string(path).map_err(Failure::file(path));
        let report = read(&self.report)?;
        let percentiles = read(&self.percentiles).map_err(|_| Failure::NoReport(report.clone()))?;
        parse(&report, &percentiles, u64::from(self.load.kb) * 1024).ok_or(Failure::NoReport(report))
    }
}

/// Reads ab's report and its list of percentiles. The mean is the time of the phase divided by its
/// requests, which is exact for one client (it includes the few microseconds between two requests).
/// A first answer of a wrong length makes all of them failures: ab compares the others with it.
fn parse(report: &str, percentiles: &str, length: u64) -> Option<Seen> {
    let requests = number(report, "Complete requests:")? as u64;
    let counted = ["Failed requests:", "Write errors:", "Non-2xx responses:"];
    let failed = counted.iter().filter_map(|name| number(report, name)).sum::<f64>() as u64;
    let right = number(report, "Document Length:")? as u64 == length;
    let max = percentile(percentiles, 100)?;
    let times = Micros {
        mean: number(report, "Time per request:")? * 1e3,
        p50: percentile(percentiles, 50)?,
        p99: if requests > FEW { percentile(percentiles, 99)? } else { max },
        max,
    };
    let rps = number(report, "Requests per second:")?;
    Some(Seen { requests, rps, failed: if right { failed } else { requests }, times })
}

/// The number that follows a name at the start of a line.
fn number(report: &str, name: &str) -> Option<f64> {
    let rest = report.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A percentile in microseconds, from lines of `percent,milliseconds`.
fn percentile(list: &str, percent: u32) -> Option<f64> {
    let milliseconds = list.lines().find_map(|line| line.strip_prefix(&format!("{percent},")))?;
    Some(milliseconds.trim().parse::<f64>().ok()? * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
Document Path:          /1.bin
Document Length:        1024 bytes

Concurrency Level:      1
Time taken for tests:   2.000 seconds
Complete requests:      5853
Failed requests:        3
   (Connect: 0, Receive: 1, Length: 1, Exceptions: 1)
Non-2xx responses:      4
Requests per second:    2926.45 [#/sec] (mean)
Time per request:       0.342 [ms] (mean)
Time per request:       0.341 [ms] (mean, across all concurrent requests)
";
    const PERCENTILES: &str = "Percentage served,Time in ms\n0,0.195\n50,0.272\n99,0.467\n100,4.322\n";

    #[test]
    fn a_report_is_read_in_microseconds() {
        let times = Micros { mean: 342.0, p50: 272.0, p99: 467.0, max: 4322.0 };
        let seen = Seen { requests: 5853, rps: 2926.45, failed: 7, times };
        assert_eq!(parse(REPORT, PERCENTILES, 1024), Some(seen));
    }

    #[test]
    fn answers_of_a_wrong_length_are_all_failures() {
        assert_eq!(parse(REPORT, PERCENTILES, 1000).map(|seen| seen.failed), Some(5853));
    }

    #[test]
    fn the_longest_of_few_requests_is_their_99th_percentile() {
        let p99 = |requests: u64| {
            let few = REPORT
                .replace("Complete requests:      5853", &format!("Complete requests:      {requests}"));
            parse(&few, PERCENTILES, 1024).map(|seen| seen.times.p99)
        };
        assert_eq!([50, 150, 151].map(p99), [Some(4322.0), Some(4322.0), Some(467.0)]);
    }

    #[test]
    fn a_report_that_is_cut_short_is_none() {
        assert_eq!(parse("Complete requests: 5", PERCENTILES, 1), None);
        assert_eq!(parse(REPORT, "Percentage served,Time in ms\n0,0.1\n", 1024), None);
    }
}
