//! Options that silk knows nothing of, and those of a socket of which it is not decided yet who serves it: Linux's descriptor has taken them, and
//! some say more than that.

use super::linux_alone::{Alone, alone, set_to};
use crate::errno::Answer;
use crate::option_names;
use crate::real;
use crate::socket::Socket;
use crate::unserved;
use libc::socklen_t;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

/// The bit of a foreign option that has been told of.
const TOLD: u32 = 1 << 31;

/// Remembers that a socket was given an option that silk knows nothing of, which has been `told` or is still to be.
pub fn note_foreign(socket: &Socket, level: c_int, name: c_int, told: bool) {
    let word = (level as u32 & 0x7fff) << 16 | (name as u32 & 0xffff);
    // What does not fit is not told, nor inherited.
    let free = socket
        .foreign
        .iter()
        .find(|cell| matches!(cell.load(Relaxed) & !TOLD, known if known == 0 || known == word));
    if let Some(cell) = free {
        cell.store(if told { word | TOLD } else { word }, Relaxed);
    }
}

/// Whether a socket was given any.
pub fn has_foreign(socket: &Socket) -> bool {
    socket.foreign[0].load(Relaxed) != 0
}

/// Its level and its name.
fn option_of(word: u32) -> (c_int, c_int) {
    ((word >> 16 & 0x7fff) as c_int, (word & 0xffff) as c_int)
}

/// Gives the stand-in of an accepted connection the options that silk knows nothing of and its listening socket has, as Linux does. What Linux
/// refuses is left.
pub fn inherit_foreign(from: &Socket, [listening, accepted]: [c_int; 2]) {
    for word in from.foreign.iter().map(|cell| cell.load(Relaxed)).filter(|word| *word != 0) {
        let (level, name) = option_of(word);
        let (mut value, mut len) = ([0u8; 128], 128);
        // SAFETY: the buffer has room for as much as is said, and as much of it is read as was written.
        unsafe {
            if real::getsockopt(listening, level, name, value.as_mut_ptr().cast(), &raw mut len) == 0 {
                real::setsockopt(accepted, level, name, value.as_ptr().cast(), len);
            }
        }
    }
}

/// Tells of those options, now that silk serves the socket.
///
/// # Errors
/// `ENOPROTOOPT`, for a strict program.
pub fn tell_foreign(socket: &Socket) -> Answer<()> {
    for cell in &socket.foreign {
        let word = cell.load(Relaxed);
        if word != 0 && word & TOLD == 0 {
            cell.store(word | TOLD, Relaxed);
            let (level, name) = option_of(word);
            unserved::tell(&option_names::told("setsockopt", level, name), libc::ENOPROTOOPT)?;
        }
    }
    Ok(())
}

/// Whether silk may serve a socket that was given an option, which Linux has taken. What Linux alone can keep makes it
/// Linux's, or is taken back.
///
/// # Errors
/// `EOPNOTSUPP` for what is refused; `ENOPROTOOPT`, for a strict program.
///
/// # Safety
/// `value` points to `len` readable bytes or is null.
pub unsafe fn lets_silk_serve(
    socket: &Socket,
    fd: c_int,
    (level, name): (c_int, c_int),
    value: *const c_void,
    len: socklen_t,
) -> Answer<bool> {
    // SAFETY: as the caller promises.
    let Some(alone) = alone(level, name, unsafe { set_to(value, len) }) else { return Ok(true) };
    unserved::tell(&option_names::told("setsockopt", level, name), libc::ENOPROTOOPT)?;
    if alone == Alone::Linuxs {
        socket.leave_to_linux();
        return Ok(false);
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
