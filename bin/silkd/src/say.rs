//! What people are told: a line on standard error. A log that is full, that nobody takes in any more, or that somebody has but does not
//! read loses it, and the daemon goes on (`eprintln!` would panic, and end the thread that speaks, or hold it up). How many
//! lines were lost is told before the next.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Tells people a line, as `eprintln!` does.
macro_rules! say {
    ($($what:tt)*) => { $crate::say::tell(format_args!($($what)*)) };
}
pub(crate) use say;

/// A pipe that can be written to at all takes so many bytes at once (`PIPE_BUF`, pipe(7)).
const AT_ONCE: usize = 4096;

/// Lines that were lost.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Tells people a line.
pub fn tell(what: fmt::Arguments<'_>) {
    // One thread at a time, so that there is still room when it has looked.
    line(&mut io::stderr().lock(), &LOST, what);
}

/// Tells who has started the daemon a line, on standard output.
pub fn print(what: fmt::Arguments<'_>) {
    line(&mut io::stdout().lock(), &AtomicU64::new(0), what);
}

/// Writes a line at once, as far as it can be written, and before it how many were lost.
fn line(to: &mut (impl Write + AsFd), lost: &AtomicU64, what: fmt::Arguments<'_>) {
    let before = lost.load(Relaxed);
    let missing = format!("silkd: lines that nobody read, and are lost: {before}\n");
    let is_told = (before == 0 || write(to, &missing).is_ok_and(|()| lost.fetch_sub(before, Relaxed) > 0))
        && write(to, &format!("{what}\n")).is_ok();
    if !is_told {
        lost.fetch_add(1, Relaxed);
    }
}

/// Writes as much as there is room for.
///
/// # Errors
/// There is no room for the rest, or never any more.
fn write(to: &mut (impl Write + AsFd), text: &str) -> io::Result<()> {
    for part in text.as_bytes().chunks(AT_ONCE) {
        let mut room = [PollFd::new(to, PollFlags::OUT)];
        poll(&mut room, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        if !room[0].revents().contains(PollFlags::OUT) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        to.write_all(part)?;
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn a_line_is_told_whole_and_one_that_cannot_be_ends_nothing() {
        let lost = AtomicU64::new(0);
        let (mut theirs, mut ours) = io::pipe().unwrap();
        line(&mut ours, &lost, format_args!("silkd: {} of {}", 1, 2));
        assert_eq!(lost.load(Relaxed), 0);
        drop(ours);
        assert_eq!(io::read_to_string(&mut theirs).unwrap(), "silkd: 1 of 2\n");
        line(&mut File::create("/dev/full").unwrap(), &lost, format_args!("silkd: lost"));
        let (theirs, mut ours) = io::pipe().unwrap();
        drop(theirs);
        line(&mut ours, &lost, format_args!("silkd: lost, too"));
        assert_eq!(lost.load(Relaxed), 2);
    }

    #[test]
    fn who_has_the_log_and_does_not_read_holds_nobody_up_and_hears_how_much_is_lost() {
        let lost = AtomicU64::new(0);
        let (mut theirs, mut ours) = io::pipe().unwrap();
        let said = "x".repeat(3 * AT_ONCE);
        for _ in 0..100 {
            line(&mut ours, &lost, format_args!("{said}"));
        }
        let missed = lost.load(Relaxed);
        assert!(missed > 0 && missed < 100, "{missed}");
        // There is no room for that either.
        line(&mut ours, &lost, format_args!("lost"));
        let mut heard = vec![0; 1 << 20];
        assert!(theirs.read(&mut heard).unwrap() > said.len());
        line(&mut ours, &lost, format_args!("silkd: on"));
        line(&mut ours, &lost, format_args!("silkd: and on"));
        drop(ours);
        let rest = io::read_to_string(&mut theirs).unwrap();
        let expected = format!(
            "silkd: lines that nobody read, and are lost: {}\nsilkd: on\nsilkd: and on\n",
            missed + 1
        );
        assert!(rest.ends_with(&expected), "{rest}");
        assert_eq!(lost.load(Relaxed), 0);
    }
}
