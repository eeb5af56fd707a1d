//! What TCP knows of a connection, for `TCP_INFO`: written into the arena when the program asks,
//! so that packets cost nothing for it.

use crate::between::names::SocketName;
use crate::domain::engine::Engine;
use crate::domain::socket_end::SocketEnd;
use silk_executor::clock;
use silk_instant::Instant;
use silk_modules::host::HostStage;
use silk_modules::tcp::ConnectionStage;
use silk_path::{Path, PathId};
use silk_stream::{INFO_WORDS, MODEL_WORDS, TcpInfo, used, wake};
use silk_tcp::{Info, Model};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// `TCPI_OPT_TIMESTAMPS`, `_SACK`, `_WSCALE` and `_ECN` of `<linux/tcp.h>`.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALE: u8 = 4;
const ECN: u8 = 8;
/// Linux's way to say that no loss has set the slow-start threshold yet.
const INFINITE: u32 = 0x7fff_ffff;
/// Linux's `rcv_mss` before anything was received.
const UNSEEN_MSS: u32 = 536;
/// Bytes of the IP and TCP headers without options.
const HEADERS: u32 = 40;
const HEADERS6: u32 = 60;
/// Duplicate acknowledgements that make a loss (RFC 5681 §3.2, RFC 8985 §6.2).
const DUP_THRESH: u32 = 3;

/// What TCP knows of the connection of a path, if it is one's.
pub fn of(path: &Path) -> Option<Info> {
    path.stage::<ConnectionStage>().map(ConnectionStage::info)
}

impl Engine {
    /// A program asks: writes what is known and wakes it.
    pub(crate) fn tell_info(&self, id: PathId, name: SocketName) {
        self.write_info(id, name);
        self.answer_info(name);
    }

    /// Writes what is known of a connection that may be over in a moment.
    pub(crate) fn write_info(&self, id: PathId, name: SocketName) {
        let family = self.families.get(&name.family);
        let shared = family.and_then(|family| family.arena.info(name.slot));
        let (Some(shared), Some(path)) = (shared, self.core.paths.path(id)) else { return };
        shared.store(&self.tcp_info(path), of(path).and_then(|info| info.model).map(bbrs));
        shared.cpu.store(u32::try_from(rustix::thread::sched_getcpu()).map_or(0, |cpu| cpu + 1), Relaxed);
    }

    /// What is known of the connection of a path; of one over Linux's own TCP by Linux.
    pub(crate) fn tcp_info(&self, path: &Path) -> TcpInfo {
        if let Some(linux) = path.stage::<HostStage>() {
            let mut bytes = [0; INFO_WORDS * 4];
            linux.info(&mut bytes);
            return TcpInfo::of(&bytes);
        }
        let pmtu = |info: &Info| {
            let six = path.state.attrs.local().is_some_and(|local| local.is_v6());
            u32::from(info.path_mss) + if six { HEADERS6 } else { HEADERS }
        };
        of(path).map_or_else(TcpInfo::default, |info| TcpInfo {
            pmtu: pmtu(&info),
            ..linuxs(&info, self.unacknowledged(path), clock::now())
        })
    }

    /// Bytes in the send ring of a path's socket.
    pub(crate) fn unacknowledged(&self, path: &Path) -> u32 {
        // A lane has rings of its own.
        let datagrams = || self.core.port.datagrams_of(path.id()).map(SocketEnd::name);
        let name = path.state.attrs.owner().map(SocketName::of_owner).or_else(datagrams);
        name.and_then(|name| self.slot_of(name)).map_or(0, |slot| {
            used(slot.tx_write.load(SeqCst), slot.tx_read.load(SeqCst), slot.tx_size.load(Relaxed))
        })
    }

    /// Wakes whoever has asked.
    pub(crate) fn answer_info(&self, name: SocketName) {
        let slot = self.slot_of(name);
        let Some(slot) = slot else { return };
        let next = slot.info.load(Relaxed).wrapping_add(1).max(1);
        slot.info.store(next, SeqCst);
        wake::wake(&slot.info, i32::MAX);
    }
}

/// As Linux's `struct tcp_info` tells it, but for what depends on IP. `unacknowledged` bytes lie
/// in the send ring.
pub fn linuxs(info: &Info, unacknowledged: u32, now: Instant) -> TcpInfo {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let (peers, ours) = info.window_shifts;
    let scaled = peers | ours != 0;
    let options = [(info.timestamps, TIMESTAMPS), (info.sack, SACK), (scaled, WINDOW_SCALE), (info.ecn, ECN)];
    let mss = u32::from(info.mss).max(1);
    let segments = |octets: u32| octets.div_ceil(mss);
    let millis = |at| u32::try_from(now.since(at).as_millis()).unwrap_or(u32::MAX);
    let in_all = |octets: u64| u32::try_from(octets.div_ceil(mss.into())).unwrap_or(u32::MAX);
    let long = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    TcpInfo {
        state: info.state as u8,
        ca_state: info.repair as u8,
        retransmits: info.backoff,
        probes: info.probes,
        backoff: info.doublings,
        options: options.into_iter().filter(|(on, _)| *on).fold(0, |all, (_, bit)| all | bit),
        wscale: peers & 15 | (ours & 15) << 4,
        flags: info.app_limited.into(),
        rto: micros(info.rto),
        ato: micros(info.delayed_ack),
        snd_mss: info.mss.into(),
        rcv_mss: if info.largest_received > 0 { info.largest_received.into() } else { UNSEEN_MSS },
        unacked: segments(info.in_flight),
        sacked: segments(info.sacked),
        lost: segments(info.lost),
        retrans: segments(info.again),
        last_data_sent: millis(info.last_sent),
        last_data_recv: info.last_text.map_or(0, millis),
        last_ack_recv: millis(info.last_heard),
        rcv_ssthresh: info.rcv_wnd,
        rtt: micros(info.srtt),
        rttvar: micros(info.rttvar),
        snd_ssthresh: if info.ssthresh == u32::MAX { INFINITE } else { info.ssthresh / mss },
        snd_cwnd: info.cwnd / mss,
        advmss: info.our_mss.into(),
        reordering: DUP_THRESH,
        // What text that is read in a round trip is judged by.
        rcv_rtt: if info.octets_received > 0 { micros(info.srtt) } else { 0 },
        rcv_space: info.window_limit,
        total_retrans: info.segments_again,
        pacing_rate: info.pacing_rate.unwrap_or(u64::MAX),
        max_pacing_rate: info.max_pacing_rate.unwrap_or(u64::MAX),
        bytes_acked: info.octets_acked,
        bytes_received: info.octets_received,
        segs_out: info.segments_out,
        segs_in: info.segments_in,
        notsent_bytes: not_sent(info, unacknowledged),
        min_rtt: micros(info.min_rtt),
        data_segs_in: info.text_in,
        data_segs_out: info.text_out,
        delivery_rate: info.delivery_rate.unwrap_or(0),
        busy_time: long(info.waits.busy(now)),
        rwnd_limited: long(info.waits.for_the_peer(now)),
        sndbuf_limited: long(info.waits.for_room(now)),
        delivered: in_all(info.octets_acked + u64::from(info.sacked)),
        delivered_ce: in_all(info.octets_marked),
        bytes_sent: info.octets_sent + info.octets_again,
        bytes_retrans: info.octets_again,
        dsack_dups: info.received_twice,
        reord_seen: info.reordered,
        rcv_ooopack: info.out_of_order,
        snd_wnd: info.snd_wnd,
        rcv_wnd: info.rcv_wnd,
        total_rto: u16::try_from(info.timeouts).unwrap_or(u16::MAX),
        total_rto_recoveries: u16::try_from(info.timeout_series).unwrap_or(u16::MAX),
        total_rto_time: u32::try_from(info.timeout_time.as_millis()).unwrap_or(u32::MAX),
        ..TcpInfo::default()
    }
}

/// As Linux's `struct tcp_bbr_info` tells it.
fn bbrs(model: Model) -> [u32; MODEL_WORDS] {
    let min_rtt = u32::try_from(model.min_rtt.as_micros()).unwrap_or(u32::MAX);
    let [pacing, window] = [model.pacing_gain, model.window_gain].map(|gain| u32::from(gain) * 256 / 100);
    [model.bandwidth as u32, (model.bandwidth >> 32) as u32, min_rtt, pacing, window]
}

/// Of the bytes that the program wrote and the peer has not acknowledged, those never sent.
fn not_sent(info: &Info, unacknowledged: u32) -> u32 {
    let sent = info.octets_sent - info.octets_acked;
    unacknowledged.saturating_sub(u32::try_from(sent).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_tcp::{Config, Connection, SeqNumber};

    #[test]
    fn a_model_is_told_in_linuxs_units() {
        let model = Model {
            bandwidth: 5 << 32 | 7,
            min_rtt: Duration::from_millis(3),
            pacing_gain: 125,
            window_gain: 200,
        };
        assert_eq!(bbrs(model), [7, 5, 3_000, 320, 512]);
    }

    #[test]
    fn a_connection_is_told_in_linuxs_units() {
        let (began, now) = (Instant::from_millis(1_000), Instant::from_millis(1_250));
        let connection = Connection::connect(&Config::default(), SeqNumber::new(7), began);
        let info = Info { in_flight: 1449, octets_sent: 1449, sacked: 1, mss: 1448, ..connection.info() };
        let told = linuxs(&info, 10_000, now);
        assert_eq!((told.state, told.rto, told.snd_mss), (2, 1_000_000, 1448));
        assert_eq!((told.unacked, told.sacked, told.notsent_bytes), (2, 1, 10_000 - 1449));
        assert_eq!((told.snd_ssthresh, told.snd_cwnd, told.rcv_mss), (INFINITE, 10, 536));
        assert_eq!((told.last_data_sent, told.last_data_recv, told.pacing_rate), (250, 0, u64::MAX));
    }
}
