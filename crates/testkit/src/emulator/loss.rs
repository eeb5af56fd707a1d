//! Loss with a memory: the Gilbert-Elliott channel (E. N. Gilbert, *Capacity of a Burst-Noise
//! Channel*, 1960; E. O. Elliott, *Estimates of Error Rates for Codes on Burst-Noise Channels*,
//! 1963). It is in one of two states, each with its own loss, and moves between them after every
//! packet. Random loss is a channel that never leaves its good state.

use crate::dice::Dice;

/// How a line loses packets. All values are probabilities, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// A packet is lost in the good state.
    pub good: f64,
    /// A packet is lost in the bad state.
    pub bad: f64,
    /// The good state ends after a packet.
    pub worsens: f64,
    /// The bad state ends after a packet.
    pub recovers: f64,
}

impl Loss {
    /// Nothing is lost.
    pub const NONE: Self = Self::random(0.0);

    /// Every packet is lost with the same probability, whatever became of the one before.
    pub const fn random(probability: f64) -> Self {
        Self { good: probability, bad: probability, worsens: 0.0, recovers: 1.0 }
    }

    /// The largest share of packets that bursts of `length` on the average can lose: between two of them there is
    /// one packet at least that is not lost.
    pub const fn most_in_bursts(length: f64) -> f64 {
        let length = length.max(1.0);
        length / (length + 1.0)
    }

    /// A `share` of all packets is lost, at most [`most_in_bursts`](Self::most_in_bursts), in bursts of `length` packets
    /// on the average, at least 1: the bad state loses all, the good one nothing (Gilbert's own simplification).
    pub const fn bursts(share: f64, length: f64) -> Self {
        let recovers = 1.0 / length.max(1.0);
        // In the long run the channel is bad for worsens / (worsens + recovers) of the packets.
        let worsens = (share / (1.0 - share) * recovers).min(1.0);
        Self { good: 0.0, bad: 1.0, worsens, recovers }
    }
}

/// A channel: the loss and the state it is in.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    loss: Loss,
    bad: bool,
}

impl Channel {
    pub(super) const fn new(loss: Loss) -> Self {
        Self { loss, bad: false }
    }

    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self, dice: &mut Dice) -> bool {
        let Loss { good, bad, worsens, recovers } = self.loss;
        let lost = dice.falls(if self.bad { bad } else { good });
        self.bad ^= dice.falls(if self.bad { recovers } else { worsens });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a hundred thousand packets: how many are lost, in how many bursts.
    fn lost_and_bursts(loss: Loss) -> (usize, usize) {
        let (mut dice, mut channel) = (Dice::new(1), Channel::new(loss));
        let lost: Vec<bool> = (0..100_000).map(|_| channel.loses(&mut dice)).collect();
        let begins = |pair: &&[bool]| !pair[0] && pair[1];
        (lost.iter().filter(|lost| **lost).count(), lost.windows(2).filter(begins).count())
    }

    #[test]
    fn random_loss_has_its_share_and_short_bursts() {
        // Expected: 2 000 lost, of which 98 % begin a burst.
        assert_eq!(lost_and_bursts(Loss::random(0.02)), (1_944, 1_900));
    }

    #[test]
    fn bursts_have_their_share_and_their_length() {
        // Expected: 2 000 lost, in bursts of eight, so 250.
        assert_eq!(lost_and_bursts(Loss::bursts(0.02, 8.0)), (1_753, 222));
    }

    #[test]
    fn the_largest_share_is_reached_and_no_larger_one() {
        assert_eq!(Loss::most_in_bursts(3.0), 0.75);
        let (most, more) = (Loss::bursts(0.75, 3.0), Loss::bursts(0.9, 3.0));
        assert_eq!(lost_and_bursts(most), lost_and_bursts(more));
        let (lost, bursts) = lost_and_bursts(most);
        // Expected: 75 000 lost, in 25 000 bursts.
        assert!(lost.abs_diff(75_000) < 500 && bursts.abs_diff(25_000) < 500, "{lost} {bursts}");
    }

    #[test]
    fn no_loss_loses_nothing_and_a_broken_line_everything() {
        assert_eq!(lost_and_bursts(Loss::NONE), (0, 0));
        assert_eq!(lost_and_bursts(Loss::random(1.0)).0, 100_000);
    }
}
