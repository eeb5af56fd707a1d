//! One connection against hand-made segments. Our numbers start at 1001, the peer's at 5001, so
//! that every number in a test can be read.

use std::time::Duration;

use silk_instant::Instant;
use silk_tcp::{
    Codepoint, Config, Connection, DropReason, Ecn, Flags, Options, Progress, Segment, SeqNumber, State,
    Transmit,
};

use crate::buffers::{Rx, Tx};

/// Our first octet.
pub const OURS: u32 = 1_001;
/// The peer's first octet.
pub const THEIRS: u32 = 5_001;

pub struct Solo {
    pub now: Instant,
    pub connection: Connection,
    pub tx: Tx,
    pub rx: Rx,
    /// The largest text for one transmission.
    pub offload: usize,
}

/// Without options, so that a full segment is 1000 octets and windows are what they say.
pub fn plain() -> Config {
    Config {
        mss: 1_000,
        sack: false,
        timestamps: false,
        window_scaling: false,
        receive_window: 10_000,
        receive_window_max: 10_000,
        ..Config::default()
    }
}

/// The same with SACK.
pub fn with_sack() -> Config {
    Config { sack: true, ..plain() }
}

/// The same with timestamps; a full segment carries 1000 octets beside them.
pub fn with_timestamps() -> Config {
    Config { timestamps: true, mss: 1_012, ..plain() }
}

/// The options of a peer that offers whatever `config` does.
fn offer(config: &Config) -> Options {
    Options {
        mss: Some(config.mss),
        window_scale: config.window_scaling.then_some(0),
        sack_permitted: config.sack,
        timestamp: config.timestamps.then_some((100, 0)),
        ..Options::default()
    }
}

impl Solo {
    /// A connection whose SYN has just left.
    pub fn opening(config: &Config) -> Self {
        let now = Instant::from_millis(10_000);
        let connection = Connection::connect(config, SeqNumber::new(OURS - 1), now);
        let rx = Rx::new(config.receive_window_max as usize);
        let mut solo = Self { now, connection, tx: Tx::default(), rx, offload: 0 };
        let asks = Flags::ECE | Flags::CWR;
        assert_eq!(solo.flags_sent(), [Flags::SYN | if config.ecn == Ecn::Ask { asks } else { Flags::NONE }]);
        solo
    }

    /// An established connection to a peer with a window of 20 000.
    pub fn established(config: &Config) -> Self {
        Self::established_after(config, Duration::from_millis(10))
    }

    /// The same, with a handshake that took so long.
    pub fn established_after(config: &Config, round_trip: Duration) -> Self {
        let mut solo = Self::opening(config);
        solo.now += round_trip;
        let seg = solo.syn_ack(offer(config));
        let agrees = if config.ecn == Ecn::Ask { Flags::ECE } else { Flags::NONE };
        let progress = solo.arrive(Segment { flags: seg.flags | agrees, ..seg });
        assert_eq!((progress, solo.state()), (Ok(Progress::ESTABLISHED), State::Established));
        assert_eq!(solo.flags_sent(), [Flags::ACK]);
        solo
    }

    pub fn syn_ack(&self, options: Options) -> Segment<'static> {
        let (seq, ack) = (SeqNumber::new(THEIRS - 1), SeqNumber::new(OURS));
        Segment {
            seq,
            ack,
            flags: Flags::SYN | Flags::ACK,
            window: 20_000,
            urgent: 0,
            ecn: Codepoint::NotEct,
            options,
            payload: &[],
        }
    }

    pub fn state(&self) -> State {
        self.connection.state()
    }

    pub fn arrive(&mut self, seg: Segment) -> Result<Progress, DropReason> {
        self.connection.on_segment(self.now, &seg, &mut self.tx, &mut self.rx)
    }

    /// The program writes octets.
    pub fn write(&mut self, octets: usize) {
        self.tx.0.extend((0..octets).map(|n| n as u8));
    }

    pub fn poll(&mut self) -> Option<Transmit> {
        self.connection.poll_transmit(self.now, &self.tx, &self.rx, self.offload)
    }

    /// Everything that leaves now.
    pub fn sent(&mut self) -> Vec<Transmit> {
        let mut all = vec![];
        while let Some(transmit) = self.poll() {
            let end = transmit.offset + transmit.len;
            assert!(end <= self.tx.0.len(), "beyond what was written");
            let window = self.connection.info().snd_wnd.max(1) as usize;
            assert!(transmit.len == 0 || end <= window, "beyond the window");
            all.push(transmit);
            assert!(all.len() < 10_000, "it never stops sending");
        }
        all
    }

    /// What leaves now, as (sequence number, octets).
    pub fn text_sent(&mut self) -> Vec<(u32, usize)> {
        self.sent().iter().map(|transmit| (transmit.header.seq.raw(), transmit.len)).collect()
    }

    /// The flags of what leaves now.
    pub fn flags_sent(&mut self) -> Vec<Flags> {
        self.sent().iter().map(|transmit| transmit.header.flags).collect()
    }

    /// The acknowledgement numbers of what leaves now.
    pub fn acks_sent(&mut self) -> Vec<u32> {
        self.sent().iter().map(|transmit| transmit.header.ack.raw()).collect()
    }

    /// Time passes, with all time-outs in it.
    pub fn after(&mut self, time: Duration) -> Progress {
        self.now += time;
        self.connection.on_timeout(self.now)
    }

    /// Goes to the next deadline; how long that took, and what came of it.
    pub fn next_timeout(&mut self) -> Option<(Duration, Progress)> {
        let waited = self.connection.poll_timeout()? - self.now;
        Some((waited, self.after(waited)))
    }
}

/// A bare acknowledgement of our octets before `ack`, with nothing received out of the ordinary.
pub fn ack(ack: u32) -> Segment<'static> {
    let (seq, ack) = (SeqNumber::new(THEIRS), SeqNumber::new(ack));
    let options = Options::default();
    Segment {
        seq,
        ack,
        flags: Flags::ACK,
        window: 20_000,
        urgent: 0,
        ecn: Codepoint::NotEct,
        options,
        payload: &[],
    }
}

/// The peer's octets from `seq` on.
pub fn text(seq: u32, payload: &[u8]) -> Segment<'_> {
    Segment { seq: SeqNumber::new(seq), payload, ..ack(OURS) }
}

/// A bare segment with other flags.
pub fn flagged(flags: Flags, seq: u32) -> Segment<'static> {
    Segment { flags, seq: SeqNumber::new(seq), ..ack(OURS) }
}

/// The same segment with a timestamp.
pub fn stamped(seg: Segment, value: u32) -> Segment {
    Segment { options: Options { timestamp: Some((value, 0)), ..seg.options }, ..seg }
}

/// The same segment with SACK blocks.
pub fn sacked<'a>(seg: Segment<'a>, blocks: &[(u32, u32)]) -> Segment<'a> {
    let mut options = seg.options;
    for (start, end) in blocks {
        options.sack.push(SeqNumber::new(*start), SeqNumber::new(*end));
    }
    Segment { options, ..seg }
}
