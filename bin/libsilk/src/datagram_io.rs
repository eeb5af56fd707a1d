//! Datagrams: one record in the ring for each, whole or not at all. A socket that has never
//! been bound is decided by its first destination.

use crate::address::ANY;
use crate::arrived::Arrived;
use crate::control::Asked;
use crate::errno::Answer;
use crate::error_queue;
use crate::groups;
use crate::lanes;
use crate::own_turn::OwnTurn;
use crate::settings::flag;
use crate::socket::{Found, Socket, shape, shut};
use crate::state;
use crate::stream_io::{advance, ring};
use crate::thread;
use crate::vectors::Vectors;
use crate::wait::{self, Change, Deadline};
use crate::ways;
use crate::wishes;
use crate::writers_turn::WritersTurn;
use silk_stream::{Bytes, Datagram, Details, Sent, Slot, Way, option, pop_datagram, push_datagram};
use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// The most a UDP datagram over IPv4 carries (RFC 768, RFC 791).
const MOST: usize = 65_507;
/// Over IPv6, whose header does not count (RFC 8200 §3).
pub const MOST6: usize = 65_527;

/// The most datagrams that are received at once, as Linux has it.
const COALESCED: usize = 64;
/// Linux's `UDP_MAX_SEGMENTS`: the most that are sent at once.
const SEGMENTS: usize = 128;

/// Receives one datagram.
///
/// # Errors
/// As `recvfrom(2)`.
pub fn receive(socket: &Found, into: &Vectors, flags: c_int) -> Answer<Arrived> {
    if flags & libc::MSG_ERRQUEUE != 0 {
        return error_queue::take(socket, into);
    }
    let mut deadline = None;
    loop {
        let slot = socket.slot()?;
        // As in Linux it is told of before what has come.
        if let Some(errno) = state::take_error(slot) {
            return Err(errno);
        }
        if let Some(arrived) = take(socket, into, flags)? {
            return Ok(arrived);
        }
        // Only who would wait hears that it is shut down.
        if deadline.is_none() && socket.is_nonblocking(flags) {
            return Err(libc::EAGAIN);
        }
        if socket.shut.load(Relaxed) & shut::READ != 0 {
            let way = Way::default();
            return Ok(Arrived {
                copied: 0,
                whole: 0,
                peer: None,
                segment: 0,
                way,
                details: None,
                error: None,
            });
        }
        let limit = *deadline.get_or_insert_with(|| Deadline::after(socket.settings.receive_limit()));
        sleep(socket, slot, limit)?;
    }
}

/// Whether who receives is told something.
fn has_news(socket: &Found, slot: &Slot) -> bool {
    lanes::have_any(slot) || state::has_error(slot) || socket.shut.load(SeqCst) & shut::READ != 0
}

fn sleep(socket: &Found, slot: &Slot, limit: Deadline) -> Answer<()> {
    thread::name_sleeper(true, [slot]);
    wait::sleep(socket, slot, Change::Readable(1), limit, |slot| has_news(socket, slot))
}

/// Waits until who receives is told something.
///
/// # Errors
/// `EAGAIN` when the time is up; `EINTR`; `EBADF` where it is closed meanwhile.
pub fn until_news(socket: &Found, limit: Deadline) -> Answer<()> {
    while !has_news(socket, socket.slot()?) {
        sleep(socket, socket.slot()?, limit)?;
    }
    Ok(())
}

fn take(socket: &Found, into: &Vectors, flags: c_int) -> Answer<Option<Arrived>> {
    let _turn = OwnTurn::reading(socket);
    // Who closes it waits from here on.
    let own = socket.slot()?;
    loop {
        let peeks = flags & libc::MSG_PEEK != 0;
        let first = if peeks { lanes::first_to_look_at } else { lanes::first_to_read };
        let (number, slot) = first(socket, own);
        let there = state::arrived(slot);
        if there == 0 {
            return Ok(None);
        }
        lanes::follow(own, slot);
        let ring = state::receive_ring(slot)?;
        let read = slot.rx_read.load(Relaxed);
        let popped = pop_datagram(ring, read, there);
        let (mut arrived, mut next) = (None, slot.rx_write.load(Acquire));
        // What is not one of the daemon's records: the ring is emptied.
        if let Some((datagram, at, behind)) = popped {
            lanes::note(socket, datagram.peer, number);
            let (one, end) = (take_one(datagram, (ring, at), into), read.wrapping_add(there));
            let coalesces =
                socket.settings.has_flag(flag::COALESCE) && one.whole > 0 && one.copied == one.whole;
            next = behind;
            let one = arrived.insert(one);
            if coalesces {
                next = take_more(one, ring, (next, end), into);
            }
        }
        let is_whole = if peeks && arrived.is_some() {
            slot.rx_read.load(Relaxed) == read
        } else {
            advance(number, slot, read, next)
        };
        // As for a byte stream, a signal's handler may have received in the middle of this.
        if is_whole {
            return Ok(arrived);
        }
    }
}

/// Copies one datagram that lies in the ring.
fn take_one(datagram: Datagram, (ring, at): (Bytes<'_>, u32), into: &Vectors) -> Arrived {
    let whole = datagram.len as usize;
    let copied = whole.min(into.total());
    into.fill(0, copied, ring, at);
    let Datagram { peer, way, details, .. } = datagram;
    Arrived { copied, whole, peer: Some(peer), segment: 0, way, details, error: None }
}

/// Takes the datagrams behind the first that are from its sender, came where and as it did and are as long, and one
/// shorter at last, as far as they fit (`UDP_GRO`); the read index behind them.
fn take_more(arrived: &mut Arrived, ring: Bytes<'_>, (mut next, end): (u32, u32), into: &Vectors) -> u32 {
    let size = arrived.whole;
    for _ in 1..COALESCED {
        let Some((more, at, behind)) = pop_datagram(ring, next, end.wrapping_sub(next)) else { break };
        let len = more.len as usize;
        let room = into.total().min(MOST) - arrived.copied;
        let alike = (Some(more.peer), more.way, place(more.details))
            == (arrived.peer, arrived.way, place(arrived.details));
        if !alike || len == 0 || len > size || len > room {
            break;
        }
        into.fill(arrived.copied, len, ring, at);
        arrived.copied += len;
        (next, arrived.segment) = (behind, size as u32);
        if len < size {
            break;
        }
    }
    arrived.whole = arrived.copied;
    next
}

/// Where a datagram came in, as far as the program has asked for it.
fn place(details: Option<Details>) -> Option<(IpAddr, u32)> {
    details.map(|details| (details.to, details.interface))
}

/// Whether what is sent to `peer`, or to whom the socket is connected, may be urgent (`MSG_OOB`), if it is: Linux takes no
/// notice of that over IPv6.
///
/// # Errors
/// `EOPNOTSUPP` over IPv4; over IPv6 what else is wrong.
pub fn may_be_urgent(socket: &Socket, peer: Option<SocketAddr>, flags: c_int) -> Answer<()> {
    let is_urgent = flags & libc::MSG_OOB != 0;
    if is_urgent && (!socket.is(shape::INET6) || destination(socket, socket.slot()?, peer)?.is_ipv4()) {
        return Err(libc::EOPNOTSUPP);
    }
    Ok(())
}

/// Whether a datagram for `peer`, or for whom the socket is connected, may begin.
///
/// # Errors
/// As `sendto(2)`.
pub fn may_begin(socket: &Socket, peer: Option<SocketAddr>) -> Answer<()> {
    let slot = socket.slot()?;
    let to = destination(socket, slot, peer)?;
    some_way_leads(socket, to)?;
    if may_send_to(socket, to) { is_open(socket, slot) } else { Err(libc::EACCES) }
}

/// Sends one datagram, to `peer` or to whom the socket is connected; or several, of `segment` bytes
/// each, where that or `UDP_SEGMENT` says so.
///
/// # Errors
/// As `sendto(2)`.
pub fn send(socket: &Found, from: &Vectors, peer: Option<SocketAddr>, asked: Asked, flags: c_int) -> Answer {
    send_with(socket, from.total(), (peer, asked), flags, |sent| put(socket, from, sent))
}

/// Waits until a datagram of `len` bytes may leave and has room, as [`send`] does: for who takes the bytes from
/// where they cannot be put back.
///
/// # Errors
/// As [`send`].
pub fn until_room(socket: &Found, len: usize, to: (Option<SocketAddr>, Asked), flags: c_int) -> Answer<()> {
    let sent = send_with(socket, len, to, flags, |sent| {
        let room = state::writable(socket.slot()?);
        Ok(if room >= sent.space(len as u32) { Ok(()) } else { Err(0) })
    });
    sent.map(drop)
}

/// Sends `total` bytes by `put`, which is called when they may leave, and again when there may be room. As
/// [`put()`] it says how much is claimed of what there is not enough of.
fn send_with(
    socket: &Found,
    total: usize,
    (peer, asked): (Option<SocketAddr>, Asked),
    flags: c_int,
    put: impl Fn(&Sent) -> Answer<Result<(), u32>>,
) -> Answer {
    let segment = segment_of(socket, asked.segment);
    let mut deadline = None;
    loop {
        let slot = socket.slot()?;
        may_be_urgent(socket, peer, flags)?;
        let to = destination(socket, slot, peer)?;
        // Linux looks at the length first over IPv4, and at the way over IPv6.
        let six = to.is_ipv6();
        let too_long = total > if six { MOST6 } else { MOST };
        if too_long && !six {
            return Err(libc::EMSGSIZE);
        }
        some_way_leads(socket, to)?;
        if too_long {
            return Err(libc::EMSGSIZE);
        }
        if !may_send_to(socket, to) {
            return Err(libc::EACCES);
        }
        let segment = fits(socket, slot, to, total, segment)?;
        is_open(socket, slot)?;
        if segment > 0 && total > usize::from(segment) * SEGMENTS {
            return Err(libc::EINVAL);
        }
        // What the socket has now: options that are set later are not for it.
        let usual = || socket.settings.service_over(to.is_ipv6()).load(Relaxed) as u8;
        let service = asked.service.unwrap_or_else(usual);
        let way = Way { hops: asked.hops.unwrap_or(0), service };
        let source = source(slot, to, asked.source)?;
        let sent = Sent { peer: to, way, segment, from: source };
        let claimed = match put(&sent)? {
            Ok(()) => return Ok(total),
            Err(claimed) => claimed,
        };
        let has_room = |slot: &Slot, space: u32| state::writable(slot).saturating_sub(claimed) >= space;
        let space = sent.space(total as u32);
        if space > slot.tx_size.load(Relaxed) {
            return Err(libc::EMSGSIZE);
        }
        if deadline.is_none() && socket.is_nonblocking(flags) {
            socket.starved.fetch_add(1, Relaxed);
            wait::announce(slot, Change::Writable(state::worthwhile(slot)));
            if has_room(slot, space) {
                continue;
            }
            return Err(libc::EAGAIN);
        }
        let limit = *deadline.get_or_insert_with(|| Deadline::after(socket.settings.send_limit()));
        let ready = |slot: &Slot| has_room(slot, space) || state::has_error(slot);
        wait::sleep(socket, slot, Change::Writable(space), limit, ready)?;
    }
}

/// Whether what is sent may leave: Linux looks at that where it takes memory for a datagram, and raises no signal.
fn is_open(socket: &Socket, slot: &Slot) -> Answer<()> {
    match state::take_error(slot) {
        Some(errno) => Err(errno),
        None if socket.shut.load(Relaxed) & shut::WRITE != 0 => Err(libc::EPIPE),
        None => Ok(()),
    }
}

/// Into datagrams of how many bytes what is sent is to be cut; 0: it is one.
fn segment_of(socket: &Socket, asked: Option<u16>) -> u16 {
    let set = || u16::try_from(socket.settings.segment.load(Relaxed)).unwrap_or(0);
    asked.unwrap_or_else(set)
}

/// Whether `total` bytes to `to` may leave, cut into datagrams of `segment` bytes, which are never cut
/// up further. What is left of `segment`: nothing where there is nothing to cut.
fn fits(socket: &Socket, slot: &Slot, to: SocketAddr, total: usize, segment: u16) -> Answer<u16> {
    let each = if segment == 0 { total } else { total.min(segment.into()) };
    let mtu = wishes::most_of_packet(socket, slot, to.is_ipv6(), segment > 0);
    if each + wishes::headers(to.is_ipv6()) > mtu {
        error_queue::refused(socket, to, mtu);
        return Err(libc::EMSGSIZE);
    }
    Ok(if total > segment.into() { segment } else { 0 })
}

/// The address that a datagram to `to` leaves from, if the program has asked for one. The paths of a socket that is bound to one
/// have that, unless it is a group's, or everyone's.
fn source(slot: &Slot, to: SocketAddr, asked: Option<IpAddr>) -> Answer<Option<IpAddr>> {
    let Some(asked) = asked else { return Ok(None) };
    let local = crate::address::shared(&slot.local);
    let own = local.ip().to_canonical();
    let several = own.is_unspecified()
        || own.is_multicast()
        || groups::is_broadcast(SocketAddr::new(own, local.port()));
    let fits = asked.is_ipv4() == to.ip().to_canonical().is_ipv4();
    if fits && (several || own == asked) { Ok(Some(asked)) } else { Err(libc::EINVAL) }
}

/// Whether the program has asked for leave to speak with everyone, if it wants to (`SO_BROADCAST`).
pub fn may_send_to(socket: &Socket, to: SocketAddr) -> bool {
    let asked = socket.settings.stream.load(Relaxed) & option::BROADCAST != 0;
    asked || socket.is(shape::SCOUT) || !groups::is_broadcast(to)
}

/// Whether anybody knows where that is; a path of `PF_SCOUT` does.
fn some_way_leads(socket: &Socket, to: SocketAddr) -> Answer<()> {
    if socket.is(shape::SCOUT) {
        return Ok(());
    }
    speaks_its_ip(socket, to)?;
    ways::lead_to(to)
}

/// Whether a socket may speak with somebody at an address of that IP: as on Linux, one of IPv6 that is connected over
/// IPv4 has to do with that alone.
///
/// # Errors
/// `EAFNOSUPPORT`: it may not.
pub fn speaks_its_ip(socket: &Socket, to: SocketAddr) -> Answer<()> {
    let is_four = |end: SocketAddr| end.ip().to_canonical().is_ipv4();
    if is_four(to) || !socket.is(shape::CONNECTED) {
        return Ok(());
    }
    let over_four = is_four(crate::address::shared(&socket.slot()?.peer));
    if over_four { Err(libc::EAFNOSUPPORT) } else { Ok(()) }
}

/// Whether a datagram has somebody to go to: what is looked at before what else is asked for it.
///
/// # Errors
/// As `sendto(2)`.
pub fn is_for_somebody(socket: &Socket, peer: Option<SocketAddr>) -> Answer<()> {
    destination(socket, socket.slot()?, peer).map(drop)
}

/// Whether a socket can send to `peer` at all, wherever that is.
///
/// # Errors
/// As `sendto(2)`.
pub fn may_be_told(socket: &Socket, peer: SocketAddr) -> Answer<()> {
    match peer {
        SocketAddr::V6(_) if !socket.is(shape::INET6) => Err(libc::EAFNOSUPPORT),
        // A socket that is bound to one address of IPv6 is such a one too.
        SocketAddr::V4(_) if socket.settings.has_flag(flag::ONLY_INET6) => Err(libc::ENETUNREACH),
        _ if peer.port() == 0 && !socket.is(shape::SCOUT) => Err(libc::EINVAL),
        _ => Ok(()),
    }
}

fn destination(socket: &Socket, slot: &Slot, peer: Option<SocketAddr>) -> Answer<SocketAddr> {
    match peer {
        Some(peer) => may_be_told(socket, peer).map(|()| peer),
        None if socket.is(shape::SCOUT) => Ok(ANY),
        None if socket.is(shape::CONNECTED) => Ok(crate::address::shared(&slot.peer)),
        None => Err(libc::EDESTADDRREQ),
    }
}

/// Bytes after which a raised thread lets its path's executor run, which has its priority: the first are on their way then while the
/// next are made.
const PORTION: u32 = 24 << 10;

/// Writes the record; where there is no room, so many bytes of what there is are claimed by what a signal's handler, the caller, has
/// interrupted.
fn put(socket: &Found, from: &Vectors, sent: &Sent) -> Answer<Result<(), u32>> {
    if let Some(lane) = lanes::to(socket, socket.slot()?, sent.peer)
        && lanes::send(socket, lane, sent, from)
    {
        give_way(lane.1);
        return Ok(Ok(()));
    }
    let turn = WritersTurn::take(socket)?;
    let slot = turn.slot();
    let space = sent.space(from.total() as u32);
    let fits =
        |claimed| (state::writable(slot).saturating_sub(claimed) >= space).then_some(space).ok_or(claimed);
    let claim = match turn.claim(fits) {
        Ok(claim) => claim,
        Err(claimed) => return Ok(Err(claimed)),
    };
    let push = |bytes| push_datagram(bytes, claim.at, space, sent, &from.slices()).is_some();
    let placed = state::send_ring(slot).map(push);
    claim.publish(if placed == Ok(true) { space } else { 0 });
    ring(socket, slot);
    drop(turn);
    give_way(slot);
    placed.map(|is_placed| is_placed.then_some(()).ok_or(0))
}

/// A raised thread lets its path's executor run where much waits for it.
fn give_way(slot: &Slot) {
    if state::unsent(slot) >= PORTION && thread::is_raised() {
        std::thread::yield_now();
    }
}
