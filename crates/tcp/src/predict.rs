//! Header prediction (Jacobson 1990; RFC 1323 §4.2.1 of old): on an established connection without
//! losses nearly every segment is the next text in order, or an acknowledgement of new text, or
//! both. Those need none of the checks of `arrive` one by one. Whatever is not certainly such a
//! segment is left to it: this file may answer "not mine" to anything, and must never accept what
//! `arrive` would not.

use silk_instant::Instant;

use crate::buffer::{RecvBuffer, SendBuffer};
use crate::connection::{Connection, Owed};
use crate::progress::Progress;
use crate::receiver::Reader;
use crate::segment::{Flags, Segment};
use crate::state::State;

impl Connection {
    /// Takes the segment if it is a predicted one.
    pub(crate) fn predicted<S: SendBuffer + ?Sized, R: RecvBuffer + ?Sized>(
        &mut self,
        now: Instant,
        seg: &Segment,
        tx: &mut S,
        rx: &mut R,
    ) -> Option<Progress> {
        if !self.is_predicted(seg) {
            return None;
        }
        if let Some((value, _)) = seg.options.timestamp.filter(|_| self.stamps.on) {
            // In order and so at or before Last.ACK.sent, or after it and not to be echoed.
            self.stamps.update(now, value, seg.seq, self.rcv.last_ack_sent);
        }
        let mut progress = Progress::NONE;
        if seg.ack.after(self.snd.una) {
            let (una, lost) = (self.snd.una, self.recovery.lost_ever());
            progress |= self.advance(now, seg, tx);
            self.tell_delivery(now, seg.ack - una, 0, lost);
        }
        self.take_window(seg);
        if !seg.payload.is_empty() {
            progress |= self.predicted_text(now, seg.payload, rx);
        }
        self.heard(now);
        Some(progress)
    }

    fn is_predicted(&self, seg: &Segment) -> bool {
        let new_ack = seg.ack.after(self.snd.una) && seg.ack.at_or_before(self.snd.nxt);
        let text = !seg.payload.is_empty();
        self.state == State::Established
            && self.recovery.is_calm()
            && self.urgent.is_none()
            && seg.flags.without(Flags::PSH) == Flags::ACK
            && !self.ecn.concerns(seg.ecn)
            && seg.seq == self.rcv.nxt
            && (new_ack || (text && seg.ack == self.snd.una))
            && seg.options.sack.is_empty()
            && seg.options.user_timeout.is_none()
            && self.timestamp_is_new(seg)
            && (!text || self.takes_in_order(seg.payload.len()))
    }

    fn timestamp_is_new(&self, seg: &Segment) -> bool {
        match seg.options.timestamp {
            Some((value, _)) if self.stamps.on => !crate::stamps::stamp_before(value, self.stamps.recent),
            Some(_) => true,
            None => !self.stamps.on,
        }
    }

    fn takes_in_order(&self, octets: usize) -> bool {
        let plain = self.rcv.reassembly.is_none() && self.rcv.fin_at.is_none();
        plain && self.rcv.reader == Reader::Reading && octets as u64 <= u64::from(self.rcv.window())
    }

    fn predicted_text<R: RecvBuffer + ?Sized>(&mut self, now: Instant, text: &[u8], rx: &mut R) -> Progress {
        let taken = rx.write(text).min(text.len());
        self.rcv.nxt += taken as u32;
        self.tune_window(now, rx);
        self.counters.octets_received += taken as u64;
        if taken < text.len() {
            self.owed.add(Owed::ACK);
        } else {
            self.delay_ack(now, taken);
        }
        if taken > 0 { Progress::READABLE } else { Progress::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepoint::Codepoint;
    use crate::config::Config;
    use crate::options::Options;
    use crate::seq::SeqNumber;
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::time::Duration;
    use proptest::prelude::*;

    /// Both buffers of a program: how much it wrote, and what it got.
    #[derive(Clone, Debug)]
    struct Buffers(usize, Vec<u8>);

    impl SendBuffer for Buffers {
        fn len(&self) -> usize {
            self.0
        }
        fn consume(&mut self, octets: usize) {
            self.0 -= octets;
        }
    }

    impl RecvBuffer for Buffers {
        fn room(&self) -> usize {
            20_000 - self.1.len()
        }
        fn write(&mut self, bytes: &[u8]) -> usize {
            let taken = bytes.len().min(self.room());
            self.1.extend(&bytes[..taken]);
            taken
        }
        fn unread(&self) -> usize {
            self.1.len()
        }
    }

    const NOW: Instant = Instant::from_millis(50);

    fn segment(flags: Flags, seq: u32, ack: u32, payload: &[u8]) -> Segment<'_> {
        let (seq, ack, options) = (SeqNumber::new(seq), SeqNumber::new(ack), Options::default());
        Segment { seq, ack, flags, window: 9_000, urgent: 0, ecn: Codepoint::NotEct, options, payload }
    }

    /// Our numbers start at 101, the peer's at 501, and 3000 octets are outstanding.
    fn established(timestamps: bool) -> (Connection, Buffers) {
        let config = Config { timestamps, receive_window_max: 20_000, mss: 1_000, ..Config::default() };
        let mut connection = Connection::connect(&config, SeqNumber::new(100), Instant::ZERO);
        let mut buffers = Buffers(3_000, vec![]);
        let mut unused = Buffers(0, vec![]);
        let mut syn_ack = segment(Flags::SYN | Flags::ACK, 500, 101, &[]);
        syn_ack.options = Options { sack_permitted: true, mss: Some(1_000), ..Options::default() };
        syn_ack.options.timestamp = timestamps.then_some((7, 0));
        connection.on_segment(Instant::ZERO, &syn_ack, &mut unused, &mut buffers).unwrap();
        while connection.poll_transmit(Instant::ZERO, &buffers, &unused, 0).is_some() {}
        (connection, buffers)
    }

    /// Whether this segment, of a peer without timestamps, is predicted.
    fn is_predicted(seg: Segment) -> bool {
        let (connection, _) = established(false);
        connection.is_predicted(&seg)
    }

    #[test]
    fn text_in_order_and_new_acknowledgements_are_predicted() {
        assert!(is_predicted(segment(Flags::ACK, 501, 101, b"text")));
        assert!(is_predicted(segment(Flags::ACK | Flags::PSH, 501, 1_101, b"text")));
        assert!(is_predicted(segment(Flags::ACK, 501, 3_101, b"")));
    }

    #[test]
    fn everything_else_is_not() {
        let duplicate = segment(Flags::ACK, 501, 101, b"");
        let early = segment(Flags::ACK, 502, 101, b"text");
        let last = segment(Flags::ACK | Flags::FIN, 501, 101, b"text");
        let reset = segment(Flags::ACK | Flags::RST, 501, 1_101, b"");
        let unsent = segment(Flags::ACK, 501, 3_102, b"");
        let huge = segment(Flags::ACK, 501, 101, &[0; 40_000]);
        assert!(![duplicate, early, last, reset, unsent, huge].map(is_predicted).contains(&true));
    }

    /// The buffer of a program that has read everything whenever somebody looks.
    struct Prompt;

    impl RecvBuffer for Prompt {
        fn room(&self) -> usize {
            1 << 20
        }
        fn write(&mut self, bytes: &[u8]) -> usize {
            bytes.len()
        }
    }

    #[test]
    fn the_window_grows_for_a_program_that_reads_at_once_and_never_says_so() {
        let config = Config { receive_window: 8_000, receive_window_max: 1 << 20, ..Config::default() };
        let mut connection = Connection::connect(&config, SeqNumber::new(100), Instant::ZERO);
        let mut nothing = Buffers(0, vec![]);
        let syn_ack = segment(Flags::SYN | Flags::ACK, 500, 101, &[]);
        connection.on_segment(Instant::ZERO, &syn_ack, &mut nothing, &mut Prompt).unwrap();
        for n in 0..20 {
            let now = NOW + Duration::from_micros(500 * u64::from(n));
            let text = segment(Flags::ACK, 501 + 4_000 * n, 101, &[7; 4_000]);
            connection.on_segment(now, &text, &mut nothing, &mut Prompt).unwrap();
            while connection.poll_transmit(now, &nothing, &Prompt, 0).is_some() {}
        }
        // Two segments come in a millisecond, the shortest time that is measured.
        assert_eq!(connection.wanted_window(), 16_000);
    }

    proptest! {
        /// What is predicted ends exactly as it would without prediction.
        #[test]
        fn prediction_changes_nothing(
            segments in prop::collection::vec(
                (0u32..3, 0u32..7, 0usize..2_500, 8_000u16..8_002, prop::option::of(5u32..10), any::<bool>()),
                1..12,
            ),
            timestamps in any::<bool>(),
        ) {
            let (mut connection, mut buffers) = established(timestamps);
            for (ahead, acked, len, window, stamp, push) in segments {
                let payload = vec![len as u8; len];
                let flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
                let seq = connection.rcv.nxt.raw() + ahead / 2 * 100;
                let mut seg = segment(flags, seq, 101 + 500 * acked, &payload);
                seg.window = window;
                seg.options.timestamp = stamp.map(|value| (value, 0));
                let (mut other, mut others) = (connection.clone(), buffers.clone());
                let mut rx = buffers.clone();
                let outcome = connection.predicted(NOW, &seg, &mut buffers, &mut rx);
                buffers.1 = rx.1;
                let mut rx = others.clone();
                let plain = other.on_synchronized(NOW, &seg, &mut others, &mut rx);
                others.1 = rx.1;
                if let Some(progress) = outcome {
                    prop_assert_eq!(plain, Ok(progress));
                    prop_assert_eq!(format!("{connection:?}{buffers:?}"), format!("{other:?}{others:?}"));
                } else {
                    (connection, buffers) = (other, others);
                }
                while connection.poll_transmit(NOW, &buffers, &Buffers(0, vec![]), 0).is_some() {}
            }
        }
    }
}
