//! The `packet` device: raw frames of a Linux interface through `AF_PACKET`, with virtio-net
//! headers so that large TCP messages pass whole both ways. It needs `CAP_NET_RAW` alone,
//! also in a user namespace.
//!
//! Linux sees every frame too. So silk must use **an IP address that Linux does not have** on
//! that interface and answer ARP for it itself: for an address of its own Linux would answer
//! every connection with a reset, for one it has not it answers nothing (as long as it does
//! not forward: leave `net.ipv4.ip_forward` off there). Say the addresses in
//! [`Options::addresses`]: the socket then takes only ARP and packets to those addresses, and
//! never one with a VLAN tag, which the kernel strips before we could see it.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use silk_instant::Instant;

use crate::bpf::Object;
use crate::pool::Pool;
use crate::sys::{self, Filter, ReceiveBatch, SendBatch};
use crate::{
    End, Frame, HEADROOM, Offload, OpenError, Receive, Received, Refusal, Steered, Transmit, Transmitted,
    vnet,
};

/// How the device is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// silk's own addresses, which Linux must not have; none: every frame is taken.
    pub addresses: Vec<Ipv4Addr>,
    /// How many received frames may be held.
    pub buffers: u32,
    /// The longest frame that is received, in bytes. Linux coalesces TCP up to the default.
    pub longest: usize,
    /// How to send.
    pub sending: Sending,
}

/// How frames are sent (also by the `xdp` device).
#[derive(Clone, Debug)]
pub struct Sending {
    /// Bytes that may be on their way, as the kernel counts them.
    pub buffer: i32,
    /// Sends past the queueing discipline: cheaper, but unshaped and unfair to Linux's own
    /// traffic, and a full hardware queue drops at once.
    pub bypass_qdisc: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { addresses: Vec::new(), buffers: 256, longest: 14 + 65_535, sending: Sending::default() }
    }
}

impl Default for Sending {
    fn default() -> Self {
        Self { buffer: 8 << 20, bypass_qdisc: false }
    }
}

/// Opens the device on `interface`.
pub fn open(interface: &str, options: &Options) -> Result<End, OpenError> {
    Ok(End {
        receive: Box::new(PacketReceive::open(interface, options)?),
        transmit: Box::new(PacketTransmit::open(interface, &options.sending)?),
    })
}

/// Opens the device on `interface` for several domains, each with its own end: Linux asks the
/// classifier, whose tables are given, which one a packet belongs to (a fan-out of packet
/// sockets, packet(7)). What belongs to none of silk's paths arrives in the control domain.
/// It needs `CAP_BPF` as well.
pub fn open_domains(
    interface: &str,
    domains: u32,
    buckets: u32,
    options: &Options,
) -> Result<Steered, OpenError> {
    let mut object = Object::load(domains, 1, buckets)?;
    let tables = object.tables()?;
    let nothing = [REFUSE];
    let receivers: Result<Vec<_>, _> =
        (0..domains).map(|_| PacketReceive::with_filter(interface, options, &nothing)).collect();
    let receivers = receivers?;
    let fds = receivers.iter().map(|receiver| receiver.fd.as_fd());
    sys::fan_out(fds, object.steering()?.as_fd())
        .map_err(|error| OpenError::of(interface, "spread packets over domains", error))?;
    let mut ends = Vec::new();
    for receiver in receivers {
        // Only now: until all were members, packets would have come to the wrong ones.
        sys::filter(receiver.fd.as_fd(), &accept(&options.addresses))
            .map_err(|error| OpenError::of(interface, "choose packets", error))?;
        let transmit = Box::new(PacketTransmit::open(interface, &options.sending)?);
        ends.push(End { receive: Box::new(receiver), transmit });
    }
    Ok(Steered { ends, tables })
}

const PACKET_VNET_HDR: i32 = 15;
const PACKET_QDISC_BYPASS: i32 = 20;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const ETH_P_ALL: u16 = 3;

struct PacketReceive {
    fd: OwnedFd,
    batch: ReceiveBatch<{ vnet::LEN }>,
    pool: Pool,
    /// Buffers of the pool that are offered to the kernel: empty between calls.
    offered: Vec<(u32, Box<[u8]>)>,
    received: Received,
}

impl PacketReceive {
    fn open(interface: &str, options: &Options) -> Result<Self, OpenError> {
        Self::with_filter(interface, options, &accept(&options.addresses))
    }

    fn with_filter(interface: &str, options: &Options, filter: &[Filter]) -> Result<Self, OpenError> {
        let what = "receive raw frames";
        let of = |error| OpenError::of(interface, what, error);
        let index = sys::interface_index(interface).map_err(of)?;
        let fd = sys::packet_socket().map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_VNET_HDR, 1).map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_IGNORE_OUTGOING, 1).map_err(of)?;
        // Before it is bound: afterwards frames would already have passed.
        sys::filter(fd.as_fd(), filter).map_err(of)?;
        sys::bind_packet(fd.as_fd(), index, ETH_P_ALL).map_err(of)?;
        Ok(Self {
            fd,
            batch: ReceiveBatch::new(16),
            pool: Pool::new(options.buffers, options.longest),
            offered: Vec::new(),
            received: Received::default(),
        })
    }

    /// One system call's worth of frames.
    fn receive_batch(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let count = limit.min(self.batch.capacity());
        self.offered.extend(std::iter::from_fn(|| self.pool.take()).take(count));
        if self.offered.is_empty() {
            return 0;
        }
        let buffers = self.offered.iter_mut().map(|(_, buffer)| &mut **buffer);
        let arrived = self.batch.receive(self.fd.as_fd(), buffers, HEADROOM).unwrap_or(0);
        let unused = self.offered.drain(arrived..).rev();
        unused.for_each(|(index, buffer)| self.pool.put(index, buffer));
        for (at, (index, buffer)) in self.offered.drain(..).enumerate() {
            let arrival = self.batch.arrival(at);
            let Some(len) = arrival.len else {
                self.received.malformed += 1;
                self.pool.put(index, buffer);
                continue;
            };
            let (checksum, segment) = vnet::decode(arrival.header);
            self.pool.hold(index, buffer);
            self.received.frames += 1;
            self.received.bytes += len as u64;
            let (offset, len) = (HEADROOM as u32, len as u32);
            frames.push(Frame { index, offset, len, path: 0, segment, checksum });
        }
        arrived
    }
}

impl Receive for PacketReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        loop {
            let wanted = limit - (frames.len() - before);
            let arrived = self.receive_batch(frames, wanted);
            if arrived < self.batch.capacity() {
                return frames.len() - before;
            }
        }
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.pool.release(frame);
    }

    fn received(&mut self) -> Received {
        self.received.ring_full += u64::from(sys::packet_drops(self.fd.as_fd()).unwrap_or(0));
        self.received
    }
}

const RETURN: u16 = 0x06;
const ACCEPT: Filter = (RETURN, 0, 0, u32::MAX);
const REFUSE: Filter = (RETURN, 0, 0, 0);

/// The socket filter: no VLAN tag, and with `addresses` only ARP and IPv4 to those.
fn accept(addresses: &[Ipv4Addr]) -> Vec<Filter> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_HALF: u16 = 0x28;
    const JUMP_EQUAL: u16 = 0x15;
    const VLAN_TAG_PRESENT: u32 = -0x1000i32 as u32 + 48;

    let mut program = vec![(LOAD_WORD, 0, 0, VLAN_TAG_PRESENT), (JUMP_EQUAL, 1, 0, 0), REFUSE];
    if !addresses.is_empty() {
        program.extend([(LOAD_HALF, 0, 0, 12), (JUMP_EQUAL, 0, 1, 0x0806), ACCEPT]);
        program.extend([(JUMP_EQUAL, 1, 0, 0x0800), REFUSE, (LOAD_WORD, 0, 0, 30)]);
        for &address in addresses {
            program.extend([(JUMP_EQUAL, 0, 1, address.to_bits()), ACCEPT]);
        }
        program.push(REFUSE);
    }
    program.push(ACCEPT);
    program
}

/// Frames that are waiting for a flush, at most.
const BATCH: usize = 64;
/// Messages longer than this, in bytes, are sent by reference and at once.
const BY_REFERENCE: usize = 2304;

/// Sends through a packet socket; it sees no arriving frame.
pub(crate) struct PacketTransmit {
    fd: OwnedFd,
    batch: SendBatch,
    transmitted: Transmitted,
}

impl PacketTransmit {
    pub(crate) fn open(interface: &str, options: &Sending) -> Result<Self, OpenError> {
        let what = "send raw frames";
        let of = |error| OpenError::of(interface, what, error);
        let index = sys::interface_index(interface).map_err(of)?;
        let fd = sys::packet_socket().map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_VNET_HDR, 1).map_err(of)?;
        sys::set_packet_option(fd.as_fd(), PACKET_QDISC_BYPASS, options.bypass_qdisc.into()).map_err(of)?;
        sys::send_buffer(fd.as_fd(), options.buffer).map_err(of)?;
        sys::bind_packet(fd.as_fd(), index, 0).map_err(of)?;
        Ok(Self { fd, batch: SendBatch::new(BATCH, 256), transmitted: Transmitted::default() })
    }

    fn send_batch(&mut self) {
        let transmitted = &mut self.transmitted;
        self.batch.send(self.fd.as_fd(), |len, outcome| match outcome {
            Ok(()) => transmitted.took(len - vnet::LEN),
            Err(error) => transmitted.refused(Refusal::of(error)),
        });
    }

    fn send_now(&mut self, parts: [&[u8]; 4]) {
        match sys::send_parts(self.fd.as_fd(), parts) {
            Ok(len) => self.transmitted.took(len - vnet::LEN),
            Err(error) => self.transmitted.refused(Refusal::of(&error)),
        }
    }
}

impl Transmit for PacketTransmit {
    fn send(&mut self, head: &[u8], payload: [&[u8]; 2], offload: Offload) {
        let header = vnet::encode(offload);
        let parts = [&header, head, payload[0], payload[1]];
        if head.len() + payload[0].len() + payload[1].len() > BY_REFERENCE {
            self.send_batch();
            self.send_now(parts);
        } else {
            self.batch.push(parts);
            if self.batch.len() == BATCH {
                self.send_batch();
            }
        }
    }

    fn flush(&mut self, _now: Instant) {
        if self.batch.len() > 0 {
            self.send_batch();
        }
    }

    fn transmitted(&self) -> Transmitted {
        self.transmitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_grows_with_the_addresses() {
        assert_eq!(accept(&[]).len(), 4);
        assert_eq!(accept(&[Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED]).len(), 15);
    }
}
