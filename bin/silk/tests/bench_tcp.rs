//! `silk bench tcp` as people use it, without measuring anything: results of an earlier run are shown, put
//! into a document and made a page; what is wrong with a command line is said.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two rounds of one row, and a measurement that failed.
const RESULTS: &str = r#"{
  "machine": {"cpu": "A CPU", "cpus": 2, "kernel": "6.18", "hypervisor": "yes", "memory_mib": 1, "busy_before": 0.02,
              "date": "2026-11-21T10:00:00+00:00", "apache": "", "haproxy": "", "ab": "", "silk": "0.1.0"},
  "measurements": [
    {"row": "send", "system": "linux", "of": "goodput", "round": 1, "value": 10.0, "unit": "Gb/s",
     "cpu": {"server": 0.5, "client": 1.0, "stolen": 0.0}},
    {"row": "send", "system": "silk", "of": "goodput", "round": 1, "value": 8.0, "unit": "Gb/s",
     "cpu": {"server": 0.9, "client": 1.0, "stolen": 0.0}},
    {"row": "send", "system": "linux", "of": "goodput", "round": 2, "value": 10.0, "unit": "Gb/s",
     "cpu": {"server": 0.5, "client": 1.0, "stolen": 0.0}},
    {"row": "send", "system": "silk", "of": "goodput", "round": 2, "value": 9.0, "unit": "Gb/s",
     "cpu": {"server": 0.7, "client": 1.0, "stolen": 0.0}}
  ],
  "comparisons": []
}"#;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_silk")).args(["bench", "tcp"]).args(arguments).output().unwrap()
}

fn said(output: &Output) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A folder with these results, and the file's name.
fn kept(results: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tcp.json");
    std::fs::write(&file, results).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn an_earlier_run_is_shown_in_a_table_a_document_and_a_page() {
    let (folder, results) = kept(RESULTS);
    let [document, page] = ["doc.md", "page.html"].map(|name| folder.path().join(name));
    std::fs::write(&document, "# T\n<!-- figures: silk bench tcp -->\nold\n<!-- /figures -->\nEnd.\n")
        .unwrap();
    let [into, html] = [&document, &page].map(|file| file.to_str().unwrap());
    let output = bench(&["--show", &results, "--into", into, "--html", html]);
    let (status, table, errors) = said(&output);
    assert_eq!((status, errors), (0, ""));
    assert!(table.contains("silk       8.50 (8.00–9.00) Gb/s          80 %         100 %"), "{table}");
    assert!(table.contains("≥ 0.9         ≥ 1.2  0.85 (0.80–0.90)  missed"), "{table}");
    let expected = "# T\n<!-- figures: silk bench tcp -->\nMeasured on 2 × A CPU, Linux 6.18, on 2026-11-21. The middle \
                    of 2 rounds (from the least to the greatest); other programs kept a CPU 2 % busy when it began.\n\n";
    assert!(read(&document).starts_with(expected), "{}", read(&document));
    assert!(read(&document).contains("| ≥ 0.9 | ≥ 1.2 | 0.85 (0.80–0.90) | missed |\n"));
    assert!(read(&document).ends_with("|\n<!-- /figures -->\nEnd.\n") && !read(&document).contains("old"));
    assert!(read(&page).contains("<td class=\"missed\">0.85 (0.80–0.90)</td>"), "{}", read(&page));
}

#[test]
fn a_document_that_finds_no_room_stays_as_it_was() {
    let (folder, results) = kept(RESULTS);
    let document = folder.path().join("doc.md");
    let before = "# T\n<!-- figures: silk bench tcp -->\nold\n<!-- /figures -->\nEnd.\n";
    std::fs::write(&document, before).unwrap();
    // Half a KB is all the room there is for a file.
    let script = r#"ulimit -f 1; trap "" XFSZ; exec "$0" bench tcp --show "$1" --into "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_silk"), &results]).arg(&document);
    let output = command.output().unwrap();
    let (status, _, errors) = said(&output);
    assert!(status == 1 && errors.contains("doc.md: File too large"), "{errors}");
    assert_eq!(read(&document), before);
}

#[test]
fn what_could_not_be_measured_is_an_error() {
    let why = "round 1, one flow, sending, silk: it ended";
    let (folder, results) = kept(
        &RESULTS.replace("\"comparisons\": []", &format!("\"comparisons\": [], \"incomplete\": [\"{why}\"]")),
    );
    let document = folder.path().join("doc.md");
    std::fs::write(&document, "<!-- figures: silk bench tcp -->\n<!-- /figures -->\n").unwrap();
    let output = bench(&["--show", &results, "--into", document.to_str().unwrap()]);
    let (status, _, errors) = said(&output);
    assert_eq!((status, errors), (1, format!("silk: not everything was measured:\n{why}\n").as_str()));
    let told = format!("|\n\nWhat could not be measured:\n\n* {why}\n<!-- /figures -->\n");
    assert!(read(&document).ends_with(&told), "{}", read(&document));
}

#[test]
fn what_is_wrong_with_a_command_line_or_a_file_is_said() {
    for (arguments, why) in [
        (&["--rows", "z"][..], "invalid value 'z' for '--rows <ROWS>'"),
        (&["--rounds", "0"], "invalid value '0' for '--rounds <ROUNDS>'"),
        (&["--show", "a", "--json", "b"], "'--show <FILE>' cannot be used with '--json <FILE>'"),
    ] {
        let output = bench(arguments);
        let (status, _, errors) = said(&output);
        assert_eq!(status, 2);
        assert!(errors.contains(why), "{errors}");
    }
    let (folder, results) = kept(RESULTS);
    let document = folder.path().join("doc.md");
    std::fs::write(&document, "# Title\n").unwrap();
    let output = bench(&["--show", &results, "--into", document.to_str().unwrap()]);
    let (status, _, errors) = said(&output);
    assert!(status == 1 && errors.contains("put `<!-- figures: silk bench tcp -->` and"), "{errors}");
    assert_eq!(read(&document), "# Title\n");
}
