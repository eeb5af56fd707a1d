//! Sockets that are passed to another process (`SCM_RIGHTS`, unix(7)). Of one of silk's the kernel would carry an empty
//! socket. So in its place goes one end of a lifeline, whose other end the daemon has: while it is on its way the socket is
//! held by it, whatever becomes of the sender, and if nobody receives it, the lifeline hangs up and the socket goes. At that
//! end lies what the library knows of the socket ([`Parcel`]), and the kernel's part of it, unless that is what all accepted
//! connections share. Whoever receives it asks the daemon for the socket, and puts the kernel's part in its place.
//!
//! Processes of one family can pass sockets to each other. To anybody else it is a connection to nobody.

use crate::close;
use crate::descriptor;
use crate::errno::{Answer, last, set, size};
use crate::family;
use crate::gate;
use crate::internal;
use crate::real;
use crate::record;
use crate::shared;
use crate::socket::{Socket, shape};
use crate::speaking;
use crate::table;
use crate::unserved;
use libc::{c_int, msghdr, ssize_t};
use silk_control::{Lifeline, Parcel, Reply, Request};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

/// Calls `each` with the place of every descriptor in the control data of a message.
///
/// # Safety
/// The header must be valid, with all it points to.
unsafe fn each_right(header: &msghdr, mut each: impl FnMut(*mut c_int)) {
    if header.msg_control.is_null() {
        return;
    }
    let end = header.msg_control.addr() + header.msg_controllen;
    // SAFETY: the macros walk the control data, which the caller vouches for, within their length; the data of an entry of
    // SCM_RIGHTS are descriptors, of which those are looked at that lie within it too.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(at).cast::<c_int>();
                let said = (*at).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let length = said.min(end.saturating_sub(data.addr()));
                (0..length / size_of::<c_int>()).for_each(|n| each(data.add(n)));
            }
            at = libc::CMSG_NXTHDR(ptr::from_ref(header).cast_mut(), at);
        }
    }
}

/// Whether a message passes a socket of ours.
///
/// # Safety
/// `message` is null, or valid with all it points to.
pub unsafe fn is_passed_by(message: *const msghdr) -> bool {
    // SAFETY: as the caller promises.
    let Some(header) = (unsafe { message.as_ref() }).filter(|_| family::joined().is_some()) else {
        return false;
    };
    let mut found = false;
    // SAFETY: as the caller promises; the places are those of descriptors.
    unsafe { each_right(header, |place| found |= table::socket(place.read_unaligned()).is_some()) };
    found
}

/// `sendmsg(2)` over a socket that is not ours, of a message that passes sockets of ours.
///
/// # Safety
/// As the C library's, and [`is_passed_by`] has answered `true`.
pub unsafe fn send(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as the caller promises.
    let mut packed = unsafe { *message };
    // SAFETY: the control data are as long as the header says.
    let control =
        unsafe { std::slice::from_raw_parts(packed.msg_control.cast::<u8>(), packed.msg_controllen) };
    // In words, which keep it aligned.
    let mut words = vec![0u64; control.len().div_ceil(size_of::<u64>())];
    let own = words.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for them, and nobody else has it.
    unsafe { own.copy_from_nonoverlapping(control.as_ptr(), control.len()) };
    packed.msg_control = own.cast();
    let mut lines = Ok(Vec::new());
    let mut replace = |place: *mut c_int| {
        // SAFETY: the place of a descriptor in `words`.
        let number = unsafe { place.read_unaligned() };
        if let (Some(socket), Ok(packed)) = (table::socket(number), &mut lines) {
            match pack(socket, number) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    // SAFETY: as above.
                    unsafe { place.write_unaligned(line.as_raw_fd()) };
                    packed.push(line);
                }
                Err(errno) => lines = Err(errno),
            }
        }
    };
    // SAFETY: `packed` is a copy of what the caller vouches for.
    unsafe { each_right(&packed, &mut replace) };
    match lines {
        Err(errno) => size(Err(errno)),
        Ok(lines) => {
            // SAFETY: as the caller promises; the control data are those of `words`.
            let sent = unsafe { real::sendmsg(fd, &packed, flags) };
            let errno = last();
            drop(lines);
            set(errno);
            sent
        }
    }
}

/// What goes in a socket's place; `None`: the kernel's part of it, for it is Linux's, or will be.
fn pack(socket: &Socket, number: c_int) -> Answer<Option<OwnedFd>> {
    if !socket.is_served() {
        if socket.is_undecided() {
            unserved::tell("sendmsg(SCM_RIGHTS) of a socket without an address", libc::EINVAL)?;
        }
        return Ok(None);
    }
    let (slot, generation) = socket.name();
    let (ours, daemons) = Lifeline::pair().map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))?;
    let Reply::Passed { ticket } = family::ask(&Request::Pass { slot, generation }, &[daemons.as_fd()])?
    else {
        return Err(libc::EPROTO);
    };
    shared::begin([socket]);
    let parcel = Parcel::new(ticket, record::describe(socket));
    // SAFETY: the program is passing it, so it is open.
    let kernels = unsafe { BorrowedFd::borrow_raw(number) };
    let beside: &[_] = if socket.is(shape::ACCEPTED) { &[] } else { &[kernels] };
    daemons.send(&parcel, beside).map_err(|_| libc::ENOBUFS)?;
    Ok(Some(ours.into_descriptor()))
}

/// A message has been received, not over a socket of ours: sockets of ours that it has passed become that.
///
/// # Safety
/// `message` is as the kernel left it, with these `flags` given to it.
pub unsafe fn received(message: *const msghdr, flags: c_int) {
    // What is only looked at will be received once more.
    if flags & libc::MSG_PEEK != 0 {
        return;
    }
    // SAFETY: as the caller promises; the places are those of descriptors that are new.
    unsafe {
        if let Some(header) = message.as_ref() {
            each_right(header, |place| unpack(place.read_unaligned()));
        }
    }
}

fn unpack(fd: c_int) {
    if fd < 0 {
        return;
    }
    // SAFETY: the program has just received it, and nobody knows of it yet who could close it.
    let parcel = silk_control::parcel(unsafe { BorrowedFd::borrow_raw(fd) });
    if let Some(parcel) = parcel
        && take(fd, &parcel).is_err()
    {
        speaking::say(
            &"a socket that was passed to this process is not one of its program: it leads nowhere",
        );
    }
}

fn take(fd: c_int, parcel: &Parcel) -> Answer<()> {
    let (slot, generation) = record::name(&parcel.record).ok_or(libc::EPROTO)?;
    family::join()?;
    // SAFETY: asks about a descriptor.
    let cloexec = unsafe { real::fcntl(fd, libc::F_GETFD, 0) } & libc::FD_CLOEXEC != 0;
    let kernels = kernels_part(fd, record::shape(&parcel.record).unwrap_or(0))?;
    let _inside = gate::pass();
    family::ask(&Request::Take { ticket: parcel.ticket, slot, generation }, &[])?;
    let Some(socket) = record::restore(&parcel.record) else {
        family::tell(&Request::Release { slot, generation });
        return Err(libc::ENFILE);
    };
    shared::join(socket);
    // SAFETY: `fd` is the lifeline's end, which has done its part.
    let placed = unsafe { real::dup3(kernels.number(), fd, if cloexec { libc::O_CLOEXEC } else { 0 }) };
    if placed < 0 || !descriptor::name(fd, socket) {
        close::let_go(socket);
        return Err(libc::EMFILE);
    }
    Ok(())
}

/// What the kernel has of a socket.
enum Kernels {
    /// What all accepted connections of a process share.
    Shared(c_int),
    /// The sender's, so that it is the same socket for the kernel too.
    Senders(OwnedFd),
}

impl Kernels {
    fn number(&self) -> c_int {
        match self {
            Self::Shared(fd) => *fd,
            Self::Senders(fd) => fd.as_raw_fd(),
        }
    }
}

/// The kernel's part of a socket of this shape, of which a parcel lies at `fd`.
fn kernels_part(fd: c_int, shape: u32) -> Answer<Kernels> {
    if shape & shape::ACCEPTED != 0 {
        let shared = internal::placeholder(shape & shape::INET6 != 0);
        return if shared < 0 { Err(last()) } else { Ok(Kernels::Shared(shared)) };
    }
    // SAFETY: nobody else knows of it yet.
    silk_control::beside_parcel(unsafe { BorrowedFd::borrow_raw(fd) })
        .map(Kernels::Senders)
        .ok_or(libc::EMFILE)
}
