//! Options that silk knows nothing of. Linux's descriptor of the socket takes them, it is told of, once, and connections that are accepted have
//! what their listening socket has.

use crate::errno::Answer;
use crate::option_names;
use crate::real;
use crate::socket::Socket;
use crate::unserved;
use libc::socklen_t;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

/// The bit of a foreign option that has been told of.
const TOLD: u32 = 1 << 31;

/// Octets of the longest value that is inherited.
const ROOM: socklen_t = 128;

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
        if (level, name) == (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER) {
            // Asked for, its length counts instructions and not octets. (Silk serves no socket that has one.)
            continue;
        }
        let mut value = [0u8; ROOM as usize];
        let mut len = ROOM;
        // SAFETY: Linux writes no more octets than it is told there is room for, and no more are read.
        unsafe {
            if real::getsockopt(listening, level, name, value.as_mut_ptr().cast(), &raw mut len) == 0 {
                real::setsockopt(accepted, level, name, value.as_ptr().cast(), len.min(ROOM));
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
