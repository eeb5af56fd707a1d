//! The control thread's side and the domains' know nothing of each other, but what is between them.

use std::fs;
use std::path::{Path, PathBuf};

/// The files below a folder of the sources.
fn files(folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    inside.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Those of a side that name another.
fn that_name(side: &str, other: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(side);
    let name = format!("crate::{other}");
    let mut all = files(&folder);
    assert!(all.len() > 5, "{}", folder.display());
    all.retain(|file| fs::read_to_string(file).unwrap().contains(&name));
    all
}

#[test]
fn neither_side_names_the_other() {
    for (side, other) in [
        ("control", "domain"),
        ("domain", "control"),
        ("between", "control"),
        ("between", "domain"),
        ("threads", "control"),
        ("threads", "domain"),
    ] {
        assert_eq!(that_name(side, other), Vec::<PathBuf>::new(), "{side} names {other}");
    }
}

#[test]
fn a_name_would_be_found() {
    assert_ne!(that_name("control", "between"), Vec::<PathBuf>::new());
}
