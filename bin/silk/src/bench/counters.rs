//! What the kernel counts while a phase runs: connections that the client host opens, and how the CPUs
//! spend their time.

use super::cpus::{CLIENT_CPU, SERVER_CPU};
use super::load::Clients;
use serde::{Deserialize, Serialize};
use silk_testkit::ticks::Ticks;
use std::fs;
use std::time::Instant;

/// Shares of a CPU's time, 0 to 1, in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// How busy the server's CPU was.
    pub server: f64,
    /// How busy the clients' CPU was; near 1, the load and not the server is the limit.
    pub client: f64,
    /// What the hypervisor gave to others, on average; above a few percent, distrust the cell.
    pub stolen: f64,
}

/// Counters at one end of a phase.
pub struct Moment {
    /// When.
    pub at: Instant,
    /// Connections that the client host has ever opened.
    pub opened: u64,
    server: Ticks,
    client: Ticks,
}

impl Moment {
    /// Reads the counters; those of the client host through a program that runs there.
    pub fn now(on_client: Option<&Clients>) -> Self {
        let snmp = on_client.map(|clients| format!("/proc/{}/net/snmp", clients.program.id()));
        let opened = snmp.and_then(|file| active_opens(&fs::read_to_string(file).ok()?));
        Self {
            at: Instant::now(),
            opened: opened.unwrap_or(0),
            server: Ticks::now(SERVER_CPU),
            client: Ticks::now(CLIENT_CPU),
        }
    }

    pub fn cpu_until(&self, end: &Self) -> CpuShares {
        let (server, client) = (end.server.since(&self.server), end.client.since(&self.client));
        let stolen = (server.stolen_share() + client.stolen_share()) / 2.0;
        CpuShares { server: server.busy_share(), client: client.busy_share(), stolen }
    }
}

/// `Tcp: ActiveOpens` of an `snmp` file (RFC 4022's tcpActiveOpens).
fn active_opens(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names.split_whitespace().position(|name| name == "ActiveOpens")?;
    values.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_connections_are_found_by_their_column() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 17 4\n";
        assert_eq!(active_opens(snmp), Some(17));
        assert_eq!(active_opens("Tcp: RtoMin\n"), None);
    }
}
