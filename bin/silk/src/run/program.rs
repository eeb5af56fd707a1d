//! The program to run: where it is, and whether a library can be preloaded into it. Its file
//! is somebody else's: every number in it is doubted.

use crate::trouble::Trouble;
use rustix::process::{getegid, geteuid, getgid, getuid};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program that was found.
#[derive(Debug)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
}

impl Program {
    /// Looks where a shell would.
    pub fn find(name: &OsStr) -> Result<Self, Trouble> {
        let is_option = name.as_encoded_bytes().starts_with(b"-");
        let hint =
            if is_option { ", and no such option: `silk run --help` lists those there are" } else { "" };
        let missing = || Trouble::Program(127, format!("there is no program `{}`{hint}", name.display()));
        if name.as_encoded_bytes().contains(&b'/') {
            return if Path::new(name).exists() { Ok(Self { path: name.into() }) } else { Err(missing()) };
        }
        let folders = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let found =
            env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| is_executable(file));
        found.map(|path| Self { path }).ok_or_else(missing)
    }

    /// Why no library can be loaded with it, if none can.
    pub fn why_not_preloaded(&self) -> Option<String> {
        let gains =
            fs::metadata(&self.path).is_ok_and(|file| Caller::this().gains_rights_by(&Rights::of(&file)));
        gains.then(|| {
            format!(
                "`{}` runs with another user's rights, so nothing can be preloaded into it",
                self.path.display()
            )
        })
    }

    /// Whether nothing can be loaded into it, so that the library would have to carry it.
    pub fn is_static(&self) -> bool {
        // What cannot be read may still be run, and says for itself what it is.
        File::open(&self.path).and_then(|mut file| is_static(&mut file)).unwrap_or(false)
    }

    /// Why it did not start.
    pub fn cannot_start(&self, error: &io::Error) -> Trouble {
        let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        Trouble::Program(status, format!("`{}` cannot be started: {error}", self.path.display()))
    }
}

/// What a file says of whom its program runs as.
struct Rights {
    mode: u32,
    user: u32,
    group: u32,
}

impl Rights {
    fn of(file: &Metadata) -> Self {
        Self { mode: file.mode(), user: file.uid(), group: file.gid() }
    }
}

/// Who starts the program: real and effective ids.
struct Caller {
    user: (u32, u32),
    group: (u32, u32),
}

impl Caller {
    fn this() -> Self {
        Self { user: (getuid().as_raw(), geteuid().as_raw()), group: (getgid().as_raw(), getegid().as_raw()) }
    }

    /// Whether a program that it starts gets rights that are not its own: an effective id that differs from the real
    /// one. Only then does the kernel tell the loader to preload nothing (`AT_SECURE`, getauxval(3)): a program whose owner
    /// starts it gains nothing by the bit.
    fn gains_rights_by(&self, file: &Rights) -> bool {
        const SET_USER: u32 = 0o4000;
        // The kernel heeds the bit only where the group may execute the file.
        const SET_GROUP: u32 = 0o2010;
        let user = if file.mode & SET_USER != 0 { file.user } else { self.user.1 };
        let group = if file.mode & SET_GROUP == SET_GROUP { file.group } else { self.group.1 };
        user != self.user.0 || group != self.group.0
    }
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether this is a 64-bit ELF program without an interpreter. Scripts are not: they run in
/// one.
fn is_static(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    const INTERPRETER: u32 = 3;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return Ok(false);
    }
    let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let table = u64::from_le_bytes(header[32..40].try_into().unwrap_or_default());
    let (size, count) = (u64::from(number(54)), u64::from(number(56)));
    for entry in 0..count {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(table.saturating_add(entry * size)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// A program whose table has entries of these kinds.
    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = kinds.len() as u8;
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_without_an_interpreter_is_static_and_a_script_is_not() {
        assert!(is_static(&mut Cursor::new(elf(&[1, 1]))).unwrap());
        assert!(!is_static(&mut Cursor::new(elf(&[1, 3]))).unwrap());
        let script = format!("#!/bin/sh\n{}", "#".repeat(100));
        assert!(!is_static(&mut Cursor::new(script.into_bytes())).unwrap());
    }

    #[test]
    fn the_shell_of_this_machine_is_found_and_can_be_preloaded() {
        let shell = Program::find(OsStr::new("sh")).unwrap();
        assert_eq!(shell.why_not_preloaded(), None);
        assert!(matches!(Program::find(OsStr::new("no-such-program")), Err(Trouble::Program(127, _))));
    }

    #[test]
    fn only_who_is_not_its_owner_gains_rights_by_a_file() {
        let gains = |caller: u32, mode| {
            let caller = Caller { user: (caller, caller), group: (caller, caller) };
            caller.gains_rights_by(&Rights { mode, user: 7, group: 7 })
        };
        let modes = [0o755, 0o4755, 0o2755, 0o6755, 0o2745];
        assert_eq!(modes.map(|mode| gains(7, mode)), [false; 5]);
        assert_eq!(modes.map(|mode| gains(8, mode)), [false, true, true, true, false]);
        let file = |mode| Rights { mode, user: 0, group: 0 };
        let raised = Caller { user: (8, 0), group: (0, 0) };
        assert!(raised.gains_rights_by(&file(0o755)), "rights that its starter has gained");
        let kept = Caller { user: (0, 8), group: (0, 0) };
        assert!(!kept.gains_rights_by(&file(0o4755)) && kept.gains_rights_by(&file(0o755)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_program_or_not(mut tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.append(&mut tail);
            let answer = is_static(&mut Cursor::new(&bytes));
            prop_assert!(bytes.len() >= 64 || answer.is_err());
        }
    }
}
