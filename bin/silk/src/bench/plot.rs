//! The experiment's plots: response time against the number of standard clients (SILK figures 5
//! and 6), and throughput per file size (SILK table 3).

use super::cell::Cell;
use super::ratio::{loads, sizes, systems, systems_of};
use super::table::middle;
use silk_page::plotters;
use silk_page::plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use silk_page::plotters::prelude::*;
use silk_page::{Drawn, FONT, Groups, TEXT, chart, quiet, svg};

/// Each system's colour, told apart also by the colour-blind (Okabe and Ito's palette).
pub fn colour(system: &str) -> RGBColor {
    match system {
        "linux" => RGBColor(110, 110, 110),
        "linux-napi" => RGBColor(176, 160, 130),
        "haproxy" => RGBColor(213, 94, 0),
        "silk-equal" | "silk-steered" => RGBColor(86, 180, 233),
        "silk-path" => RGBColor(0, 94, 162),
        "silk-generic" => RGBColor(230, 159, 0),
        "silk-batched" => RGBColor(204, 121, 167),
        "silk-queues" => RGBColor(0, 0, 0),
        "linux-queues" => RGBColor(180, 180, 180),
        _ => RGBColor(0, 158, 115),
    }
}

/// A figure over the rounds of one point: least, middle and greatest.
struct Point {
    clients: u32,
    least: f64,
    middle: f64,
    greatest: f64,
}

/// The preferred client's mean response time against the number of standard clients, for one file size.
pub fn response_times(cells: &[Cell], kb: u32) -> Drawn<String> {
    let lines: Vec<(&str, Vec<Point>)> =
        systems_of(cells, kb).into_iter().map(|system| (system, points(cells, system, kb))).collect();
    let clients: Vec<u32> = lines.iter().flat_map(|(_, points)| points.iter().map(|p| p.clients)).collect();
    let most = clients.iter().copied().max().unwrap_or(1).max(1);
    let all = || lines.iter().flat_map(|(_, points)| points);
    let low = below(all().map(|p| p.least).fold(f64::INFINITY, f64::min));
    let high = above(all().map(|p| p.greatest).fold(0.0, f64::max));
    svg((390, 290), |area| {
        let mut chart =
            chart(area).build_cartesian_2d(Clients { most, at: clients.clone() }, (low..high).log_scale())?;
        quiet(chart.configure_mesh()).x_desc("standard clients").y_label_formatter(&milliseconds).draw()?;
        for (system, points) in &lines {
            let line = colour(system);
            let over = points.iter().map(|p| (f64::from(p.clients), p.greatest));
            let under = points.iter().rev().map(|p| (f64::from(p.clients), p.least));
            chart.draw_series([Polygon::new(over.chain(under).collect::<Vec<_>>(), line.mix(0.15))])?;
            let middle = || points.iter().map(|p| (f64::from(p.clients), p.middle));
            chart.draw_series(LineSeries::new(middle(), line.stroke_width(2)))?;
            chart.draw_series(middle().map(|at| Circle::new(at, 3, line.filled())))?;
        }
        Ok(())
    })
}

/// The standard clients' throughput at the heaviest common load, for each file size, in files of that
/// size per second.
pub fn throughput(cells: &[Cell]) -> Drawn<String> {
    let (sizes, systems) = (sizes(cells), systems(cells));
    let clients = loads(cells).first().copied().unwrap_or(0);
    let rate = |system: &str, kb: u32| {
        let of =
            |cell: &&Cell| cell.system == system && cell.kb == kb && cell.clients == clients && cell.counts();
        middle(cells.iter().filter(of), |cell| cell.standard_rps)
    };
    // None where a system was not measured with that size: it has no bar then, and not one of zero.
    let rates: Vec<Option<f64>> =
        sizes.iter().flat_map(|kb| systems.iter().map(|system| rate(system, *kb))).collect();
    let most = rates.iter().flatten().copied().fold(1.0, f64::max) * 1.15;
    let groups = sizes.len().max(1) as f64;
    svg((1190, 320), |area| {
        let mut chart = chart(area).build_cartesian_2d(Groups(sizes.len()), 0.0..most)?;
        quiet(chart.configure_mesh())
            .y_labels(6)
            .x_desc(format!("file size, {clients} standard clients"))
            .y_desc("requests per second")
            .x_label_formatter(&|group| {
                sizes.get(*group as usize).map_or(String::new(), |kb| format!("{kb} KB"))
            })
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .draw()?;
        let width = 0.8 / systems.len().max(1) as f64;
        for (number, rate) in
            rates.iter().enumerate().filter_map(|(number, rate)| Some((number, rate.as_ref()?)))
        {
            let (group, bar) = (number / systems.len(), number % systems.len());
            let left = group as f64 + 0.1 + bar as f64 * width;
            let corners = [(left + 0.01, 0.0), (left + width - 0.01, *rate)];
            chart.draw_series([Rectangle::new(corners, colour(systems[bar]).filled())])?;
            if groups * systems.len() as f64 <= 40.0 {
                let style = (FONT, 11, &TEXT).into_text_style(area).pos(centred_above());
                chart.draw_series([Text::new(format!("{rate:.0}"), (left + width / 2.0, *rate), style)])?;
            }
        }
        Ok(())
    })
}

fn centred_above() -> plotters::style::text_anchor::Pos {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    Pos::new(HPos::Center, VPos::Bottom)
}

fn points(cells: &[Cell], system: &str, kb: u32) -> Vec<Point> {
    let of =
        |cell: &&Cell| cell.system == system && cell.kb == kb && cell.flood_pps.is_none() && cell.counts();
    let cells: Vec<&Cell> = cells.iter().filter(of).collect();
    let clients: std::collections::BTreeSet<u32> = cells.iter().map(|cell| cell.clients).collect();
    let point = |clients| {
        let here = cells.iter().copied().filter(|cell| cell.clients == clients);
        let time = |cell: &Cell| cell.preferred_us.mean / 1e3;
        Some(Point {
            clients,
            least: here.clone().map(time).reduce(f64::min)?,
            middle: middle(here.clone(), time)?,
            greatest: here.map(time).reduce(f64::max)?,
        })
    };
    clients.into_iter().filter_map(point).collect()
}

/// The next of 1, 2, 5, 10, 20 … below a figure.
fn below(figure: f64) -> f64 {
    if !(figure.is_finite() && figure > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(figure.log10().floor());
    [5.0, 2.0].map(|step| step * decade).into_iter().find(|step| *step <= figure).unwrap_or(decade)
}

/// The next of 1, 2, 5, 10, 20 … above a figure.
fn above(figure: f64) -> f64 {
    if !(figure.is_finite() && figure > 0.0) {
        return 2.0;
    }
    let decade = 10f64.powf(figure.log10().floor());
    [1.0, 2.0, 5.0].map(|step| step * decade).into_iter().find(|step| *step > figure).unwrap_or(10.0 * decade)
}

/// The axis of numbers of clients: a square-root scale, which keeps 0, 1 and 16 apart beside 96 and 1 000.
struct Clients {
    most: u32,
    at: Vec<u32>,
}

impl Ranged for Clients {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value.max(0.0) / f64::from(self.most)).sqrt();
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        let ordered: std::collections::BTreeSet<u32> = self.at.iter().copied().collect();
        ordered.into_iter().map(f64::from).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        0.0..f64::from(self.most)
    }
}

impl ValueFormatter<f64> for Clients {
    fn format(value: &f64) -> String {
        format!("{value:.0}")
    }
}

/// A time on an axis: a mark, which is a round number but for what its calculation has added far behind the point.
fn milliseconds(time: &f64) -> String {
    let shown = format!("{time:.6}");
    format!("{} ms", shown.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_the_round_numbers_that_they_are() {
        let shown =
            [0.7000000000000001, 0.30000000000000004, 0.05, 1.0, 20.0, 0.001].map(|time| milliseconds(&time));
        assert_eq!(shown, ["0.7 ms", "0.3 ms", "0.05 ms", "1 ms", "20 ms", "0.001 ms"]);
    }

    #[test]
    fn round_bounds_enclose_a_figure() {
        assert_eq!([0.13, 1.0, 47.6, 700.0].map(below), [0.1, 1.0, 20.0, 500.0]);
        assert_eq!([0.13, 1.0, 47.6, 700.0].map(above), [0.2, 2.0, 50.0, 1000.0]);
        assert_eq!((below(f64::INFINITY), above(0.0)), (1.0, 2.0));
    }

    #[test]
    fn few_clients_stay_apart_beside_many() {
        let axis = Clients { most: 1000, at: vec![0, 1, 16, 1000] };
        let places = [0.0, 1.0, 16.0, 1000.0].map(|clients| axis.map(&clients, (0, 300)));
        assert_eq!(places, [0, 9, 38, 300]);
    }

    #[test]
    fn plots_without_cells_are_empty_pictures() {
        assert!(response_times(&[], 1).unwrap().starts_with("<svg"));
        assert!(throughput(&[]).unwrap().starts_with("<svg"));
    }

    #[test]
    fn what_was_not_measured_has_no_bar() {
        let cell = |system: &str, kb| Cell {
            system: system.into(),
            kb,
            clients: 96,
            round: 1,
            standard_rps: 1000.0,
            ..Cell::default()
        };
        let bars = |cells: &[Cell]| throughput(cells).unwrap().matches("<rect").count();
        let all = [cell("linux", 1), cell("linux", 50), cell("silk-queues", 1), cell("silk-queues", 50)];
        assert_eq!(bars(&all[..3]) + 1, bars(&all));
        // Nor has what failed, and it is no point of a line.
        let mut failed = all.clone();
        failed[3].failed = 5;
        assert_eq!(bars(&failed), bars(&all[..3]));
        assert_eq!([&all, &failed].map(|cells| points(cells, "silk-queues", 50).len()), [1, 0]);
    }
}
