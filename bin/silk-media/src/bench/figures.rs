//! What the page and its drawings take from a row of results.

use serde_json::Value;
use silk_page::plotters::style::RGBColor;

/// The colour of a system, told apart also by the colour-blind (Okabe and Ito's palette).
pub fn colour(system: &str) -> RGBColor {
    match system {
        "GStreamer" => RGBColor(213, 94, 0),
        "ffmpeg" => RGBColor(86, 180, 233),
        _ => RGBColor(0, 158, 115),
    }
}

/// A row's samples, from the least to the greatest.
pub fn samples(row: &Value) -> Vec<f64> {
    let mut samples: Vec<f64> =
        row["samples"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    samples.sort_by(f64::total_cmp);
    samples
}

/// The middle of a row's samples; `None` of none.
pub fn middle(row: &Value) -> Option<f64> {
    let samples = samples(row);
    let n = samples.len();
    (n > 0).then(|| (samples[(n - 1) / 2] + samples[n / 2]) / 2.0)
}
