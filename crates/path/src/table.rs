//! The path table: a slab in chunks, so that growing never moves a path and a million of them
//! cost no hiccup. An index is reused with the next generation.

use crate::classify::layout::INDEX_LISTEN;
use crate::id::PathId;
use crate::path::Path;
use alloc::boxed::Box;
use alloc::vec::Vec;

const CHUNK: usize = 64;

/// Whether the path in this place is the one of that id.
fn is(path: &Path, id: PathId) -> bool {
    path.state.live && path.state.id.generation == id.generation
}

/// Paths by their ids.
#[derive(Default)]
pub(crate) struct Table {
    // Places for CHUNK paths each. A path is made and ended in its place: moving one costs more than
    // the rest of what the table does. Where one has ended, it has its successor's generation already.
    chunks: Vec<Box<[Path]>>,
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
            let chunk: Box<[Path]> = (0..CHUNK).map(|_| Path::vacant()).collect();
            self.chunks.push(chunk);
            self.free.extend((first as u32..(first + CHUNK) as u32).rev());
        }
        let index = *self.free.last()?;
        Some(PathId { index, generation: self.place(index)?.state.id.generation })
    }

    /// The place of the id that [`Self::vacant`] has just given; it is live from now on and the
    /// caller renews what is in it.
    pub fn occupy(&mut self) -> Option<&mut Path> {
        let index = self.free.pop()?;
        self.live += 1;
        self.place_mut(index)
    }

    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.place(id.index).filter(|path| is(path, id))
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.place_mut(id.index).filter(|path| is(path, id))
    }

    /// The id of the live path with this index.
    pub fn at(&self, index: u32) -> Option<PathId> {
        self.place(index).filter(|path| path.state.live).map(Path::id)
    }

    /// Frees the place of a path that has ended; its id is never used again.
    pub fn vacate(&mut self, id: PathId) {
        if self.get(id).is_none() {
            return;
        }
        self.live -= 1;
        self.free.push(id.index);
        if let Some(path) = self.place_mut(id.index) {
            path.state.live = false;
            path.state.id.generation = id.generation.wrapping_add(1);
        }
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.iter_from(0)
    }

    /// Those from this index on, in the order of their indices.
    pub fn iter_from(&self, index: u32) -> impl Iterator<Item = &Path> {
        let (chunk, within) = (index as usize / CHUNK, index as usize % CHUNK);
        let chunks = self.chunks.get(chunk..).unwrap_or_default();
        chunks.iter().flat_map(|chunk| chunk.iter()).skip(within).filter(|path| path.state.live)
    }

    fn place(&self, index: u32) -> Option<&Path> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }

    fn place_mut(&mut self, index: u32) -> Option<&mut Path> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }
}
