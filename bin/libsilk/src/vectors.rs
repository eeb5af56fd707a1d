//! The program's buffers: a list of `iovec`s, copied to and from rings.

use crate::errno::Answer;
use libc::iovec;
use silk_stream::Bytes;
use std::ffi::{c_int, c_void};
use std::slice;

/// `IOV_MAX`.
pub const MOST: usize = 1024;

/// A list of buffers. As in Linux they may be used while the call that got them lasts.
#[derive(Clone, Copy)]
pub struct Vectors<'a>(&'a [iovec]);

/// One buffer as a list.
pub fn single(base: *const c_void, len: usize) -> [iovec; 1] {
    [iovec { iov_base: base.cast_mut(), iov_len: len }]
}

impl<'a> Vectors<'a> {
    /// # Safety
    /// Every entry must name memory that may be read, and written if it is to be filled, for
    /// as long as the list is used.
    pub unsafe fn new(list: &'a [iovec]) -> Self {
        Self(list)
    }

    /// The list at `start`.
    ///
    /// # Errors
    /// `EINVAL` for a senseless count or length, `EFAULT` without a list.
    ///
    /// # Safety
    /// As [`Vectors::new`], and `start` must point to `count` entries or be null.
    pub unsafe fn at(start: *const iovec, count: c_int) -> Answer<Self> {
        let count = usize::try_from(count).ok().filter(|n| *n <= MOST).ok_or(libc::EINVAL)?;
        match (count, start.is_null()) {
            (0, _) => Ok(Self(&[])),
            (_, true) => Err(libc::EFAULT),
            _ => {
                // SAFETY: the caller vouches for `count` entries.
                let list = unsafe { slice::from_raw_parts(start, count) };
                let fits = list.iter().all(|one| isize::try_from(one.iov_len).is_ok());
                fits.then_some(Self(list)).ok_or(libc::EINVAL)
            }
        }
    }

    /// Bytes in all.
    pub fn total(&self) -> usize {
        self.0.iter().fold(0usize, |sum, one| sum.saturating_add(one.iov_len)).min(isize::MAX as usize)
    }

    /// The pieces of bytes `skip..skip + len`: where they begin, and how long they are.
    pub fn pieces(&self, mut skip: usize, mut len: usize) -> impl Iterator<Item = (*mut u8, usize)> {
        self.0.iter().filter_map(move |one| {
            let jump = skip.min(one.iov_len);
            skip -= jump;
            let here = (one.iov_len - jump).min(len);
            len -= here;
            (here > 0).then(|| (one.iov_base.cast::<u8>().wrapping_add(jump), here))
        })
    }

    /// Fills bytes `skip..skip + len` of the buffers from the ring at `at`.
    pub fn fill(&self, skip: usize, len: usize, ring: Bytes<'_>, mut at: u32) {
        for (start, len) in self.pieces(skip, len) {
            // SAFETY: `new`'s caller vouches for the buffer; the ring never overlaps it.
            ring.read(at, unsafe { slice::from_raw_parts_mut(start, len) });
            at = at.wrapping_add(len as u32);
        }
    }

    /// Copies the head of `bytes` into the buffers, as far as they go; how many bytes that is.
    pub fn put(&self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        for (start, len) in self.pieces(0, bytes.len()) {
            let (head, tail) = rest.split_at(len.min(rest.len()));
            // SAFETY: `new`'s caller vouches for the buffer.
            unsafe { slice::from_raw_parts_mut(start, len) }.copy_from_slice(head);
            rest = tail;
        }
        bytes.len() - rest.len()
    }

    /// Copies bytes `skip..skip + len` of the buffers into the ring at `at`, but for those that
    /// `instead` has put there otherwise: it is told of each piece, and says how many of its bytes.
    pub fn drain(
        &self,
        skip: usize,
        len: usize,
        ring: Bytes<'_>,
        mut at: u32,
        instead: impl Fn(u32, *mut u8, usize) -> usize,
    ) {
        for (start, len) in self.pieces(skip, len) {
            let done = instead(at, start, len).min(len);
            // SAFETY: `new`'s caller vouches for the buffer.
            let rest = unsafe { slice::from_raw_parts(start.add(done), len - done) };
            ring.write(at.wrapping_add(done as u32), rest);
            at = at.wrapping_add(len as u32);
        }
    }

    /// The buffers as slices, for a datagram that goes out whole.
    pub fn slices(&self) -> Vec<&'a [u8]> {
        // SAFETY: `new`'s caller vouches for the buffers.
        self.pieces(0, usize::MAX).map(|(start, len)| unsafe { slice::from_raw_parts(start, len) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_skip_and_stop_across_buffers() {
        let parts = [b"abc".as_slice(), b"", b"defg"];
        let list: Vec<_> = parts
            .iter()
            .map(|p| iovec { iov_base: p.as_ptr().cast_mut().cast(), iov_len: p.len() })
            .collect();
        // SAFETY: the buffers are only read.
        let vectors = unsafe { Vectors::new(&list) };
        assert_eq!(vectors.total(), 7);
        let lengths: Vec<_> = vectors.pieces(2, 3).map(|(_, len)| len).collect();
        assert_eq!(lengths, [1, 2]);
        assert_eq!(vectors.slices().concat(), b"abcdefg");
    }

    #[test]
    fn senseless_counts_are_refused() {
        // SAFETY: null is allowed; nothing is read.
        unsafe {
            assert_eq!(Vectors::at(std::ptr::null(), -1).err(), Some(libc::EINVAL));
            assert_eq!(Vectors::at(std::ptr::null(), 1025).err(), Some(libc::EINVAL));
            assert_eq!(Vectors::at(std::ptr::null(), 1).err(), Some(libc::EFAULT));
            assert_eq!(Vectors::at(std::ptr::null(), 0).map(|v| v.total()), Ok(0));
        }
    }
}
