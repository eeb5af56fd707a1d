//! The experiment's tables for the project's documents, which are made from kept results and never by hand:
//! they stand between two marks, and everything else in the document stays as it is.

use super::ratio::{GOALS, Goal, Ratio, loads, sizes};
use super::results::Results;
use super::table::{brief, figures, spread, verdict};
use std::collections::BTreeSet;

/// Where the tables begin.
pub const BEGIN: &str = "<!-- figures: make demo -->\n";
/// Where it was measured, the goals, and the figures behind them.
pub fn tables(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "Measured on {} × {}, Linux {}, {}, on {}.\n\n",
        machine.cpus,
        machine.cpu,
        machine.kernel,
        machine.apache.trim_start_matches("Server version: "),
        machine.date.split('T').next().unwrap_or_default(),
    );
    machine.doubts().iter().for_each(|why| text += &format!("But {why}.\n\n"));
    let goals = goals(results);
    if goals.len() > 1 {
        text += &rows(&goals);
        text.push('\n');
    }
    let heavy = loads(&results.cells);
    text +=
        &heavy.iter().map(|clients| rows(&figures(&results.cells, *clients))).collect::<Vec<_>>().join("\n");
    text + &not_measured(&results.incomplete)
}

/// What could not be measured, a line each, below the tables in which it is missing: who reads them sees no exit status.
pub fn not_measured(incomplete: &[String]) -> String {
    // Behind the first line comes what programs wrote.
    let first = incomplete.iter().filter_map(|why| why.lines().next());
    let first = first.map(|line| line.trim_end_matches(" They said:").trim_end_matches(" It said:"));
    let lines: String = first.map(|line| format!("* {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\nWhat could not be measured:\n\n{lines}") }
}

/// A row for each goal and load, a column for each file size.
fn goals(results: &Results) -> Vec<Vec<String>> {
    let sizes = sizes(&results.cells);
    let mut head = ["", "must reach", "we are after"].map(str::to_owned).to_vec();
    head.extend(sizes.iter().map(|kb| format!("{kb} KB")));
    let mut all = vec![head];
    for goal in &GOALS {
        let judged = results.ratios.iter().filter(|r| r.measure == goal.measure && r.system == goal.system);
        let clients: BTreeSet<u32> = judged.map(|ratio| ratio.clients).collect();
        all.extend(clients.into_iter().map(|clients| goal_row(goal, &results.ratios, &sizes, clients)));
    }
    all
}

fn goal_row(goal: &Goal, ratios: &[Ratio], sizes: &[u32], clients: u32) -> Vec<String> {
    let label = goal.label.replace("{}", &clients.to_string());
    let bound = |bound| super::table::bound(goal, bound);
    let mut row = vec![format!("{label} (`{}`)", goal.system), bound(goal.must), bound(goal.after)];
    for kb in sizes {
        let find = |system: &str| {
            let same = |r: &&Ratio| {
                (r.measure == goal.measure && r.system == system) && (r.kb == *kb && r.clients == clients)
            };
            ratios.iter().find(same)
        };
        row.push(find(goal.system).map_or_else(|| "–".to_owned(), |ours| goal_cell(goal, ours, find)));
    }
    row
}

/// Silk's figure, marked where it falls short, with the peers' beside it.
fn goal_cell<'r>(goal: &Goal, ours: &Ratio, find: impl Fn(&str) -> Option<&'r Ratio>) -> String {
    let missed = if verdict(goal, ours.median) == "missed" { " ✗" } else { "" };
    let peers =
        [("linux", "Linux"), ("haproxy", "HAProxy")].into_iter().filter(|(system, _)| goal.has_peer(system));
    let peers = peers.filter_map(|(system, name)| Some(format!("{name} {}", brief(find(system)?.median))));
    let peers = peers.collect::<Vec<_>>().join(", ");
    let peers = if peers.is_empty() { peers } else { format!("; {peers}") };
    format!("**{}**{missed}{peers}", spread(ours))
}

/// A table whose first row is its head.
pub fn rows(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text += &format!("| {} |\n", row.join(" | "));
        if number == 0 {
            text += &format!("|{}\n", "---|".repeat(row.len()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::super::machine::Machine;
    use super::*;

    fn results(cells: Vec<Cell>) -> Results {
        let machine = Machine { root: true, ..Machine::describe(0.0, false) };
        Results { machine, ratios: Vec::new(), cells, incomplete: Vec::new() }
    }

    #[test]
    fn why_figures_are_not_to_be_trusted_stands_above_them() {
        let mut results = results(Vec::new());
        assert!(!tables(&results).contains("But "));
        results.machine.busy_before = 0.5;
        results.machine.root = false;
        let told = tables(&results);
        assert!(
            told.contains("\n\nBut a CPU was 50 % busy with other programs: distrust these figures.\n\n"),
            "{told}"
        );
        assert!(
            told.contains("\n\nBut without root, received packets were processed on whichever CPU"),
            "{told}"
        );
    }

    #[test]
    fn what_could_not_be_measured_stands_below_the_tables() {
        let why = "round 1 of 2, linux: linux does not serve. It said:\na whole log".to_owned();
        let new = tables(&Results { incomplete: vec![why], ..results(Vec::new()) });
        let told = "\nWhat could not be measured:\n\n* round 1 of 2, linux: linux does not serve.\n";
        assert!(new.starts_with("Measured on ") && new.ends_with(told), "{new}");
    }
}
