//! Programs that run to their end, and waiting for what comes true.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a program wrote and how it ended.
pub struct Said {
    pub bytes: Vec<u8>,
    pub errors: String,
    pub ok: bool,
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    Said { bytes: stdout, errors: String::from_utf8_lossy(&stderr).into_owned(), ok: status.success() }
}

/// Runs a command that must succeed, on paths if it was to be, and returns what it wrote.
pub fn bytes(command: &mut Command) -> Vec<u8> {
    let said = said(command);
    assert!(said.ok, "{command:?} failed: {}{}", String::from_utf8_lossy(&said.bytes), said.errors);
    assert!(!is_left_to_linux(&said.errors), "{command:?}: {}", said.errors);
    said.bytes
}

/// Whether a program's sockets were Linux's though they were to be on paths, by what it or `silk run` has said.
pub fn is_left_to_linux(errors: &str) -> bool {
    errors.contains("Linux serves its sockets")
}

/// Runs a command that must succeed, and returns what it wrote as text.
pub fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&bytes(command)).into_owned()
}

/// Whether something comes true in so much time.
pub fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
}

/// Programs of the project lie beside the command.
pub fn beside(program: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_silk")).with_file_name(program)
}

/// Says aloud that a test tests nothing, which is then over.
pub fn skipped<T>(why: &str) -> Option<T> {
    silk_testkit::skip(why);
    None
}
