//! Where pictures are shown: a window, a file, or nothing but a count. A screen never waits; the
//! display's clock decides when the next picture is due.

use crate::Picture;

/// What shows the pictures of one path.
pub trait Screen: Send {
    /// Shows `picture` now, in place of the one before.
    fn show(&mut self, picture: &dyn Picture);
}
