//! Any sequence of segments, time and program's acts against one connection: it must not
//! panic, must not send beyond what the buffer holds, and must take no more than there is
//! room for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_instant::Instant;
use silk_tcp::{
    Algorithm, Codepoint, Config, Connection, Ecn, Flags, Options, RecvBuffer, Segment, SendBuffer, SeqNumber,
};
use std::time::Duration;

struct Tx(usize);

impl SendBuffer for Tx {
    fn len(&self) -> usize {
        self.0
    }
    fn consume(&mut self, octets: usize) {
        self.0 = self.0.checked_sub(octets).expect("acknowledges no more than was written");
    }
}

struct Rx(usize);

impl RecvBuffer for Rx {
    fn room(&self) -> usize {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        taken
    }
}

const ISS: u32 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_millis(1);
    let (mut tx, mut rx) = (Tx(3000), Rx(65536));
    let algorithms = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr];
    let congestion = algorithms[bytes.len() % 3];
    let user_timeout_option = Some(Duration::from_secs(3_600));
    let config = Config { congestion, ecn: Ecn::Ask, user_timeout_option, ..Config::default() };
    let mut connection = Connection::connect(&config, SeqNumber::new(ISS), now);
    let mut rest = bytes;
    while let [act, a, b, c, d, tail @ ..] = rest {
        rest = tail;
        match act % 8 {
            0 => now += Duration::from_millis(u64::from(*a) << (b % 12)),
            1 => connection.close(now),
            2 => connection.shutdown_write(),
            3 => connection.abort(),
            4 => {
                tx.0 = (tx.0 + usize::from(*a) * 16).min(1 << 20);
                if b % 4 == 0 {
                    connection.mark_urgent(usize::from(*c) * 16);
                }
            }
            5 => {
                rx.0 = (rx.0 + usize::from(*a) * 256).min(1 << 20);
                connection.on_read(now, &rx);
                if b % 4 == 0 {
                    connection
                        .set_user_timeout((*c > 0).then(|| Duration::from_millis(u64::from(*c) << (d % 16))));
                }
            }
            _ => {
                let options = Options::parse(&tail[..tail.len().min(usize::from(*d % 41))]);
                let segment = Segment {
                    seq: SeqNumber::new(u32::from(*a) * 7),
                    ack: SeqNumber::new(ISS + u32::from(*b)),
                    flags: Flags::from_bits(*c),
                    window: u16::from(*d) * 32,
                    urgent: u16::from(*b) * 16,
                    ecn: Codepoint::from_tos(*a),
                    options: options.unwrap_or_default(),
                    payload: &tail[..tail.len().min(usize::from(*a))],
                };
                let room = rx.0;
                let _ = connection.on_segment(now, &segment, &mut tx, &mut rx);
                assert!(rx.0 <= room);
            }
        }
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.on_timeout(now);
        }
        for _ in 0..64 {
            let Some(out) = connection.poll_transmit(now, &tx, &rx, 65_000) else { break };
            assert!(out.offset + out.len <= tx.0);
            let options = out.header.options.encoded_len();
            assert!(options <= Options::MAX_BYTES);
            let text = if out.gso_size > 0 { usize::from(out.gso_size) } else { out.len };
            assert!(text == 0 || text + options <= usize::from(config.mss));
            let urgent = out.header.flags.contains(Flags::URG);
            assert!(urgent == (out.header.urgent > 0) && (!urgent || out.gso_size == 0));
        }
    }
});
