//! Descriptors for many connections: a shell gives a program 1 024 at first, and lets it take more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Those that a program has besides its connections, with room to spare.
const OTHERS: u64 = 64;

/// Makes room for so many connections at once.
///
/// # Errors
/// Where the program may not have as many, in a sentence that says what to do.
pub fn allow(connections: u32) -> io::Result<()> {
    let (needed, limit) = (u64::from(connections) + OTHERS, getrlimit(Resource::Nofile));
    let has = |most: Option<u64>| most.is_none_or(|most| most >= needed);
    if has(limit.current) {
        return Ok(());
    }
    if !has(limit.maximum) {
        let most = limit.maximum.unwrap_or(u64::MAX);
        return Err(io::Error::other(format!(
            "it needs {needed} descriptors and may have {most}: raise the limit first, as root by `ulimit -n {needed}`"
        )));
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_as_far_as_the_limit_allows_it() {
        allow(8_501).expect("as in the experiment");
        let current = getrlimit(Resource::Nofile).current;
        assert!(current.is_none_or(|current| current >= 8_501), "{current:?}");
        if let Some(most) = getrlimit(Resource::Nofile).maximum.and_then(|most| u32::try_from(most).ok()) {
            let refused = allow(most).expect_err("more than it may have").to_string();
            assert!(refused.contains("ulimit -n"), "{refused}");
        }
    }
}
