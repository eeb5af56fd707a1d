//! What a stream shows of itself while it is decoded: what its pictures are like, and what each has
//! cost its path as a whole, from its first packet to that of the next one (Scout §4.4).

use crate::admission::Pictures;
use crate::model::Sample;
use silk_path::Framing;

/// The pictures of a stream, as they were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pictures: Pictures,
    last: Option<Last>,
}

/// The picture whose packets are coming.
#[derive(Clone, Copy, Debug)]
struct Last {
    stamp: u32,
    kind: u8,
    bits: f64,
    // What the path had used of the processor when its first packet came, ns.
    since: u64,
}

impl Seen {
    /// What the pictures are like that were seen whole.
    pub fn pictures(&self) -> Pictures {
        self.pictures
    }

    /// A picture of this size came out of the decoder.
    pub fn came_out(&mut self, macroblocks: f64) {
        self.pictures.macroblocks = macroblocks;
    }

    /// A packet of so many bytes is decoded next, and the path has `used` so much of the processor, ns.
    /// Where another picture begins with it, the answer is what the one before was and has cost.
    pub fn packet(&mut self, framing: Framing, bytes: usize, used: u64) -> Option<(Sample, f64)> {
        let bits = bytes as f64 * 8.0;
        if let Some(last) = self.last.as_mut().filter(|last| last.stamp == framing.stamp) {
            last.bits += bits;
            return None;
        }
        let next = Last { stamp: framing.stamp, kind: framing.kind, bits, since: used };
        let last = self.last.replace(next)?;
        self.pictures.note(last.kind, last.bits);
        let macroblocks = self.pictures.macroblocks;
        let sample = Sample { macroblocks, bits: last.bits };
        (macroblocks > 0.0).then(|| (sample, used.saturating_sub(last.since) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_when_the_next_begins() {
        let mut seen = Seen::default();
        let packet = |stamp, kind| Framing { stamp, kind, ..Framing::default() };
        assert_eq!(seen.packet(packet(0, 1), 100, 0), None);
        assert_eq!(seen.packet(packet(0, 1), 50, 40), None);
        assert_eq!(seen.packet(packet(2, 3), 10, 90), None, "its size is not known");
        seen.came_out(330.0);
        let told = Some((Sample { macroblocks: 330.0, bits: 80.0 }, 30.0));
        assert_eq!(seen.packet(packet(1, 3), 10, 120), told);
        let [i, p, b] = seen.pictures().kinds.map(|kind| (kind.count, kind.bits));
        assert_eq!((i, p, b), ((1.0, 1200.0), (0.0, 0.0), (1.0, 80.0)));
    }
}
