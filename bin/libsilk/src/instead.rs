//! What is executed instead of a program that nothing can be loaded into.

use std::ffi::CString;

/// A file, and the variable that says which program it carries.
pub struct Instead {
    /// The file.
    pub file: CString,
    /// The variable, with its value.
    pub variable: CString,
}
