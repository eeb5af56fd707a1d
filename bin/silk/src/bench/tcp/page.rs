//! The TCP experiment as one HTML page that needs nothing but itself.

use super::super::page::{escaped, html_table, section};
use super::results::Results;
use super::table;

const STYLE: &str = include_str!("../page.css");
/// The names are long: they rather take two lines than push the figures out of sight.
const NARROW: &str = "td:first-child, td:nth-child(2), td:nth-child(4) { white-space: normal; }\n";

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
    parts += &section("All figures", &html_table(&table::figures(results), ours));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>silk: TCP and UDP beside Linux</title>\n<style>\n{STYLE}{NARROW}</style>\n</head>\n<body>\n\
         <header>\n<h1>TCP and UDP beside Linux</h1>\n<p>{}</p>\n</header>\n<main>\n{parts}</main>\n</body>\n\
         </html>\n",
        escaped(table::method(results)),
    )
}
