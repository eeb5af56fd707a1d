//! A file whose bytes are sent from where the kernel keeps them, its page cache, without ever being
//! copied into a ring. What a program has written must arrive as it was when it wrote it, so the
//! daemon holds a *read lease* on the file (`fcntl(2)`, `F_SETLEASE`): the kernel gives it only while
//! nobody has the file open for writing, and makes whoever wants to wait until it is given back.
//!
//! The pages are locked in memory, so that no executor ever waits for a disk, and a lease keeps
//! everybody from cutting the file under them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// File systems that answer from memory alone once a page is there, whoever mounted them
/// (`statfs(2)`, `f_type`): ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, EROFS, SquashFS. Not those behind which
/// another process or machine is.
const KNOWN: [i64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0xe0f5_e1e2, 0x7371_7368];

/// The file.
#[derive(Debug)]
pub struct Leased {
    start: *mut u8,
    length: usize,
    /// A description of our own: the lease ends with it.
    file: File,
    device: u64,
    inode: u64,
    used: AtomicBool,
}

// SAFETY: the mapping is read-only memory that nobody writes while the lease lasts; nothing in it
// belongs to one thread.
unsafe impl Send for Leased {}
// SAFETY: as above.
unsafe impl Sync for Leased {}

/// What `fcntl` answers, or its error.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

impl Leased {
    /// Takes a lease on the file that somebody has open for reading, of at most `most` bytes.
    ///
    /// # Errors
    /// The kernel's (`EAGAIN`: somebody has it open for writing; `EACCES`: it is somebody else's), or
    /// that it is not a file of the kind that can be served so.
    pub fn take(theirs: BorrowedFd<'_>, most: u64) -> io::Result<Self> {
        // SAFETY: fcntl with plain arguments; fstatfs fills the structure it is given.
        let (mode, kind) = unsafe {
            let mode = check(libc::fcntl(theirs.as_raw_fd(), libc::F_GETFL))?;
            let mut about: libc::statfs = std::mem::zeroed();
            check(libc::fstatfs(theirs.as_raw_fd(), &mut about))?;
            (mode, about.f_type)
        };
        if mode & libc::O_ACCMODE == libc::O_WRONLY || mode & libc::O_PATH != 0 {
            return Err(refused("it is not open for reading"));
        }
        if !KNOWN.contains(&kind) {
            return Err(refused("its file system may have to ask somebody else"));
        }
        let theirs = File::from(theirs.try_clone_to_owned()?);
        // What is no file of data may wait to be opened.
        if !theirs.metadata()?.is_file() {
            return Err(refused("it is no regular file"));
        }
        // Opened anew: a lease belongs to who has opened a file, and theirs is theirs to give back. Somebody's
        // lease for writing would let us wait, for as long as he likes.
        let anew = format!("/proc/self/fd/{}", theirs.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(anew)?;
        // SAFETY: fcntl with plain arguments, on a descriptor of our own.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) })?;
        // From here on nobody changes it.
        let about = file.metadata()?;
        let length = Some(about.len()).filter(|length| (1..=most).contains(length));
        let length =
            length.and_then(|length| usize::try_from(length).ok()).ok_or_else(|| refused("its length"))?;
        let start = lock(&file, length)?;
        let used = AtomicBool::new(true);
        Ok(Self { start, length, device: about.dev(), inode: about.ino(), file, used })
    }

    /// The device and the inode, which together say which file it is.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length as u64
    }

    /// Whether nobody waits to change the file.
    pub fn is_left_alone(&self) -> bool {
        // SAFETY: fcntl without arguments, on a descriptor of our own.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
    }

    /// Whether somebody can still find it: what has been deleted would keep its room on the disk.
    pub fn has_name(&self) -> bool {
        self.file.metadata().is_ok_and(|about| about.nlink() > 0)
    }

    /// `len` bytes from `offset` on; `None` where there are not so many.
    pub fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.used.store(true, Ordering::Relaxed);
        if offset.checked_add(len)? > self.length {
            return None;
        }
        // SAFETY: just checked to lie inside the mapping, which lives as long as `self` and whose
        // bytes nobody changes while the lease lasts.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(offset), len) })
    }

    /// Whether it was used since this was last asked.
    pub fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}

/// Maps a file and locks its pages in memory.
fn lock(file: &File, length: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping, which overlaps nothing; it is unmapped where it cannot be locked.
    unsafe {
        let start =
            libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if let Err(error) = check(libc::mlock(start, length)) {
            libc::munmap(start, length);
            return Err(error);
        }
        Ok(start.cast())
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `lock`; nothing borrowed from it can outlive `self`. The file is
        // closed after this, and with it the lease ends.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};

    /// A file of its own for each test, gone with it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("silk-leased-{}-{name}", std::process::id()));
            fs::write(&path, bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// A signal that comes when somebody wants to change a leased file ends a program that does not
    /// expect it.
    fn expect_breaks() {
        // SAFETY: a disposition of the whole process, which no test needs otherwise.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    }

    fn take(path: &Path) -> io::Result<Leased> {
        expect_breaks();
        Leased::take(File::open(path).unwrap().as_fd(), 1 << 20)
    }

    #[test]
    fn its_bytes_are_those_of_the_file_and_end_with_it() {
        let file = Scratch::new("bytes", b"some bytes of a file");
        let leased = take(&file.0).unwrap();
        assert_eq!((leased.bytes(5, 5), leased.length()), (Some(b"bytes".as_slice()), 20));
        assert_eq!(leased.bytes(20, 0), Some(b"".as_slice()));
        assert_eq!([leased.bytes(16, 5), leased.bytes(u64::MAX, 2), leased.bytes(1, usize::MAX)], [None; 3]);
    }

    #[test]
    fn who_wants_to_change_it_waits_until_it_is_given_back() {
        let file = Scratch::new("changed", b"old");
        let leased = take(&file.0).unwrap();
        assert!(leased.is_left_alone() && leased.has_name());
        let path = file.0.clone();
        let writer = std::thread::spawn(move || fs::write(path, b"new").unwrap());
        while leased.is_left_alone() {
            std::thread::yield_now();
        }
        assert_eq!((leased.bytes(0, 3), writer.is_finished()), (Some(b"old".as_slice()), false));
        drop(leased);
        writer.join().unwrap();
        assert_eq!(fs::read(&file.0).unwrap(), b"new");
    }

    #[test]
    fn a_deleted_file_has_no_name() {
        let file = Scratch::new("deleted", b"bytes");
        let leased = take(&file.0).unwrap();
        fs::remove_file(&file.0).unwrap();
        assert!(leased.is_left_alone() && !leased.has_name());
    }

    #[test]
    fn who_has_a_lease_for_writing_keeps_nobody_waiting() {
        let file = Scratch::new("theirs", b"bytes");
        expect_breaks();
        let theirs = File::open(&file.0).unwrap();
        // SAFETY: fcntl with plain arguments, on a descriptor of our own.
        check(unsafe { libc::fcntl(theirs.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) }).unwrap();
        // Who waits gets the file when the kernel breaks the lease.
        assert_eq!(Leased::take(theirs.as_fd(), 10).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn what_may_change_or_is_no_file_is_refused() {
        let file = Scratch::new("refused", b"bytes");
        let writer = OpenOptions::new().append(true).open(&file.0).unwrap();
        assert_eq!(take(&file.0).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
        assert!(Leased::take(writer.as_fd(), 10).is_err());
        drop(writer);
        assert!(Leased::take(File::open(&file.0).unwrap().as_fd(), 4).is_err(), "too long");
        for other in ["/dev/null", "/proc/self/stat", "/tmp"] {
            assert!(take(Path::new(other)).is_err(), "{other}");
        }
    }
}
