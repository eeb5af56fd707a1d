//! `getsockopt` and `setsockopt`. What concerns the path is kept, passed on to the daemon and
//! answered from its slot; what has no meaning here goes to the kernel's part of the socket,
//! so that it reads back as it was set, and is told loudly.

mod foreign;
mod handing_over;
mod kept;
mod linux_alone;
mod passed_on;
mod told;
mod undecided;
mod values;

use crate::control;
use crate::cork;
use crate::epoll;
use crate::errno::{Answer, check};
use crate::family;
use crate::groups;
use crate::listener;
use crate::naming_turn::NamingTurn;
use crate::option_names;
use crate::real;
use crate::settings::flag;
use crate::shared::Alteration;
use crate::socket::{Found, Role, Socket, shape};
use crate::state;
use crate::unserved;
use crate::wait;
use crate::wishes;
use libc::socklen_t;
use silk_control::{Kind, Reply, Request, SILK_PRIORITY, SOL_SILK};
use silk_stream::{named, option, request};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Of `<linux/udp.h>`; the libc crate does not have it.
const UDP_CORK: c_int = 1;
/// Of `<linux/in6.h>`; the libc crate does not have it.
const IPV6_MULTICAST_ALL: c_int = 29;
/// Of `<linux/tcp.h>`; the libc crate does not have it.
const TCP_CC_INFO: c_int = 26;

pub use foreign::{has_foreign, inherit_foreign, note_foreign, tell_foreign};
pub use handing_over::hand_over;
use kept::remember;
use linux_alone::{Alone, alone, set_to};
use passed_on::lets_go;
pub use passed_on::{pass_on, pass_on_all, pass_on_to_listen};
pub use told::get;
pub use undecided::set_early;
use values::input;

/// Where an option that the library knows is kept.
enum Place<'a> {
    /// A bit of [`crate::settings::Settings::flags`].
    Flag(u32),
    /// A bit of the slot's options.
    Stream(u32),
    /// A number.
    Number(&'a AtomicU32),
    /// `SO_LINGER`.
    Linger,
    /// A time-out.
    Time(&'a AtomicU32),
    /// A word of the wishes that is a number.
    Wish(usize),
    /// `IP_MULTICAST_IF`, or `IPV6_MULTICAST_IF`.
    GroupLink,
    /// `TCP_CONGESTION`.
    Congestion,
    /// `SO_MAX_PACING_RATE`.
    PacingRate,
    /// `SO_TIMESTAMP`, or `SO_TIMESTAMPNS`.
    Arrival { nanos: bool },
}

fn place(socket: &Socket, level: c_int, name: c_int) -> Option<Place<'_>> {
    let settings = &socket.settings;
    let v6 = socket.is(shape::INET6);
    Some(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => Place::Flag(flag::REUSE_ADDRESS),
        (libc::SOL_SOCKET, libc::SO_REUSEPORT) => Place::Flag(flag::REUSE_PORT),
        (libc::SOL_SOCKET, libc::SO_OOBINLINE) => Place::Stream(option::URGENT_INLINE),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) if v6 => Place::Flag(flag::ONLY_INET6),
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => Place::Flag(flag::PACKET_INFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) if v6 => Place::Flag(flag::PACKET_INFO6),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMP) if is_udp(socket) => Place::Arrival { nanos: false },
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) if is_udp(socket) => Place::Arrival { nanos: true },
        (libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR) if is_udp(socket) => Place::Flag(flag::TELL_TARGET),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVORIGDSTADDR) if v6 && is_udp(socket) => {
            Place::Flag(flag::TELL_TARGET6)
        }
        (libc::IPPROTO_IP, libc::IP_RECVTTL) if is_udp(socket) => Place::Flag(flag::TELL_TTL),
        (libc::IPPROTO_IP, libc::IP_RECVTOS) if is_udp(socket) => Place::Flag(flag::TELL_SERVICE),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT) if v6 && is_udp(socket) => Place::Flag(flag::TELL_HOPS),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS) if v6 && is_udp(socket) => Place::Flag(flag::TELL_CLASS),
        (control::UDP, UDP_CORK) if is_udp(socket) => Place::Flag(flag::CORK),
        (control::UDP, control::UDP_SEGMENT) if is_udp(socket) => Place::Number(&settings.segment),
        (control::UDP, control::UDP_GRO) if is_udp(socket) => Place::Flag(flag::COALESCE),
        (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP) => Place::Stream(option::NO_LOOP),
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP) if v6 => Place::Stream(option::NO_LOOP6),
        (libc::IPPROTO_IP, libc::IP_MULTICAST_IF) => Place::GroupLink,
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF) if v6 => Place::GroupLink,
        (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL) => Place::Stream(option::JOINED_ALONE),
        (libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL) if v6 => Place::Stream(option::JOINED_ALONE6),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => Place::Stream(option::KEEPALIVE),
        (libc::SOL_SOCKET, libc::SO_BROADCAST) => Place::Stream(option::BROADCAST),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => Place::Stream(option::NODELAY),
        (libc::IPPROTO_TCP, libc::TCP_CORK) => Place::Stream(option::CORK),
        (libc::IPPROTO_TCP, control::TCP_INQ) => Place::Flag(flag::TELL_LEFT),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => Place::Number(&settings.keep_idle),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => Place::Number(&settings.keep_interval),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => Place::Number(&settings.keep_count),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => Place::Number(&settings.defer_accept),
        (libc::IPPROTO_IP, libc::IP_TOS) => Place::Number(&settings.service),
        (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG) if v6 => Place::Flag(flag::WHOLE6),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if v6 => Place::Number(&settings.traffic_class),
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => Place::Number(&settings.receive_buffer),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => Place::Number(&settings.send_buffer),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => Place::Number(&settings.low_water),
        (libc::SOL_SOCKET, libc::SO_LINGER) => Place::Linger,
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => Place::Time(&settings.receive_timeout),
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => Place::Time(&settings.send_timeout),
        (libc::SOL_SOCKET, libc::SO_INCOMING_CPU) => Place::Number(&settings.incoming_cpu),
        (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) => Place::PacingRate,
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => Place::Congestion,
        (libc::IPPROTO_IPV6, _) if !v6 => return None,
        _ => return wishes::place(level, name).map(Place::Wish),
    })
}

/// Whether its datagrams are UDP's.
fn is_udp(socket: &Socket) -> bool {
    socket.is(shape::DATAGRAM) && !socket.is(shape::SCOUT)
}

/// Whether a bit of [`option`] says that an option is off, which it usually is not.
fn is_inverse(bit: u32) -> bool {
    matches!(bit, option::JOINED_ALONE | option::JOINED_ALONE6 | option::NO_LOOP | option::NO_LOOP6)
}

/// `setsockopt(2)` of a socket that silk serves; `fd` is its descriptor.
///
/// # Errors
/// As Linux; for what cannot be served the kernel's answer, or `ENOPROTOOPT` if the program
/// is strict.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn set(
    socket: &Found,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Answer<()> {
    if level == SOL_SILK {
        // SAFETY: as the caller promises.
        return set_ours(socket, name, unsafe { input::<c_int>(value, len) }?);
    }
    let is_nobodys = match level {
        libc::IPPROTO_TCP => socket.is(shape::DATAGRAM),
        libc::IPPROTO_IPV6 => !socket.is(shape::INET6),
        _ => false,
    };
    if is_nobodys {
        return Err(libc::ENOPROTOOPT);
    }
    if (level, name) == (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) && socket.is(shape::INET6) {
        // Its port has been taken for one version of IP or for both.
        return Err(libc::EINVAL);
    }
    if socket.kind() == Kind::Stream {
        // What a byte stream has no use for, as Linux tells it.
        match (level, name) {
            (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL | libc::IP_MULTICAST_IF) => return Err(libc::EINVAL),
            (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS | libc::IPV6_MULTICAST_IF) => {
                return Err(libc::ENOPROTOOPT);
            }
            _ => {}
        }
    }
    let _turn = NamingTurn::before_connecting(socket.record(), fd)?;
    if !socket.is_served() {
        // SAFETY: as the caller promises.
        return check(unsafe { real::setsockopt(fd, level, name, value, len) }).map(drop);
    }
    let alteration = Alteration::begin(socket);
    // SAFETY: as the caller promises.
    match unsafe { groups::read(level, name, value, len) } {
        // What makes no sense, and what a stream is asked, is Linux's to refuse.
        Some(asked) if asked.is_err() || socket.kind() == Kind::Stream => {
            // SAFETY: as the caller promises.
            return check(unsafe { real::setsockopt(fd, level, name, value, len) }).map(drop);
        }
        Some(Ok(asked)) if groups::change(socket, fd, asked)?.is_some() => return Ok(()),
        _ => {}
    }
    let goes_to_linux =
        matches!(place(socket, level, name), Some(Place::GroupLink)) && !groups::is_interface_silks_own();
    // Who may force it is Linux's to say.
    if goes_to_linux || kept::unforced(level, name) != name {
        // SAFETY: as the caller promises.
        check(unsafe { real::setsockopt(fd, level, name, value, len) })?;
    }
    // SAFETY: as the caller promises.
    if unsafe { remember(socket, level, name, value, len) }? {
        drop(alteration);
        if (level, name) == (control::UDP, UDP_CORK) && !socket.settings.has_flag(flag::CORK) {
            return cork::let_go(socket);
        }
        if level == libc::IPPROTO_TCP && name == libc::TCP_DEFER_ACCEPT && socket.role() == Role::Listener {
            return listener::tell_terms(socket);
        }
        if let (Some(family), Ok(slot)) = (family::joined(), socket.slot()) {
            if pass_on(socket, slot, family) && socket.role() == Role::Listener {
                return listener::tell_terms(socket);
            }
            if level == libc::IPPROTO_TCP && lets_go(slot, name) && state::unsent(slot) > 0 {
                slot.request.fetch_or(request::PUSH, SeqCst);
                family.ring(socket.name().0, slot);
            }
            if moves_marks(level, kept::unforced(level, name)) {
                wait::disturb(slot);
                epoll::changed(socket);
            }
        }
        return Ok(());
    }
    unserved::tell(&option_names::told("setsockopt", level, name), libc::ENOPROTOOPT)?;
    // SAFETY: as the caller promises.
    match alone(level, name, unsafe { set_to(value, len) }) {
        Some(Alone::Linuxs) => return Err(libc::ENOPROTOOPT),
        Some(Alone::Refused) => return Err(libc::EOPNOTSUPP),
        None => {}
    }
    if level == libc::IPPROTO_TCP && matches!(name, libc::TCP_FASTOPEN | libc::TCP_FASTOPEN_CONNECT) {
        return Err(libc::EOPNOTSUPP);
    }
    // SAFETY: as the caller promises.
    check(unsafe { real::setsockopt(fd, level, name, value, len) })?;
    note_foreign(socket, level, name, true);
    Ok(())
}

/// Whether a socket may be readable or writable now that this option is set.
fn moves_marks(level: c_int, name: c_int) -> bool {
    const AT_SOCKETS: [c_int; 2] = [libc::SO_RCVLOWAT, libc::SO_SNDBUF];
    let of_tcp = level == libc::IPPROTO_TCP && name == libc::TCP_NOTSENT_LOWAT;
    of_tcp || (level == libc::SOL_SOCKET && AT_SOCKETS.contains(&name))
}

fn set_ours(socket: &Socket, name: c_int, value: c_int) -> Answer<()> {
    if name != SILK_PRIORITY {
        return Err(libc::ENOPROTOOPT);
    }
    let priority = u32::try_from(value).map_err(|_| libc::EINVAL)?;
    let slot = socket.slot()?;
    if socket.role() != Role::Listener
        && let Some((number, _)) = crate::thread::record()
    {
        // Whoever asks serves the socket: the daemon lets it follow the path's priority.
        slot.thread.store(named::word(Some(number)), SeqCst);
    }
    let (slot, generation) = socket.name();
    match family::ask(&Request::SetPriority { slot, generation, priority }, &[])? {
        Reply::Done => Ok(()),
        _ => Err(libc::EPROTO),
    }
}
