//! What the measurements say: silk against Linux, or against itself, computed round by round so that the
//! spread is that of the ratio itself.

use super::super::ratio::median;
use super::measurement::Measurement;
use super::row::Row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a figure is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    /// The same figure of this system.
    System(&'static str),
    /// Another figure of the same system.
    Of(&'static str),
    /// Nothing: the figure itself is judged.
    Itself,
}

/// A comparison the experiment makes.
struct Question {
    row: Row,
    system: &'static str,
    /// Which figure; `*` is each that the row has.
    of: &'static str,
    against: Against,
    /// What must be reached, and what we are after; nothing where it only informs.
    goal: Option<(f64, f64)>,
    /// Whether more is better.
    more: bool,
}

const fn question(
    row: Row,
    system: &'static str,
    of: &'static str,
    against: Against,
    goal: Option<(f64, f64)>,
    more: bool,
) -> Question {
    Question { row, system, of, against, goal, more }
}

/// A segment of one of many connections, of a few busy ones among many, and of few.
const MANY: &str = "segment, 100 000 busy";
const AMONG: &str = "segment, 10 busy of 100 000";
const FEW: &str = "segment, 10";
const MANY_FRAMES: &str = "segment, 100 000 busy, from the frame on";
const AMONG_FRAMES: &str = "segment, 10 busy of 100 000, from the frame on";
const FEW_FRAMES: &str = "segment, 10, from the frame on";

/// Every comparison, in the order of the table.
const QUESTIONS: [Question; 53] = {
    use Against::{Itself, Of, System};
    use Row::{Connections, Datagrams, Emulator, Kept, Many, Opening, PingPong, Receive, Send, SynFlood};
    [
        question(Send, "silk", "goodput", System("linux"), Some((0.9, 1.2)), true),
        question(Send, "silk-wide", "goodput", System("linux"), None, true),
        question(Receive, "silk", "goodput", System("linux-napi"), Some((1.0, 1.5)), true),
        question(Receive, "silk-wide", "goodput", System("linux-napi"), None, true),
        question(Receive, "silk", "goodput", System("linux-no-tso"), None, true),
        question(Receive, "silk", "goodput", System("linux"), None, true),
        question(Receive, "silk-steered", "goodput", System("linux"), Some((1.0, 1.5)), true),
        question(Receive, "silk-steered", "goodput", System("linux-napi"), None, true),
        question(Receive, "silk-steered-wide", "goodput", System("linux"), None, true),
        question(Receive, "silk-steered-wide", "goodput", System("linux-napi"), None, true),
        question(PingPong, "silk", "p50", System("linux"), Some((1.0, 0.6)), false),
        question(PingPong, "silk", "p99", System("linux"), Some((1.0, 0.6)), false),
        question(PingPong, "silk-preferred", "p50", System("linux"), None, false),
        question(PingPong, "silk-preferred", "p99", System("linux"), None, false),
        question(PingPong, "silk-steered", "p50", System("linux"), None, false),
        question(PingPong, "silk-steered", "p99", System("linux"), None, false),
        question(Connections, "silk", "rate", System("linux"), Some((1.0, 2.0)), true),
        question(SynFlood, "silk-preferred", "during", Of("before"), Some((0.9, 0.98)), true),
        question(SynFlood, "silk-preferred", "during", Of("elsewhere"), None, true),
        question(SynFlood, "silk-queues-preferred", "during", Of("before"), Some((0.9, 0.98)), true),
        question(SynFlood, "silk-queues-preferred", "during", Of("elsewhere"), None, true),
        question(SynFlood, "silk-steered-preferred", "during", Of("before"), Some((0.9, 0.98)), true),
        question(SynFlood, "linux", "during", Of("elsewhere"), None, true),
        question(SynFlood, "silk-no-cookies", "during", Of("before"), None, true),
        question(SynFlood, "linux", "during", Of("before"), None, true),
        question(Datagrams, "silk", "received at most", System("linux"), Some((1.5, 3.0)), true),
        question(Datagrams, "silk", "received at most", System("linux-napi"), None, true),
        question(Datagrams, "silk-steered", "received at most", System("linux"), Some((1.5, 3.0)), true),
        question(Datagrams, "silk", "all that can be sent: received", System("linux"), None, true),
        question(Datagrams, "silk", "all that can be sent: received", System("linux-napi"), None, true),
        question(Datagrams, "silk-steered", "all that can be sent: received", System("linux"), None, true),
        question(Emulator, "silk", "*", System("linux"), Some((0.9, 1.0)), true),
        question(Many, "silk-in-process", "bytes each", Itself, Some((2048.0, 1024.0)), false),
        question(Many, "silk-in-process", "time to open all", Itself, None, false),
        question(Many, "silk-in-process", AMONG, Of(FEW), Some((1.3, 1.0)), false),
        question(Many, "silk-in-process", MANY, Of(FEW), Some((1.3, 1.0)), false),
        question(Many, "silk-in-process", AMONG_FRAMES, Of(FEW_FRAMES), Some((1.3, 1.0)), false),
        question(Many, "silk-in-process", MANY_FRAMES, Of(FEW_FRAMES), Some((1.3, 1.0)), false),
        question(Many, "silk", "real: time to open 8 000", System("linux"), None, false),
        question(Many, "silk", "real: bytes each", Itself, Some((2048.0, 1024.0)), false),
        question(Kept, "silk", "16 connections: rate", System("linux"), None, true),
        question(Kept, "silk", "16 connections: p99", System("linux"), None, false),
        question(Kept, "silk", "100 connections: rate", System("linux"), None, true),
        question(Kept, "silk", "100 connections: p99", System("linux"), None, false),
        question(Kept, "silk", "500 connections: rate", System("linux"), None, true),
        question(Kept, "silk", "500 connections: p99", System("linux"), None, false),
        question(Kept, "silk", "500 connections, queued: rate", System("linux"), None, true),
        question(Kept, "silk", "500 connections, queued: p99", System("linux"), None, false),
        question(Kept, "silk", "100 connections: rate", System("linux-napi"), None, true),
        question(Kept, "silk", "500 connections: rate", System("linux-napi"), None, true),
        question(Opening, "silk", "1 at a time: rate", System("linux"), None, true),
        question(Opening, "silk", "16 at a time: rate", System("linux"), None, true),
        question(Opening, "silk", "200 at a time: rate", System("linux"), None, true),
    ]
};

/// One comparison with a figure for each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The row.
    pub row: Row,
    /// The system that is judged.
    pub system: String,
    /// Which of its figures.
    pub of: String,
    /// What that is divided by: a system, or another figure; absent where it is the figure itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The figure of each round.
    pub rounds: Vec<f64>,
    /// Their middle.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// The greatest of them.
    pub max: f64,
    /// What must be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must: Option<f64>,
    /// What we are after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<f64>,
    /// Whether more is better.
    pub more: bool,
}

impl Comparison {
    fn new(question: &Question, of: &str, rounds: Vec<f64>) -> Option<Self> {
        let mut ordered = rounds.clone();
        ordered.sort_by(f64::total_cmp);
        Some(Self {
            row: question.row,
            system: question.system.to_owned(),
            of: of.to_owned(),
            against: match question.against {
                Against::System(name) | Against::Of(name) => Some(name.to_owned()),
                Against::Itself => None,
            },
            min: *ordered.first()?,
            max: *ordered.last()?,
            median: median(&ordered),
            rounds,
            must: question.goal.map(|(must, _)| must),
            after: question.goal.map(|(_, after)| after),
            more: question.more,
        })
    }

    /// Whether the goals are met, in a word; nothing where there are none.
    pub fn verdict(&self) -> &'static str {
        let reaches = |bound: Option<f64>| {
            bound.is_some_and(|bound| if self.more { self.median >= bound } else { self.median <= bound })
        };
        match self.must {
            None => "",
            Some(_) if reaches(self.after) => "beyond",
            must if reaches(must) => "reached",
            Some(_) => "missed",
        }
    }
}

/// Every comparison that the measurements allow.
pub fn comparisons(measurements: &[Measurement]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for question in &QUESTIONS {
        let figures = figures(measurements, question);
        let compared =
            figures.iter().filter_map(|of| Comparison::new(question, of, rounds(measurements, question, of)));
        let compared: Vec<Comparison> = compared.collect();
        all.extend(mean(measurements, question));
        all.extend(compared);
    }
    all
}

/// The figures that a question is about, in the order in which they were measured.
fn figures<'m>(measurements: &'m [Measurement], question: &Question) -> Vec<&'m str> {
    let mut figures = Vec::new();
    for one in measurements.iter().filter(|one| one.row == question.row && one.system == question.system) {
        if (question.of == "*" || question.of == one.of) && !figures.contains(&one.of.as_str()) {
            figures.push(one.of.as_str());
        }
    }
    figures
}

fn rounds(measurements: &[Measurement], question: &Question, of: &str) -> Vec<f64> {
    numbers(measurements).into_iter().filter_map(|round| figure(measurements, question, of, round)).collect()
}

/// The numbers of the rounds.
fn numbers(measurements: &[Measurement]) -> BTreeSet<u32> {
    measurements.iter().map(|one| one.round).collect()
}

/// What one round says of one figure.
fn figure(measurements: &[Measurement], question: &Question, of: &str, round: u32) -> Option<f64> {
    let value = |system: &str, of: &str| {
        let same = |one: &&Measurement| {
            one.row == question.row && one.system == system && one.of == of && one.round == round
        };
        measurements.iter().find(same).map(|one| one.value)
    };
    let ours = value(question.system, of)?;
    let figure = match question.against {
        Against::System(system) => ours / value(system, of)?,
        Against::Of(other) => ours / value(question.system, other)?,
        Against::Itself => ours,
    };
    figure.is_finite().then_some(figure)
}

/// The mean over all figures of a question that is about each of them, in the rounds in which each that anybody has was
/// compared: one that is missing, because it failed, may be the very one that pulls the mean down.
fn mean(measurements: &[Measurement], question: &Question) -> Option<Comparison> {
    let mut all: Vec<&str> = Vec::new();
    for one in measurements.iter().filter(|one| question.of == "*" && one.row == question.row) {
        if !all.contains(&one.of.as_str()) {
            all.push(&one.of);
        }
    }
    let of_round = |round| {
        let sum: Option<f64> = all.iter().map(|of| figure(measurements, question, of, round)).sum();
        sum.filter(|_| !all.is_empty()).map(|sum| sum / all.len() as f64)
    };
    let means = numbers(measurements).into_iter().filter_map(of_round).collect();
    let question = Question { goal: Some((0.9, 1.1)), ..*question };
    Comparison::new(&question, "mean of all", means)
}

#[cfg(test)]
mod tests {
    use super::super::super::counters::CpuShares;
    use super::super::super::ends::Unit;
    use super::*;

    fn one(row: Row, system: &str, of: &str, round: u32, value: f64) -> Measurement {
        let (system, of) = (system.to_owned(), of.to_owned());
        Measurement { row, system, of, round, value, unit: Unit::PerSecond, cpu: CpuShares::default() }
    }

    fn told(comparison: &Comparison) -> (&str, [f64; 3], &str) {
        let Comparison { of, min, median, max, .. } = comparison;
        (of, [*min, *median, *max], comparison.verdict())
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        let measured = [
            one(Row::Send, "linux", "goodput", 1, 10.0),
            one(Row::Send, "silk", "goodput", 1, 12.0),
            one(Row::Send, "linux", "goodput", 2, 20.0),
            one(Row::Send, "silk", "goodput", 2, 16.0),
            // A round in which one of them failed compares nothing.
            one(Row::Send, "silk", "goodput", 3, 99.0),
        ];
        let compared = comparisons(&measured);
        assert_eq!(compared.iter().map(told).collect::<Vec<_>>(), [("goodput", [0.8, 1.0, 1.2], "reached")]);
    }

    #[test]
    fn each_network_is_compared_and_the_mean_of_them() {
        let cell = |system: &str, of: &str, value| one(Row::Emulator, system, of, 1, value);
        let measured = [
            cell("linux", "1 ms, 0 %", 100.0),
            cell("silk", "1 ms, 0 %", 80.0),
            cell("linux", "100 ms, 1 %", 10.0),
            cell("silk", "100 ms, 1 %", 16.0),
        ];
        let compared = comparisons(&measured);
        let expected = [
            ("mean of all", [1.2000000000000002; 3], "beyond"),
            ("1 ms, 0 %", [0.8; 3], "missed"),
            ("100 ms, 1 %", [1.6; 3], "beyond"),
        ];
        assert_eq!(compared.iter().map(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_mean_is_of_all_networks_and_of_no_round_in_which_one_failed() {
        let cell = |system: &str, of: &str, round, value| one(Row::Emulator, system, of, round, value);
        let (near, far) = ("1 ms, 0 %", "100 ms, 3 %");
        let mut measured = vec![
            cell("linux", near, 1, 100.0),
            cell("silk", near, 1, 120.0),
            cell("linux", far, 1, 10.0),
            // silk hung over the far one.
            cell("linux", near, 2, 100.0),
            cell("linux", far, 2, 10.0),
            cell("silk", far, 2, 4.0),
        ];
        let means = |measured: &[Measurement]| {
            let compared = comparisons(measured);
            compared
                .into_iter()
                .filter(|one| one.of == "mean of all")
                .map(|one| one.rounds)
                .collect::<Vec<_>>()
        };
        assert_eq!(means(&measured), [[0.0; 0]; 0], "what failed does not make the mean better");
        measured.push(cell("silk", near, 2, 120.0));
        assert_eq!(means(&measured), [[(0.4 + 1.2) / 2.0]], "rounds are not mixed");
    }

    #[test]
    fn a_flood_is_compared_with_the_time_before_it() {
        let cell = |of: &str, value| one(Row::SynFlood, "linux", of, 1, value);
        let compared = comparisons(&[cell("before", 1000.0), cell("during", 500.0)]);
        assert_eq!(compared.iter().map(told).collect::<Vec<_>>(), [("during", [0.5; 3], "")]);
    }

    #[test]
    fn less_is_better_where_the_goal_says_so() {
        let measured = [one(Row::Many, "silk-in-process", "bytes each", 1, 1500.0)];
        assert_eq!(
            comparisons(&measured).iter().map(told).collect::<Vec<_>>(),
            [("bytes each", [1500.0; 3], "reached")]
        );
    }
}
