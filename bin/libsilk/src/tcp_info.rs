//! `TCP_INFO` from what the daemon writes into a slot: `struct tcp_info` of `<linux/tcp.h>`,
//! up to the fields that programs have read since Linux 2.6; the rest is cut off, which
//! `getsockopt` allows.

use silk_stream::Slot;
use std::sync::atomic::Ordering::Relaxed;

/// The structure's first part. Times are in µs, sizes of windows in segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    wscale: u8,
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
}

/// What is known of a connection.
pub fn of(slot: &Slot) -> TcpInfo {
    let mss = slot.mss.load(Relaxed).max(1);
    let known = slot.mss.load(Relaxed);
    let (rtt, rttvar) = (slot.rtt_us.load(Relaxed), slot.rtt_var_us.load(Relaxed));
    TcpInfo {
        state: slot.tcp_state.load(Relaxed) as u8,
        // RFC 6298 §2: never less than the least that Linux uses, 200 ms.
        rto: rtt.saturating_add(rttvar.saturating_mul(4)).max(200_000),
        snd_mss: known,
        rcv_mss: known,
        advmss: known,
        unacked: crate::state::unsent(slot) / mss,
        pmtu: known.saturating_add(40),
        rtt,
        rttvar,
        snd_ssthresh: slot.ssthresh.load(Relaxed) / mss,
        snd_cwnd: slot.cwnd.load(Relaxed) / mss,
        rcv_space: slot.rx_size.load(Relaxed),
        total_retrans: slot.retransmits.load(Relaxed),
        ..TcpInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_lie_where_linux_has_them() {
        assert_eq!(std::mem::offset_of!(TcpInfo, rto), 8);
        assert_eq!(std::mem::offset_of!(TcpInfo, rtt), 68);
        assert_eq!(std::mem::offset_of!(TcpInfo, total_retrans), 100);
        assert_eq!(size_of::<TcpInfo>(), 104);
    }

    #[test]
    fn windows_are_told_in_segments() {
        let slot = Slot::default();
        slot.mss.store(1448, Relaxed);
        slot.cwnd.store(14480, Relaxed);
        let info = of(&slot);
        assert_eq!((info.snd_cwnd, info.snd_mss, info.rto), (10, 1448, 200_000));
    }
}
