//! One measurement of the web experiment: a cell for each system, file size, number of clients and round.

use super::counters::CpuShares;
use super::load::Micros;
use serde::{Deserialize, Serialize};

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub struct Cell {
    /// Its name in options and tables, such as `silk-equal`.
    pub system: String,
    /// Size of the file, in units of 1 024 bytes.
    pub kb: u32,
    /// Standard clients beside the preferred one.
    pub clients: u32,
    /// The round, from 1.
    pub round: u32,
    /// The preferred client, beside the standard ones.
    pub preferred_us: Micros,
    /// Requests per second of the preferred client.
    pub preferred_rps: f64,
    /// How many they were: of 150 and fewer the 99th percentile is the longest. 0 where an earlier run did not keep it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub preferred_requests: u64,
    /// Requests per second of the standard clients, without the preferred one.
    pub standard_rps: f64,
    /// Requests per second of the standard clients, beside the preferred one.
    pub standard_rps_beside: f64,
    /// Requests that failed, were cut short or had the wrong length, of all clients.
    pub failed: u64,
    /// Packets per second of a flood from the standard address; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood_pps: Option<f64>,
    /// Mean from unblocking a preferred server thread to its running, in microseconds (SILK table 2);
    /// absent where nothing was unblocked or nobody measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unblock_us: Option<f64>,
    /// How busy the CPUs were while the preferred client asked.
    pub cpu: CpuShares,
    /// And before, while the standard clients asked without it, which is when their rate is measured; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_alone: Option<CpuShares>,
    /// How often it had been measured before, when a hypervisor took part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u32,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl Cell {
    /// Whether it is a measurement: where requests failed, the others' times and numbers say nothing.
    pub fn counts(&self) -> bool {
        self.failed == 0
    }

    /// Bytes of files served per second to all clients.
    pub fn bytes_in_all(&self) -> f64 {
        (self.standard_rps_beside + self.preferred_rps) * f64::from(self.kb) * 1024.0
    }
}
