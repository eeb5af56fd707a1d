//! The classifier's BPF object, `bpf/classifier.bpf.c`: loading it and reaching its maps. It
//! holds three programs of one specification: `classify` for XDP, `silk_ingress` for traffic control, and `steer`,
//! which only chooses among the queues of a packet socket or a tap. aya loads it, because it is Rust all the way
//! down: no libelf and no libbpf in the daemon, one licence with ours.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use aya::maps::Map;
use aya::programs::{ProgramFd, SocketFilter};
use aya::{Ebpf, EbpfLoader};

use crate::OpenError;
use crate::sys::Mapping;
use crate::tables::{Tables, homes_lines, leak};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/classifier.bpf.o"));

/// The most domains the classifier's words can name.
pub(crate) const DOMAINS: u32 = 64;

/// The most interfaces that one program can be attached to.
pub(crate) const LINKS: usize = 4;

/// What the program must know of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkPlan {
    /// Its index.
    pub interface: u32,
    /// The first of its rings.
    pub first_ring: u32,
    /// How many it has.
    pub rings: u32,
    /// Its packets are Linux's socket buffers, which say how they were merged (`bpf/merged.h`).
    pub in_linux: bool,
    /// They are told apart at the ingress of traffic control, and there are no rings.
    pub at_ingress: bool,
}

/// The loaded object. Programs that the kernel holds elsewhere stay when it is dropped, and
/// their maps with them.
pub(crate) struct Object {
    /// What aya made of it.
    pub ebpf: Ebpf,
    buckets: u32,
}

impl Object {
    /// Loads it for `domains` domains, with a flow table of `buckets` buckets, a power of two,
    /// and room for `sockets` sockets, to tell apart packets of these interfaces; of none: of whichever.
    pub fn load(domains: u32, sockets: u32, buckets: u32, links: &[LinkPlan]) -> Result<Self, OpenError> {
        if links.len() > LINKS {
            return Err(OpenError::Options("a device is at most four interfaces"));
        }
        if !(1..=DOMAINS).contains(&domains) {
            return Err(OpenError::Options("a device serves 1 to 64 domains"));
        }
        if !buckets.is_power_of_two() || !(4..=1 << 24).contains(&buckets) {
            return Err(OpenError::Options(
                "the flow table has a power of two of buckets, from 4 to 16777216",
            ));
        }
        let of = |what: fn(&LinkPlan) -> u32| std::array::from_fn(|n| links.get(n).map_or(0, what));
        let interfaces: [u32; LINKS] = of(|link| link.interface);
        let first_rings: [u32; LINKS] = of(|link| link.first_ring);
        let rings: [u32; LINKS] = of(|link| link.rings);
        let in_linux = links.iter().rev().fold(0, |bits, link| bits << 1 | u32::from(link.in_linux));
        let (mask, count) = (buckets - 1, links.len().max(1) as u32);
        let ebpf = EbpfLoader::new()
            .map_max_entries("flows", buckets)
            .map_max_entries("homes", homes_lines(buckets))
            .map_max_entries("sockets", sockets.max(1))
            .override_global("domains", &domains, true)
            .override_global("bucket_mask", &mask, true)
            .override_global("in_linux", &in_linux, true)
            .override_global("links", &count, true)
            .override_global("interfaces", &interfaces, true)
            .override_global("first_rings", &first_rings, true)
            .override_global("rings", &rings, true)
            .load(OBJECT)
            .map_err(refused)?;
        Ok(Self { ebpf, buckets })
    }

    /// The tables that its programs read.
    pub fn tables(&self) -> Result<Tables, OpenError> {
        Tables::mapped(self.buckets, |name, bytes| self.map(name, bytes))?
            .ok_or_else(|| OpenError::Program("its tables have other sizes than ours".into()))
    }

    /// How many packets the program at the ingress has marked, of an interface's place and a domain: IPv4, IPv6.
    pub fn marked(&self, link: usize, domain: u32) -> Result<[&'static AtomicU64; 2], OpenError> {
        let mapping = self.map("marked", LINKS * DOMAINS as usize * 2 * 8)?;
        let place = (link * DOMAINS as usize + domain as usize) * 2;
        match mapping.words64(place * 8, 2) {
            Some([four, six]) => Ok([four, six]),
            _ => Err(missing("marked")),
        }
    }

    fn map(&self, name: &'static str, len: usize) -> Result<&'static Mapping, OpenError> {
        match self.ebpf.map(name) {
            Some(Map::Array(map)) => Mapping::of(map.fd().as_fd(), len, 0)
                .map(leak)
                .map_err(|source| OpenError::System { what: "map the classifier's tables", source }),
            _ => Err(missing(name)),
        }
    }

    /// The program that chooses among queues, loaded.
    pub fn steering(&mut self) -> Result<&ProgramFd, OpenError> {
        let program = self.ebpf.program_mut("steer").ok_or_else(|| missing("steer"))?;
        let program: &mut SocketFilter = program.try_into().map_err(refused)?;
        program.load().map_err(refused)?;
        program.fd().map_err(refused)
    }
}

/// The object is not what this crate was built with.
pub(crate) fn missing(what: &str) -> OpenError {
    OpenError::Program(format!("it has no `{what}`"))
}

/// Why aya or the kernel said no: with every cause, for the verifier's words are the last.
pub(crate) fn refused(error: impl std::error::Error + 'static) -> OpenError {
    let mut whole = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(system) = next.downcast_ref::<std::io::Error>()
            && matches!(system.raw_os_error(), Some(libc::EPERM | libc::EACCES))
        {
            return OpenError::Privilege { what: "load a BPF program" };
        }
        whole.push_str(": ");
        whole.push_str(&next.to_string());
        cause = next.source();
    }
    OpenError::Program(whole)
}
