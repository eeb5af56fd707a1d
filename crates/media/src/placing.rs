//! The time stamps of MPEG video over RTP, where the sender's cannot be believed. A picture's stamp is to be
//! that of its showing (RFC 2250 §3.1), but GStreamer stamps the pictures of a live source in the order they
//! are coded and all those of a file alike, and ffmpeg, copying a stream without stamps, all reference
//! pictures of a group alike. The stream itself says in which order pictures are shown
//! (`temporal_reference`, ISO 13818-2 §6.3.9). As soon as the sender's stamps contradict that, pictures are
//! placed by it and by the stream's rate; where the sender has a clock all the same, each group of pictures is
//! placed by that.

use crate::alf::{self, Order};
use crate::timing::{Rate, TICKS};
use silk_path::Framing;

/// What is known of a stream's stamps. It is copied before a packet is looked at, for nothing may come
/// of one that turns out to be damaged.
#[derive(Clone, Copy, Debug)]
pub struct Placing {
    order: Order,
    rate: Rate,
    // Number and sender's stamp of the last picture, if nothing is missing behind it.
    last: Option<(u32, u32)>,
    // The number that the last group of pictures begins with, and what its first picture was stamped.
    group: Option<(u32, u32)>,
    // A number and its stamp, by which others are placed; none while the sender is believed.
    anchor: Option<(u32, u32)>,
    // The picture whose packets come: what its sender stamped it, and the stamp to show it by.
    sent: Option<u32>,
    current: Option<u32>,
}

impl Placing {
    /// The sender is believed; `rate` is the stream's as long as it does not tell itself.
    pub fn new(rate: Rate) -> Self {
        Self {
            order: Order::default(),
            rate,
            last: None,
            group: None,
            anchor: None,
            sent: None,
            current: None,
        }
    }

    /// The sender is believed.
    pub fn is_senders(&self) -> bool {
        self.anchor.is_none()
    }

    /// The next packet: the stamp to show its picture by.
    pub fn stamp(&mut self, framing: &Framing, bytes: &[u8]) -> u32 {
        if framing.gap {
            self.last = None;
        }
        if framing.first {
            self.begin(framing, bytes);
        } else if self.sent != Some(framing.stamp) {
            self.begin_unknown(framing.stamp);
        }
        self.current.filter(|_| !self.is_senders()).unwrap_or(framing.stamp)
    }

    /// A picture begins.
    fn begin(&mut self, framing: &Framing, bytes: &[u8]) {
        let Some(heading) = alf::heading(bytes, &mut self.order) else {
            return self.begin_unknown(framing.stamp);
        };
        self.sent = Some(framing.stamp);
        self.rate = heading.rate.and_then(alf::Rate::played).unwrap_or(self.rate);
        let here = (heading.number, framing.stamp);
        if let (None, Some(last)) = (self.anchor, self.last.filter(|last| contradict(*last, here))) {
            self.anchor = Some(self.group.unwrap_or(last));
        }
        self.last = Some(here);
        if heading.group {
            self.group = Some((self.order.base(), framing.stamp));
            self.follow_clock(framing.stamp);
        }
        self.current = self.anchor.map(|anchor| self.placed(anchor, heading.number));
    }

    /// A picture whose number nobody knows, its beginning being lost: its packets are no part of the picture before it.
    fn begin_unknown(&mut self, sent: u32) {
        self.last = None;
        self.sent = Some(sent);
        self.current = Some(if self.current == Some(sent) { sent.wrapping_add(1) } else { sent });
    }

    /// A group begins. A sender that stamps in the order of coding has sent as many pictures before it as are
    /// shown before it: where its clock says more, some were lost.
    fn follow_clock(&mut self, sent: u32) {
        let Some(anchor) = self.anchor else { return };
        let base = self.order.base();
        if is_after(sent, self.placed(anchor, base)) {
            self.anchor = Some((base, sent));
        }
    }

    fn placed(&self, (number, stamp): (u32, u32), other: u32) -> u32 {
        let pictures = i64::from(other.wrapping_sub(number).cast_signed());
        let ticks = pictures * (TICKS * 1000) as i64 / i64::from(self.rate.millis());
        stamp.wrapping_add(ticks as u32)
    }
}

/// Whether the stamps of two pictures contradict their numbers, both with their stamps.
fn contradict(a: (u32, u32), b: (u32, u32)) -> bool {
    a.0 != b.0 && (a.1 == b.1 || is_after(a.0, b.0) != is_after(a.1, b.1))
}

/// In serial number arithmetic (RFC 1982).
fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const PERIOD: u32 = 3600;

    /// The first packet of a picture: its type, its reference; `G` in front of a type begins a group.
    fn picture(told: &str) -> Vec<u8> {
        let (group, told) = told.strip_prefix('G').map_or((false, told), |rest| (true, rest));
        let kind = 1 + "IPB".find(&told[..1]).unwrap() as u8;
        let reference: u8 = told[1..].parse().unwrap();
        let mut bytes = Vec::new();
        if group {
            bytes.extend([0, 0, 1, 0xb8, 0, 8, 0, 0x40]);
        }
        bytes.extend([0, 0, 1, 0, reference >> 2, reference << 6 | kind << 3, 0xff, 0xf8, 0, 0, 1, 1]);
        bytes
    }

    /// The stamps that pictures are shown by, in periods, of pictures with the sender's stamps.
    fn shown(stream: &[(&str, u32)]) -> Vec<i32> {
        let mut placing = Placing::new(Rate::from_millis(25_000).unwrap());
        let begin = u32::MAX - 5 * PERIOD;
        let stamp = |(told, sent): &(&str, u32)| {
            let framing =
                Framing { stamp: begin.wrapping_add(sent * PERIOD), first: true, ..Framing::default() };
            let placed = placing.stamp(&framing, &picture(told));
            let again = placing.stamp(&Framing { first: false, ..framing }, b"more of it");
            assert_eq!(placed, again);
            placed.wrapping_sub(begin).cast_signed() / PERIOD as i32
        };
        stream.iter().map(stamp).collect()
    }

    #[test]
    fn a_sender_that_is_right_is_believed() {
        let right = [("GI0", 0), ("P3", 3), ("B1", 1), ("B2", 2), ("GI2", 6), ("B0", 4), ("B1", 5)];
        assert_eq!(shown(&right), [0, 3, 1, 2, 6, 4, 5]);
    }

    #[test]
    fn pictures_that_are_stamped_alike_are_placed_by_their_references() {
        let open = ["GI2", "B0", "B1", "P5", "B3"].map(|told| (told, 0));
        assert_eq!(shown(&open), [0, 0, 1, 5, 3]);
        let alike = ["GI0", "P3", "B1", "B2", "GI2", "B0", "B1", "P5", "GI0"].map(|told| (told, 0));
        assert_eq!(shown(&alike), [0, 3, 1, 2, 6, 4, 5, 9, 10]);
    }

    #[test]
    fn pictures_stamped_in_the_order_of_coding_are_placed_by_their_references() {
        let coded =
            [("GI0", 0), ("P3", 1), ("B1", 2), ("B2", 3), ("GI2", 4), ("B0", 5), ("B1", 6), ("P5", 7)];
        // Before the first B picture nothing is wrong.
        assert_eq!(shown(&coded), [0, 1, 1, 2, 6, 4, 5, 9]);
    }

    #[test]
    fn where_the_sender_has_a_clock_a_lost_group_is_not_forgotten() {
        let coded = [("GI0", 0), ("P3", 1), ("B1", 2), ("B2", 3), ("GI2", 14), ("B0", 15), ("B1", 16)];
        assert_eq!(shown(&coded)[4..], [16, 14, 15]);
    }

    #[test]
    fn behind_a_gap_nothing_is_concluded() {
        let mut placing = Placing::new(Rate::USUAL);
        let mut stamp = |told: &str, stamp, gap| {
            placing.stamp(&Framing { stamp, first: true, gap, ..Framing::default() }, &picture(told))
        };
        // The group's header was lost with the picture before.
        assert_eq!([stamp("GI9", 9, false), stamp("P3", 20, true), stamp("P6", 23, false)], [9, 20, 23]);
        assert!(placing.is_senders());
    }

    #[test]
    fn what_is_left_of_a_picture_that_lost_its_beginning_is_no_part_of_the_one_before() {
        let mut placing = Placing::new(Rate::from_millis(25_000).unwrap());
        let framing = |sent| Framing { stamp: sent * PERIOD, first: true, ..Framing::default() };
        let mut placed = Vec::new();
        for (told, sent) in [("GI0", 0), ("P2", 1), ("B1", 2)] {
            placed.push(placing.stamp(&framing(sent), &picture(told)));
        }
        assert_eq!(placed, [0, PERIOD, PERIOD]);
        let next = placing.stamp(&framing(3), &picture("P4"));
        assert_eq!(next, 4 * PERIOD);
        let rest = Framing { first: false, gap: true, ..framing(4) };
        let other = placing.stamp(&rest, b"the rest of the next");
        assert_ne!(other, next, "though its sender stamped it alike");
        assert_eq!(placing.stamp(&Framing { gap: false, ..rest }, b"and more"), other);
        assert_eq!(placing.stamp(&framing(5), &picture("P6")), 6 * PERIOD);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_place(
            packets in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..40), any::<u32>(), any::<bool>(), any::<bool>()),
                0..40,
            ),
        ) {
            let mut placing = Placing::new(Rate::USUAL);
            for (bytes, stamp, first, gap) in packets {
                let framing = Framing { stamp, first, gap, ..Framing::default() };
                let headed = [&[0, 0, 1, 0][..], &bytes].concat();
                placing.stamp(&framing, &headed);
            }
        }
    }
}
