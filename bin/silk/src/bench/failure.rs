//! Why an experiment could not be run, in a sentence that says whose fault it is and what to do.

use crate::trouble::Trouble;
use silk_testkit::netns::RigError;
use std::path::PathBuf;
use std::{fmt, io};

/// Why an experiment ended without its result.
#[derive(Debug)]
pub enum Failure {
    /// The hosts could not be built or a program on them not started.
    Rig(RigError),
    /// A file of the experiment could not be read or written.
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program the experiment needs is not installed.
    Missing(Vec<&'static str>),
    /// A system started but served nothing within its time.
    NotServing {
        /// Which system.
        system: &'static str,
        /// What its programs wrote.
        log: String,
    },
    /// A program of a system ended while it was measured.
    Ended {
        /// Which system.
        system: &'static str,
        /// What its programs wrote.
        log: String,
    },
    /// Requests failed, so what was measured is not what was asked for.
    Unanswered {
        /// In which cell.
        task: String,
        /// How many.
        failed: u64,
    },
    /// A phase did not end in its time.
    Hangs {
        /// Which one.
        what: String,
        /// Where the state of everything that took part is kept, or why it is not.
        kept: Result<PathBuf, String>,
    },
    /// An end of the TCP experiment failed.
    End(io::Error),
    /// A program of the experiment ended without what it was to say.
    Program {
        /// Which one, and at what.
        what: String,
        /// What it wrote.
        said: String,
    },
    /// Only root can do it.
    NotRoot,
    /// The load generator ended without a report that could be read.
    NoReport(String),
    /// Some of the experiment was measured; what was not, and why.
    Incomplete(Vec<String>),
    /// A file does not hold the results of an earlier run.
    NoResults {
        /// Which file.
        file: PathBuf,
        /// Of which experiment.
        experiment: &'static str,
        /// What is wrong with it.
        why: serde_json::Error,
    },
    /// A document has not the marks of a table.
    Unmarked {
        /// Which document.
        file: PathBuf,
        /// The first of the marks.
        mark: &'static str,
    },
    /// Two results are to go to one file.
    Twice(PathBuf),
    /// The person at the terminal, or the machine, asked to stop.
    Interrupted,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rig(error) => error.fmt(f),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Missing(programs) => {
                write!(f, "not installed: {}. `make setup` installs them", programs.join(", "))
            }
            Self::NotServing { system, log } => write!(f, "{system} does not serve. It said:\n{log}"),
            Self::Ended { system, log } => {
                write!(f, "a program of {system} ended while it was measured. They said:\n{log}")
            }
            Self::Unanswered { task, failed } => write!(f, "{task}: {failed} requests failed"),
            Self::Hangs { what, kept: Ok(folder) } => {
                write!(f, "{what} hangs. How everything was then is kept in {}", folder.display())
            }
            Self::Hangs { what, kept: Err(why) } => {
                write!(f, "{what} hangs. How everything was then could not be kept: {why}")
            }
            Self::End(error) => error.fmt(f),
            Self::Program { what, said } if said.trim().is_empty() => write!(
                f,
                "{what} failed, and said nothing: where other programs keep the CPUs busy it may not have come to run"
            ),
            Self::Program { what, said } => write!(f, "{what} failed. It said:\n{said}"),
            Self::NotRoot => {
                f.write_str("this experiment needs root: for network namespaces, XDP, and the choice of CPUs")
            }
            Self::NoReport(output) => write!(f, "ab ended without a report. It said:\n{output}"),
            Self::Incomplete(why) => write!(f, "not everything was measured:\n{}", why.join("\n")),
            Self::NoResults { file, experiment, why } => {
                write!(f, "{} does not hold what `{experiment} --json` writes: {why}", file.display())
            }
            Self::Unmarked { file, mark } => write!(
                f,
                "{} has no place for this table: put `{mark}` and `<!-- /figures -->` into it, each on a line \
                 of its own",
                file.display()
            ),
            Self::Twice(file) => {
                write!(f, "{} is to hold two results: give each a file of its own", file.display())
            }
            Self::Interrupted => f.write_str("interrupted; everything it had started is gone again"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<RigError> for Failure {
    fn from(error: RigError) -> Self {
        Self::Rig(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Bench(failure.to_string())
    }
}

impl Failure {
    /// Turns an error on a file into a failure that names the file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_named_even_where_nothing_can_be_kept_of_it() {
        let kept = Err("/results: No space left on device (os error 28)".to_owned());
        let told = Failure::Hangs { what: "wrk".into(), kept }.to_string();
        assert!(told.starts_with("wrk hangs. ") && told.ends_with("(os error 28)"), "{told}");
    }

    #[test]
    fn who_says_nothing_is_not_quoted() {
        let failed =
            |said: &str| Failure::Program { what: "the flood".into(), said: said.into() }.to_string();
        assert!(failed(" \n").contains("said nothing"), "{}", failed(" \n"));
        assert!(failed("no socket\n").ends_with("It said:\nno socket\n"), "{}", failed("no socket\n"));
    }
}
