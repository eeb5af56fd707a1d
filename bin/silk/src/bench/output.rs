//! Where the results of an experiment go. That they can is found out before anything is measured, for afterwards an hour of
//! measuring would be lost; and what was measured is printed before anything else can go wrong.

use super::Failure;
use silk_testkit::writable;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::{Path, PathBuf};

/// Where the tables end in a document.
const END: &str = "<!-- /figures -->\n";

/// Looks whether `files` can be written, and whether `documents` can and have a place, between `mark` and the end's, for tables;
/// and whether each is another: of two results in one file only the second would be left.
pub fn check<'a>(
    files: impl IntoIterator<Item = &'a PathBuf>,
    documents: &'a [PathBuf],
    mark: &'static str,
) -> Result<(), Failure> {
    let mut places = BTreeSet::new();
    let mut check = |file: &PathBuf| {
        writable::check(file).map_err(Failure::file(file))?;
        let is_new = place(file).is_none_or(|place| places.insert(place));
        if is_new { Ok(()) } else { Err(Failure::Twice(file.clone())) }
    };
    files.into_iter().try_for_each(&mut check)?;
    for file in documents {
        let document = fs::read_to_string(file).map_err(Failure::file(file))?;
        filled(file, &document, mark, "")?;
        check(file)?;
    }
    Ok(())
}

/// Where a file is or will be, whatever it is called by. A device or a pipe may be written to twice.
fn place(file: &Path) -> Option<PathBuf> {
    if let Ok(there) = fs::metadata(file) {
        return there.is_file().then(|| fs::canonicalize(file).ok())?;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?.join(file.file_name()?))
}

/// A document with new tables between its marks.
fn filled(file: &Path, document: &str, mark: &'static str, tables: &str) -> Result<String, Failure> {
    let place = document.split_once(mark).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = place.ok_or(Failure::Unmarked { file: file.to_owned(), mark: mark.trim_end() })?;
    Ok(format!("{before}{mark}{tables}{END}{after}"))
}

/// Puts tables into documents, between `mark` and the end's. Everything else in them stays as it is.
pub fn insert(documents: &[PathBuf], mark: &'static str, tables: &str) -> Result<(), Failure> {
    for file in documents {
        let document = fs::read_to_string(file).map_err(Failure::file(file))?;
        write(file, &filled(file, &document, mark, tables)?)?;
    }
    Ok(())
}

/// Says something about an experiment to whoever watches. Who has closed standard error, or has no room for it, does not lose the results by
/// that.
pub fn say(what: &dyn Display) {
    let _ = writeln!(stderr(), "{what}");
}

/// Prints tables. A reader that has seen enough closes the pipe.
pub fn print(tables: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(tables.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(Failure::file("standard output")(why)),
        _ => Ok(()),
    }
}

/// Writes a file. Where that fails, on a full disk, what was there is put back: it had room.
pub fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let is_file = fs::metadata(file).is_ok_and(|found| found.is_file());
    let before = is_file.then(|| fs::read(file).ok()).flatten();
    fs::write(file, text).map_err(|why| {
        // The first failure is told, not this one's.
        let _ = before.map(|before| fs::write(file, before));
        Failure::file(file)(why)
    })
}

/// Writes results down for programs, and for `--show`.
pub fn write_json(file: &Path, results: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(results).map_err(|error| Failure::file(file)(error.into()))?;
    write(file, &(text + "\n"))
}

/// Reads the results of an earlier run of this experiment.
pub fn read_json<T: serde::de::DeserializeOwned>(
    file: &Path,
    experiment: &'static str,
) -> Result<T, Failure> {
    let text = fs::read_to_string(file).map_err(Failure::file(file))?;
    serde_json::from_str(&text).map_err(|why| Failure::NoResults { file: file.to_owned(), experiment, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- figures: of this -->\n";

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let filled = |document: &str| filled(Path::new("page"), document, BEGIN, "new\n").ok();
        let document = format!("# Title\n{BEGIN}old\n{END}The end.\n");
        let new = filled(&document).unwrap();
        assert_eq!(new, format!("# Title\n{BEGIN}new\n{END}The end.\n"));
        assert_eq!(filled(&new), Some(new));
        assert_eq!([filled("# Title\n"), filled(&format!("{END}{BEGIN}"))], [None, None]);
    }

    #[test]
    fn each_result_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let twice = |files: &[PathBuf], documents: &[PathBuf]| match check(files, documents, BEGIN) {
            Err(Failure::Twice(file)) => Some(file),
            other => other.map(|()| None).unwrap(),
        };
        assert_eq!(twice(&[at("a"), at("b")], &[]), None);
        assert_eq!(
            twice(&[at("a"), at("../").join(folder.path().file_name().unwrap()).join("a")], &[]).map(|_| ()),
            Some(())
        );
        fs::write(at("page"), format!("{BEGIN}{END}")).unwrap();
        std::os::unix::fs::symlink(at("page"), at("link")).unwrap();
        assert_eq!(twice(&[at("a")], &[at("page"), at("link")]), Some(at("link")));
        assert_eq!(twice(&["/dev/null".into(), "/dev/null".into()], &[]), None);
    }
}
