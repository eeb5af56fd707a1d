//! A log that is full, or that nobody takes in any more, costs what would stand in it and nothing else.

use std::fs::File;
use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};

/// How the daemon ends whose configuration is wrong, with this for its log.
fn ends(log: Stdio) -> ExitStatus {
    let mut config = tempfile::NamedTempFile::new().unwrap();
    config.write_all(b"nonsense\n").unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_silkd"));
    daemon.arg("--config").arg(config.path()).stderr(log).status().unwrap()
}

#[test]
fn a_daemon_that_cannot_say_why_ends_as_one_that_can() {
    let (ours, theirs) = std::io::pipe().unwrap();
    drop(ours);
    for log in [Stdio::null(), File::create("/dev/full").unwrap().into(), theirs.into()] {
        assert_eq!(ends(log).code(), Some(2));
    }
}
