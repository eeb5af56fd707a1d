//! An experiment's folder, and where goes what is to outlive it.

use super::Failure;
use silk_testkit::netns::Running;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// How the folders of experiments are called, before their maker's process id.
const PREFIX: &str = "silk-bench-";

/// Where folders of evidence go: beside the results, or, where none are written, beside other temporary
/// files.
#[derive(Clone, Debug)]
pub struct Place {
    stem: PathBuf,
}

impl Place {
    /// Beside this file of results.
    pub fn beside(results: Option<&Path>) -> Self {
        let nowhere = || std::env::temp_dir().join(format!("silk-{}", std::process::id()));
        Self { stem: results.map_or_else(nowhere, |file| file.with_extension("")) }
    }

    /// A new folder: `web.hang-1`, and so on.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let stem = self.stem.display();
        let folders = (1..=u32::MAX).map(|number| PathBuf::from(format!("{stem}.hang-{number}")));
        let folder = folders.into_iter().find(|folder| !folder.exists()).unwrap_or_default();
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        Ok(folder)
    }
}

/// The folder of an experiment: the served files, configurations, logs and reports. Removed at the end.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    evidence: Place,
}

impl Scratch {
    /// A folder with a file of random bytes for each size. What is to be kept of a run that hangs goes to
    /// `evidence`.
    pub fn new(sizes: &[u32], evidence: Place) -> Result<Self, Failure> {
        remove_stale();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = TempDir::with_prefix(prefix).map_err(Failure::file(std::env::temp_dir()))?;
        let scratch = Self { folder, evidence };
        scratch.open_to_all(scratch.path())?;
        fs::create_dir(scratch.site()).map_err(Failure::file(scratch.site()))?;
        scratch.open_to_all(&scratch.site())?;
        sizes.iter().try_for_each(|kb| scratch.random_file(*kb))?;
        Ok(scratch)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where to keep what a run that hangs shows.
    pub fn evidence(&self) -> &Place {
        &self.evidence
    }

    /// The folder that Apache serves.
    pub fn site(&self) -> PathBuf {
        self.path().join("site")
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(Failure::file(&path))?;
        Ok(path)
    }

    /// Starts a program. What it says goes to this file of the folder.
    pub fn start(&self, command: &mut Command, log: &str) -> Result<Running, Failure> {
        let log = self.path().join(log);
        let out = fs::File::create(&log).map_err(Failure::file(&log))?;
        let errors = out.try_clone().map_err(Failure::file(&log))?;
        Ok(Running::start(command.stdout(out).stderr(errors))?)
    }

    fn random_file(&self, kb: u32) -> Result<(), Failure> {
        let path = self.site().join(format!("{kb}.bin"));
        let mut bytes = Vec::new();
        let random = fs::File::open("/dev/urandom").map_err(Failure::file("/dev/urandom"))?;
        random.take(u64::from(kb) * 1024).read_to_end(&mut bytes).map_err(Failure::file("/dev/urandom"))?;
        fs::write(&path, bytes).map_err(Failure::file(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(Failure::file(&path))
    }

    /// Apache's processes run as another user.
    fn open_to_all(&self, folder: &Path) -> Result<(), Failure> {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(Failure::file(folder))
    }
}

/// Removes the folders of experiments that were killed before they could.
fn remove_stale() {
    for folder in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let maker = folder.file_name().to_str().and_then(maker);
        if maker.is_some_and(|process| !fs::exists(format!("/proc/{process}")).unwrap_or(true)) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

/// The process that made an experiment's folder, or `None` where the name is not one.
fn maker(folder: &str) -> Option<u32> {
    folder.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_experiments_folder_has_a_maker() {
        assert_eq!(maker("silk-bench-41-x7Yz"), Some(41));
        assert_eq!([maker("silk-bench-x-41"), maker("silk-test-41-x"), maker("silk-bench-41")], [None; 3]);
    }

    #[test]
    fn every_size_is_served_in_full_and_readable_by_all() {
        let scratch = Scratch::new(&[1, 16], Place::beside(None)).unwrap();
        for kb in [1u32, 16] {
            let file = fs::metadata(scratch.site().join(format!("{kb}.bin"))).unwrap();
            assert_eq!((file.len(), file.permissions().mode() & 0o777), (u64::from(kb) * 1024, 0o644));
        }
    }

    #[test]
    fn folders_stand_beside_the_results_and_do_not_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::beside(Some(&folder.path().join("web.json")));
        let names = [place.folder().unwrap(), place.folder().unwrap()];
        assert_eq!(names, ["web.hang-1", "web.hang-2"].map(|name| folder.path().join(name)));
    }
}
