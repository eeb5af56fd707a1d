//! `silk-media measure`: small measurements on which decisions rest. Each says its question and its
//! unit, and repeats what it measures in turn.

mod costs;
mod decode;
mod layers;
mod packets;
mod peers;

#[cfg(test)]
pub use packets::packets;

use crate::trouble::Trouble;
use std::process::ExitCode;

/// What can be measured.
#[derive(clap::Subcommand, Debug)]
pub enum Measure {
    /// Decoding packet by packet against a whole picture at its last packet: CPU, contents, loss
    Decode(decode::Options),
    /// What each picture of a clip costs to decode, and how well its bits tell that
    Costs(costs::Options),
    /// What it saves to sum UDP's checksum while the data are first read (integrated layer processing)
    Layers(layers::Options),
    /// How fast GStreamer and ffmpeg decode a clip that comes over RTP (needs root: hosts in namespaces)
    Peers(peers::Options),
}

/// Measures.
pub fn run(measure: &Measure) -> Result<ExitCode, Trouble> {
    match measure {
        Measure::Decode(options) => decode::run(options).map(|()| ExitCode::SUCCESS),
        Measure::Costs(options) => costs::run(options).map(|()| ExitCode::SUCCESS),
        Measure::Layers(options) => layers::run(options).map(|()| ExitCode::SUCCESS),
        Measure::Peers(options) => peers::run(options).map(|()| ExitCode::SUCCESS),
    }
}
