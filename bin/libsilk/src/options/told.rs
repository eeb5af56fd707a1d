//! `getsockopt(2)`: what was set, what holds where nothing was, and what only the connection knows.

use super::values::output;
use super::{Place, TCP_CC_INFO, is_inverse, place};
use crate::errno::{Answer, check};
use crate::option_names;
use crate::real;
use crate::settings::{AT_ONCE, Settings};
use crate::socket::{Role, Socket, shape};
use crate::state;
use crate::tcp_info;
use crate::unserved;
use crate::wishes;
use libc::socklen_t;
use silk_control::{SILK_PATH, SILK_PRIORITY, SOL_SILK};
use silk_stream::{Slot, Usual, wish};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// `SO_LINGER`'s value.
pub(super) fn linger(settings: &Settings) -> libc::linger {
    let set = settings.linger.load(Relaxed);
    let seconds = c_int::try_from(set.saturating_sub(1)).unwrap_or(c_int::MAX);
    libc::linger { l_onoff: c_int::from(set > 0), l_linger: seconds }
}

/// A time-out's value.
pub(super) fn time(cell: &AtomicU32) -> libc::timeval {
    let ms = Some(cell.load(Relaxed)).filter(|word| *word != AT_ONCE).map_or(0, i64::from);
    libc::timeval { tv_sec: ms / 1000, tv_usec: ms % 1000 * 1000 }
}

/// `getsockopt(2)` of a socket that silk serves; `fd` is its descriptor.
///
/// # Errors
/// As [`super::set`].
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
        // The receive ring of datagrams becomes as large as was asked for, within silk's bounds.
        (libc::SOL_SOCKET, libc::SO_RCVBUF) if datagram => {
            let largest = wishes::usual().map_or(0, |usual| usual.largest_ring.load(Relaxed));
            buffer(slot.rx_size.load(Relaxed), largest, &settings.receive_buffer)
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            buffer(slot.rx_size.load(Relaxed), 0, &settings.receive_buffer)
        }
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => buffer(slot.tx_size.load(Relaxed), 0, &settings.send_buffer),
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

/// Of a socket whose ring is of this size, and grows to `largest` if that is asked for.
fn buffer(ring: u32, largest: u32, set: &AtomicU32) -> c_int {
    let size = match (ring, set.load(Relaxed)) {
        (0, 0) => 65_536,
        (0, set) => set.max(LEAST_BUFFER).saturating_mul(2),
        (size, 0) => size,
        (size, set) => set.max(LEAST_BUFFER).min(size.max(largest)).saturating_mul(2),
    };
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_twice_what_was_set_as_far_as_there_is_a_ring_for_it() {
        let told = |ring, set| buffer(ring, 0, &AtomicU32::new(set));
        assert_eq!([(0, 0), (0, 10_000), (0, 1)].map(|(ring, set)| told(ring, set)), [65_536, 20_000, 4608]);
        let ring = 1 << 17;
        assert_eq!([0, 10_000, 1 << 20].map(|set| told(ring, set)), [1 << 17, 20_000, 1 << 18]);
        let grows = |set| buffer(ring, 1 << 22, &AtomicU32::new(set));
        assert_eq!([0, 10_000, 1 << 20, 1 << 23].map(grows), [1 << 17, 20_000, 1 << 21, 1 << 23]);
    }
}
