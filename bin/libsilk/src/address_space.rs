//! The limit of a program's address space (`RLIMIT_AS`). An arena is gigabytes of it, of which little is ever memory: so the limit is
//! the program's own and the arena's together, and the program is told of its own.

use crate::errno::{Answer, check};
use crate::real;
use libc::{RLIM_INFINITY, rlim_t, rlimit};
use std::ptr;

/// The limits of this process.
const SELF: libc::pid_t = 0;

/// With as much more for the arena.
fn widened(own: rlim_t, arena: u64) -> rlim_t {
    if own == RLIM_INFINITY { own } else { own.saturating_add(arena).min(RLIM_INFINITY - 1) }
}

/// What the program may use of it.
fn own(limit: rlim_t, arena: u64) -> rlim_t {
    if limit == RLIM_INFINITY { limit } else { limit.saturating_sub(arena) }
}

/// The limit that the program wants, with room for the arena, as far as who may not raise the hard one can have it.
fn with_room(wanted: rlimit, hard: rlim_t, arena: u64) -> rlimit {
    let max = widened(wanted.rlim_max, arena);
    // Refused, should the program want more itself.
    let max = if wanted.rlim_max <= hard { max.min(hard) } else { max };
    rlimit { rlim_cur: widened(wanted.rlim_cur, arena).min(max), rlim_max: max }
}

/// Sets the limit that the program wants beside an `arena` of so many bytes, and says what it was (`prlimit(2)` of oneself).
///
/// # Errors
/// As `prlimit(2)`.
pub fn change(wanted: Option<rlimit>, arena: u64) -> Answer<rlimit> {
    let before = prlimit(None)?;
    if let Some(wanted) = wanted {
        let privileged = prlimit(Some(with_room(wanted, RLIM_INFINITY, arena)));
        privileged.or_else(|_| prlimit(Some(with_room(wanted, before.rlim_max, arena))))?;
    }
    Ok(rlimit { rlim_cur: own(before.rlim_cur, arena), rlim_max: own(before.rlim_max, arena) })
}

/// Makes room for an arena of so many bytes that is about to be mapped, as far as that is allowed.
pub fn make_room(arena: u64) {
    if let Ok(limit) = prlimit(None)
        && limit.rlim_cur != RLIM_INFINITY
        && prlimit(Some(with_room(limit, RLIM_INFINITY, arena))).is_err()
    {
        let _ = prlimit(Some(with_room(limit, limit.rlim_max, arena)));
    }
}

/// Asks the kernel.
fn prlimit(new: Option<rlimit>) -> Answer<rlimit> {
    let mut old = rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or outlives the call, which fills `old`.
    check(unsafe { real::prlimit(SELF, libc::RLIMIT_AS as libc::c_int, new, &mut old) })?;
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn a_limit_is_the_programs_and_the_arenas_together() {
        let limit = |cur, max| rlimit { rlim_cur: cur, rlim_max: max };
        let with_room = |wanted, hard| {
            let limit = with_room(wanted, hard, 8 * GB);
            (limit.rlim_cur, limit.rlim_max)
        };
        assert_eq!(with_room(limit(GB, 2 * GB), RLIM_INFINITY), (9 * GB, 10 * GB));
        assert_eq!(with_room(limit(GB, RLIM_INFINITY), RLIM_INFINITY), (9 * GB, RLIM_INFINITY));
        assert_eq!(with_room(limit(GB, 2 * GB), 5 * GB), (5 * GB, 5 * GB), "the hard one stays");
        assert_eq!(with_room(limit(GB, 6 * GB), 5 * GB), (9 * GB, 14 * GB), "which is refused");
        assert_eq!(widened(u64::MAX - GB, 8 * GB), RLIM_INFINITY - 1);
        assert_eq!(
            [own(9 * GB, 8 * GB), own(GB, 8 * GB), own(RLIM_INFINITY, 8 * GB)],
            [GB, 0, RLIM_INFINITY]
        );
    }
}
