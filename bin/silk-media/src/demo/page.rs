//! The page of the demonstration: one HTML file that needs nothing but itself.

use super::plot::{PARTS, colour, gone_over_time, shown_over_time, where_time_went};
use super::show::{Run, SHOWN, Seen, spoken};
use crate::bench::OTHERS;
use crate::machine;
use serde_json::Value;
use silk_page::{Drawn, Page, escaped, facts, html_table, legend, section};

const STYLE: &str = include_str!("demo.css");
const METHOD: &str = include_str!("method.html");

/// The whole page; the others played `rate` pictures a second each.
pub fn page(runs: &[Run], rate: f64) -> String {
    let (first, ..) = SHOWN[0];
    let slow = runs.iter().max_by_key(|run| gone(run, first));
    let parts = [
        section("What was missed", &result(runs)),
        section("The windows", &windows(runs)),
        section("Over time", &over_time(runs)),
        section(
            "Where the time of missed pictures went",
            &slow.map_or_else(String::new, |run| why(run, first)),
        ),
        section("All figures", &figures(runs)),
        section("How it was done", METHOD),
    ];
    let lead = format!(
        "<p>Two streams in windows, beside {OTHERS} others that nobody sees: {rate:.0} pictures a second of each, large \
         ones, and nine tenths of the processor in all. The same streams twice: what is decoded next is first what \
         is due next, and then whatever has its turn.</p>\n{}",
        facts(machine::described())
    );
    Page {
        title: "silk: video that keeps its deadlines",
        heading: "Video that keeps its deadlines",
        lead: &lead,
        style: STYLE,
        main: &parts.concat(),
    }
    .text()
}

/// Pictures of a stream that were not shown in time.
fn gone(run: &Run, stream: &str) -> u64 {
    run.figure(stream, "missed") + run.figure(stream, "lost")
}

fn result(runs: &[Run]) -> String {
    let one = |run: &Run, stream: &str| {
        let (gone, shown) = (gone(run, stream), run.figure(stream, "shown"));
        format!(
            "<div class=\"{}\"><b>{gone} of {}</b><span>pictures of {} not shown in time, {}</span></div>\n",
            escaped(run.schedule),
            gone + shown,
            escaped(stream),
            spoken(run.schedule)
        )
    };
    let all = SHOWN.iter().flat_map(|(stream, ..)| runs.iter().map(move |run| one(run, stream)));
    format!("<div class=\"big\">\n{}</div>\n", all.collect::<String>())
}

fn windows(runs: &[Run]) -> String {
    let whole = |run: &Run, seen: &Seen| {
        format!(
            "<figure><img alt=\"the window of {0}\" src=\"{1}\"><figcaption>{0}, {2}</figcaption></figure>\n",
            escaped(&seen.stream),
            seen.whole.data(),
            spoken(run.schedule)
        )
    };
    let row = |seen: &Seen| {
        let changed = seen.row.iter().skip(1).filter(|(_, changed)| *changed).count();
        let images: String = seen.row.iter().map(|(look, changed)| image(look.data(), *changed)).collect();
        let name = escaped(&seen.stream);
        let after = seen.row.len().saturating_sub(1);
        format!(
            "<p>{name}: {changed} of {after} looks found another picture.</p>\n<div class=\"row\">{images}</div>\n"
        )
    };
    let of_run = |run: &Run| {
        let wholes: String = run.seen.iter().map(|seen| whole(run, seen)).collect();
        let rows: String = run.seen.iter().map(row).collect();
        format!("<h3>{}</h3>\n<div class=\"pair\">\n{wholes}</div>\n{rows}", spoken(run.schedule))
    };
    format!(
        "<p>As they were on the screen two seconds after the beginning, and below that ten looks at each, a tenth of \
         a second apart. One that is pale showed the same picture as the look before.</p>\n{}",
        runs.iter().map(of_run).collect::<String>()
    )
}

fn image(data: String, changed: bool) -> String {
    format!("<img alt=\"\" class=\"{}\" src=\"{data}\">", if changed { "new" } else { "same" })
}

fn over_time(runs: &[Run]) -> String {
    let figure = |name: &str, svg: Drawn<String>| {
        format!("<figure><figcaption>{}</figcaption>{}</figure>\n", escaped(name), drawn(svg))
    };
    let plots: String = SHOWN
        .iter()
        .map(|(name, ..)| {
            figure(name, gone_over_time(runs, name)) + &figure(name, shown_over_time(runs, name))
        })
        .collect();
    let names = legend(runs.iter().map(|run| (spoken(run.schedule), colour(run.schedule))));
    format!("{names}<div class=\"plots\" style=\"grid-template-columns: 1fr 1fr\">\n{plots}</div>\n")
}

fn drawn(svg: Drawn<String>) -> String {
    svg.unwrap_or_else(escaped)
}

fn why(run: &Run, stream: &str) -> String {
    let names = legend(PARTS.map(|(_, name, colour)| (name, colour)));
    let mut lines = run.why.lines();
    let head: Vec<&str> = lines.by_ref().take(2).collect();
    let rest: Vec<&str> = lines.collect();
    let last = &rest[rest.len().saturating_sub(LINES)..];
    format!(
        "<p>The last pictures of {} that were missed {}: the time from the picture before, split without rest. How \
         late each was adds up from them all.</p>\n{names}<figure class=\"wide\">{}</figure>\n\
         <p>What <code>silk why {}</code> says of it, the end:</p>\n<pre>{}</pre>\n",
        escaped(stream),
        spoken(run.schedule),
        drawn(where_time_went(run, stream)),
        escaped(stream),
        escaped([head, last.to_vec()].concat().join("\n")),
    )
}

/// Lines of what `silk why` says that are shown.
const LINES: usize = 12;

fn figures(runs: &[Run]) -> String {
    let head = [
        "stream",
        "run",
        "shown",
        "missed",
        "lost",
        "replaced in its window",
        "packets discarded early",
        "CPU a picture, ms",
        "display behind at most, ms",
        "player's CPU",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, ..) in SHOWN {
        rows.extend(runs.iter().map(|run| row(run, name, |stream| stream == name)));
    }
    rows.extend(
        runs.iter()
            .map(|run| row(run, "the others", |stream| SHOWN.iter().all(|(name, ..)| stream != *name))),
    );
    html_table(&rows, |row, column| match column {
        1 if row[1] == spoken("deadlines") => "ours".to_owned(),
        _ => String::new(),
    })
}

/// A row of figures: of all streams whose names are wanted, together.
fn row(run: &Run, name: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let streams: Vec<&Value> =
        run.played.streams.iter().filter(|stream| stream["name"].as_str().is_some_and(&wanted)).collect();
    let sum = |figure: &str| streams.iter().filter_map(|stream| stream[figure].as_u64()).sum::<u64>();
    let most = streams.iter().filter_map(|stream| stream["behind_most_ns"].as_u64()).max().unwrap_or(0);
    let cpu = sum("cpu_ns") as f64 / 1e6 / sum("pictures").max(1) as f64;
    let counts =
        ["shown", "missed", "lost", "replaced_in_window", "discarded"].map(|figure| sum(figure).to_string());
    let ends =
        [format!("{cpu:.2}"), format!("{:.1}", most as f64 / 1e6), format!("{:.0} %", run.share * 100.0)];
    [name.to_owned(), spoken(run.schedule).to_owned()].into_iter().chain(counts).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Played;
    use crate::demo::look::Look;
    use serde_json::json;
    use std::time::Duration;

    fn run(schedule: &'static str, gone: u64) -> Run {
        let missed = json!({ "picture": 7, "late_ns": 9_000_000, "processor_ns": 4_000_000 });
        let stream = |name| {
            json!({ "name": name, "shown": 90, "missed": gone, "lost": 1, "pictures": 90, "cpu_ns": 45_000_000,
                "misses": [missed], "timeline": { "each_ns": 1_000_000_000, "shown_missed_lost": [[90, gone, 1]] } })
        };
        let look = Look { size: (4, 4), points: vec![9; 64] };
        let seen = Seen {
            stream: "neptune".into(),
            whole: look.clone(),
            row: vec![(look.clone(), true), (look, false)],
        };
        Run {
            schedule,
            share: 0.9,
            played: Played {
                streams: ["neptune", "flower", "other1", "<i>"].map(stream).into(),
                cpu: Duration::ZERO,
            },
            why: "neptune: 1 missed <&>\nhead\n7 9.00\n".into(),
            seen: vec![seen],
        }
    }

    #[test]
    fn a_page_has_both_runs_and_no_markup_of_others() {
        let text = page(&[run("deadlines", 0), run("in-turn", 60)], 85.0);
        assert_eq!(text.matches("<svg").count(), 5, "two plots of each stream, and the parts");
        for part in [
            "<b>1 of 91</b><span>pictures of neptune not shown in time, by deadline",
            "<b>61 of 151</b><span>pictures of flower not shown in time, in turn",
            "neptune: 0 of 1 looks found another picture",
            "neptune: 1 missed &lt;&amp;&gt;",
            "<td class=\"\">the others</td><td class=\"\">in turn</td><td class=\"\">180</td><td class=\"\">120</td>",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains("<i>"), "a stream's name became markup");
        for tag in ["section", "figure", "table", "tr", "svg", "div", "ul"] {
            let (begun, ended) =
                (text.matches(&format!("<{tag}")).count(), text.matches(&format!("</{tag}>")).count());
            assert!(begun == ended && ended > 0, "{tag}: {begun} begun, {ended} ended");
        }
        assert_eq!(text.matches("http://").count(), text.matches("http://www.w3.org/2000/svg").count());
    }
}
