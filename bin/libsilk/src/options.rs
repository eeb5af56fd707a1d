//! `getsockopt` and `setsockopt`. What concerns the path is kept, passed on to the daemon and
//! answered from its slot; what has no meaning here goes to the kernel's part of the socket,
//! so that it reads back as it was set, and is told loudly.

mod foreign;
mod handing_over;
mod linux_alone;
mod undecided;

use crate::address;
use crate::control;
use crate::corked;
use crate::errno::{Answer, check};
use crate::family::{self, Family};
use crate::groups;
use crate::option_names;
use crate::real;
use crate::settings::{Settings, flag};
use crate::shared::Alteration;
use crate::socket::{Role, Socket, shape};
use crate::state;
use crate::tcp_info;
use crate::unserved;
use crate::wishes;
use libc::socklen_t;
use silk_control::{Kind, Reply, Request, SILK_PATH, SILK_PRIORITY, SOL_SILK};
use silk_stream::{Slot, Usual, option, request, wish};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// Of `<linux/udp.h>`; the libc crate does not have it.
const UDP_CORK: c_int = 1;
/// Of `<linux/in6.h>`; the libc crate does not have it.
const IPV6_MULTICAST_ALL: c_int = 29;
/// Of `<linux/tcp.h>`; the libc crate does not have it.
const TCP_CC_INFO: c_int = 26;

pub use foreign::{has_foreign, inherit_foreign, note_foreign, tell_foreign};
pub use handing_over::hand_over;
use linux_alone::{Alone, alone, set_to};
pub use undecided::{lets_silk_serve, note_interface};

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
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) if v6 => Place::Flag(flag::PACKET_INFO),
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

/// Reads a value of the program's.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
unsafe fn input<T: Copy>(value: *const c_void, len: socklen_t) -> Answer<T> {
    if (len as usize) < size_of::<T>() {
        return Err(libc::EINVAL);
    }
    if value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: enough bytes are there, by the caller's word.
    Ok(unsafe { value.cast::<T>().read_unaligned() })
}

/// Reads a number of the program's. Of IP's options one byte is enough, and for most of them none is 0.
///
/// # Safety
/// As [`input`].
unsafe fn input_number(level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> Answer<c_int> {
    let whole = matches!(
        name,
        libc::IP_TTL | libc::IP_MULTICAST_TTL | libc::IP_MULTICAST_LOOP | libc::IP_MULTICAST_ALL
    );
    // SAFETY: as the caller promises.
    let number = unsafe {
        match (level, len) {
            (libc::IPPROTO_IP, 0) if !whole => 0,
            (libc::IPPROTO_IP, 1..4) => input::<u8>(value, len).map(c_int::from)?,
            _ => input::<c_int>(value, len)?,
        }
    };
    let strict = [
        (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL),
        (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP),
        (libc::IPPROTO_TCP, control::TCP_INQ),
    ];
    if strict.contains(&(level, name)) && !matches!(number, 0 | 1) { Err(libc::EINVAL) } else { Ok(number) }
}

/// The word of an option that is kept as it is, within Linux's bounds.
fn number_to_keep(socket: &Socket, level: c_int, name: c_int, number: c_int) -> Answer<u32> {
    match (level, name) {
        // Eight bits, of which TCP has the lowest two for itself (RFC 3168 §6.1).
        (libc::IPPROTO_IP, libc::IP_TOS) => {
            let own = if socket.is(shape::DATAGRAM) { 0xff } else { 0xfc };
            return Ok(number.cast_unsigned() & own);
        }
        // Below zero: the usual one.
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number == -1 => return Ok(0),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number > 255 => return Err(libc::EINVAL),
        (libc::SOL_SOCKET, libc::SO_INCOMING_CPU) => return Ok(number.wrapping_add(1).cast_unsigned()),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => return Ok(whole_waits(number)),
        // Below zero is all that there can be.
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => return Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => {}
    }
    let fits = match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL) => (1..=32_767).contains(&number),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => (1..=127).contains(&number),
        (control::UDP, control::UDP_SEGMENT) => u16::try_from(number).is_ok(),
        _ => number >= 0,
    };
    fits.then_some(number.unsigned_abs()).ok_or(libc::EINVAL)
}

/// How long Linux defers for `seconds`, none below zero: whole waits for the answer to a SYN-ACK, at most 255 of
/// them, of which the first takes a second and each twice as long as the one before, or two minutes.
fn whole_waits(seconds: c_int) -> u32 {
    let wanted = u32::try_from(seconds).unwrap_or(0);
    let (mut wait, mut all, mut count) = (1, 0, 0);
    while all < wanted && count < 255 {
        all += wait;
        wait = (wait * 2).min(120);
        count += 1;
    }
    all
}

/// Remembers an option of an undecided or served socket; whether it is one of those that the
/// library knows.
///
/// # Errors
/// `EINVAL` for a value that is too short.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn remember(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> Answer<bool> {
    let Some(place) = place(socket, level, name) else { return Ok(false) };
    let settings = &socket.settings;
    // SAFETY: as the caller promises.
    unsafe {
        match place {
            Place::Flag(bit) => settings.set_flag(bit, input_number(level, name, value, len)? != 0),
            Place::Stream(bit) if (input_number(level, name, value, len)? != 0) != is_inverse(bit) => {
                settings.stream.fetch_or(bit, Relaxed);
            }
            Place::Stream(bit) => {
                settings.stream.fetch_and(!bit, Relaxed);
            }
            Place::Number(cell) => {
                let number = input_number(level, name, value, len)?;
                cell.store(number_to_keep(socket, level, name, number)?, Relaxed);
            }
            Place::Wish(place) => {
                let word = wishes::word(place, input_number(level, name, value, len)?)?;
                if let Some(cell) = settings.wishes.get(place) {
                    cell.store(word, Relaxed);
                }
            }
            Place::GroupLink => {
                settings.wishes[wish::GROUP_LINK].store(groups::link(level, value, len)?, Relaxed);
            }
            Place::Arrival { nanos } => settings.set_time(nanos, input::<c_int>(value, len)? != 0),
            Place::Congestion if value.is_null() => return Err(libc::EFAULT),
            Place::Congestion => {
                wishes::set_congestion(settings, std::slice::from_raw_parts(value.cast(), len as usize))?;
            }
            Place::PacingRate => {
                let rate = match input::<u32>(value, len)? {
                    _ if len >= 8 => input::<u64>(value, len)?,
                    u32::MAX => u64::MAX,
                    rate => rate.into(),
                };
                wishes::set_pacing_rate(settings, rate);
            }
            Place::Linger => {
                let linger = input::<libc::linger>(value, len)?;
                let seconds = u32::try_from(linger.l_linger).unwrap_or(0).min(u32::MAX - 1);
                settings.linger.store(if linger.l_onoff != 0 { seconds + 1 } else { 0 }, Relaxed);
            }
            Place::Time(cell) => {
                let time = input::<libc::timeval>(value, len)?;
                let (Ok(seconds), 0..1_000_000) = (u64::try_from(time.tv_sec), time.tv_usec) else {
                    return Err(libc::EDOM);
                };
                // In whole milliseconds, and never by rounding turned into "for ever".
                let millis =
                    seconds.saturating_mul(1000).saturating_add(time.tv_usec.unsigned_abs().div_ceil(1000));
                cell.store(u32::try_from(millis).unwrap_or(u32::MAX), Relaxed);
            }
        }
    }
    settings.ask_for_details();
    Ok(true)
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
    socket: &Socket,
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
    let _told = Alteration::begin(socket);
    // SAFETY: as the caller promises.
    if let Some(asked) = unsafe { groups::read(level, name, value, len) }
        && groups::change(socket, fd, asked?)?.is_some()
    {
        return Ok(());
    }
    if matches!(place(socket, level, name), Some(Place::GroupLink)) && !groups::is_interface_silks_own() {
        // SAFETY: as the caller promises.
        check(unsafe { real::setsockopt(fd, level, name, value, len) })?;
    }
    // SAFETY: as the caller promises.
    if unsafe { remember(socket, level, name, value, len) }? {
        if (level, name) == (control::UDP, UDP_CORK) && !socket.settings.has_flag(flag::CORK) {
            return corked::let_go(socket);
        }
        if level == libc::IPPROTO_TCP && name == libc::TCP_DEFER_ACCEPT && socket.role() == Role::Listener {
            return crate::naming::listen_on(socket);
        }
        if let (Some(family), Ok(slot)) = (family::joined(), socket.slot()) {
            if pass_on(socket, slot, family) && socket.role() == Role::Listener {
                return crate::naming::listen_on(socket);
            }
            if level == libc::IPPROTO_TCP && lets_go(slot, name) && state::unsent(slot) > 0 {
                slot.request.fetch_or(request::PUSH, SeqCst);
                family.ring(socket.name().0, slot);
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

/// Whether what was held back goes out, now that the option of this name has been set.
fn lets_go(slot: &Slot, name: c_int) -> bool {
    let options = slot.options.load(SeqCst);
    match name {
        libc::TCP_NODELAY => options & option::NODELAY != 0,
        libc::TCP_CORK => options & option::CORK == 0,
        _ => false,
    }
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
        slot.thread.store(number + 1, SeqCst);
    }
    let (slot, generation) = socket.name();
    match family::ask(&Request::SetPriority { slot, generation, priority }, &[])? {
        Reply::Done => Ok(()),
        _ => Err(libc::EPROTO),
    }
}

/// Writes what the daemon must know of the options into the slot, where it differs. Whether any
/// wish did.
pub fn pass_on(socket: &Socket, slot: &Slot, family: &Family) -> bool {
    let wished = pass_on_wishes(&socket.settings, slot);
    let settings = &socket.settings;
    if socket.role() == Role::Listener {
        copy(&settings.receive_buffer, &slot.receive_limit);
        return wished;
    }
    let pairs = [
        (&settings.stream, &slot.options),
        (&settings.keep_idle, &slot.keep_idle),
        (&settings.keep_interval, &slot.keep_interval),
        (&settings.keep_count, &slot.keep_count),
        (settings.service_over(speaks_six(socket, slot)), &slot.service),
        (&settings.send_buffer, &slot.send_limit),
        (&settings.receive_buffer, &slot.receive_limit),
    ];
    // A datagram must fit whole: its rings stay as they are.
    let count = if socket.role() == Role::Stream { pairs.len() } else { pairs.len() - 2 };
    let mut changed = false;
    for (from, to) in pairs.into_iter().take(count) {
        changed |= copy(from, to);
    }
    let bits = if changed { request::OPTIONS } else { 0 } | if wished { request::WISHES } else { 0 };
    if bits != 0 {
        family.request(socket.name().0, slot, bits);
    }
    wished
}

/// Whether it is IPv6 that a socket speaks: with its peer, or else, as far as is known, with whom it will have.
fn speaks_six(socket: &Socket, slot: &Slot) -> bool {
    match address::shared(&slot.peer).ip() {
        nobody if nobody.is_unspecified() => socket.is(shape::INET6),
        peer => peer.is_ipv6(),
    }
}

/// Whether any wish differed.
fn pass_on_wishes(settings: &Settings, slot: &Slot) -> bool {
    let (now, before) = (settings.wished(), slot.wishes.words());
    if now != before {
        slot.wishes.put_all(&now);
    }
    now != before
}

fn copy(from: &AtomicU32, to: &AtomicU32) -> bool {
    let value = from.load(Relaxed);
    let differs = to.load(Relaxed) != value;
    if differs {
        to.store(value, Relaxed);
    }
    differs
}

/// The same for a socket that silk has just begun to serve.
pub fn pass_on_all(socket: &Socket) {
    if let (Some(family), Ok(slot)) = (family::joined(), socket.slot()) {
        pass_on(socket, slot, family);
    }
}

/// `SO_LINGER`'s value.
fn linger(settings: &Settings) -> libc::linger {
    let set = settings.linger.load(Relaxed);
    let seconds = c_int::try_from(set.saturating_sub(1)).unwrap_or(c_int::MAX);
    libc::linger { l_onoff: c_int::from(set > 0), l_linger: seconds }
}

/// A time-out's value.
fn time(cell: &AtomicU32) -> libc::timeval {
    let ms = i64::from(cell.load(Relaxed));
    libc::timeval { tv_sec: ms / 1000, tv_usec: ms % 1000 * 1000 }
}

/// Gives a value to the program, cut to its buffer as Linux does.
///
/// # Safety
/// `len` points to a length and `value` to as many writable bytes, or either is null.
unsafe fn output<T>(from: &T, value: *mut c_void, len: *mut socklen_t) -> Answer<()> {
    if len.is_null() || value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises; no more is copied than fits.
    unsafe {
        let fits = size_of::<T>().min(*len as usize);
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast::<u8>(), value.cast(), fits);
        *len = fits as socklen_t;
    }
    Ok(())
}

/// `getsockopt(2)` of a socket that silk serves; `fd` is its descriptor.
///
/// # Errors
/// As [`set`].
///
/// # Safety
/// `len` points to a length and `value` to as many writable bytes, or either is null.
pub unsafe fn get(
    socket: &Socket,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> Answer<()> {
    let slot = socket.slot()?;
    // Whom Linux would ask at last differs by the socket's IP.
    let six = socket.is(shape::INET6);
    match level {
        libc::IPPROTO_TCP if socket.is(shape::DATAGRAM) && six => return Err(libc::ENOPROTOOPT),
        libc::IPPROTO_TCP if socket.is(shape::DATAGRAM) => return Err(libc::EOPNOTSUPP),
        libc::IPPROTO_IPV6 if !six => return Err(libc::EOPNOTSUPP),
        _ => {}
    }
    // SAFETY: as the caller promises, here and in each branch.
    unsafe {
        match (level, name) {
            (SOL_SILK, SILK_PATH) => return output(&slot.path.load(Relaxed), value, len),
            (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                return output(&tcp_info::told(socket, slot), value, len);
            }
            (libc::IPPROTO_TCP, TCP_CC_INFO) => {
                return match tcp_info::model(socket, slot) {
                    Some(model) => output(&model, value, len),
                    None => output(&(), value, len),
                };
            }
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
                return output(&wishes::congestion(socket, Some(slot)), value, len);
            }
            (libc::IPPROTO_IP, libc::IP_MTU) | (libc::IPPROTO_IPV6, libc::IPV6_MTU) => {
                let mtu = if socket.role() == Role::Datagram {
                    Some(wishes::path_mtu(socket, slot)).filter(|_| socket.is(shape::CONNECTED))
                } else {
                    tcp_info::path_mtu(socket, slot).map(|mtu| mtu as usize)
                };
                let mtu = mtu.ok_or(libc::ENOTCONN)?;
                return output(&c_int::try_from(mtu).unwrap_or(c_int::MAX), value, len);
            }
            (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE) => {
                let rate = wishes::pacing_rate(&socket.settings);
                if !len.is_null() && *len >= 8 {
                    return output(&rate, value, len);
                }
                return output(&u32::try_from(rate).unwrap_or(u32::MAX), value, len);
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                return output(&linger(&socket.settings), value, len);
            }
            _ => {}
        }
        if let Some(number) = number(socket, slot, level, name) {
            if let (libc::IPPROTO_IP, Ok(byte), false) = (level, u8::try_from(number), len.is_null())
                && (1..4).contains(&*len)
            {
                return output(&byte, value, len);
            }
            return output(&number, value, len);
        }
        match place(socket, level, name) {
            Some(Place::Time(cell)) => return output(&time(cell), value, len),
            // Linux's part of the socket has been told, too.
            Some(Place::GroupLink) => {
                return check(real::getsockopt(fd, level, name, value, len)).map(drop);
            }
            _ => {}
        }
        unserved::tell(&option_names::told("getsockopt", level, name), libc::ENOPROTOOPT)?;
        check(real::getsockopt(fd, level, name, value, len)).map(drop)
    }
}

/// Options whose value is an `int`.
fn number(socket: &Socket, slot: &Slot, level: c_int, name: c_int) -> Option<c_int> {
    let signed = |n: u32| c_int::try_from(n).unwrap_or(c_int::MAX);
    let or_default = |set: u32, default: c_int| if set > 0 { signed(set) } else { default };
    let settings = &socket.settings;
    let datagram = socket.role() == Role::Datagram;
    let usual =
        |pick: fn(&Usual) -> &AtomicU32| signed(wishes::usual().map_or(0, |usual| pick(usual).load(Relaxed)));
    Some(match (level, name) {
        (SOL_SILK, SILK_PRIORITY) => signed(slot.priority.load(Relaxed)),
        (libc::SOL_SOCKET, libc::SO_ERROR) => state::take_error(slot).unwrap_or(0),
        (libc::SOL_SOCKET, libc::SO_TYPE) if datagram => libc::SOCK_DGRAM,
        (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) if socket.is(shape::INET6) => libc::AF_INET6,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) if socket.is(shape::SCOUT) => silk_control::PF_SCOUT,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => libc::AF_INET,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) if datagram => libc::IPPROTO_UDP,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => c_int::from(socket.role() == Role::Listener),
        // As Linux: twice what was set, as far as it is granted; else the rings' sizes.
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => buffer(&slot.rx_size, &settings.receive_buffer),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => buffer(&slot.tx_size, &settings.send_buffer),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) if datagram => or_default(settings.low_water.load(Relaxed), 1),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => signed(state::low_water(socket, slot)),
        (libc::SOL_SOCKET, libc::SO_SNDLOWAT) => 1,
        (libc::SOL_SOCKET, libc::SO_INCOMING_CPU) => {
            tcp_info::ask(socket, slot);
            let cpu =
                tcp_info::incoming_cpu(socket, slot).unwrap_or_else(|| settings.incoming_cpu.load(Relaxed));
            cpu.cast_signed() - 1
        }
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            let wished = settings.wishes[wish::MAX_SEGMENT].load(Relaxed);
            or_default(tcp_info::segment(socket, slot), or_default(wished, 536))
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => {
            or_default(settings.keep_idle.load(Relaxed), usual(|usual| &usual.keep_idle))
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => {
            or_default(settings.keep_interval.load(Relaxed), usual(|usual| &usual.keep_interval))
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => {
            or_default(settings.keep_count.load(Relaxed), usual(|usual| &usual.keep_count))
        }
        _ => match place(socket, level, name)? {
            Place::Flag(bit) => c_int::from(settings.has_flag(bit)),
            Place::Arrival { nanos } => c_int::from(settings.has_time(nanos)),
            Place::Stream(bit) => c_int::from((settings.stream.load(Relaxed) & bit != 0) != is_inverse(bit)),
            Place::Number(cell) => signed(cell.load(Relaxed)),
            Place::Wish(place) => wishes::number(place, settings.wish(place), wishes::usual()),
            Place::Linger | Place::Time(_) | Place::Congestion | Place::PacingRate | Place::GroupLink => {
                return None;
            }
        },
    })
}

/// What Linux makes of a smaller `SO_SNDBUF` or `SO_RCVBUF`, halved.
const LEAST_BUFFER: u32 = 2304;

fn buffer(ring: &AtomicU32, set: &AtomicU32) -> c_int {
    let size = match (ring.load(Relaxed), set.load(Relaxed)) {
        (0, 0) => 65_536,
        (0, set) => set.max(LEAST_BUFFER).saturating_mul(2),
        (size, 0) => size,
        (size, set) => set.max(LEAST_BUFFER).min(size).saturating_mul(2),
    };
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_twice_what_was_set_as_far_as_there_is_a_ring_for_it() {
        let told = |ring, set| buffer(&AtomicU32::new(ring), &AtomicU32::new(set));
        assert_eq!([(0, 0), (0, 10_000), (0, 1)].map(|(ring, set)| told(ring, set)), [65_536, 20_000, 4608]);
        let ring = 1 << 17;
        assert_eq!([0, 10_000, 1 << 20].map(|set| told(ring, set)), [1 << 17, 20_000, 1 << 18]);
    }

    #[test]
    fn what_was_held_back_goes_out_once_it_may() {
        let slot = Slot::default();
        assert!(lets_go(&slot, libc::TCP_CORK) && !lets_go(&slot, libc::TCP_NODELAY));
        slot.options.store(option::NODELAY | option::CORK, SeqCst);
        assert!(!lets_go(&slot, libc::TCP_CORK) && lets_go(&slot, libc::TCP_NODELAY));
        assert!(!lets_go(&slot, libc::TCP_KEEPIDLE));
    }
}
