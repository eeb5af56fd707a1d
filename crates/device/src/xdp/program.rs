//! Loading and attaching the classifier program, and its maps. The attachment is a bpf_link
//! of this process: when the process ends, however it ends, the program is gone and every
//! packet is Linux's again.

use std::os::fd::AsFd;

use aya::maps::{Map, MapData, PerCpuArray, XskMap};
use aya::programs::links::FdLink;
use aya::programs::{ProgramError, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};

use super::Mode;
use crate::OpenError;
use crate::sys::Mapping;
use crate::tables::{BUCKET_WORDS, PORTS, RULES_WORDS, SETTINGS_WORDS, Tables, leak};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/classifier.bpf.o"));

/// The classifier program: loaded, and once attached, attached until dropped.
pub(crate) struct Program {
    ebpf: Ebpf,
    link: Option<FdLink>,
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
}

/// What a driver without XDP cannot do.
const NATIVE: &str = "attach an XDP program";

impl Program {
    /// Loads the program for `domains` domains on `queues` queues, with a flow table of
    /// `buckets` buckets, a power of two.
    pub fn load(domains: u32, queues: u32, buckets: u32) -> Result<Self, OpenError> {
        let mask = buckets - 1;
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("flows", buckets)
            .map_max_entries("sockets", queues * domains)
            .override_global("domains", &domains, true)
            .override_global("bucket_mask", &mask, true)
            .load(OBJECT)
            .map_err(refused)?;
        classifier(&mut ebpf)?.load().map_err(refused)?;
        Ok(Self { ebpf, link: None })
    }

    /// The tables that it reads.
    pub fn tables(&self, buckets: u32) -> Result<Tables, OpenError> {
        Tables::from_mappings(
            buckets,
            self.map("flows", buckets as usize * BUCKET_WORDS * 8)?,
            self.map("ports", PORTS * 4)?,
            self.map("rules", RULES_WORDS * 8)?,
            self.map("settings", SETTINGS_WORDS * 8)?,
        )
        .ok_or(OpenError::Options("the flow table needs a power of two of buckets, at least 4"))
    }

    fn map(&self, name: &'static str, len: usize) -> Result<&'static Mapping, OpenError> {
        match self.ebpf.map(name) {
            Some(Map::Array(map)) => Mapping::of(map.fd().as_fd(), len, 0)
                .map(leak)
                .map_err(|source| OpenError::System { what: "map the classifier's tables", source }),
            _ => Err(OpenError::Program(format!("it has no array `{name}`"))),
        }
    }

    /// Lets the program choose the socket for ring `ring` (queue × domains + domain).
    pub fn set_socket(&mut self, ring: u32, socket: impl std::os::fd::AsRawFd) -> Result<(), OpenError> {
        let map = self.ebpf.map_mut("sockets").ok_or_else(|| missing("sockets"))?;
        let mut map = XskMap::<&mut MapData>::try_from(map).map_err(refused)?;
        map.set(ring, socket, 0).map_err(refused)
    }

    /// Attaches the program; from here on packets that paths own are silk's.
    pub fn attach(&mut self, name: &str, interface: u32, mode: Mode) -> Result<(), OpenError> {
        match mode {
            Mode::Native => self.attach_as(name, interface, XdpMode::Driver),
            Mode::Generic => self.attach_as(name, interface, XdpMode::Skb),
            Mode::Best => self.attach_as(name, interface, XdpMode::Driver).or_else(|error| match error {
                OpenError::Unsupported { what: NATIVE, .. } => self.attach_as(name, interface, XdpMode::Skb),
                other => Err(other),
            }),
        }
    }

    fn attach_as(&mut self, name: &str, interface: u32, mode: XdpMode) -> Result<(), OpenError> {
        let program = classifier(&mut self.ebpf)?;
        let id = program.attach_to_if_index(interface, mode).map_err(|error| match error {
            ProgramError::SyscallError(error) if error.io_error.raw_os_error() == Some(libc::ERANGE) => {
                let what = "run an XDP program while its MTU or its peer's is so large";
                OpenError::Unsupported { name: name.to_owned(), what }
            }
            ProgramError::SyscallError(error) => OpenError::of(name, NATIVE, error.io_error),
            other => refused(other),
        })?;
        let link = program.take_link(id).map_err(refused)?;
        // Anything else than a bpf_link would outlive a daemon that is killed.
        let what = "hold an XDP program by a link that ends with the daemon";
        let link = FdLink::try_from(link);
        self.link = Some(link.map_err(|_| OpenError::Unsupported { name: name.to_owned(), what })?);
        Ok(())
    }

    /// What it did with the packets of a domain so far.
    pub fn counts(&self, domain: u32) -> Option<Counts> {
        let map = PerCpuArray::<_, [u64; 6]>::try_from(self.ebpf.map("counts")?).ok()?;
        let mut sum = [0u64; 6];
        for of_cpu in map.get(&domain, 0).ok()?.iter() {
            sum.iter_mut().zip(of_cpu).for_each(|(to, from)| *to += from);
        }
        let [path, listen, fragment, control, no_ring, no_hint] = sum;
        Some(Counts { path, listen, fragment, control, no_ring, no_hint })
    }

    /// How many packets it left to Linux so far.
    pub fn passed(&self) -> Option<u64> {
        let map = PerCpuArray::<_, u64>::try_from(self.ebpf.map("passed")?).ok()?;
        Some(map.get(&0, 0).ok()?.iter().sum())
    }

    /// Runs the program on one frame without an interface; gives its action and the frame
    /// with the metadata before it.
    pub fn run(&self, frame: &[u8], room: &mut Vec<u8>) -> Result<u32, OpenError> {
        use aya::programs::{TestRun, TestRunOptions};
        let program: &Xdp = match self.ebpf.program("classify") {
            Some(program) => program.try_into().map_err(refused)?,
            None => return Err(missing("classify")),
        };
        room.resize(frame.len() + 256, 0);
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(room.as_mut_slice()),
            ..TestRunOptions::default()
        };
        let ran = program.test_run(options).map_err(refused)?;
        room.truncate(ran.data_size_out as usize);
        Ok(ran.return_value)
    }
}

fn classifier(ebpf: &mut Ebpf) -> Result<&mut Xdp, OpenError> {
    ebpf.program_mut("classify").ok_or_else(|| missing("classify"))?.try_into().map_err(refused)
}

fn missing(what: &str) -> OpenError {
    OpenError::Program(format!("it has no `{what}`"))
}

/// Why aya or the kernel said no: with every cause, for the verifier's words are the last.
fn refused(error: impl std::error::Error + 'static) -> OpenError {
    let mut whole = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(system) = next.downcast_ref::<std::io::Error>()
            && matches!(system.raw_os_error(), Some(libc::EPERM | libc::EACCES))
        {
            return OpenError::Privilege { what: "load an XDP program" };
        }
        whole.push_str(": ");
        whole.push_str(&next.to_string());
        cause = next.source();
    }
    OpenError::Program(whole)
}
