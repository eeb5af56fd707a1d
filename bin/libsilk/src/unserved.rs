//! What this library cannot serve goes to Linux loudly: the daemon counts and logs it, once
//! for each kind and process. A strict program gets an error instead.

use crate::environment;
use crate::errno::Answer;
use crate::family;
use silk_control::Request;
use std::ffi::c_int;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Kinds already told, as hashes; what does not fit is not told.
static TOLD: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

fn is_new(what: &str) -> bool {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    let hash = hasher.finish().max(1);
    for place in &TOLD {
        match place.compare_exchange(0, hash, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(there) if there == hash => return false,
            Err(_) => {}
        }
    }
    false
}

/// Tells of `what`; an error with `errno` if the program is strict.
///
/// # Errors
/// `errno`, for a strict program.
pub fn tell(what: &str, errno: c_int) -> Answer<()> {
    if is_new(what) && family::join().is_ok() {
        family::tell(&Request::Unserved { what: what.to_owned() });
    }
    if environment::is_strict() { Err(errno) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once() {
        assert!(is_new("setsockopt(1, 2)"));
        assert!(!is_new("setsockopt(1, 2)"));
        assert!(is_new("setsockopt(1, 3)"));
    }
}
