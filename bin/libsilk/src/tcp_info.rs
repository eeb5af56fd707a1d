//! `TCP_INFO` and what else only TCP knows: the daemon writes it into the arena when it is asked.

use crate::family;
use crate::listener;
use crate::socket::{Role, Socket};
use crate::wait::Deadline;
use silk_stream::{INFO_WORDS, MODEL_WORDS, SharedInfo, Slot, TcpInfo, request, status, wake};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// `TCP_CLOSE` and `TCP_LISTEN` of Linux.
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;

/// How long the daemon may take to answer; then what it has written before must do.
const MOMENT: Duration = Duration::from_millis(50);

/// Lets the daemon write into the slot what it knows now. It keeps nothing up to date there
/// while packets come and go.
pub fn ask(socket: &Socket, slot: &Slot) {
    let Some(family) = family::joined() else { return };
    let known = status::CONNECTED | status::CONNECTING | status::PEER_FIN | status::FAILED;
    if socket.role() != Role::Stream || slot.status.load(SeqCst) & known == 0 {
        return;
    }
    let seen = slot.info.load(SeqCst);
    let deadline = Deadline::after(Some(MOMENT));
    family.request(socket.name().0, slot, request::INFO);
    while slot.info.load(SeqCst) == seen && !family.is_dead() {
        let Some(nap) = deadline.nap() else { return };
        wake::wait(&slot.info, seen, Some(nap));
    }
}

/// What the daemon has written of a socket.
fn record(socket: &Socket) -> Option<&'static SharedInfo> {
    family::joined()?.arena.info(socket.name().0)
}

/// What is known of a connection, as the bytes of Linux's `struct tcp_info`.
pub fn told(socket: &Socket, slot: &Slot) -> [u8; INFO_WORDS * 4] {
    if socket.role() == Role::Listener {
        return of_listener(slot).bytes();
    }
    ask(socket, slot);
    let nothing = TcpInfo { state: CLOSE, ..TcpInfo::default() };
    known(socket, slot).map_or_else(|| nothing.bytes(), SharedInfo::bytes)
}

/// How many connections wait to be taken, and how many may.
fn of_listener(slot: &Slot) -> TcpInfo {
    let listener = listener::of(slot);
    let waiting = listener.into_iter().flat_map(listener::queues).map(|(_, queue)| queue.len());
    let sacked = listener.map_or(0, |listener| listener.backlog.load(Relaxed));
    TcpInfo { state: LISTEN, unacked: waiting.sum(), sacked, ..TcpInfo::default() }
}

/// What BBR believes of the path, as the words of Linux's `struct tcp_bbr_info`; of other algorithms there is nothing to
/// tell (`TCP_CC_INFO`).
pub fn model(socket: &Socket, slot: &Slot) -> Option<[u32; MODEL_WORDS]> {
    ask(socket, slot);
    known(socket, slot)?.model()
}

fn known(socket: &Socket, slot: &Slot) -> Option<&'static SharedInfo> {
    record(socket).filter(|_| slot.info.load(SeqCst) != 0 && socket.role() == Role::Stream)
}

/// Bytes of text in a full segment towards the peer; zero when they are not known.
pub fn segment(socket: &Socket, slot: &Slot) -> u32 {
    ask(socket, slot);
    known(socket, slot).map_or(0, SharedInfo::segment)
}

/// Bytes of the largest packet that the way to the peer takes.
pub fn path_mtu(socket: &Socket, slot: &Slot) -> Option<u32> {
    ask(socket, slot);
    known(socket, slot).map(SharedInfo::path_mtu).filter(|mtu| *mtu > 0)
}

/// Bytes that were written and never sent.
pub fn not_sent(socket: &Socket, slot: &Slot) -> Option<u32> {
    ask(socket, slot);
    known(socket, slot).map(SharedInfo::not_sent)
}

/// The CPU that processes the socket's packets, plus one, as it was last told.
pub fn incoming_cpu(socket: &Socket, slot: &Slot) -> Option<u32> {
    known(socket, slot).map(|record| record.cpu.load(Relaxed)).filter(|cpu| *cpu > 0)
}
