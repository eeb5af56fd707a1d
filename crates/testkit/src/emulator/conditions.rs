//! What one direction of a link is like: plain values, set by whoever emulates it.

use std::num::NonZeroU64;
use std::time::Duration;

use super::Loss;

/// The conditions that packets meet, in the order in which they meet them. Probabilities are per
/// packet, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The longest packet that the link takes, in bytes as they are given to it, link header
    /// included; longer ones vanish and nobody is told (a black hole, RFC 2923 §2.1).
    pub longest: Option<NonZeroU64>,
    /// Packets that enter twice, as from a switch that floods.
    pub duplicate: f64,
    /// Packets that may wait for the transmitter; at least one may.
    pub queue: usize,
    /// What happens in the queue.
    pub discipline: Discipline,
    /// Bits per second that the transmitter sends; none: any number, and nothing ever waits.
    pub rate: Option<NonZeroU64>,
    /// Packets that are sent and never arrive.
    pub loss: Loss,
    /// Packets in which one bit is turned over.
    pub corrupt: f64,
    /// How long every packet is under way.
    pub delay: Duration,
    /// A random part of the delay, at most this much more. It never changes the order.
    pub jitter: Duration,
    /// Packets that are held back at random, for [`reorder_by`](Self::reorder_by) at most, and may
    /// be overtaken meanwhile.
    pub reorder: f64,
    /// How long those are held back at most.
    pub reorder_by: Duration,
}

/// Who is dropped from a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// Who arrives when it is full (drop-tail).
    #[default]
    DropTail,
    /// And before that, from the head, who shows that the queue stands (CoDel, RFC 8289).
    CoDel,
}

impl Conditions {
    /// The queue of [`Conditions::default`], which is that of most Linux interfaces.
    pub const QUEUE: usize = 1_000;
}

impl Default for Conditions {
    /// A line without length, limit or fault.
    fn default() -> Self {
        Self {
            longest: None,
            duplicate: 0.0,
            queue: Self::QUEUE,
            discipline: Discipline::DropTail,
            rate: None,
            loss: Loss::NONE,
            corrupt: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: 0.0,
            reorder_by: Duration::ZERO,
        }
    }
}
