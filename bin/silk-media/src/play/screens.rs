//! The libraries of a player whose streams come from the network: a decoder for each path, and a
//! screen that stays the player's, who ends it and hears what became of it.

use super::ScreenOptions;
use crate::avcodec::{AvDecoder, Limits};
use crate::screen::{ScreenError, Shown, Sink};
use silk_media::{Coding, DecodeError, Decoder, Decoders, Library, Picture, Retrace, Screen, Screens};
use silk_path::{Attrs, PathId};
use std::sync::{Arc, Mutex, PoisonError};

/// What opens the screens of a player's paths, and keeps them.
#[derive(Clone)]
pub struct Theatre(Arc<Mutex<Inner>>);

struct Inner {
    options: ScreenOptions,
    /// There may be several streams.
    several: bool,
    /// What decoders are to have before their streams.
    parameters: Vec<u8>,
    /// The title of the next screen.
    title: String,
    screens: Vec<Shared>,
    failed: Option<ScreenError>,
}

/// A screen that a path and the player share.
#[derive(Clone)]
struct Shared {
    path: PathId,
    sink: Arc<Mutex<Option<Box<dyn Sink>>>>,
}

impl Theatre {
    /// Screens as `options` say, of one stream or of several; decoders have `parameters` of their streams from the
    /// beginning.
    pub fn new(options: ScreenOptions, several: bool, parameters: Vec<u8>) -> Self {
        let (title, screens) = ("silk".to_owned(), Vec::new());
        Self(Arc::new(Mutex::new(Inner { options, several, parameters, title, screens, failed: None })))
    }

    /// The next path's screen has this title.
    pub fn entitle(&self, title: &str) {
        self.with(|inner| title.clone_into(&mut inner.title));
    }

    /// Why the last screen could not be opened.
    pub fn failure(&self) -> Option<ScreenError> {
        self.with(|inner| inner.failed.take())
    }

    /// The paths whose screens nobody looks at any more.
    pub fn closed(&self) -> Vec<PathId> {
        let closed = |shared: &&Shared| shared.with(|sink| sink.is_closed()).unwrap_or(false);
        self.with(|inner| inner.screens.iter().filter(closed).map(|shared| shared.path).collect())
    }

    /// Ends a path's screen. What it did, and what went wrong with it.
    pub fn end(&self, path: PathId) -> Option<Result<Shown, ScreenError>> {
        let shared = self.with(|inner| {
            let at = inner.screens.iter().position(|shared| shared.path == path)?;
            Some(inner.screens.swap_remove(at))
        })?;
        let sink = shared.sink.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(sink.end())
    }

    /// Ends the screens of paths that were refused: DISPLAY is the first to be asked, and has had its screen opened
    /// when a module below says no. Those of streams that are over are to be ended before.
    pub fn forget_refused(&self) {
        self.with(|inner| inner.discard(Shared::is_left));
    }

    // A thread that panicked while it held this left it whole: nothing in here can fail half-way.
    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    /// Ends the screens of paths that never were.
    fn discard(&mut self, which: impl Fn(&Shared) -> bool) {
        for shared in self.screens.extract_if(.., |shared| which(shared)) {
            if let Some(sink) = shared.sink.lock().unwrap_or_else(PoisonError::into_inner).take() {
                sink.discard();
            }
        }
    }

    fn open(&self) -> Result<Box<dyn Sink>, ScreenError> {
        // A file for raw pictures says a rate; over the network it is not known yet.
        let rate = (30, 1);
        match self.several {
            true => self.options.open_one_of_several(&self.title, rate),
            false => self.options.open(&self.title, rate),
        }
    }
}

impl Shared {
    fn with<R>(&self, work: impl FnOnce(&mut Box<dyn Sink>) -> R) -> Option<R> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// Whether the path has gone, whose half this was.
    fn is_left(&self) -> bool {
        Arc::strong_count(&self.sink) == 1
    }
}

impl Screen for Shared {
    fn show(&mut self, picture: &dyn Picture) {
        self.with(|sink| sink.show(picture));
    }

    fn retrace(&self) -> Option<Retrace> {
        self.with(|sink| sink.retrace()).flatten()
    }
}

impl Screens for Theatre {
    fn open(&mut self, path: PathId, _: &Attrs) -> Option<Box<dyn Screen>> {
        self.with(|inner| {
            // No two paths have one id, so what has it already was the screen of one that was refused.
            inner.discard(|shared| shared.path == path);
            match inner.open() {
                Ok(sink) => {
                    let shared = Shared { path, sink: Arc::new(Mutex::new(Some(sink))) };
                    inner.screens.push(shared.clone());
                    Some(Box::new(shared) as Box<dyn Screen>)
                }
                Err(error) => {
                    inner.failed = Some(error);
                    None
                }
            }
        })
    }
}

/// Makes the decoders of paths.
struct Prepared {
    parameters: Vec<u8>,
}

impl Decoders for Prepared {
    fn open(&mut self, coding: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        let mut decoder = AvDecoder::new(coding, Limits::default())?;
        if coding == Coding::H264 {
            decoder.prepare(&self.parameters);
        }
        Ok(Box::new(decoder))
    }

    fn smallest(&mut self) -> Option<Box<dyn Decoder>> {
        self.open(Coding::Mpeg).ok()
    }
}

impl Library for Theatre {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(Prepared { parameters: self.with(|inner| inner.parameters.clone()) })
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::still::Still;
    use std::path::Path;

    fn theatre() -> Theatre {
        Theatre::new(ScreenOptions { headless: true, ..ScreenOptions::default() }, true, Vec::new())
    }

    fn open(theatre: &Theatre, index: u32) -> Box<dyn Screen> {
        theatre.screens().open(PathId { index, generation: 0 }, &Attrs::new()).unwrap()
    }

    fn shown(theatre: &Theatre, index: u32) -> Option<u64> {
        theatre.end(PathId { index, generation: 0 }).map(|shown| shown.unwrap().pictures)
    }

    #[test]
    fn a_path_that_is_refused_leaves_no_screen_to_the_next_one_with_its_id() {
        let theatre = theatre();
        drop(open(&theatre, 0));
        let mut screen = open(&theatre, 0);
        screen.show(&Still::grey(4, 2, 1));
        assert_eq!((shown(&theatre, 0), shown(&theatre, 0)), (Some(1), None));
    }

    #[test]
    fn what_refused_paths_leave_is_forgotten_and_what_plays_is_not() {
        let theatre = theatre();
        let screens = [0, 1].map(|index| open(&theatre, index));
        (2..100).for_each(|index| drop(open(&theatre, index)));
        theatre.forget_refused();
        assert_eq!(theatre.with(|inner| inner.screens.len()), screens.len());
        assert_eq!((shown(&theatre, 1), shown(&theatre, 2)), (Some(0), None));
    }

    /// What is in a folder, sorted.
    fn files(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// Streams of these names play one after the other, the first two at once, with an order between that is refused.
    fn play(options: ScreenOptions, names: [&str; 3]) {
        let theatre = Theatre::new(options, true, Vec::new());
        let begin = |index, name| {
            theatre.entitle(name);
            let mut screen = open(&theatre, index);
            screen.show(&Still::grey(4, 2, 1));
            screen
        };
        let both = [begin(0, names[0]), begin(1, names[1])];
        theatre.entitle("refused");
        drop(open(&theatre, 2));
        drop(both);
        assert_eq!([0, 1].map(|index| shown(&theatre, index)), [Some(1); 2]);
        theatre.forget_refused();
        begin(3, names[2]);
        assert_eq!(shown(&theatre, 3), Some(1));
    }

    #[test]
    fn each_of_several_streams_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.y4m");
        play(ScreenOptions { y4m: Some(file), ..ScreenOptions::default() }, ["one", "two", "one"]);
        let written = ["out-one-2.y4m", "out-one.y4m", "out-two.y4m"];
        assert_eq!(files(folder.path()), written);
        for name in written {
            let bytes = std::fs::read(folder.path().join(name)).unwrap();
            assert!(
                bytes.starts_with(b"YUV4MPEG2 W4 H2 ")
                    && bytes.ends_with(&[1, 1, 1, 1, 1, 1, 1, 1, 128, 128, 128, 128])
            );
        }
    }

    #[test]
    fn each_of_several_streams_has_a_folder_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path().join("all");
        play(ScreenOptions { png: Some(all.clone()), ..ScreenOptions::default() }, ["one", "two", "one"]);
        assert_eq!(files(&all), ["one", "one-2", "two"]);
        files(&all).iter().for_each(|name| assert_eq!(files(&all.join(name)), ["000001.png"]));
    }
}
