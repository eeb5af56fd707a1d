//! A stream's figures over time, as a player writes them (`play --json`), as lines of plots.

use serde_json::Value;
use silk_page::plotters::prelude::*;
use silk_page::{Drawn, chart, quiet, svg};

/// A line of a plot: a figure at each time, in seconds.
pub type Line = Vec<(f64, f64)>;

/// What became of pictures in one stretch of time.
struct Stretch {
    end: f64,
    length: f64,
    shown: f64,
    gone: f64,
}

/// The stretches of a player's `timeline`; none where it is no such thing.
fn stretches(timeline: &Value) -> Vec<Stretch> {
    let length = timeline["each_ns"].as_f64().unwrap_or(1e9) / 1e9;
    let counts = timeline["shown_missed_lost"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |counts: &Value, n: usize| counts[n].as_f64().unwrap_or(0.0);
    let one = |(n, counts): (usize, &Value)| Stretch {
        end: (n + 1) as f64 * length,
        length,
        shown: count(counts, 0),
        gone: count(counts, 1) + count(counts, 2),
    };
    counts.iter().enumerate().map(one).collect()
}

/// Pictures missed or lost until each time.
pub fn gone(timeline: &Value) -> Line {
    let mut line = vec![(0.0, 0.0)];
    for stretch in stretches(timeline) {
        let before = line.last().map_or(0.0, |(_, sum)| *sum);
        line.push((stretch.end, before + stretch.gone));
    }
    line
}

/// Stretches over which the rate of pictures is a mean.
const NEAR: usize = 4;

/// Pictures shown in a second at each time, from the first that was shown on.
pub fn shown(timeline: &Value) -> Line {
    let all = stretches(timeline);
    // The stretch in which the display began, and the last, are not whole.
    let from = all.iter().position(|stretch| stretch.shown > 0.0).unwrap_or(0) + 1;
    let whole = all.get(from..all.len().saturating_sub(1)).unwrap_or_default();
    let mean = |near: &[Stretch]| {
        let sum = |part: fn(&Stretch) -> f64| near.iter().map(part).sum::<f64>();
        (near[NEAR / 2 - 1].end, sum(|stretch| stretch.shown) / sum(|stretch| stretch.length).max(1e-9))
    };
    whole.windows(NEAR).map(mean).collect()
}

/// Draws lines over time; `what` is counted.
///
/// # Errors
/// Any fault of the drawing library.
pub fn over_time(lines: &[(RGBColor, Line)], what: &str) -> Drawn<String> {
    let all = || lines.iter().flat_map(|(_, line)| line);
    let (long, high) = all().fold((1.0f64, 10.0f64), |most, at| (most.0.max(at.0), most.1.max(at.1)));
    svg((580, 260), |area| {
        let mut chart = chart(area).build_cartesian_2d(0.0..long, -high * 0.02..high * 1.1)?;
        quiet(chart.configure_mesh())
            .x_desc("seconds")
            .y_desc(what)
            .x_label_formatter(&|time| format!("{time:.0}"))
            .y_label_formatter(&|count| format!("{count:.0}"))
            .draw()?;
        for (colour, line) in lines {
            chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(3)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_add_up_and_rates_are_means_of_a_second() {
        let timeline = json!({ "each_ns": 250_000_000, "shown_missed_lost":
            [[0, 0, 0], [3, 1, 0], [8, 0, 0], [7, 0, 1], [8, 0, 0], [7, 0, 0], [1, 2, 0]] });
        let sums: Vec<f64> = gone(&timeline).into_iter().map(|(_, sum)| sum).collect();
        assert_eq!(sums, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0]);
        assert_eq!(shown(&timeline), [(1.0, 30.0)]);
    }

    #[test]
    fn what_is_no_timeline_is_an_empty_plot() {
        for other in [Value::Null, json!({ "each_ns": "x", "shown_missed_lost": [1, [2]] })] {
            let lines = [(BLACK, gone(&other)), (BLACK, shown(&other))];
            assert!(over_time(&lines, "pictures").unwrap().starts_with("<svg"));
        }
    }
}
