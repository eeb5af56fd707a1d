//! The kinds of modules a graph can have: those of `silk-modules` and of video, with no
//! surroundings and no libraries, since nothing is made of them here.

use silk_media::{Coding, DecodeError, Decoder, Decoders, Library, Screen, Screens};
use silk_modules::{Setup, catalogue as modules};
use silk_path::classify::Tables;
use silk_path::{Attrs, Catalogue, PathId};

/// The catalogue to check graphs against.
pub fn catalogue() -> impl Catalogue {
    silk_media::catalogue(of_the_daemon(), Nothing)
}

/// The same for those that the daemon builds, which has nothing of video.
pub fn of_the_daemon() -> impl Catalogue {
    modules(Setup::new(Tables::with_room(1, 0)))
}

/// No decoders and no screens: who only checks needs none.
struct Nothing;

impl Library for Nothing {
    fn decoders(&self) -> Box<dyn Decoders> {
        Box::new(Self)
    }

    fn screens(&self) -> Box<dyn Screens> {
        Box::new(Self)
    }
}

impl Decoders for Nothing {
    fn open(&mut self, _: Coding) -> Result<Box<dyn Decoder>, DecodeError> {
        Err(DecodeError::Unsupported)
    }
}

impl Screens for Nothing {
    fn open(&mut self, _: PathId, _: &Attrs) -> Option<Box<dyn Screen>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silk_config::{Graph, Source};
    use std::path::Path;

    #[test]
    fn the_graphs_that_silk_comes_with_are_right() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs");
        let mut checked = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let source = Source::read(&entry.unwrap().path()).unwrap();
            Graph::check(&source.name, &source.text, &catalogue())
                .unwrap_or_else(|faults| panic!("{faults}"));
            checked += 1;
        }
        assert!(checked >= 3);
    }
}
