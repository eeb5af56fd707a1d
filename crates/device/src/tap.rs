//! The `tap` device: Linux on the other side of a virtual Ethernet interface, which lives as
//! long as the device is open. silk has its own address and answers ARP; Linux routes to it.
//! It must never be given an address that Linux itself has.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use silk_wire::eth;

use crate::bpf::Object;
use crate::netlink::Interface;
use crate::pool::Pool;
use crate::{
    End, Frame, HEADROOM, Offload, OpenError, Receive, Received, Refusal, Steered, Transmit, Transmitted,
    sys, vnet,
};

/// How the device is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many received frames may be held.
    pub buffers: u32,
    /// Lets Linux hand over large TCP messages whole and leave checksums out, and takes such; otherwise
    /// frames come and go as they would over a wire.
    pub offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { buffers: 256, offload: true }
    }
}

/// Opens the tap interface `name`, creating it when it is not there. The interface is to be
/// set up (`ip link set NAME up`) by whoever owns the network's configuration.
pub fn open(name: &str, options: &Options) -> Result<End, OpenError> {
    Ok(end(open_queue(name, options, false)?, options))
}

/// Opens the tap interface `name` for several domains, each with its own end: Linux asks the
/// classifier, whose tables are given, which one a packet belongs to. What belongs to none of
/// silk's paths arrives in the control domain.
pub fn open_domains(name: &str, domains: u32, buckets: u32, options: &Options) -> Result<Steered, OpenError> {
    let mut object = Object::load(domains, 1, buckets, &[])?;
    let tables = object.tables()?;
    let queues: Result<Vec<_>, _> = (0..domains).map(|_| open_queue(name, options, true)).collect();
    let queues = queues?;
    sys::steer_tap(queues[0].as_fd(), object.steering()?.as_fd())
        .map_err(|error| OpenError::of(name, "spread packets over domains", error))?;
    Ok(Steered { ends: queues.into_iter().map(|file| end(file, options)).collect(), tables })
}

fn open_queue(name: &str, options: &Options, queues: bool) -> Result<File, OpenError> {
    let driver = sys::open_tun().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => OpenError::NoTaps,
        _ => OpenError::of(name, "open the tap interface", error),
    })?;
    sys::open_tap(driver, name, options.offload.then_some(vnet::LEN as i32), queues).map_err(|error| {
        // Which of its arguments the kernel finds invalid it does not say.
        match error.raw_os_error() {
            Some(libc::EINVAL) if Interface::is_there(name) => OpenError::NoTap { name: name.to_owned() },
            _ => OpenError::of(name, "open the tap interface", error),
        }
    })
}

fn end(file: File, options: &Options) -> End {
    let queue = Arc::new(Queue { file, gone: AtomicBool::new(false) });
    let pool = Pool::new(options.buffers, LONGEST);
    let header = if options.offload { vnet::LEN } else { 0 };
    End {
        receive: Box::new(TapReceive { queue: queue.clone(), header, pool, received: Received::default() }),
        transmit: Box::new(TapTransmit { queue, header, transmitted: Transmitted::default() }),
    }
}

/// An Ethernet header with a tag, which Linux puts where it belongs, and the longest IP packet. The
/// driver itself would take more.
const LONGEST: usize = eth::HEADER + eth::TAG + 65_535;

/// One queue of the interface, which its two halves share.
struct Queue {
    file: File,
    /// The interface was deleted. What stands in the descriptor's place then takes nothing and says nothing of it.
    gone: AtomicBool,
}

struct TapReceive {
    queue: Arc<Queue>,
    /// Bytes of the virtio-net header before a frame; 0: none is.
    header: usize,
    pool: Pool,
    received: Received,
}

impl TapReceive {
    fn receive_one(&mut self) -> Option<Frame> {
        let (index, mut buffer) = self.pool.take()?;
        let mut header = [0; vnet::LEN];
        let read =
            sys::read_parts(self.queue.file.as_fd(), &mut header[..self.header], &mut buffer[HEADROOM..]);
        if read.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EBADFD)) {
            // The interface was deleted. Its descriptor would be readable for ever.
            self.queue.gone.store(true, Ordering::Relaxed);
            sys::silence(self.queue.file.as_fd());
        }
        let Some(len) = read.ok().and_then(|len| len.checked_sub(self.header)) else {
            self.pool.put(index, buffer);
            return None;
        };
        let (checksum, segment) = vnet::decode(&header);
        self.pool.hold(index, buffer);
        self.received.frames += 1;
        self.received.bytes += len as u64;
        Some(Frame { index, device: 0, offset: HEADROOM as u32, len: len as u32, path: 0, segment, checksum })
    }
}

impl Receive for TapReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        self.queue.file.as_fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        frames.extend(std::iter::from_fn(|| self.receive_one()).take(limit));
        frames.len() - before
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.pool.release(frame);
    }

    fn received(&mut self) -> Received {
        self.received
    }
}

/// Sends at once: the tap driver takes one frame per system call, so there is nothing to
/// batch.
struct TapTransmit {
    queue: Arc<Queue>,
    /// As [`TapReceive::header`].
    header: usize,
    transmitted: Transmitted,
}

impl Transmit for TapTransmit {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        if head.len() + payload[0].len() + payload[1].len() > LONGEST {
            return self.transmitted.refused(Refusal::TooLong);
        }
        if self.header == 0 && offload != Offload::NONE {
            return self.transmitted.refused(Refusal::Malformed);
        }
        if self.queue.gone.load(Ordering::Relaxed) {
            return self.transmitted.refused(Refusal::Down);
        }
        let header = &vnet::encode(offload)[..self.header];
        match sys::write_parts(self.queue.file.as_fd(), [header, head, payload[0], payload[1]]) {
            Ok(len) => self.transmitted.took(len - self.header),
            Err(error) => self.transmitted.refused(Refusal::of(&error)),
        }
    }

    fn flush(&mut self) {}

    fn transmitted(&self) -> Transmitted {
        self.transmitted
    }
}
