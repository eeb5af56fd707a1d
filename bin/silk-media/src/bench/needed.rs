//! The programs that rows need. They are looked for before anything is measured: a row that misses its own comes after
//! many minutes of others.

use super::RowName;
use super::flood;
use crate::trouble::Trouble;
use std::env;
use std::ffi::OsStr;

/// What hosts and their processes need.
const ALWAYS: [&str; 3] = ["ip", "setpriv", "taskset"];

/// What a row needs beside that. Peers are another matter: who has none compares with none.
fn of(row: RowName) -> &'static [&'static str] {
    match row {
        RowName::Deadlines => &["apache2", "ab", "ss"],
        RowName::Flood => &["chrt"],
        RowName::Rates | RowName::Third | RowName::Admission => &[],
    }
}

/// Looks for all that these rows need.
///
/// # Errors
/// Something is missing.
pub fn check(rows: &[RowName]) -> Result<(), Trouble> {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = missing(rows, &path);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Trouble::Program(format!(
            "not in PATH: {missing}. `make setup` installs what is needed"
        )));
    }
    if rows.contains(&RowName::Flood) { flood::silk().map(drop) } else { Ok(()) }
}

/// Those that are in none of these folders.
fn missing(rows: &[RowName], path: &OsStr) -> Vec<&'static str> {
    let is_there = |program: &str| env::split_paths(path).any(|folder| folder.join(program).is_file());
    let needed = ALWAYS.iter().chain(rows.iter().flat_map(|row| of(*row)));
    needed.copied().filter(|program| !is_there(program)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_row_misses_what_it_needs_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        for program in ["ip", "setpriv", "taskset", "ab"] {
            fs::write(folder.path().join(program), "").unwrap();
        }
        let path = env::join_paths(["/nonexistent".as_ref(), folder.path()]).unwrap();
        assert!(missing(&[RowName::Rates, RowName::Third, RowName::Admission], &path).is_empty());
        assert_eq!(missing(&[RowName::Deadlines, RowName::Flood], &path), ["apache2", "ss", "chrt"]);
        assert_eq!(missing(&[RowName::Rates], OsStr::new("")), ALWAYS);
    }
}
