//! What TCP knows of a connection, for `TCP_INFO`: written into the slot when the program asks,
//! so that packets cost nothing for it.

use crate::command::SocketName;
use crate::engine::Engine;
use silk_modules::tcp::ConnectionStage;
use silk_path::{Path, PathId};
use silk_stream::{Slot, wake};
use silk_tcp::Info;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// `TCPI_OPT_TIMESTAMPS`, `_SACK`, `_WSCALE` and `_ECN` of `<linux/tcp.h>`.
const TIMESTAMPS: u32 = 1;
const SACK: u32 = 2;
const WINDOW_SCALE: u32 = 4;
const ECN: u32 = 8;

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
        let slot = self.families.get(&name.family).and_then(|family| family.arena.slot(name.slot));
        if let (Some(slot), Some(info)) = (slot, self.paths.path(id).and_then(of)) {
            write(slot, &info);
        }
    }

    /// Wakes whoever has asked.
    pub(crate) fn answer_info(&self, name: SocketName) {
        let slot = self.families.get(&name.family).and_then(|family| family.arena.slot(name.slot));
        let Some(slot) = slot else { return };
        let next = slot.info.load(Relaxed).wrapping_add(1).max(1);
        slot.info.store(next, SeqCst);
        wake::wake(&slot.info, i32::MAX);
    }
}

fn write(slot: &Slot, info: &Info) {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let (peers, ours) = info.window_shifts;
    let scaled = peers | ours != 0;
    let options = [(info.timestamps, TIMESTAMPS), (info.sack, SACK), (scaled, WINDOW_SCALE), (info.ecn, ECN)];
    let options = options.into_iter().filter(|(on, _)| *on).fold(0, |all, (_, bit)| all | bit);
    for (word, value) in [
        (&slot.tcp_state, info.state as u32),
        (&slot.rtt_us, micros(info.srtt)),
        (&slot.rtt_var_us, micros(info.rttvar)),
        (&slot.rto_us, micros(info.rto)),
        (&slot.cwnd, info.cwnd),
        (&slot.ssthresh, info.ssthresh),
        (&slot.retransmits, info.segments_again),
        (&slot.backoff, info.backoff.into()),
        (&slot.mss, info.mss.into()),
        (&slot.in_flight, info.in_flight),
        (&slot.sacked, info.sacked),
        (&slot.receive_window, info.rcv_wnd),
        (&slot.info_options, options | u32::from(peers & 15) << 8 | u32::from(ours & 15) << 12),
    ] {
        word.store(value, Relaxed);
    }
}
