//! The figures of streams as JSON, for experiments.

use super::describe::late;
use super::network::Played;
use crate::trouble::Trouble;
use serde_json::{Value, json};
use silk_media::deadline::Bottleneck;
use silk_media::{Missed, Timeline};
use silk_player::{Figures, Words};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Writes them to `file`.
pub(super) fn write(file: &Path, played: &[Played]) -> Result<(), Trouble> {
    let streams: Vec<Value> = played.iter().map(stream).collect();
    let text = json!({ "streams": streams }).to_string();
    fs::write(file, text).map_err(|error| Trouble::Unwritable(file.display().to_string(), error))
}

fn stream(played: &Played) -> Value {
    let figures = &played.figures;
    let Figures { name, state, shown, decoded, account, promised, .. } = figures;
    json!({
        "name": name,
        "state": state,
        "shown": shown.shown,
        "missed": shown.missed,
        "lost": shown.lost,
        "skipped": shown.skipped,
        "concealed": shown.concealed,
        "overflowed": shown.overflowed,
        "replaced_in_window": played.screen.map(|screen| screen.replaced),
        "restarts": shown.restarts,
        "behind_most_ns": shown.behind_most,
        "pictures": decoded.pictures,
        "decoding_ns": decoded.time,
        "packets": account.packets_in,
        "bytes": account.bytes_in,
        "cpu_ns": account.cpu_path,
        "memory_peak": account.memory_peak,
        "repeated": shown.repeated,
        "memory_limit": account.memory_limit(),
        "memory_promised": promised.memory,
        "no_memory": decoded.no_memory,
        "cpu_share": figures.used,
        "cpu_share_promised": promised.share,
        "on_trial": figures.on_trial,
        "refused": figures.refused,
        "with": Words(promised.offer).to_string(),
        "discarded": figures.discarded,
        "cut_at_slices": figures.cut_at_slices,
        "input_full": figures.dropped.0,
        "round_trip_ns": figures.round_trip.as_nanos() as u64,
        "bottleneck": figures.bottleneck.map(|which| match which {
            Bottleneck::Execution => "execution",
            Bottleneck::Network => "network",
        }),
        "misses": figures.misses.iter().map(missed).collect::<Vec<_>>(),
        "timeline": timeline(&figures.timeline),
    })
}

/// A picture that missed its deadline, and where its time went.
fn missed(missed: &Missed) -> Value {
    let trace = &missed.trace;
    let nanos = |part: Duration| part.as_nanos() as u64;
    json!({
        "picture": missed.stamp,
        "due_ns": missed.due.nanos(),
        "late_ns": nanos(late(missed)),
        "network_ns": nanos(trace.network),
        "queue_ns": nanos(trace.queue),
        "processor_ns": nanos(trace.processor),
        "decode_ns": nanos(trace.decode),
        "display_ns": nanos(missed.display),
    })
}

/// Pictures shown, missed and lost in each stretch of time since the first.
fn timeline(line: &Timeline) -> Value {
    let stretches: Vec<[u64; 3]> =
        line.stretches().iter().map(|stretch| [stretch.shown, stretch.missed, stretch.lost]).collect();
    json!({ "each_ns": line.length().as_nanos() as u64, "shown_missed_lost": stretches })
}
