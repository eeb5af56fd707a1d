//! `silk bench web`: SILK's three experiments (§4.1 to §4.3) beside Linux and HAProxy, in one run.
//!
//! Systems are interleaved round by round, so that a slow hour of the machine is everybody's, and each begins
//! another round. For each
//! cell the standard clients are measured without the preferred one (throughput) and then, from their
//! full load on, with it (response times): an average over both would flatter every system.

use super::awake::Awake;
use super::cell::Cell;
use super::counters::Moment;
use super::machine::{Machine, busy_before};
use super::progress::Progress;
use super::results::Results;
use super::rights::{self, Rights};
use super::rounds::{self, Measured, in_turn};
use super::scratch::Place;
use super::scratch::Scratch;
use super::stage::{Queues, Stage};
use super::system::{Serving, System};
use super::task::Task;
use super::watch::Watch;
use super::{Failure, markdown, output, page, programs, ratio, table};
use clap::builder::RangedU64ValueParser;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    #[arg(long, default_value_t = 2, value_parser = in_range(1..=1024))]
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
    /// Put the tables into this Markdown document, between its two marks
    #[arg(long, value_name = "FILE")]
    into: Vec<PathBuf>,
    /// Measure nothing: show the results of an earlier run, from its JSON file; of the sizes, clients and systems that are
    /// named, or all
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    show: Option<PathBuf>,
}

fn in_range(range: std::ops::RangeInclusive<u64>) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(range)
}

/// Measures, prints the tables and writes what was asked for.
pub fn run(options: &Options) -> Result<(), Failure> {
    output::check(options.json.iter().chain(&options.html), &options.into, markdown::BEGIN)?;
    if options.show.is_none() {
        programs::find_servers()?;
    }
    let rights = Rights::here();
    if options.show.is_none() && rights == Rights::Nothing {
        output::say(&format_args!("silk bench web: {}", rights::WITHOUT_ROOT));
        return Err(rights::enter_user_namespace());
    }
    let results = match &options.show {
        Some(file) => read_json(file, options)?,
        None => measure(options, rights)?,
    };
    output::print(&format!("{}\n", table::tables(&results)))?;
    if let Some(file) = &options.json {
        output::write_json(file, &results)?;
    }
    if let Some(file) = &options.html {
        output::write(file, &page::page(&results))?;
        let _ = writeln!(stdout(), "The plots are in {}", file.display());
    }
    output::insert(&options.into, markdown::BEGIN, &markdown::tables(&results))?;
    if results.incomplete.is_empty() { Ok(()) } else { Err(Failure::Incomplete(results.incomplete)) }
}

/// The share of the CPUs that a hypervisor may have had where a cell counts at once.
const DISTURBED: f64 = 0.03;
/// How often cells are measured again in a whole run, for those that were disturbed.
const TRIES: u32 = 24;
/// Before a cell is measured again: what disturbs often lasts for some seconds.
const PAUSE: Duration = Duration::from_secs(4);

/// Requests before anything is measured, of the smallest size and of the largest.
const WARM_UP: [u64; 2] = [3000, 1000];

fn measure(options: &Options, rights: Rights) -> Result<Results, Failure> {
    let plan = Plan::new(options, rights);
    plan.check_programs()?;
    let watch = Watch::on_signals();
    let busy = busy_before("silk bench web", &watch)?;
    let awake = Awake::hold();
    let Measured { all: cells, incomplete } = plan.measure(&watch)?;
    let machine = Machine::describe(busy, awake.is_some());
    Ok(Results { machine, ratios: ratio::ratios(&cells), cells, incomplete })
}

/// Reads what is asked for of an earlier run. Its ratios are computed anew: they follow from the cells.
fn read_json(file: &Path, options: &Options) -> Result<Results, Failure> {
    let Results { machine, mut cells, incomplete, .. } = output::read_json(file, "silk bench web")?;
    cells.retain(|cell| options.asks_for(cell));
    Ok(Results { machine, ratios: ratio::ratios(&cells), cells, incomplete })
}

/// File sizes of a short run, in KB.
const BRIEF_SIZES: [u32; 3] = [1, 50, 500];
/// Standard clients of a short run.
const BRIEF_CLIENTS: [u32; 2] = [0, 96];

impl Options {
    /// Whether a cell of an earlier run is one of those that are named, or of a short run's.
    fn asks_for(&self, cell: &Cell) -> bool {
        let brief = |all: &'static [u32]| if self.quick { all } else { &[] };
        let asked = |given: &[u32], brief: &[u32], one| {
            let named = if given.is_empty() { brief } else { given };
            named.is_empty() || named.contains(&one)
        };
        let systems = if self.systems.is_empty() && self.quick { &System::QUICK } else { &self.systems[..] };
        asked(&self.sizes, brief(&BRIEF_SIZES), cell.kb)
            && asked(&self.clients, brief(&BRIEF_CLIENTS), cell.clients)
            && (systems.is_empty() || systems.iter().any(|system| system.name() == cell.system))
    }
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
    /// Systems that were asked for and cannot be shown with these rights.
    refused: Vec<System>,
    evidence: Place,
}

impl Plan {
    fn new(options: &Options, rights: Rights) -> Self {
        let or = |given: &[u32], quick: &[u32], full: &[u32]| match given {
            [] => if options.quick { quick } else { full }.to_vec(),
            given => given.to_vec(),
        };
        let systems = match &options.systems[..] {
            [] if options.quick => &System::QUICK[..],
            [] => &System::ALL,
            given => given,
        };
        // From the smallest on: what is about packets and not about bytes is measured with the first.
        let sizes: BTreeSet<u32> =
            or(&options.sizes, &BRIEF_SIZES, &[1, 16, 50, 100, 250, 500]).into_iter().collect();
        Self {
            sizes: sizes.into_iter().collect(),
            clients: or(&options.clients, &BRIEF_CLIENTS, &[0, 1, 16, 32, 64, 96]),
            rounds: options.rounds.unwrap_or(if options.quick { 2 } else { 3 }),
            systems: systems.iter().copied().filter(|system| system.is_allowed(rights)).collect(),
            seconds: options.seconds.unwrap_or(if options.quick { 1 } else { 2 }),
            maxconn: options.haproxy_maxconn,
            flood: !options.no_flood,
            rights,
            refused: options.systems.iter().copied().filter(|system| !system.is_allowed(rights)).collect(),
            evidence: Place::beside(options.json.as_deref()),
        }
    }

    fn check_programs(&self) -> Result<(), Failure> {
        let mut needed = vec!["unshare", "ip", "taskset", "chrt", "setpriv"];
        needed.extend(self.systems.iter().flat_map(|system| system.programs()));
        needed.sort_unstable();
        needed.dedup();
        needed.retain(|program| !programs::is_installed(program));
        if needed.is_empty() { Ok(()) } else { Err(Failure::Missing(needed)) }
    }

    /// Cells of one system in one round.
    fn cells(&self, system: System) -> Vec<Task> {
        let task = |kb| move |clients: &u32| Task { kb, clients: *clients, flood: false };
        // What a queue is worth is a matter of packets, not of bytes.
        let sizes = if system.queues() == Queues::One { &self.sizes[..] } else { &self.sizes[..1] };
        let mut cells: Vec<Task> = sizes.iter().flat_map(|kb| self.clients.iter().map(task(*kb))).collect();
        let preferring = matches!(system, System::SilkExtended | System::SilkQueues);
        if self.flood && (preferring || matches!(system, System::Linux | System::LinuxQueues)) {
            cells.extend(self.sizes.first().map(|kb| Task { kb: *kb, clients: 0, flood: true }));
        }
        cells
    }

    /// What every process does before anything is measured: the smallest files and the largest.
    fn warming(&self) -> Vec<(Task, u64)> {
        let clients = self.clients.iter().copied().max().filter(|clients| *clients > 0);
        let ends = self.sizes.iter().min().into_iter().chain(self.sizes.iter().max()).zip(WARM_UP);
        clients.map_or_else(Vec::new, |clients| {
            // Nobody asks for less than once.
            let each = |requests: u64| requests.max(clients.into());
            ends.map(|(kb, requests)| (Task { kb: *kb, clients, flood: false }, each(requests))).collect()
        })
    }

    /// Measures every system in every round. A system that fails is left for that round and named.
    fn measure(&self, watch: &Watch) -> Result<Measured<Cell>, Failure> {
        let scratch = Scratch::new(&self.sizes, self.evidence.clone())?;
        let in_round: usize = self.systems.iter().map(|system| self.cells(*system).len()).sum();
        let progress = Progress::new(in_round as u64 * u64::from(self.rounds));
        let tries = std::cell::Cell::new(TRIES);
        let turns = |round| {
            let turn = |system| Turn { system, round, plan: self, progress: &progress, tries: &tries };
            in_turn(&self.systems, round).map(turn).collect()
        };
        let take = |turn: &Turn<'_>, cells: &mut Vec<Cell>| turn.take(&scratch, watch, cells);
        let mut measured = rounds::take(self.rounds, watch, turns, take)?;
        progress.ends();
        let refused = self.refused.iter().map(|system| format!("{}: it needs root", system.name()));
        measured.incomplete.extend(refused);
        Ok(measured)
    }
}

/// One system's turn in one round, on hosts of its own.
struct Turn<'p> {
    system: System,
    round: u32,
    plan: &'p Plan,
    progress: &'p Progress,
    /// What is left of [`TRIES`].
    tries: &'p std::cell::Cell<u32>,
}

impl fmt::Display for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {} of {}, {}", self.round, self.plan.rounds, self.system.name())
    }
}

impl Turn<'_> {
    fn take(&self, scratch: &Scratch, watch: &Watch, cells: &mut Vec<Cell>) -> Result<(), Failure> {
        self.progress.says(format!("{self}: starting"));
        let stage = Stage::new(scratch, watch, self.plan.rights, self.system.queues())?;
        let mut serving = self.system.start(&stage, self.plan.sizes[0], self.plan.maxconn)?;
        for (task, requests) in self.plan.warming() {
            task.warm_up(&stage, requests)?;
            self.still_serves(&mut serving, &stage)?;
        }
        for task in self.plan.cells(self.system) {
            self.progress.says(format!("{self}: {task}"));
            let cell = self.undisturbed(&task, &stage)?;
            // Where a program ended on the way, whatever answered then was not this system.
            self.still_serves(&mut serving, &stage)?;
            let failed = cell.failed;
            cells.push(cell);
            if failed > 0 {
                return Err(Failure::Unanswered { task: task.to_string(), failed });
            }
            self.progress.step();
        }
        Ok(())
    }

    /// Measures a cell, again where a hypervisor gave much of the CPUs to others: whatever the system, and
    /// whatever it was like. The last try counts.
    fn undisturbed(&self, task: &Task, stage: &Stage) -> Result<Cell, Failure> {
        let mut again = 0;
        loop {
            let before = Moment::now(None);
            let cell = task.measure(stage, self.system, self.round, self.plan.seconds)?;
            let stolen = before.cpu_until(&Moment::now(None)).stolen;
            if stolen <= DISTURBED || self.tries.get() == 0 || cell.failed > 0 {
                return Ok(Cell { again, ..cell });
            }
            again += 1;
            self.tries.set(self.tries.get() - 1);
            self.progress
                .says(format!("{self}: {task}, again, for a hypervisor took {:.0} %", stolen * 100.0));
            stage.watch.pause(PAUSE)?;
        }
    }

    fn still_serves(&self, serving: &mut Serving, stage: &Stage) -> Result<(), Failure> {
        if serving.is_whole() {
            return Ok(());
        }
        Err(Failure::Ended { system: self.system.name(), log: stage.said() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn plan(arguments: &[&str], rights: Rights) -> Plan {
        let words = std::iter::once("web").chain(arguments.iter().copied());
        Plan::new(&Line::parse_from(words).options, rights)
    }

    #[test]
    fn who_asks_for_a_system_that_needs_root_is_told() {
        let arguments = ["--systems", "linux,linux-queues,silk-extended"];
        let without = plan(&arguments, Rights::UserNamespace);
        assert_eq!(without.systems, [System::Linux]);
        assert_eq!(without.refused, [System::LinuxQueues, System::SilkExtended]);
        let root = plan(&arguments, Rights::Root);
        assert_eq!((root.systems.len(), root.refused.len()), (3, 0));
        assert!(plan(&[], Rights::UserNamespace).refused.is_empty(), "nobody asked for them by name");
    }

    #[test]
    fn of_an_earlier_run_what_is_named_is_shown() {
        let cell = |system: System, kb, clients| {
            let system = system.name().to_owned();
            Cell { system, kb, clients, ..Cell::default() }
        };
        let all = [
            cell(System::Linux, 1, 96),
            cell(System::SilkExtended, 16, 96),
            cell(System::SilkBatched, 1, 0),
            cell(System::SilkExtended, 50, 16),
        ];
        let shown = |arguments: &[&str]| {
            let words = ["web", "--show", "F"].iter().chain(arguments);
            let options = Line::parse_from(words).options;
            all.each_ref().map(|cell| options.asks_for(cell))
        };
        assert_eq!(shown(&[]), [true; 4]);
        assert_eq!(shown(&["--quick"]), [true, false, false, false]);
        assert_eq!(shown(&["--quick", "--sizes", "16,50"]), [false, true, false, false]);
        assert_eq!(shown(&["--systems", "silk-batched,silk-extended"]), [false, true, true, true]);
    }

    #[test]
    fn what_is_about_packets_is_measured_with_the_smallest_file() {
        let plan = plan(&["--sizes", "50,1,50", "--clients", "0"], Rights::Root);
        assert_eq!(plan.sizes, [1, 50]);
        let sizes = |system| plan.cells(system).iter().map(|task| (task.kb, task.flood)).collect::<Vec<_>>();
        assert_eq!(sizes(System::SilkQueues), [(1, false), (1, true)]);
        assert_eq!(sizes(System::SilkExtended), [(1, false), (50, false), (1, true)]);
    }
}
