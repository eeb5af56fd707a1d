//! Loading and attaching the classifier's programs, for drivers and for traffic control's ingress, and their
//! maps. The attachment is a bpf_link of this process: when the process ends, however it ends, the program is gone and every
//! packet is Linux's again.

use aya::Ebpf;
use aya::maps::{Array, MapData, PerCpuArray, XskMap};
use aya::programs::links::FdLink;
use aya::programs::tc::TcAttachOptions;
use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, TcAttachType, TestRun, TestRunOptions, TestRunResult, Xdp,
    XdpMode,
};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::Mode;
use crate::OpenError;
use crate::bpf::{DOMAINS, LINKS, LinkPlan, Object, missing, refused};
use crate::netlink::Interface;
use crate::tables::Tables;

/// The classifier's programs: loaded, and once attached, attached until dropped.
pub(crate) struct Program {
    object: Object,
    /// To each interface; `None`: no longer.
    links: Vec<Option<FdLink>>,
    /// It may not look how long the datagrams are that were merged.
    blind: bool,
}

/// What the program did with the packets of one domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of a flow.
    pub path: u64,
    /// Packets for a listen path.
    pub listen: u64,
    /// Fragments.
    pub fragment: u64,
    /// ARP and ICMP.
    pub control: u64,
    /// Of all these, packets dropped because the domain has no ring on their queue. (A full
    /// ring is counted by the receive half.)
    pub no_ring: u64,
    /// Of all these, packets without the metadata word, because the driver has no room for it.
    pub no_hint: u64,
    /// Packets of a flow that its path did not want: dropped at once, and in no other count.
    pub discarded: u64,
    /// Packets for a listen path from somebody who is refused: dropped at once, and in no other count.
    pub refused: u64,
}

/// Packets that belong to no path of their own, as far as they can be limited (`bpf/limits.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// TCP segments for the listeners of this domain that no connection owns: those that open one, and
    /// whatever else is sent to an open port.
    Domain(u32),
    /// Packets over the interface with this number that are Linux's, but for the next.
    Linux(u32),
    /// Packets over that interface by which neighbours find each other, where Linux answers them: ARP and
    /// neighbour discovery.
    Neighbours(u32),
}

impl Strangers {
    /// Where its limit is.
    fn number(self) -> u32 {
        match self {
            Self::Domain(domain) => domain.min(DOMAINS - 1),
            Self::Linux(link) => DOMAINS + 2 * link.min(LINKS as u32 - 1),
            Self::Neighbours(link) => DOMAINS + 1 + 2 * link.min(LINKS as u32 - 1),
        }
    }
}

/// How many of them are let in; what is more is dropped at interrupt time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets in a second, on each CPU that receives.
    pub rate: u64,
    /// Packets at once, at first and after a silence.
    pub burst: u64,
}

impl Limit {
    /// At most so many in a second: evenly, but for a tenth of them.
    pub fn per_second(rate: u64) -> Self {
        let rate = rate.clamp(1, MOST);
        Self { rate, burst: rate.div_ceil(10) }
    }
}

/// The highest rate: no interface comes near it, and the program's sums fit into their words.
const MOST: u64 = 1 << 32;

/// What a driver without XDP cannot do.
pub(super) const NATIVE: &str = "attach an XDP program";
pub(super) const TOO_LARGE: &str = "run an XDP program while its MTU or its peer's is so large";
/// The program for the ingress.
const AT_INGRESS: &str = "silk_ingress";
/// What a Linux before 6.6 cannot do.
const INGRESS: &str = "attach a program at the ingress of traffic control";

impl Program {
    /// Loads the program for `domains` domains and these interfaces with `rings` rings in all, with a flow table
    /// of `buckets` buckets, a power of two.
    pub fn load(domains: u32, rings: u32, buckets: u32, links: &[LinkPlan]) -> Result<Self, OpenError> {
        let load = |links: &[LinkPlan], blind| {
            let mut object = Object::load(domains, rings, buckets, links)?;
            if links.iter().any(|link| !link.at_ingress) {
                classifier(&mut object.ebpf)?.load().map_err(refused)?;
            }
            if links.iter().any(|link| link.at_ingress) {
                at_ingress(&mut object.ebpf)?.load().map_err(refused)?;
            }
            Ok(Self { object, links: Vec::new(), blind })
        };
        // A kernel that is locked down lets no program read its memory: datagrams that were merged are
        // then known by their length alone.
        let blind: Vec<LinkPlan> = links.iter().map(|link| LinkPlan { in_linux: false, ..*link }).collect();
        load(links, false).or_else(|error| if links == blind { Err(error) } else { load(&blind, true) })
    }

    /// Whether it does not tell of packets that are several how long each is, where it runs in Linux's receive path.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// The tables that it reads.
    pub fn tables(&self) -> Result<Tables, OpenError> {
        self.object.tables()
    }

    /// How many packets it has marked at the ingress of the interface at this place, for a domain: IPv4, IPv6.
    pub fn marked(&self, place: usize, domain: u32) -> Result<[&'static AtomicU64; 2], OpenError> {
        self.object.marked(place, domain)
    }

    /// Lets the program choose the socket for ring `ring`: of the first interface's queue × domains + domain,
    /// then the next one's.
    pub fn set_socket(&mut self, ring: u32, socket: impl std::os::fd::AsRawFd) -> Result<(), OpenError> {
        let map = self.object.ebpf.map_mut("sockets").ok_or_else(|| missing("sockets"))?;
        let mut map = XskMap::<&mut MapData>::try_from(map).map_err(refused)?;
        map.set(ring, socket, 0).map_err(refused)
    }

    /// Attaches the program of `mode`; from here on packets that paths own are silk's.
    pub fn attach(&mut self, interface: &Interface, mode: Mode) -> Result<(), OpenError> {
        let name = &interface.name;
        if mode == Mode::Ingress {
            return self.attach_at_ingress(interface);
        }
        let flags = if mode == Mode::Generic { XdpMode::Skb } else { XdpMode::Driver };
        let program = classifier(&mut self.object.ebpf)?;
        let id = program.attach_to_if_index(interface.index, flags).map_err(|error| match error {
            ProgramError::SyscallError(error) if error.io_error.raw_os_error() == Some(libc::ERANGE) => {
                OpenError::Unsupported { name: name.clone(), what: TOO_LARGE }
            }
            ProgramError::SyscallError(error) => match OpenError::of(name, NATIVE, error.io_error) {
                OpenError::System { source, .. } if mode == Mode::Native => {
                    OpenError::Driver { name: name.clone(), source }
                }
                other => other,
            },
            other => refused(other),
        })?;
        let link = program.take_link(id).map_err(refused)?;
        // Anything else than a bpf_link would outlive a daemon that is killed.
        let what = "hold an XDP program by a link that ends with the daemon";
        let link = FdLink::try_from(link);
        self.links.push(Some(link.map_err(|_| OpenError::Unsupported { name: name.clone(), what })?));
        Ok(())
    }

    /// The same at the ingress of traffic control, before all who are there.
    fn attach_at_ingress(&mut self, Interface { name, enslaved, .. }: &Interface) -> Result<(), OpenError> {
        if *enslaved {
            // What is above takes packets before sockets of single protocols see them.
            let what = "have its packets told apart at the ingress while it is part of another";
            return Err(OpenError::Unsupported { name: name.clone(), what });
        }
        // The kernel would have both, and the second would find nothing.
        let others =
            SchedClassifier::query_tcx(name, TcAttachType::Ingress).map_or(Vec::new(), |(_, all)| all);
        if others.iter().any(|other| other.name_as_str() == Some(AT_INGRESS)) {
            return Err(OpenError::Taken { name: name.clone(), what: INGRESS });
        }
        let program = at_ingress(&mut self.object.ebpf)?;
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        let id =
            program.attach_with_options(name, TcAttachType::Ingress, order).map_err(|error| match error {
                ProgramError::SyscallError(error) => {
                    match OpenError::of_late(name, INGRESS, error.io_error) {
                        OpenError::System { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                            OpenError::Unsupported { name: name.clone(), what: INGRESS }
                        }
                        other => other,
                    }
                }
                other => refused(other),
            })?;
        let link = program.take_link(id).map_err(refused)?;
        let unsupported = |_| OpenError::Unsupported { name: name.clone(), what: INGRESS };
        self.links.push(Some(FdLink::try_from(link).map_err(unsupported)?));
        Ok(())
    }

    /// Detaches it from the interface at this place, in whichever namespace that is now.
    pub fn detach(&mut self, place: usize) {
        self.links.get_mut(place).map(Option::take);
    }

    /// What it did with the packets of a domain so far.
    pub fn counts(&self, domain: u32) -> Option<Counts> {
        let map = PerCpuArray::<_, [u64; 8]>::try_from(self.object.ebpf.map("counts")?).ok()?;
        let mut sum = [0u64; 8];
        for of_cpu in map.get(&domain, 0).ok()?.iter() {
            sum.iter_mut().zip(of_cpu).for_each(|(to, from)| *to += from);
        }
        let [path, listen, fragment, control, no_ring, no_hint, discarded, refused] = sum;
        Some(Counts { path, listen, fragment, control, no_ring, no_hint, discarded, refused })
    }

    /// How many packets it left to Linux so far.
    pub fn passed(&self) -> Option<u64> {
        let map = PerCpuArray::<_, u64>::try_from(self.object.ebpf.map("passed")?).ok()?;
        Some(map.get(&0, 0).ok()?.iter().sum())
    }

    /// Lets in so many of the strangers, or, without a limit, as many as come.
    pub fn limit(&mut self, strangers: Strangers, limit: Option<Limit>) -> Result<(), OpenError> {
        let map = self.object.ebpf.map_mut("limits").ok_or_else(|| missing("limits"))?;
        let mut map = Array::<&mut MapData, [u64; 2]>::try_from(map).map_err(refused)?;
        let words = limit.map_or([0, 0], |limit| [limit.rate, limit.burst]);
        map.set(strangers.number(), words, 0).map_err(refused)
    }

    /// How many of the strangers it dropped so far, since they were more than their limit.
    pub fn not_let_in(&self, strangers: Strangers) -> Option<u64> {
        let map = PerCpuArray::<_, [u64; 3]>::try_from(self.object.ebpf.map("allowances")?).ok()?;
        Some(map.get(&strangers.number(), 0).ok()?.iter().map(|[_, _, dropped]| dropped).sum())
    }

    /// Runs the XDP program on one frame as if it had come over the first queue of the interface with this index;
    /// gives its action and the word before the frame, 0 where there is none.
    pub fn run(&self, frame: &[u8], interface: u32) -> Result<(u32, u32), OpenError> {
        let mut room = vec![0; frame.len() + 256];
        // `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context = [0, frame.len() as u32, 0, interface, 0, 0].map(u32::to_ne_bytes).concat();
        let ran = self.test_xdp(TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut room),
            ctx_in: Some(&context),
            ..Default::default()
        })?;
        let before = (ran.data_size_out as usize).saturating_sub(frame.len());
        let word = room.get(..before).and_then(|before| before.last_chunk());
        Ok((ran.return_value, word.map_or(0, |word| u32::from_ne_bytes(*word))))
    }

    /// The same with the program at the ingress of traffic control: its action, and the mark that it gave the
    /// frame.
    pub fn run_at_ingress(&self, frame: &[u8], interface: u32) -> Result<(u32, u32), OpenError> {
        // `struct __sk_buff`, as much of it as is set and read.
        const MARK: usize = 8;
        const INTERFACE: usize = 40;
        let mut context = [0; 192];
        context[INTERFACE..INTERFACE + 4].copy_from_slice(&interface.to_ne_bytes());
        let mut after = [0; 192];
        let program: &SchedClassifier = self.program(AT_INGRESS)?.try_into().map_err(refused)?;
        let options = TestRunOptions {
            data_in: Some(frame),
            ctx_in: Some(&context),
            ctx_out: Some(&mut after),
            ..Default::default()
        };
        let ran = program.test_run(options).map_err(refused)?;
        let mark = after[MARK..].first_chunk().map_or(0, |mark| u32::from_ne_bytes(*mark));
        Ok((ran.return_value, mark))
    }

    /// How long the XDP program takes for the frame, on average of `times` runs.
    pub fn time(&self, frame: &[u8], times: u32) -> Result<Duration, OpenError> {
        let options = TestRunOptions { data_in: Some(frame), repeat: times, ..Default::default() };
        Ok(self.test_xdp(options)?.duration)
    }

    fn test_xdp(&self, options: TestRunOptions<'_>) -> Result<TestRunResult, OpenError> {
        let program: &Xdp = self.program("classify")?.try_into().map_err(refused)?;
        program.test_run(options).map_err(refused)
    }

    fn program(&self, name: &'static str) -> Result<&aya::programs::Program, OpenError> {
        self.object.ebpf.program(name).ok_or_else(|| missing(name))
    }
}

fn classifier(ebpf: &mut Ebpf) -> Result<&mut Xdp, OpenError> {
    ebpf.program_mut("classify").ok_or_else(|| missing("classify"))?.try_into().map_err(refused)
}

fn at_ingress(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier, OpenError> {
    ebpf.program_mut(AT_INGRESS).ok_or_else(|| missing(AT_INGRESS))?.try_into().map_err(refused)
}
