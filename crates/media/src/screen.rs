//! Where pictures are shown: a window, a file, or nothing but a count. A screen never waits; the
//! display's clock decides when the next picture is due.

use crate::{Picture, Retrace};

/// What shows the pictures of one path.
pub trait Screen: Send {
    /// Shows `picture` now, in place of the one before.
    fn show(&mut self, picture: &dyn Picture);

    /// Its vertical retraces, where it has some and they are known.
    fn retrace(&self) -> Option<Retrace> {
        None
    }
}
