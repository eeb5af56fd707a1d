//! The sockets of the imaginary network and what moves between them.

use super::{Seen, refused};
use silk_control::{Kind, Reply, Request};
use silk_stream::{
    Arena, Bytes, Details, OWNER_NOBODY, Pool, Received, RingPlace, Slot, TcpInfo, Way, begin_ring, free,
    kind, option, pop_datagram, push_received, request, status, used, waiting, wake,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Addresses of the imaginary network; all others are Linux's.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Connections from this port are preferred.
const PREFERRED: u16 = 7777;
const RING: u32 = 64 << 10;
/// The hops that every datagram has left.
const HOPS: u8 = 64;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Bound,
    Listening(u32),
    Open,
}

struct Socket {
    kind: Kind,
    state: State,
    local: SocketAddr,
    /// The other end of a stream.
    other: Option<u32>,
    /// Whom a datagram socket hears.
    peer: Option<SocketAddr>,
    holders: Vec<u32>,
    rings: Option<[RingPlace; 2]>,
    closing: bool,
    finished: bool,
}

/// All of it.
pub struct Network {
    pub arena: Arc<Arena>,
    pub seen: Arc<Seen>,
    pool: Pool,
    sockets: BTreeMap<u32, Socket>,
    bells: BTreeMap<u32, (u32, OwnedFd)>,
    threads: BTreeMap<u32, u32>,
    executing: BTreeSet<u32>,
    next_port: u16,
    next_listener: u32,
    reserve: u32,
}

fn put(shared: &silk_stream::SharedAddress, address: SocketAddr) {
    let IpAddr::V4(v4) = address.ip() else { return };
    let bits = v4.to_ipv6_mapped().to_bits();
    shared.ip[0].store((bits >> 64) as u64, SeqCst);
    shared.ip[1].store(bits as u64, SeqCst);
    shared.port.store(address.port().into(), SeqCst);
}

impl Network {
    pub fn new(arena: Arc<Arena>, seen: Arc<Seen>, reserve: u32) -> Self {
        Self {
            pool: Pool::new(arena.clone()),
            arena,
            seen,
            sockets: BTreeMap::new(),
            bells: BTreeMap::new(),
            threads: BTreeMap::new(),
            executing: BTreeSet::new(),
            next_port: 40_000,
            next_listener: 0,
            reserve,
        }
    }

    pub fn fall_asleep(&self) -> bool {
        let bells = [0, 1].map(|domain| self.arena.doorbell(domain).unwrap());
        bells.iter().for_each(|bell| bell.sleeping.store(1, SeqCst));
        std::sync::atomic::fence(SeqCst);
        bells.iter().all(|bell| !bell.set.is_marked())
    }

    pub fn wake_up(&self) {
        [0, 1].iter().for_each(|domain| self.arena.doorbell(*domain).unwrap().sleeping.store(0, SeqCst));
    }

    fn make(&mut self, kind: Kind, holder: Option<u32>, local: SocketAddr) -> u32 {
        let slot = self.pool.take_slot().unwrap();
        let record = self.arena.slot(slot).unwrap();
        for word in [
            &record.rx_write,
            &record.tx_read,
            &record.rx_read,
            &record.tx_write,
            &record.rx_first,
            &record.tx_first,
            &record.status,
            &record.error,
            &record.waiting,
            &record.request,
            &record.rx_note,
            &record.options,
            &record.domain,
            &record.rx_size,
            &record.tx_size,
        ] {
            word.store(0, SeqCst);
        }
        record.bells.iter().for_each(|word| word.store(0, SeqCst));
        record.generation.fetch_add(1, SeqCst);
        record.kind.store(if kind == Kind::Stream { kind::STREAM } else { kind::DATAGRAM }, SeqCst);
        record.owner.store(holder.unwrap_or(OWNER_NOBODY), SeqCst);
        record.holders.store(1, SeqCst);
        record.path.store(1000 + u64::from(slot), SeqCst);
        record.wishes.put_all(&Default::default());
        let info = TcpInfo { state: 1, snd_mss: 1448, pmtu: 1500, ..TcpInfo::default() };
        self.arena.info(slot).unwrap().store(&info, None);
        put(&record.local, local);
        let holders = holder.into_iter().collect();
        let socket = Socket {
            kind,
            state: State::Bound,
            local,
            other: None,
            peer: None,
            holders,
            rings: None,
            closing: false,
            finished: false,
        };
        self.sockets.insert(slot, socket);
        self.seen.live.fetch_add(1, SeqCst);
        slot
    }

    fn open(&mut self, slot: u32, status: u32) {
        let rings = [self.pool.take_ring(RING).unwrap(), self.pool.take_ring(RING).unwrap()];
        let record = self.arena.slot(slot).unwrap();
        record.rx_place.store(rings[0].place, SeqCst);
        record.tx_place.store(rings[1].place, SeqCst);
        record.rx_size.store(rings[0].size, SeqCst);
        record.tx_size.store(rings[1].size, SeqCst);
        record.status.store(status, SeqCst);
        let socket = self.sockets.get_mut(&slot).unwrap();
        (socket.rings, socket.state) = (Some(rings), State::Open);
    }

    fn remove(&mut self, slot: u32) {
        let Some(socket) = self.sockets.remove(&slot) else { return };
        for ring in socket.rings.into_iter().flatten() {
            self.pool.return_ring(ring);
        }
        // Ringing to the last: a program that still uses the slot is seen to.
        self.arena.slot(slot).unwrap().generation.fetch_add(1, SeqCst);
        self.pool.return_slot(slot);
        self.seen.live.fetch_sub(1, SeqCst);
    }

    pub fn serve(&mut self, process: u32, request: Request) -> Option<Reply> {
        Some(match request {
            Request::Bind { kind, local, reuse_port, .. } => {
                let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), local.port());
                let local = if local.ip().is_unspecified() { any } else { local };
                self.bind(process, kind, local, reuse_port)
            }
            Request::Listen { slot, .. } => self.listen(slot),
            Request::Connect { kind, bound, peer, .. } => {
                self.connect(process, kind, bound.map(|b| b.0), peer)
            }
            Request::Renew => {
                self.threads.retain(|_, holder| *holder != process);
                self.bells.retain(|_, (holder, _)| *holder != process);
                Reply::Renewed
            }
            Request::Executes { now } => {
                if now {
                    self.executing.insert(process)
                } else {
                    self.executing.remove(&process)
                };
                return None;
            }
            Request::Thread { .. } => {
                let thread = (0..).find(|n| !self.threads.contains_key(n)).unwrap();
                self.threads.insert(thread, process);
                Reply::Thread { thread }
            }
            Request::ThreadGone { thread } => {
                self.threads.remove(&thread);
                return None;
            }
            Request::BellGone { bell } => {
                self.bells.remove(&bell);
                return None;
            }
            Request::Release { slot, generation } => {
                if self.arena.slot(slot).unwrap().generation.load(SeqCst) == generation {
                    self.release(process, slot);
                }
                return None;
            }
            // A ticket is the number of who carries it.
            Request::Take { ticket, slot, .. } => {
                let socket = self.sockets.get_mut(&slot);
                let place =
                    socket.and_then(|s| s.holders.iter_mut().find(|holder| u64::from(**holder) == ticket));
                let Some(holder) = place else { return Some(refused(libc::EBADF)) };
                *holder = process;
                self.show_holders(slot);
                Reply::Done
            }
            Request::SetPriority { slot, priority, .. } if priority < 8 => {
                self.arena.slot(slot).unwrap().priority.store(priority, SeqCst);
                Reply::Done
            }
            Request::SetPriority { .. } => refused(libc::EPERM),
            Request::Scout { name, .. } if name == "echo" => {
                let slot = self.make(Kind::Datagram, Some(process), SocketAddr::from((HERE, 9)));
                self.open(slot, status::CONNECTED);
                self.sockets.get_mut(&slot).unwrap().peer = Some(SocketAddr::from((HERE, 9)));
                self.named(slot)
            }
            Request::Scout { .. } => refused(libc::EPROTONOSUPPORT),
            // Shared memory says nothing of ways, so that it is asked for each.
            Request::Way { .. } => Reply::Done,
            Request::Disconnect { slot, .. } => self.disconnect(slot),
            Request::Group { group, change, .. } => {
                self.seen.groups.lock().unwrap().push((group, change));
                Reply::Done
            }
            Request::Unserved { what } => {
                self.seen.unserved.lock().unwrap().push(what);
                return None;
            }
            unknown => {
                eprintln!("the tests' daemon knows nothing of this: {unknown:?}");
                refused(libc::EPROTO)
            }
        })
    }

    fn named(&self, slot: u32) -> Reply {
        Reply::Socket { slot, generation: self.arena.slot(slot).unwrap().generation.load(SeqCst) }
    }

    fn port(&mut self, kind: Kind, port: u16, share: bool) -> Option<u16> {
        if port == 0 {
            self.next_port += 1;
            return Some(self.next_port);
        }
        let taken =
            self.sockets.values().any(|s| s.kind == kind && s.local.port() == port && s.other.is_none());
        (share || !taken).then_some(port)
    }

    fn bind(&mut self, process: u32, kind: Kind, local: SocketAddr, share: bool) -> Reply {
        if !local.ip().is_unspecified() && local.ip() != IpAddr::V4(HERE) {
            return Reply::NotOurs;
        }
        let Some(port) = self.port(kind, local.port(), share) else { return refused(libc::EADDRINUSE) };
        let slot = self.make(kind, Some(process), SocketAddr::new(local.ip(), port));
        if kind == Kind::Datagram {
            self.open(slot, status::CONNECTED);
        }
        self.named(slot)
    }

    fn listen(&mut self, slot: u32) -> Reply {
        let number = self.next_listener;
        self.next_listener += 1;
        let listener = self.arena.listener(number).unwrap();
        listener.queue.iter().enumerate().for_each(|(rank, queue)| queue.begin(number, rank));
        listener.ranks.store(2, SeqCst);
        listener.reserve.store(self.reserve, SeqCst);
        let record = self.arena.slot(slot).unwrap();
        record.listener.store(number, SeqCst);
        record.kind.store(kind::LISTENER, SeqCst);
        self.sockets.get_mut(&slot).unwrap().state = State::Listening(number);
        Reply::Done
    }

    fn connect(&mut self, process: u32, kind: Kind, slot: Option<u32>, peer: SocketAddr) -> Reply {
        if peer.ip() != IpAddr::V4(HERE) && slot.is_none() {
            return Reply::NotOurs;
        }
        let slot = slot.unwrap_or_else(|| {
            let port = self.port(kind, 0, false).unwrap();
            self.make(kind, Some(process), SocketAddr::from((HERE, port)))
        });
        let record = self.arena.clone();
        let record = record.slot(slot).unwrap();
        put(&record.peer, peer);
        if kind == Kind::Datagram {
            if self.sockets[&slot].rings.is_none() {
                self.open(slot, status::CONNECTED);
            }
            self.sockets.get_mut(&slot).unwrap().peer = (!peer.ip().is_unspecified()).then_some(peer);
            return self.named(slot);
        }
        self.open(slot, status::CONNECTING);
        let found = self.sockets.iter().find_map(|(on, s)| match s.state {
            State::Listening(number) if s.local.port() == peer.port() => Some((*on, number)),
            _ => None,
        });
        let named = self.named(slot);
        match found {
            None => self.fail(slot, libc::ECONNREFUSED),
            Some((on, number)) => self.establish(slot, peer, on, number),
        }
        named
    }

    /// A connection that failed, or a listener, begins again. What still speaks with somebody is not
    /// taken apart here.
    fn disconnect(&mut self, slot: u32) -> Reply {
        let record = self.arena.slot(slot).unwrap();
        let Some(socket) = self.sockets.get_mut(&slot).filter(|socket| socket.other.is_none()) else {
            return refused(libc::EOPNOTSUPP);
        };
        for ring in socket.rings.take().into_iter().flatten() {
            self.pool.return_ring(ring);
        }
        socket.state = State::Bound;
        record.kind.store(kind::STREAM, SeqCst);
        for word in [&record.status, &record.error, &record.rx_size, &record.tx_size] {
            word.store(0, SeqCst);
        }
        Reply::Done
    }

    fn establish(&mut self, slot: u32, at: SocketAddr, on: u32, number: u32) {
        let from = self.sockets[&slot].local;
        let other = self.make(Kind::Stream, None, at);
        self.open(other, status::CONNECTED);
        self.sockets.get_mut(&slot).unwrap().other = Some(other);
        self.sockets.get_mut(&other).unwrap().other = Some(slot);
        let arena = self.arena.clone();
        let (record, end) = (arena.slot(slot).unwrap(), arena.slot(other).unwrap());
        record.status.store(status::CONNECTED, SeqCst);
        put(&end.peer, from);
        let preferred = from.port() == PREFERRED;
        end.domain.store(preferred.into(), SeqCst);
        let listener = arena.listener(number).unwrap();
        let thread = if preferred { listener.waiters.choose_high() } else { None };
        if let Some(thread) = thread {
            self.seen.handed.fetch_add(1, SeqCst);
            end.owner.store(self.threads[&thread], SeqCst);
            let shared = arena.thread(thread).unwrap();
            shared.extended.store(2, SeqCst);
            shared.handed.store(other + 1, SeqCst);
            shared.wake.fetch_add(1, SeqCst);
            wake::wake(&shared.wake, 1);
        } else {
            assert!(listener.queue[usize::from(preferred)].push(other, &end.owner));
            if listener.waiters.len() > self.reserve
                && let Some(thread) = listener.waiters.choose_low()
            {
                let shared = arena.thread(thread).unwrap();
                shared.wake.fetch_add(1, SeqCst);
                wake::wake(&shared.wake, 1);
            }
            self.tell(on, true, false);
        }
        self.tell(slot, true, true);
    }

    fn fail(&mut self, slot: u32, errno: i32) {
        let record = self.arena.slot(slot).unwrap();
        record.error.store(errno.unsigned_abs(), SeqCst);
        let bits = status::FAILED | status::PEER_FIN | status::SEND_CLOSED;
        record.status.store((record.status.load(SeqCst) | bits) & !status::CONNECTING, SeqCst);
        self.tell(slot, true, true);
    }

    /// Wakes who sleeps on a slot, as the daemon's end of a socket does, and rings its bells.
    fn tell(&self, slot: u32, readable: bool, writable: bool) {
        let record = self.arena.slot(slot).unwrap();
        std::sync::atomic::fence(SeqCst);
        let status = record.status.load(SeqCst);
        let there =
            used(record.rx_write.load(SeqCst), record.rx_read.load(SeqCst), record.rx_size.load(SeqCst));
        let room =
            free(record.tx_write.load(SeqCst), record.tx_read.load(SeqCst), record.tx_size.load(SeqCst));
        let over = status & (status::FAILED | status::PEER_FIN | status::SEND_CLOSED) != 0;
        let listens = record.kind.load(SeqCst) == kind::LISTENER;
        let reader = readable && (over || listens || there >= record.wake_read.load(SeqCst).min(RING));
        let writer = writable && (over || room >= record.wake_write.load(SeqCst).min(RING));
        let bits = if reader { waiting::READ } else { 0 } | if writer { waiting::WRITE } else { 0 };
        if record.waiting.fetch_and(!bits, SeqCst) & bits != 0 {
            record.event.fetch_add(1, SeqCst);
            wake::wake(&record.event, i32::MAX);
        }
        for (number, (_, event)) in &self.bells {
            if record.bells[*number as usize / 64].load(SeqCst) & 1 << (number % 64) != 0 {
                let bell = self.arena.bell(*number).unwrap();
                bell.set.mark(slot);
                wake::ring(&bell.armed, event.as_fd());
            }
        }
    }

    pub fn bell(&mut self, process: u32, event: OwnedFd) -> Reply {
        let bell = (0..).find(|n| !self.bells.contains_key(n)).unwrap();
        self.bells.insert(bell, (process, event));
        Reply::Bell { bell }
    }

    pub fn fork(&mut self, parent: u32, child: u32) {
        for (slot, socket) in &mut self.sockets {
            let record = self.arena.slot(*slot).unwrap();
            if record.owner.load(SeqCst) == parent && socket.holders.is_empty() {
                socket.holders.push(parent);
            }
            if socket.holders.contains(&parent) {
                socket.holders.push(child);
                record.holders.store(socket.holders.len() as u32, SeqCst);
            }
        }
    }

    pub fn pass(&mut self, process: u32, slot: u32, carrier: u32) -> Reply {
        let record = self.arena.slot(slot).unwrap();
        let Some(socket) = self.sockets.get_mut(&slot) else { return refused(libc::EBADF) };
        if record.owner.load(SeqCst) == process && socket.holders.is_empty() {
            socket.holders.push(process);
        }
        if !socket.holders.contains(&process) {
            return refused(libc::EBADF);
        }
        socket.holders.push(carrier);
        self.show_holders(slot);
        Reply::Passed { ticket: carrier.into() }
    }

    fn show_holders(&self, slot: u32) {
        let Some(socket) = self.sockets.get(&slot) else { return };
        let record = self.arena.slot(slot).unwrap();
        record.holders.store(socket.holders.len() as u32, SeqCst);
        if let [last] = socket.holders[..] {
            record.owner.store(last, SeqCst);
        }
    }

    pub fn process_gone(&mut self, process: u32) {
        // What it asked for before it ended comes first.
        self.work();
        self.threads.retain(|_, owner| *owner != process);
        self.bells.retain(|_, (owner, _)| *owner != process);
        let died = !self.executing.remove(&process);
        let slots: Vec<_> = self.sockets.keys().copied().collect();
        for slot in slots {
            let record = self.arena.slot(slot).unwrap();
            let Some(socket) = self.sockets.get(&slot).filter(|socket| !socket.closing) else { continue };
            if socket.holders.is_empty() && record.owner.load(SeqCst) == process {
                self.end(slot, died);
                continue;
            }
            // It may hold one several times.
            let times = socket.holders.iter().filter(|holder| **holder == process).count();
            (0..times).for_each(|_| self.release(process, slot));
        }
    }

    fn release(&mut self, process: u32, slot: u32) {
        let Some(socket) = self.sockets.get_mut(&slot) else { return };
        let Some(place) = socket.holders.iter().position(|holder| *holder == process) else { return };
        socket.holders.swap_remove(place);
        let is_over = socket.holders.is_empty();
        self.show_holders(slot);
        if is_over {
            let record = self.arena.slot(slot).unwrap();
            let unread = record.rx_write.load(SeqCst) != record.rx_read.load(SeqCst);
            self.end(slot, unread);
        }
    }

    /// The last holder let go.
    fn end(&mut self, slot: u32, abort: bool) {
        let Some(socket) = self.sockets.get_mut(&slot) else { return };
        if socket.other.is_none() {
            return self.remove(slot);
        }
        socket.closing = true;
        if abort {
            self.seen.aborted.fetch_add(1, SeqCst);
            let other = socket.other;
            self.part(slot);
            if let Some(other) = other {
                self.fail(other, libc::ECONNRESET);
            }
        } else {
            self.flow(slot);
        }
    }

    fn part(&mut self, slot: u32) {
        if let Some(other) = self.sockets.get_mut(&slot).and_then(|s| s.other.take())
            && let Some(other) = self.sockets.get_mut(&other)
        {
            other.other = None;
        }
        self.remove(slot);
    }

    /// Takes what the doorbells announce.
    pub fn work(&mut self) {
        let mut marked = Vec::new();
        [0, 1]
            .iter()
            .for_each(|domain| self.arena.doorbell(*domain).unwrap().set.take(|slot| marked.push(slot)));
        for slot in marked {
            let asked = self.arena.slot(slot).unwrap().request.swap(0, SeqCst);
            if asked & request::INFO != 0 {
                let info = &self.arena.slot(slot).unwrap().info;
                info.fetch_add(1, SeqCst);
                wake::wake(info, i32::MAX);
            }
            if asked & request::TAKEN != 0 {
                self.seen.taken.fetch_add(1, SeqCst);
            }
            if asked & request::CLOSE != 0 {
                self.end(slot, asked & request::ABORT != 0);
                continue;
            }
            if asked & request::SHUT_WRITE != 0
                && let Some(socket) = self.sockets.get_mut(&slot)
            {
                socket.finished = true;
            }
            self.flow(slot);
            if let Some(other) = self.sockets.get(&slot).and_then(|s| s.other) {
                self.flow(other);
            }
        }
    }

    /// Moves what a socket has sent.
    fn flow(&mut self, slot: u32) {
        let Some(socket) = self.sockets.get(&slot) else { return };
        if socket.kind == Kind::Datagram {
            return self.flow_datagrams(slot);
        }
        let (finished, closing) = (socket.finished, socket.closing);
        let Some(other) = socket.other else { return };
        let arena = self.arena.clone();
        let (from, to) = (arena.slot(slot).unwrap(), arena.slot(other).unwrap());
        let (read, write) = (from.tx_read.load(SeqCst), to.rx_write.load(SeqCst));
        let there = used(from.tx_write.load(SeqCst), read, RING);
        let room = free(write, to.rx_read.load(SeqCst), RING);
        let n = there.min(room);
        let mut bytes = vec![0; n as usize];
        send_ring(&arena, from).read(read, &mut bytes);
        receive_ring(&arena, to).write(write, &bytes);
        to.rx_note.store(if there > room { RING / 2 } else { 0 }, SeqCst);
        to.rx_write.store(write.wrapping_add(n), SeqCst);
        from.tx_read.store(read.wrapping_add(n), SeqCst);
        // Room that was made before the note could be seen is used now.
        let room_now = free(to.rx_write.load(SeqCst), to.rx_read.load(SeqCst), RING);
        if there > n && room_now >= RING / 2 {
            self.flow(slot);
        }
        let mut news = n > 0;
        if there == n && (finished || closing) && to.status.load(SeqCst) & status::PEER_FIN == 0 {
            to.status.fetch_or(status::PEER_FIN | status::FIN_CAME, SeqCst);
            news = true;
        }
        if news {
            self.tell(other, true, false);
            if !closing {
                self.tell(slot, false, true);
            }
        }
        if there == n && closing && self.sockets.get(&other).is_some_and(|other| other.closing) {
            self.part(slot);
            self.remove(other);
        } else if there == n && closing && to.status.load(SeqCst) & status::FAILED != 0 {
            self.part(slot);
        }
    }

    fn flow_datagrams(&mut self, slot: u32) {
        let arena = self.arena.clone();
        let from = arena.slot(slot).unwrap();
        loop {
            let read = from.tx_read.load(SeqCst);
            let there = used(from.tx_write.load(SeqCst), read, RING);
            let bytes = send_ring(&arena, from);
            let Some((datagram, at, next)) = pop_datagram(bytes, read, there) else { break };
            let data = bytes.peek(at, datagram.len as usize).concat();
            from.tx_read.store(next, SeqCst);
            let each = if datagram.segment > 0 { datagram.segment.into() } else { data.len().max(1) };
            let all = data.chunks(each).chain(data.is_empty().then_some(&[][..]));
            all.for_each(|data| self.deliver(slot, datagram.peer, data));
            self.tell(slot, false, true);
        }
    }

    fn deliver(&mut self, from: u32, peer: SocketAddr, data: &[u8]) {
        let scout = self.sockets[&from].local.port() == 9;
        let source = SocketAddr::new(HERE.into(), self.sockets[&from].local.port());
        let to = self.sockets.iter().find_map(|(slot, s)| {
            let heard = s.peer.is_none_or(|peer| peer == source);
            let its = s.kind == Kind::Datagram && s.local.port() == peer.port() && heard;
            (its && !scout).then_some(*slot)
        });
        let Some(to) = to.or(scout.then_some(from)) else {
            self.arena.slot(from).unwrap().error.store(libc::ECONNREFUSED.unsigned_abs(), SeqCst);
            return self.tell(from, true, true);
        };
        let record = self.arena.slot(to).unwrap();
        let write = record.rx_write.load(SeqCst);
        let room = free(write, record.rx_read.load(SeqCst), RING);
        let bytes = receive_ring(&self.arena, record);
        let service = self.arena.slot(from).unwrap().service.load(SeqCst) as u8;
        let way = Way { hops: HOPS, service };
        let wanted = record.options.load(SeqCst) & option::DETAILS != 0;
        let details = wanted.then(|| Details { at: monotonic(), to: HERE.into(), interface: 0 });
        let received = Received { peer: source, way, details };
        if let Some(next) = push_received(bytes, write, room, &received, &[data]) {
            record.rx_write.store(next, SeqCst);
            self.tell(to, true, false);
        }
    }
}

/// What a program has written, asked for after how much that is.
fn send_ring<'a>(arena: &'a Arena, slot: &Slot) -> Bytes<'a> {
    arena.ring(slot.tx_place.load(SeqCst), RING).unwrap().beginning_at(slot.tx_first.load(SeqCst))
}

/// Where to write for a program; from the start of the memory on, if it has read everything.
fn receive_ring<'a>(arena: &'a Arena, slot: &Slot) -> Bytes<'a> {
    let first = begin_ring(&slot.rx_first, slot.rx_write.load(SeqCst), &slot.rx_read);
    arena.ring(slot.rx_place.load(SeqCst), RING).unwrap().beginning_at(first)
}

/// `CLOCK_MONOTONIC`, ns.
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the structure it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
