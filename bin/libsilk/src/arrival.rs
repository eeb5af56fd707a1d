//! What `recvmsg` tells of how a datagram arrived, to a program that has asked for it: when, its
//! address here, its hops and its service bits. What is asked of one version of IP is told of its datagrams
//! alone, as Linux has it.

use crate::address;
use crate::arrived::Arrived;
use crate::clock;
use crate::control::Telling;
use crate::errno::Answer;
use crate::groups;
use crate::settings::flag;
use crate::socket::{Socket, shape};
use crate::wishes;
use silk_stream::Slot;
use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far apart two looks at a clock are at most, when nothing comes between.
const AT_ONCE: Duration = Duration::from_micros(2);
/// How often the clocks are read again.
const CLOCKS: u32 = 4;

/// What a program can ask for here.
const ANYTHING: u32 =
    flag::TELL_TTL | flag::TELL_SERVICE | flag::TELL_HOPS | flag::TELL_CLASS | flag::OF_DETAILS;

/// Tells what Linux tells first: when it arrived. Where it came before the program asked, now.
pub fn tell_time(socket: &Socket, got: &Arrived, telling: &mut Telling<'_>) {
    let settings = &socket.settings;
    if !settings.has_flag(flag::TELL_TIME) {
        return;
    }
    let (wall, now) = clocks();
    let at = got.details.map_or(now, |details| Duration::from_nanos(details.at));
    let time = wall.saturating_sub(now.saturating_sub(at));
    let seconds = time.as_secs().cast_signed();
    if settings.has_flag(flag::TELL_NANOS) {
        let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
        telling.put(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, time);
    } else {
        let time = libc::timeval { tv_sec: seconds, tv_usec: time.subsec_micros().into() };
        telling.put(libc::SOL_SOCKET, libc::SCM_TIMESTAMP, time);
    }
}

/// What time it is, and what `CLOCK_MONOTONIC` says then: the daemon knows only that one. Read again
/// where something came between.
fn clocks() -> (Duration, Duration) {
    let mut before = clock::now();
    for _ in 0..CLOCKS {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = clock::now();
        if now.saturating_sub(before) < AT_ONCE {
            return (wall, now);
        }
        before = now;
    }
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), clock::now())
}

/// Tells the rest that the program has asked for, in Linux's order.
///
/// # Errors
/// As [`Socket::slot`].
pub fn tell(socket: &Socket, got: &Arrived, telling: &mut Telling<'_>) -> Answer<()> {
    let asked = socket.settings.flags.load(Relaxed);
    if asked & ANYTHING == 0 {
        return Ok(());
    }
    if asked & (flag::PACKET_INFO | flag::PACKET_INFO6) != 0 {
        packet_info(socket, got, telling)?;
    }
    way(asked, got, telling);
    target(socket, asked, got, telling)
}

/// The address and the port that the datagram was sent to.
fn target(socket: &Socket, asked: u32, got: &Arrived, telling: &mut Telling<'_>) -> Answer<()> {
    if asked & (flag::TELL_TARGET | flag::TELL_TARGET6) == 0 {
        return Ok(());
    }
    let slot = socket.slot()?;
    let to = SocketAddr::new(destination(slot, got), address::shared(&slot.local).port());
    let (bytes, _) = address::bytes(to, !got.is_over_four());
    if !got.is_over_four() {
        if asked & flag::TELL_TARGET6 != 0 {
            telling.put(libc::IPPROTO_IPV6, libc::IPV6_ORIGDSTADDR, bytes);
        }
    } else if asked & flag::TELL_TARGET != 0
        && let Some(bytes) = bytes.first_chunk::<{ size_of::<libc::sockaddr_in>() }>()
    {
        telling.put(libc::IPPROTO_IP, libc::IP_ORIGDSTADDR, *bytes);
    }
    Ok(())
}

/// The hops that were left and the service bits, where anybody knows them.
fn way(asked: u32, got: &Arrived, telling: &mut Telling<'_>) {
    let (hops, service) = (got.way.hops, got.way.service);
    if hops == 0 {
        return;
    }
    let has = |bit: u32| asked & bit != 0;
    if got.is_over_four() {
        if has(flag::TELL_TTL) {
            telling.put(libc::IPPROTO_IP, libc::IP_TTL, c_int::from(hops));
        }
        if has(flag::TELL_SERVICE) {
            // One byte, unlike all the others.
            telling.put(libc::IPPROTO_IP, libc::IP_TOS, service);
        }
    } else {
        if has(flag::TELL_HOPS) {
            telling.put(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, c_int::from(hops));
        }
        if has(flag::TELL_CLASS) {
            telling.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, c_int::from(service));
        }
    }
}

/// Says where a datagram was sent to (`IP_PKTINFO`), over which interface, and from where it is to be
/// answered.
fn packet_info(socket: &Socket, got: &Arrived, telling: &mut Telling<'_>) -> Answer<()> {
    let told = got.details.map(|details| details.interface).filter(|interface| *interface != 0);
    let interface = told.unwrap_or_else(|| wishes::usual().map_or(0, |usual| usual.interface()));
    let to = destination(socket.slot()?, got);
    if socket.settings.has_flag(flag::PACKET_INFO6) && socket.is(shape::INET6) {
        let wide = match to {
            IpAddr::V4(to) => to.to_ipv6_mapped(),
            IpAddr::V6(to) => to,
        };
        let address = libc::in6_addr { s6_addr: wide.octets() };
        let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: interface };
        telling.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
    }
    if let IpAddr::V4(v4) = to.to_canonical()
        && socket.settings.has_flag(flag::PACKET_INFO)
        && got.is_over_four()
    {
        let everyone = v4.is_multicast() || groups::is_broadcast(SocketAddr::new(v4.into(), 0));
        let own = if everyone { ours() } else { v4 };
        let [own, to] = [own, v4].map(|address| libc::in_addr { s_addr: u32::from(address).to_be() });
        let interface = interface.cast_signed();
        let info = libc::in_pktinfo { ipi_ifindex: interface, ipi_spec_dst: own, ipi_addr: to };
        telling.put(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
    }
    Ok(())
}

/// The address that a datagram was sent to; where nobody knows it, the socket's or silk's.
fn destination(slot: &Slot, got: &Arrived) -> IpAddr {
    let told = got.details.map(|details| details.to).filter(|to| !to.is_unspecified());
    told.unwrap_or_else(|| match address::shared(&slot.local).ip() {
        any if any.is_unspecified() && got.is_over_four() => ours().into(),
        local => local,
    })
}

/// Silk's address of IPv4, the first of them.
fn ours() -> Ipv4Addr {
    wishes::usual().map_or(0, |usual| usual.address.load(Relaxed)).into()
}
