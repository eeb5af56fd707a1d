//! Where the pictures of several streams go: into a file or a folder for each, with its name. Nothing that is
//! there already is ever written over: names come again, and some are given from the network.

use super::ScreenError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The most places that streams of one name have.
const MOST: u32 = 9999;

/// Makes a file for the stream `name` beside `file`: of `out.y4m` it is `out-NAME.y4m`, and `out-NAME-2.y4m`
/// where that is there.
///
/// # Errors
/// Where none can be made.
pub(super) fn file_for(file: &Path, name: &str) -> Result<(PathBuf, File), ScreenError> {
    let place = |name: &str| {
        let mut called = OsString::from(file.file_stem().unwrap_or_default());
        called.push(format!("-{name}"));
        if let Some(extension) = file.extension() {
            called.push(".");
            called.push(extension);
        }
        file.with_file_name(called)
    };
    first_free(name, place, |place| File::create_new(place))
}

/// Makes a folder for the stream `name` in `folder`: `NAME`, or `NAME-2` where that is there.
///
/// # Errors
/// Where none can be made.
pub(super) fn folder_for(folder: &Path, name: &str) -> Result<PathBuf, ScreenError> {
    let (place, ()) = first_free(name, |name| folder.join(name), |place| fs::create_dir(place))?;
    Ok(place)
}

/// Makes the first that is not there of the places that the stream can have.
fn first_free<T>(
    name: &str,
    place: impl Fn(&str) -> PathBuf,
    make: impl Fn(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), ScreenError> {
    // Of a name with a folder in it no folder is made.
    let name = name.replace('/', "_");
    let numbered = (2..=MOST).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.clone()).chain(numbered) {
        let place = place(&name);
        match make(&place) {
            Ok(made) => return Ok((place, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ScreenError::Unwritable(place.display().to_string(), error)),
        }
    }
    Err(ScreenError::Unwritable(place(&name).display().to_string(), io::ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_whose_name_comes_again_has_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.v1.y4m");
        let made = |name| file_for(&file, name).unwrap().0.file_name().unwrap().to_owned();
        let names = ["one", "one", "two", "one", "one-2"].map(made);
        let expected = ["one", "one-2", "two", "one-3", "one-2-2"].map(|name| format!("out.v1-{name}.y4m"));
        assert_eq!(names.as_slice(), expected.map(OsString::from));
        assert_eq!(file_for(&folder.path().join("raw"), "one").unwrap().0, folder.path().join("raw-one"));
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, file) = (folder.path().join("inner"), folder.path().join("inner/out.y4m"));
        fs::create_dir(&inner).unwrap();
        for name in ["..", "../a", "/a/b", ".", ""] {
            assert_eq!(folder_for(&inner, name).unwrap().parent(), Some(&*inner), "{name}");
            assert_eq!(file_for(&file, name).unwrap().0.parent(), Some(&*inner), "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
