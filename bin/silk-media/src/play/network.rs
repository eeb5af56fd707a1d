//! Playing what comes from the network: an appliance of its own on an interface, a path from the
//! device to the display for each stream (Scout §4).

use super::control::{Control, SOCKET};
use super::screens::Theatre;
use super::{Options, Place, described};
use crate::screen::Shown;
use crate::trouble::Trouble;
use silk_appliance::{Machine, Network, NetworkOptions, Unbuildable};
use silk_media::{Coding, Playing, Rate, Wish};
use silk_path::{Endpoint, PathId};
use silk_player::{Carrier, Figures, GRAPH, Order, Player, PlayerOptions, rules};
use std::io::{Write, stderr};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most paths of a player.
const PATHS: u32 = 256;
/// Packets that may wait for a stream over MFLOW, to begin with.
const MFLOW_QUEUE: u16 = 64;
/// Packets that may wait for a stream over RTP, whose source does not ask.
const RTP_QUEUE: u16 = 512;

/// Plays until every stream is over, its window closed, or `stop` is set. The figures of each.
pub(super) fn play(options: &Options, stop: &AtomicBool) -> Result<Vec<Played>, Trouble> {
    place(&options.place);
    options.screen.prepare();
    let theatre = Theatre::new(options.screen.clone());
    let mut session = Session::open(options, &theatre)?;
    session.begin(options)?;
    let end = options.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        session.machine.work();
        session.obey();
        session.player.tend(&mut session.machine.appliance);
        session.finish_what_is_over()?;
        if !options.appliance && session.player.streams().next().is_none() {
            break;
        }
        session.sleep();
    }
    session.end()
}

/// A stream that is over.
pub(super) struct Played {
    /// Its last figures.
    pub figures: Figures,
    /// What its screen did with its pictures.
    pub screen: Option<Shown>,
}

struct Session {
    machine: Machine,
    player: Player,
    theatre: Theatre,
    control: Option<Control>,
    ended: Vec<Played>,
}

impl Session {
    fn open(options: &Options, theatre: &Theatre) -> Result<Self, Trouble> {
        let network = Network::open(&NetworkOptions {
            kind: options.network.device.into(),
            interface: options.network.interface()?,
            address: options.network.address,
            gateway: options.network.gateway,
            ring: options.network.ring,
        });
        let text = options.graph.as_ref().map(|file| {
            std::fs::read_to_string(file)
                .map_err(|error| Trouble::Unreadable(file.display().to_string(), error))
        });
        let (name, text) = match (&options.graph, text.transpose()?) {
            (Some(file), Some(text)) => (file.display().to_string(), text),
            _ => ("video.toml".to_owned(), GRAPH.to_owned()),
        };
        let library = theatre.clone();
        let machine = Machine::on(
            network.map_err(Trouble::Program)?,
            (&name, &text),
            |setup| silk_media::catalogue(silk_modules::catalogue(setup), library),
            silk_player::Schedule::from(options.schedule).policy(PATHS),
            rules(),
        );
        let player = Player::new(PlayerOptions { rule: options.deadline.into(), ..PlayerOptions::default() });
        let control = match &options.control {
            Some(path) => Some(Control::open(path)?),
            // Where nobody asked for it, a player that cannot be asked plays all the same.
            None => Control::open(Path::new(SOCKET)).ok(),
        };
        let mut machine = machine.map_err(|why| match why {
            Unbuildable::Graph(why) => Trouble::Usage(why),
            Unbuildable::Machine(why) => Trouble::Program(why),
        })?;
        machine.real_time = options.place.priority.is_some();
        machine.nap = Duration::from_micros(options.network.nap);
        Ok(Self { machine, player, theatre: theatre.clone(), control, ended: Vec::new() })
    }

    /// Begins the streams that the command line names.
    fn begin(&mut self, options: &Options) -> Result<(), Trouble> {
        if options.appliance {
            let shell = self.player.open_shell(&mut self.machine.appliance);
            shell.map_err(|refusal| Trouble::Program(format!("no commands can be taken: {refusal}")))?;
            let _ = writeln!(stderr(), "silk: waits for commands");
            return Ok(());
        }
        for number in 0..options.streams {
            let order = order(options, number);
            self.theatre.entitle(&order.name);
            if let Err(refusal) = self.player.begin(&mut self.machine.appliance, &order) {
                let why = self.theatre.failure().map(Trouble::Screen);
                return Err(why.unwrap_or_else(|| Trouble::Program(format!("{}: {refusal}", order.name))));
            }
            let _ = writeln!(stderr(), "silk: {} waits for packets at {}", order.name, order.local);
        }
        Ok(())
    }

    fn sleep(&mut self) {
        let fds: Vec<_> = self.control.iter().map(|control| control.as_fd()).collect();
        let readable = self.machine.sleep(&fds);
        if readable.first() == Some(&true)
            && let Some(control) = &self.control
        {
            control.answer(&self.player, &self.machine.appliance);
        }
    }

    /// Does what was commanded from the network.
    fn obey(&mut self) {
        let theatre = self.theatre.clone();
        self.player.obey(&mut self.machine.appliance, |title| theatre.entitle(title));
    }

    fn finish_what_is_over(&mut self) -> Result<(), Trouble> {
        let mut over = self.player.over(&mut self.machine.appliance);
        over.extend(self.theatre.closed());
        over.append(&mut self.player.stopped);
        over.into_iter().try_for_each(|path| self.finish(path))
    }

    fn finish(&mut self, path: PathId) -> Result<(), Trouble> {
        let figures = self.player.end(&mut self.machine.appliance, path);
        let screen = self.theatre.end(path).transpose()?;
        self.ended.extend(figures.map(|figures| Played { figures, screen }));
        Ok(())
    }

    fn end(mut self) -> Result<Vec<Played>, Trouble> {
        let left: Vec<PathId> = self.player.streams().map(|(path, _)| path).collect();
        left.into_iter().try_for_each(|path| self.finish(path))?;
        Ok(self.ended)
    }
}

/// The order of the `number`-th stream: each has the next port.
fn order(options: &Options, number: u16) -> Order {
    let (carrier, port) = match options.rtp {
        Some(port) => (Carrier::Rtp, port),
        None => (Carrier::Mflow, options.listen),
    };
    let any = Endpoint::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port + number * 2);
    let millis = |fps: f64| Rate::from_millis((fps * 1000.0).round() as u32);
    let own = options.fps.and_then(millis);
    Order {
        name: if options.streams == 1 { "stream".into() } else { format!("stream{}", number + 1) },
        carrier,
        local: any,
        remote: options.from.map(Endpoint::from),
        wish: Wish {
            playing: match own {
                _ if options.fast => Playing::Free,
                Some(rate) => Playing::At(rate),
                None => Playing::Own,
            },
            every: options.every,
            queue: options.queue,
            coding: if options.h264 { Coding::H264 } else { Coding::Mpeg },
            ticks: options.rtp.is_some(),
            own: Rate::USUAL,
        },
        demand: None,
        input_queue: if carrier == Carrier::Rtp { RTP_QUEUE } else { MFLOW_QUEUE },
        realtime: !options.background,
        accept_less: false,
    }
}

/// Puts this thread where the command line says. What is refused is said, and done without.
fn place(place: &Place) {
    if let Some(cpu) = place.cpu
        && let Err(error) = crate::place::pin(cpu)
    {
        let _ = writeln!(stderr(), "silk: cannot keep to CPU {cpu}: {error}");
    }
    if let Some(priority) = place.priority
        && let Err(error) = crate::place::be_real_time(priority)
    {
        let _ = writeln!(stderr(), "silk: cannot have the real-time priority {priority}: {error}");
    }
}

/// A line for each stream.
pub(super) fn report(played: &[Played]) -> String {
    played.iter().map(|played| described(&played.figures) + "\n").collect()
}
