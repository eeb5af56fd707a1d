//! What a network card's flow steering does (`ethtool -N`), for a veth, which has none: the packets of one sender arrive by a queue
//! of their own. Here it is the sending host that says so, by a program where its packets leave. For tests and
//! experiments only; a server never sees anything of it but the queue.

use aya::programs::{SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};
use std::error::Error;
use std::net::Ipv4Addr;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flow_steering.bpf.o"));

/// The steering; it ends when this is dropped, and with the process.
#[derive(Debug)]
pub struct FlowSteering {
    _program: Ebpf,
}

impl FlowSteering {
    /// Puts what leaves `interface`, one of the calling thread's network namespace, on its first queue, and what has this
    /// `source` on `queue`, from 0. Both ends of the veth need as many queues.
    ///
    /// # Errors
    /// aya's or the kernel's: without root, without the interface, before Linux 6.6.
    pub fn start(interface: &str, source: Ipv4Addr, queue: u16) -> Result<Self, Box<dyn Error>> {
        let (source, queue) = (source.to_bits().to_be(), u32::from(queue));
        let mut program = EbpfLoader::new()
            .override_global("source", &source, true)
            .override_global("queue", &queue, true)
            .load(OBJECT)?;
        let choose: &mut SchedClassifier =
            program.program_mut("choose_queue").ok_or("no program")?.try_into()?;
        choose.load()?;
        choose.attach(interface, TcAttachType::Egress)?;
        Ok(Self { _program: program })
    }
}
