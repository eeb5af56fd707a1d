//! The micro-benchmarks as text, for a terminal and for the project's documents.

use super::super::{markdown, table};
use super::row::{Results, Row, Unit};

/// Where the table begins in a document.
pub const BEGIN: &str = "<!-- figures: silk bench paths -->\n";

const HEAD: [&str; 7] = ["", "silk", "best", "must reach", "we are after", "", "SILK 2002"];

/// The table for a terminal.
pub fn text(results: &Results) -> String {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(results.rows.iter().map(|row| cells(row).to_vec()));
    let mut text = table::aligned(&rows, 1);
    text += &format!("\n{}\n", method(results));
    text
}

/// The table for a document.
pub fn for_document(results: &Results) -> String {
    let machine = &results.machine;
    let (date, _) = machine.date.split_once('T').unwrap_or((&machine.date, ""));
    let on = format!("{} × {}, Linux {}, on {date}", machine.cpus, machine.cpu, machine.kernel);
    let mut rows =
        vec![["", "silk", "best", "must reach", "we are after", "SILK 2002"].map(str::to_owned).to_vec()];
    rows.extend(results.rows.iter().map(|row| {
        let [what, silk, best, must, after, verdict, then] = cells(row);
        let mark = if verdict == "missed" { " ✗" } else { "" };
        vec![what, format!("**{silk}**{mark}"), best, must, after, then]
    }));
    let table = markdown::rows(&rows);
    let missing = markdown::not_measured(&results.incomplete);
    format!("Measured on {on}.\n{}\n\n{table}{missing}", method(results))
}

/// How the figures came about, in a sentence.
fn method(results: &Results) -> String {
    let rounds = results.rows.iter().map(|row| row.rounds.len()).max().unwrap_or(0);
    let least = results.rows.iter().filter(|row| row.unit == Unit::Ns).map(|row| row.operations).min();
    let pinned = results.pinned.map_or_else(String::new, |cpu| format!(", pinned to CPU {cpu}"));
    format!(
        "The middle of {rounds} rounds (from the least to the greatest), at least {} operations each{pinned}; \
         other programs kept a CPU {:.0} % busy when it began.",
        least.unwrap_or(0),
        results.machine.busy_before * 100.0
    )
}

fn cells(row: &Row) -> [String; 7] {
    let figure = |figure| shown(figure, row.unit);
    let bound = |bound: Option<f64>| bound.map_or_else(String::new, |bound| format!("≤ {}", figure(bound)));
    let steady = row.rounds.len() < 2;
    let spread = || format!("{} ({}–{})", figure(row.median), figure(row.min), figure(row.max));
    [
        row.what.clone(),
        if steady { figure(row.median) } else { spread() },
        if row.unit == Unit::Ns { figure(row.best) } else { String::new() },
        bound(row.peers.must),
        bound(row.peers.after),
        verdict(row).to_owned(),
        row.peers.silk_2002.map_or_else(String::new, figure),
    ]
}

/// Whether the goals are met, in a word; nothing where there is none.
fn verdict(row: &Row) -> &'static str {
    let reaches = |bound: Option<f64>| bound.is_some_and(|bound| row.median <= bound);
    match row.peers.must {
        _ if reaches(row.peers.after) => "beyond",
        None => "",
        must if reaches(must) => "reached",
        Some(_) => "missed",
    }
}

/// A figure with its unit, in as many digits as it is good for.
fn shown(figure: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{figure:.0} B"),
        Unit::Ns if figure < 19.95 => format!("{figure:.1} ns"),
        Unit::Ns if figure < 999.5 => format!("{figure:.0} ns"),
        Unit::Ns if figure < 19_950.0 => format!("{:.2} µs", figure / 1e3),
        Unit::Ns => format!("{:.1} µs", figure / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::Machine;
    use super::super::row::{Peers, Round};
    use super::*;

    fn row(figures: &[f64]) -> Row {
        let rounds: Vec<Round> =
            figures.iter().map(|f| Round { middle: *f, best: f / 2.0, operations: 7 }).collect();
        Row::new("demux".into(), Unit::Ns, Peers::silk(1.8).goal(100.0, 30.0), &rounds)
    }

    #[test]
    fn a_row_stands_beside_its_goals_and_its_peer() {
        let shown = cells(&row(&[55.0, 45.0, 1200.0]));
        let expected =
            ["demux", "55 ns (45 ns–1.20 µs)", "22 ns", "≤ 100 ns", "≤ 30 ns", "reached", "1.80 µs"];
        assert_eq!(shown, expected);
        assert_eq!([[29.0], [31.0], [101.0]].map(|f| verdict(&row(&f))), ["beyond", "reached", "missed"]);
        assert_eq!(cells(&Row::counted("a path".into(), 752)), ["a path", "752 B", "", "", "", "", ""]);
    }

    #[test]
    fn what_is_counted_once_has_no_operations_even_where_there_is_one_round() {
        let rows = vec![row(&[55.0]), Row::counted("a path".into(), 752)];
        let results =
            Results { machine: Machine::describe(0.0, false), pinned: None, rows, incomplete: Vec::new() };
        let told = method(&results);
        assert!(
            told.starts_with(
                "The middle of 1 rounds (from the least to the greatest), at least 7 operations"
            ),
            "{told}"
        );
    }

    #[test]
    fn a_document_says_where_and_how_it_was_measured() {
        let machine = Machine::describe(0.0, false);
        let results = Results { machine, pinned: Some(1), rows: vec![row(&[55.0])], incomplete: Vec::new() };
        let new = for_document(&results);
        assert!(new.starts_with("Measured on "), "{new}");
        assert!(new.contains("\nThe middle of 1 rounds"), "{new}");
        assert!(new.ends_with("| demux | **55 ns** | 28 ns | ≤ 100 ns | ≤ 30 ns | 1.80 µs |\n"), "{new}");
    }
}
