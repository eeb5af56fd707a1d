//! Files that programs send by reference, as an executor has them: none that the control thread has not told of, and none any more before
//! what refers to it was copied.

use silk_stream::Leased;
use std::sync::Arc;

/// The files of a family as one executor knows them.
#[derive(Debug, Default)]
pub struct Files(Vec<Option<(u32, Arc<Leased>)>>);

impl Files {
    /// The file at a place, if it is this use of the place.
    pub fn find(&self, place: u32, generation: u32) -> Option<Arc<Leased>> {
        let (known, file) = self.0.get(place as usize)?.as_ref()?;
        (*known == generation).then(|| file.clone())
    }

    /// A file is at this place from now on, or none.
    pub fn set(&mut self, place: u32, file: Option<(u32, Arc<Leased>)>) {
        let place = place as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = file;
    }
}
