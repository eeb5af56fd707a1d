//! What paths and modules are named by.

use core::fmt;

/// A module's place in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u8);

/// A path's name: an index that the classifier can carry, and a generation so that a name is
/// never taken for its successor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId {
    /// Below 2^24 - 1.
    pub index: u32,
    /// Grows with each path that had the index.
    pub generation: u32,
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
