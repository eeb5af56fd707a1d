//! The manual page of `silkd`, which it prints itself.

use std::fs::File;
use std::process::Command;

#[test]
fn the_page_says_what_it_takes_what_it_hears_and_how_it_ends() {
    let output = Command::new(env!("CARGO_BIN_EXE_silkd")).arg("--man").output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{page}");
    for what in [".TH silkd 8", "\\-\\-config", "/etc/silk/silk.toml", "SIGHUP", "Exit status", "silk(1)"] {
        assert!(page.contains(what), "{what}: {page}");
    }
    assert!(page.contains("\\-\\-log") && page.contains("somebody is not served"), "{page}");
    assert!(!page.contains("heir"), "{page}");
}

#[test]
fn a_page_that_cannot_be_written_is_no_success() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_silkd")).arg("--man").stdout(full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.starts_with("silkd: could not write the page"), "{said}");
}
