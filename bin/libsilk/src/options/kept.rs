//! What the program has set is kept, of any socket that silk serves or may come to serve.

use super::values::{input, input_number};
use super::{Place, is_inverse, place};
use crate::control;
use crate::errno::Answer;
use crate::groups;
use crate::settings::AT_ONCE;
use crate::socket::{Socket, shape};
use crate::wishes;
use libc::socklen_t;
use silk_stream::wish;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

/// The service bits that a program may set: eight, of which TCP has the lowest two for itself (RFC 3168 §6.1).
fn service(socket: &Socket) -> u32 {
    if socket.is(shape::DATAGRAM) { 0xff } else { 0xfc }
}

/// The word of an option that is kept as it is, within Linux's bounds.
fn number_to_keep(socket: &Socket, level: c_int, name: c_int, number: c_int) -> Answer<u32> {
    match (level, name) {
        (libc::IPPROTO_IP, libc::IP_TOS) => return Ok(number.cast_unsigned() & service(socket)),
        // Below zero: the usual one.
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number == -1 => return Ok(0),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number > 255 => return Err(libc::EINVAL),
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if number >= 0 => {
            return Ok(number.cast_unsigned() & service(socket));
        }
        (libc::SOL_SOCKET, libc::SO_INCOMING_CPU) => return Ok(number.wrapping_add(1).cast_unsigned()),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT) => return Ok(whole_waits(number)),
        // Nothing is the least, and below zero is all that there can be.
        (libc::SOL_SOCKET, libc::SO_RCVBUF | libc::SO_SNDBUF) => {
            return Ok(u32::try_from(number).map_or(i32::MAX.unsigned_abs() / 2, |number| number.max(1)));
        }
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

/// The option that is set where this one is, by who may: `SO_RCVBUF` of `SO_RCVBUFFORCE`.
pub fn unforced(level: c_int, name: c_int) -> c_int {
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE) => libc::SO_RCVBUF,
        (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE) => libc::SO_SNDBUF,
        _ => name,
    }
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
    let Some(place) = place(socket, level, unforced(level, name)) else { return Ok(false) };
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
                // Linux takes it without a sign: below zero is very long.
                let seconds = linger.l_linger.cast_unsigned().min(u32::MAX - 1);
                settings.linger.store(if linger.l_onoff != 0 { seconds + 1 } else { 0 }, Relaxed);
            }
            Place::Time(cell) => {
                let time = input::<libc::timeval>(value, len)?;
                if !(0..1_000_000).contains(&time.tv_usec) {
                    return Err(libc::EDOM);
                }
                // In whole milliseconds, and never by rounding turned into "for ever".
                let rest = time.tv_usec.unsigned_abs().div_ceil(1000);
                let millis = |seconds: u64| seconds.saturating_mul(1000).saturating_add(rest);
                let word = u64::try_from(time.tv_sec).map_or(AT_ONCE, |seconds| {
                    u32::try_from(millis(seconds)).unwrap_or(u32::MAX).min(AT_ONCE - 1)
                });
                cell.store(word, Relaxed);
            }
        }
    }
    settings.ask_for_details();
    Ok(true)
}
