//! What TCP knows of a connection, for `TCP_INFO`: written into the slot when the program asks,
//! so that packets cost nothing for it.

use crate::command::SocketName;
use crate::engine::Engine;
use silk_modules::tcp::ConnectionStage;
use silk_path::{Path, PathId};
use silk_stream::{Slot, wake};
use silk_tcp::{Info, State};
use std::sync::atomic::AtomicU32;
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
        let (Some(slot), Some(path)) = (slot, self.paths.path(id)) else { return };
        match of(path) {
            Some(info) => write(slot, &info),
            None => write_nothing(slot),
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

/// Of a connection over Linux's own TCP: that it is one, and nothing else.
fn write_nothing(slot: &Slot) {
    words(slot).into_iter().for_each(|word| word.store(0, Relaxed));
    slot.tcp_state.store(State::Established as u32, Relaxed);
}

/// The words of a slot that are written here.
fn words(slot: &Slot) -> [&AtomicU32; 13] {
    [
        &slot.tcp_state,
        &slot.rtt_us,
        &slot.rtt_var_us,
        &slot.rto_us,
        &slot.cwnd,
        &slot.ssthresh,
        &slot.retransmits,
        &slot.backoff,
        &slot.mss,
        &slot.in_flight,
        &slot.sacked,
        &slot.receive_window,
        &slot.info_options,
    ]
}

fn write(slot: &Slot, info: &Info) {
    let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    let (peers, ours) = info.window_shifts;
    let scaled = peers | ours != 0;
    let options = [(info.timestamps, TIMESTAMPS), (info.sack, SACK), (scaled, WINDOW_SCALE), (info.ecn, ECN)];
    let options = options.into_iter().filter(|(on, _)| *on).fold(0, |all, (_, bit)| all | bit);
    let values = [
        info.state as u32,
        micros(info.srtt),
        micros(info.rttvar),
        micros(info.rto),
        info.cwnd,
        info.ssthresh,
        info.segments_again,
        info.backoff.into(),
        info.mss.into(),
        info.in_flight,
        info.sacked,
        info.rcv_wnd,
        options | u32::from(peers & 15) << 8 | u32::from(ours & 15) << 12,
    ];
    words(slot).into_iter().zip(values).for_each(|(word, value)| word.store(value, Relaxed));
}
