//! The experiments with video as one HTML page that needs nothing but itself, from the rows of its JSON.

use super::figures::{colour, middle, samples};
use super::plot::{bars, deviations};
use crate::machine;
use crate::timeline::{gone, over_time};
use serde_json::Value;
use silk_page::plotters::style::RGBColor;
use silk_page::{Drawn, Page, escaped, facts, html_table, legend, section};

const METHOD: &str = include_str!("method.html");
/// The names of rows are long: they rather take two lines than push the figures out of sight.
const STYLE: &str = "td:first-child { white-space: normal; min-width: 22em; }\n\
                     figure.narrow { max-width: 640px; }\n";

/// The whole page of these rows.
pub fn page(rows: &[Value]) -> String {
    let missing = incomplete(rows);
    let rows: Vec<Value> = rows.iter().filter(|row| !row["incomplete"].is_string()).cloned().collect();
    let rows = rows.as_slice();
    let parts = [
        missing,
        section("What was to be reached", &goals(rows)),
        part("The highest rate of each clip", rates(rows)),
        part("Deadlines beside eight other streams", deadlines(rows)),
        part("Each third picture only", third(rows)),
        part("What a stream will cost, predicted beside measured", admission(rows)),
        section("All figures", &all(rows)),
        section("How it was measured", METHOD),
    ];
    let lead = format!(
        "<p>Scout’s experiments with video as paths from the network device to the display, beside GStreamer and \
         ffmpeg with the same decoder.</p>\n{}",
        facts(machine::described())
    );
    Page {
        title: "silk: video on paths",
        heading: "Video on paths",
        lead: &lead,
        style: STYLE,
        main: &parts.concat(),
    }
    .text()
}

fn part(title: &str, content: Option<String>) -> String {
    content.map_or_else(String::new, |content| section(title, &content))
}

/// What could not be measured; nothing where all was.
fn incomplete(rows: &[Value]) -> String {
    let why = rows.iter().filter_map(|row| row["incomplete"].as_str());
    let items: String = why.map(|why| format!("<li>{}</li>", escaped(why))).collect();
    let list = || section("What could not be measured", &format!("<ul>{items}</ul>\n"));
    if items.is_empty() { items } else { list() }
}

/// A row's name; `None` where it has none.
fn what(row: &Value) -> &str {
    row["what"].as_str().unwrap_or_default()
}

fn system(row: &Value) -> &str {
    row["system"].as_str().unwrap_or_default()
}

fn goals(rows: &[Value]) -> String {
    let judged: Vec<&Value> = rows.iter().filter(|row| row["must"].is_number()).collect();
    if judged.is_empty() {
        return "<p>Nothing that is to be judged is among these rows.</p>\n".to_owned();
    }
    let head = ["what", "must reach", "we are after", "measured"].map(str::to_owned).to_vec();
    let row = |row: &&Value| {
        let sign = if row["more"] == true { "≥" } else { "≤" };
        vec![
            what(row).to_owned(),
            format!("{sign} {}", row["must"]),
            format!("{sign} {}", row["after"]),
            measured(row),
        ]
    };
    let table: Vec<Vec<String>> = std::iter::once(head).chain(judged.iter().map(row)).collect();
    html_table(&table, |cells, column| {
        let of = judged.iter().find(|row| what(row) == cells[0]).filter(|_| column == 3);
        of.map_or_else(String::new, |row| verdict(row).to_owned())
    })
}

/// The class of a judged figure.
fn verdict(row: &Value) -> &'static str {
    let (Some(middle), Some(must), Some(after)) = (middle(row), row["must"].as_f64(), row["after"].as_f64())
    else {
        return "missed";
    };
    let within = |bound: f64| if row["more"] == true { middle >= bound } else { middle <= bound };
    match (within(after), within(must)) {
        (true, _) => "beyond",
        (_, true) => "reached",
        _ => "missed",
    }
}

fn measured(row: &Value) -> String {
    let shown = |value: &f64| if *value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    let samples = samples(row);
    match (middle(row), samples.as_slice()) {
        (Some(middle), [least, .., most]) => format!("{} ({}–{})", shown(&middle), shown(least), shown(most)),
        (Some(middle), _) => shown(&middle),
        _ => "not measured".into(),
    }
}

fn rates(rows: &[Value]) -> Option<String> {
    let rates: Vec<(&str, &str, &Value)> = rows
        .iter()
        .filter_map(|row| Some((what(row).strip_suffix(", pictures/s")?, system(row), row)))
        .collect();
    let svg = drawn(bars(&rates, "pictures for a second of CPU"));
    let names = legend(systems(&rates).into_iter().map(|system| (system, colour(system))));
    (!rates.is_empty()).then(|| {
        format!(
            "<p>The same packets, the same decoder library, one thread, and nothing shown. The lines go from the least \
             to the greatest round. Higher is better.</p>\n{names}<figure class=\"wide\">{svg}</figure>\n"
        )
    })
}

/// The systems of some rows, each once, in their order.
fn systems<'r>(rows: &[(&'r str, &'r str, &'r Value)]) -> Vec<&'r str> {
    let mut systems: Vec<&str> = Vec::new();
    for (_, system, _) in rows {
        if !systems.contains(system) {
            systems.push(system);
        }
    }
    systems
}

fn deadlines(rows: &[Value]) -> Option<String> {
    let of = |row: &&Value| what(row).contains("missed or lost");
    let named: Vec<(&str, &str, &Value)> =
        rows.iter().filter(of).map(|row| (run(row), system(row), row)).collect();
    let first = named.first()?.2;
    let about = what(first).split(", missed or lost").next().unwrap_or_default();
    let lines: Vec<_> = named
        .iter()
        .filter(|(.., row)| row["timeline"].is_object())
        .map(|(run, _, row)| (line_colour(run), gone(&row["timeline"])))
        .collect();
    let names = legend(
        named
            .iter()
            .filter(|(.., row)| row["timeline"].is_object())
            .map(|(run, ..)| (*run, line_colour(run))),
    );
    let columns = drawn(bars(&named, "pictures not shown in time"));
    let time = match lines.is_empty() {
        true => String::new(),
        false => format!(
            "<h3>Over time, of one round</h3>\n{names}<figure class=\"narrow\">{}</figure>\n",
            drawn(over_time(&lines, "pictures not shown in time"))
        ),
    };
    Some(format!(
        "<p>Pictures not shown in time, of {}. Lower is better.</p>\n<figure class=\"wide\">{columns}</figure>\n{time}",
        escaped(about)
    ))
}

/// The run that a row of deadlines is of.
fn run(row: &Value) -> &str {
    what(row).split(", missed or lost, ").nth(1).unwrap_or_else(|| system(row))
}

fn line_colour(run: &str) -> RGBColor {
    if run == "by deadline" { colour("silk") } else { colour("GStreamer") }
}

fn third(rows: &[Value]) -> Option<String> {
    let of = |row: &&Value| what(row).starts_with("CPU for each third picture");
    let found: Vec<(&str, &str, &Value)> =
        rows.iter().filter(of).map(|row| ("each third ÷ all", system(row), row)).collect();
    (!found.is_empty()).then(|| {
        let svg = drawn(bars(&found, "part of the CPU"));
        format!("<p>CPU of the whole process against that for all pictures: what is left out is dropped in XDP.</p>\n<figure class=\"narrow\">{svg}</figure>\n")
    })
}

fn admission(rows: &[Value]) -> Option<String> {
    let found: Vec<(&str, &str, &Value)> = rows
        .iter()
        .filter_map(|row| Some((what(row).strip_suffix(": predicted ÷ measured CPU")?, system(row), row)))
        .collect();
    (!found.is_empty()).then(|| {
        let svg = drawn(deviations(&found));
        format!(
            "<p>What the player says a stream will cost, from what SHELL is told of it, divided by what it then costs; a \
             point for each round. The line is where both are the same, the band 15 % to either side.</p>\n\
             <figure class=\"narrow\">{svg}</figure>\n"
        )
    })
}

fn drawn(svg: Drawn<String>) -> String {
    svg.unwrap_or_else(escaped)
}

fn all(rows: &[Value]) -> String {
    let head = ["what", "of", "measured: median (least–most)"].map(str::to_owned).to_vec();
    let row = |row: &Value| vec![what(row).to_owned(), system(row).to_owned(), measured(row)];
    let table: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(row)).collect();
    html_table(
        &table,
        |cells, column| if column > 0 && cells[1] == "silk" { "ours".into() } else { String::new() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_has_each_part_that_was_measured_and_no_markup_of_others() {
        let timeline = json!({ "each_ns": 1_000_000_000, "shown_missed_lost": [[30, 0, 0], [9, 20, 1]] });
        let what = "1345 pictures at 30/s beside 8 others at 85/s, missed or lost";
        let rows = [
            json!({ "what": "<Flower>, pictures/s", "system": "silk", "samples": [1400.0, 1300.0, 1500.0] }),
            json!({ "what": "<Flower>, pictures/s", "system": "ffmpeg", "samples": [900.0] }),
            json!({ "what": "rate", "system": "silk", "samples": [1.2], "must": 1.0, "after": 1.3, "more": true }),
            json!({ "what": format!("{what}, by deadline"), "system": "silk", "samples": [0.0], "timeline": timeline }),
            json!({ "what": what, "system": "GStreamer", "samples": [7.0] }),
            json!({ "what": "Canyon: predicted ÷ measured CPU", "system": "silk", "samples": [0.63] }),
        ];
        let text = page(&rows);
        assert_eq!(text.matches("<svg").count(), 4, "rates, deadlines, over time, admission");
        assert!(text.contains("<td class=\"reached\">1.20</td>"), "{text}");
        assert!(text.contains("1400 (1300–1500)") && text.contains("<h2>Deadlines"), "{text}");
        assert!(!text.contains("<Flower>") && !text.contains("<h2>Each third"), "{text}");
        for tag in ["section", "figure", "table", "tr", "svg"] {
            let count = |of: &str| text.matches(of).count();
            assert_eq!(count(&format!("<{tag}")), count(&format!("</{tag}>")), "{tag}");
        }
    }

    #[test]
    fn rows_of_another_program_make_a_page_too() {
        assert!(page(&[Value::Null, json!({ "what": 1, "samples": "x" })]).contains("not measured"));
    }

    #[test]
    fn a_page_says_what_could_not_be_measured() {
        let row = json!({ "what": "rate", "system": "silk", "samples": [1.2] });
        assert!(!page(std::slice::from_ref(&row)).contains("could not be measured"));
        let text = page(&[row, json!({ "incomplete": "flood: <none>" })]);
        assert!(text.contains("<h2>What could not be measured</h2>"), "{text}");
        assert!(
            text.contains("<li>flood: &lt;none&gt;</li>") && !text.contains("not measured</td>"),
            "{text}"
        );
    }
}
