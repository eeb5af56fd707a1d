//! The systems that are compared, and how each serves on a stage.

use super::super::cpus::SERVER_CPU;
use super::super::ends::Service;
use super::super::silkd::{self, Experiment, Reception, Setup};
use super::super::stage::{Queues, Stage};
use super::super::system::Serving;
use super::super::{Failure, napi, programs};
use super::link;
use clap::ValueEnum;
use silk_testkit::netns::{INTERFACE, Running};

/// One of the compared systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux's own stack; received packets are steered to the server's CPU (RPS).
    Linux,
    /// The same, and the peer cuts its segments before it sends them, as it does when there is XDP.
    LinuxNoTso,
    /// The same packets, received as silk receives: a threaded NAPI on the server's CPU, with GRO.
    LinuxNapi,
    /// silk, one class for everybody.
    Silk,
    /// The same with the largest rings there are, which is about what Linux lets a connection have.
    SilkWide,
    /// silk at the ingress of traffic control (`mode = "ingress"`), so that large messages arrive whole; steered by RPS.
    /// A receive ring that holds several of them.
    SilkSteered,
    /// The same with the largest rings.
    SilkSteeredWide,
    /// silk with extended paths; the client is a preferred one, and others may open only so many connections.
    SilkPreferred,
    /// The same, received as [`Self::SilkSteered`] does.
    SilkSteeredPreferred,
    /// [`Self::SilkPreferred`] with a receive queue of its own for the preferred client.
    SilkQueuesPreferred,
    /// [`Self::SilkPreferred`] without that limit and without SYN cookies.
    SilkNoCookies,
    /// silk's modules in this process, without devices and programs.
    InProcess,
}

/// Where the programs of a row meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// The veth pair.
    Veth,
    /// The emulated link.
    Emulated,
    /// The veth pair, with so many connections that their rings have to be small.
    Crowded,
}

/// What a class may open in a second that is not the preferred one: several times what the server serves.
const FEW: &str = "[class.limits]\nopenings = 20000\n";

impl System {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::LinuxNoTso => "linux-no-tso",
            Self::LinuxNapi => "linux-napi",
            Self::Silk => "silk",
            Self::SilkWide => "silk-wide",
            Self::SilkSteered => "silk-steered",
            Self::SilkSteeredWide => "silk-steered-wide",
            Self::SilkPreferred => "silk-preferred",
            Self::SilkSteeredPreferred => "silk-steered-preferred",
            Self::SilkQueuesPreferred => "silk-queues-preferred",
            Self::SilkNoCookies => "silk-no-cookies",
            Self::InProcess => "silk-in-process",
        }
    }

    /// Whether its clients come from the preferred address.
    pub fn is_preferred(self) -> bool {
        matches!(
            self,
            Self::SilkPreferred
                | Self::SilkSteeredPreferred
                | Self::SilkQueuesPreferred
                | Self::SilkNoCookies
        )
    }

    /// The receive queues that it has.
    pub fn queues(self) -> Queues {
        if self == Self::SilkQueuesPreferred { Queues::ByClass } else { Queues::One }
    }

    /// Prepares the hosts, and starts the daemon where there is one.
    pub fn prepare(self, stage: &Stage, cable: Cable) -> Result<Serving, Failure> {
        let mut serving = Serving::nothing();
        match self {
            Self::Linux | Self::InProcess => {}
            Self::LinuxNoTso => {
                stage.rig.client.run("ethtool", ["-K", INTERFACE, "tso", "off"])?;
            }
            Self::LinuxNapi => napi::receive_in_thread(stage)?,
            Self::Silk
            | Self::SilkWide
            | Self::SilkSteered
            | Self::SilkSteeredWide
            | Self::SilkPreferred
            | Self::SilkSteeredPreferred
            | Self::SilkQueuesPreferred
            | Self::SilkNoCookies => {
                serving.add(silkd::start(stage, &self.setup(cable))?);
            }
        }
        Ok(serving)
    }

    fn setup(self, cable: Cable) -> Setup {
        let experiment = if self.is_preferred() { Experiment::Extended } else { Experiment::Equal };
        let own = match self {
            Self::SilkPreferred | Self::SilkSteeredPreferred | Self::SilkQueuesPreferred => FEW,
            Self::SilkNoCookies => "[tcp]\nsyn_cookies = false\n",
            Self::SilkWide | Self::SilkSteeredWide => LARGE,
            Self::SilkSteered => SEVERAL,
            _ => "",
        };
        let steered = matches!(self, Self::SilkSteered | Self::SilkSteeredWide | Self::SilkSteeredPreferred);
        let reception = if steered { Reception::Marked } else { Reception::Prompt };
        let usual = Setup { reception, ..Setup::usual(experiment) };
        match cable {
            Cable::Veth => Setup { more: own.to_owned(), ..usual },
            Cable::Crowded => Setup { more: SMALL.to_owned(), ..usual },
            Cable::Emulated => {
                let (interface, reception) = (link::INTERFACE, Reception::Inherited);
                Setup { interface, reception, ..usual }
            }
        }
    }

    /// Starts a server's end on the server's CPU, over this system.
    pub fn serve(self, stage: &Stage, service: Service) -> Result<Running, Failure> {
        let service = service.to_possible_value().map(|value| value.get_name().to_owned());
        let end = ["serve".to_owned(), service.unwrap_or_default(), "--at".into(), format!("0.0.0.0:{PORT}")];
        stage.scratch.start(&mut self.end_on_server(stage, &end), "serve.txt")
    }

    /// A command that is one of the ends, on the server's CPU, over this system.
    pub fn end_on_server(self, stage: &Stage, end: &[String]) -> std::process::Command {
        let mut command = stage.rig.server.command("taskset");
        command.args(["-c", SERVER_CPU]).args(self.runner(stage));
        command.arg(programs::beside("silk")).args(["bench", "end"]).args(end);
        command
    }

    /// What stands before the command line of a program that is to serve over this system.
    pub fn runner(self, stage: &Stage) -> Vec<String> {
        if self.is_silk() { silkd::runner(stage) } else { Vec::new() }
    }

    fn is_silk(self) -> bool {
        !matches!(self, Self::Linux | Self::LinuxNoTso | Self::LinuxNapi | Self::InProcess)
    }
}

/// The largest rings there are.
const LARGE: &str = "[memory]\nsend_ring = \"4M\"\nreceive_ring = \"4M\"\n";
/// A receive ring for several messages of 64 KB.
const SEVERAL: &str = "[memory]\nreceive_ring = \"512K\"\n";
/// The least rings there are.
const SMALL: &str = "[memory]\nsend_ring = \"4K\"\nreceive_ring = \"4K\"\n";

/// The server's port.
pub const PORT: u16 = 7000;
