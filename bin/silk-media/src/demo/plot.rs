//! The demonstration's plots: pictures over time, and where the time of missed pictures went.

use super::show::Run;
use crate::timeline::{Line, gone, over_time, shown};
use serde_json::Value;
use silk_page::plotters::prelude::*;
use silk_page::{Drawn, chart, quiet, svg};

/// The colour of a run, told apart also by the colour-blind (Okabe and Ito's palette).
pub fn colour(schedule: &str) -> RGBColor {
    if schedule == "deadlines" { RGBColor(0, 158, 115) } else { RGBColor(213, 94, 0) }
}

/// The parts of a missed picture's time: their names among the player's figures and for people, and their colours.
pub const PARTS: [(&str, &str, RGBColor); 5] = [
    ("network_ns", "network", RGBColor(86, 180, 233)),
    ("queue_ns", "queue", RGBColor(0, 94, 162)),
    ("processor_ns", "waiting for the CPU", RGBColor(213, 94, 0)),
    ("decode_ns", "decoding", RGBColor(0, 158, 115)),
    ("display_ns", "display", RGBColor(204, 121, 167)),
];

/// A stream's pictures that were not shown in time, added up over time, in all runs.
pub fn gone_over_time(runs: &[Run], stream: &str) -> Drawn<String> {
    over_time(&lines(runs, stream, gone), "pictures not shown in time")
}

/// A stream's pictures shown in a second over time, in all runs.
pub fn shown_over_time(runs: &[Run], stream: &str) -> Drawn<String> {
    over_time(&lines(runs, stream, shown), "pictures shown in a second")
}

fn lines(runs: &[Run], stream: &str, line: fn(&Value) -> Line) -> Vec<(RGBColor, Line)> {
    runs.iter().map(|run| (colour(run.schedule), line(&run.played.stream(stream)["timeline"]))).collect()
}

/// Where the time of a stream's last missed pictures went, a column for each.
pub fn where_time_went(run: &Run, stream: &str) -> Drawn<String> {
    let misses = run.played.stream(stream)["misses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let part = |missed: &Value, name: &str| missed[name].as_f64().unwrap_or(0.0) / 1e6;
    let sum = |missed: &Value| PARTS.iter().map(|(name, ..)| part(missed, name)).sum();
    let high = misses.iter().map(sum).fold(1.0, f64::max) * 1.08;
    svg((1190, 280), |area| {
        let mut chart = chart(area).build_cartesian_2d(0.0..misses.len().max(1) as f64, 0.0..high)?;
        quiet(chart.configure_mesh())
            .x_labels(misses.len().min(16) + 1)
            .x_desc("picture")
            .y_desc("milliseconds")
            .x_label_formatter(&|at| {
                misses.get(*at as usize).map_or(String::new(), |missed| missed["picture"].to_string())
            })
            .y_label_formatter(&|time| format!("{time:.0}"))
            .draw()?;
        for (number, missed) in misses.iter().enumerate() {
            let mut from = 0.0;
            for (name, _, colour) in PARTS {
                let to = from + part(missed, name);
                let corners = [(number as f64 + 0.1, from), (number as f64 + 0.9, to)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                from = to;
            }
        }
        Ok(())
    })
}
