//! Which CPUs this machine has: a configuration may name others, of which the kernel says no more than "invalid argument".

use crate::sys;
use std::thread;

/// What to tell beside what the kernel said of a CPU that was asked for.
pub fn those_there_are() -> String {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    format!("the CPUs here are {}", if online.is_empty() { "not known" } else { online.trim_end() })
}

/// Whether a thread can be kept on these.
///
/// # Errors
/// What is wrong with them: none of them is there, or may be used.
pub fn check(cpus: &[usize]) -> Result<(), String> {
    // A thread of its own, which ends: the caller stays where it is.
    let tried = thread::scope(|scope| scope.spawn(|| sys::pin(cpus)).join());
    match tried {
        Ok(Err(error)) if !cpus.is_empty() => Err(format!("{error}; {}", those_there_are())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_there_is_none_of_them_it_is_said() {
        assert_eq!([check(&[]), check(&[0]), check(&[0, 1000])], [Ok(()), Ok(()), Ok(())]);
        let said = check(&[1000]).unwrap_err();
        assert!(said.starts_with("Invalid argument (os error 22); the CPUs here are "), "{said}");
    }
}
