//! What the kernel counts while a phase runs: connections that the client host opens, and how the CPUs
//! spend their time.

use super::cell::CpuShares;
use super::load::{CLIENT_CPU, Clients};
use super::stage::SERVER_CPU;
use std::fs;
use std::time::Instant;

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
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = |cpu| Ticks::of(&stat, cpu).unwrap_or_default();
        Self {
            at: Instant::now(),
            opened: opened.unwrap_or(0),
            server: ticks(SERVER_CPU),
            client: ticks(CLIENT_CPU),
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

/// A CPU's time since the machine started, in ticks.
#[derive(Clone, Copy, Default)]
struct Ticks {
    busy: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// From `/proc/stat`: user nice system idle iowait irq softirq steal.
    fn of(stat: &str, cpu: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[user, nice, system, idle, wait, hard, soft, stolen, ..] = ticks.as_slice() else { return None };
        Some(Self { busy: user + nice + system + hard + soft, idle: idle + wait, stolen })
    }

    fn since(&self, start: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(start.busy),
            idle: self.idle.saturating_sub(start.idle),
            stolen: self.stolen.saturating_sub(start.stolen),
        }
    }

    fn all(&self) -> f64 {
        (self.busy + self.idle + self.stolen).max(1) as f64
    }

    fn busy_share(&self) -> f64 {
        self.busy as f64 / self.all()
    }

    fn stolen_share(&self) -> f64 {
        self.stolen as f64 / self.all()
    }
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

    #[test]
    fn a_cpus_time_is_shared_between_busy_idle_and_stolen() {
        let before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 10 0 5 80 5 0 0 0 0 0\n";
        let after = "cpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 30 0 15 110 15 5 5 20 0 0\n";
        let spent = Ticks::of(after, "1").unwrap().since(&Ticks::of(before, "1").unwrap());
        assert_eq!((spent.busy_share(), spent.stolen_share()), (0.4, 0.2));
    }
}
