//! Where pictures go: nowhere (they are counted), a file of raw pictures, PNG files, a window. A
//! screen never waits for anybody and never fails while it plays: what went wrong is told at its end.

mod drawing;
mod headless;
mod places;
mod pngs;
mod rgb;
mod shared;
#[cfg(test)]
pub mod still;
mod tile;
mod window;
mod y4m;

pub use headless::{Headless, sum};
pub use pngs::Pngs;
pub use window::Window;
pub use y4m::Y4m;

use silk_media::Screen;
use std::{fmt, io};

/// What a screen did with the pictures it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Given to it.
    pub pictures: u64,
    /// Not shown: a newer one came before a window could, or a file cannot hold them.
    pub replaced: u64,
    /// The sum of what they held, where that was asked for.
    pub sum: Option<u64>,
}

/// Why a screen cannot show anything.
#[derive(Debug)]
pub enum ScreenError {
    /// A file or folder cannot be written: its name.
    Unwritable(String, io::Error),
    /// There is no window to be had.
    NoWindow(String),
}

impl fmt::Display for ScreenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable(name, why) => write!(f, "`{name}` cannot be written: {why}"),
            Self::NoWindow(why) => write!(f, "no window can be opened: {why} (without a screen: --headless)"),
        }
    }
}

impl std::error::Error for ScreenError {}

/// A screen that a player owns to its end.
pub trait Sink: Screen {
    /// Nobody looks any more: its window was closed, or its file cannot take more.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether pictures are to come at the pace of a display. Files take them as fast as may be.
    fn is_paced(&self) -> bool {
        true
    }

    /// Ends it.
    ///
    /// # Errors
    /// The first thing that went wrong since it began.
    fn end(self: Box<Self>) -> Result<Shown, ScreenError>;

    /// Ends one that nobody wants after all: a file or folder that was made for it goes, if nothing is in it.
    fn discard(self: Box<Self>) {}
}
