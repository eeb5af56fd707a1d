//! The transformation rule *integrated layers* (integrated layer processing: Scout §4.1, Clark and
//! Tennenhouse 1990): on a path from UDP through MFLOW or RTP to a stage that sums what it reads, UDP
//! leaves its checksum to that stage, which sums the data while it copies them, so that they are read
//! once. A wrong sum drops the packet before anything has come of it: the stages between change nothing
//! before the packet has come back to them. So a path means the same with and without the rule; why, and
//! what it gains: `docs/design/integrated-layers.md`.

use crate::mflow::MflowStage;
use crate::rtp::RtpStage;
use crate::udp::UdpStage;
use silk_path::MAX_STAGES;
use silk_path::transform::{Rewrite, Rule};

/// The rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntegratedLayers;

impl IntegratedLayers {
    /// Where UDP is on a path that the pattern fits.
    fn udp(path: &Rewrite<'_>) -> Option<usize> {
        let carries = |at| path.stage::<MflowStage>(at).is_some() || path.stage::<RtpStage>(at).is_some();
        let fits = |at: &usize| path.stage::<UdpStage>(*at).is_some() && carries(at + 1) && path.sums(at + 2);
        (0..MAX_STAGES).find(fits)
    }
}

impl Rule for IntegratedLayers {
    fn name(&self) -> &'static str {
        "integrated layers"
    }

    fn matches(&self, path: &Rewrite<'_>) -> bool {
        Self::udp(path).is_some()
    }

    fn apply(&self, path: &mut Rewrite<'_>) {
        if let Some(udp) = Self::udp(path).and_then(|at| path.stage_mut::<UdpStage>(at)) {
            udp.summed_above = true;
        }
    }
}
