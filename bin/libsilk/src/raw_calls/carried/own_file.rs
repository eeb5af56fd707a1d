//! `/proc/self/exe` of a carried program: the kernel would name the file that carries it.

use libc::{c_char, c_long};
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::OnceLock;

/// The file's whole name.
static FILE: OnceLock<CString> = OnceLock::new();

const NAME: &str = "/proc/self/exe";

/// The program is the file at `path`.
pub fn is(path: &Path) {
    let whole: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(whole) = CString::new(whole.as_os_str().as_bytes()) {
        let _ = FILE.set(whole);
    }
}

/// The program's own file, if that is what `path` means.
pub fn meant_by(path: &Path) -> Option<&'static Path> {
    let file = FILE.get().filter(|_| path == Path::new(NAME))?;
    Some(Path::new(OsStr::from_bytes(file.to_bytes())))
}

/// Its whole name.
pub fn whole() -> &'static Path {
    let name = FILE.get().map(|file| file.to_bytes()).unwrap_or_default();
    Path::new(OsStr::from_bytes(name))
}

/// Whether a call's path is the name of it.
///
/// # Safety
/// It is null or a C string's address.
pub unsafe fn is_named(path: usize) -> bool {
    let path = with_exposed_provenance::<c_char>(path);
    // SAFETY: as the caller promises.
    !path.is_null() && unsafe { CStr::from_ptr(path) }.to_bytes() == NAME.as_bytes()
}

/// The address of its whole name, a C string.
pub fn name() -> usize {
    FILE.get().map_or(c"".as_ptr(), |file| file.as_ptr()).expose_provenance()
}

/// Tells its whole name as `readlink(2)` does.
///
/// # Safety
/// There is memory of that length.
pub unsafe fn tell(to: usize, length: usize) -> c_long {
    let name = FILE.get().map(|file| file.to_bytes()).unwrap_or_default();
    let length = name.len().min(length);
    // SAFETY: as the caller promises.
    unsafe { with_exposed_provenance_mut::<u8>(to).copy_from_nonoverlapping(name.as_ptr(), length) };
    length as c_long
}
