//! Which files a family's programs may send by reference, and where each is told of.

use silk_stream::{Leased, places_of_file};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of a family as the control thread knows them.
#[derive(Debug, Default)]
pub struct Places {
    /// By their places.
    pub places: BTreeMap<u32, Place>,
    /// How often a place has been given.
    pub generation: u32,
}

/// A file that programs may send by reference.
#[derive(Debug)]
pub struct Place {
    /// The file.
    pub file: Arc<Leased>,
    /// Which use of the place it is.
    pub generation: u32,
    /// Nobody had sent it for a while when that was last looked at.
    pub idle: bool,
    /// The executors are letting go of it.
    pub leaving: bool,
}

impl Places {
    /// Bytes that they keep in memory.
    pub fn bytes(&self) -> u64 {
        self.places.values().map(|place| place.file.length()).sum()
    }

    /// A free place for a file; none where those in which it would be found are taken, by itself too.
    pub fn free_for(&self, (device, inode): (u64, u64)) -> Option<u32> {
        let mut free = None;
        for place in places_of_file(device, inode) {
            match self.places.get(&place) {
                Some(other) if other.file.identity() == (device, inode) => return None,
                Some(_) => {}
                None => free = Some(place),
            }
        }
        free
    }
}
