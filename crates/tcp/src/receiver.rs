//! The receive sequence variables (RFC 9293 §3.3.1), the window offered, and what is owed to the
//! peer by way of acknowledgement. The right edge of the window never moves left, and moves right
//! only in steps worth a segment (silly-window avoidance, RFC 9293 §3.8.6.2.2).

use alloc::boxed::Box;

use silk_instant::Instant;

use crate::company::Company;
use crate::config::Config;
use crate::options::SackBlocks;
use crate::reassembly::Reassembly;
use crate::seq::SeqNumber;
use crate::tuning::WindowTuning;

/// What the program still does with the stream it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// It reads.
    Reading,
    /// It has shut reading down: what comes is kept, as by Linux, or, if it writes no more either, answered with a reset
    /// (RFC 1122 §4.2.2.13).
    Shut,
    /// It has closed: text that still comes is answered with a reset (RFC 2525 §2.17).
    Gone,
}

/// What we receive.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Receiver {
    /// IRS: the peer's initial sequence number.
    pub(crate) irs: SeqNumber,
    /// RCV.NXT: the next sequence number expected.
    pub(crate) nxt: SeqNumber,
    /// RCV.NXT + RCV.WND as the peer was last told; `nxt <= edge`, save that a FIN may pass it.
    pub(crate) edge: SeqNumber,
    /// Last.ACK.sent (RFC 7323 §4.3).
    pub(crate) last_ack_sent: SeqNumber,
    /// Rcv.Wind.Shift (RFC 7323 §2.3).
    pub(crate) shift: u8,
    /// We offer window scaling, or, once both SYNs were seen, use it.
    pub(crate) scaling: bool,
    /// Segments of text since the last acknowledgement.
    pub(crate) unacked: u8,
    /// Duplicate acknowledgements owed to a peer without SACK, which counts them.
    pub(crate) duplicate_acks: u8,
    /// The MSS our SYN offered.
    pub(crate) offered_mss: u16,
    /// Octets of text in the peer's largest segment.
    pub(crate) largest: u16,
    /// When text last arrived; `FAR` for never.
    pub(crate) last_text: Instant,
    /// What became of acknowledgements that waited for company.
    pub(crate) company: Company,
    /// TCP_QUICKACK: no acknowledgement waits for company.
    pub(crate) quickack: bool,
    /// Where the peer's FIN is, once seen; not processed until `nxt` reaches it.
    pub(crate) fin_at: Option<SeqNumber>,
    /// A range received twice, to be reported once (D-SACK, RFC 2883 §4); empty without one.
    pub(crate) duplicate: (SeqNumber, SeqNumber),
    /// Text ahead of its turn; none on a connection without loss.
    pub(crate) reassembly: Option<Box<Reassembly>>,
    pub(crate) tuning: WindowTuning,
    pub(crate) reader: Reader,
}

impl Receiver {
    /// A receiver that knows its peer's `irs`, or not yet; then [`Receiver::open`] follows.
    pub(crate) fn new(config: &Config, irs: SeqNumber) -> Self {
        let tuning = WindowTuning::new(config.receive_window, config.receive_window_max);
        let mut receiver = Self {
            irs,
            nxt: irs,
            edge: irs,
            last_ack_sent: irs,
            shift: 0,
            scaling: false,
            reader: Reader::Reading,
            unacked: 0,
            duplicate_acks: 0,
            offered_mss: config.mss,
            largest: 0,
            last_text: Instant::FAR,
            company: Company::NEW,
            quickack: false,
            fin_at: None,
            duplicate: (irs, irs),
            reassembly: None,
            tuning,
        };
        receiver.open(irs);
        receiver
    }

    /// The peer's SYN came; our own offered [`Receiver::syn_window`].
    pub(crate) fn open(&mut self, irs: SeqNumber) {
        self.irs = irs;
        self.nxt = irs + 1;
        self.last_ack_sent = self.nxt;
        self.edge = self.nxt + u32::from(self.syn_window());
    }

    /// The window field of a SYN, which is never scaled (RFC 7323 §2.2).
    pub(crate) fn syn_window(&self) -> u16 {
        u16::try_from(self.tuning.limit()).unwrap_or(u16::MAX)
    }

    /// RCV.WND.
    pub(crate) fn window(&self) -> u32 {
        self.edge.since(self.nxt)
    }

    /// The window to offer when the buffer has `room`, in octets, of its `capacity`. Where that is less than a segment, or was made so since more
    /// was offered, half of it has to do.
    // RFC 9293 MUST-39.
    fn offer(&self, room: u32, capacity: usize, mss: u16) -> u32 {
        let (now, limit) = (self.window(), self.tuning.limit());
        let free = room.min(limit);
        let most = u32::try_from(capacity).map_or(limit, |capacity| limit.min(capacity));
        let step = (most / 2).min(u32::from(mss)).max(1);
        if free >= now.saturating_add(step) { free } else { now }
    }

    /// Moves the edge and answers the window field. Where scaling must round, it rounds up as long
    /// as there is room, so that the edge does not move left (RFC 7323 §2.4).
    // RFC 9293 SHLD-14.
    pub(crate) fn advertise(&mut self, room: usize, capacity: usize, mss: u16) -> u16 {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let offer = self.offer(room, capacity, mss);
        let rounded_up = offer.div_ceil(1 << self.shift);
        let fits = rounded_up << self.shift <= room;
        let field = if fits { rounded_up } else { offer >> self.shift };
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        self.edge = self.edge.max(self.nxt + (u32::from(field) << self.shift));
        field
    }

    /// Whether the program has read enough to tell the peer unasked: the window can move by a
    /// worthwhile step, and at least double.
    pub(crate) fn update_is_due(&self, room: usize, capacity: usize, mss: u16) -> bool {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let (now, offer) = (self.window(), self.offer(room, capacity, mss));
        // Of what is less than a unit of the window field the peer knows nothing.
        let told = now >> self.shift << self.shift;
        offer > now && offer / 2 >= told
    }

    /// Whether text waits for a gap to be filled.
    pub(crate) fn has_gap(&self) -> bool {
        self.reassembly.as_ref().is_some_and(|reassembly| !reassembly.is_empty())
    }

    /// The blocks to report, as many as there is `room` for, which is for one at least: a duplicate first (RFC 2883 §4), then what waits.
    // RFC 2018 §4.
    pub(crate) fn sack_blocks(&self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let (start, end) = self.duplicate;
        let twice = start != end;
        if twice {
            blocks.push(start, end);
        }
        if let Some(reassembly) = &self.reassembly {
            let waiting = reassembly.blocks(twice.then_some(start), room - usize::from(twice));
            for (start, end) in waiting.iter() {
                blocks.push(start, end);
            }
        }
        blocks
    }

    /// An acknowledgement of everything received was sent, with these blocks.
    pub(crate) fn acknowledged(&mut self, blocks: &SackBlocks) {
        self.last_ack_sent = self.nxt;
        self.unacked = 0;
        self.duplicate = (self.nxt, self.nxt);
        if let Some(reassembly) = &mut self.reassembly {
            reassembly.told(blocks);
        }
    }

    /// Whether the peer, who understands blocks, was not told of all yet.
    pub(crate) fn has_news(&self) -> bool {
        self.reassembly.as_ref().is_some_and(|reassembly| reassembly.has_news())
    }

    /// These octets have come twice, and are reported once.
    pub(crate) fn note_duplicate(&mut self, (start, end): (SeqNumber, SeqNumber)) {
        let (before, until) = self.duplicate;
        let touches = before != until && start.at_or_before(until) && end.at_or_after(before);
        self.duplicate = if touches { (before.min(start), until.max(end)) } else { (start, end) };
    }

    /// Frees the reassembly buffer when nothing waits in it.
    pub(crate) fn release(&mut self) {
        if !self.has_gap() {
            self.reassembly = None;
        }
    }

    /// Bytes of memory held outside of the connection itself.
    pub(crate) fn memory(&self) -> usize {
        self.reassembly.as_ref().map_or(0, |held| size_of::<Reassembly>() + held.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1_000;
    const ALL: usize = usize::MAX;

    fn receiver(window: u32, shift: u8) -> Receiver {
        let config = Config { receive_window: window, receive_window_max: window, ..Config::default() };
        let mut receiver = Receiver { shift, ..Receiver::new(&config, SeqNumber::new(0)) };
        receiver.edge = receiver.nxt;
        receiver
    }

    // RFC 9293 MUST-39.
    #[test]
    fn the_window_opens_only_by_a_segment_or_half_the_buffer() {
        let mut receiver = receiver(10_000, 0);
        assert_eq!(receiver.advertise(999, ALL, MSS), 0);
        assert_eq!(receiver.advertise(1_000, ALL, MSS), 1_000);
        assert_eq!(receiver.advertise(1_999, ALL, MSS), 1_000);
        let mut small = Receiver { tuning: WindowTuning::new(600, 600), ..receiver };
        small.edge = small.nxt;
        assert_eq!(small.advertise(299, ALL, MSS), 0);
        assert_eq!(small.advertise(300, ALL, MSS), 300);
    }

    #[test]
    fn a_buffer_that_is_smaller_than_a_segment_opens_by_half_of_itself() {
        let mut receiver = receiver(10_000, 0);
        assert_eq!(receiver.advertise(449, 900, MSS), 0);
        assert!(receiver.update_is_due(450, 900, MSS));
        assert_eq!(receiver.advertise(900, 900, MSS), 900);
    }

    // RFC 9293 SHLD-14; RFC 7323 §2.4.
    #[test]
    fn the_edge_never_moves_left() {
        let mut receiver = receiver(10_000, 0);
        receiver.advertise(8_000, ALL, MSS);
        let edge = receiver.edge;
        assert_eq!(receiver.advertise(10, ALL, MSS), 8_000);
        receiver.nxt += 5_000;
        assert_eq!(receiver.advertise(10, ALL, MSS), 3_000);
        assert_eq!(receiver.edge, edge);
    }

    #[test]
    fn a_scaled_window_rounds_up_only_into_real_room() {
        let mut receiver = receiver(1 << 20, 7);
        assert_eq!(receiver.advertise(128_000, ALL, MSS), 1_000);
        receiver.nxt += 1;
        assert_eq!(receiver.advertise(127_999, ALL, MSS), 999);
        assert_eq!(receiver.advertise(129_000, ALL, MSS), 1_007);
    }

    #[test]
    fn an_update_is_due_when_the_window_doubles() {
        let mut receiver = receiver(10_000, 0);
        receiver.advertise(3_000, ALL, MSS);
        assert!(!receiver.update_is_due(5_999, ALL, MSS));
        assert!(receiver.update_is_due(6_000, ALL, MSS));
        receiver.nxt += 3_000;
        assert!(!receiver.update_is_due(900, ALL, MSS));
        assert!(receiver.update_is_due(1_000, ALL, MSS));
    }

    #[test]
    fn what_is_less_than_the_field_can_say_is_no_window_that_the_peer_has() {
        let mut receiver = receiver(20_000, 14);
        receiver.edge = receiver.nxt + 20_000;
        receiver.nxt += 8_000;
        assert_eq!((receiver.advertise(12_000, ALL, MSS), receiver.window()), (0, 12_000));
        assert!(receiver.update_is_due(20_000, ALL, MSS));
        assert_eq!(receiver.advertise(20_000, ALL, MSS), 1);
    }

    #[test]
    fn a_duplicate_is_reported_before_what_waits() {
        let mut receiver = receiver(10_000, 0);
        let mut held = Reassembly::default();
        held.insert(SeqNumber::new(50), b"abc", 4_096).unwrap();
        receiver.reassembly = Some(Box::new(held));
        receiver.duplicate = (SeqNumber::new(1), SeqNumber::new(4));
        let starts: alloc::vec::Vec<_> = receiver.sack_blocks(3).iter().map(|block| block.0.raw()).collect();
        assert_eq!(starts, [1, 50]);
    }

    #[test]
    fn duplicates_that_touch_are_one_and_of_others_the_latest_is_told() {
        let mut receiver = receiver(10_000, 0);
        let mut told = |start, end| {
            receiver.note_duplicate((SeqNumber::new(start), SeqNumber::new(end)));
            (receiver.duplicate.0.raw(), receiver.duplicate.1.raw())
        };
        assert_eq!(told(100, 200), (100, 200));
        assert_eq!(told(200, 300), (100, 300));
        assert_eq!(told(50, 100), (50, 300));
        assert_eq!(told(400, 500), (400, 500), "what lies between came once");
        assert_eq!(told(10, 399), (10, 399));
    }
}
