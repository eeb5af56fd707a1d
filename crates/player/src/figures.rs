//! Everything measured of one stream, for reports and experiments.

use crate::stream::{Stream, Terms};
use silk_media::{Decoded, DisplayStage, Missed, MpegStage, Shown, Timeline, deadline};
use silk_modules::rtp::RtpStage;
use silk_path::classify::{Found, Tables};
use silk_path::{Account, Path};
use std::time::Duration;

/// What is known of one stream.
#[derive(Clone, Debug)]
pub struct Figures {
    /// What people call it.
    pub name: String,
    /// What a person wants to see of its path: `PLAYING`.
    pub state: &'static str,
    /// What it was promised.
    pub promised: Terms,
    /// It is on trial, or was to its end: it was promised nothing yet.
    pub on_trial: bool,
    /// It was let in on trial, did not fit, and was ended.
    pub refused: bool,
    /// Of the processor, what its path uses while it plays at its rate; `None`: not known.
    pub used: Option<f64>,
    /// What became of its pictures.
    pub shown: Shown,
    /// What decoding has come to.
    pub decoded: Decoded,
    /// What its path has used.
    pub account: Account,
    /// Packets in the input queue, and how many may be.
    pub input: (usize, usize),
    /// Pictures in the output queue, and how many may be.
    pub output: (usize, usize),
    /// Packets dropped at the full input queue, and for all other reasons.
    pub dropped: (u64, u64),
    /// Packets of pictures that were not to be shown, dropped where they are classified.
    pub discarded: u64,
    /// The mean time a packet takes.
    pub process: Option<Duration>,
    /// The mean round trip to the source; zero: not known.
    pub round_trip: Duration,
    /// Which queue is the bottleneck.
    pub bottleneck: Option<deadline::Bottleneck>,
    /// The source cuts at slices, so that each packet is of use alone; `None` where that is not known (over
    /// MFLOW it does).
    pub cut_at_slices: Option<bool>,
    /// The last pictures that missed their deadlines.
    pub misses: Vec<Missed>,
    /// What became of its pictures over time.
    pub timeline: Timeline,
}

impl Figures {
    /// The figures of a path; `None` when it is not one of video.
    pub(crate) fn of(stream: &Stream, path: &Path, tables: &Tables) -> Option<Self> {
        let (display, mpeg) = (path.stage::<DisplayStage>()?, path.stage::<MpegStage>()?);
        let full = u64::from(path.state.drops.of(silk_path::DropReason::QueueFull));
        Some(Self {
            name: stream.order.name.clone(),
            promised: stream.terms,
            on_trial: stream.trial.is_some(),
            refused: stream.refused,
            used: used(path),
            state: path.shown_state(),
            shown: display.counts(),
            decoded: mpeg.decoded(),
            account: path.state.account,
            input: (path.input.len(), path.input.limit()),
            output: (display.output.len(), display.output.options().length),
            dropped: (full, path.state.drops.total() - full),
            discarded: tables.discarded(Found { domain: 0, index: path.id().index }),
            process: path.state.measure.map(|average| Duration::from_nanos(average.ns())),
            round_trip: Duration::from_nanos(path.state.round_trip.ns()),
            bottleneck: deadline::bottleneck(path),
            cut_at_slices: path
                .stage::<RtpStage>()
                .map(RtpStage::counts)
                .filter(|counts| counts.passed > 0)
                .map(|counts| counts.is_cut()),
            misses: display.output.misses().iter().copied().collect(),
            timeline: display.output.timeline().clone(),
        })
    }
}

/// Of the processor, what a path uses while it plays at its rate; `None` before its second picture, or
/// where nothing paces it.
pub(crate) fn used(path: &Path) -> Option<f64> {
    let output = &path.stage::<DisplayStage>()?.output;
    let span = Some(output.span()).filter(|span| *span > 0)?;
    let cpu = path.state.account.cpu_path as f64;
    Some(cpu * f64::from(output.rate()?.millis()) / (span as f64 * 1e12))
}
