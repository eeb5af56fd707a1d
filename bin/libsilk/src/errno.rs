//! What a socket call answers: a value or an `errno`. Inside the library errors are values;
//! only the exported functions, at the very edge, write `errno`.

use std::ffi::c_int;

/// A value, or the `errno` that the program is to see.
pub type Answer<T = usize> = Result<T, c_int>;

/// Writes `errno`.
pub fn set(errno: c_int) {
    // SAFETY: glibc's errno location is valid for the calling thread's whole life.
    unsafe { *libc::__errno_location() = errno };
}

/// Reads `errno`, right after a call that failed.
pub fn last() -> c_int {
    // SAFETY: as in `set`.
    unsafe { *libc::__errno_location() }
}

/// The C form of an answer that counts bytes.
pub fn size(answer: Answer) -> isize {
    match answer {
        Ok(n) => isize::try_from(n).unwrap_or(isize::MAX),
        Err(errno) => {
            set(errno);
            -1
        }
    }
}

/// The C form of an answer that is a small number, such as a descriptor.
pub fn int(answer: Answer<c_int>) -> c_int {
    answer.unwrap_or_else(|errno| {
        set(errno);
        -1
    })
}

/// The C form of an answer that is only yes or no.
pub fn done(answer: Answer<()>) -> c_int {
    int(answer.map(|()| 0))
}

/// What a C function returned, as an answer.
pub fn check(result: c_int) -> Answer<c_int> {
    if result < 0 { Err(last()) } else { Ok(result) }
}

/// The same for counts of bytes.
pub fn check_size(result: isize) -> Answer {
    usize::try_from(result).map_err(|_| last())
}
