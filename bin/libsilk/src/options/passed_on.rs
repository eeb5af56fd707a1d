//! The daemon learns from the slot what was set, as far as it concerns the path.

use crate::address;
use crate::family::{self, Family};
use crate::settings::Settings;
use crate::socket::{Role, Socket, shape};
use silk_stream::{Slot, option, request, status};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// Writes what the daemon must know of the options into the slot, where it differs. Whether any
/// wish did, or of a listening socket anything at all.
pub fn pass_on(socket: &Socket, slot: &Slot, family: &Family) -> bool {
    let wished = pass_on_wishes(&socket.settings, slot);
    let settings = &socket.settings;
    let pairs = [
        (&settings.stream, &slot.options),
        (&settings.keep_idle, &slot.keep_idle),
        (&settings.keep_interval, &slot.keep_interval),
        (&settings.keep_count, &slot.keep_count),
        (&settings.receive_buffer, &slot.receive_limit),
        (&settings.send_buffer, &slot.send_limit),
    ];
    // A datagram that is sent must fit whole: that ring stays as it is.
    let count = if socket.role() == Role::Stream { pairs.len() } else { pairs.len() - 1 };
    let (limit, watched) = (slot.receive_limit.load(Relaxed), keepalive(slot));
    let mut changed = put(service(socket, slot), &slot.service);
    for (from, to) in pairs.into_iter().take(count) {
        changed |= put(from.load(Relaxed), to);
    }
    if socket.role() == Role::Listener {
        // For its connections, which have them from the start.
        return wished | changed;
    }
    let grows = socket.role() == Role::Datagram && slot.receive_limit.load(Relaxed) > limit;
    // It is for connections on which nothing is sent.
    let is_due = keepalive(slot).is_some_and(|now| watched != Some(now));
    let bits = if changed { request::OPTIONS } else { 0 } | if wished { request::WISHES } else { 0 };
    if bits != 0 {
        family.request(socket.name().0, slot, bits);
    }
    // What comes next may be more than the ring of datagrams holds.
    if grows || is_due {
        family.ring(socket.name().0, slot);
    }
    wished
}

/// When a connection is probed while nothing comes, if it is.
fn keepalive(slot: &Slot) -> Option<[u32; 3]> {
    let is_on = slot.options.load(Relaxed) & option::KEEPALIVE != 0;
    let is_open = slot.status.load(Relaxed) & status::CONNECTED != 0;
    let times = [&slot.keep_idle, &slot.keep_interval, &slot.keep_count];
    (is_on && is_open).then(|| times.map(|time| time.load(Relaxed)))
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

/// The service bits of what is sent; of who listens over both versions of IP.
fn service(socket: &Socket, slot: &Slot) -> u32 {
    match socket.role() {
        Role::Listener => services(socket),
        _ => socket.settings.service_over(speaks_six(socket, slot)).load(Relaxed),
    }
}

/// Those over IPv4, and over IPv6 in the next eight bits.
fn services(socket: &Socket) -> u32 {
    let over = |six| socket.settings.service_over(six).load(Relaxed);
    over(false) | over(true) << 8
}

/// A socket is about to listen, over both versions of IP perhaps.
pub fn pass_on_to_listen(socket: &Socket) {
    if let Ok(slot) = socket.slot() {
        put(services(socket), &slot.service);
    }
}

fn put(value: u32, to: &AtomicU32) -> bool {
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

/// Whether what was held back goes out, now that the option of this name has been set.
pub(super) fn lets_go(slot: &Slot, name: c_int) -> bool {
    let options = slot.options.load(SeqCst);
    match name {
        libc::TCP_NODELAY => options & option::NODELAY != 0,
        libc::TCP_CORK => options & option::CORK == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_back_goes_out_once_it_may() {
        let slot = Slot::default();
        assert!(lets_go(&slot, libc::TCP_CORK) && !lets_go(&slot, libc::TCP_NODELAY));
        slot.options.store(option::NODELAY | option::CORK, SeqCst);
        assert!(!lets_go(&slot, libc::TCP_CORK) && lets_go(&slot, libc::TCP_NODELAY));
        assert!(!lets_go(&slot, libc::TCP_KEEPIDLE));
    }
}
