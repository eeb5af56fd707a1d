//! What the kernel knows of a descriptor and what the library does: `dup`, `fcntl`, `ioctl`.
//! Numbers and close-on-exec are the kernel's; the state of the open file is ours.

use crate::close;
use crate::errno::{Answer, check};
use crate::gate;
use crate::internal;
use crate::lanes;
use crate::naming_turn::NamingTurn;
use crate::numbers;
use crate::real;
use crate::shared::Alteration;
use crate::socket::{Role, Socket};
use crate::state;
use crate::stdio;
use crate::table::{self, Entry};
use crate::tcp_info;
use crate::unserved;
use crate::urgent;
use std::ffi::{c_int, c_ulong};
use std::sync::atomic::Ordering::Relaxed;

/// `SIOCOUTQNSD`: bytes not yet sent.
const NOT_SENT: c_ulong = 0x894b;
/// `SIOCATMARK`.
pub const AT_MARK: c_ulong = 0x8905;

/// `fd` names this socket from now on: every way by which a number becomes a socket's leads through here, so that a standard
/// stream that has the number goes there too. `false` when the number is too high to be noted.
pub fn name(fd: c_int, socket: &'static Socket) -> bool {
    let noted = table::put(fd, Entry::Socket(socket));
    if noted {
        stdio::take_over(fd);
    }
    noted
}

/// What a descriptor names, counted once more: it stays what it is, even if another thread closes that descriptor.
struct Copied(Entry);

impl Copied {
    fn of(fd: c_int) -> Option<Self> {
        loop {
            let entry = table::entry(fd)?;
            let counted = match entry {
                Entry::Socket(socket) => socket.add_descriptor_if_any(),
                Entry::Epoll(set) => set.add_descriptor_if_any(),
                Entry::Internal => return None,
            };
            // Only who is counted is given back.
            let copied = counted.then(|| Self(entry));
            if table::entry(fd) == Some(entry) {
                return copied;
            }
        }
    }

    /// The kernel has made `new` a copy as well.
    fn name(self, new: c_int) {
        let named = match self.0 {
            Entry::Socket(socket) => name(new, socket),
            entry => table::put(new, entry),
        };
        if named {
            std::mem::forget(self);
        }
    }

    /// The kernel has made `new` a copy as well, which is in the table already, if its number is not too high.
    fn named(self, new: c_int) {
        if numbers::is_noted(new) {
            stdio::take_over(new);
            std::mem::forget(self);
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        match self.0 {
            Entry::Socket(socket) if socket.drop_descriptor() => close::let_go(socket),
            // No number of it has been closed.
            Entry::Epoll(set) => set.drop_descriptor(-1),
            _ => {}
        }
    }
}

/// A copy of `fd` under another number, of which `duplicate` makes the kernel's part.
///
/// # Errors
/// As `duplicate`.
pub fn copy(fd: c_int, duplicate: impl FnOnce() -> c_int) -> Answer<c_int> {
    let _inside = table::entry(fd).map(|_| gate::pass());
    let copied = Copied::of(fd);
    let made = check(duplicate())?;
    copied.into_iter().for_each(|copied| copied.name(made));
    Ok(made)
}

/// `dup2` and `dup3`: `duplicate` makes the kernel's copy.
///
/// # Errors
/// As Linux; `EBUSY` when the number is one of the library's own.
pub fn replace(old: c_int, new: c_int, duplicate: impl FnOnce() -> c_int) -> Answer<c_int> {
    if internal::is(new) {
        return Err(libc::EBUSY);
    }
    if old == new || (table::entry(old).is_none() && table::entry(new).is_none()) {
        return check(duplicate());
    }
    // SAFETY: asks about a number only. A copy of nothing must not close the other.
    check(unsafe { real::fcntl(old, libc::F_GETFD, 0) })?;
    close::linger(new);
    let _inside = gate::pass();
    let copied = Copied::of(old);
    let entry = copied.as_ref().map(|copied| copied.0);
    // Other threads may use the number: at no moment are they to meet the kernel's part of a socket of silk's. So what silk serves
    // is there before the kernel's part is, and what silk served until the kernel's part is gone.
    let is_silks = matches!(entry, Some(Entry::Socket(socket)) if socket.is_served());
    let early = is_silks.then(|| table::exchange(new, entry));
    let made = check(duplicate()).inspect_err(|_| {
        early.into_iter().for_each(|before| _ = table::exchange(new, before));
    })?;
    let before = early.unwrap_or_else(|| table::exchange(new, entry));
    close::forget_as(new, before);
    copied.into_iter().for_each(|copied| copied.named(new));
    Ok(made)
}

/// `fcntl(2)` of a socket of ours, as far as it is not the kernel's alone.
///
/// # Safety
/// As the C library's.
pub unsafe fn control(socket: &'static Socket, fd: c_int, command: c_int, arg: usize) -> Answer<c_int> {
    // SAFETY: as the caller promises.
    let kernel = || check(unsafe { real::fcntl(fd, command, arg) });
    let _told = Alteration::begin(socket);
    match command {
        libc::F_GETFL if socket.is_served() => Ok(libc::O_RDWR | socket.flags.load(Relaxed).cast_signed()),
        libc::F_SETFL => {
            let settable = libc::O_NONBLOCK | libc::O_APPEND | libc::O_ASYNC;
            let _turn = NamingTurn::before_connecting(socket, fd)?;
            if socket.is_served() {
                if arg as c_int & libc::O_ASYNC != 0 {
                    unserved::tell("fcntl(F_SETFL, O_ASYNC)", libc::EINVAL)?;
                }
            } else {
                kernel()?;
            }
            socket.flags.store((arg as c_int & settable).cast_unsigned(), Relaxed);
            Ok(0)
        }
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            // SAFETY: as above.
            copy(fd, || unsafe { real::fcntl(fd, command, arg) })
        }
        libc::F_GETFD | libc::F_SETFD | libc::F_GETFL => kernel(),
        _ => {
            if socket.is_served() {
                unserved::tell(&format!("fcntl({command})"), libc::EINVAL)?;
            }
            kernel()
        }
    }
}

/// `ioctl(2)` of a socket of ours.
///
/// # Errors
/// As Linux.
///
/// # Safety
/// As the C library's: `arg` is what `request` wants.
pub unsafe fn ioctl(socket: &'static Socket, fd: c_int, request: c_ulong, arg: usize) -> Answer<c_int> {
    // SAFETY: as the caller promises, here and below.
    let kernel = || check(unsafe { real::ioctl(fd, request, arg) });
    let number = std::ptr::with_exposed_provenance_mut::<c_int>(arg);
    if request == libc::FIONBIO {
        if number.is_null() {
            return Err(libc::EFAULT);
        }
        let bit = libc::O_NONBLOCK as u32;
        let _turn = NamingTurn::before_connecting(socket, fd)?;
        let _told = Alteration::begin(socket);
        // SAFETY: `FIONBIO` points to an int.
        let on = unsafe { number.read_unaligned() } != 0;
        if on {
            socket.flags.fetch_or(bit, Relaxed)
        } else {
            socket.flags.fetch_and(!bit, Relaxed)
        };
        return if socket.is_served() { Ok(0) } else { kernel() };
    }
    if !socket.is_served() {
        return kernel();
    }
    let slot = socket.slot()?;
    let listens = socket.role() == Role::Listener;
    let answer = match request {
        libc::FIONREAD | libc::TIOCOUTQ | NOT_SENT if listens => return Err(libc::EINVAL),
        libc::FIONREAD if socket.role() == Role::Datagram => {
            state::next_length(lanes::first_to_look_at(socket, slot).1)
        }
        libc::FIONREAD => urgent::before_mark(socket, slot),
        // The daemon knows, of what it has seen. Of datagrams Linux does not tell it.
        NOT_SENT if socket.role() != Role::Datagram => {
            tcp_info::not_sent(socket, slot).unwrap_or(u32::MAX).min(state::unsent(slot))
        }
        libc::TIOCOUTQ => state::unsent(slot),
        AT_MARK if socket.role() != Role::Datagram => u32::from(urgent::is_at_mark(socket, slot, 0)),
        // Interfaces, routes, close-on-exec: nothing to do with the path.
        _ => return kernel(),
    };
    if number.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: these requests point to an int.
    unsafe { number.write_unaligned(c_int::try_from(answer).unwrap_or(c_int::MAX)) };
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::stage;

    /// A number that nobody has.
    const NUMBER: c_int = 60_000;

    #[test]
    fn what_is_closed_meanwhile_is_neither_copied_nor_counted() {
        let socket = crate::socket::make(stage::UNDECIDED, 0, 0).unwrap();
        assert!(table::put(NUMBER, Entry::Socket(socket)));
        let copied = Copied::of(NUMBER).unwrap();
        assert!(!socket.drop_descriptor(), "the copy");
        std::mem::forget(copied);
        assert!(socket.drop_descriptor());
        // Its last descriptor is closed, and not out of the table yet.
        assert!(Copied::of(NUMBER).is_none());
        assert!(!socket.add_descriptor_if_any());
        table::take(NUMBER);
        assert!(Copied::of(NUMBER).is_none());
        socket.free();
    }
}
