//! The experiment as one HTML page that needs nothing but itself: the goals, the plots, the figures and
//! how they were measured.

use super::cell::Cell;
use super::plot::{colour, response_times, throughput};
use super::ratio::{GOALS, Goal, Ratio, loads, sizes, systems};
use super::results::Results;
use super::table;
use silk_page::{Page, escaped, html_table, section};
use std::collections::BTreeSet;

const METHOD: &str = include_str!("method.html");

/// The whole page.
pub fn page(results: &Results) -> String {
    let cells = &results.cells;
    let parts = [
        incomplete(results),
        section("What was to be reached", &goals(results)),
        section("Response time of the preferred client", &response_section(cells)),
        section("Throughput of the standard clients", &throughput_section(cells)),
        section("All figures", &figures(cells)),
        section("How it was measured", METHOD),
    ];
    let lead = format!(
        "<p>Debian’s Apache, unmodified, over Linux, behind HAProxy, and on silk’s paths. One preferred \
         client beside up to {} standard clients; a new connection for each request.</p>\n{}",
        cells.iter().map(|cell| cell.clients).max().unwrap_or(0),
        machine(results),
    );
    Page {
        title: "silk: the preferred request stays fast",
        heading: "The preferred request stays fast",
        lead: &lead,
        main: &parts.concat(),
        ..Page::default()
    }
    .text()
}

fn incomplete(results: &Results) -> String {
    let items: String = results.incomplete.iter().map(|why| format!("<li>{}</li>", escaped(why))).collect();
    if items.is_empty() {
        items
    } else {
        section("What could not be measured", &format!("<ul>{items}</ul>\n"))
    }
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let facts = [
        format!("{} × {}", machine.cpus, machine.cpu),
        format!("Linux {}", machine.kernel),
        machine.apache.replace("Server version: ", ""),
        machine.date.replace('T', " "),
    ];
    silk_page::facts(facts.into_iter().chain(machine.doubts()))
}

/// A row for each goal and load, a column for each file size; the peers stand small below silk's figure.
fn goals(results: &Results) -> String {
    let sizes = sizes(&results.cells);
    let head: String = sizes.iter().map(|kb| format!("<th>{kb} KB</th>")).collect();
    let rows: String = GOALS.iter().map(|goal| goal_rows(goal, &results.ratios, &sizes)).collect();
    if rows.is_empty() {
        return "<p>No run of silk is among these results, so there is nothing to judge.</p>\n".to_owned();
    }
    format!(
        "<p>The middle of the rounds, and below it the least and the greatest; each round is compared with \
         itself. Green is what we are after, blue what must be reached, red falls short of it.</p>\n\
         <div class=\"table\"><table class=\"goals\">\n<tr><th></th><th>must</th><th>after</th>{head}</tr>\n{rows}\
         </table></div>\n"
    )
}

fn goal_rows(goal: &Goal, ratios: &[Ratio], sizes: &[u32]) -> String {
    let of_goal: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.measure == goal.measure).collect();
    let judged = of_goal.iter().filter(|ratio| ratio.system == goal.system);
    let loads: BTreeSet<u32> = judged.map(|ratio| ratio.clients).collect();
    let row = |clients: u32| {
        let find = |system: &str, kb: u32| {
            let same = |r: &&&Ratio| r.system == system && r.kb == kb && r.clients == clients;
            of_goal.iter().find(same).copied()
        };
        let cells: String = sizes.iter().map(|kb| goal_cell(goal, *kb, find)).collect();
        format!(
            "<tr><td>{}<small>{}</small></td><td>{}</td><td>{}</td>{cells}</tr>\n",
            escaped(goal.label.replace("{}", &clients.to_string())),
            goal.system,
            table::bound(goal, goal.must),
            table::bound(goal, goal.after),
        )
    };
    loads.into_iter().map(row).collect()
}

fn goal_cell<'r>(goal: &Goal, kb: u32, find: impl Fn(&str, u32) -> Option<&'r Ratio>) -> String {
    let Some(ours) = find(goal.system, kb) else { return "<td>–</td>".to_owned() };
    let peers: String = [("linux", "Linux"), ("haproxy", "HAProxy")]
        .into_iter()
        .filter(|(system, _)| goal.has_peer(system))
        .filter_map(|(system, name)| {
            Some(format!("<small>{name} {}</small>", table::brief(find(system, kb)?.median)))
        })
        .collect();
    let spread = match ours.rounds.len() {
        0 | 1 => String::new(),
        _ => format!("<small>{}–{}</small>", table::brief(ours.min), table::brief(ours.max)),
    };
    let verdict = table::verdict(goal, ours.median);
    format!("<td class=\"{verdict}\">{}{spread}{peers}</td>", table::brief(ours.median))
}

fn response_section(cells: &[Cell]) -> String {
    let plot = |kb: u32| {
        let svg = response_times(cells, kb).unwrap_or_else(|error| escaped(&error));
        format!("<figure><figcaption>{kb} KB</figcaption>{svg}</figure>\n")
    };
    let plots: String = sizes(cells).into_iter().map(plot).collect();
    format!(
        "<p>Mean from opening the connection to the last byte, logarithmic; the band goes from the least to \
         the greatest round. Lower is better, and flat is the point.</p>\n{}<div class=\"plots\">\n{plots}\
         </div>\n",
        legend(cells)
    )
}

fn throughput_section(cells: &[Cell]) -> String {
    let svg = throughput(cells).unwrap_or_else(|error| escaped(&error));
    format!(
        "<p>Measured without the preferred client. Higher is better.</p>\n{}<figure class=\"wide\">{svg}\
         </figure>\n",
        legend(cells)
    )
}

fn legend(cells: &[Cell]) -> String {
    silk_page::legend(systems(cells).into_iter().map(|system| (system, colour(system))))
}

fn figures(cells: &[Cell]) -> String {
    let one = |clients| {
        let rows = table::figures(cells, clients);
        format!(
            "<h3>{clients} standard clients</h3>\n{}",
            html_table(&rows, |row, _| match row.get(1).map(String::as_str) {
                Some(system) if system.starts_with("silk") => "ours".to_owned(),
                _ => String::new(),
            })
        )
    };
    loads(cells).into_iter().map(one).collect()
}
