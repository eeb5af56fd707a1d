//! `struct tcp_info` of `<linux/tcp.h>` (Linux 6.14) as the daemon writes it for programs: as words
//! in shared memory, so that the library need only copy them.

use crate::sync::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Words of the structure.
pub const INFO_WORDS: usize = 62;

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// What there is to know about a connection, in Linux's units: segments for what is
        /// counted in windows, µs for times unless another unit is named. What is not known is 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct TcpInfo { $($(#[$doc])* pub $name: $kind,)* }

        impl TcpInfo {
            /// The structure's bytes.
            pub fn bytes(&self) -> [u8; INFO_WORDS * 4] {
                let mut all = [0; INFO_WORDS * 4];
                let mut rest = &mut all[..];
                $(rest = put(rest, &self.$name.to_ne_bytes());)*
                debug_assert!(rest.is_empty());
                all
            }

            /// The structure of these bytes; of what an older kernel does not tell there are zeros.
            pub fn of(bytes: &[u8; INFO_WORDS * 4]) -> Self {
                let mut rest = &bytes[..];
                Self { $($name: <$kind>::from_ne_bytes(next(&mut rest)),)* }
            }
        }
    };
}

/// Writes `bytes` at the start of `to` and gives what follows.
fn put<'a>(to: &'a mut [u8], bytes: &[u8]) -> &'a mut [u8] {
    let (head, rest) = to.split_at_mut(bytes.len());
    head.copy_from_slice(bytes);
    rest
}

/// The bytes at the start of `from`, which begins behind them then.
fn next<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let (head, rest) = from.split_at(N);
    *from = rest;
    std::array::from_fn(|at| head[at])
}

tcp_info! {
    /// State of RFC 9293 in Linux's numbers (`TCP_ESTABLISHED` = 1, …).
    state: u8,
    /// `TCP_CA_Open` (0), `_Disorder`, `_CWR`, `_Recovery` or `_Loss` (4).
    ca_state: u8,
    /// Retransmission time-outs in a row.
    retransmits: u8,
    /// Probes of a closed window, or of an idle peer, since it was last heard.
    probes: u8,
    /// Doublings of the time-out.
    backoff: u8,
    /// `TCPI_OPT_…`.
    options: u8,
    /// Window scale shifts: the peer's in the low half, ours above.
    wscale: u8,
    /// Bit 0: the delivery rate was limited by the program.
    flags: u8,
    /// Retransmission time-out.
    rto: u32,
    /// Delayed acknowledgement's time-out.
    ato: u32,
    /// Bytes of text in a full segment towards the peer.
    snd_mss: u32,
    /// Bytes of text in the peer's largest segment so far.
    rcv_mss: u32,
    /// Segments sent and not acknowledged; of a listening socket, connections not accepted.
    unacked: u32,
    /// Those of them that the peer holds out of order; of a listening socket, its backlog.
    sacked: u32,
    /// Those that are lost.
    lost: u32,
    /// Those that were sent again and are on their way.
    retrans: u32,
    /// No longer in use.
    fackets: u32,
    /// Milliseconds since text was sent.
    last_data_sent: u32,
    /// Not remembered, by Linux neither.
    last_ack_sent: u32,
    /// Milliseconds since text arrived.
    last_data_recv: u32,
    /// Milliseconds since an acknowledgement arrived.
    last_ack_recv: u32,
    /// Bytes of the largest packet the path takes.
    pmtu: u32,
    /// Bytes of window that may be offered now.
    rcv_ssthresh: u32,
    /// Smoothed round-trip time.
    rtt: u32,
    /// Its variation.
    rttvar: u32,
    /// Slow-start threshold; `0x7fff_ffff` before there is one.
    snd_ssthresh: u32,
    /// Congestion window.
    snd_cwnd: u32,
    /// Bytes of text in a full segment towards us.
    advmss: u32,
    /// Segments by which the network is seen to reorder.
    reordering: u32,
    /// Round-trip time as the receiver sees it.
    rcv_rtt: u32,
    /// Bytes of window that the program's reading calls for.
    rcv_space: u32,
    /// Segments sent again, in all.
    total_retrans: u32,
    /// Bytes per second at which text leaves; `u64::MAX` without pacing.
    pacing_rate: u64,
    /// `SO_MAX_PACING_RATE`.
    max_pacing_rate: u64,
    /// Bytes of text the peer has acknowledged.
    bytes_acked: u64,
    /// Bytes of text received in order.
    bytes_received: u64,
    /// Segments sent.
    segs_out: u32,
    /// Segments received.
    segs_in: u32,
    /// Bytes written by the program and never sent.
    notsent_bytes: u32,
    /// The least round-trip time of the last minutes.
    min_rtt: u32,
    /// Segments with text received.
    data_segs_in: u32,
    /// Segments with text sent.
    data_segs_out: u32,
    /// Bytes per second that arrived lately.
    delivery_rate: u64,
    /// Time in which text was outstanding.
    busy_time: u64,
    /// Time in which the peer's window held text back.
    rwnd_limited: u64,
    /// Time in which the send buffer held the program back.
    sndbuf_limited: u64,
    /// Segments delivered, duplicates included.
    delivered: u32,
    /// Those of them that came with a mark of congestion.
    delivered_ce: u32,
    /// Bytes of text sent, those sent again included.
    bytes_sent: u64,
    /// Bytes sent again.
    bytes_retrans: u64,
    /// Segments that the peer says it had received before.
    dsack_dups: u32,
    /// Times the network was seen to reorder.
    reord_seen: u32,
    /// Segments that arrived out of order.
    rcv_ooopack: u32,
    /// The peer's window, bytes.
    snd_wnd: u32,
    /// The window offered to the peer, bytes.
    rcv_wnd: u32,
    /// Times the packets were given another hash.
    rehash: u32,
    /// Retransmission time-outs, in all.
    total_rto: u16,
    /// Recoveries that began with one.
    total_rto_recoveries: u16,
    /// Milliseconds spent in them.
    total_rto_time: u32,
}

/// Words of `struct tcp_bbr_info`: the bandwidth in bytes per second, its lower half first; the least round-trip time in
/// µs; and the gains of pacing and window in units of 1/256.
pub const MODEL_WORDS: usize = 5;

/// What the daemon has written of one socket when it was last asked.
#[repr(C, align(64))]
pub struct SharedInfo {
    words: [AtomicU32; INFO_WORDS],
    model: [AtomicU32; MODEL_WORDS],
    /// The CPU that processes its packets, plus one (`SO_INCOMING_CPU`); zero: not known.
    pub cpu: AtomicU32,
}

impl Default for SharedInfo {
    fn default() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU32::new(0)),
            model: std::array::from_fn(|_| AtomicU32::new(0)),
            cpu: AtomicU32::new(0),
        }
    }
}

impl SharedInfo {
    /// Writes what is known, and what congestion control believes of the path, if it has a model of that.
    pub fn store(&self, info: &TcpInfo, model: Option<[u32; MODEL_WORDS]>) {
        for (word, value) in self.model.iter().zip(model.unwrap_or_default()) {
            word.store(value, Relaxed);
        }
        for (word, bytes) in self.words.iter().zip(info.bytes().chunks_exact(4)) {
            word.store(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), Relaxed);
        }
    }

    /// The structure's bytes as they were last written.
    pub fn bytes(&self) -> [u8; INFO_WORDS * 4] {
        let mut all = [0; INFO_WORDS * 4];
        for (bytes, word) in all.chunks_exact_mut(4).zip(&self.words) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        all
    }

    /// What congestion control believes of the path; there are gains if it believes anything.
    pub fn model(&self) -> Option<[u32; MODEL_WORDS]> {
        let model = std::array::from_fn(|n| self.model[n].load(Relaxed));
        (model != [0; MODEL_WORDS]).then_some(model)
    }

    /// The state, in Linux's numbers.
    pub fn state(&self) -> u8 {
        self.bytes()[0]
    }

    /// `snd_mss`: bytes of text in a full segment towards the peer.
    pub fn segment(&self) -> u32 {
        self.words[4].load(Relaxed)
    }

    /// `notsent_bytes`: bytes that the program has written and that were never sent.
    pub fn not_sent(&self) -> u32 {
        self.words[36].load(Relaxed)
    }

    /// `pmtu`: bytes of the largest packet the path takes.
    pub fn path_mtu(&self) -> u32 {
        self.words[15].load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The place and value of a field in Linux's structure.
    fn word(info: &TcpInfo, offset: usize) -> u32 {
        let bytes = info.bytes();
        u32::from_ne_bytes(bytes[offset..offset + 4].try_into().unwrap())
    }

    #[test]
    fn the_fields_lie_where_linux_has_them() {
        let info = TcpInfo {
            state: 1,
            rto: 2,
            rtt: 3,
            total_retrans: 4,
            pacing_rate: 5,
            segs_out: 6,
            delivery_rate: 7,
            delivered: 8,
            bytes_sent: 9,
            rcv_ooopack: 10,
            snd_wnd: 11,
            total_rto: 12,
            total_rto_time: 13,
            ..TcpInfo::default()
        };
        let places = [0, 8, 68, 100, 104, 136, 160, 192, 200, 224, 228, 240, 244];
        assert_eq!(places.map(|at| word(&info, at)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(TcpInfo::of(&info.bytes()), info);
    }

    #[test]
    fn what_is_written_is_read() {
        let info = TcpInfo {
            state: 1,
            snd_mss: 1448,
            pmtu: 1500,
            bytes_acked: 1 << 40,
            notsent_bytes: 7,
            ..TcpInfo::default()
        };
        let shared = SharedInfo::default();
        shared.store(&info, Some([7, 0, 3, 256, 512]));
        assert_eq!((shared.bytes(), shared.model()), (info.bytes(), Some([7, 0, 3, 256, 512])));
        shared.store(&info, None);
        assert_eq!(shared.model(), None);
        assert_eq!((shared.state(), shared.segment(), shared.path_mtu()), (1, 1448, 1500));
        assert_eq!(shared.not_sent(), 7);
    }
}
