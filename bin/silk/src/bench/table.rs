//! The experiment as text: what each system did, and what was to be reached.

use super::cell::Cell;
use super::ratio::{GOALS, Goal, Ratio, loads, median, sizes, systems_of};
use super::results::Results;

/// Both tables.
pub fn tables(results: &Results) -> String {
    let cells = &results.cells;
    let mut text = String::new();
    for clients in loads(cells) {
        text += &format!("{}\n", aligned(&figures(cells, clients), 2));
    }
    let goals = goals(&results.ratios);
    if goals.len() > 1 {
        text += &aligned(&goals, 1);
    }
    results.machine.doubts().iter().for_each(|why| text += &format!("\nBut {why}.\n"));
    text
}

/// Medians over the rounds, in absolute figures, at one load; and of the longest times the longest. Of cells in which requests failed only
/// that is told.
pub fn figures(cells: &[Cell], clients: u32) -> Vec<Vec<String>> {
    let beside = format!("mean beside {clients}");
    let head = ["file", "system", "preferred alone", &beside, "p50", "p99", "max", "standard/s", "failed"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for kb in sizes(cells) {
        for system in systems_of(cells, kb) {
            let of = |clients| {
                move |cell: &&Cell| {
                    cell.kb == kb
                        && cell.system == system
                        && cell.clients == clients
                        && cell.flood_pps.is_none()
                        && cell.counts()
                }
            };
            let alone = middle(cells.iter().filter(of(0)), |cell| cell.preferred_us.mean);
            let loaded = |figure: fn(&Cell) -> f64| middle(cells.iter().filter(of(clients)), figure);
            let longest =
                cells.iter().filter(of(clients)).map(|cell| cell.preferred_us.max).max_by(f64::total_cmp);
            let failed: u64 =
                cells.iter().filter(|c| c.kb == kb && c.system == system).map(|c| c.failed).sum();
            rows.push(vec![
                format!("{kb} KB"),
                system.to_owned(),
                milliseconds(alone),
                milliseconds(loaded(|cell| cell.preferred_us.mean)),
                milliseconds(loaded(|cell| cell.preferred_us.p50)),
                milliseconds(loaded(|cell| cell.preferred_us.p99)),
                milliseconds(longest),
                loaded(|cell| cell.standard_rps).map_or_else(missing, |rps| format!("{rps:.0}")),
                failed.to_string(),
            ]);
        }
    }
    rows
}

/// The goals beside what Linux and HAProxy do and what silk reached, with the spread over the rounds.
pub fn goals(ratios: &[Ratio]) -> Vec<Vec<String>> {
    let head = ["", "file", "Linux", "HAProxy", "must reach", "we are after", "silk", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for goal in &GOALS {
        let judged = ratios.iter().filter(|ratio| ratio.measure == goal.measure);
        let judged: Vec<&Ratio> = judged.filter(|ratio| ratio.system == goal.system).collect();
        for ratio in judged {
            let peer = |system: &str| {
                let same = |r: &&Ratio| {
                    (r.measure == ratio.measure && r.kb == ratio.kb)
                        && (r.clients == ratio.clients && r.system == system)
                };
                ratios.iter().find(same).filter(|_| goal.has_peer(system)).map_or_else(missing, spread)
            };
            rows.push(vec![
                goal.label.replace("{}", &ratio.clients.to_string()),
                format!("{} KB", ratio.kb),
                peer("linux"),
                peer("haproxy"),
                bound(goal, goal.must),
                bound(goal, goal.after),
                spread(ratio),
                verdict(goal, ratio.median).to_owned(),
            ]);
        }
    }
    rows
}

/// Whether a goal is met, in a word.
pub fn verdict(goal: &Goal, figure: f64) -> &'static str {
    if goal.reaches(figure, goal.after) {
        "beyond"
    } else if goal.reaches(figure, goal.must) {
        "reached"
    } else {
        "missed"
    }
}

/// A bound with its direction.
pub fn bound(goal: &Goal, bound: f64) -> String {
    format!("{} {bound}", if goal.more { "≥" } else { "≤" })
}

/// The middle of the rounds, and from where to where they go.
pub fn spread(ratio: &Ratio) -> String {
    if ratio.rounds.len() < 2 {
        return brief(ratio.median);
    }
    format!("{} ({}–{})", brief(ratio.median), brief(ratio.min), brief(ratio.max))
}

/// A figure with as many digits as it is good for.
pub fn brief(figure: f64) -> String {
    if figure >= 20.0 { format!("{figure:.0}") } else { format!("{figure:.2}") }
}

/// The middle of a figure over cells, if there are any.
pub fn middle<'c>(cells: impl Iterator<Item = &'c Cell>, figure: impl Fn(&Cell) -> f64) -> Option<f64> {
    let mut figures: Vec<f64> = cells.map(figure).collect();
    figures.sort_by(f64::total_cmp);
    (!figures.is_empty()).then(|| median(&figures))
}

fn milliseconds(micros: Option<f64>) -> String {
    micros.map_or_else(missing, |micros| format!("{:.3} ms", micros / 1e3))
}

fn missing() -> String {
    "–".to_owned()
}

/// Lays rows out in columns, the first `left` of them flush left and the others flush right.
pub fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::load::Micros;
    use super::super::ratio::Measure;
    use super::*;

    #[test]
    fn of_a_cell_with_failures_only_these_are_told() {
        let cell = |clients, round, failed| Cell {
            system: "silk-equal".into(),
            kb: 1,
            clients,
            round,
            // A server that resets every connection is fast.
            preferred_us: Micros {
                mean: 1000.0 + failed as f64,
                max: 1000.0 * f64::from(round),
                ..Micros::default()
            },
            standard_rps: 500.0 + failed as f64,
            failed,
            ..Cell::default()
        };
        let row = |cells: &[Cell]| figures(cells, 96)[1].clone();
        let both = row(&[cell(96, 1, 0), cell(96, 2, 7)]);
        assert_eq!([&both[3], &both[7], &both[8]], ["1.000 ms", "500", "7"]);
        let two = row(&[cell(96, 1, 0), cell(96, 3, 0)]);
        assert_eq!([&two[3], &two[6]], ["1.000 ms", "3.000 ms"], "the longest of all is not in the middle");
        let none = row(&[cell(96, 1, 7)]);
        assert_eq!([&none[3], &none[7], &none[8]], ["–", "–", "7"]);
    }

    #[test]
    fn columns_line_up_whatever_their_letters() {
        let rows = [vec!["÷ a".into(), "1".into()], vec!["b".into(), "23".into()]];
        assert_eq!(aligned(&rows, 1), "÷ a   1\nb    23\n");
    }

    #[test]
    fn a_spread_shows_middle_and_ends() {
        let ratio = Ratio {
            measure: Measure::LoadedOverUnloaded,
            system: "linux".into(),
            kb: 1,
            clients: 96,
            rounds: vec![66.4, 1.25, 2.0],
            median: 2.0,
            min: 1.25,
            max: 66.4,
        };
        assert_eq!(spread(&ratio), "2.00 (1.25–66)");
    }

    #[test]
    fn a_verdict_names_the_better_goal_first() {
        let goal = &GOALS[0];
        assert_eq!([1.0, 1.3, 1.6].map(|figure| verdict(goal, figure)), ["beyond", "reached", "missed"]);
    }
}
