//! Every call into the kernel, and with it every `unsafe` of this crate, behind functions
//! that are safe to call with any argument. It must never decide anything: what the calls
//! mean is said by the files that use them.
#![allow(unsafe_code)]

mod arena;
mod ethtool;
mod event;
mod mapping;
mod receive_batch;
mod schedule;
mod send_batch;
mod socket;
mod tun;
mod uring;
mod xsk;

pub(crate) use arena::{Arena, Holder};
pub(crate) use ethtool::tags_apart;
pub use event::readable;
pub(crate) use event::{Event, Readiness, silence};
pub(crate) use mapping::Mapping;
pub(crate) use receive_batch::{ReceiveBatch, tell_marks};
pub(crate) use schedule::{pin, schedule};
pub(crate) use send_batch::SendBatch;
pub(crate) use socket::{
    Chooser, Filter, Heard, bind_packet, fan_out, filter, hear, interface_index, packet_drops, packet_socket,
    receive_buffer, send_buffer, send_parts, set_packet_option,
};
pub(crate) use tun::{open_tap, open_tun, read_parts, steer_tap, write_parts};
pub(crate) use uring::{Napi, Uring};
pub(crate) use xsk::{
    Binding, Ring, Which, bind as bind_xsk, losses, make_ring, open as open_xsk, register, wake,
};

/// The result of a system call that says -1 for failure.
fn check(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}

/// The result of a system call that gives a length, -1 for failure.
fn check_len(result: libc::ssize_t) -> std::io::Result<usize> {
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error())
}
