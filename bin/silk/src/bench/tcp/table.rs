//! The TCP experiment as text, for a terminal and for the project's documents.

use super::super::{markdown, table};
use super::compare::Comparison;
use super::measurement::{Group, Measurement, groups};
use super::results::Results;

/// Where the tables begin in a document.
pub const BEGIN: &str = "<!-- figures: silk bench tcp -->\n";

/// Both tables for a terminal.
pub fn text(results: &Results) -> String {
    let figures = table::aligned(&figures(results), 3);
    let goals = table::aligned(&goals(results), 3);
    format!("{figures}\n{goals}")
}

/// Both tables for a document.
pub fn for_document(results: &Results) -> String {
    let tables = [goals(results), figures(results)].map(|rows| markdown::rows(&rows)).join("\n");
    let missing = markdown::not_measured(&results.incomplete);
    format!("{}\n\n{tables}{missing}", method(results))
}

/// Where and how it was measured, in two sentences.
pub fn method(results: &Results) -> String {
    let machine = &results.machine;
    let (date, _) = machine.date.split_once('T').unwrap_or((&machine.date, ""));
    let rounds = results.measurements.iter().map(|one| one.round).max().unwrap_or(0);
    format!(
        "Measured on {} × {}, Linux {}, on {date}. The middle of {rounds} rounds (from the least to the greatest); \
         other programs kept a CPU {:.0} % busy when it began.",
        machine.cpus,
        machine.cpu,
        machine.kernel,
        machine.busy_before * 100.0
    )
}

/// What was measured: a row for each system and figure.
pub fn figures(results: &Results) -> Vec<Vec<String>> {
    let head = ["", "figure", "system", "middle (from–to)", "server's CPU", "clients' CPU", "stolen"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(groups(&results.measurements).iter().map(figure_row));
    rows
}

fn figure_row(group: &Group<'_>) -> Vec<String> {
    let first = group.of[0];
    let mut values: Vec<f64> = group.of.iter().map(|one| one.value).collect();
    values.sort_by(f64::total_cmp);
    let share = |share: fn(&Measurement) -> f64| {
        let middle = group.of.iter().map(|one| share(one)).sum::<f64>() / group.of.len() as f64;
        format!("{:.0} %", middle * 100.0)
    };
    vec![
        first.row.title().to_owned(),
        first.of.clone(),
        first.system.clone(),
        format!("{} {}", spread(&values), first.unit),
        share(|one| one.cpu.server),
        share(|one| one.cpu.client),
        share(|one| one.cpu.stolen),
    ]
}

/// What was to be reached, and what was.
pub fn goals(results: &Results) -> Vec<Vec<String>> {
    let head = ["", "figure", "system", "÷", "must reach", "we are after", "silk", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(results.comparisons.iter().map(goal_row));
    rows
}

fn goal_row(one: &Comparison) -> Vec<String> {
    let sign = if one.more { "≥" } else { "≤" };
    let bound = |bound: Option<f64>| bound.map_or_else(String::new, |bound| format!("{sign} {bound}"));
    let mut values = one.rounds.clone();
    values.sort_by(f64::total_cmp);
    vec![
        one.row.title().to_owned(),
        one.of.clone(),
        one.system.clone(),
        one.against.clone().unwrap_or_default(),
        bound(one.must),
        bound(one.after),
        spread(&values),
        one.verdict().to_owned(),
    ]
}

/// The middle of an ascending list, and from where to where it goes.
fn spread(ordered: &[f64]) -> String {
    match ordered {
        [] => "–".to_owned(),
        [only] => brief(*only),
        [least, .., greatest] => {
            let middle = super::super::ratio::median(ordered);
            format!("{} ({}–{})", brief(middle), brief(*least), brief(*greatest))
        }
    }
}

/// A figure with as many digits as it is good for.
fn brief(figure: f64) -> String {
    match figure {
        _ if figure >= 100.0 => format!("{figure:.0}"),
        _ if figure >= 20.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_shows_middle_and_ends() {
        assert_eq!(spread(&[0.5, 1.25, 123.4]), "1.25 (0.50–123)");
        assert_eq!([spread(&[21.26]), spread(&[])], ["21.3", "–"]);
    }
}
