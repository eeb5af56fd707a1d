//! Packets in line: what a discipline takes them from.

use std::collections::VecDeque;

use silk_instant::Instant;

use super::Packet;

/// Packets in the order in which they came, and when they did.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    packets: VecDeque<(Instant, P)>,
    bytes: usize,
    /// The largest packet it ever held, RFC 8289's maxpacket.
    largest: usize,
}

impl<P: Packet> Fifo<P> {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0, largest: 0 }
    }

    pub(super) fn push(&mut self, now: Instant, packet: P) {
        self.bytes += packet.length();
        self.largest = self.largest.max(packet.length());
        self.packets.push_back((now, packet));
    }

    /// The oldest packet, and when it came.
    pub(super) fn pop(&mut self) -> Option<(Instant, P)> {
        let oldest = self.packets.pop_front();
        self.bytes -= oldest.as_ref().map_or(0, |(_, packet)| packet.length());
        oldest
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no more is held than one packet at the most.
    pub(super) const fn is_short(&self) -> bool {
        self.bytes <= self.largest
    }

    /// When the oldest packet came.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.packets.front().map(|(came, _)| *came)
    }
}

/// What left a queue at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left<P> {
    /// The packet for the transmitter.
    pub(super) packet: Option<P>,
    /// How many were dropped before it.
    pub(super) dropped: u64,
}
