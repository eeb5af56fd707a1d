//! Settings of the kernel's that are borrowed: files of `/proc` and `/sys` that are written, and written again with
//! what they said before when nobody needs them any more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Settings that were changed; they are as they were when this goes. Whoever is killed leaves them changed.
#[derive(Debug, Default)]
pub struct Settings {
    // The files, and what they said.
    before: Vec<(PathBuf, String)>,
}

impl Settings {
    /// Changes one more.
    ///
    /// # Errors
    /// It cannot be read or written; it has not been changed then.
    pub fn set(&mut self, file: &Path, value: &str) -> io::Result<()> {
        let was = fs::read_to_string(file)?;
        fs::write(file, value)?;
        self.before.push((file.to_owned(), was));
        Ok(())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // The last first: one that was changed twice is as it was before both.
        for (file, was) in self.before.iter().rev() {
            // One that is gone went with what it was a setting of.
            let _ = fs::write(file, was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_put_back_and_what_is_not_there_changes_nothing() {
        let file = std::env::temp_dir().join(format!("silk-settings-{}", std::process::id()));
        fs::write(&file, "1000\n").unwrap();
        let mut settings = Settings::default();
        settings.set(&file, "20000").unwrap();
        settings.set(&file, "30000").unwrap();
        assert!(settings.set(Path::new("/proc/sys/net/core/no_such_setting"), "1").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "30000");
        drop(settings);
        assert_eq!(fs::read_to_string(&file).unwrap(), "1000\n");
        fs::remove_file(&file).unwrap();
    }
}
