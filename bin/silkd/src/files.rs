//! Files that programs send by reference: the control thread takes a lease on each, tells every executor,
//! and only then the programs; when somebody wants to change a file, the other way round. So no
//! program refers to what an executor does not know, and no executor sends what has changed.

use crate::command::{Command, Event, FamilyIndex};
use crate::engine::{Engine, end_in};
use crate::server::{Server, refused};
use silk_control::Reply;
use silk_path::PathId;
use silk_stream::mail::Sender;
use silk_stream::{FILES, Leased, SharedFile};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

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

/// The files of a family as the control thread knows them.
#[derive(Debug)]
pub struct Places {
    places: [Option<Place>; FILES as usize],
    generation: u32,
}

impl Default for Places {
    fn default() -> Self {
        Self { places: [const { None }; FILES as usize], generation: 0 }
    }
}

#[derive(Debug)]
struct Place {
    file: Arc<Leased>,
    generation: u32,
    /// The executors are letting go of it.
    leaving: bool,
}

impl Places {
    /// Bytes that they keep in memory.
    pub fn bytes(&self) -> u64 {
        self.places.iter().flatten().map(|place| place.file.length()).sum()
    }

    fn free(&self) -> Option<usize> {
        self.places.iter().position(Option::is_none)
    }

    fn has(&self, identity: (u64, u64)) -> bool {
        self.places.iter().flatten().any(|place| place.file.identity() == identity)
    }
}

/// What every executor knows of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKnown {
    family: FamilyIndex,
    place: u32,
    /// Which use of the place is meant.
    generation: u32,
    /// That its file is there; else that it is there no more.
    is_there: bool,
}

/// Tells the control thread that every order which holds it was obeyed.
#[derive(Debug)]
pub struct Obeyed {
    known: FileKnown,
    events: Sender<Event>,
    control: Arc<OwnedFd>,
}

impl Drop for Obeyed {
    fn drop(&mut self) {
        // The control thread may be gone at the end of the daemon.
        let _ = self.events.send(Event::FileKnown(self.known));
        silk_stream::wake::notify(self.control.as_fd());
    }
}

/// Between two looks for files that are not there any more.
const SECOND: Duration = Duration::from_secs(1);
/// Between two looks for files that are not used any more.
const PERIOD: Duration = Duration::from_secs(60);

impl Server {
    /// A program asks that a file may be sent by reference from now on. What cannot be is copied.
    pub(crate) fn serve_file(&mut self, family: FamilyIndex, file: Option<OwnedFd>) -> Reply {
        let no = |errno, why: String| refused(errno, format!("that file is copied: {why}"));
        let Some(file) = file else { return no(libc::EINVAL, "it did not come with the message".into()) };
        let kept: u64 = self.families.values().map(|family| family.files.bytes()).sum();
        let room = self.settings.config.memory.files.get().saturating_sub(kept);
        let Some(known) = self.families.get_mut(&family) else {
            return no(libc::ESRCH, "its program is gone".into());
        };
        let Some(place) = known.files.free() else {
            return no(libc::ENOSPC, format!("{FILES} files of this program are sent by reference"));
        };
        let file = match Leased::take(file.as_fd(), room) {
            Ok(file) => Arc::new(file),
            Err(error) => return no(error.raw_os_error().unwrap_or(libc::EOPNOTSUPP), error.to_string()),
        };
        if known.files.has(file.identity()) {
            return Reply::Done;
        }
        known.files.generation = known.files.generation.wrapping_add(1).max(1);
        let generation = known.files.generation;
        known.files.places[place] = Some(Place { file: file.clone(), generation, leaving: false });
        let is_there = FileKnown { family, place: place as u32, generation, is_there: true };
        self.tell_of_file(is_there, Some((generation, file)));
        Reply::Done
    }

    fn tell_of_file(&self, known: FileKnown, file: Option<(u32, Arc<Leased>)>) {
        let FileKnown { family, place, .. } = known;
        let obeyed = Obeyed { known, events: self.report_events.clone(), control: self.event.clone() };
        let obeyed = Arc::new(obeyed);
        self.tell_all(|| Command::File { family, place, file: file.clone(), obeyed: obeyed.clone() });
    }

    /// Every executor knows what is at a place, or that it is there no more.
    pub(crate) fn file_known(&mut self, known: FileKnown) {
        let Some(family) = self.families.get_mut(&known.family) else { return };
        let Some(place) = family.files.places.get_mut(known.place as usize) else { return };
        // The place may have been given to another meanwhile.
        let Some(meant) = place.as_mut().filter(|place| place.generation == known.generation) else { return };
        if !known.is_there {
            *place = None;
        } else if !meant.leaving
            && let Some(shared) = family.arena.file_place(known.place)
        {
            show(shared, &meant.file, meant.generation);
        }
    }

    /// Looks each second which files are still there, and each minute which are still used.
    pub(crate) fn look_at_files_now_and_then(&mut self, now: Instant) {
        let [there, used] = &mut self.files_looked_at;
        if now < *there + SECOND {
            return;
        }
        *there = now;
        let unused = now >= *used + PERIOD;
        if unused {
            *used = now;
        }
        self.let_go_of_files(unused);
    }

    /// Lets go of files that somebody wants to change or has deleted, and of those that were not sent
    /// since this was last asked for.
    pub(crate) fn let_go_of_files(&mut self, unused: bool) {
        let mut leaving = Vec::new();
        for (family, known) in &mut self.families {
            for (place, file) in (0..).zip(&mut known.files.places) {
                let Some(file) = file.as_mut().filter(|file| !file.leaving) else { continue };
                if file.file.is_wanted() && (!unused || file.file.was_used()) {
                    continue;
                }
                // No program refers to it from here on.
                if let Some(shared) = known.arena.file_place(place) {
                    shared.generation.store(0, SeqCst);
                }
                file.leaving = true;
                leaving.push(FileKnown {
                    family: *family,
                    place,
                    generation: file.generation,
                    is_there: false,
                });
            }
        }
        leaving.into_iter().for_each(|known| self.tell_of_file(known, None));
    }

    /// A family is gone, which may have closed connections that go on sending: nothing of those may be in
    /// files any more, for which nobody looks from here on.
    pub(crate) fn let_go_of_all_files(&self, family: FamilyIndex) {
        let Some(known) = self.families.get(&family) else { return };
        for (place, file) in (0..).zip(&known.files.places) {
            if let Some(file) = file {
                let known = FileKnown { family, place, generation: file.generation, is_there: false };
                self.tell_of_file(known, None);
            }
        }
    }
}

impl Engine {
    /// A file is at a place from now on, or none.
    pub(crate) fn set_file(&mut self, family: FamilyIndex, place: u32, file: Option<(u32, Arc<Leased>)>) {
        if file.is_none() {
            for name in self.sockets.of_family(family) {
                let Some(socket) = self.sockets.find(name) else { continue };
                // A socket whose path is gone keeps what it had, and with it the file.
                let end = match socket.path {
                    Some(path) => end_in(&mut self.core, path),
                    None => socket.end.as_deref_mut(),
                };
                if let (Some(end), Some(family)) = (end, self.families.get(&family)) {
                    end.keep_copy_of(place, &family.files);
                }
            }
        }
        if let Some(family) = self.families.get_mut(&family) {
            family.files.set(place, file);
        }
    }

    /// Looks how far the program of a path's socket has written. Whether there is anything new.
    pub(crate) fn look(&mut self, path: PathId) -> bool {
        let Some(end) = end_in(&mut self.core, path) else { return false };
        self.families.get(&end.name().family).is_some_and(|family| end.look(&family.files))
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
