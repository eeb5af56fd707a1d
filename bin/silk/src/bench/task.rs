//! One cell: the phases in which it is measured, and in which order.

use super::cell::Cell;
use super::counters::CpuShares;
use super::counters::Moment;
use super::load::{Clients, Load, RATE_LIMIT, Seen};
use super::stage::Stage;
use super::system::System;
use super::{Failure, flood, silkd};
use silk_testkit::netns::{CLIENT, PREFERRED, Running, SERVER, signal};
use std::fs;
use std::time::Duration;

/// Until the standard clients have reached their full load.
const RAMP: Duration = Duration::from_millis(700);

/// Until silk's receive threads have forgotten the preferred client of the phase before: for a second they go on as if it asked.
const FORGOTTEN: Duration = Duration::from_millis(1200);

/// The longest time that warming up may take, in seconds.
const WARMING: u64 = 10;

/// What the flood says, in the experiment's folder.
const FLOOD: &str = "flood.out";

/// One cell to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Size of the file, in units of 1 024 bytes.
    pub kb: u32,
    /// Standard clients beside the preferred one.
    pub clients: u32,
    /// Whether the standard address floods instead.
    pub flood: bool,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flood = if self.flood { ", flooded" } else { "" };
        write!(f, "{} KB, {} standard clients{flood}", self.kb, self.clients)
    }
}

impl Task {
    /// Measures it: `seconds` without the preferred client, twice as long with it.
    pub fn measure(self, stage: &Stage, system: System, round: u32, seconds: u64) -> Result<Cell, Failure> {
        let alone = self.standard_alone(stage, system, seconds)?;
        let unblocked = || system.is_silk().then(|| silkd::unblocked(stage)).flatten();
        let before = unblocked();
        let both = if self.flood { self.flooded(stage, seconds)? } else { self.beside(stage, seconds)? };
        let unblock_us = unblocked().and_then(|after| after.mean_since(&before?));
        Ok(Cell {
            system: system.name().to_owned(),
            kb: self.kb,
            clients: self.clients,
            round,
            preferred_us: both.preferred.times,
            preferred_rps: both.preferred.rps,
            preferred_requests: both.preferred.requests,
            standard_rps: alone.map_or(0.0, |(seen, _)| seen.rps),
            standard_rps_beside: both.standard_rps,
            failed: both.preferred.failed + both.standard_failed + alone.map_or(0, |(seen, _)| seen.failed),
            flood_pps: both.flood_pps,
            unblock_us,
            cpu: both.cpu,
            cpu_alone: alone.map(|(_, cpu)| cpu),
            again: 0,
        })
    }

    fn load(self, seconds: u64) -> Load {
        let requests = seconds * RATE_LIMIT;
        Load { clients: self.clients, kb: self.kb, seconds, requests, source: None, urgent: false }
    }

    fn preferred(self, stage: &Stage, seconds: u64) -> Load {
        Load { clients: 1, source: Some(PREFERRED), urgent: stage.realtime, ..self.load(seconds) }
    }

    /// Requests that are not measured, from the standard clients: what a process does for the first
    /// time (it touches its memory, binds its symbols) is no part of what a request costs.
    pub fn warm_up(self, stage: &Stage, requests: u64) -> Result<(), Failure> {
        let load = Load { requests, ..self.load(WARMING) };
        let mut clients = load.start(&stage.rig.client, stage.scratch.path())?;
        stage.ends(&mut clients.program, load.time(), &format!("warming up for {self}"))?;
        clients.seen().map(drop)
    }

    /// The standard clients without the preferred one, and how busy the CPUs were.
    fn standard_alone(
        self,
        stage: &Stage,
        system: System,
        seconds: u64,
    ) -> Result<Option<(Seen, CpuShares)>, Failure> {
        if self.clients == 0 {
            return Ok(None);
        }
        if system.is_silk() {
            stage.watch.pause(FORGOTTEN)?;
        }
        let (load, before) = (self.load(seconds), Moment::now(None));
        let mut clients = load.start(&stage.rig.client, stage.scratch.path())?;
        stage.ends(&mut clients.program, load.time(), &format!("{self}, without the preferred client,"))?;
        let cpu = before.cpu_until(&Moment::now(None));
        clients.seen().map(|seen| Some((seen, cpu)))
    }

    /// The preferred client beside the standard ones, or alone where there are none.
    fn beside(self, stage: &Stage, seconds: u64) -> Result<Both, Failure> {
        let mut standard = None;
        if self.clients > 0 {
            standard = Some(self.load(2 * seconds + 30).start(&stage.rig.client, stage.scratch.path())?);
            stage.watch.pause(RAMP)?;
        }
        let before = Moment::now(standard.as_ref());
        let preferred = self.run_preferred(stage, seconds)?;
        let after = Moment::now(standard.as_ref());
        let standard_failed = match standard {
            Some(mut clients) => stop_standard(&mut clients, stage)?.failed,
            None => 0,
        };
        let opened = after.opened.saturating_sub(before.opened).saturating_sub(preferred.requests);
        let standard_rps = opened as f64 / after.at.duration_since(before.at).as_secs_f64();
        Ok(Both { preferred, standard_rps, standard_failed, flood_pps: None, cpu: before.cpu_until(&after) })
    }

    /// The preferred client beside a flood from the standard address.
    fn flooded(self, stage: &Stage, seconds: u64) -> Result<Both, Failure> {
        let flooding = 2 * seconds + 2;
        let mut flood = start_flood(stage, flooding)?;
        stage.watch.pause(RAMP)?;
        let sent = || {
            let said = fs::read_to_string(stage.scratch.path().join(FLOOD)).unwrap_or_default();
            flood::sent(&said).ok_or_else(|| Failure::Program { what: format!("the flood ({self})"), said })
        };
        let (before, first) = (Moment::now(None), sent()?);
        let preferred = self.run_preferred(stage, seconds)?;
        let (after, last) = (Moment::now(None), sent()?);
        stage.watch.wait(&mut flood, Duration::from_secs(flooding))?;
        let took = after.at.duration_since(before.at).as_secs_f64();
        let flood_pps = Some(last.saturating_sub(first) as f64 / took);
        Ok(Both {
            preferred,
            standard_rps: 0.0,
            standard_failed: 0,
            flood_pps,
            cpu: before.cpu_until(&after),
        })
    }

    fn run_preferred(self, stage: &Stage, seconds: u64) -> Result<Seen, Failure> {
        let load = self.preferred(stage, 2 * seconds);
        let mut client = load.start(&stage.rig.client, stage.scratch.path())?;
        stage.ends(&mut client.program, load.time(), &format!("{self}, the preferred client,"))?;
        client.seen()
    }
}

/// Tells the standard clients that it is enough; ab then reports what it has.
fn stop_standard(clients: &mut Clients, stage: &Stage) -> Result<Seen, Failure> {
    signal(&[clients.program.id()], "INT");
    stage.ends(&mut clients.program, Duration::ZERO, "the end of the standard clients")?;
    clients.seen()
}

fn start_flood(stage: &Stage, seconds: u64) -> Result<Running, Failure> {
    let myself = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    let mut command = stage.flooder();
    command.arg(myself).args(["bench", "flood"]);
    command.args(["--from", &CLIENT.to_string(), "--to", &format!("{SERVER}:80")]);
    command.args(["--seconds", &seconds.to_string()]);
    stage.scratch.start(&mut command, FLOOD)
}

/// What was seen while the preferred client ran.
struct Both {
    preferred: Seen,
    standard_rps: f64,
    standard_failed: u64,
    flood_pps: Option<f64>,
    cpu: CpuShares,
}
