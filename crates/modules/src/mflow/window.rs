//! How far MFLOW lets the source send, how long the path's input queue is for that, and when the
//! source is told (Scout §4.1, §4.2).

use silk_wire::mflow::after;

/// The bounds of the input queue, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// At least so many.
    pub least: u16,
    /// At most so many; where it is less than `least`, that.
    pub most: u16,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: 8, most: 512 }
    }
}

/// Packets of a super-packet where some are discarded before they come here: the last of each is
/// not (the source waits for it), so the longer it is, the fewer come for nothing.
const DISCARDING: u16 = 8;

/// Packets over which the time of one is averaged: a decoder may do nothing for most of a picture's
/// and everything for its last.
const PACKETS: u64 = 64;

/// The window of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    bounds: Bounds,
    // n of Scout §4.2.
    super_packet: u16,
    // Packets the queue is to hold.
    queue: u16,
    // The time a packet takes, ns, over a few pictures; 0: not known.
    process: u64,
    // The highest number that was advertised; none before the first.
    highest: Option<u32>,
}

impl Window {
    /// A window over a queue of `queue` packets, none advertised.
    pub fn new(bounds: Bounds, queue: u16) -> Self {
        let mut window = Self { bounds, super_packet: 1, queue: 0, process: 0, highest: None };
        window.hold(queue);
        window
    }

    /// The queue for what was measured, both in ns: n packets take as long to process as a round
    /// trip lasts, and two super-packets of n fit (Scout §4.2).
    pub fn fit(&mut self, process: u64, round_trip: u64, discarding: bool) {
        self.process = match self.process {
            0 => process.max(1),
            before => (before - before / PACKETS + process / PACKETS).max(1),
        };
        let packets = round_trip.div_ceil(self.process).max(if discarding { DISCARDING.into() } else { 1 });
        self.hold(u16::try_from(packets.saturating_mul(2)).unwrap_or(u16::MAX));
    }

    fn hold(&mut self, queue: u16) {
        self.queue = queue.min(self.bounds.most).max(self.bounds.least.max(2));
        self.super_packet = self.queue / 2;
    }

    /// n: packets in a super-packet.
    pub fn super_packet(&self) -> u16 {
        self.super_packet
    }

    /// The highest number that was advertised.
    pub fn highest(&self) -> Option<u32> {
        self.highest
    }

    /// Whether the source is to be told, now that the packet of this number has been processed:
    /// when it asks, and whenever it may send a super-packet more than it knows of.
    pub fn is_due(&self, processed: u32, asked: bool) -> bool {
        let grown = self.highest.map(|highest| self.reach(processed).wrapping_sub(highest).cast_signed());
        asked || grown.is_none_or(|grown| grown >= i32::from(self.super_packet))
    }

    /// Moves the window: the number to advertise, and how many packets the queue has to hold for
    /// it. What was advertised stays advertised, however short the queue should be now.
    pub fn advance(&mut self, processed: u32) -> (u32, u16) {
        let reach = self.reach(processed);
        let highest = self.highest.filter(|before| after(*before, reach)).unwrap_or(reach);
        self.highest = Some(highest);
        let promised = highest.wrapping_sub(processed);
        (highest, u16::try_from(promised).unwrap_or(u16::MAX).max(self.queue))
    }

    /// The source has begun anew: nothing is advertised.
    pub fn reset(&mut self) {
        self.highest = None;
    }

    // Those that wait are the ones behind the last processed, so as many as wait and are free.
    fn reach(&self, processed: u32) -> u32 {
        processed.wrapping_add(self.queue.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;

    const MICRO: u64 = 1000;

    fn window(least: u16, most: u16) -> Window {
        Window::new(Bounds { least, most }, 0)
    }

    #[test]
    fn n_packets_take_as_long_as_a_round_trip_and_the_queue_holds_two_times_n() {
        let mut window = window(2, 512);
        let mut sizes = |process, round_trip, discarding| {
            window.fit(process * MICRO, round_trip * MICRO, discarding);
            (window.super_packet(), window.advance(0).1)
        };
        assert_eq!(sizes(500, 20, false), (1, 2));
        assert_eq!(sizes(500, 10_000, false), (20, 40));
        assert_eq!(sizes(500, 1_000_000, false), (256, 512));
        assert_eq!(window.advance(1), (513, 512));
    }

    #[test]
    fn a_decoder_that_works_at_the_end_of_a_picture_does_not_drive_the_queue_up_and_down() {
        let mut window = window(2, 512);
        for n in 0..2000 {
            let process = if n % 10 == 9 { 1_000 } else { 4 };
            window.fit(process * MICRO, 1_000 * MICRO, false);
            if n > 500 {
                // A packet takes 104 µs, on average.
                assert!((7..=14).contains(&window.super_packet()), "{window:?}");
            }
        }
    }

    #[test]
    fn where_packets_are_discarded_few_are_asked_for() {
        let mut window = window(2, 512);
        window.fit(500 * MICRO, 20 * MICRO, true);
        assert_eq!(window.super_packet(), 8);
    }

    #[test]
    fn the_source_is_told_for_each_super_packet_and_when_it_asks() {
        let mut window = window(8, 8);
        assert!(window.is_due(10, false), "the first packet");
        assert_eq!(window.advance(10), (18, 8));
        let due = [11, 12, 13, 14, 15].map(|number| window.is_due(number, false));
        assert_eq!(due, [false, false, false, true, true]);
        assert!(window.is_due(11, true));
    }

    #[test]
    fn measurements_of_nothing_do_no_harm() {
        let mut window = window(4, 16);
        window.fit(0, 0, false);
        assert_eq!(window.super_packet(), 2);
        window.fit(1, u64::MAX, false);
        assert_eq!(window.super_packet(), 8);
        assert_eq!(Window::new(Bounds { least: 9, most: 3 }, 0).advance(0), (9, 9));
    }

    proptest! {
        /// What was advertised is never taken back, and always has a place in the queue.
        #[test]
        fn what_is_advertised_has_room(steps in proptest::collection::vec((0u32..6, 0u64..3_000), 1..100)) {
            let mut window = window(2, 300);
            let (mut processed, mut before) = (u32::MAX - 50, None);
            for (more, round_trip) in steps {
                processed = processed.wrapping_add(more);
                window.fit(10, round_trip, false);
                let (highest, queue) = window.advance(processed);
                prop_assert!(before.is_none_or(|before| !after(before, highest)));
                prop_assert!(highest.wrapping_sub(processed) <= u32::from(queue) && queue <= 300);
                before = Some(highest);
                processed = processed.wrapping_add((more * 7) % (highest.wrapping_sub(processed) + 1));
            }
        }
    }
}
