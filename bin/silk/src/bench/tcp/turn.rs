//! One system's turn in one row: hosts of its own, the server's end over that system, the client's end,
//! and what it saw.

use super::super::counters::Moment;
use super::super::cpus::CLIENT_CPU;
use super::super::cpus::SERVER_CPU;
use super::super::ends::{Figure, Seen, Service, Unit};
use super::super::load::CLIENT_PRIORITY;
use super::super::rights::Rights;
use super::super::scratch::Scratch;
use super::super::stage::Stage;
use super::super::system::Serving;
use super::super::watch::Watch;
use super::super::{Failure, programs};
use super::kept::{self, Side};
use super::link::{self, Link};
use super::measurement::Measurement;
use super::row::{Case, Row};
use super::system::{Cable, PORT, System};
use silk_testkit::netns::{CLIENT, INTERFACE, INTERFACE_B, PREFERRED, Running, SERVER, signal};
use std::fmt;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Milliseconds before anything is measured.
const RAMP: u64 = 500;
/// How much longer than anything is measured a flood may last: it is told when it is enough, and ends by itself where nobody is left to.
const FLOOD: Duration = Duration::from_secs(600);
/// The Ethernet address of nobody here.
const NOBODY: &str = "02:00:5e:00:53:01";
/// What a figure's name says behind their number, in millions.
pub const MILLIONS: &str = " million sent";
/// And of the last, which has none.
pub const ALL_SENT: &str = "all that can be sent";
/// What a figure's name says behind the network where the server receives.
const RECEIVING: &str = ", receiving";
/// How much longer than it measures an end may take: until its server has started.
const STARTING: Duration = Duration::from_secs(10);

/// How long a crowd may take until all are there.
const CROWDING: Duration = Duration::from_secs(60);

/// One system's turn.
pub struct Turn {
    /// The row.
    pub row: Row,
    /// Which of its cases.
    pub case: Case,
    /// The system.
    pub system: System,
    /// The round, from 1.
    pub round: u32,
    /// How long to measure, in milliseconds.
    pub milliseconds: u64,
    /// What chance comes from in this run.
    pub seed: u64,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}, {}", self.round, self.row.title())?;
        match self.case {
            Case::Only | Case::Offered(_) => {}
            Case::Over(link) => write!(f, " ({link})")?,
            Case::Into(link) => write!(f, " ({link}{RECEIVING})")?,
            Case::Kept(clients) => write!(f, " ({clients})")?,
            Case::Opening(at_once) => write!(f, " ({})", kept::at_a_time(at_once))?,
        }
        write!(f, ", {}", self.system.name())
    }
}

/// What the client's end does: its name, whether it runs above everything else on its CPU.
struct Client {
    end: &'static str,
    urgent: bool,
    ramp: u64,
}

impl Turn {
    /// Measures, on hosts that are made for it.
    pub fn take(&self, scratch: &Scratch, watch: &Watch) -> Result<Vec<Measurement>, Failure> {
        let stage = Stage::new(scratch, watch, Rights::Root, self.system.queues())?;
        let client = |end, urgent| Client { end, urgent, ramp: RAMP };
        let seen = match self.row {
            Row::Send => self.between(&stage, Service::Give, &client("draw", false))?,
            Row::Receive => self.between(&stage, Service::Take, &client("push", false))?,
            Row::PingPong => self.between(&stage, Service::Echo, &client("ping", true))?,
            Row::Connections => self.between(&stage, Service::Close, &client("knock", false))?,
            Row::SynFlood => self.flooded(&stage)?,
            Row::Datagrams => self.datagrams(&stage)?,
            Row::Emulator => self.emulated(&stage)?,
            Row::Many if self.system == System::InProcess => self.crowd(&stage)?,
            Row::Many => self.held(&stage)?,
            Row::Kept => self.kept(&stage)?,
            Row::Opening => self.opening(&stage)?,
        };
        Ok(self.measurements(seen))
    }

    fn measurements(&self, seen: Vec<Seen>) -> Vec<Measurement> {
        let measurement = |cpu| {
            move |figure: Figure| Measurement {
                row: self.row,
                system: self.system.name().to_owned(),
                of: figure.of,
                round: self.round,
                value: figure.value,
                unit: figure.unit,
                cpu,
            }
        };
        seen.into_iter().flat_map(|seen| seen.figures.into_iter().map(measurement(seen.cpu))).collect()
    }

    /// A server, and one end of the client's.
    fn between(&self, stage: &Stage, service: Service, client: &Client) -> Result<Vec<Seen>, Failure> {
        let mut serving = self.system.prepare(stage, Cable::Veth)?;
        serving.add(self.system.serve(stage, service)?);
        let seen = self.measured(stage, client, SERVER)?;
        self.still_serves(&mut serving, stage)?;
        Ok(vec![seen])
    }

    /// A preferred client: alone, then beside a flood of SYNs to another host, which costs it what its own host has to do for the
    /// flood, and then beside one to the server.
    fn flooded(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let _bystander = stage.rig.bystander()?;
        // Answers to addresses nobody has go to the client, which drops them.
        stage.rig.server.ip(["route", "add", "default", "via", &CLIENT.to_string()])?;
        stage.rig.server.set("/proc/sys/net/ipv4/tcp_syncookies", "1")?;
        let mut serving = self.system.prepare(stage, Cable::Veth)?;
        serving.add(self.system.serve(stage, Service::Answer)?);
        let client = Client { end: "ask", urgent: true, ramp: RAMP };
        let before = self.measured(stage, &client, SERVER)?;
        let mut beside = |flood: Part| {
            stage.watch.pause(Duration::from_millis(RAMP))?;
            let seen = self.measured(stage, &client, SERVER)?;
            let flood = flood.enough(stage)?;
            self.still_serves(&mut serving, stage)?;
            Ok::<_, Failure>((seen, flood))
        };
        // Both leave in the same way, or they would not cost the client's host the same. What comes for a station that is not there is thrown
        // away before anybody looks for a route.
        let to_others = &mut self.flood_to(stage, NOBODY, INTERFACE_B, "syns");
        let (elsewhere, sent_elsewhere) = beside(Part::start(stage, "flood", to_others)?)?;
        let (during, sent) = beside(self.flood(stage, "syns", None)?)?;
        Ok(vec![
            in_phase(before, "before"),
            in_phase(elsewhere, "elsewhere"),
            in_phase(sent_elsewhere, "elsewhere"),
            in_phase(during, "during"),
            sent,
        ])
    }

    /// Datagrams to a program that counts them: so many in a second, then more, then all that can be sent.
    fn datagrams(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let Case::Offered(rates) = self.case else { return Ok(Vec::new()) };
        // They leave the client as they would a machine that is not this one: one by one, and complete.
        stage.rig.client.run("ethtool", ["-K", INTERFACE, "tx", "off", "sg", "off"])?;
        let mut serving = self.system.prepare(stage, Cable::Veth)?;
        let rates: Vec<Option<u32>> = rates.iter().copied().map(Some).chain([None]).collect();
        let seen = rates.iter().map(|rate| self.offered(stage, *rate)).collect::<Result<Vec<_>, _>>()?;
        self.still_serves(&mut serving, stage)?;
        let mut best: Vec<Seen> = Seen::best(&seen, "received").into_iter().collect();
        for (seen, rate) in seen.into_iter().zip(rates) {
            let named = |rate| format!("{:.1}{MILLIONS}", f64::from(rate) / 1e6);
            best.push(in_phase(seen, &rate.map_or_else(|| ALL_SENT.to_owned(), named)));
        }
        Ok(best)
    }

    /// What is received while so many are sent in a second, or as many as one CPU can.
    fn offered(&self, stage: &Stage, rate: Option<u32>) -> Result<Seen, Failure> {
        let at = format!("0.0.0.0:{PORT}");
        let time = self.milliseconds.to_string();
        let end = ["gather", "--at", &at, "--milliseconds", &time].map(str::to_owned);
        let mut gather = self.system.end_on_server(stage, &end);
        let gather = Part::start(stage, "gather", &mut gather)?;
        let flood = self.flood(stage, "datagrams", rate)?;
        let mut seen = gather.seen(stage, STARTING + Duration::from_millis(RAMP + self.milliseconds))?;
        // As many as were offered, or fewer, where the clients' CPU had no more time for it.
        seen.figures.extend(flood.enough(stage)?.figures);
        Ok(seen)
    }

    /// The seed of a bad network: one of its own in each round, and each way, and the same for all systems.
    fn chance(&self, link: Link) -> u64 {
        let mut hasher = DefaultHasher::new();
        let receives = matches!(self.case, Case::Into(_));
        (self.seed, self.round, link, receives).hash(&mut hasher);
        hasher.finish()
    }

    /// A flow over a bad network, from its first byte on: slow start counts.
    fn emulated(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let (link, service, end, name) = match self.case {
            Case::Over(link) => (link, Service::Give, "draw", link.to_string()),
            Case::Into(link) => (link, Service::Take, "deliver", format!("{link}{RECEIVING}")),
            _ => return Ok(Vec::new()),
        };
        let mut netem = link.lay(stage, self.chance(link))?;
        let mut serving = self.system.prepare(stage, Cable::Emulated)?;
        serving.add(self.system.serve(stage, service)?);
        let client = Client { end, urgent: false, ramp: 0 };
        let seen = self.measured(stage, &client, link::SERVER)?;
        self.still_serves(&mut serving, stage)?;
        if netem.ended().is_some() {
            return Err(Failure::Ended { system: "silk netem", log: stage.said() });
        }
        Ok(vec![over(&name, seen)])
    }

    /// A hundred thousand connections in one process on the server's CPU.
    fn crowd(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let mut command = stage.rig.server.command("taskset");
        command.args(["-c", SERVER_CPU]).arg(programs::beside("silk")).args(["bench", "end", "crowd"]);
        command.args(["--connections", "100000", "--milliseconds", &self.milliseconds.to_string()]);
        let part = Part::start(stage, "crowd", &mut command)?;
        Ok(vec![part.seen(stage, CROWDING + Duration::from_millis(2 * self.milliseconds))?])
    }

    /// As many real connections as a process may have descriptors for, with room to spare.
    fn held(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let mut serving = self.system.prepare(stage, Cable::Crowded)?;
        let daemon = serving.first();
        serving.add(self.system.serve(stage, Service::Keep)?);
        let mut command = self.client(stage, "hold", false);
        command.args(["--to", &format!("{SERVER}:{PORT}"), "--milliseconds", "500"]);
        if let Some(daemon) = daemon {
            command.args(["--daemon", &daemon.to_string()]);
        }
        let seen = Part::start(stage, "hold", &mut command)?.seen(stage, CROWDING)?;
        self.still_serves(&mut serving, stage)?;
        Ok(vec![seen])
    }

    /// Requests over connections that are kept.
    fn kept(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let Case::Kept(clients) = self.case else { return Ok(Vec::new()) };
        let mut serving = self.system.prepare(stage, Cable::Crowded)?;
        serving.add(kept::serve(stage, &Side::server(stage, &self.system.runner(stage)))?);
        let before = Moment::now(None);
        let figures = kept::ask(stage, clients, self.milliseconds);
        let cpu = before.cpu_until(&Moment::now(None));
        // Where the server is gone, that is what happened, and not that its clients were not answered.
        self.still_serves(&mut serving, stage)?;
        Ok(vec![Seen { figures: figures?, cpu }])
    }

    /// A program on the server's host opens a connection for each request, over the system.
    fn opening(&self, stage: &Stage) -> Result<Vec<Seen>, Failure> {
        let Case::Opening(at_once) = self.case else { return Ok(Vec::new()) };
        let mut serving = self.system.prepare(stage, Cable::Veth)?;
        serving.add(kept::serve(stage, &Side::client(stage))?);
        let before = Moment::now(None);
        let runner = self.system.runner(stage);
        let figures = kept::open(stage, &Side::server(stage, &runner), at_once, self.milliseconds);
        let cpu = before.cpu_until(&Moment::now(None));
        self.still_serves(&mut serving, stage)?;
        Ok(vec![Seen { figures: figures?, cpu }])
    }

    /// A command that is one end of the client's.
    fn client(&self, stage: &Stage, end: &str, urgent: bool) -> Command {
        let mut command = stage.rig.client.command("taskset");
        command.args(["-c", CLIENT_CPU]);
        if urgent && stage.realtime {
            command.args(["chrt", "-f", CLIENT_PRIORITY]);
        }
        command.arg(programs::beside("silk")).args(["bench", "end", end]);
        command
    }

    /// What one end of the client's saw.
    fn measured(&self, stage: &Stage, client: &Client, server: Ipv4Addr) -> Result<Seen, Failure> {
        let mut command = self.client(stage, client.end, client.urgent);
        command.args(["--to", &format!("{server}:{PORT}"), "--ramp", &client.ramp.to_string()]);
        command.args(["--milliseconds", &self.milliseconds.to_string()]);
        if self.row == Row::SynFlood || self.system.is_preferred() {
            command.args(["--from", &PREFERRED.to_string()]);
        }
        let part = Part::start(stage, client.end, &mut command)?;
        part.seen(stage, STARTING + Duration::from_millis(client.ramp + self.milliseconds))
    }

    fn flood(&self, stage: &Stage, kind: &str, rate: Option<u32>) -> Result<Part, Failure> {
        let mac = stage.rig.server.run("cat", [format!("/sys/class/net/{INTERFACE}/address")])?;
        let mut command = self.flood_to(stage, mac.trim(), INTERFACE, kind);
        if let Some(rate) = rate {
            command.args(["--per-second", &rate.to_string()]);
        }
        Part::start(stage, "flood", &mut command)
    }

    /// The command that floods a station through an interface of the client's.
    fn flood_to(&self, stage: &Stage, mac: &str, interface: &str, kind: &str) -> Command {
        let mut command = stage.flooder();
        command.arg(programs::beside("silk")).args(["bench", "end", "flood", kind]);
        command.args(["--to", &format!("{SERVER}:{PORT}"), "--mac", mac, "--interface", interface]);
        let longest = FLOOD + Duration::from_millis(self.milliseconds);
        command.args(["--milliseconds", &longest.as_millis().to_string()]);
        command
    }

    fn still_serves(&self, serving: &mut Serving, stage: &Stage) -> Result<(), Failure> {
        if serving.is_whole() {
            return Ok(());
        }
        Err(Failure::Ended { system: self.system.name(), log: stage.said() })
    }
}

/// An end at work, which will say what it saw.
struct Part {
    name: &'static str,
    program: Running,
    out: PathBuf,
    errors: PathBuf,
}

impl Part {
    fn start(stage: &Stage, name: &'static str, command: &mut Command) -> Result<Self, Failure> {
        let file = |kind| stage.scratch.path().join(format!("{name}.{kind}"));
        let (out, errors) = (file("json"), file("txt"));
        let create = |path: &PathBuf| File::create(path).map_err(Failure::file(path));
        let program = Running::start(command.stdout(create(&out)?).stderr(create(&errors)?))?;
        Ok(Self { name, program, out, errors })
    }

    /// Tells it that it is enough, and what it saw. It must not have ended before.
    fn enough(mut self, stage: &Stage) -> Result<Seen, Failure> {
        if self.program.ended().is_none() {
            signal(&[self.program.id()], "INT");
            return self.seen(stage, Duration::ZERO);
        }
        let said = fs::read_to_string(&self.errors).unwrap_or_default();
        Err(Failure::Program { what: format!("`silk bench end {}` ended too early: it", self.name), said })
    }

    /// What it saw, once it has ended, which takes about `time`.
    fn seen(mut self, stage: &Stage, time: Duration) -> Result<Seen, Failure> {
        let status = stage.ends(&mut self.program, time, self.name)?;
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        let seen = serde_json::from_str(&read(&self.out)).ok().filter(|_| status.success());
        let failed = || Failure::Program {
            what: format!("`silk bench end {}`", self.name),
            said: format!("{}{}", read(&self.errors), stage.said()),
        };
        seen.ok_or_else(failed)
    }
}

/// What was seen in a phase: its rate is known by the phase's name, the rest by that and their own.
fn in_phase(mut seen: Seen, phase: &str) -> Seen {
    for figure in &mut seen.figures {
        figure.of = match figure.of.as_str() {
            "rate" => phase.to_owned(),
            other => format!("{phase}: {other}"),
        };
    }
    seen
}

/// The goodput of a flow is known by its network, in 10⁶ bits per second.
fn over(name: &str, mut seen: Seen) -> Seen {
    for figure in &mut seen.figures {
        *figure = Figure::new(name, figure.value * 1e3, Unit::Megabits);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_has_a_chance_of_its_own_in_each_round_and_run_which_all_systems_meet() {
        let [near, far] = ["1/1", "100/1"].map(|link| link.parse::<Link>().unwrap());
        let chance = |case, system, round, seed| {
            let turn = Turn { row: Row::Emulator, case, system, round, milliseconds: 0, seed };
            let (Case::Over(link) | Case::Into(link)) = case else { return 0 };
            turn.chance(link)
        };
        let first = chance(Case::Over(near), System::Linux, 1, 7);
        assert_eq!(chance(Case::Over(near), System::Silk, 1, 7), first);
        let others = [
            chance(Case::Over(far), System::Linux, 1, 7),
            chance(Case::Into(near), System::Linux, 1, 7),
            chance(Case::Over(near), System::Linux, 2, 7),
            chance(Case::Over(near), System::Linux, 1, 8),
        ];
        assert!(others.iter().all(|other| *other != first && *other != 0), "{others:?}");
    }
}
