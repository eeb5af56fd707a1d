//! What `recvmsg` tells of how a datagram arrived, to a program that has asked for it: its address
//! here, its hops and its service bits. What is asked of one version of IP is told of its datagrams
//! alone, as Linux has it.

use crate::address;
use crate::control::Telling;
use crate::datagram_io::Arrived;
use crate::errno::Answer;
use crate::settings::flag;
use crate::socket::{Socket, shape};
use crate::wishes;
use silk_stream::Usual;
use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What a program can ask for here.
const ANYTHING: u32 =
    flag::PACKET_INFO | flag::TELL_TTL | flag::TELL_SERVICE | flag::TELL_HOPS | flag::TELL_CLASS;

/// Tells what the program has asked for, in Linux's order.
///
/// # Errors
/// As [`Socket::slot`].
pub fn tell(socket: &Socket, got: &Arrived, telling: &mut Telling<'_>) -> Answer<()> {
    let asked = socket.settings.flags.load(Relaxed);
    if asked & ANYTHING == 0 {
        return Ok(());
    }
    if asked & flag::PACKET_INFO != 0 {
        packet_info(socket, telling)?;
    }
    way(asked, got, telling);
    Ok(())
}

/// The hops that were left and the service bits, where anybody knows them.
fn way(asked: u32, got: &Arrived, telling: &mut Telling<'_>) {
    let (hops, service) = (got.way.hops, got.way.service);
    if hops == 0 {
        return;
    }
    let has = |bit: u32| asked & bit != 0;
    if got.peer.is_ipv4() {
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

/// Says where a datagram arrived (`IP_PKTINFO`): at the socket's own address, or silk's, over silk's
/// interface.
fn packet_info(socket: &Socket, telling: &mut Telling<'_>) -> Answer<()> {
    let usual = wishes::usual();
    let known = |pick: fn(&Usual) -> &AtomicU32| usual.map_or(0, |usual| pick(usual).load(Relaxed));
    let interface = known(|usual| &usual.interface);
    let local = match address::shared(&socket.slot()?.local).ip() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::from(known(|usual| &usual.address)).into(),
        local => local,
    };
    let v6 = socket.is(shape::INET6);
    let (v4, wide) = match local {
        IpAddr::V4(local) => (local, local.to_ipv6_mapped()),
        IpAddr::V6(_) if !v6 => return Ok(()),
        IpAddr::V6(local) => (Ipv4Addr::UNSPECIFIED, local),
    };
    if v6 {
        let address = libc::in6_addr { s6_addr: wide.octets() };
        let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: interface };
        telling.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
    } else {
        let address = libc::in_addr { s_addr: u32::from(v4).to_be() };
        let interface = interface.cast_signed();
        let info = libc::in_pktinfo { ipi_ifindex: interface, ipi_spec_dst: address, ipi_addr: address };
        telling.put(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
    }
    Ok(())
}
