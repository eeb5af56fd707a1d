//! `silk netem`: the link emulator as a real cable. It makes one interface in each of two network
//! namespaces and carries what Linux sends through them, badly. Chance comes from a seed; when
//! packets come is the world's business, so two runs are alike and not the same.

mod quantity;
mod side;
mod way;

use crate::trouble::Trouble;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use side::{Opened, Side};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use silk_instant::Instant;
use silk_testkit::emulator::{Conditions, Discipline, Link, Loss};
use std::io::{self, Write, stdout};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use way::Way;

/// Bytes of a frame before its packet.
const ETHERNET: u64 = 14;

/// What the link is like: the same in both directions.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// One side: a network namespace, and the interface to make in it
    #[arg(long, value_name = "NS:IF")]
    left: Side,
    /// The other side
    #[arg(long, value_name = "NS:IF")]
    right: Side,
    /// Bits per second, like 100mbit; without it nothing waits in a queue
    #[arg(long, value_parser = quantity::rate)]
    rate: Option<NonZeroU64>,
    /// How long every packet is under way, like 10ms
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = quantity::time)]
    delay: Duration,
    /// A random part of the delay, at most this much more; it keeps the order
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = quantity::time)]
    jitter: Duration,
    /// The share of packets that is lost, like 1%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = quantity::share)]
    loss: f64,
    /// Losses come in bursts of so many packets on the average, however much time is between them
    #[arg(long, value_name = "PACKETS", value_parser = quantity::length)]
    burst: Option<f64>,
    /// The share of packets that arrives twice
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = quantity::share)]
    duplicate: f64,
    /// The share of packets in which a bit is turned over
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = quantity::share)]
    corrupt: f64,
    /// The share of packets that is held back and may be overtaken
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = quantity::share)]
    reorder: f64,
    /// How long those are held back at most
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = quantity::time)]
    reorder_by: Duration,
    /// The largest IP packet that gets through; larger ones vanish, and no router says so
    #[arg(long, value_name = "BYTES", value_parser = quantity::size)]
    mtu: Option<NonZeroU64>,
    /// How many packets may wait for the rate
    #[arg(long, value_name = "PACKETS", default_value_t = Conditions::QUEUE)]
    queue: usize,
    /// Keep the queue short with CoDel (RFC 8289)
    #[arg(long)]
    codel: bool,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Options {
    /// What does not go together.
    fn check(&self) -> Result<(), String> {
        if self.left == self.right {
            return Err(format!(
                "both sides are {}: the two interfaces of one namespace need two names",
                self.left
            ));
        }
        match self.burst {
            Some(length) if self.loss > Loss::most_in_bursts(length) => Err(format!(
                "bursts of {length} packets lose {:.1} % at most, for between two of them a packet gets through",
                Loss::most_in_bursts(length) * 100.0
            )),
            _ => Ok(()),
        }
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            longest: self.mtu.map(|mtu| mtu.saturating_add(ETHERNET)),
            duplicate: self.duplicate,
            queue: self.queue,
            discipline: if self.codel { Discipline::CoDel } else { Discipline::DropTail },
            rate: self.rate,
            loss: self.burst.map_or(Loss::random(self.loss), |length| Loss::bursts(self.loss, length)),
            corrupt: self.corrupt,
            delay: self.delay,
            jitter: self.jitter,
            reorder: self.reorder,
            reorder_by: self.reorder_by,
        }
    }
}

/// Carries packets until it is told to end, and says what became of them.
pub fn run(options: &Options) -> Result<(), Trouble> {
    options.check().map_err(Trouble::Arguments)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Trouble::Netem("netem needs root, to make interfaces in network namespaces".into()));
    }
    let signals = signals().map_err(|error| Trouble::Netem(format!("signals cannot be heard: {error}")))?;
    // Packets are to leave when they are due, not 50 µs later. Where that is refused they do.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let [left, right] =
        [&options.left, &options.right].map(|side| side.clone().open().map_err(Trouble::Netem));
    let mut cable = Cable::new(left?, right?, &options.conditions(), options.seed);
    tell(&format!("{} and {} are joined; Ctrl-C ends it", options.left, options.right));
    let ended = cable.carry_until(&signals);
    tell(&format!("left to right: {}", cable.ways[0].summary()));
    tell(&format!("right to left: {}", cable.ways[1].summary()));
    ended
}

fn tell(line: &str) {
    // Who closed standard output does not want to know.
    let _ = writeln!(stdout(), "{line}");
}

/// Readable once a signal has told this process to end.
fn signals() -> io::Result<UnixStream> {
    let (readable, raise) = UnixStream::pair()?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, raise.try_clone()?)?;
    }
    Ok(readable)
}

/// Both directions, and the interfaces at their ends.
struct Cable {
    ways: [Way; 2],
    sides: [side::Presence; 2],
    origin: std::time::Instant,
}

impl Cable {
    fn new(left: Opened, right: Opened, conditions: &Conditions, seed: u64) -> Self {
        let there = Way::new(left.end.receive, right.end.transmit, Link::new(conditions, seed));
        let back = Way::new(right.end.receive, left.end.transmit, Link::new(conditions, !seed));
        let sides = [left.presence, right.presence];
        Self { ways: [there, back], sides, origin: std::time::Instant::now() }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// Ends well by a signal, and in trouble when an interface is gone.
    fn carry_until(&mut self, signals: &UnixStream) -> Result<(), Trouble> {
        loop {
            let now = self.now();
            let more = self.ways.each_mut().map(|way| way.carry(now)).contains(&true);
            let [told, changed] =
                self.wait(signals, more).map_err(|error| Trouble::Netem(error.to_string()))?;
            if told {
                return Ok(());
            }
            if changed && let Some(side) = self.sides.iter_mut().find_map(side::Presence::gone) {
                return Err(Trouble::Netem(format!("{side} is gone: somebody deleted the interface")));
            }
        }
    }

    /// Waits for a frame, for a packet to be due, for a signal or for a change of interfaces; not at
    /// all when there is `more` to do. Answers whether a signal came and whether something changed.
    fn wait(&self, signals: &UnixStream, more: bool) -> io::Result<[bool; 2]> {
        let [there, back] = &self.ways;
        let descriptors =
            [signals.as_fd(), self.sides[0].changes(), self.sides[1].changes(), there.fd(), back.fd()];
        let mut waiting = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let due = [there.next_event(), back.next_event()].into_iter().flatten().min();
        let patience = if more { Some(Duration::ZERO) } else { due.map(|due| due - self.now()) };
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut waiting, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [told, left, right, ..] = waiting.each_ref().map(|fd| !fd.revents().is_empty());
        Ok([told, left || right])
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

    fn check(arguments: &str) -> Result<(), String> {
        Line::parse_from(arguments.split(' ')).options.check()
    }

    #[test]
    fn a_cable_has_two_ends() {
        let twice = check("netem --left a:wan --right a:wan");
        let why = "both sides are a:wan: the two interfaces of one namespace need two names";
        assert_eq!(twice, Err(why.to_owned()));
        for other in ["a:lan", "b:wan"] {
            assert_eq!(check(&format!("netem --left a:wan --right {other}")), Ok(()));
        }
    }

    #[test]
    fn bursts_cannot_lose_everything() {
        let burst = |loss| check(&format!("netem --left a:wan --right b:wan --burst 3 --loss {loss}"));
        let why = "bursts of 3 packets lose 75.0 % at most, for between two of them a packet gets through";
        assert_eq!([burst("80%"), burst("100%")], [(); 2].map(|()| Err(why.to_owned())));
        assert_eq!([burst("75%"), burst("0%")], [Ok(()), Ok(())]);
        assert_eq!(check("netem --left a:wan --right b:wan --loss 100%"), Ok(()));
    }
}
