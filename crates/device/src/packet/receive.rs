//! The receive half: frames by `recvmmsg`, each with its virtio-net header, and its tag put back. Of one socket,
//! or of several, each of one protocol.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::arrived::{Arrived, Several};
use super::tag::tagged;
use super::{Options, PACKET_VNET_HDR, accept};
use crate::pool::Pool;
use crate::sys::{self, Filter, Readiness, ReceiveBatch};
use crate::{Frame, HEADROOM, OpenError, Receive, Received, vnet};

/// So many times a socket is not asked that has nothing that was promised. Then it is all the same: an error, as when its
/// interface goes down, waits there like a packet, and ends every sleep until it is taken.
const UNASKED: u32 = 64;

/// So many packets in a row are passed over in a call that the kernel cannot describe in a virtio-net header, such as those that
/// are to be cut by other protocols than TCP and UDP.
const UNTOLD: u64 = 256;

const PACKET_IGNORE_OUTGOING: i32 = 23;
const ETH_P_ALL: u16 = 3;

/// Receives through packet sockets.
pub(crate) struct PacketReceive {
    /// One for each protocol that is received.
    sockets: Vec<Socket>,
    /// Readable when any of them is; made when it is asked for.
    any: OnceCell<Readiness>,
    /// Which is looked at first: in turn.
    first: usize,
    batch: ReceiveBatch<{ vnet::LEN }>,
    pool: Pool,
    /// Buffers of the pool that are offered to the kernel: empty between calls.
    offered: Vec<(u32, Box<[u8]>)>,
    /// What is to be handed out: more than the kernel gave where a packet was several datagrams.
    arrived: Arrived,
    /// The VLAN of every frame, 0: of none.
    vlan: u16,
    received: Received,
}

/// A packet socket, and how many packets it was promised.
struct Socket {
    fd: OwnedFd,
    /// Counts what is sent to it, each before it comes; `None`: nobody does.
    promised: Option<&'static AtomicU64>,
    /// How many of those have come or are lost.
    settled: u64,
    /// How often it was not asked since it last was.
    unasked: u32,
}

impl Socket {
    /// Whether it is to be asked: it is not known that nothing is there.
    fn may_have(&mut self) -> bool {
        let may_have = self.promised.is_none_or(|promised| promised.load(Relaxed) != self.settled)
            || self.unasked >= UNASKED;
        self.unasked = if may_have { 0 } else { self.unasked + 1 };
        may_have
    }

    /// So many of those have come, or are known to be lost.
    fn settle(&mut self, count: u64) {
        if let Some(promised) = self.promised {
            // Never more than there were: somebody else may send here too.
            let open = promised.load(Relaxed).wrapping_sub(self.settled);
            self.settled = self.settled.wrapping_add(open.min(count));
        }
    }

    /// How many the kernel has had no place for since this was last asked.
    fn lost(&mut self) -> u64 {
        let lost = sys::packet_drops(self.fd.as_fd()).map_or(0, u64::from);
        self.settle(lost);
        lost
    }
}

impl PacketReceive {
    /// All that arrives, with the filter that the options ask for.
    pub fn open(interface: &str, options: &Options) -> Result<Self, OpenError> {
        Self::with_filter(interface, options, &accept(options))
    }

    /// With another filter for now.
    pub fn with_filter(interface: &str, options: &Options, filter: &[Filter]) -> Result<Self, OpenError> {
        Self::of_protocols(interface, options, filter, &[ETH_P_ALL])
    }

    /// Of these protocols alone, a socket for each, what passes the filter. Linux delivers these after the ingress
    /// of traffic control, and all protocols together before it.
    pub fn of_protocols(
        interface: &str,
        options: &Options,
        filter: &[Filter],
        protocols: &[u16],
    ) -> Result<Self, OpenError> {
        let of = |error| OpenError::of(interface, "receive raw frames", error);
        let index = sys::interface_index(interface).map_err(of)?;
        let open = |&protocol: &u16| {
            let fd = sys::packet_socket()?;
            sys::set_packet_option(fd.as_fd(), PACKET_VNET_HDR, 1)?;
            sys::set_packet_option(fd.as_fd(), PACKET_IGNORE_OUTGOING, 1)?;
            sys::receive_buffer(fd.as_fd(), options.waiting)?;
            // Before it is bound: afterwards frames would already have passed.
            sys::filter(fd.as_fd(), filter)?;
            sys::bind_packet(fd.as_fd(), index, protocol)?;
            if !options.addresses.is_empty() {
                sys::hear(fd.as_fd(), index, sys::Heard::AllGroups)?;
                options.mac.map_or(Ok(()), |mac| sys::hear(fd.as_fd(), index, sys::Heard::Station(mac)))?;
            }
            Ok(Socket { fd, promised: None, settled: 0, unasked: 0 })
        };
        let sockets = protocols.iter().map(open).collect::<io::Result<Vec<_>>>().map_err(of)?;
        Ok(Self {
            sockets,
            any: OnceCell::new(),
            first: 0,
            batch: ReceiveBatch::new(16),
            pool: Pool::new(options.buffers, options.longest),
            offered: Vec::new(),
            arrived: Arrived::default(),
            vlan: options.vlan,
            received: Received::default(),
        })
    }

    /// The socket of the protocol at this place among those it was opened for.
    pub fn socket(&self, place: usize) -> BorrowedFd<'_> {
        self.sockets[place].fd.as_fd()
    }

    /// From now on each socket is asked only when more packets were promised than have come, and their marks are the
    /// words of their paths.
    pub fn promise<const N: usize>(&mut self, counts: [&'static AtomicU64; N]) -> io::Result<()> {
        for (socket, count) in self.sockets.iter_mut().zip(counts) {
            sys::tell_marks(socket.fd.as_fd())?;
            (socket.promised, socket.settled) = (Some(count), count.load(Relaxed));
        }
        Ok(())
    }

    /// One system call's worth of frames of one socket, how many it gave.
    fn receive_batch(&mut self, socket: usize, limit: usize) -> usize {
        if !self.sockets[socket].may_have() {
            return 0;
        }
        let count = limit.min(self.batch.capacity());
        self.offered.extend(std::iter::from_fn(|| self.pool.take()).take(count));
        if self.offered.is_empty() {
            return 0;
        }
        let mut untold = 0;
        let arrived = loop {
            let buffers = self.offered.iter_mut().map(|(_, buffer)| &mut **buffer);
            match self.batch.receive(self.sockets[socket].fd.as_fd(), buffers, HEADROOM) {
                // The kernel has thrown it away; behind it there may be more.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && untold < UNTOLD => untold += 1,
                other => break other.unwrap_or(0),
            }
        };
        self.received.malformed += untold;
        self.sockets[socket].settle(untold);
        let unused = self.offered.drain(arrived..).rev();
        unused.for_each(|(index, buffer)| self.pool.put(index, buffer));
        match &mut self.sockets[socket] {
            // What was promised is lost, or will be here at once.
            socket if arrived == 0 && socket.promised.is_some() => self.received.ring_full += socket.lost(),
            socket => socket.settle(arrived as u64),
        }
        for (at, (index, buffer)) in self.offered.drain(..).enumerate() {
            let arrival = self.batch.arrival(at);
            let Some(len) = arrival.len else {
                self.received.malformed += 1;
                self.pool.put(index, buffer);
                continue;
            };
            let path = arrival.mark;
            let message = buffer.get(HEADROOM..HEADROOM + len).unwrap_or_default();
            if let Some(offload) = vnet::datagrams(arrival.header, message) {
                self.arrived.push_several(Several { index, buffer, len, offload, path });
                continue;
            }
            let (checksum, segment) = vnet::decode(arrival.header);
            let (mut buffer, vlan) = (buffer, self.vlan);
            let (offset, len) = tagged(&mut buffer, len, vlan);
            self.pool.hold(index, buffer);
            let frame = Frame { index, device: 0, offset, len, path, segment, checksum };
            self.arrived.push(frame);
        }
        arrived
    }
}

impl Receive for PacketReceive {
    fn fd(&self) -> BorrowedFd<'_> {
        let all = || Readiness::of(self.sockets.iter().map(|socket| socket.fd.as_fd()));
        match self.sockets.len() {
            1 => self.socket(0),
            _ => match self.any.get() {
                Some(any) => any.as_fd(),
                // Of one of them there is still to be heard when no more descriptors can be had.
                None => all().map_or(self.socket(0), |any| self.any.get_or_init(|| any).as_fd()),
            },
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.fd.as_fd()).collect()
    }

    fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        let count = self.sockets.len();
        let mut turn = 0;
        loop {
            let Self { arrived, pool, vlan, received, .. } = self;
            arrived.hand_out(frames, limit - (frames.len() - before), (pool, *vlan), received);
            let wanted = limit - (frames.len() - before);
            // What waits for buffers waits before what comes.
            if turn == count || wanted == 0 || !arrived.is_empty() {
                self.first = (self.first + turn.max(1)) % count;
                return frames.len() - before;
            }
            let got = self.receive_batch((self.first + turn) % count, wanted);
            turn += usize::from(got < self.batch.capacity());
        }
    }

    fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(frame)
    }

    fn release(&mut self, frame: Frame) {
        self.pool.release(frame);
    }

    fn received(&mut self) -> Received {
        self.received.ring_full += self.sockets.iter_mut().map(Socket::lost).sum::<u64>();
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::io::{Write, stderr};
    use std::process::Command;

    #[test]
    fn what_no_header_describes_is_counted_and_not_in_the_way_of_what_is_behind_it() {
        let test = || {
            let tap = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            let Ok(mut guest) =
                tap.and_then(|()| sys::open_tap(sys::open_tun()?, "guest", Some(vnet::LEN as i32), false))
            else {
                let _ =
                    writeln!(stderr(), "SKIPPED, nothing tested: a tap in a network namespace needs root");
                return;
            };
            let up = Command::new("ip").args(["link", "set", "guest", "up"]).status();
            assert!(up.is_ok_and(|status| status.success()));
            let mut ours = PacketReceive::open("guest", &Options::default()).unwrap();
            let ip = [0x45, 0, 11, 212, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let udp = [0x30, 0x39, 0, 7, 11, 192, 0, 0];
            let datagram = [&[2; 12][..], &[8, 0], &ip, &udp, &[7; 3000]].concat();
            // To be cut into fragments (VIRTIO_NET_HDR_GSO_UDP).
            let fields = [42, 1000, 34, 6].map(u16::to_ne_bytes).concat();
            let large = [&[1, 3][..], &fields, &datagram].concat();
            let plain = [&[0; vnet::LEN][..], &datagram[..100]].concat();
            (0..20).for_each(|_| guest.write_all(&large).unwrap());
            guest.write_all(&plain).unwrap();
            let mut frames = Vec::new();
            ours.receive(&mut frames, 64);
            let arrived: Vec<_> =
                frames.iter().map(|frame| ours.bytes(*frame)[frame.range()].to_vec()).collect();
            assert!(arrived == [&datagram[..100]], "{} packets", arrived.len());
            assert_eq!(ours.received().malformed, 20);
        };
        std::thread::spawn(test).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}
