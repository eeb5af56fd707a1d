//! The systems that are compared, and how each is put on a stage.

use super::rights::Rights;
use super::silkd::{Experiment, Reception, Setup};
use super::stage::{Queues, Stage};
use super::{Failure, apache, haproxy, napi, silkd};
use clap::ValueEnum;
use silk_testkit::netns::Running;
use std::time::Duration;

/// Everything on the server's port 80.
const EVERYWHERE: &str = "0.0.0.0:80";

/// One of the compared systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum System {
    /// Apache over Linux's own stack
    Linux,
    /// The same with silk's way of receiving: a threaded NAPI instead of packet steering
    LinuxNapi,
    /// Over Linux with HAProxy in front, which knows the preferred source
    Haproxy,
    /// Apache over silk, all paths equal (SILK §4.1)
    SilkEqual,
    /// Paths with priorities, programs without (SILK §4.2)
    SilkPath,
    /// Extended paths (SILK §4.3)
    SilkExtended,
    /// The same, with Linux's packet steering instead of a threaded NAPI
    SilkGeneric,
    /// The same, received by a thread that interrupts no ordinary work
    SilkBatched,
    /// Extended paths, and a receive queue of its own for the preferred client
    SilkQueues,
    /// Apache over Linux's own stack with these queues
    LinuxQueues,
}

impl System {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 10] = [
        Self::Linux,
        Self::LinuxNapi,
        Self::Haproxy,
        Self::SilkEqual,
        Self::SilkPath,
        Self::SilkExtended,
        Self::SilkGeneric,
        Self::SilkBatched,
        Self::SilkQueues,
        Self::LinuxQueues,
    ];

    /// Those of a short run: SILK's three experiments and their two peers, and the third with a queue for each class.
    pub const QUICK: [Self; 6] =
        [Self::Linux, Self::Haproxy, Self::SilkEqual, Self::SilkPath, Self::SilkExtended, Self::SilkQueues];

    /// The name in options, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::LinuxNapi => "linux-napi",
            Self::Haproxy => "haproxy",
            Self::SilkEqual => "silk-equal",
            Self::SilkPath => "silk-path",
            Self::SilkExtended => "silk-extended",
            Self::SilkGeneric => "silk-generic",
            Self::SilkBatched => "silk-batched",
            Self::SilkQueues => "silk-queues",
            Self::LinuxQueues => "linux-queues",
        }
    }

    /// Whether it is one of silk's.
    pub fn is_silk(self) -> bool {
        !matches!(self, Self::Linux | Self::LinuxNapi | Self::LinuxQueues | Self::Haproxy)
    }

    /// The receive queues that it has.
    pub fn queues(self) -> Queues {
        match self {
            Self::SilkQueues | Self::LinuxQueues => Queues::ByClass,
            _ => Queues::One,
        }
    }

    /// Whether it can be shown with these rights.
    pub fn is_allowed(self, rights: Rights) -> bool {
        rights == Rights::Root
            || !matches!(
                self,
                Self::LinuxNapi
                    | Self::SilkPath
                    | Self::SilkExtended
                    | Self::SilkGeneric
                    | Self::SilkBatched
                    | Self::SilkQueues
                    | Self::LinuxQueues
            )
    }

    /// Programs that must be installed for it.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Haproxy => &["apache2", "ab", "haproxy"],
            Self::LinuxNapi => &["apache2", "ab", "ethtool"],
            _ => &["apache2", "ab"],
        }
    }

    /// Starts the system's programs on the stage and waits until they serve the file of `kb`.
    pub fn start(self, stage: &Stage, kb: u32, maxconn: u32) -> Result<Serving, Failure> {
        let mut serving = Serving::nothing();
        let extended = |reception| Setup { reception, ..Setup::usual(Experiment::Extended) };
        match self {
            Self::Linux | Self::LinuxQueues => serving.programs.push(apache::start(stage, EVERYWHERE, &[])?),
            Self::LinuxNapi => {
                napi::receive_in_thread(stage)?;
                serving.programs.push(apache::start(stage, EVERYWHERE, &[])?);
            }
            Self::Haproxy => {
                serving.programs.push(apache::start(stage, haproxy::BACKEND, &[])?);
                serving.programs.push(haproxy::start(stage, maxconn)?);
            }
            Self::SilkEqual => serving.on_paths(stage, &Setup::usual(Experiment::Equal))?,
            Self::SilkPath => serving.on_paths(stage, &Setup::usual(Experiment::Path))?,
            Self::SilkExtended | Self::SilkQueues => {
                serving.on_paths(stage, &Setup::usual(Experiment::Extended))?;
            }
            Self::SilkGeneric => serving.on_paths(stage, &extended(Reception::Steered))?,
            Self::SilkBatched => serving.on_paths(stage, &extended(Reception::Batched))?,
        }
        if stage.serves(kb)? {
            return Ok(serving);
        }
        Err(Failure::NotServing { system: self.name(), log: stage.said() })
    }
}

/// A system at work. Its programs end in the reverse of the order in which they began.
#[derive(Debug)]
pub struct Serving {
    programs: Vec<Running>,
}

impl Serving {
    /// Whether all of its programs still run.
    pub fn is_whole(&mut self) -> bool {
        self.programs.iter_mut().all(|program| program.ended().is_none())
    }

    /// Nothing yet.
    pub fn nothing() -> Self {
        Self { programs: Vec::new() }
    }

    /// The process of its first program.
    pub fn first(&self) -> Option<u32> {
        self.programs.first().map(Running::id)
    }

    /// One more of its programs.
    pub fn add(&mut self, program: Running) {
        self.programs.push(program);
    }

    fn on_paths(&mut self, stage: &Stage, setup: &Setup) -> Result<(), Failure> {
        self.programs.push(silkd::start(stage, setup)?);
        let runner = silkd::runner(stage);
        let runner: Vec<&str> = runner.iter().map(String::as_str).collect();
        self.programs.push(apache::start(stage, EVERYWHERE, &runner)?);
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        while let Some(program) = self.programs.pop() {
            program.stop(Duration::from_secs(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_the_results_knows_every_system() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../../bench/schema.json")).expect("it is JSON");
        let known = schema["$defs"]["system"]["enum"].as_array().expect("a list");
        assert_eq!(*known, System::ALL.map(System::name));
    }

    #[test]
    fn a_system_has_queues_by_class_where_it_says_so() {
        let by_class: Vec<_> = System::ALL
            .into_iter()
            .filter(|system| system.queues() == Queues::ByClass)
            .map(System::name)
            .collect();
        assert_eq!(by_class, ["silk-queues", "linux-queues"]);
    }
}
