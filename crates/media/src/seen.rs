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
    since: Used,
    // Its cost is not its own.
    disturbed: bool,
}

/// Of the processor, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// By the path as a whole.
    pub path: u64,
    /// In its decoder.
    pub decoding: u64,
}

impl Used {
    fn since(self, start: Self) -> Self {
        let Self { path, decoding } = self;
        Self { path: path.saturating_sub(start.path), decoding: decoding.saturating_sub(start.decoding) }
    }
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

    /// What the picture costs whose packets are coming will have more in it than that picture.
    pub fn disturb(&mut self) {
        if let Some(last) = &mut self.last {
            last.disturbed = true;
        }
    }

    /// A packet of so many bytes is decoded next, and so much of the processor was `used`. Where another
    /// picture begins with it, the answer is what the one before was and has cost.
    pub fn packet(&mut self, framing: Framing, bytes: usize, used: Used) -> Option<(Sample, Used)> {
        let bits = bytes as f64 * 8.0;
        if let Some(last) = self.last.as_mut().filter(|last| last.stamp == framing.stamp) {
            last.bits += bits;
            return None;
        }
        let next = Last { stamp: framing.stamp, kind: framing.kind, bits, since: used, disturbed: false };
        let last = self.last.replace(next)?;
        self.pictures.note(last.kind, last.bits);
        let macroblocks = self.pictures.macroblocks;
        let sample = Sample { macroblocks, bits: last.bits };
        (macroblocks > 0.0 && !last.disturbed).then(|| (sample, used.since(last.since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_when_the_next_begins() {
        let mut seen = Seen::default();
        let packet = |stamp, kind| Framing { stamp, kind, ..Framing::default() };
        let used = |path| Used { path, decoding: path / 2 };
        assert_eq!(seen.packet(packet(0, 1), 100, used(0)), None);
        assert_eq!(seen.packet(packet(0, 1), 50, used(40)), None);
        assert_eq!(seen.packet(packet(2, 3), 10, used(90)), None, "its size is not known");
        seen.came_out(330.0);
        let told = Some((Sample { macroblocks: 330.0, bits: 80.0 }, Used { path: 30, decoding: 15 }));
        assert_eq!(seen.packet(packet(1, 3), 10, used(120)), told);
        seen.disturb();
        assert_eq!(seen.packet(packet(3, 3), 10, used(150)), None, "something else was in it");
        assert!(seen.packet(packet(4, 3), 10, used(180)).is_some());
        let [i, p, b] = seen.pictures().kinds.map(|kind| (kind.count, kind.bits));
        assert_eq!((i, p, b), ((1.0, 1200.0), (0.0, 0.0), (3.0, 80.0)));
    }
}
