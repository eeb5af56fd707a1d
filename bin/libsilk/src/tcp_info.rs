//! `TCP_INFO` from what the daemon writes into a slot: `struct tcp_info` of `<linux/tcp.h>`,
//! up to the fields that programs have read since Linux 2.6; the rest is cut off, which
//! `getsockopt` allows.

use crate::family;
use crate::socket::{Role, Socket};
use crate::wait::Deadline;
use silk_stream::{Slot, request, status, wake};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

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

impl TcpInfo {
    /// Bytes of a full segment towards the peer; zero when they are not known.
    pub fn segment(&self) -> u32 {
        self.snd_mss
    }
}

/// How long the daemon may take to answer; then what it has written before must do.
const MOMENT: Duration = Duration::from_millis(50);

/// Lets the daemon write into the slot what it knows now. It keeps nothing up to date there
/// while packets come and go.
pub fn ask(socket: &Socket, slot: &Slot) {
    let Some(family) = family::joined() else { return };
    let known = status::CONNECTED | status::CONNECTING | status::PEER_FIN | status::FAILED;
    if socket.role() != Role::Stream || slot.status.load(SeqCst) & known == 0 {
        return;
    }
    let seen = slot.info.load(SeqCst);
    let deadline = Deadline::after(Some(MOMENT));
    family.request(socket.name().0, slot, request::INFO);
    while slot.info.load(SeqCst) == seen && !family.is_dead() {
        let Some(nap) = deadline.nap() else { return };
        wake::wait(&slot.info, seen, Some(nap));
    }
}

/// What is known of a connection.
pub fn of(slot: &Slot) -> TcpInfo {
    const CLOSE: u8 = 7;
    const TIMESTAMPS: u32 = 1;
    /// Linux's way to say that no loss has set it yet.
    const INFINITE: u32 = 0x7fff_ffff;
    if slot.info.load(SeqCst) == 0 {
        return TcpInfo { state: CLOSE, ..TcpInfo::default() };
    }
    let known = slot.mss.load(Relaxed);
    let mss = known.max(1);
    let options = slot.info_options.load(Relaxed);
    let ssthresh = match slot.ssthresh.load(Relaxed) {
        u32::MAX => INFINITE,
        bytes => bytes / mss,
    };
    TcpInfo {
        state: slot.tcp_state.load(Relaxed) as u8,
        retransmits: slot.backoff.load(Relaxed) as u8,
        backoff: slot.backoff.load(Relaxed) as u8,
        options: options as u8,
        wscale: (options >> 8) as u8,
        rto: slot.rto_us.load(Relaxed),
        snd_mss: known,
        rcv_mss: known,
        advmss: known,
        unacked: slot.in_flight.load(Relaxed).div_ceil(mss),
        sacked: slot.sacked.load(Relaxed).div_ceil(mss),
        pmtu: known.saturating_add(if options & TIMESTAMPS == 0 { 40 } else { 52 }),
        rcv_ssthresh: slot.receive_window.load(Relaxed),
        rtt: slot.rtt_us.load(Relaxed),
        rttvar: slot.rtt_var_us.load(Relaxed),
        snd_ssthresh: ssthresh,
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
        slot.ssthresh.store(u32::MAX, Relaxed);
        slot.in_flight.store(1449, Relaxed);
        assert_eq!(of(&slot), TcpInfo { state: 7, ..TcpInfo::default() }, "nothing is known yet");
        slot.info.store(1, Relaxed);
        let info = of(&slot);
        assert_eq!((info.snd_cwnd, info.snd_mss, info.unacked), (10, 1448, 2));
        assert_eq!(info.snd_ssthresh, 0x7fff_ffff);
    }
}
