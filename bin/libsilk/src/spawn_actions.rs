//! What programs ask for the descriptors of children that they spawn. It lies in an object that only the C library
//! understands, so it is noted here as well, call by call, under the object's address.

use crate::lock::{Guarded, Lock};
use libc::{c_int, mode_t};
use std::collections::BTreeMap;
use std::ffi::CString;

/// Something that is to be done to the child's descriptors.
#[derive(Clone)]
pub enum Action {
    /// Close one.
    Close(c_int),
    /// Close this one and all behind it.
    CloseFrom(c_int),
    /// Make the second a copy of the first.
    Copy(c_int, c_int),
    /// Open a file under this number, with these flags and, if it is made, this mode.
    Open(c_int, CString, c_int, mode_t),
    /// Go to a folder.
    Folder(CString),
    /// Go to the folder that is open here.
    OpenFolder(c_int),
    /// Be the foreground of this terminal.
    Foreground(c_int),
}

/// What was asked for, by the address of the C library's object.
static NOTED: Guarded<BTreeMap<usize, Vec<Action>>> = Guarded::new(BTreeMap::new());

/// To be held across a fork.
pub fn lock() -> &'static Lock {
    NOTED.bare()
}

/// The object at this address is new, or is no more.
pub fn forget(object: usize) {
    NOTED.lock().remove(&object);
}

/// One thing more is asked for.
pub fn note(object: usize, action: Action) {
    NOTED.lock().entry(object).or_default().push(action);
}

/// What was asked for with the object at this address.
pub fn noted(object: usize) -> Vec<Action> {
    NOTED.lock().get(&object).cloned().unwrap_or_default()
}
