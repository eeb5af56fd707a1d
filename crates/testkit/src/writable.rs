//! Whether a file can be written, asked before the work is done whose result it is to hold.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Opens it for writing, and leaves everything as it was.
///
/// # Errors
/// What the system says.
pub fn check(file: &Path) -> io::Result<()> {
    let there = match fs::metadata(file) {
        // Who reads from a pipe must not see it open and end.
        Ok(found) if !found.is_file() && !found.is_dir() => return Ok(()),
        found => found.is_ok(),
    };
    OpenOptions::new().append(true).create(true).open(file)?;
    // What was made, and not a link that leads to it.
    if there { Ok(()) } else { fs::remove_file(fs::canonicalize(file)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_left_as_it_was() {
        let folder = std::env::temp_dir().join(format!("silk-writable-{}", std::process::id()));
        let (there, missing) = (folder.join("there"), folder.join("missing"));
        fs::create_dir(&folder).unwrap();
        fs::write(&there, "text").unwrap();
        check(&there).unwrap();
        check(&missing).unwrap();
        check(Path::new("/dev/null")).unwrap();
        let (link, target) = (folder.join("link"), folder.join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check(&link).unwrap();
        assert!(link.is_symlink() && !target.exists());
        assert_eq!((fs::read_to_string(&there).unwrap().as_str(), missing.exists()), ("text", false));
        let nowhere =
            [&folder, &folder.join("no/folder"), &there.join("below")].map(|file| check(file).is_err());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(nowhere, [true; 3]);
    }
}
