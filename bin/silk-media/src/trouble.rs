//! What went wrong with a command, said on standard error, and the exit status: 2 where a file is at
//! fault, else 1.

use crate::demux::Unplayable;
use crate::screen::ScreenError;
use silk_media::DecodeError;
use silk_media::alf::NotVideo;
use silk_testkit::netns::RigError;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::{fmt, io};

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Trouble {
    /// A file that cannot be played.
    File(Unplayable),
    /// A screen that shows nothing.
    Screen(ScreenError),
    /// A file of which no picture can be decoded: its name.
    Undecodable(PathBuf, DecodeError),
    /// There is no such decoder.
    Decoder(DecodeError),
    /// A file that cannot be read: its name.
    Unreadable(String, io::Error),
    /// A file that holds no stream: its name.
    Stream(PathBuf, NotVideo),
    /// The command line does not say enough.
    Usage(String),
    /// What was to be printed or written was not.
    Unwritable(String, io::Error),
    /// A program that is needed and does not run, or not as it should.
    Program(String),
}

impl Trouble {
    /// Says it and gives the exit status.
    pub fn tell(&self) -> ExitCode {
        // Standard error that is closed cannot be told anything.
        let _ = writeln!(stderr(), "silk: {self}");
        if matches!(
            self,
            Self::File(_) | Self::Undecodable(..) | Self::Stream(..) | Self::Unreadable(..) | Self::Usage(_)
        ) {
            ExitCode::from(2)
        } else {
            ExitCode::FAILURE
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => why.fmt(f),
            Self::Screen(why) => why.fmt(f),
            Self::Undecodable(name, why) => {
                write!(f, "no picture of `{}` can be decoded: {why}", name.display())
            }
            Self::Decoder(why) => write!(f, "libavcodec {}: {why}", crate::avcodec::version()),
            Self::Unwritable(what, why) => write!(f, "`{what}` cannot be written: {why}"),
            Self::Unreadable(name, why) => write!(f, "`{name}` cannot be read: {why}"),
            Self::Stream(name, why) => write!(f, "`{}`: {why}", name.display()),
            Self::Usage(why) | Self::Program(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

impl Trouble {
    /// Hosts that could not be set up.
    pub fn rig(error: RigError) -> Self {
        Self::Program(error.to_string())
    }
}

impl From<Unplayable> for Trouble {
    fn from(why: Unplayable) -> Self {
        Self::File(why)
    }
}

impl From<ScreenError> for Trouble {
    fn from(why: ScreenError) -> Self {
        Self::Screen(why)
    }
}

impl From<DecodeError> for Trouble {
    fn from(why: DecodeError) -> Self {
        Self::Decoder(why)
    }
}
