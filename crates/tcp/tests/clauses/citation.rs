//! Citations: `RFC 9293 MUST-13, SHLD-4` or `RFC 6298 §5.1` in any comment of the sources. Each belongs
//! to what the comment stands before; inside a function, to that function; at the head of a file, to
//! the file.

use std::fs;
use std::path::{Path, PathBuf};

/// One clause or section, cited at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    pub rfc: u32,
    /// `MUST-13`, `SHLD-4` or `§5.1`.
    pub clause: String,
    pub place: Place,
}

/// Where something is cited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From the root of the workspace.
    pub file: PathBuf,
    /// The function, type or constant; empty for the file itself.
    pub item: String,
    pub test: bool,
}

/// All citations in the Rust sources below these folders of the workspace.
pub fn in_folders(root: &Path, folders: &[&str]) -> Vec<Citation> {
    let mut files = Vec::new();
    folders.iter().for_each(|folder| find(&root.join(folder), &mut files));
    files.sort();
    let cited = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        in_source(file.strip_prefix(root).expect("below the root"), &text)
    };
    files.iter().flat_map(cited).collect()
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The citations of one file.
pub fn in_source(file: &Path, text: &str) -> Vec<Citation> {
    let tests_only = file.iter().any(|part| part == "tests")
        || file.file_stem().is_some_and(|stem| stem == "tests" || stem.to_string_lossy().ends_with("_tests"));
    let mut citations = Vec::new();
    let mut comment = Comment::default();
    let (mut item, mut test) = (String::new(), tests_only);
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(words) = line.strip_prefix("//") {
            comment.head |= words.starts_with('!');
            comment.words += words.trim_start_matches(['/', '!']);
            continue;
        }
        let (code, trailing) = line.split_once(" // ").unwrap_or((line, ""));
        if code.starts_with("#[") {
            continue;
        }
        test |= code.starts_with("mod tests");
        if let Some(name) = item_name(code) {
            item = name.to_owned();
        }
        let trailing = Comment { words: trailing.to_owned(), head: false };
        for Comment { words, head } in [std::mem::take(&mut comment), trailing] {
            let item = if head { String::new() } else { item.clone() };
            let place = Place { file: file.to_owned(), item, test };
            let here = cited(&words).into_iter();
            citations.extend(here.map(|(rfc, clause)| Citation { rfc, clause, place: place.clone() }));
        }
    }
    citations
}

/// Lines of comment that belong together.
#[derive(Default)]
struct Comment {
    words: String,
    /// It is the head of a file.
    head: bool,
}

/// The name of the item that a line of code begins.
fn item_name(code: &str) -> Option<&str> {
    const QUALIFIERS: [&str; 6] = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"];
    const KINDS: [&str; 5] = ["fn", "struct", "enum", "trait", "type"];
    let mut words = code.split(' ').skip_while(|word| QUALIFIERS.contains(word)).peekable();
    let constant =
        || code.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("const ");
    let rest = match words.next() {
        Some(kind) if KINDS.contains(&kind) => words.next()?,
        _ => constant()?.split(' ').next()?,
    };
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// What a comment cites.
fn cited(comment: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for after in comment.split("RFC ").skip(1) {
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let Ok(rfc) = digits.parse() else { continue };
        let mut rest = after[digits.len()..].trim_start();
        while let Some((clause, behind)) = clause(rest) {
            found.push((rfc, clause.to_owned()));
            rest = behind.trim_start_matches([',', ' ']);
            rest = rest.strip_prefix("and ").unwrap_or(rest);
        }
    }
    found
}

/// The clause or section that a text begins with, and what is behind it.
fn clause(text: &str) -> Option<(&str, &str)> {
    let number = |from: usize| {
        let end = text[from..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len() - from);
        let number = text[from..from + end].trim_end_matches('.');
        (!number.is_empty()).then(|| text.split_at(from + number.len()))
    };
    let prefix = ["MUST-", "SHLD-", "§"].into_iter().find(|prefix| text.starts_with(prefix))?;
    number(prefix.len())
}

#[test]
fn citations_belong_to_what_they_stand_before() {
    let source = "\
//! A file (RFC 1 §2.1).

/// Does it: RFC 9293 MUST-13, SHLD-4 and MUST-5; not so RFC
/// 6298 §5.1, §5.2.
#[inline]
pub(crate) const fn one(now: u8) {
    let x = 1; // RFC 5681 §3.
}

#[cfg(test)]
mod tests {
    // RFC 9293 MUST-13
    #[test]
    fn two() {}
}
";
    let found = in_source(Path::new("crates/a/src/b.rs"), source);
    let found: Vec<_> = found.iter().map(|c| (c.rfc, &*c.clause, &*c.place.item, c.place.test)).collect();
    let expected = [
        (1, "§2.1", "", false),
        (9293, "MUST-13", "one", false),
        (9293, "SHLD-4", "one", false),
        (9293, "MUST-5", "one", false),
        (6298, "§5.1", "one", false),
        (6298, "§5.2", "one", false),
        (5681, "§3", "one", false),
        (9293, "MUST-13", "two", true),
    ];
    assert_eq!(found, expected);
}
