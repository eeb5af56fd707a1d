//! What a program receives against what is sent: the picture of receive livelock (Mogul and Ramakrishnan, USENIX
//! 1996, figure 2).

use super::super::plot::colour;
use super::measurement::{Measurement, groups};
use super::row::Row;
use super::turn::MILLIONS;
use silk_page::plotters::prelude::*;
use silk_page::{Drawn, chart, quiet, svg};

/// One system's line: sent and received, 10⁶ packets a second.
pub struct Line<'r> {
    /// The system.
    pub system: &'r str,
    /// From the least that was sent to the most.
    points: Vec<(f64, f64)>,
}

/// The systems' lines, as far as they were measured.
pub fn lines(measurements: &[Measurement]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let groups = groups(measurements);
    let middle = |system: &str, of: &str| {
        let same = groups.iter().find(|group| group.of[0].system == system && group.of[0].of == of)?;
        Some(same.middle() / 1e6)
    };
    for group in &groups {
        let first = group.of[0];
        let Some(offered) = first.of.strip_suffix(": received").filter(|_| first.row == Row::Datagrams)
        else {
            continue;
        };
        // Earlier runs do not say how many of what was offered really were sent.
        let nominal = || offered.strip_suffix(MILLIONS).and_then(|rate| rate.parse().ok());
        let Some(sent) = middle(&first.system, &format!("{offered}: sent")).or_else(nominal) else {
            continue;
        };
        let point = (sent, group.middle() / 1e6);
        match lines.iter_mut().find(|line| line.system == first.system) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { system: &first.system, points: vec![point] }),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

/// The lines in one picture.
pub fn received(lines: &[Line<'_>]) -> Drawn<String> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let (right, top) = all().fold((1.0, 1.0), |(x, y): (f64, f64), point| (x.max(point.0), y.max(point.1)));
    svg((780, 340), |area| {
        let mut chart = chart(area).build_cartesian_2d(0.0..right * 1.05, 0.0..top * 1.1)?;
        quiet(chart.configure_mesh())
            .x_desc("sent, million packets a second")
            .y_desc("received")
            .x_label_formatter(&|sent| format!("{sent:.1}"))
            .y_label_formatter(&|received| format!("{received:.1}"))
            .draw()?;
        for Line { system, points } in lines {
            let style = colour(system);
            chart.draw_series(LineSeries::new(points.iter().copied(), style.stroke_width(2)))?;
            chart.draw_series(points.iter().map(|at| Circle::new(*at, 3, style.filled())))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::counters::CpuShares;
    use super::super::super::ends::Unit;
    use super::*;

    fn seen(system: &str, of: &str, round: u32, value: f64) -> Measurement {
        let (system, of, cpu) = (system.to_owned(), of.to_owned(), CpuShares::default());
        Measurement { row: Row::Datagrams, system, of, round, value, unit: Unit::PerSecond, cpu }
    }

    #[test]
    fn a_line_goes_through_the_middle_of_the_rounds_and_ends_with_all_that_was_sent() {
        let measurements = [
            seen("linux", "received at most", 1, 9e5),
            seen("linux", "all that can be sent: received", 1, 1e3),
            seen("linux", "all that can be sent: sent", 1, 3e6),
            seen("linux", "0.6 million sent: received", 1, 5e5),
            seen("linux", "0.6 million sent: received", 2, 6e5),
            seen("linux", "0.6 million sent: received", 3, 7e5),
            seen("silk", "0.6 million sent: received", 1, 6e5),
            seen("silk", "1.6 million sent: received", 1, 9e5),
            seen("silk", "1.6 million sent: sent", 1, 1e6),
        ];
        let lines = lines(&measurements);
        assert_eq!(lines.iter().map(|line| line.system).collect::<Vec<_>>(), ["linux", "silk"]);
        assert_eq!(lines[0].points, [(0.6, 0.6), (3.0, 0.001)]);
        assert_eq!(lines[1].points, [(0.6, 0.6), (1.0, 0.9)], "what was offered and not sent was not lost");
        let picture = received(&lines).unwrap();
        assert_eq!(picture.matches("<circle").count(), 4);
    }
}
