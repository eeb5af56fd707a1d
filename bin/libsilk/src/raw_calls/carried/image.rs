//! The file of a program that is to be carried: whether it is one, and how it comes to memory. Its file is somebody else's: every
//! number in it is doubted.

use crate::raw_calls::{PAGE, program};
use std::ffi::{CString, c_void};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{with_exposed_provenance_mut, without_provenance_mut};

/// Bytes of the file's header, and of each segment's.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
/// More segments, or longer notes, no program has.
const MOST: usize = 64;
const NOTES: usize = 64 << 10;
/// What the header says first: ELF of 64 bits, little-endian.
const MAGIC: [u8; 6] = *b"\x7fELF\x02\x01";
/// Programs at addresses of their own, of this processor.
const FIXED: u16 = 2;
const X86_64: u16 = 62;
/// Above it nobody can map.
const HIGHEST: u64 = 1 << 47;

/// A part of the program.
#[derive(Clone, Copy, Debug)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
}

/// The program.
pub struct Image {
    file: File,
    /// Where it begins.
    pub entry: usize,
    /// Where its segments' headers are in memory, and how many.
    pub headers: (usize, usize),
    segments: Vec<Segment>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

impl Segment {
    fn read(bytes: &[u8]) -> Self {
        let word = |at| u32::from_le_bytes(number(bytes, at));
        let long = |at| u64::from_le_bytes(number(bytes, at));
        Self {
            kind: word(0),
            flags: word(4),
            offset: long(8),
            address: long(16),
            in_file: long(32),
            in_memory: long(40),
        }
    }

    /// Whether it can be mapped.
    fn is_sound(&self) -> bool {
        let ends = [(self.offset, self.in_file), (self.address, self.in_memory)]
            .map(|(start, length)| start.checked_add(length).is_some_and(|end| end < HIGHEST));
        ends == [true; 2]
            && self.in_file <= self.in_memory
            && self.offset % PAGE as u64 == self.address % PAGE as u64
    }

    fn range(&self) -> Range<usize> {
        self.address as usize..(self.address + self.in_file) as usize
    }

    fn protection(&self) -> i32 {
        let of = |flag, protection| if self.flags & flag != 0 { protection } else { 0 };
        of(libc::PF_R, libc::PROT_READ) | of(libc::PF_W, libc::PROT_WRITE) | of(libc::PF_X, libc::PROT_EXEC)
    }

    /// Brings it to memory; whether it is there.
    fn map(&self, file: &File) -> bool {
        let page = PAGE as u64;
        let (end, whole) = (self.address + self.in_file, self.address + self.in_memory);
        let first = self.address / page * page;
        let of_file = if self.in_file == 0 { first } else { end.next_multiple_of(page) };
        let offset = self.offset - (self.address - first);
        if of_file > first && !place(first, of_file, self.protection(), Some((file, offset))) {
            return false;
        }
        let rest = whole.min(of_file).saturating_sub(end) as usize;
        if self.in_file > 0 && rest > 0 {
            // Nothing of the file is to be seen behind its end, and only what may be written to needs that.
            if self.flags & libc::PF_W == 0 {
                return false;
            }
            let behind: *mut u8 = with_exposed_provenance_mut(end as usize);
            // SAFETY: the rest of the last page, mapped just now, to be written to.
            unsafe { behind.write_bytes(0, (of_file - end) as usize) };
        }
        let last = whole.next_multiple_of(page);
        last <= of_file || place(of_file, last, self.protection(), None)
    }
}

/// Maps a part of a file, or new memory, there, if nothing is there yet. Whether it is.
fn place(start: u64, end: u64, protection: i32, of: Option<(&File, u64)>) -> bool {
    let (fd, offset) = of.map_or((-1, 0), |(file, offset)| (file.as_raw_fd(), offset));
    let kind = if of.is_some() { 0 } else { libc::MAP_ANONYMOUS };
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE | kind;
    let wanted: *mut c_void = without_provenance_mut(start as usize);
    // SAFETY: new memory, where there is none.
    let got = unsafe { libc::mmap(wanted, (end - start) as usize, protection, flags, fd, offset as i64) };
    got == wanted
}

impl Image {
    /// The program at `path`, if it is one to be carried: static, at addresses of its own, and of Go's.
    pub fn open(path: &Path) -> Option<Self> {
        // What is no plain file is not waited for.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).ok()?;
        let short = |at| u16::from_le_bytes(number(&header, at));
        let long = |at| u64::from_le_bytes(number(&header, at));
        let (at, count) = (long(32), usize::from(short(56)));
        let is_ours = header.starts_with(&MAGIC) && short(16) == FIXED && short(18) == X86_64;
        if !is_ours || usize::from(short(54)) != SEGMENT || count > MOST {
            return None;
        }
        let mut table = vec![0; count * SEGMENT];
        file.read_exact_at(&mut table, at).ok()?;
        let segments: Vec<_> = table.chunks_exact(SEGMENT).map(Segment::read).collect();
        let of_kind = |kind| segments.iter().filter(move |segment| segment.kind == kind);
        if of_kind(libc::PT_INTERP).next().is_some() || !of_kind(libc::PT_LOAD).all(Segment::is_sound) {
            return None;
        }
        let is_go = of_kind(libc::PT_NOTE).any(|note| {
            let mut notes = vec![0; (note.in_file as usize).min(NOTES)];
            file.read_exact_at(&mut notes, note.offset).is_ok() && program::is_of_go(&notes)
        });
        let holds = |segment: &&Segment| segment.offset <= at && at - segment.offset < segment.in_file;
        let first = of_kind(libc::PT_LOAD).find(holds)?;
        let headers = ((first.address + (at - first.offset)) as usize, count);
        is_go.then_some(Self { entry: long(24) as usize, headers, segments, file })
    }

    /// Whether it runs with no other rights than those of who executes it, who may.
    pub fn is_whoever_executes_it(&self) -> bool {
        const SET_IDS: u32 = libc::S_ISUID | libc::S_ISGID;
        let plain = self.file.metadata().is_ok_and(|file| file.is_file() && file.mode() & SET_IDS == 0);
        let name = c"security.capability".as_ptr();
        // SAFETY: it only asks how long that is, by a C string.
        let capabilities = unsafe { libc::fgetxattr(self.file.as_raw_fd(), name, std::ptr::null_mut(), 0) };
        plain && capabilities < 0
    }

    fn loaded(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind == libc::PT_LOAD)
    }

    /// Brings it to memory; none if some of its addresses are not free.
    pub fn map(&self) -> Option<()> {
        self.loaded().all(|segment| segment.map(&self.file)).then_some(())
    }

    /// Where its text is.
    pub fn texts(&self) -> impl Iterator<Item = Range<usize>> {
        self.loaded().filter(|segment| segment.flags & libc::PF_X != 0).map(Segment::range)
    }
}

/// Whether the calling process may execute the file at `path`.
pub fn may_execute(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string.
    let may = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } == 0;
    may && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::FromRawFd;
    use std::path::PathBuf;

    /// Where the program of these tests wants to lie, where nothing is.
    const START: u64 = 0x2_0000_0000;
    /// Bytes of its file, and what it has in memory.
    const FILE: usize = 2 * PAGE + 100;
    const MEMORY: u64 = 4 * PAGE as u64;

    fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn segment(kind: u32, flags: u32, [offset, address, in_file, in_memory]: [u64; 4]) -> Vec<u8> {
        let words =
            [offset, address, address, in_file, in_memory, PAGE as u64].map(u64::to_le_bytes).concat();
        [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &words].concat()
    }

    /// A program of two segments, text and what is written to, with Go's note in the first.
    fn program(start: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..FILE).map(|n| n as u8).collect();
        put(&mut bytes, 0, &[0; 64]);
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 16, &FIXED.to_le_bytes());
        put(&mut bytes, 18, &X86_64.to_le_bytes());
        put(&mut bytes, 24, &(start + 0x500).to_le_bytes());
        put(&mut bytes, 32, &64u64.to_le_bytes());
        put(&mut bytes, 54, &(SEGMENT as u16).to_le_bytes());
        put(&mut bytes, 56, &3u16.to_le_bytes());
        let page = PAGE as u64;
        let (text, data) = (libc::PF_R | libc::PF_X, libc::PF_R | libc::PF_W);
        let segments = [
            segment(libc::PT_LOAD, text, [0, start, page, page]),
            segment(libc::PT_LOAD, data, [page, start + page, page + 100, MEMORY]),
            segment(libc::PT_NOTE, libc::PF_R, [0x400, start + 0x400, 24, 24]),
        ];
        put(&mut bytes, 64, &segments.concat());
        let note = [&4u32.to_le_bytes()[..], &8u32.to_le_bytes(), &4u32.to_le_bytes(), b"Go\0\0", &[7; 8]];
        put(&mut bytes, 0x400, &note.concat());
        bytes
    }

    /// A file with these bytes, for as long as the first is there.
    fn file(bytes: &[u8]) -> (File, PathBuf) {
        // SAFETY: a new descriptor, which is the file's from then on.
        let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"image".as_ptr(), libc::MFD_CLOEXEC)) };
        file.write_all(bytes).unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        (file, path)
    }

    #[test]
    fn a_static_program_of_gos_is_mapped_as_it_says() {
        let bytes = program(START);
        let (_file, path) = file(&bytes);
        let image = Image::open(&path).expect("it is one");
        let start = START as usize;
        assert_eq!((image.entry, image.headers), (start + 0x500, (start + 64, 3)));
        assert!(image.texts().eq(std::iter::once(start..start + PAGE)));
        assert!(image.is_whoever_executes_it() && image.map().is_some());
        let memory: *const u8 = std::ptr::with_exposed_provenance(start);
        // SAFETY: just mapped, of this size.
        let memory = unsafe { std::slice::from_raw_parts(memory, PAGE + MEMORY as usize) };
        assert_eq!(&memory[..FILE], &bytes);
        assert!(memory[FILE..].iter().all(|byte| *byte == 0));
        assert!(image.map().is_none(), "the addresses are not free any more");
    }

    #[test]
    fn what_is_no_such_program_is_not_carried() {
        let changed = |at: usize, value: &[u8]| {
            let mut bytes = program(START);
            put(&mut bytes, at, value);
            let (_file, path) = file(&bytes);
            Image::open(&path).is_none()
        };
        assert!(changed(16, &[3]), "at addresses of the loader's");
        assert!(changed(18, &[183]), "of another processor");
        assert!(changed(64 + 2 * SEGMENT, &[3]), "with an interpreter");
        assert!(changed(0x400 + 12, b"GNU\0"), "not Go's");
        assert!(changed(64 + 32, &u64::MAX.to_le_bytes()), "longer than memory is");
        assert!(changed(64 + 16, &HIGHEST.to_le_bytes()), "where nobody can map");
        assert!(changed(64 + 8, &1u64.to_le_bytes()), "not at a page");
        assert!(Image::open(Path::new("/proc/self/exe")).is_none(), "this test's own program");
        assert!(Image::open(Path::new("/")).is_none() && Image::open(Path::new("/nothing")).is_none());
    }

    #[test]
    fn a_file_that_is_damaged_anywhere_is_refused_or_read() {
        let whole = program(START);
        for at in 0..64 + 3 * SEGMENT {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let (_file, path) = file(&bytes);
                let _ = Image::open(&path);
            }
        }
        for length in [0, 1, 63, 64, 100, 64 + 3 * SEGMENT, 0x400, 0x410] {
            let (_file, path) = file(&whole[..length]);
            assert!(Image::open(&path).is_none(), "{length}");
        }
    }
}
