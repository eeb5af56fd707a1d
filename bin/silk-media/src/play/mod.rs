//! `silk play`: shows video. A local file is decoded straight to a screen, at its rate; what comes
//! from the network comes over paths.

mod control;
mod describe;
mod file;
mod json;
mod last;
mod network;
mod report;
mod screens;

pub use control::SOCKET;
pub use describe::{described, misses};

use crate::screen::{Headless, Pngs, ScreenError, Sink, Window, Y4m};
use crate::stop;
use crate::trouble::Trouble;
use report::Report;
use silk_appliance::DeviceKind;
use silk_media::DEFAULT_OUTPUT;
use silk_player::{Rule, Schedule};
use silk_wire::mflow;
use std::env;
use std::io::{Write, stdout};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to play and where to.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Play a local file: any that libavformat opens, with MPEG-1, MPEG-2 or H.264 in it
    #[arg(long, value_name = "CLIP", conflicts_with_all = ["from", "rtp", "listen", "graph", "interface"])]
    file: Option<PathBuf>,
    /// Play what this source sends, and nobody else
    #[arg(long, value_name = "HOST:PORT")]
    from: Option<SocketAddr>,
    /// Play what arrives by RTP at this port (MPEG by RFC 2250, H.264 by RFC 6184)
    #[arg(long, value_name = "PORT", conflicts_with = "listen", value_parser = clap::value_parser!(u16).range(1..))]
    rtp: Option<u16>,
    /// Play what a session description (SDP) describes, sent by RTP to its port
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "rtp", "listen", "appliance", "streams"])]
    sdp: Option<PathBuf>,
    /// Play what arrives by MFLOW at this port
    #[arg(long, value_name = "PORT", default_value_t = mflow::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    listen: u16,
    /// The graph of modules, instead of the usual one
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Wait for commands (SHELL) instead of playing one stream: `silk shell` gives them
    #[arg(long)]
    appliance: bool,
    /// Pictures in a second, instead of the stream's own rate
    #[arg(long, value_name = "N", value_parser = rate)]
    fps: Option<f64>,
    /// Show every N-th picture only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    every: u32,
    /// Show no B pictures, which no other picture needs
    #[arg(long, conflicts_with = "file")]
    without_b: bool,
    /// Play what fits where a stream does not fit whole: fewer pictures, or a lower rate
    #[arg(long, conflicts_with = "file")]
    accept: bool,
    /// As fast as pictures can be decoded
    #[arg(long, conflicts_with = "fps")]
    fast: bool,
    /// Pictures that may wait for the display; half of them are its head start
    #[arg(long, value_name = "N", default_value_t = DEFAULT_OUTPUT)]
    queue: usize,
    /// So many streams, each at the second next port
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
    /// Without deadlines: only with what others leave of the processor
    #[arg(long)]
    background: bool,
    /// Of the processor, what all streams may need together; one that does not fit is ended
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = percent)]
    share: f64,
    /// Memory for all streams; half of the machine's where nothing is said
    #[arg(long, value_name = "MIB")]
    memory: Option<u32>,
    /// How streams share the processor
    #[arg(long, value_name = "HOW", default_value = "deadlines")]
    schedule: ScheduleName,
    /// Which queue a stream's deadlines come from
    #[arg(long, value_name = "WHICH", default_value = "bottleneck")]
    deadline: RuleName,
    /// Sum UDP's checksum while the data are first read (integrated layer processing), not on its own
    #[arg(long)]
    ilp: bool,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// The figures of each stream as JSON, at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where `silk why` asks; /run/silk/play.sock where that is free
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    screen: ScreenOptions,
}

/// The network that streams come from.
#[derive(clap::Args, Debug)]
struct NetworkArguments {
    /// The interface they arrive at; the only one but `lo` where there is one
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// How it is opened: with XDP, sharing its address with Linux, or with an address of its own
    #[arg(long, value_name = "KIND", default_value = "xdp")]
    device: DeviceName,
    /// The player's own address, for `packet` and `tap`
    #[arg(long, value_name = "ADDRESS/PREFIX", value_parser = network_address)]
    address: Option<(IpAddr, u8)>,
    /// The router, for `packet` and `tap`
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<IpAddr>,
    /// Wait for streams over IPv6, where there is an address of IPv4 too
    #[arg(long)]
    ipv6: bool,
    /// Microseconds that packets may wait to be taken together
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    nap: u64,
    /// Packets of the receive ring, a power of two
    #[arg(long, value_name = "N", default_value_t = 4096)]
    ring: u32,
    /// Have the receive work done on the player's own CPUs, before the player: it pays for all it receives
    /// (`xdp`)
    ///
    /// By threads of the kernel; on a veth Linux steers the packets there instead. How much may wait for the
    /// CPU then is the machine's to say: beside floods set net.core.netdev_max_backlog to 20000 and
    /// net.core.flow_limit_cpu_bitmap to all CPUs.
    #[arg(long)]
    receive_here: bool,
    /// Packets in a second that are left to Linux where no stream owns them; what is more is dropped at
    /// once, so that a flood costs little (`xdp`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    linux_packets: Option<u64>,
}

impl NetworkArguments {
    /// What only one kind of device has is asked of no other.
    fn check(&self) -> Result<(), Trouble> {
        let asked =
            [("--receive-here", self.receive_here), ("--linux-packets", self.linux_packets.is_some())];
        match asked.into_iter().find(|(_, asked)| *asked && !matches!(self.device, DeviceName::Xdp)) {
            Some((flag, _)) => Err(Trouble::Usage(format!("only `--device xdp` has {flag}: leave it out"))),
            None => Ok(()),
        }
    }

    fn interface(&self) -> Result<String, Trouble> {
        if let Some(name) = &self.interface {
            return Ok(name.clone());
        }
        let names = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let names: Vec<String> = names.by_ref().filter(|name| name != "lo").collect();
        match names.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Trouble::Usage("there is no interface but `lo`: name one (--interface)".into())),
            several => Err(Trouble::Usage(format!(
                "several interfaces: name one (--interface): {}",
                several.join(", ")
            ))),
        }
    }
}

/// Where and how urgently the player runs.
#[derive(clap::Args, Debug)]
struct Place {
    /// Keep to this CPU
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Run at this real-time priority (1 to 97), before all ordinary programs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=97))]
    priority: Option<u8>,
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident for $what:ty { $($(#[$item:meta])* $variant:ident => $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, clap::ValueEnum)]
        enum $name {
            $($(#[$item])* $variant,)*
        }

        impl From<$name> for $what {
            fn from(name: $name) -> Self {
                match name {
                    $($name::$variant => $value,)*
                }
            }
        }
    };
}

named! {
    /// [`Schedule`] on the command line.
    ScheduleName for Schedule {
        /// The earliest deadline first
        Deadlines => Self::Deadlines,
        /// All alike, in turn
        InTurn => Self::InTurn,
    }
}

named! {
    /// [`Rule`] on the command line.
    RuleName for Rule {
        /// The output queue's
        Output => Self::Output,
        /// The earlier of both
        Both => Self::Both,
        /// The one that is the bottleneck
        Bottleneck => Self::Bottleneck,
    }
}

named! {
    /// [`DeviceKind`] on the command line.
    DeviceName for DeviceKind {
        /// AF_XDP
        Xdp => Self::Xdp,
        /// AF_PACKET
        Packet => Self::Packet,
        /// A tap interface
        Tap => Self::Tap,
    }
}

/// Reads pictures in a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.001..=1000.0).contains(&rate) { Ok(rate) } else { Err("between 0.001 and 1000".into()) }
}

/// Reads a part of the processor; more than all of it lets everything in.
fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.01..=100_000.0).contains(&percent) { Ok(percent) } else { Err("between 0.01 and 100000".into()) }
}

fn network_address(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("`{text}` is no address with a prefix, like 10.0.0.9/24 or 2001:db8::9/64");
    let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv6() { 128 } else { 32 };
    let prefix: u8 = prefix.parse().ok().filter(|prefix| *prefix <= most).ok_or_else(wrong)?;
    Ok((address, prefix))
}

/// Where pictures are shown. One of them; a window where there is a screen, else nothing.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(multiple = false)]
pub struct ScreenOptions {
    /// In a window (closing it, Escape or Ctrl-C ends the command)
    #[arg(long)]
    window: bool,
    /// Only these streams in windows, beside each other; the others are counted
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    window_of: Vec<String>,
    /// Nowhere: only count
    #[arg(long)]
    headless: bool,
    /// Nowhere: count, and sum what the pictures hold, to compare two ways of decoding
    #[arg(long)]
    sum: bool,
    /// Into a file of raw pictures (YUV4MPEG2); with several streams a file for each
    ///
    /// Where there may be several (`--streams`, `--appliance`), the stream `red` goes beside FILE: for `out.y4m` to
    /// `out-red.y4m`, or to `out-red-2.y4m` and so on where that is there already. The FILE of a single stream is
    /// written over.
    #[arg(long, value_name = "FILE")]
    y4m: Option<PathBuf>,
    /// Into PNG files in a folder; with several streams into a folder for each in it
    ///
    /// Where there may be several (`--streams`, `--appliance`), the stream `red` goes to the folder `red` in FOLDER,
    /// or to `red-2` and so on where that is there already. A single stream goes to FOLDER itself, and files of
    /// the same names are written over.
    #[arg(long, value_name = "FOLDER")]
    png: Option<PathBuf>,
}

impl ScreenOptions {
    /// Whether pictures are to be written over `file`.
    fn writes_over(&self, file: &Path) -> bool {
        let which = |file: &Path| std::fs::metadata(file).map(|data| (data.dev(), data.ino())).ok();
        self.y4m.as_deref().is_some_and(|written| which(written).is_some_and(|it| Some(it) == which(file)))
    }

    /// Begins what takes long for the screens that may be asked for. What fails is told when one is.
    pub fn prepare(&self) {
        let elsewhere = self.headless || self.sum || self.y4m.is_some() || self.png.is_some();
        if self.window || !self.window_of.is_empty() || (!elsewhere && has_screen()) {
            let _ = Window::prepare();
        }
    }

    /// Opens the screen that was asked for, of a stream that has it to itself.
    ///
    /// # Errors
    /// Where it cannot be opened.
    fn open(&self, title: &str, rate: (u32, u32)) -> Result<Box<dyn Sink>, ScreenError> {
        Ok(match self {
            Self { y4m: Some(file), .. } => Box::new(Y4m::create(file, rate)?),
            Self { png: Some(folder), .. } => Box::new(Pngs::create(folder)?),
            Self { sum: true, .. } => Box::new(Headless::summing()),
            Self { window_of, .. } if !window_of.is_empty() => {
                match window_of.iter().position(|name| name == title) {
                    Some(number) => Box::new(Window::open(title, Some(number))?),
                    None => Box::new(Headless::default()),
                }
            }
            Self { window: true, .. } => Box::new(Window::open(title, None)?),
            Self { headless: false, .. } if has_screen() => Box::new(Window::open(title, None)?),
            _ => Box::new(Headless::default()),
        })
    }

    /// Opens the screen that was asked for, of one of several streams.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn open_one_of_several(&self, name: &str, rate: (u32, u32)) -> Result<Box<dyn Sink>, ScreenError> {
        Ok(match self {
            Self { y4m: Some(file), .. } => Box::new(Y4m::create_for(file, name, rate)?),
            Self { png: Some(folder), .. } => Box::new(Pngs::create_for(folder, name)?),
            _ => self.open(name, rate)?,
        })
    }
}

/// Whether the environment names a screen.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].map(|name| env::var_os(name).is_some()).contains(&true)
}

/// Plays to the end, or until the window is closed or the program interrupted.
pub fn run(options: &Options) -> Result<ExitCode, Trouble> {
    let stop = stop::interrupted()?;
    let played = match &options.file {
        Some(clip) => {
            let report = file::play(clip, options, &stop)?;
            print(&report)?;
            report.shown > 0
        }
        None => {
            let played = network::play(options, &stop)?;
            if let Some(file) = &options.json {
                json::write(file, &played)?;
            }
            let text = network::report(&played);
            write!(stdout(), "{text}")
                .map_err(|error| Trouble::Unwritable("the report".to_owned(), error))?;
            let all = || played.iter().map(|played| &played.figures);
            all().any(|figures| figures.shown.shown > 0) && !all().any(|figures| figures.refused)
        }
    };
    Ok(if played { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report) -> Result<(), Trouble> {
    writeln!(stdout(), "{report}").map_err(|error| Trouble::Unwritable("the report".to_owned(), error))
}

/// The title of a window: what is played, without its folder.
fn title(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
