//! Files that were opened with `O_DIRECT`. Past its cache Linux reads whole blocks, into memory that begins where a
//! block may, which what is free of a send ring hardly ever is. So as much is read as Linux's `sendfile` reads at once
//! (its pipe holds no more), to pages of its own, and goes into the ring from there, as there is room. What Linux
//! refuses, to begin in the middle of a block, say, is refused here, too.

use crate::errno::{Answer, check_size};
use crate::real;
use libc::off_t;
use silk_stream::Bytes;
use std::ffi::c_int;
use std::ops::Range;

/// What Linux's pipe holds.
const MOST: usize = 64 << 10;

/// Whether a file is to be read so.
pub fn is_direct(file: c_int) -> bool {
    // SAFETY: asks about a number only.
    let flags = unsafe { real::fcntl(file, libc::F_GETFL, 0) };
    flags >= 0 && flags & libc::O_DIRECT != 0
}

/// What has been read of such a file, and is not in the ring yet.
pub struct Ahead {
    /// So long a piece is mapped for itself ([`crate::heap`]): it begins with a page.
    memory: Vec<u8>,
    left: Range<usize>,
}

impl Ahead {
    /// Nothing, which takes no memory.
    pub const fn new() -> Self {
        Self { memory: Vec::new(), left: 0..0 }
    }

    /// Whether all of it is in the ring.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Reads from `at` on, at most `count` bytes, in the place of what there was. At the file's end there is nothing.
    ///
    /// # Errors
    /// As `pread(2)`.
    pub fn read(&mut self, file: c_int, at: off_t, count: usize) -> Answer<()> {
        self.left = 0..0;
        self.memory.resize(MOST, 0);
        // SAFETY: the memory has so many bytes.
        let got = unsafe { real::pread(file, self.memory.as_mut_ptr().cast(), count.min(MOST), at) };
        self.left = 0..check_size(got)?;
        Ok(())
    }

    /// Puts at most `room` bytes of it into a ring, at an index: how many there were.
    pub fn put(&mut self, ring: Bytes<'_>, at: u32, room: usize) -> usize {
        let bytes = self.memory.get(self.left.clone()).unwrap_or_default();
        let bytes = bytes.get(..room).unwrap_or(bytes);
        ring.write(at, bytes);
        self.left.start += bytes.len();
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    /// A file that is gone from its folder, of 100 000 bytes.
    fn file() -> File {
        let path = std::env::temp_dir().join(format!("libsilk-direct-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (&file).write_all(&(0..100_000u32).map(|n| (n % 251) as u8).collect::<Vec<_>>()).unwrap();
        file
    }

    #[test]
    fn as_much_is_read_as_linux_reads_at_once_to_the_begin_of_a_page() {
        let (file, mut ahead) = (file(), Ahead::new());
        assert!(ahead.is_empty() && !is_direct(file.as_raw_fd()) && !is_direct(-1));
        let cases = [(0, 1 << 20, 65_536), (65_536, 1 << 20, 34_464), (4096, 512, 512), (100_000, 512, 0)];
        for (at, count, there) in cases {
            assert_eq!(ahead.read(file.as_raw_fd(), at, count), Ok(()));
            assert_eq!((ahead.left.clone(), ahead.memory.as_ptr().addr() % 4096), (0..there, 0));
            let contents = (0..there).map(|n| ((at as usize + n) % 251) as u8);
            assert!(ahead.memory.iter().take(there).copied().eq(contents), "from {at} on");
        }
        assert!(ahead.is_empty());
        assert_eq!(ahead.read(-1, 0, 512), Err(libc::EBADF));
        assert!(ahead.is_empty());
    }
}
