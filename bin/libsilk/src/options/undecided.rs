//! Options of a socket of which it is not decided yet who serves it: Linux's descriptor has taken them, and some say
//! more than that.

use super::foreign::note_foreign;
use super::kept::remember;
use super::linux_alone::{Alone, alone, set_to};
use crate::errno::{Answer, check};
use crate::groups;
use crate::nameless;
use crate::naming_turn::NamingTurn;
use crate::option_names;
use crate::real;
use crate::socket::Socket;
use crate::unserved;
use libc::socklen_t;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

/// `setsockopt(2)` of a socket that nobody serves yet: Linux's descriptor has it, and it is remembered for silk.
///
/// # Errors
/// Linux's; what [`lets_silk_serve`] refuses with; `ENOBUFS` for a group too many.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn set_early(
    socket: &'static Socket,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *const c_void,
    len: socklen_t,
) -> Answer<()> {
    // SAFETY: as the caller promises; so throughout.
    unsafe {
        let asked = groups::read(level, name, value, len);
        if matches!(&asked, Some(Ok(asked)) if !socket.early.has_room_for(asked)) {
            return Err(libc::ENOBUFS);
        }
        let linuxs = check(real::setsockopt(fd, level, name, value, len)).map(drop);
        // Which algorithms Linux has, and lets this program choose, is Linux's affair.
        let congestion = (level, name) == (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        // Of silk's own address and interface Linux knows nothing.
        let link = groups::names_link(level, name);
        let own = (link || matches!(asked, Some(Ok(_)))) && groups::is_interface_silks_own();
        if linuxs.is_err() && !congestion && !own {
            return linuxs;
        }
        if linuxs.is_ok() && !lets_silk_serve(socket, fd, (level, name), value, len)? {
            return Ok(());
        }
        // What Linux has taken is well formed, though perhaps not known here.
        if let Some(Ok(asked)) = asked
            && socket.early.note(asked)
        {
            return Ok(());
        }
        if remember(socket, level, name, value, len) == Ok(true) {
            return Ok(());
        }
        note_foreign(socket, level, name, false);
        note_interface(socket, fd, level, name);
        linuxs
    }
}

/// Whether silk may serve a socket that was given an option, which Linux has taken. What Linux alone can keep makes it
/// Linux's, or is taken back.
///
/// # Errors
/// `EOPNOTSUPP` for what is refused; `ENOPROTOOPT`, for a strict program, and where silk serves the socket by now.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
unsafe fn lets_silk_serve(
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
fn note_interface(socket: &Socket, fd: c_int, level: c_int, name: c_int) {
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
