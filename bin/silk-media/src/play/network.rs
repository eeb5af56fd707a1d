//! Playing what comes from the network: an appliance of its own on an interface, a path from the
//! device to the display for each stream (Scout §4).

use super::control::{Control, SOCKET};
use super::last::Last;
use super::screens::Theatre;
use super::{Options, Place, described};
use crate::screen::Shown;
use crate::sdp::{self, Described};
use crate::trouble::Trouble;
use silk_appliance::{Machine, Network, NetworkOptions, ReceiveSchedule, Unbuildable};
use silk_media::{Coding, Playing, Rate, Wish};
use silk_path::{Endpoint, PathId};
use silk_player::{Carrier, Figures, GRAPH, Order, Player, PlayerOptions, rules};
use std::io::{Write, stderr};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most paths of a player.
const PATHS: u32 = 256;
/// Packets that may wait for a stream over MFLOW, to begin with.
const MFLOW_QUEUE: u16 = 64;
/// Packets that may wait for a stream over RTP, whose source does not ask.
const RTP_QUEUE: u16 = 512;

/// The most streams that are reported, the last of them.
const REPORTED: usize = 1000;

/// How often the player looks whether it is to end, though nothing comes.
const LOOK: Duration = Duration::from_millis(100);

/// Plays until every stream is over, its window closed, or `stop` is set. The figures of each.
pub(super) fn play(options: &Options, stop: &AtomicBool) -> Result<Vec<Played>, Trouble> {
    options.network.check()?;
    let described = options.sdp.as_deref().map(sdp::read).transpose()?;
    place(&options.place);
    options.screen.prepare();
    let parameters = described.as_ref().map(|described| described.parameters.clone());
    let several = options.appliance || options.streams > 1;
    let theatre = Theatre::new(options.screen.clone(), several, parameters.unwrap_or_default());
    let mut session = Session::open(options, &theatre)?;
    session.begin(options, described.as_ref())?;
    // One that is farther than the clock reaches is none.
    let end = options.seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        session.machine.work();
        session.obey();
        session.player.tend(&mut session.machine.appliance);
        session.tell_judgements();
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
    /// Where streams arrive whose source nobody has named.
    anywhere: IpAddr,
    ended: Last<Played, REPORTED>,
}

impl Session {
    fn open(options: &Options, theatre: &Theatre) -> Result<Self, Trouble> {
        let network = Network::open(&NetworkOptions {
            kind: options.network.device.into(),
            interface: options.network.interface()?,
            address: options.network.address,
            gateway: options.network.gateway,
            ring: options.network.ring,
            receive_here: options.network.receive_here.then(|| before(options.place.priority)),
            linux_packets: options.network.linux_packets,
        });
        let network = network.map_err(Trouble::Program)?;
        let anywhere = if options.network.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { network.anywhere() };
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
            network,
            (&name, &text),
            |setup| silk_media::catalogue(silk_modules::catalogue(setup), library),
            silk_player::Schedule::from(options.schedule).policy(PATHS),
            rules(options.ilp),
        );
        let memory = options.memory.map_or_else(half_of_memory, |mebibytes| u64::from(mebibytes) << 20);
        let share = options.share / 100.0;
        let player = Player::new(PlayerOptions { rule: options.deadline.into(), share, memory });
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
        Ok(Self { machine, player, theatre: theatre.clone(), control, anywhere, ended: Last::default() })
    }

    /// Begins the streams that the command line names.
    fn begin(&mut self, options: &Options, described: Option<&Described>) -> Result<(), Trouble> {
        if options.appliance {
            let shell = self.player.open_shell(&mut self.machine.appliance);
            shell.map_err(|refusal| Trouble::Program(format!("no commands can be taken: {refusal}")))?;
            let _ = writeln!(stderr(), "silk: waits for commands");
            return Ok(());
        }
        for number in 0..options.streams {
            let order = order(options, described, (self.anywhere, number))?;
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
        let readable = self.machine.sleep(&fds, LOOK);
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

    /// Says which streams did not fit, and what became of them.
    fn tell_judgements(&mut self) {
        for judgement in self.player.judgements.drain(..) {
            let hint = if judgement.accepted {
                ""
            } else {
                " (--accept takes less, --share and --memory allow more)"
            };
            let _ = writeln!(stderr(), "silk: {judgement}{hint}");
        }
    }

    fn finish_what_is_over(&mut self) -> Result<(), Trouble> {
        for (path, figures) in std::mem::take(&mut self.player.stopped) {
            self.report(path, figures)?;
        }
        let mut over = self.player.over(&mut self.machine.appliance);
        over.extend(self.theatre.closed());
        over.into_iter().try_for_each(|path| self.finish(path))?;
        self.theatre.forget_refused();
        Ok(())
    }

    fn finish(&mut self, path: PathId) -> Result<(), Trouble> {
        let figures = self.player.end(&mut self.machine.appliance, path);
        self.report(path, figures)
    }

    /// A stream has ended: so does its screen, and its figures are kept.
    fn report(&mut self, path: PathId, figures: Option<Figures>) -> Result<(), Trouble> {
        let screen = self.theatre.end(path).transpose()?;
        if let Some(figures) = figures {
            self.ended.keep(Played { figures, screen });
        }
        Ok(())
    }

    fn end(mut self) -> Result<Vec<Played>, Trouble> {
        let left: Vec<PathId> = self.player.streams().map(|(path, _)| path).collect();
        left.into_iter().try_for_each(|path| self.finish(path))?;
        let forgotten = self.ended.forgotten();
        if forgotten > 0 {
            let _ = writeln!(stderr(), "silk: {forgotten} streams before these are not reported");
        }
        Ok(self.ended.into_vec())
    }
}

/// The order of the `number`-th stream: each has the next port.
fn order(
    options: &Options,
    described: Option<&Described>,
    (anywhere, number): (IpAddr, u16),
) -> Result<Order, Trouble> {
    let (carrier, port) = match options.rtp.or(described.map(|described| described.port)) {
        Some(port) => (Carrier::Rtp, port),
        None => (Carrier::Mflow, options.listen),
    };
    let anywhere = match options.from {
        Some(SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        Some(SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        None => anywhere,
    };
    let port = port.checked_add(number * 2);
    let port = port.ok_or_else(|| Trouble::Usage("there are not so many ports from that one on".into()))?;
    let any = Endpoint::new(anywhere, port);
    let millis = |fps: f64| Rate::from_millis((fps * 1000.0).round() as u32);
    let own = options.fps.and_then(millis);
    Ok(Order {
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
            without_b: options.without_b,
            queue: options.queue,
            coding: described.map_or(Coding::Mpeg, |described| described.coding),
            ticks: carrier == Carrier::Rtp,
            own: described.and_then(|described| described.rate).unwrap_or(Rate::USUAL),
        },
        told: None,
        input_queue: if carrier == Carrier::Rtp { RTP_QUEUE } else { MFLOW_QUEUE },
        realtime: !options.background,
        accept_less: options.accept,
    })
}

/// How threads are scheduled that come before a player of this priority.
fn before(priority: Option<u8>) -> ReceiveSchedule {
    priority
        .map_or(ReceiveSchedule::First, |priority| ReceiveSchedule::Fifo(priority.saturating_add(1).min(99)))
}

/// Half of the machine's memory, bytes (proc(5)); a GiB where that is not told.
fn half_of_memory() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    total.and_then(|kibibytes| kibibytes.parse::<u64>().ok()).map_or(1 << 30, |kibibytes| kibibytes * 512)
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
