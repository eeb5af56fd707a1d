//! Golden files: every `faults/*.toml` is refused with exactly the messages beside it, and
//! every `good/*.toml` is accepted. With `SILK_BLESS=1` the messages are written instead.

use silk_config::{Config, Faults, Graph};
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn check(path: &Path) -> Option<Faults> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    if Graph::is_one(&text) { Graph::parse(&name, &text).err() } else { Config::parse(&name, &text).err() }
}

#[test]
fn every_fault_is_told_with_its_place_and_what_to_do() {
    for path in files("faults") {
        let told = check(&path).expect("a file with faults").to_string() + "\n";
        let golden = path.with_extension("stderr");
        if std::env::var_os("SILK_BLESS").is_some() {
            fs::write(&golden, &told).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(told, expected, "{}", path.display());
    }
}

#[test]
fn what_is_right_is_accepted() {
    for path in files("good") {
        assert_eq!(check(&path).map(|faults| faults.to_string()), None);
    }
}
