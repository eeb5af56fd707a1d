//! Datagrams that arrived as one packet: Linux merged them (GRO), or a veth's neighbour left it to the
//! device to cut what its program sent in one call (`UDP_SEGMENT`). They are told apart again here, for a
//! datagram's bounds mean something to its program. TCP's segments stay together: they are a stream.

use std::collections::VecDeque;

use crate::pool::Pool;
use crate::{Checksum, Frame, Refusal, segment};

/// Datagrams that a domain may hold at once.
const COUNT: u32 = 512;
/// The most that one packet is: Linux refuses to send more in one call (`UDP_MAX_SEGMENTS`), and merges
/// no more than fit into 64 KB.
const IN_ONE: usize = 128;
/// Set in the index of a ticket whose datagram was one of several.
const MARK: u32 = 1 << 30;

/// A domain's buffers for such datagrams.
pub(super) struct Merged {
    pool: Pool,
    /// Those that wait to be handed up.
    waiting: VecDeque<Frame>,
    /// Room to cut in.
    packet: Vec<u8>,
}

impl Merged {
    /// All buffers empty, each with room for a frame of that many bytes.
    pub fn new(longest: u32) -> Self {
        Self { pool: Pool::new(COUNT, longest as usize), waiting: VecDeque::new(), packet: Vec::new() }
    }

    /// Whether there is room for whatever one packet may be.
    pub fn has_room(&self) -> bool {
        self.pool.left() >= IN_ONE
    }

    /// Cuts `packet` into datagrams of `segment` payload bytes, which wait here; each has the word `path`. How
    /// many did not fit in.
    pub fn cut(&mut self, packet: &[u8], segment: u16, path: u32) -> Result<u64, Refusal> {
        let offload = segment::datagrams(packet, segment).ok_or(Refusal::Malformed)?;
        let Self { pool, waiting, packet: room, .. } = self;
        let mut lost = 0;
        segment::cut(packet, offload, room, |datagram| match pool.hold_copy(datagram) {
            Some(index) => {
                let (offset, len) = (crate::HEADROOM as u32, datagram.len() as u32);
                let (index, checksum) = (index | MARK, Checksum::Unknown);
                waiting.push_back(Frame { index, device: 0, offset, len, path, segment: 0, checksum });
            }
            None => lost += 1,
        })?;
        Ok(lost)
    }

    /// Hands up at most `limit` of them.
    pub fn take(&mut self, frames: &mut Vec<Frame>, limit: usize) {
        frames.extend(self.waiting.drain(..limit.min(self.waiting.len())));
    }

    /// Whether a ticket is one of these.
    pub fn has(frame: Frame) -> bool {
        frame.index & (MARK | MARK << 1) == MARK
    }

    /// The buffer of a ticket that is held, nothing for any other.
    pub fn bytes(&mut self, frame: Frame) -> &mut [u8] {
        self.pool.bytes(unmarked(frame))
    }

    /// Frees the buffer of a ticket that is held; anything else is ignored.
    pub fn release(&mut self, frame: Frame) {
        self.pool.release(unmarked(frame));
    }
}

fn unmarked(frame: Frame) -> Frame {
    Frame { index: frame.index & !MARK, ..frame }
}

/// Whether the Ethernet frame `packet` is one UDP datagram and no fragment of one.
pub(super) fn is_datagram(packet: &[u8]) -> bool {
    segment::datagrams(packet, 0).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: [u8; 2], at: usize, protocol: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; if kind == [8, 0] { 42 } else { 62 }];
        packet[12..14].copy_from_slice(&kind);
        packet[14] = if kind == [8, 0] { 0x45 } else { 0x60 };
        packet[at] = protocol;
        packet.extend((0..payload).map(|at| at as u8));
        packet
    }

    #[test]
    fn datagrams_are_known_in_either_ip() {
        assert!(is_datagram(&frame([8, 0], 23, 17, 0)) && is_datagram(&frame([0x86, 0xdd], 20, 17, 0)));
        assert!(!is_datagram(&frame([8, 0], 23, 6, 0)) && !is_datagram(&frame([8, 6], 23, 17, 0)));
        assert!(!is_datagram(&[0; 13]));
        // Behind destination options too, but not behind a fragment header that says that more follows.
        let mut behind = frame([0x86, 0xdd], 20, 60, 0);
        behind.splice(54..54, [17, 0, 1, 4, 0, 0, 0, 0]);
        assert!(is_datagram(&behind));
        behind[20] = 44;
        behind[57] = 1;
        assert!(!is_datagram(&behind));
        let mut tagged = frame([8, 0], 23, 17, 0);
        tagged.splice(12..12, [0x81, 0, 0, 100]);
        assert!(is_datagram(&tagged));
    }

    #[test]
    fn what_came_as_one_is_several_again_in_order() {
        for (kind, at, headers) in [([8, 0], 23, 42), ([0x86, 0xdd], 20, 62)] {
            let mut merged = Merged::new(200);
            assert_eq!(merged.cut(&frame(kind, at, 17, 250), 100, 7), Ok(0));
            let mut frames = Vec::new();
            merged.take(&mut frames, 2);
            assert_eq!(frames.len(), 2);
            merged.take(&mut frames, 9);
            let all: Vec<u8> = frames
                .iter()
                .flat_map(|&frame| merged.bytes(frame)[frame.range()][headers..].to_vec())
                .collect();
            assert_eq!(all, (0..250).map(|at| at as u8).collect::<Vec<_>>());
            assert!(frames.iter().all(|&frame| Merged::has(frame) && frame.path == 7));
            frames.iter().for_each(|&frame| merged.release(frame));
            assert!(merged.bytes(frames[0]).is_empty());
        }
    }

    #[test]
    fn there_is_room_for_all_of_a_packet_or_it_is_said_how_many_were_lost() {
        let mut merged = Merged::new(200);
        let mut packets = 0;
        while merged.has_room() {
            assert_eq!(merged.cut(&frame([8, 0], 23, 17, IN_ONE), 1, 0), Ok(0));
            packets += 1;
        }
        assert_eq!(packets, COUNT as usize / IN_ONE);
        assert_eq!(merged.cut(&frame([8, 0], 23, 17, 3), 1, 0), Ok(3));
    }

    #[test]
    fn what_is_not_a_datagram_is_not_cut() {
        let mut merged = Merged::new(200);
        assert_eq!(merged.cut(&frame([8, 0], 23, 6, 50), 10, 0), Err(Refusal::Malformed));
        assert_eq!(merged.cut(&frame([8, 0], 23, 17, 0)[..30], 10, 0), Err(Refusal::Malformed));
    }
}
