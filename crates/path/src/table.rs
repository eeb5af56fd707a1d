//! The path table: a slab in chunks, so that growing never moves a path and a million of them
//! cost no hiccup. An index is reused with the next generation.

use crate::classify::layout::INDEX_LISTEN;
use crate::path::{Path, PathId};
use alloc::boxed::Box;
use alloc::vec::Vec;

const CHUNK: usize = 64;

/// A place for a path. The path is made and ended in place: moving one costs more than the
/// rest of what the table does.
struct Entry {
    generation: u32,
    live: bool,
    path: Path,
}

impl Default for Entry {
    fn default() -> Self {
        Self { generation: 0, live: false, path: Path::vacant() }
    }
}

/// Paths by their ids.
#[derive(Default)]
pub(crate) struct Table {
    // Of CHUNK entries each.
    chunks: Vec<Box<[Entry]>>,
    // Free indices; the last is used next, while its entry is still in the cache.
    free: Vec<u32>,
    live: usize,
}

impl Table {
    /// A free id. It stays free until [`Self::occupy`].
    pub fn vacant(&mut self) -> Option<PathId> {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            if first + CHUNK > INDEX_LISTEN as usize {
                return None;
            }
            let chunk: Box<[Entry]> = (0..CHUNK).map(|_| Entry::default()).collect();
            self.chunks.push(chunk);
            self.free.extend((first as u32..(first + CHUNK) as u32).rev());
        }
        let index = *self.free.last()?;
        Some(PathId { index, generation: self.entry(index)?.generation })
    }

    /// The place of the id that [`Self::vacant`] has just given; it is live from now on and the
    /// caller renews what is in it.
    pub fn occupy(&mut self) -> Option<&mut Path> {
        let index = self.free.pop()?;
        self.live += 1;
        let entry = self.entry_mut(index)?;
        entry.live = true;
        Some(&mut entry.path)
    }

    pub fn get(&self, id: PathId) -> Option<&Path> {
        let entry = self.entry(id.index)?;
        (entry.live && entry.generation == id.generation).then_some(&entry.path)
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        let entry = self.entry_mut(id.index)?;
        (entry.live && entry.generation == id.generation).then_some(&mut entry.path)
    }

    /// The id of the live path with this index.
    pub fn at(&self, index: u32) -> Option<PathId> {
        let entry = self.entry(index)?;
        entry.live.then(|| entry.path.id())
    }

    /// Frees the place of a path that has ended; its id is never used again.
    pub fn vacate(&mut self, id: PathId) {
        if self.get(id).is_none() {
            return;
        }
        self.live -= 1;
        self.free.push(id.index);
        if let Some(entry) = self.entry_mut(id.index) {
            entry.live = false;
            entry.generation = entry.generation.wrapping_add(1);
        }
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).filter(|entry| entry.live).map(|entry| &entry.path)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }
}
