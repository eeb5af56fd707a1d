//! A file's text, read with a limit: configuration comes from outside like everything else.

use crate::fault::plain;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::{fmt, string};

/// The longest text that is read: 64 KiB. What is wrong with it can then be told in a time
/// and a length that people have.
pub const LONGEST: usize = 64 << 10;

/// A text and what it is called in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name as it was given.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Why a file's text could not be had.
#[derive(Debug)]
pub enum Unreadable {
    /// The file cannot be opened or read.
    Io(String, io::Error),
    /// It is longer than so many bytes.
    TooLong(String, usize),
    /// It is not UTF-8.
    NotText(String, string::FromUtf8Error),
    /// The configuration of this name names it, as what.
    Named(String, &'static str, Box<Self>),
}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Unreadable`] names the file and says why.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        Self::read_up_to(path, LONGEST)
    }

    /// Reads a file of at most `longest` bytes.
    pub(crate) fn read_up_to(path: &Path, longest: usize) -> Result<Self, Unreadable> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(longest as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| Unreadable::Io(name.clone(), error))?;
        if bytes.len() > longest {
            return Err(Unreadable::TooLong(name, longest));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => Err(Unreadable::NotText(name, error)),
        }
    }
}

impl Unreadable {
    /// Whether what is in the file is at fault: it was read, and is nothing that a configuration could be. Who tries again
    /// finds it so again.
    pub fn is_of_contents(&self) -> bool {
        match self {
            Self::Io(..) => false,
            Self::TooLong(..) | Self::NotText(..) => true,
            Self::Named(_, _, why) => why.is_of_contents(),
        }
    }

    /// The same of a file that this configuration names as its graph: who mends it has to know where its name stands.
    #[must_use]
    pub fn graph_of(self, configuration: &str) -> Self {
        self.named_by(configuration, "as its graph")
    }

    pub(crate) fn named_by(self, configuration: &str, what: &'static str) -> Self {
        Self::Named(configuration.to_owned(), what, Box::new(self))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(name, error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "there is no file `{}`", plain(name))
            }
            Self::Io(name, error) => write!(f, "`{}` cannot be read: {error}", plain(name)),
            Self::TooLong(name, longest) => {
                write!(f, "`{}` is longer than {longest} bytes, which no such file is", plain(name))
            }
            Self::NotText(name, error) => {
                let at = error.utf8_error().valid_up_to();
                write!(f, "`{}` is not text: byte {at} is not UTF-8", plain(name))
            }
            Self::Named(configuration, what, why) => {
                write!(f, "{why}; `{}` names it {what}", plain(configuration))
            }
        }
    }
}

impl std::error::Error for Unreadable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_configuration_gives_commands_no_terminal() {
        let why = Source::read(Path::new("/nonexistent/\x1b[2J")).unwrap_err().graph_of("silk\x07.toml");
        let told = "there is no file `/nonexistent/\u{fffd}[2J`; `silk\u{fffd}.toml` names it as its graph";
        assert_eq!(why.to_string(), told);
    }
}
