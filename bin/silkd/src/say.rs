//! What people are told: a line on standard error. A log that is full, that nobody takes in any more, or that somebody has but does not
//! read loses it, and the daemon goes on (`eprintln!` would panic, and end the thread that speaks, or hold it up). How many
//! lines were lost is told before the next.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Tells people a line, as `eprintln!` does.
macro_rules! say {
    ($($what:tt)*) => { $crate::say::tell(format_args!($($what)*)) };
}
pub(crate) use say;

/// A pipe that can be written to at all takes so many bytes at once (`PIPE_BUF`, pipe(7)).
const AT_ONCE: usize = 4096;

/// What of the log is missing.
struct Missed {
    /// Lines that were lost.
    lines: AtomicU64,
    /// The last of them was begun.
    cut: AtomicBool,
}

impl Missed {
    const fn nothing() -> Self {
        Self { lines: AtomicU64::new(0), cut: AtomicBool::new(false) }
    }
}

static MISSED: Missed = Missed::nothing();

/// Standard error, opened by ourselves.
static OWN: OnceLock<Option<File>> = OnceLock::new();

/// Tells people a line.
pub fn tell(what: fmt::Arguments<'_>) {
    // One thread at a time, so that there is still room when it has looked.
    let mut shared = io::stderr().lock();
    match OWN.get_or_init(|| reopen(&shared)) {
        Some(own) => line(&mut &*own, &MISSED, what),
        None => line(&mut shared, &MISSED, what),
    }
}

/// Tells who has started the daemon a line, on standard output.
pub fn print(what: fmt::Arguments<'_>) {
    line(&mut io::stdout().lock(), &Missed::nothing(), what);
}

/// The same pipe or terminal once more, where a write that does not find room for all returns instead of waiting: a terminal that is said
/// to have room may have it for some bytes. It is opened anew, since who has the same opening as we would no longer wait either.
/// (Sockets and files have no such openings, and no such terminals.)
fn reopen(to: impl AsFd) -> Option<File> {
    let kind = fstat(&to).map(|status| FileType::from_raw_mode(status.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::CharacterDevice)) {
        return None;
    }
    let name = format!("/proc/self/fd/{}", to.as_fd().as_raw_fd());
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(name).ok()
}

/// Writes a line at once, as far as it can be written, and before it how many were lost.
fn line(to: &mut (impl Write + AsFd), missed: &Missed, what: fmt::Arguments<'_>) {
    let mut write = |text: &str| {
        let end = if missed.cut.load(Relaxed) { "\n" } else { "" };
        let text = format!("{end}{text}\n");
        let done = write(to, text.as_bytes());
        if done > 0 {
            missed.cut.store(done < text.len(), Relaxed);
        }
        done == text.len()
    };
    let before = missed.lines.load(Relaxed);
    let is_told = before == 0 || write(&format!("silkd: lines that nobody read, and are lost: {before}"));
    if is_told {
        missed.lines.fetch_sub(before, Relaxed);
    }
    if !(is_told && write(&what.to_string())) {
        missed.lines.fetch_add(1, Relaxed);
    }
}

/// Writes as much as there is room for; how much.
fn write(to: &mut (impl Write + AsFd), text: &[u8]) -> usize {
    let mut done = 0;
    while done < text.len() {
        let part = &text[done..text.len().min(done + AT_ONCE)];
        match has_room(to).and_then(|()| to.write(part)) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let _ = to.flush();
    done
}

/// # Errors
/// There is no room, or never any more.
fn has_room(to: &impl AsFd) -> io::Result<()> {
    let mut room = [PollFd::new(to, PollFlags::OUT)];
    poll(&mut room, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if room[0].revents().contains(PollFlags::OUT) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    use std::io::Read;

    #[test]
    fn a_line_is_told_whole_and_one_that_cannot_be_ends_nothing() {
        let missed = Missed::nothing();
        let (mut theirs, mut ours) = io::pipe().unwrap();
        line(&mut ours, &missed, format_args!("silkd: {} of {}", 1, 2));
        assert_eq!(missed.lines.load(Relaxed), 0);
        drop(ours);
        assert_eq!(io::read_to_string(&mut theirs).unwrap(), "silkd: 1 of 2\n");
        line(&mut File::create("/dev/full").unwrap(), &missed, format_args!("silkd: lost"));
        let (theirs, mut ours) = io::pipe().unwrap();
        drop(theirs);
        line(&mut ours, &missed, format_args!("silkd: lost, too"));
        assert_eq!(missed.lines.load(Relaxed), 2);
    }

    #[test]
    fn who_has_the_log_and_does_not_read_holds_nobody_up_and_hears_how_much_is_lost() {
        let missed = Missed::nothing();
        let (mut theirs, mut ours) = io::pipe().unwrap();
        let said = "x".repeat(3 * AT_ONCE);
        for _ in 0..100 {
            line(&mut ours, &missed, format_args!("{said}"));
        }
        let lost = missed.lines.load(Relaxed);
        assert!(lost > 0 && lost < 100, "{lost}");
        // There is no room for that either.
        line(&mut ours, &missed, format_args!("lost"));
        let mut heard = vec![0; 1 << 20];
        assert!(theirs.read(&mut heard).unwrap() > said.len());
        line(&mut ours, &missed, format_args!("silkd: on"));
        line(&mut ours, &missed, format_args!("silkd: and on"));
        drop(ours);
        let rest = io::read_to_string(&mut theirs).unwrap();
        let expected =
            format!("silkd: lines that nobody read, and are lost: {}\nsilkd: on\nsilkd: and on\n", lost + 1);
        assert!(rest.ends_with(&expected), "{rest}");
        assert_eq!(missed.lines.load(Relaxed), 0);
    }

    #[test]
    fn a_terminal_that_nobody_reads_holds_nobody_up_though_it_says_that_there_is_room() {
        let missed = Missed::nothing();
        let theirs = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&theirs).unwrap();
        let name = ptsname(&theirs, Vec::new()).unwrap();
        let flags = libc::O_NOCTTY;
        let ours = OpenOptions::new().write(true).custom_flags(flags).open(name.to_str().unwrap()).unwrap();
        let mut ours = reopen(&ours).expect("a terminal can be opened again");
        // No part of what there is room for.
        let said = "x".repeat(1021);
        while missed.lines.load(Relaxed) < 3 {
            line(&mut ours, &missed, format_args!("{said}"));
        }
        let (mut theirs, mut heard) = (File::from(theirs), Vec::new());
        while !heard.ends_with(b"silkd: on\r\n") {
            let mut some = [0; 4096];
            let read = theirs.read(&mut some).unwrap();
            heard.extend(&some[..read]);
            line(&mut ours, &missed, format_args!("silkd: on"));
        }
        assert_eq!(missed.lines.load(Relaxed), 0);
        let heard = String::from_utf8(heard).unwrap();
        assert!(heard.contains("\r\nsilkd: lines that nobody read, and are lost: "), "{heard}");
        let cut = heard.lines().filter(|line| *line != said && !line.starts_with("silkd: "));
        assert!(cut.count() <= 1, "what was cut ends before the next begins: {heard}");
    }
}
