//! The plots of the experiments: bars beside each other, and points about a line.

use super::figures::{colour, middle, samples};
use serde_json::Value;
use silk_page::plotters::prelude::*;
use silk_page::plotters::style::text_anchor::{HPos, Pos, VPos};
use silk_page::{Area, Drawn, FONT, Groups, TEXT, chart, quiet, svg};

/// A figure: its group, its system, its row.
type Figure<'r> = (&'r str, &'r str, &'r Value);

/// A bar for each figure, those of a group beside each other.
pub fn bars(figures: &[Figure<'_>], what: &str) -> Drawn<String> {
    let groups = groups(figures);
    let most = figures.iter().flat_map(|(.., row)| samples(row)).fold(0.0, f64::max);
    let high = if most > 0.0 { most * 1.15 } else { 1.0 };
    let size = if groups.len() > 1 { (1190, 300) } else { (580, 300) };
    svg(size, |area| {
        let mut chart = chart(area).build_cartesian_2d(Groups(groups.len()), 0.0..high)?;
        quiet(chart.configure_mesh())
            .y_labels(6)
            .y_desc(what)
            .x_label_formatter(&|at| {
                groups.get(*at as usize).map_or(String::new(), |name| (*name).to_owned())
            })
            .y_label_formatter(&|value| brief(*value, high))
            .draw()?;
        for (number, group) in groups.iter().enumerate() {
            let inside: Vec<&Figure<'_>> = figures.iter().filter(|(name, ..)| name == group).collect();
            let width = (0.8 / inside.len() as f64).min(0.3);
            let left = number as f64 + 0.5 - width * inside.len() as f64 / 2.0;
            for (place, (_, system, row)) in inside.into_iter().enumerate() {
                let at = (left + place as f64 * width, width);
                let Some(middle) = middle(row) else { continue };
                let corners = [(at.0 + 0.01, 0.0), (at.0 + at.1 - 0.01, middle)];
                chart.draw_series([Rectangle::new(corners, colour(system).filled())])?;
                let (centre, samples) = (at.0 + at.1 / 2.0, samples(row));
                let ends = [samples[0], samples[samples.len() - 1]].map(|end| (centre, end));
                chart.draw_series([PathElement::new(ends.to_vec(), TEXT.stroke_width(2))])?;
                let top = (centre, ends[1].1 + high * 0.015);
                chart.draw_series([Text::new(brief(middle, high), top, label(area))])?;
            }
        }
        Ok(())
    })
}

/// A point for each sample, a column for each group: how far from one.
pub fn deviations(figures: &[Figure<'_>]) -> Drawn<String> {
    let groups = groups(figures);
    let most = figures.iter().flat_map(|(.., row)| samples(row)).fold(1.4, f64::max);
    let wide = groups.len().max(1) as f64;
    svg((580, 280), |area| {
        let mut chart = chart(area).build_cartesian_2d(Groups(groups.len()), 0.0..most * 1.1)?;
        chart
            .draw_series([Rectangle::new([(0.0, 0.85), (wide, 1.15)], colour("silk").mix(0.12).filled())])?;
        quiet(chart.configure_mesh())
            .y_desc("predicted ÷ measured")
            .x_label_formatter(&|at| {
                groups.get(*at as usize).map_or(String::new(), |name| (*name).to_owned())
            })
            .draw()?;
        chart.draw_series([PathElement::new(vec![(0.0, 1.0), (wide, 1.0)], TEXT.stroke_width(1))])?;
        for (group, system, row) in figures {
            let number = groups.iter().position(|name| name == group).unwrap_or(0);
            let points = samples(row).into_iter().map(|sample| (number as f64 + 0.5, sample));
            chart.draw_series(points.map(|at| Circle::new(at, 5, colour(system).mix(0.7).filled())))?;
        }
        Ok(())
    })
}

/// The groups of some figures, each once, in their order.
fn groups<'r>(figures: &[Figure<'r>]) -> Vec<&'r str> {
    let mut groups: Vec<&str> = Vec::new();
    for (group, ..) in figures {
        if !groups.contains(group) {
            groups.push(group);
        }
    }
    groups
}

fn brief(value: f64, high: f64) -> String {
    if high >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn label<'a>(area: &Area<'_>) -> TextStyle<'a> {
    (FONT, 12, &TEXT).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Bottom))
}
