//! Where the results of an experiment go. That they can is found out before anything is measured, for afterwards an hour of
//! measuring would be lost; and what was measured is printed before anything else can go wrong.

use super::Failure;
use silk_testkit::writable;
use std::fs;
use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

/// Where the tables end in a document.
const END: &str = "<!-- /figures -->\n";

/// Looks whether `files` can be written, and whether `documents` can and have a place, between `mark` and the end's, for tables.
pub fn check<'a>(
    files: impl IntoIterator<Item = &'a PathBuf>,
    documents: &[PathBuf],
    mark: &'static str,
) -> Result<(), Failure> {
    let writable = |file: &PathBuf| writable::check(file).map_err(Failure::file(file));
    files.into_iter().try_for_each(writable)?;
    for file in documents {
        let text = fs::read_to_string(file).map_err(Failure::file(file))?;
        if !text.split_once(mark).is_some_and(|(_, rest)| rest.contains(END)) {
            return Err(Failure::Unmarked { file: file.clone(), mark: mark.trim_end() });
        }
        writable(file)?;
    }
    Ok(())
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
