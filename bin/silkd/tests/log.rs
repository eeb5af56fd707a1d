//! What the daemon says, to whom, and how little it may be. A log that is full, or that nobody takes in any more,
//! costs what would stand in it and nothing else.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// A configuration that is wrong.
fn nonsense() -> tempfile::NamedTempFile {
    let mut config = tempfile::NamedTempFile::new().unwrap();
    config.write_all(b"nonsense\n").unwrap();
    config
}

/// A daemon with this configuration.
fn silkd(config: &Path) -> Command {
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_silkd"));
    daemon.arg("--config").arg(config);
    daemon
}

/// How the daemon ends whose configuration is wrong, with this for its log.
fn ends(log: Stdio) -> ExitStatus {
    silkd(nonsense().path()).stderr(log).status().unwrap()
}

#[test]
fn a_daemon_that_cannot_say_why_ends_as_one_that_can() {
    let (ours, theirs) = std::io::pipe().unwrap();
    drop(ours);
    for log in [Stdio::null(), File::create("/dev/full").unwrap().into(), theirs.into()] {
        assert_eq!(ends(log).code(), Some(2));
    }
}

#[test]
fn each_line_begins_with_its_level_where_the_journal_reads_it_and_nowhere_else() {
    let config = nonsense();
    // What the service manager has said is of the log, or of what has the inode so far beside it.
    let says = |beside: u64| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let about = log.as_file().metadata().unwrap();
        let mut daemon = silkd(config.path());
        daemon.env("JOURNAL_STREAM", format!("{}:{}", about.dev(), about.ino() + beside));
        assert_eq!(daemon.stderr(log.reopen().unwrap()).status().unwrap().code(), Some(2));
        fs::read_to_string(log.path()).unwrap()
    };
    let elsewhere = says(1);
    assert!(elsewhere.starts_with(&config.path().display().to_string()), "{elsewhere}");
    assert!(elsewhere.lines().count() > 1, "{elsewhere}");
    let marked: String = elsewhere.lines().map(|line| format!("<3>{line}\n")).collect();
    assert_eq!(says(0), marked);
}

/// What a daemon says on standard error that is to keep to this level, and reads a configuration again that needs
/// a restart.
fn says_of_a_reload(level: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [config, control] = ["silk.toml", "control.sock"].map(|name| folder.path().join(name));
    let write = |address: &str| {
        let device = format!("[device]\nkind = \"link\"\naddress = \"{address}\"\n");
        fs::write(&config, format!("{device}[control]\nsocket = \"{}\"\n", control.display())).unwrap();
    };
    write("10.0.0.1/24");
    let mut silkd = silkd(&config);
    silkd.args(["--log", level]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut silkd = silkd.spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(silkd.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    write("10.0.0.2/24");
    // It hears of them in this order: of signals that wait the lowest comes first.
    for signal in [Signal::HUP, Signal::TERM] {
        kill_process(Pid::from_child(&silkd), signal).unwrap();
    }
    let ended = silkd.wait_with_output().unwrap();
    assert!(ready.starts_with("silkd: ready on "), "{ready}");
    assert!(ended.status.success(), "{}", ended.status);
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn people_hear_of_nothing_below_the_level_that_they_have_named_but_that_it_is_ready() {
    let told = "silkd: needs a restart: ";
    let warnings = says_of_a_reload("warning");
    assert!(warnings.contains(told), "{warnings}");
    let errors = says_of_a_reload("error");
    assert!(!errors.contains(told), "{errors}");
}

#[test]
fn what_is_an_error_is_told_whatever_level_was_named_and_what_is_no_level_is_refused() {
    let config = nonsense();
    let says = |level: &str| {
        let ended = silkd(config.path()).args(["--log", level]).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(says("error").contains("; nothing was applied"));
    let refused = says("loud");
    assert!(refused.contains("error, warning, notice, info"), "{refused}");
}
