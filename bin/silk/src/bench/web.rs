//! `silk bench web`: SILK's three experiments (§4.1 to §4.3) beside Linux and HAProxy, in one run.
//!
//! Systems are interleaved round by round, so that a slow hour of the machine is everybody's. For each
//! cell the standard clients are measured without the preferred one (throughput) and then, from their
//! full load on, with it (response times): an average over both would flatter every system.

use super::cell::{Cell, CpuShares, Results};
use super::load::{CLIENT_CPU, Clients, Load, Seen};
use super::machine::Machine;
use super::rights::{self, Rights};
use super::stage::{SERVER_CPU, Scratch, Stage};
use super::system::System;
use super::watch::Watch;
use super::{Failure, page, ratio, table};
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use silk_testkit::netns::{CLIENT, PREFERRED, Running, SERVER, signal};
use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Until the standard clients have reached their full load.
const RAMP: Duration = Duration::from_millis(700);

/// A machine is quiet while its CPUs are busy for less than this share.
const QUIET: f64 = 0.1;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// A short run: sizes 1,50,500, clients 0,96, two rounds, short phases
    #[arg(long)]
    quick: bool,
    /// File sizes, in KB
    #[arg(long, value_delimiter = ',', value_name = "KB", value_parser = in_range(1..=65_536))]
    sizes: Vec<u32>,
    /// Numbers of standard clients; 0 is the preferred client alone
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = in_range(0..=10_000))]
    clients: Vec<u32>,
    /// Rounds over all systems
    #[arg(long, value_parser = in_range(1..=1000))]
    rounds: Option<u32>,
    /// The systems to compare
    #[arg(long, value_delimiter = ',', value_enum)]
    systems: Vec<System>,
    /// Seconds of the phase without the preferred client; the one with it takes twice as long
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Requests that HAProxy passes to Apache at a time
    #[arg(long, default_value_t = 8, value_parser = in_range(1..=1024))]
    haproxy_maxconn: u32,
    /// Leave out the flood of minimum-size packets
    #[arg(long)]
    no_flood: bool,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with tables and plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measure nothing: show the results of an earlier run, from its JSON file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    show: Option<PathBuf>,
}

fn in_range(range: std::ops::RangeInclusive<u64>) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(range)
}

/// Measures, prints the tables and writes what was asked for.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rights = Rights::here();
    if options.show.is_none() && rights == Rights::Nothing {
        eprintln!("silk bench web: {}", rights::WITHOUT_ROOT);
        return Err(rights::enter_user_namespace());
    }
    let results = match &options.show {
        Some(file) => read_json(file)?,
        None => measure(options, rights)?,
    };
    let _ = writeln!(stdout(), "{}", table::tables(&results));
    if let Some(file) = &options.html {
        fs::write(file, page::page(&results)).map_err(Failure::file(file))?;
        let _ = writeln!(stdout(), "The plots are in {}", file.display());
    }
    Ok(())
}

fn measure(options: &Options, rights: Rights) -> Result<Results, Failure> {
    let plan = Plan::new(options, rights);
    plan.check_programs()?;
    let watch = Watch::on_signals();
    let busy = busy_before(&watch)?;
    let cells = plan.measure(&watch)?;
    let results = Results { machine: Machine::describe(busy), ratios: ratio::ratios(&cells), cells };
    if let Some(file) = &options.json {
        let text =
            serde_json::to_string_pretty(&results).map_err(|error| Failure::file(file)(error.into()))?;
        fs::write(file, text + "\n").map_err(Failure::file(file))?;
    }
    Ok(results)
}

/// How busy others keep the experiment's CPUs, over a second; said aloud where it spoils the figures.
fn busy_before(watch: &Watch) -> Result<f64, Failure> {
    let before = Moment::now(None);
    watch.pause(Duration::from_secs(1))?;
    let cpu = before.cpu_until(&Moment::now(None));
    let busy = cpu.server.max(cpu.client);
    if busy > QUIET {
        let percent = busy * 100.0;
        eprintln!(
            "silk bench web: other programs keep a CPU {percent:.0} % busy; the figures will not be true"
        );
    }
    Ok(busy)
}

/// Reads an earlier run. Its ratios are computed anew: they follow from the cells.
fn read_json(file: &Path) -> Result<Results, Failure> {
    let text = fs::read_to_string(file).map_err(Failure::file(file))?;
    let results: Results = serde_json::from_str(&text).map_err(|error| Failure::file(file)(error.into()))?;
    Ok(Results { ratios: ratio::ratios(&results.cells), ..results })
}

/// The options with their defaults filled in.
#[derive(Debug)]
struct Plan {
    sizes: Vec<u32>,
    clients: Vec<u32>,
    rounds: u32,
    systems: Vec<System>,
    seconds: u64,
    maxconn: u32,
    flood: bool,
    rights: Rights,
}

impl Plan {
    fn new(options: &Options, rights: Rights) -> Self {
        let or = |given: &[u32], quick: &[u32], full: &[u32]| match given {
            [] => if options.quick { quick } else { full }.to_vec(),
            given => given.to_vec(),
        };
        let systems = if options.systems.is_empty() { &System::ALL[..] } else { &options.systems };
        Self {
            sizes: or(&options.sizes, &[1, 50, 500], &[1, 16, 50, 100, 250, 500]),
            clients: or(&options.clients, &[0, 96], &[0, 1, 16, 32, 64, 96]),
            rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 3 }),
            systems: systems.iter().copied().filter(|system| rights.allow(*system)).collect(),
            seconds: options.seconds.unwrap_or(if options.quick { 1 } else { 2 }),
            maxconn: options.haproxy_maxconn,
            flood: !options.no_flood,
            rights,
        }
    }

    fn check_programs(&self) -> Result<(), Failure> {
        let mut needed = vec!["unshare", "ip", "taskset", "chrt", "setpriv"];
        needed.extend(self.systems.iter().flat_map(|system| system.programs()));
        needed.sort_unstable();
        needed.dedup();
        needed.retain(|program| !is_installed(program));
        if needed.is_empty() { Ok(()) } else { Err(Failure::Missing(needed)) }
    }

    /// Cells of one system in one round.
    fn cells(&self, system: System) -> Vec<Task> {
        let task = |kb| move |clients: &u32| Task { kb, clients: *clients, flood: false };
        let mut cells: Vec<Task> =
            self.sizes.iter().flat_map(|kb| self.clients.iter().map(task(*kb))).collect();
        if self.flood && matches!(system, System::Linux | System::SilkExtended) {
            cells.extend(self.sizes.first().map(|kb| Task { kb: *kb, clients: 0, flood: true }));
        }
        cells
    }

    fn measure(&self, watch: &Watch) -> Result<Vec<Cell>, Failure> {
        let scratch = Scratch::new(&self.sizes)?;
        let in_round: usize = self.systems.iter().map(|system| self.cells(*system).len()).sum();
        let progress = Progress::new(in_round as u64 * u64::from(self.rounds));
        let mut cells = Vec::new();
        for round in 1..=self.rounds {
            for system in &self.systems {
                progress.says(format!("round {round} of {}, {}: starting", self.rounds, system.name()));
                let stage = Stage::new(&scratch, watch, self.rights)?;
                let _serving = system.start(&stage, self.sizes[0], self.maxconn)?;
                for task in self.cells(*system) {
                    progress.says(format!("round {round} of {}, {}: {task}", self.rounds, system.name()));
                    cells.push(task.measure(&stage, *system, round, self.seconds)?);
                    progress.bar.inc(1);
                }
            }
        }
        progress.bar.finish_and_clear();
        Ok(cells)
    }
}

/// One cell to be measured.
#[derive(Clone, Copy, Debug)]
struct Task {
    kb: u32,
    clients: u32,
    flood: bool,
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flood = if self.flood { ", flooded" } else { "" };
        write!(f, "{} KB, {} standard clients{flood}", self.kb, self.clients)
    }
}

impl Task {
    fn measure(self, stage: &Stage, system: System, round: u32, seconds: u64) -> Result<Cell, Failure> {
        let alone = self.standard_alone(stage, seconds)?;
        let both = if self.flood { self.flooded(stage, seconds)? } else { self.beside(stage, seconds)? };
        Ok(Cell {
            system: system.name().to_owned(),
            kb: self.kb,
            clients: self.clients,
            round,
            preferred_us: both.preferred.times,
            preferred_rps: both.preferred.rps,
            standard_rps: alone.map_or(0.0, |seen| seen.rps),
            standard_rps_beside: both.standard_rps,
            failed: both.preferred.failed + both.standard_failed + alone.map_or(0, |seen| seen.failed),
            flood_pps: both.flood_pps,
            cpu: both.cpu,
        })
    }

    fn load(self, seconds: u64) -> Load {
        Load { clients: self.clients, kb: self.kb, seconds, source: None, urgent: false }
    }

    fn preferred(self, stage: &Stage, seconds: u64) -> Load {
        Load { clients: 1, kb: self.kb, seconds, source: Some(PREFERRED), urgent: stage.realtime }
    }

    /// The standard clients without the preferred one.
    fn standard_alone(self, stage: &Stage, seconds: u64) -> Result<Option<Seen>, Failure> {
        if self.clients == 0 {
            return Ok(None);
        }
        let load = self.load(seconds);
        let mut clients = load.start(&stage.rig.client, stage.scratch.path())?;
        stage.watch.wait(&mut clients.program, load.limit())?;
        clients.seen().map(Some)
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
        let before = Moment::now(None);
        let preferred = self.run_preferred(stage, seconds)?;
        let after = Moment::now(None);
        stage.watch.wait(&mut flood, Duration::from_secs(flooding))?;
        let sent = fs::read_to_string(stage.scratch.path().join("flood.out")).unwrap_or_default();
        let sent: u64 = sent.trim().parse().map_err(|_| Failure::NoReport(sent))?;
        let flood_pps = Some(sent as f64 / flooding as f64);
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
        stage.watch.wait(&mut client.program, load.limit())?;
        client.seen()
    }
}

/// Tells the standard clients that it is enough; ab then reports what it has.
fn stop_standard(clients: &mut Clients, stage: &Stage) -> Result<Seen, Failure> {
    signal(&[clients.program.id()], "INT");
    stage.watch.wait(&mut clients.program, Duration::from_secs(10))?;
    clients.seen()
}

fn start_flood(stage: &Stage, seconds: u64) -> Result<Running, Failure> {
    let report = stage.scratch.path().join("flood.out");
    let out = fs::File::create(&report).map_err(Failure::file(&report))?;
    let myself = std::env::current_exe().map_err(Failure::file("/proc/self/exe"))?;
    let mut command = stage.rig.client.command("taskset");
    command.args(["-c", CLIENT_CPU]).arg(myself).args(["bench", "flood"]);
    command.args(["--from", &CLIENT.to_string(), "--to", &format!("{SERVER}:80")]);
    command.args(["--seconds", &seconds.to_string()]).stdout(out);
    Ok(Running::start(&mut command)?)
}

/// What was seen while the preferred client ran.
struct Both {
    preferred: Seen,
    standard_rps: f64,
    standard_failed: u64,
    flood_pps: Option<f64>,
    cpu: CpuShares,
}

/// Counters at one end of a phase.
struct Moment {
    at: Instant,
    /// Connections that the client host has ever opened.
    opened: u64,
    server: Ticks,
    client: Ticks,
}

impl Moment {
    /// Reads the counters; those of the client host through a program that runs there.
    fn now(on_client: Option<&Clients>) -> Self {
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

    fn cpu_until(&self, end: &Self) -> CpuShares {
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

/// A bar on a terminal, a line for each step elsewhere.
struct Progress {
    bar: ProgressBar,
    lines: bool,
}

impl Progress {
    fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len}  {elapsed}, {eta} to go  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, lines: !std::io::stderr().is_terminal() }
    }

    fn says(&self, message: String) {
        if self.lines {
            eprintln!("{message}");
        }
        self.bar.set_message(message);
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.iter().any(|folder| folder.join(program).is_file())
}
