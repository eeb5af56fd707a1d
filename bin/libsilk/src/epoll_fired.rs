//! Whether the kernel has told of a member of a set that it tells of but once (`EPOLLONESHOT`): it tells nobody but by what it
//! shows of the set in `/proc` (`tfd`, proc_pid_fdinfo(5)), where such a member asks for nothing any more.

use std::ffi::c_int;

/// What is left of what was asked for: how it is told.
const MANNER: u32 =
    (libc::EPOLLONESHOT | libc::EPOLLET | libc::EPOLLEXCLUSIVE | libc::EPOLLWAKEUP).cast_unsigned();

/// Whether the member of the set `epfd` that was added as `fd` has been told of. Without `/proc` it has not.
pub fn has_fired(epfd: c_int, fd: c_int) -> bool {
    std::fs::read_to_string(format!("/proc/self/fdinfo/{epfd}")).is_ok_and(|set| asks_for_nothing(&set, fd))
}

/// Whether all members of that number do; several have it where one was closed while a copy of it is open.
fn asks_for_nothing(set: &str, fd: c_int) -> bool {
    let events = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let is_it = words.next() == Some("tfd:") && words.next()?.parse() == Ok(fd);
        let events = words.nth(1).filter(|_| is_it)?;
        u32::from_str_radix(events, 16).ok()
    };
    let mut all = set.lines().filter_map(events).peekable();
    all.peek().is_some() && all.all(|events| events & !MANNER == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1033\n\
        tfd:        5 events:       1d data:                5  pos:0 ino:61af sdev:7\n\
        tfd:       15 events: 40000000 data:                5  pos:0 ino:61b0 sdev:7\n\
        tfd:        6 events: 4000001d data:                5  pos:0 ino:61b1 sdev:7\n\
        tfd:        6 events: 40000000 data:                5  pos:0 ino:61b2 sdev:7\n";

    #[test]
    fn a_member_that_asks_for_nothing_has_fired() {
        assert_eq!([5, 15, 6, 1].map(|fd| asks_for_nothing(SET, fd)), [false, true, false, false]);
        for garbled in ["tfd:", "tfd: 15", "tfd: 15 events:", "tfd: 15 events: x", ""] {
            assert!(!asks_for_nothing(garbled, 15), "{garbled}");
        }
    }

    #[test]
    fn the_kernel_shows_it() {
        // SAFETY: makes descriptors, and asks about them with an event that is there.
        unsafe {
            let [set, event] = [libc::epoll_create1(0), libc::eventfd(1, 0)];
            let mut once = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLONESHOT) as u32, u64: 7 };
            assert_eq!(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, event, &raw mut once), 0);
            assert!(!has_fired(set, event));
            assert_eq!(libc::epoll_wait(set, &raw mut once, 1, 0), 1);
            assert!(has_fired(set, event));
            libc::close(set);
            libc::close(event);
        }
    }
}
