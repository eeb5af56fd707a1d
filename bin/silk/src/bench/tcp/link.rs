//! The bad networks of the experiment: an emulated link between the two hosts, `silk netem`, whose losses
//! come from a seed. Both systems of a round meet the same seed.

use super::super::cpus::{CLIENT_CPU, SERVER_CPU};
use super::super::stage::{Stage, receive_on};
use super::super::{Failure, programs};
use silk_testkit::netns::{Host, Running};
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

/// The name of the link's interface on both hosts.
pub const INTERFACE: &str = "wan";
/// The server's address on it.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
/// The client's.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
/// What the link carries: so little that no CPU is the limit.
const RATE: &str = "200mbit";
/// Packets that may wait for it: 15 ms.
const QUEUE: &str = "250";

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub struct Link {
    /// The round trip, in milliseconds.
    pub rtt: u32,
    /// The share of packets that is lost, in tenths of a percent, each way.
    pub loss: u32,
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ms, {} %", self.rtt, f64::from(self.loss) / 10.0)
    }
}

impl FromStr for Link {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a network is its round trip in ms (1 to 1000), a stroke and its loss in percent, such as 100/0.1";
        let (rtt, loss) = text.split_once('/').ok_or(FORM)?;
        let rtt = rtt.parse().ok().filter(|rtt| (1..=1000).contains(rtt)).ok_or(FORM)?;
        let percent: f64 = loss.parse().map_err(|_| FORM)?;
        // A tenth of a percent is the least that there is.
        let loss = (percent * 10.0).round();
        let exact = (0.0..=500.0).contains(&loss) && (loss - percent * 10.0).abs() < 1e-9;
        if exact { Ok(Self { rtt, loss: loss as u32 }) } else { Err("a loss is 0 to 50 percent, in tenths") }
    }
}

impl Link {
    /// Every network, or the corners.
    pub fn all(quick: bool) -> Vec<Self> {
        let (rtts, losses) =
            if quick { (&[1, 100][..], &[0, 10][..]) } else { (&[1, 10, 100][..], &[0, 1, 10, 30][..]) };
        rtts.iter().flat_map(|&rtt| losses.iter().map(move |&loss| Self { rtt, loss })).collect()
    }

    /// Joins the hosts by it.
    pub fn lay(self, stage: &Stage, seed: u64) -> Result<Running, Failure> {
        let [server, client] = [&stage.rig.server, &stage.rig.client];
        for host in [server, client] {
            // Nothing but what is measured draws from the seed.
            host.set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        const LOG: &str = "netem.txt";
        let mut running = stage.scratch.start(&mut self.command(server, client, seed), LOG)?;
        let said = || fs::read_to_string(stage.scratch.path().join(LOG)).unwrap_or_default();
        let joined = || (said().contains("are joined") || running.ended().is_some()).then_some(());
        stage.watch.until(Duration::from_secs(10), joined)?;
        if !said().contains("are joined") {
            return Err(Failure::Program { what: "silk netem".into(), said: said() });
        }
        let [left, right] = [("02:00:00:00:00:01", SERVER), ("02:00:00:00:00:02", CLIENT)];
        connect(server, left, right)?;
        connect(client, right, left)?;
        // As on a cable, each host's CPU processes what it receives.
        receive_on(server, 0, SERVER_CPU);
        receive_on(client, 0, CLIENT_CPU);
        Ok(running)
    }

    fn command(self, server: &Host, client: &Host, seed: u64) -> Command {
        let side = |host: &Host| format!("{}:{INTERFACE}", host.namespace());
        // One way takes half of the round trip.
        let delay = format!("{}ms", f64::from(self.rtt) / 2.0);
        let loss = format!("{}%", f64::from(self.loss) / 10.0);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "taskset", "-c", CLIENT_CPU]);
        command.arg(programs::beside("silk")).args([
            "netem",
            "--left",
            &side(server),
            "--right",
            &side(client),
        ]);
        command.args(["--rate", RATE, "--queue", QUEUE, "--delay", &delay, "--loss", &loss]);
        command.args(["--seed", &seed.to_string()]);
        command
    }
}

fn connect(host: &Host, own: (&str, Ipv4Addr), other: (&str, Ipv4Addr)) -> Result<(), Failure> {
    host.ip(["link", "set", INTERFACE, "address", own.0])?;
    host.ip(["addr", "add", &format!("{}/24", own.1), "dev", INTERFACE])?;
    let other = (other.1.to_string(), other.0);
    Ok(host.ip(["neigh", "add", &other.0, "lladdr", other.1, "dev", INTERFACE, "nud", "permanent"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_run_has_every_network_and_the_short_one_the_corners() {
        let names = |quick| Link::all(quick).iter().map(Link::to_string).collect::<Vec<_>>();
        assert_eq!(names(true), ["1 ms, 0 %", "1 ms, 1 %", "100 ms, 0 %", "100 ms, 1 %"]);
        assert_eq!(names(false).len(), 12);
        assert_eq!(names(false)[1], "1 ms, 0.1 %");
    }

    #[test]
    fn a_network_is_written_with_a_stroke() {
        assert_eq!("100/0.1".parse(), Ok(Link { rtt: 100, loss: 1 }));
        assert_eq!("1/3".parse(), Ok(Link { rtt: 1, loss: 30 }));
        for wrong in ["", "100", "/1", "100/", "0/1", "1001/1", "1/0.05", "1/-1", "1/51", "1/nan", "x/1"] {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        }
    }
}
