//! What programs have sent by reference is copied before the file may change.

use crate::between::names::{FamilyIndex, SocketName};
use crate::domain::engine::{Engine, end_in};
use crate::domain::family_end::FamilyEnd;
use silk_path::PathId;
use silk_stream::Leased;
use std::sync::Arc;

impl Engine {
    /// A file is at a place from now on, or none.
    pub(crate) fn set_file(&mut self, family: FamilyIndex, place: u32, file: Option<(u32, Arc<Leased>)>) {
        if file.is_none() {
            self.keep_copies(family, Some(place));
        }
        if let Some(family) = self.families.get_mut(&family) {
            family.files.set(place, file);
        }
    }

    /// What a family's programs have written by reference, to the file at one place or to all, is copied
    /// into their rings.
    pub(crate) fn keep_copies(&mut self, family: FamilyIndex, place: Option<u32>) {
        self.sockets.of_family(family).into_iter().for_each(|name| self.keep_copy(name, place));
    }

    /// The same of one socket.
    pub(crate) fn keep_copy(&mut self, name: SocketName, place: Option<u32>) {
        let Some(FamilyEnd { files, .. }) = self.families.get(&name.family) else { return };
        let Some(socket) = self.sockets.find(name) else { return };
        // A socket whose path is gone keeps what it had, and with it the file.
        let end = match socket.path {
            Some(path) => end_in(&mut self.core, path),
            None => socket.end.as_deref_mut(),
        };
        if let Some(end) = end {
            end.keep_copy_of(place, files);
        }
    }

    /// Looks how far the program of a path's socket has written. Whether there is anything new.
    pub(crate) fn look(&mut self, path: PathId) -> bool {
        let Some(end) = end_in(&mut self.core, path) else { return false };
        self.families.get(&end.name().family).is_some_and(|family| end.look(&family.files))
    }
}
