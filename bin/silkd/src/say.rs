//! What people are told: a line on standard error. A log that is full, that nobody takes in any more, or that somebody has but does not
//! read loses it, and the daemon goes on (`eprintln!` would panic, and end the thread that speaks, or hold it up). How many
//! lines were lost is told before the next. Each line has a level. The journal is told it with the line
//! (sd-daemon(3)), and people choose the least grave that they want to hear of.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Stat, fstat};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Tells people a line, as `eprintln!` does, with its [`Level`] before it: `say!(Warning, "…")`.
macro_rules! say {
    ($level:ident, $($what:tt)*) => {
        $crate::say::tell($crate::say::Level::$level, format_args!($($what)*))
    };
}
pub(crate) use say;

/// How grave a line is, the gravest first. The numbers are those of syslog(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Level {
    /// The daemon cannot go on, or somebody is not served
    Error = 3,
    /// Something is not as it should be, and the daemon goes on
    Warning = 4,
    /// Something normal has changed: an address has come or gone, the classes are others
    Notice = 5,
    /// All else: what is left to Linux
    Info = 6,
}

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

/// Who hears the lines.
#[derive(Clone, Copy)]
struct Hearer {
    /// The least grave level that they want to hear of.
    least: Level,
    /// Each line begins with its level.
    is_marked: bool,
}

impl Hearer {
    /// Every line, as it is.
    const PLAIN: Self = Self { least: Level::Info, is_marked: false };

    /// A message as it is written, which may be several lines: each of them is one to the journal.
    fn written(self, level: Level, text: &str) -> String {
        if !self.is_marked {
            return text.to_owned();
        }
        let mark = format!("<{}>", level as u8);
        format!("{mark}{}", text.replace('\n', &format!("\n{mark}")))
    }
}

/// Standard error.
struct Log {
    /// Opened by ourselves, where it can be.
    own: Option<File>,
    /// The journal reads it.
    is_journal: bool,
}

impl Log {
    fn behind(shared: impl AsFd) -> Self {
        let said = std::env::var("JOURNAL_STREAM").ok();
        let is_journal = |about: Stat| is_journal(said.as_deref(), about.st_dev, about.st_ino);
        Self { is_journal: fstat(&shared).is_ok_and(is_journal), own: reopen(shared) }
    }
}

static LOG: OnceLock<Log> = OnceLock::new();

/// The least grave that people want to hear of: everything, until they have said.
static LEAST: OnceLock<Level> = OnceLock::new();

/// What is less grave than this is not told from now on.
pub fn keep_to(least: Level) {
    // Said once, when the daemon starts.
    let _ = LEAST.set(least);
}

/// Tells people a line of this level.
pub fn tell(level: Level, what: fmt::Arguments<'_>) {
    // One thread at a time, so that there is still room when it has looked.
    let mut shared = io::stderr().lock();
    let log = LOG.get_or_init(|| Log::behind(&shared));
    let least = LEAST.get().copied().unwrap_or(Level::Info);
    let hearer = Hearer { least, is_marked: log.is_journal };
    match &log.own {
        Some(own) => line(&mut &*own, &MISSED, hearer, level, what),
        None => line(&mut shared, &MISSED, hearer, level, what),
    }
}

/// Tells who has started the daemon a line, on standard output.
pub fn print(what: fmt::Arguments<'_>) {
    line(&mut io::stdout().lock(), &Missed::nothing(), Hearer::PLAIN, Level::Notice, what);
}

/// Whether the journal reads what has this device and this inode, by what the service manager has said of its
/// stream (`JOURNAL_STREAM`, systemd.exec(5)). Whom a service starts with another standard error inherits what was
/// said of the service's.
fn is_journal(said: Option<&str>, device: u64, inode: u64) -> bool {
    said.is_some_and(|said| said == format!("{device}:{inode}"))
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

/// Writes a line at once, as far as it can be written, and before it how many were lost. One that nobody wants is not missed.
fn line(
    to: &mut (impl Write + AsFd),
    missed: &Missed,
    hearer: Hearer,
    level: Level,
    what: fmt::Arguments<'_>,
) {
    // The less grave are the greater ones.
    if level > hearer.least {
        return;
    }
    let mut write = |level, text: &str| {
        let end = if missed.cut.load(Relaxed) { "\n" } else { "" };
        let text = format!("{end}{}\n", hearer.written(level, text));
        let done = write(to, text.as_bytes());
        if done > 0 {
            missed.cut.store(done < text.len(), Relaxed);
        }
        done == text.len()
    };
    let before = missed.lines.load(Relaxed);
    // The gravest may be among them.
    let lost = || format!("silkd: lines that nobody read, and are lost: {before}");
    let is_told = before == 0 || write(Level::Error, &lost());
    if is_told {
        missed.lines.fetch_sub(before, Relaxed);
    }
    if !(is_told && write(level, &what.to_string())) {
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
    use clap::ValueEnum;
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    use std::io::Read;

    /// Tells a line as it is.
    fn plainly(to: &mut (impl Write + AsFd), missed: &Missed, what: fmt::Arguments<'_>) {
        line(to, missed, Hearer::PLAIN, Level::Notice, what);
    }

    /// What is read of a log in which a message of each level has been told so.
    fn told(hearer: Hearer) -> String {
        let (theirs, mut ours) = io::pipe().unwrap();
        for level in Level::value_variants() {
            line(&mut ours, &Missed::nothing(), hearer, *level, format_args!("silkd: {level:?}"));
        }
        drop(ours);
        io::read_to_string(theirs).unwrap()
    }

    #[test]
    fn what_is_graver_than_people_want_to_hear_of_is_told_too_and_what_is_less_is_not() {
        let all = "silkd: Error\nsilkd: Warning\nsilkd: Notice\nsilkd: Info\n";
        assert_eq!(told(Hearer::PLAIN), all);
        for (least, count) in [(Level::Error, 1), (Level::Warning, 2), (Level::Notice, 3), (Level::Info, 4)] {
            let expected: String = all.split_inclusive('\n').take(count).collect();
            assert_eq!(told(Hearer { least, ..Hearer::PLAIN }), expected);
        }
    }

    #[test]
    fn lines_that_nobody_wants_are_not_among_the_lost() {
        let (missed, hearer) = (Missed::nothing(), Hearer { least: Level::Warning, ..Hearer::PLAIN });
        let mut full = File::create("/dev/full").unwrap();
        for level in Level::value_variants() {
            line(&mut full, &missed, hearer, *level, format_args!("silkd: lost"));
        }
        assert_eq!(missed.lines.load(Relaxed), 2);
        let (theirs, mut ours) = io::pipe().unwrap();
        line(&mut ours, &missed, hearer, Level::Notice, format_args!("silkd: not told"));
        assert_eq!(missed.lines.load(Relaxed), 2);
        line(&mut ours, &missed, hearer, Level::Warning, format_args!("silkd: on"));
        drop(ours);
        let heard = io::read_to_string(theirs).unwrap();
        assert_eq!(heard, "silkd: lines that nobody read, and are lost: 2\nsilkd: on\n");
    }

    #[test]
    fn the_journal_is_told_the_level_of_each_line_of_a_message() {
        let marked = Hearer { is_marked: true, ..Hearer::PLAIN };
        assert_eq!(told(marked), "<3>silkd: Error\n<4>silkd: Warning\n<5>silkd: Notice\n<6>silkd: Info\n");
        let missed = Missed::nothing();
        missed.lines.store(1, Relaxed);
        let (theirs, mut ours) = io::pipe().unwrap();
        line(&mut ours, &missed, marked, Level::Warning, format_args!("silk.toml:1:1\n\n<0>2 faults"));
        drop(ours);
        let heard = io::read_to_string(theirs).unwrap();
        let lost = "<3>silkd: lines that nobody read, and are lost: 1\n";
        assert_eq!(heard, format!("{lost}<4>silk.toml:1:1\n<4>\n<4><0>2 faults\n"));
    }

    #[test]
    fn what_was_cut_ends_before_the_next_level_begins() {
        let (missed, marked) = (Missed::nothing(), Hearer { is_marked: true, ..Hearer::PLAIN });
        missed.cut.store(true, Relaxed);
        let (theirs, mut ours) = io::pipe().unwrap();
        line(&mut ours, &missed, marked, Level::Notice, format_args!("silkd: on"));
        drop(ours);
        assert_eq!(io::read_to_string(theirs).unwrap(), "\n<5>silkd: on\n");
    }

    #[test]
    fn the_journal_is_who_reads_the_stream_that_was_named_and_nobody_else() {
        assert!(is_journal(Some("9:123456"), 9, 123_456));
        assert!(is_journal(Some(&format!("{0}:{0}", u64::MAX)), u64::MAX, u64::MAX));
        assert!(!is_journal(None, 9, 123_456), "no service manager has started it");
        for other in ["9:123457", "8:123456", "123456:9", "9:12345", "9:1234567"] {
            assert!(!is_journal(Some(other), 9, 123_456), "{other} is another stream");
        }
        for more in ["9:123456:", "9:123456\n", " 9:123456", "9: 123456", "+9:123456", "9:0x1e240"] {
            assert!(!is_journal(Some(more), 9, 123_456), "{more:?} names none");
        }
        for nothing in ["", ":", "0:", ":0", "-0:0", "18446744073709551616:0", "\0:0", "zero:zero"] {
            assert!(!is_journal(Some(nothing), 0, 0), "{nothing:?} names none");
        }
        assert!(!is_journal(Some(&"9".repeat(1 << 20)), 9, 123_456));
    }

    #[test]
    fn a_line_is_told_whole_and_one_that_cannot_be_ends_nothing() {
        let missed = Missed::nothing();
        let (mut theirs, mut ours) = io::pipe().unwrap();
        plainly(&mut ours, &missed, format_args!("silkd: {} of {}", 1, 2));
        assert_eq!(missed.lines.load(Relaxed), 0);
        drop(ours);
        assert_eq!(io::read_to_string(&mut theirs).unwrap(), "silkd: 1 of 2\n");
        plainly(&mut File::create("/dev/full").unwrap(), &missed, format_args!("silkd: lost"));
        let (theirs, mut ours) = io::pipe().unwrap();
        drop(theirs);
        plainly(&mut ours, &missed, format_args!("silkd: lost, too"));
        assert_eq!(missed.lines.load(Relaxed), 2);
    }

    #[test]
    fn who_has_the_log_and_does_not_read_holds_nobody_up_and_hears_how_much_is_lost() {
        let missed = Missed::nothing();
        let (mut theirs, mut ours) = io::pipe().unwrap();
        let said = "x".repeat(3 * AT_ONCE);
        for _ in 0..100 {
            plainly(&mut ours, &missed, format_args!("{said}"));
        }
        let lost = missed.lines.load(Relaxed);
        assert!(lost > 0 && lost < 100, "{lost}");
        // There is no room for that either.
        plainly(&mut ours, &missed, format_args!("lost"));
        let mut heard = vec![0; 1 << 20];
        assert!(theirs.read(&mut heard).unwrap() > said.len());
        plainly(&mut ours, &missed, format_args!("silkd: on"));
        plainly(&mut ours, &missed, format_args!("silkd: and on"));
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
            plainly(&mut ours, &missed, format_args!("{said}"));
        }
        let (mut theirs, mut heard) = (File::from(theirs), Vec::new());
        while !heard.ends_with(b"silkd: on\r\n") {
            let mut some = [0; 4096];
            let read = theirs.read(&mut some).unwrap();
            heard.extend(&some[..read]);
            plainly(&mut ours, &missed, format_args!("silkd: on"));
        }
        assert_eq!(missed.lines.load(Relaxed), 0);
        let heard = String::from_utf8(heard).unwrap();
        assert!(heard.contains("\r\nsilkd: lines that nobody read, and are lost: "), "{heard}");
        let cut = heard.lines().filter(|line| *line != said && !line.starts_with("silkd: "));
        assert!(cut.count() <= 1, "what was cut ends before the next begins: {heard}");
    }
}
