//! The figures of streams as JSON, for experiments.

use crate::trouble::Trouble;
use serde_json::{Value, json};
use silk_media::deadline::Bottleneck;
use silk_player::{Figures, Words};
use std::fs;
use std::path::Path;

/// Writes them to `file`.
pub fn write(file: &Path, figures: &[Figures]) -> Result<(), Trouble> {
    let streams: Vec<Value> = figures.iter().map(stream).collect();
    let text = json!({ "streams": streams }).to_string();
    fs::write(file, text).map_err(|error| Trouble::Unwritable(file.display().to_string(), error))
}

fn stream(figures: &Figures) -> Value {
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
        "restarts": shown.restarts,
        "behind_most_ns": shown.behind_most,
        "pictures": decoded.pictures,
        "decoding_ns": decoded.time,
        "packets": account.packets_in,
        "bytes": account.bytes_in,
        "cpu_ns": account.cpu_path,
        "memory_peak": account.memory_peak,
        "memory_limit": account.memory_limit(),
        "memory_promised": promised.memory,
        "no_memory": decoded.no_memory,
        "cpu_share": figures.used,
        "cpu_share_promised": promised.share,
        "on_trial": figures.on_trial,
        "refused": figures.refused,
        "with": Words(promised.offer).to_string(),
        "repeated": shown.repeated,
        "discarded": figures.discarded,
        "cut_at_slices": figures.cut_at_slices,
        "input_full": figures.dropped.0,
        "round_trip_ns": figures.round_trip.as_nanos() as u64,
        "bottleneck": figures.bottleneck.map(|which| match which {
            Bottleneck::Execution => "execution",
            Bottleneck::Network => "network",
        }),
    })
}
