//! The `xdp` device: packets of paths are told from Linux's at interrupt time and go straight
//! to the ring of their domain (Scout §3.4 and SILK §3.2 for why so early). One
//! AF_XDP socket for each domain on each hardware queue, all sharing one UMEM. Everything
//! that no path owns stays Linux's, which shares the interface and its addresses.
//!
//! Where [`Mode`] says so the same is decided at the ingress of traffic control instead, and what is silk's
//! arrives by packet sockets (`ingress.rs`): no frames, no rings, and tags are seen wherever Linux keeps them.
//!
//! Sending is the `packet` device's: AF_PACKET with virtio-net headers, so that a large TCP
//! message leaves as one.
//!
//! **VLANs.** No XDP program sees a tag that is not in the frame: where the hardware strips tags, turn
//! that off (`ethtool -K IF rxvlan off`), and on a veth have its neighbour write them
//! (`ethtool -K PEER txvlan off`), both where silk's frames are tagged and where tagged packets may
//! carry addresses of silk's. [`crate::vlan`] sees some of it.
//!
//! **The frames.** Every queue has frames of its own: for each domain a full receive ring and
//! as many again that the domain may hold, and some for the kernel's hands. A domain can have
//! no more than its share, whatever arrives for it, so a flood of one class never takes the
//! frames of another; it fills its own ring and is dropped there, at interrupt time, counted.

mod fill;
mod ingress;
mod long;
mod merged;
mod program;
mod receive;
mod sockets;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use crate::bpf::LinkPlan;
use crate::napi;
use crate::netlink::Interface;
use crate::packet::{PacketTransmit, Sending};
use crate::sys::{Arena, Readiness};
use crate::tables::Tables;
use crate::{Checksum, End, OpenError};
use program::{NATIVE, Program, TOO_LARGE};
use receive::{Parts, Queue, XdpReceive};
use sockets::Plan;

pub use program::{Counts, Limit, Strangers};

/// Bytes of a frame, with its headroom, where packets come as they were on the wire.
const FRAME: u64 = 2048;
/// The same where they may be longer: a page, the most there is. Fewer frames are fewer to copy.
const LARGE: u64 = 4096;
/// Ethernet's header, with a VLAN tag.
const ETHERNET: u32 = 18;
/// Frames of each queue that may be in the kernel's hands, neither in a ring nor held: what
/// one round of a driver takes.
const IN_FLIGHT: u32 = 512;

/// The highest number a hardware queue may have: no interface comes near it.
const QUEUES: u32 = 4095;

/// How the device is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many domains there are, each with its own [`End`].
    pub domains: u32,
    /// How many hardware queues to serve, from the first on; none: all the interface has.
    /// Packets that arrive on a queue that is not served are dropped when a path owns them.
    pub queues: Option<u32>,
    /// Serves these hardware queues and no others, whatever `queues` says.
    pub only: Option<Vec<u32>>,
    /// Entries of each receive ring, a power of two. Each costs 4 KB of frames, with
    /// [`Mode::Generic`] 8 KB, for every domain on every queue.
    pub ring: u32,
    /// Buckets of the flow table, four flows each; a power of two.
    pub buckets: u32,
    /// Where the program runs.
    pub mode: Mode,
    /// The VLAN of the packets, as the tables say it; 0: those without a tag. Only [`Mode::Ingress`] needs it here.
    pub vlan: u16,
    /// How to send.
    pub sending: Sending,
}

/// Where packets are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver where it can, else as `Generic`.
    #[default]
    Best,
    /// In the driver, before Linux makes anything of a packet.
    Native,
    /// In Linux's receive path: works everywhere, saves little for small packets. Large TCP
    /// messages arrive whole: those that Linux coalesces, and on a veth those of a neighbour that
    /// leaves them to the device to cut, as it does only while no program is in the driver.
    Generic,
    /// At the ingress of Linux's traffic control, where nothing has to be copied for it: what is silk's is
    /// marked, and copied once when it is received. Large messages arrive whole too. It needs Linux 6.6,
    /// and an interface that is not part of a bridge, a bond or the like.
    Ingress,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            domains: 1,
            queues: None,
            only: None,
            ring: 2048,
            buckets: 1 << 16,
            mode: Mode::Best,
            vlan: 0,
            sending: Sending::default(),
        }
    }
}

/// The opened device. Dropping it detaches the program: every packet is Linux's again, and
/// the ends receive nothing more.
pub struct Device {
    /// One for each domain, in order; taken by whoever runs them.
    pub ends: Vec<End>,
    /// The classifier's tables, all zero: until somebody writes, every packet is Linux's.
    pub tables: Tables,
    /// The interface as it was found.
    pub interface: Interface,
    /// Where its packets are told apart; never [`Mode::Best`].
    pub mode: Mode,
    /// The interfaces after the first, where it was opened on several.
    pub further: Vec<Further>,
    program: Program,
}

/// One interface more of a device that is several. The tables and the program are those of all.
pub struct Further {
    /// As [`Device::ends`].
    pub ends: Vec<End>,
    /// As [`Device::interface`].
    pub interface: Interface,
    /// As [`Device::mode`].
    pub mode: Mode,
}

impl Device {
    /// What the program did with the packets of a domain so far.
    pub fn counts(&self, domain: u32) -> Counts {
        self.program.counts(domain).unwrap_or_default()
    }

    /// How many packets the program left to Linux so far.
    pub fn passed(&self) -> u64 {
        self.program.passed().unwrap_or_default()
    }

    /// Lets in so many packets that belong to no path of their own, or, without a limit, as many as come:
    /// what a flood of them costs beyond that is the program alone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn limit(&mut self, strangers: Strangers, limit: Option<Limit>) -> Result<(), OpenError> {
        self.program.limit(strangers, limit)
    }

    /// How many of these were dropped so far, since they were more than their limit.
    pub fn not_let_in(&self, strangers: Strangers) -> u64 {
        self.program.not_let_in(strangers).unwrap_or_default()
    }

    /// Leaves every packet over the interface with this number, from 0, to Linux for good. One that goes to another
    /// namespace would take the program along, which would give its packets to sockets that the kernel has closed.
    pub fn let_go(&mut self, number: usize) {
        self.program.detach(number);
    }

    /// Runs the program on a frame as if it had arrived on the first queue, and gives what it
    /// decided, without delivering anything. For tests: it needs no traffic.
    pub fn try_frame(&self, frame: &[u8]) -> Result<Tried, OpenError> {
        self.try_frame_over(0, frame)
    }

    /// The same over the interface with this number, from 0.
    pub fn try_frame_over(&self, number: usize, frame: &[u8]) -> Result<Tried, OpenError> {
        const XDP_DROP: u32 = 1;
        const XDP_PASS: u32 = 2;
        const TC_DROP: u32 = 2;
        const TC_NEXT: u32 = u32::MAX;
        let further = number.checked_sub(1).and_then(|number| self.further.get(number));
        let (interface, mode) =
            further.map_or((&self.interface, self.mode), |further| (&further.interface, further.mode));
        if mode == Mode::Ingress {
            return Ok(match self.program.run_at_ingress(frame, interface.index)? {
                (TC_NEXT, _) => Tried::Pass,
                // What has no socket is dropped too, but with its mark.
                (TC_DROP, 0) => Tried::Discarded,
                (_, hint) => Tried::Taken { hint },
            });
        }
        Ok(match self.program.run(frame, interface.index)? {
            (XDP_PASS, _) => Tried::Pass,
            // What has no ring is dropped too, but with its word in front.
            (XDP_DROP, 0) => Tried::Discarded,
            (_, hint) => Tried::Taken { hint },
        })
    }
}

impl Device {
    /// How long the program takes for a frame, on average of `times` runs, as [`Self::try_frame`]
    /// runs it. For measurements.
    pub fn time_frame(&self, frame: &[u8], times: u32) -> Result<Duration, OpenError> {
        self.program.time(frame, times)
    }
}

/// What the program decided about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It is Linux's.
    Pass,
    /// Its path does not want it.
    Discarded,
    /// It is silk's, with this metadata word.
    Taken {
        /// The word, 0 when there is none.
        hint: u32,
    },
}

/// Opens the device on the interface `name`.
pub fn open(name: &str, options: &Options) -> Result<Device, OpenError> {
    open_all(&[(name, options.clone())])
}

/// Opens the device on several interfaces, each with options of its own, but for the domains and the flow table,
/// which are the first one's.
pub fn open_all(named: &[(&str, Options)]) -> Result<Device, OpenError> {
    let Some((_, first)) = named.first() else {
        return Err(OpenError::Options("at least one interface is to be served"));
    };
    let mut links = Vec::new();
    for (name, options) in named {
        options.check()?;
        let interface = Interface::to_serve(name)?;
        if links.iter().any(|link: &Link| link.interface.index == interface.index) {
            return Err(OpenError::Options("an interface is served once"));
        }
        let mode = if options.mode == Mode::Best { Mode::Native } else { options.mode };
        let options = Options { domains: first.domains, buckets: first.buckets, ..options.clone() };
        links.push(Link { queues: options.served(&interface), interface, options, mode });
    }
    loop {
        match open_in(&links) {
            Err(refusal) => {
                // In Linux's receive path, where the driver cannot and that was left open.
                let best = |link: &&mut Link| {
                    cannot_drive(&refusal).is_some_and(|name| link.interface.name == name)
                        && link.options.mode == Mode::Best
                        && link.mode == Mode::Native
                };
                let Some(link) = links.iter_mut().find(best) else { return Err(refusal) };
                link.mode = Mode::Generic;
            }
            opened => return opened,
        }
    }
}

/// An interface that is to be served.
struct Link {
    interface: Interface,
    options: Options,
    /// The hardware queues.
    queues: Vec<u32>,
    /// Where the program runs.
    mode: Mode,
}

impl Link {
    /// Rings that it needs: one for each domain on each queue, numbered from queue 0 on.
    fn rings(&self) -> u32 {
        if self.mode == Mode::Ingress {
            return 0;
        }
        self.queues.iter().max().map_or(0, |last| last + 1) * self.options.domains
    }
}

/// The same with the program in these places.
fn open_in(links: &[Link]) -> Result<Device, OpenError> {
    let (domains, buckets) =
        links.first().map_or((1, 4), |first| (first.options.domains, first.options.buckets));
    let mut rings = 0;
    let mut plans = Vec::new();
    for link in links {
        let (in_linux, at_ingress) = (link.mode == Mode::Generic, link.mode == Mode::Ingress);
        let (interface, own) = (link.interface.index, link.rings());
        plans.push(LinkPlan { interface, first_ring: rings, rings: own, in_linux, at_ingress });
        rings += own;
    }
    let mut program = Program::load(domains, rings, buckets, &plans)?;
    let tables = program.tables()?;
    let mut opened = Vec::new();
    for (place, (link, plan)) in links.iter().zip(&plans).enumerate() {
        let Link { interface, options, mode, .. } = link;
        let ends = match mode {
            Mode::Ingress => ingress::ends(interface, options, (place, &program))?,
            _ => {
                let blind = *mode == Mode::Generic && program.is_blind();
                sockets(link, plan.first_ring, &mut program)?.ends(interface, options, (*mode, blind))?
            }
        };
        opened.push(Further { ends, interface: interface.clone(), mode: *mode });
    }
    links.iter().try_for_each(|link| program.attach(&link.interface, link.mode))?;
    let Further { ends, interface, mode } = opened.remove(0);
    Ok(Device { ends, tables, interface, mode, further: opened, program })
}

impl Options {
    fn check(&self) -> Result<(), OpenError> {
        let fault = if !self.ring.is_power_of_two() || !(64..=1 << 16).contains(&self.ring) {
            "a receive ring has a power of two of entries, from 64 to 65536"
        } else if self.queues == Some(0) || self.only.as_ref().is_some_and(Vec::is_empty) {
            "at least one hardware queue is to be served"
        } else if self.queues.iter().chain(self.only.iter().flatten()).any(|&queue| queue > QUEUES) {
            "hardware queues are numbered from 0 to 4095"
        } else {
            return Ok(());
        };
        Err(OpenError::Options(fault))
    }
}

impl Options {
    /// The queues to serve, each once, in order.
    fn served(&self, interface: &Interface) -> Vec<u32> {
        let Some(only) = &self.only else {
            return (0..self.queues.unwrap_or_else(|| queues_of(interface))).collect();
        };
        let mut only = only.clone();
        only.sort_unstable();
        only.dedup();
        only
    }
}

/// The interface whose driver, by this refusal, takes no XDP program.
fn cannot_drive(refusal: &OpenError) -> Option<&str> {
    match refusal {
        OpenError::Unsupported { name, what: NATIVE | TOO_LARGE } | OpenError::Driver { name, .. } => {
            Some(name)
        }
        _ => None,
    }
}

impl Options {
    /// See the file's head: a ring and a share for each domain, and what is in flight; each of them of `frame` bytes.
    fn frames_per_queue(&self, frame: u64) -> Result<u32, OpenError> {
        let frames = u64::from(self.domains) * u64::from(self.ring) * 2 + u64::from(IN_FLIGHT);
        if frames.next_power_of_two() > fill::most_slots(frame) {
            return Err(OpenError::Options("so many domains need smaller receive rings"));
        }
        Ok(frames as u32)
    }
}

/// Why packets of these queues cannot be received: of one that is not there the kernel says no more than "invalid argument".
fn not_received(interface: &Interface, wanted: &[u32], error: io::Error) -> OpenError {
    let queues = queues_of(interface);
    match wanted.iter().find(|&&queue| queue >= queues) {
        Some(&queue) if error.raw_os_error() == Some(libc::EINVAL) => {
            OpenError::NoQueue { name: interface.name.clone(), queue, queues }
        }
        _ => OpenError::of_late(&interface.name, "receive by AF_XDP", error),
    }
}

/// How many receive queues are in use. Older kernels say it only in `/sys`, which may be that
/// of another namespace, and rtnetlink knows only how many there could be.
fn queues_of(interface: &Interface) -> u32 {
    let by_sys = || {
        let queues = std::fs::read_dir(format!("/sys/class/net/{}/queues", interface.name));
        let names =
            queues.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with("rx-")).count() as u32
    };
    napi::receive_queues(interface).unwrap_or_else(by_sys).clamp(1, interface.receive_queues)
}

/// The device's sockets and their frames.
struct Sockets {
    plan: Plan,
    arena: Arc<Arena>,
    /// By queue, then by domain.
    rows: Vec<Vec<Queue>>,
}

/// The sockets of all domains on all queues of an interface, known to the program, its rings from `first_ring` on.
fn sockets(link: &Link, first_ring: u32, program: &mut Program) -> Result<Sockets, OpenError> {
    let Link { interface, options, .. } = link;
    let frame = if link.mode == Mode::Generic { LARGE } else { FRAME };
    let plan = Plan {
        interface: interface.index,
        queues: link.queues.clone(),
        domains: options.domains,
        ring: options.ring,
        frames_per_queue: options.frames_per_queue(frame)?,
        frame,
    };
    let frames = plan.frames_per_queue.checked_mul(plan.queues.len() as u32);
    let frames = frames.ok_or(OpenError::Options("so many queues need smaller receive rings"))?;
    let arena = Arena::new(frames, plan.frame as usize)
        .map_err(|source| OpenError::System { what: "find memory for frames", source })?;
    let rows = plan.open(&arena).map_err(|error| not_received(interface, &plan.queues, error))?;
    for (queue, row) in plan.queues.iter().zip(&rows) {
        for (domain, socket) in (0..).zip(row) {
            program.set_socket(first_ring + queue * options.domains + domain, socket.fd.as_raw_fd())?;
        }
    }
    Ok(Sockets { plan, arena, rows })
}

impl Sockets {
    /// The ends of all domains, of a program that runs in `mode`, and is `blind` there to how packets were merged.
    fn ends(
        self,
        interface: &Interface,
        options: &Options,
        (mode, blind): (Mode, bool),
    ) -> Result<Vec<End>, OpenError> {
        let Self { plan, arena, rows } = self;
        // What Linux coalesces has a partial checksum too.
        let partial = interface.partial || mode == Mode::Generic;
        let checksum = if partial { Checksum::MaybePartial } else { Checksum::Unknown };
        let mut rows: Vec<_> = rows.into_iter().map(Vec::into_iter).collect();
        let columns = (0..plan.domains).map(|_| rows.iter_mut().filter_map(Iterator::next).collect());
        let lengths = (interface.mtu + ETHERNET, blind);
        let receive = |queues| receive(&plan, &arena, queues, lengths, checksum);
        columns
            .map(|queues| {
                Ok(End {
                    receive: Box::new(XdpReceive::new(receive(queues)?)),
                    transmit: Box::new(PacketTransmit::open(&interface.name, &options.sending)?),
                })
            })
            .collect()
    }
}

/// One domain's receive half, of its sockets on every queue.
fn receive(
    plan: &Plan,
    arena: &Arc<Arena>,
    queues: Vec<Queue>,
    (longest, blind): (u32, bool),
    checksum: Checksum,
) -> Result<Parts, OpenError> {
    let any = (queues.len() > 1).then(|| Readiness::of(queues.iter().map(|queue| queue.fd.as_fd())));
    let any = any.transpose().map_err(|source| OpenError::System { what: "watch several queues", source })?;
    Ok(Parts {
        queues,
        any,
        holder: arena.holder().ok_or(OpenError::Options("there are more domains than frames can name"))?,
        share: plan.ring as usize,
        frames_per_queue: plan.frames_per_queue,
        frame: plan.frame,
        longest,
        checksum,
        blind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_has_no_more_frames_than_its_fill_ring_may_have_slots() {
        let frames = |domains, frame| {
            let options = Options { domains, ring: 1 << 16, ..Options::default() };
            options.frames_per_queue(frame).map_err(|error| error.to_string())
        };
        let refused = Err("so many domains need smaller receive rings".to_owned());
        assert_eq!(frames(7, LARGE), Ok(7 << 17 | IN_FLIGHT));
        assert_eq!(frames(8, LARGE), refused);
        assert_eq!(frames(15, FRAME), Ok(15 << 17 | IN_FLIGHT));
        assert_eq!(frames(16, FRAME), refused);
        assert_eq!(frames(u32::MAX, FRAME), refused);
    }
}
