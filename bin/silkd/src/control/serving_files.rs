//! Files that programs send by reference: the control thread takes a lease on each, tells every executor,
//! and only then the programs; when somebody wants to change a file, the other way round. So no
//! program refers to what an executor does not know, and no executor sends what has changed.

use crate::between::command::Command;
use crate::between::names::FamilyIndex;
use crate::between::obeyed::Obeyed;
use crate::between::told::{FileKnown, Told};
use crate::control::server::{Server, refused};
use silk_control::Reply;
use silk_stream::{Leased, SharedFile};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use crate::control::files::Place;
/// Files of which is let go at one time without need, at most: every socket is looked at for each.
const SOME: u32 = 8;
/// Between two looks for files that are not there any more.
const SECOND: Duration = Duration::from_secs(1);
/// Between two looks for files that are not used any more.
const PERIOD: Duration = Duration::from_secs(60);

impl Server {
    /// A program asks that a file may be sent by reference from now on. What cannot be is copied.
    pub(crate) fn serve_file(&mut self, family: FamilyIndex, file: Option<&OwnedFd>) -> Reply {
        let no = |errno, why: String| refused(errno, format!("that file is copied: {why}"));
        let Some(file) = file else { return no(libc::EINVAL, "it did not come with the message".into()) };
        let kept: u64 = self.families.values().map(|family| family.files.bytes()).sum();
        let room = self.settings.config.memory.files.get().saturating_sub(kept);
        let Some(known) = self.families.get_mut(&family) else {
            return no(libc::ESRCH, "its program is gone".into());
        };
        let file = match Leased::take(file.as_fd(), room) {
            Ok(file) => Arc::new(file),
            Err(error) => return no(error.raw_os_error().unwrap_or(libc::EOPNOTSUPP), error.to_string()),
        };
        let Some(place) = known.files.free_for(file.identity()) else {
            return no(libc::ENOSPC, "its places are taken".into());
        };
        known.files.generation = known.files.generation.wrapping_add(1).max(1);
        let generation = known.files.generation;
        known
            .files
            .places
            .insert(place, Place { file: file.clone(), generation, idle: false, leaving: false });
        let is_there = FileKnown { family, place, generation, is_there: true };
        self.tell_of_file(is_there, Some((generation, file)));
        Reply::Done
    }

    fn tell_of_file(&self, known: FileKnown, file: Option<(u32, Arc<Leased>)>) {
        let FileKnown { family, place, .. } = known;
        let obeyed = Obeyed::telling(Told::FileKnown(known), &self.report_events, &self.event);
        self.tell_all(|| Command::File { family, place, file: file.clone(), obeyed: obeyed.clone() });
    }

    /// Every executor knows what is at a place, or that it is there no more.
    pub(crate) fn file_known(&mut self, known: FileKnown) {
        let Some(family) = self.families.get_mut(&known.family) else { return };
        let Some(place) = family.files.places.get(&known.place) else { return };
        // The place may have been given to another meanwhile.
        if place.generation != known.generation {
            return;
        }
        if !known.is_there {
            family.files.places.remove(&known.place);
        } else if !place.leaving
            && let Some(shared) = family.arena.file_place(known.place)
        {
            show(shared, &place.file, place.generation);
        }
    }

    /// Looks each second which files are still there, and each minute which were sent meanwhile.
    pub(crate) fn look_at_files_now_and_then(&mut self, now: Instant) {
        let [there, used] = &mut self.files_looked_at;
        if now < *there + SECOND {
            return;
        }
        *there = now;
        if now >= *used + PERIOD {
            *used = now;
            let files = self.families.values_mut().flat_map(|family| family.files.places.values_mut());
            files.for_each(|place| place.idle = !place.file.was_used());
        }
        self.let_go_of_files(SOME);
    }

    /// Lets go of files that somebody wants to change, and of at most `most` others that have been
    /// deleted or that nobody sends any more.
    pub(crate) fn let_go_of_files(&mut self, mut most: u32) {
        let mut leaving = Vec::new();
        for (family, known) in &mut self.families {
            for (place, file) in known.files.places.iter_mut().filter(|(_, file)| !file.leaving) {
                if file.file.is_left_alone() {
                    if most == 0 || (!file.idle && file.file.has_name()) {
                        continue;
                    }
                    most -= 1;
                }
                // No program refers to it from here on.
                if let Some(shared) = known.arena.file_place(*place) {
                    shared.generation.store(0, SeqCst);
                }
                file.leaving = true;
                let (family, place, generation) = (*family, *place, file.generation);
                leaving.push(FileKnown { family, place, generation, is_there: false });
            }
        }
        leaving.into_iter().for_each(|known| self.tell_of_file(known, None));
    }
}

/// Lets the programs of a family send a file by reference.
fn show(shared: &SharedFile, file: &Leased, generation: u32) {
    let (device, inode) = file.identity();
    shared.device.store(device, SeqCst);
    shared.inode.store(inode, SeqCst);
    shared.length.store(file.length(), SeqCst);
    shared.generation.store(generation, SeqCst);
}
