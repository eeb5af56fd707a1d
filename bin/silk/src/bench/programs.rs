//! The programs that were built with this one.

use std::env;
use std::path::PathBuf;

/// The programs are built together: each is found beside this one.
pub fn beside(program: &str) -> PathBuf {
    let here = env::current_exe().unwrap_or_default();
    here.with_file_name(program)
}
