//! Options of a socket of which it is not decided yet who serves it: Linux's descriptor has taken them, and some say
//! more than that.

use super::linux_alone::{Alone, alone, set_to};
use crate::errno::Answer;
use crate::nameless;
use crate::naming_turn::NamingTurn;
use crate::option_names;
use crate::real;
use crate::socket::Socket;
use crate::unserved;
use libc::socklen_t;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

/// Whether silk may serve a socket that was given an option, which Linux has taken. What Linux alone can keep makes it
/// Linux's, or is taken back.
///
/// # Errors
/// `EOPNOTSUPP` for what is refused; `ENOPROTOOPT`, for a strict program, and where silk serves the socket by now.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn lets_silk_serve(
    socket: &'static Socket,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *const c_void,
    len: socklen_t,
) -> Answer<bool> {
    // SAFETY: as the caller promises.
    let Some(alone) = alone(level, name, unsafe { set_to(value, len) }) else { return Ok(true) };
    unserved::tell(&option_names::told("setsockopt", level, name), libc::ENOPROTOOPT)?;
    if alone == Alone::Linuxs {
        // Another thread may just be naming it: silk serves it then, or Linux does, and not both.
        let _turn = NamingTurn::begin(socket, fd)?;
        if socket.is_undecided() {
            socket.leave_to_linux();
            nameless::announce(socket);
        }
        return if socket.is_served() { Err(libc::ENOPROTOOPT) } else { Ok(false) };
    }
    let off = 0;
    // SAFETY: the number is there for the call. It was Linux's own to begin with.
    unsafe { real::setsockopt(fd, level, name, (&raw const off).cast(), size_of::<c_int>() as socklen_t) };
    Err(libc::EOPNOTSUPP)
}

/// Remembers which interface an undecided socket has been bound to, if this option has done it.
pub fn note_interface(socket: &Socket, fd: c_int, level: c_int, name: c_int) {
    if level != libc::SOL_SOCKET || !matches!(name, libc::SO_BINDTODEVICE | libc::SO_BINDTOIFINDEX) {
        return;
    }
    let (mut number, mut len) = (0u32, size_of::<u32>() as socklen_t);
    // SAFETY: both are there for the call.
    let told = unsafe {
        real::getsockopt(fd, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, (&raw mut number).cast(), &raw mut len)
    };
    socket.settings.interface.store(if told == 0 { number } else { 0 }, Relaxed);
}
