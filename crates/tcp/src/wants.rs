//! What a connection could use of larger buffers. Whoever lends them may follow it or not: what is not there is
//! neither offered to the peer nor sent to it.

use crate::congestion::Congestion;
use crate::connection::Connection;

impl Connection {
    /// Octets that the receive buffer would have to hold for the peer to be offered all of the window that the
    /// program has been seen to read in a round trip.
    pub fn room_wanted(&self) -> u32 {
        self.rcv.tuning.limit()
    }

    /// Octets that the send buffer would have to hold for its size to hold nothing back: four congestion windows, as far
    /// as the peer's lets them be used. One is on its way, what was lost of another keeps its place until it is
    /// acknowledged, and a program that writes when half is free must have written enough for a window that doubles.
    pub fn text_wanted(&self) -> u32 {
        self.congestion.window().min(self.snd.wnd).saturating_mul(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{RecvBuffer, SendBuffer};
    use crate::codepoint::Codepoint;
    use crate::config::Config;
    use crate::options::Options;
    use crate::segment::{Flags, Segment};
    use crate::seq::SeqNumber;
    use silk_instant::Instant;

    struct Text(usize);

    impl SendBuffer for Text {
        fn len(&self) -> usize {
            self.0
        }
        fn consume(&mut self, octets: usize) {
            self.0 -= octets;
        }
    }

    impl RecvBuffer for Text {
        fn room(&self) -> usize {
            1 << 20
        }
        fn write(&mut self, bytes: &[u8]) -> usize {
            bytes.len()
        }
    }

    fn segment(flags: Flags, ack: u32, window: u16) -> Segment<'static> {
        let (seq, ack, options) = (SeqNumber::new(500), SeqNumber::new(ack), Options::default());
        Segment { seq, ack, flags, window, urgent: 0, ecn: Codepoint::NotEct, options, payload: &[] }
    }

    fn established(window: u16) -> Connection {
        let config = Config { mss: 1_000, initial_window: 10, ..Config::default() };
        let mut connection = Connection::connect(&config, SeqNumber::new(100), Instant::ZERO);
        let syn_ack = segment(Flags::SYN | Flags::ACK, 101, window);
        connection.on_segment(Instant::ZERO, &syn_ack, &mut Text(0), &mut Text(0)).unwrap();
        connection
    }

    #[test]
    fn four_windows_of_text_are_wanted_as_far_as_the_peer_lets_them_be_used() {
        let mut connection = established(60_000);
        assert_eq!(connection.text_wanted(), 4 * connection.congestion.window());
        connection = established(4_500);
        assert_eq!(connection.text_wanted(), 18_000);
    }

    #[test]
    fn so_much_room_is_wanted_as_the_window_could_be() {
        assert_eq!(established(9_000).room_wanted(), u32::from(u16::MAX), "the peer does not scale");
    }
}
