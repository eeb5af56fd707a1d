//! When a source's pictures are due. They leave in the order of decoding, one in each period of
//! the rate, and a picture's packets are spread over its period. How many it has is not known
//! before its end, so as many are expected as the last picture of its type had.

use super::{Piece, Sending};
use core::time::Duration;
use silk_instant::Instant;

/// The most that a source catches up of a time when the player let it send nothing.
const CATCH_UP: Duration = Duration::from_secs(1);

/// When the pictures are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    sending: Sending,
    ahead: Duration,
    // When picture `pictures` is due.
    begun: Instant,
    // Pictures begun; and packets sent of the last of them.
    pictures: u64,
    packets: u32,
    // Packets that the last picture of each type had: what is expected of the next.
    usual: [u32; 8],
}

impl Schedule {
    /// Pictures from `now` on.
    pub fn new(sending: Sending, ahead: Duration, now: Instant) -> Self {
        Self { sending, ahead, begun: now, pictures: 0, packets: 0, usual: [1; 8] }
    }

    /// When the next packet is due.
    pub fn due(&self, piece: &Piece) -> Instant {
        let Sending::At(rate) = self.sending else { return Instant::ZERO };
        let (picture, nth) = if piece.first || self.pictures == 0 {
            (self.pictures, 0)
        } else {
            (self.pictures - 1, self.packets)
        };
        let usual = self.usual[usize::from(piece.kind & 7)].max(1);
        let spread = rate.time_of(1) * nth.min(usual - 1) / usual;
        let due = self.begun + rate.time_of(picture) + spread;
        Instant::ZERO + due.since(Instant::ZERO + self.ahead)
    }

    /// A packet is sent. What the player has held up longer than may be caught up stays late.
    pub fn sent(&mut self, piece: &Piece, now: Instant) {
        let late = now.since(self.due(piece));
        if matches!(self.sending, Sending::At(_)) && late > CATCH_UP {
            self.begun += late - CATCH_UP;
        }
        if piece.first || self.pictures == 0 {
            self.pictures += 1;
            self.packets = 0;
        }
        self.packets += 1;
        if piece.last {
            self.usual[usize::from(piece.kind & 7)] = self.packets;
        }
    }
}
