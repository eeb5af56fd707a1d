//! What a stream of stdio takes over from the one whose place it takes. On Linux a standard stream whose number becomes a
//! socket's is the same stream as before: how it buffers, what was written to it and has not left it, and what it has read
//! and nobody has had yet do not change.
//!
//! Of the C library's own record of a stream only what it has promised programs is used: its first words, which
//! `getc_unlocked` and `putc_unlocked` of its headers are compiled to, and what gnulib knows of them.

use libc::{FILE, c_char, c_int, size_t};
use std::ptr;

/// The begin of `struct _IO_FILE` (`bits/types/struct_FILE.h`).
#[repr(C)]
struct Head {
    flags: c_int,
    read_next: *const c_char,
    read_end: *const c_char,
    read_base: *const c_char,
    write_base: *const c_char,
    write_next: *const c_char,
    write_end: *const c_char,
    buffer: *const c_char,
    buffer_end: *const c_char,
    /// Where the rest of what was read is while characters are read again that were pushed back.
    saved: *const c_char,
    pushed_back: *const c_char,
    saved_end: *const c_char,
}

/// In `flags`: what was pushed back is being read (`_IO_IN_BACKUP`).
const AGAIN: c_int = 0x100;

unsafe extern "C" {
    fn __flbf(stream: *mut FILE) -> c_int;
    fn __fbufsize(stream: *mut FILE) -> size_t;
    fn __fpending(stream: *mut FILE) -> size_t;
    /// Forgets what is in a stream's buffer (`stdio_ext.h`).
    pub fn __fpurge(stream: *mut FILE);
    fn fwide(stream: *mut FILE, mode: c_int) -> c_int;
}

/// What is to be taken over.
#[derive(Default)]
pub struct Legacy {
    /// As `setvbuf` takes it; `None`: nothing was said of it and nothing buffered yet.
    mode: Option<c_int>,
    size: usize,
    unwritten: Vec<u8>,
    ahead: Vec<u8>,
}

impl Legacy {
    /// All of it is taken from a stream, which keeps nothing: it would go astray when the program ends.
    ///
    /// # Safety
    /// `stream` is a stream that nobody else is using.
    pub unsafe fn take(stream: *mut FILE) -> Self {
        // SAFETY: as the caller promises, here and below.
        unsafe {
            let size = __fbufsize(stream);
            let mode = match size {
                _ if __flbf(stream) != 0 => Some(libc::_IOLBF),
                0 => None,
                1 => Some(libc::_IONBF),
                _ => Some(libc::_IOFBF),
            };
            let legacy = Self { mode, size, unwritten: unwritten(stream), ahead: ahead(stream) };
            __fpurge(stream);
            legacy
        }
    }

    /// Gives it to a stream that has done nothing yet, unbuffered where nothing was said and `unbuffered`. The answer is its
    /// buffer, if it has one of this size now, which must live as long as it.
    ///
    /// # Safety
    /// As for [`Legacy::take`].
    pub unsafe fn give(&self, stream: *mut FILE, unbuffered: bool) -> Vec<u8> {
        let mode = self.mode.or(unbuffered.then_some(libc::_IONBF));
        // With room for one more than was written: a buffer that is full is not kept, and nobody may wait here.
        let size = if self.size > 1 { self.size.max(self.unwritten.len() + 1) } else { 0 };
        let mut buffer = vec![0; size];
        let at = if size > 0 { buffer.as_mut_ptr().cast() } else { ptr::null_mut() };
        // SAFETY: the buffer is as long as said and the caller keeps it; the stream as the caller promises.
        unsafe {
            if let Some(mode) = mode {
                libc::setvbuf(stream, at, mode, size);
            }
            libc::fwrite(self.unwritten.as_ptr().cast(), 1, self.unwritten.len(), stream);
            for &byte in self.ahead.iter().rev() {
                libc::ungetc(byte.into(), stream);
            }
        }
        buffer
    }
}

/// What was written to a stream and has not left it. Of one of wide characters that cannot be told.
unsafe fn unwritten(stream: *mut FILE) -> Vec<u8> {
    // SAFETY: as of `Legacy::take`; so much lies before the place where the next character goes.
    unsafe {
        let count = if fwide(stream, 0) > 0 { 0 } else { __fpending(stream) };
        if count == 0 {
            return Vec::new();
        }
        let end = (*stream.cast::<Head>()).write_next;
        std::slice::from_raw_parts(end.sub(count).cast(), count).to_vec()
    }
}

/// What a stream has read and nobody has had. Of one of wide characters that cannot be told.
unsafe fn ahead(stream: *mut FILE) -> Vec<u8> {
    // SAFETY: as of `Legacy::take`; the two pairs are begin and end of memory of the stream's.
    unsafe {
        if fwide(stream, 0) > 0 {
            return Vec::new();
        }
        let head = &*stream.cast::<Head>();
        let mut all = between(head.read_next, head.read_end);
        if head.flags & AGAIN != 0 {
            all.extend(between(head.saved, head.saved_end));
        }
        all
    }
}

unsafe fn between(from: *const c_char, to: *const c_char) -> Vec<u8> {
    let count = (to as usize).saturating_sub(from as usize);
    if from.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's pointers are begin and end of the same memory.
    unsafe { std::slice::from_raw_parts(from.cast(), count) }.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of its own for each stream, with this in it.
    fn stream(text: &str) -> *mut FILE {
        // SAFETY: the text is as long as said.
        unsafe {
            let stream = libc::tmpfile();
            libc::fwrite(text.as_ptr().cast(), 1, text.len(), stream);
            libc::rewind(stream);
            stream
        }
    }

    fn passed_on(old: *mut FILE, unbuffered: bool) -> (*mut FILE, Vec<u8>) {
        let new = stream("");
        // SAFETY: both are open and used here alone.
        let buffer = unsafe { Legacy::take(old).give(new, unbuffered) };
        (new, buffer)
    }

    #[test]
    fn what_was_written_is_written_to_the_other_in_the_same_mode() {
        let old = stream("");
        // SAFETY: streams of ours; the buffer lives until the end.
        unsafe {
            let mut buffer = [0; 300];
            libc::setvbuf(old, buffer.as_mut_ptr(), libc::_IOLBF, buffer.len());
            libc::fputs(c"text".as_ptr(), old);
            let (new, _buffer) = passed_on(old, true);
            assert_eq!(
                (__fpending(old), __fpending(new), __flbf(new) != 0, __fbufsize(new)),
                (0, 4, true, 300)
            );
            assert_eq!(unwritten(new), b"text");
            libc::fclose(new);
            libc::fclose(old);
        }
    }

    #[test]
    fn what_was_read_ahead_is_read_from_the_other() {
        let old = stream("abcdef");
        // SAFETY: streams of ours.
        unsafe {
            assert_eq!(libc::fgetc(old), i32::from(b'a'));
            libc::ungetc(b'<'.into(), old);
            let (new, _buffer) = passed_on(old, false);
            assert!(ahead(old).is_empty());
            let read: Vec<u8> = (0..6).map(|_| libc::fgetc(new) as u8).collect();
            assert_eq!((read.as_slice(), libc::fgetc(new)), (b"<bcdef".as_slice(), libc::EOF));
            libc::fclose(new);
            libc::fclose(old);
        }
    }

    #[test]
    fn a_stream_of_which_nothing_is_known_is_as_the_number_wants_it() {
        // SAFETY: streams of ours.
        unsafe {
            for (unbuffered, size) in [(true, 1), (false, 0)] {
                let old = libc::tmpfile();
                let new = libc::tmpfile();
                assert!(Legacy::take(old).give(new, unbuffered).is_empty());
                assert_eq!(__fbufsize(new), size);
                libc::fclose(new);
                libc::fclose(old);
            }
        }
    }
}
