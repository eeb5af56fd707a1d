//! `silk bench paths` as people use it: what it writes can be read back and answers every question, and
//! a command line that is wrong is told so. No time is asserted.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_silk")).args(["bench", "paths"]).args(arguments).output().unwrap()
}

fn said(output: &Output) -> (i32, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Every question, as the rows name it.
fn questions() -> Vec<String> {
    let mut all = [
        "create, TCP path (its SYN is sent)",
        "destroy, TCP path",
        "handshake accepted, create + destroy, TCP path",
        "create, UDP path",
        "destroy, UDP path",
        "packet up a TCP path, measure",
        "packet up a UDP path, measure",
        "headers of a TCP segment built",
        "64 bytes through a shared ring, one thread",
        "TCP path: stage tcp",
        "UDP path: stage udp",
    ]
    .map(str::to_owned)
    .to_vec();
    for path in ["TCP path", "UDP path"] {
        for rules in ["no rules", "header template"] {
            all.push(format!("create + destroy, {path}, {rules}"));
            all.extend(["up", "down"].map(|way| format!("packet {way} a {path}, {rules}")));
        }
        let parts = ["with its stages, charged", "with its stages, charged, header template"];
        all.extend(parts.map(|part| format!("{path} {part}")));
        let parts = ["the path itself", "stage eth", "stage ip", "stage socket"];
        all.extend(parts.map(|part| format!("{path}: {part}")));
    }
    for count in ["10 paths", "10 thousand paths", "a million paths"] {
        for way in ["", ", in batches of 64", ", from the frame on"] {
            all.extend(["hit", "miss"].map(|end| format!("demux {end}{way}, {count}")));
        }
    }
    for size in ["1 KB", "64 KB"] {
        let works =
            ["written into a ring", "read out of a ring", "summed", "sent by reference", "sent as a copy"];
        all.extend(works.map(|work| format!("{size} {work}")));
    }
    all
}

#[test]
fn the_results_can_be_read_back_and_every_question_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (file, document) = (folder.path().join("paths.json"), folder.path().join("page.md"));
    let (json, page) = (file.to_str().unwrap(), document.to_str().unwrap());
    let output = bench(&["--rounds", "2", "--milliseconds", "1", "--json", json]);
    let (status, table, err) = said(&output);
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("round 1 of 2\nround 2 of 2\n"), "progress is not for standard output: {err}");

    let results: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(results["machine"]["cpus"], cpus, "the machine is described as it is, not as it was pinned");
    let rows = results["rows"].as_array().unwrap();
    let row = |what: &str| rows.iter().find(|row| row["what"] == what);
    for question in questions() {
        let row = row(&question).unwrap_or_else(|| panic!("no row `{question}`"));
        let figure = |name: &str| row[name].as_f64().unwrap();
        assert!(figure("operations") >= 1.0, "{row}");
        assert!(0.0 < figure("best") && figure("best") <= figure("median"), "{row}");
        assert!(figure("min") <= figure("median") && figure("median") <= figure("max"), "{row}");
        assert!(table.contains(&question), "{table}");
    }
    let goals = |what: &str| ["must", "after", "silk_2002"].map(|goal| row(what).unwrap()[goal].as_f64());
    assert_eq!(goals("create + destroy, TCP path, no rules"), [Some(3000.0), Some(500.0), Some(53_800.0)]);
    assert_eq!(goals("demux hit, a million paths"), [Some(100.0), Some(30.0), None]);
    assert_eq!(goals("demux hit, from the frame on, a million paths"), [None, None, Some(1800.0)]);

    std::fs::write(&document, "# T\n<!-- figures: silk bench paths -->\nold\n<!-- /figures -->\nEnd.\n")
        .unwrap();
    let shown = bench(&["--show", json, "--into", page]);
    assert_eq!(said(&shown), (0, table, ""), "what is shown is what was measured");
    let filled = std::fs::read_to_string(&document).unwrap();
    assert!(filled.starts_with("# T\n<!-- figures: silk bench paths -->\nMeasured on "), "{filled}");
    assert!(filled.contains("| demux hit, a million paths | **") && !filled.contains("old"), "{filled}");
    assert!(filled.ends_with("|\n<!-- /figures -->\nEnd.\n"), "{filled}");
}

#[test]
fn what_is_wrong_with_a_command_line_or_a_file_is_said() {
    for (arguments, why) in [
        (&["--rounds", "0"][..], "invalid value '0' for '--rounds <ROUNDS>': 0 is not in 1..=1000"),
        (&["--milliseconds", "x"], "invalid value 'x' for '--milliseconds <MS>'"),
        (&["--show", "a", "--json", "b"], "'--show <FILE>' cannot be used with '--json <FILE>'"),
        (&["--fast"], "unexpected argument '--fast' found"),
    ] {
        let output = bench(arguments);
        let (status, out, err) = said(&output);
        assert_eq!((status, out), (2, ""));
        assert!(err.contains(why), "{err}");
    }
    let missing = bench(&["--show", "/nonexistent/paths.json"]);
    assert_eq!(
        said(&missing),
        (1, "", "silk: /nonexistent/paths.json: No such file or directory (os error 2)\n")
    );
}

/// Measuring takes an hour in other experiments: it would have been for nothing.
#[test]
fn what_cannot_be_written_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("page.md");
    std::fs::write(&document, "# Title\n").unwrap();
    let document = document.to_str().unwrap();
    for (arguments, why) in [
        (["--json", "/nonexistent/paths.json"], "/nonexistent/paths.json: No such file or directory"),
        (["--json", "/"], "/: Is a directory"),
        (["--into", "/nonexistent/page.md"], "/nonexistent/page.md: No such file or directory"),
        (["--into", document], "has no place for this table"),
    ] {
        let output = bench(&arguments);
        let (status, out, err) = said(&output);
        assert_eq!((status, out), (1, ""));
        assert!(err.contains(why) && !err.contains("round"), "{err}");
    }
}

#[test]
fn a_file_without_results_is_told() {
    let output = bench(&["--show", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    let (status, out, err) = said(&output);
    assert_eq!((status, out), (1, ""));
    assert!(
        err.contains("Cargo.toml does not hold what `silk bench paths --json` writes: expected "),
        "{err}"
    );
}

#[test]
fn a_document_without_a_place_for_the_table_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("page.md");
    std::fs::write(&document, "# Title\n").unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results/paths-quick.json");
    let output = bench(&["--show", kept.to_str().unwrap(), "--into", document.to_str().unwrap()]);
    let (status, _, err) = said(&output);
    assert_eq!(status, 1);
    assert!(
        err.contains("has no place for this table: put `<!-- figures: silk bench paths -->` and"),
        "{err}"
    );
    assert_eq!(std::fs::read_to_string(&document).unwrap(), "# Title\n");
}
