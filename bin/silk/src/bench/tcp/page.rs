//! The TCP experiment as one HTML page that needs nothing but itself.

use super::super::plot::colour;
use super::results::Results;
use super::{plot, table};
use silk_page::{Page, escaped, html_table, legend, section};

/// The names are long: they rather take two lines than push the figures out of sight.
const NARROW: &str = "td:first-child, td:nth-child(2), td:nth-child(4) { white-space: normal; }\n";

/// What becomes of datagrams when more of them come than can be received.
fn overload(results: &Results) -> String {
    let lines = plot::lines(&results.measurements);
    if lines.is_empty() {
        return String::new();
    }
    let legend = legend(lines.iter().map(|line| (line.system, colour(line.system))));
    let svg = plot::received(&lines).unwrap_or_else(|error| escaped(&error));
    let says = "<p>Datagrams of 64 bytes that a program receives, against those that are sent to it; the middle of \
                the rounds. Higher is better, and level is the point: what is too much should cost nothing.</p>\n";
    section("More than can be received", &format!("{says}{legend}<figure class=\"wide\">{svg}</figure>\n"))
}

/// The whole page.
pub fn page(results: &Results) -> String {
    let verdict = |row: &[String], column: usize| match column {
        6 => row.get(7).cloned().unwrap_or_default(),
        _ => String::new(),
    };
    let ours = |row: &[String], _| match row.get(2) {
        Some(system) if system.starts_with("silk") => "ours".to_owned(),
        _ => String::new(),
    };
    let missing: String = results.incomplete.iter().map(|why| format!("<li>{}</li>", escaped(why))).collect();
    let mut parts = String::new();
    if !missing.is_empty() {
        parts += &section("What could not be measured", &format!("<ul>{missing}</ul>\n"));
    }
    parts += &section("What was to be reached", &html_table(&table::goals(results), verdict));
    parts += &overload(results);
    parts += &section("All figures", &html_table(&table::figures(results), ours));
    Page {
        title: "silk: TCP and UDP beside Linux",
        heading: "TCP and UDP beside Linux",
        lead: &format!("<p>{}</p>\n", escaped(table::method(results))),
        style: NARROW,
        main: &parts,
    }
    .text()
}
