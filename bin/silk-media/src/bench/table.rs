//! What an experiment has come to: figures with their spread, and those that are to reach something.

use serde_json::{Value, json};
use std::fmt;

/// Measurements of one thing, in the order they were made: those of one round have the same place in all rows.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// One more.
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    /// From the least to the greatest.
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The median; zero of none.
    pub fn middle(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
        match self.sorted().as_slice() {
            [] => f.write_str("not measured"),
            sorted @ [least, ..] => {
                let most = sorted[sorted.len() - 1];
                write!(f, "{} ({}–{})", shown(self.middle()), shown(*least), shown(most))
            }
        }
    }
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// This at least (or at most).
    pub must: f64,
    /// We are after this.
    pub after: f64,
    /// More is better.
    pub more: bool,
}

struct Row {
    what: String,
    system: &'static str,
    samples: Samples,
    goal: Option<Goal>,
    /// A player's timeline, of one of the rounds.
    timeline: Value,
    /// Pictures that missed their deadlines, of all rounds.
    missed: Vec<Value>,
}

/// The table, and what is missing in it.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
    incomplete: Vec<String>,
}

impl Table {
    /// A figure that is only shown.
    pub fn figure(&mut self, what: &str, system: &'static str, samples: &Samples) {
        self.add(what, system, samples, None);
    }

    /// A figure that is to reach something.
    pub fn judged(&mut self, what: &str, samples: &Samples, goal: Goal) {
        self.add(what, "silk", samples, Some(goal));
    }

    fn add(&mut self, what: &str, system: &'static str, samples: &Samples, goal: Option<Goal>) {
        let (what, samples) = (what.to_owned(), samples.clone());
        self.rows.push(Row { what, system, samples, goal, timeline: Value::Null, missed: Vec::new() });
    }

    /// What the last figure came from over time: a player's timeline.
    pub fn over_time(&mut self, timeline: Value) {
        if let Some(row) = self.rows.last_mut() {
            row.timeline = timeline;
        }
    }

    /// What was missed in the last figure, and why.
    pub fn missed(&mut self, missed: Vec<Value>) {
        if let Some(row) = self.rows.last_mut() {
            row.missed = missed;
        }
    }

    /// Something could not be measured, for this.
    pub fn lacks(&mut self, why: String) {
        self.incomplete.push(why);
    }

    /// Whether nothing at all was measured.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.samples.0.is_empty())
    }

    /// What could not be measured, and why.
    pub fn incomplete(&self) -> &[String] {
        &self.incomplete
    }

    /// As JSON: the rows, and behind them what could not be measured.
    pub fn json(&self) -> Vec<Value> {
        let rows = self.rows.iter().map(|row| {
            json!({
                "what": row.what,
                "system": row.system,
                "samples": row.samples.0,
                "must": row.goal.map(|goal| goal.must),
                "after": row.goal.map(|goal| goal.after),
                "more": row.goal.map(|goal| goal.more),
                "reached": row.reached(),
                "timeline": row.timeline,
                "missed": row.missed,
            })
        });
        rows.chain(self.incomplete.iter().map(|why| json!({ "incomplete": why }))).collect()
    }
}

impl Row {
    fn reached(&self) -> Option<bool> {
        let (goal, middle) = (self.goal?, self.samples.middle());
        // Of nothing the median is none, not zero.
        let measured = !self.samples.0.is_empty();
        measured.then_some(if goal.more { middle >= goal.must } else { middle <= goal.must })
    }
}

impl fmt::Display for Table {
    /// As Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | of | must reach | we are after | measured: median (least–most) | |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let sign = |goal: &Goal| if goal.more { "≥" } else { "≤" };
            let goals = row.goal.map_or_else(
                || (String::new(), String::new()),
                |goal| (format!("{} {}", sign(&goal), goal.must), format!("{} {}", sign(&goal), goal.after)),
            );
            let verdict = match row.reached() {
                Some(true) => "reached",
                Some(false) => "missed",
                None => "",
            };
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {verdict} |",
                row.what, row.system, goals.0, goals.1, row.samples
            )?;
        }
        if !self.incomplete.is_empty() {
            writeln!(f, "\nWhat could not be measured:\n")?;
        }
        // Behind the first line comes what programs wrote.
        let first = self.incomplete.iter().filter_map(|why| why.lines().next());
        first.into_iter().try_for_each(|why| writeln!(f, "* {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_the_median() {
        let mut samples = Samples::default();
        [3.0, 0.5, 1.1].into_iter().for_each(|value| samples.add(value));
        let mut table = Table::default();
        table.judged("rate", &samples, Goal { must: 1.0, after: 1.3, more: true });
        table.judged("cost", &samples, Goal { must: 1.0, after: 0.5, more: false });
        let text = table.to_string();
        assert!(text.contains("| rate | silk | ≥ 1 | ≥ 1.3 | 1.10 (0.50–3.00) | reached |"), "{text}");
        assert!(text.contains("| cost | silk | ≤ 1 | ≤ 0.5 | 1.10 (0.50–3.00) | missed |"), "{text}");
        assert_eq!(table.json()[1]["reached"], false);
    }

    #[test]
    fn what_was_not_measured_has_reached_nothing_and_the_table_says_so() {
        let mut table = Table::default();
        table.judged("missed", &Samples::default(), Goal { must: 0.0, after: 0.0, more: false });
        table.lacks("deadlines: the player does not end\nit said".into());
        let text = table.to_string();
        let rows = "| missed | silk | ≤ 0 | ≤ 0 | not measured |  |\n";
        let missing = "\nWhat could not be measured:\n\n* deadlines: the player does not end\n";
        assert!(text.ends_with(&format!("{rows}{missing}")), "{text}");
        let json = table.json();
        assert_eq!(json[0]["reached"], Value::Null);
        assert_eq!(json[1], json!({ "incomplete": "deadlines: the player does not end\nit said" }));
    }
}
