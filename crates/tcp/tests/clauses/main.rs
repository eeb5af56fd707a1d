//! What each RFC asks of TCP, which code does it and which test shows it: `docs/tcp.md`, made from the
//! tables in `crates/tcp/clauses` and from the citations in the comments of the sources. This fails
//! when a citation points nowhere, when an RFC that is cited has no table, when a clause has neither code nor a reason, and when the document
//! is not up to date. To write it anew: `SILK_BLESS=1 cargo test -p silk-tcp --test clauses`.

mod citation;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use citation::{Citation, Place};
use table::{Clause, Table};

const TABLES: [&str; 22] = [
    include_str!("../../clauses/rfc9293.txt"),
    include_str!("../../clauses/rfc6298.txt"),
    include_str!("../../clauses/rfc5681.txt"),
    include_str!("../../clauses/rfc7323.txt"),
    include_str!("../../clauses/rfc2018.txt"),
    include_str!("../../clauses/rfc5961.txt"),
    include_str!("../../clauses/rfc6528.txt"),
    include_str!("../../clauses/rfc5482.txt"),
    include_str!("../../clauses/rfc3168.txt"),
    include_str!("../../clauses/rfc8985.txt"),
    include_str!("../../clauses/rfc9438.txt"),
    include_str!("../../clauses/rfc9406.txt"),
    include_str!("../../clauses/rfc6675.txt"),
    include_str!("../../clauses/rfc6582.txt"),
    include_str!("../../clauses/rfc6191.txt"),
    include_str!("../../clauses/rfc1191.txt"),
    include_str!("../../clauses/rfc4821.txt"),
    include_str!("../../clauses/rfc8201.txt"),
    include_str!("../../clauses/rfc8899.txt"),
    include_str!("../../clauses/rfc6937.txt"),
    include_str!("../../clauses/rfc4987.txt"),
    include_str!("../../clauses/rfc1337.txt"),
];

/// RFCs that are cited and have no table, and why.
const WITHOUT_TABLE: [(&str, &[u32]); 5] = [
    (
        "IP, its groups, its neighbours and its errors: no TCP",
        &[
            791, 1071, 1112, 1812, 2236, 2464, 3376, 3810, 4007, 4191, 4291, 4429, 4443, 4861, 4862, 5095,
            5227, 6335, 6437, 6724, 6864, 6980, 7112, 7346, 7739, 8200, 8504, 9288,
        ],
    ),
    ("hosts as a whole; what it asks of TCP is in RFC 9293", &[1122]),
    ("video and its streams", &[1982, 2250, 3550, 3551, 5761, 6184]),
    (
        "cited for where something comes from: later ones have taken their place, or they ask nothing",
        &[1323, 2525, 3782, 5927],
    ),
    (
        "TCP, followed as the code says and tested, but not gone through clause by clause",
        &[2883, 3465, 3522, 3708, 4015, 5682, 6093, 6928, 9040],
    ),
];

const HEAD: &str = "\
# TCP, clause by clause

What the RFCs ask with MUST and SHOULD, in short words of our own, with the code that does it and the
test that shows it; or why it is not done. RFC 9293's clauses have the names of its appendix B, the
others those of their sections. Other RFCs that the stack follows are named in `crates/tcp/src/lib.rs`;
which of them are cited and have no table here, and why, says `crates/tcp/tests/clauses/main.rs`.

This file is made from `crates/tcp/clauses` and from citations in comments, such as
`RFC 9293 MUST-13` or `RFC 6298 §5.1`, by `SILK_BLESS=1 cargo test -p silk-tcp --test clauses`. The same
test fails when a citation points nowhere or to an RFC that has no table, or a clause has neither code
nor reason.
";

/// Where code and tests of these clauses are.
const FOLDERS: [&str; 6] = [
    "crates/tcp/src",
    "crates/tcp/tests/protocol",
    "crates/modules/src",
    "crates/modules/tests",
    "crates/wire/src",
    "bin",
];

#[test]
fn every_clause_has_its_code_and_its_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let citations = citation::in_folders(&root, &FOLDERS);
    let tables = TABLES.map(Table::read);
    let without: Vec<u32> = WITHOUT_TABLE.iter().flat_map(|(_, rfcs)| *rfcs).copied().collect();
    let mut faults = faults(&tables, &citations, &without);
    let idle = without.iter().filter(|rfc| citations.iter().all(|citation| citation.rfc != **rfc));
    faults.extend(idle.map(|rfc| format!("RFC {rfc} is said to need no table, and nobody cites it")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let document = document(&tables, &citations);
    let file = root.join("docs/tcp.md");
    if std::env::var_os("SILK_BLESS").is_some() {
        fs::write(&file, &document).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(document == written, "docs/tcp.md is not up to date: write it with SILK_BLESS=1");
}

/// The code, or the tests, that cite a clause; each once, in order.
fn places<'a>(citations: &'a [Citation], rfc: u32, clause: &Clause, test: bool) -> BTreeSet<&'a Place> {
    let cites = |c: &&Citation| c.rfc == rfc && c.clause == clause.name && c.place.test == test;
    citations.iter().filter(cites).map(|citation| &citation.place).collect()
}

/// What is amiss with these tables and citations; the RFCs of the last list have no table.
fn faults(tables: &[Table], citations: &[Citation], without: &[u32]) -> Vec<String> {
    let mut faults = Vec::new();
    for Citation { rfc, clause, place } in citations {
        let file = place.file.display();
        match tables.iter().find(|table| table.rfc == *rfc) {
            Some(table) if table.has(clause) => {}
            Some(_) => faults.push(format!("{file}: there is no RFC {rfc} {clause}")),
            None if without.contains(rfc) => {}
            None => faults.push(format!("{file}: there is no table of RFC {rfc} for {clause}")),
        }
    }
    for table in tables {
        for clause in &table.clauses {
            let [code, tests] =
                [false, true].map(|test| !places(citations, table.rfc, clause, test).is_empty());
            let fault = match (&clause.gap, &clause.untested, code, tests) {
                (None, None, true, true) | (None, Some(_), true, false) | (Some(_), None, _, false) => {
                    continue;
                }
                (Some(_), ..) => "is said to be a gap, and yet to be tested or not",
                (None, Some(_), true, true) => "is said to be untested, and yet a test cites it",
                (None, _, false, _) => "is cited by no code, and is not said to be a gap",
                (None, None, true, false) => "is cited by no test, and it is not said why",
            };
            faults.push(format!("RFC {} {} {fault}", table.rfc, clause.name));
        }
    }
    faults
}

fn document(tables: &[Table], citations: &[Citation]) -> String {
    let mut text = HEAD.to_owned();
    for table in tables {
        let _ = writeln!(text, "\n## RFC {}: {}\n", table.rfc, table.title);
        let _ = writeln!(text, "| clause | asks | code | test |\n|---|---|---|---|");
        for clause in &table.clauses {
            let [code, tests] = [false, true].map(|test| links(&places(citations, table.rfc, clause, test)));
            let note = clause.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
            let (code, tests) = match (&clause.gap, &clause.untested) {
                (Some(reason), _) => (format!("**gap** {code}").trim_end().to_owned(), reason.clone()),
                (None, Some(reason)) => (code, reason.clone()),
                (None, None) => (code, tests),
            };
            let _ = writeln!(text, "| {} | {}{note} | {code} | {tests} |", clause.name, clause.asks);
        }
    }
    text
}

fn links(places: &BTreeSet<&Place>) -> String {
    let link = |place: &&Place| {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem(&place.file).filter(|name| name != "mod" && name != "main");
        let name = name.or_else(|| stem(place.file.parent()?)).unwrap_or_default();
        let name = if place.item.is_empty() { name } else { format!("{name}::{}", place.item) };
        format!("[`{name}`](../{})", place.file.display())
    };
    places.iter().map(link).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_amiss_is_found() {
    let text = "RFC 7: T\nsections: 1\nMUST-1 a\nMUST-2 b\n  gap: c\nMUST-3 d\n  untested: e\nMUST-4 f\n";
    let source = "\
/// RFC 7 §1 MUST-9, RFC 7 MUST-3.
fn code() {}
mod tests {
    /// RFC 7 MUST-2, MUST-3 and MUST-4; RFC 8 §9; RFC 9 §1.
    fn test() {}
}
";
    let faults = faults(&[Table::read(text)], &citation::in_source(Path::new("a.rs"), source), &[9]);
    let expected = [
        "a.rs: there is no RFC 7 MUST-9",
        "a.rs: there is no table of RFC 8 for §9",
        "RFC 7 MUST-1 is cited by no code, and is not said to be a gap",
        "RFC 7 MUST-2 is said to be a gap, and yet to be tested or not",
        "RFC 7 MUST-3 is said to be untested, and yet a test cites it",
        "RFC 7 MUST-4 is cited by no code, and is not said to be a gap",
    ];
    assert_eq!(faults, expected);
}
