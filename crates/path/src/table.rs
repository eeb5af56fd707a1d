//! The path table: a slab in chunks, so that growing never moves a path and a million of them
//! cost no hiccup. An index is reused with the next generation.

use crate::classify::layout::INDEX_LISTEN;
use crate::path::{Path, PathId};
use alloc::boxed::Box;
use alloc::vec::Vec;

const CHUNK: usize = 64;

#[derive(Default)]
struct Entry {
    generation: u32,
    path: Option<Path>,
}

/// Paths by their ids.
#[derive(Default)]
pub(crate) struct Table {
    chunks: Vec<Box<[Entry; CHUNK]>>,
    // Free indices; the last is used next, while its entry is still in the cache.
    free: Vec<u32>,
    live: usize,
}

impl Table {
    /// A free id. It stays free until [`Self::insert`].
    pub fn vacant(&mut self) -> Option<PathId> {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            if first + CHUNK > INDEX_LISTEN as usize {
                return None;
            }
            self.chunks.push(Box::new(core::array::from_fn(|_| Entry::default())));
            self.free.extend((first as u32..(first + CHUNK) as u32).rev());
        }
        let index = *self.free.last()?;
        Some(PathId { index, generation: self.entry(index)?.generation })
    }

    /// Puts a path under the id [`Self::vacant`] has just given.
    pub fn insert(&mut self, path: Path) -> &mut Path {
        let index = path.id().index;
        debug_assert_eq!(self.free.last(), Some(&index));
        self.free.pop();
        self.live += 1;
        self.chunks[index as usize / CHUNK][index as usize % CHUNK].path.insert(path)
    }

    pub fn get(&self, id: PathId) -> Option<&Path> {
        let entry = self.entry(id.index)?;
        entry.path.as_ref().filter(|_| entry.generation == id.generation)
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        let entry = self.chunks.get_mut(id.index as usize / CHUNK)?.get_mut(id.index as usize % CHUNK)?;
        let current = entry.generation == id.generation;
        entry.path.as_mut().filter(|_| current)
    }

    /// The id of the live path with this index.
    pub fn at(&self, index: u32) -> Option<PathId> {
        self.entry(index)?.path.as_ref().map(Path::id)
    }

    /// Takes a path out; its id is never used again.
    pub fn remove(&mut self, id: PathId) -> Option<Path> {
        self.get(id)?;
        let entry = &mut self.chunks[id.index as usize / CHUNK][id.index as usize % CHUNK];
        entry.generation = entry.generation.wrapping_add(1);
        self.live -= 1;
        self.free.push(id.index);
        entry.path.take()
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).filter_map(|entry| entry.path.as_ref())
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }
}
