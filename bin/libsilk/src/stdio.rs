//! Streams of the C library's stdio that are made of a socket: by `fdopen`, or because it became the descriptor of
//! standard input, output or error, as a program's that inetd starts. The C library reads and writes what is below a stream by calls of
//! its own, which do not pass here. So such a stream gets functions of ours instead (`fopencookie(3)`), and is told apart by its
//! address when its descriptor is asked for (`fileno`).

use crate::close;
use crate::errno;
use crate::exports::{read, write};
use crate::lock::{Guarded, Lock};
use crate::real;
use crate::table::{self, Entry};
use libc::{FILE, c_char, c_int, c_void, size_t, ssize_t};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

/// The functions of a stream, as `fopencookie(3)` takes them.
#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
    /// Which streams are the program's standard ones; the C library lets everybody write there.
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

/// Streams that are made of a socket, by address, with their descriptors.
static STREAMS: Guarded<Vec<(usize, c_int)>> = Guarded::new(Vec::new());
/// Whether there has ever been one: programs without need not look further, nor take the lock in a signal handler.
static ANY: AtomicBool = AtomicBool::new(false);

/// To be held across a fork.
pub fn lock() -> &'static Lock {
    STREAMS.bare()
}

/// `fdopen(3)`.
///
/// # Safety
/// As the C library's: `mode` is a C string.
pub unsafe fn open(fd: c_int, mode: *const c_char) -> *mut FILE {
    let Some(Entry::Socket(_)) = table::entry(fd) else {
        // SAFETY: as the caller promises.
        return unsafe { real::fdopen(fd, mode) } as *mut FILE;
    };
    let functions = Functions { read: Some(fill), write: Some(drain), seek: Some(seek), close: Some(end) };
    // A descriptor is no address, and nobody follows it as one.
    let cookie = fd as usize as *mut c_void;
    // SAFETY: the functions take such a cookie and live as long as the process; the mode as the caller promises.
    let stream = unsafe { fopencookie(cookie, mode, functions) };
    if !stream.is_null() {
        let mut streams = STREAMS.lock();
        // One that was closed in another way than by `fclose` was there before.
        streams.retain(|(at, _)| *at != stream as usize);
        streams.push((stream as usize, fd));
        ANY.store(true, SeqCst);
    }
    stream
}

/// The standard stream of this descriptor, if it is one's, becomes one of ours where that is a socket's now. It stays so: what its
/// functions call serves whatever else the descriptor becomes.
pub fn take_over(fd: c_int) {
    if !(0..=2).contains(&fd) || !matches!(table::entry(fd), Some(Entry::Socket(_))) {
        return;
    }
    // SAFETY: the program's own threads change these words only while no other uses the stream, which the program must see to, as
    // here: a descriptor below a stream in use is no more replaced than the stream is.
    unsafe {
        let (place, mode) = match fd {
            0 => (&raw mut stdin, c"r"),
            1 => (&raw mut stdout, c"w"),
            _ => (&raw mut stderr, c"w"),
        };
        if descriptor(*place).is_some() {
            return;
        }
        let stream = open(fd, mode.as_ptr());
        if stream.is_null() {
            return;
        }
        if fd == 2 {
            libc::setvbuf(stream, std::ptr::null_mut(), libc::_IONBF, 0);
        }
        *place = stream;
    }
}

/// The descriptor of a stream that is made of a socket.
pub fn descriptor(stream: *mut FILE) -> Option<c_int> {
    if !ANY.load(SeqCst) {
        return None;
    }
    STREAMS.lock().iter().find(|(at, _)| *at == stream as usize).map(|(_, fd)| *fd)
}

/// A stream ends: its address may soon be another's.
pub fn forget(stream: *mut FILE) {
    if ANY.load(SeqCst) {
        STREAMS.lock().retain(|(at, _)| *at != stream as usize);
    }
}

/// The program ends: what it has written to streams goes to their sockets while there are any. The C library does the same later.
pub fn flush() {
    let streams: Vec<usize> = STREAMS.lock().iter().map(|(at, _)| *at).collect();
    for stream in streams {
        let stream = stream as *mut FILE;
        // SAFETY: it has not been closed, or it would not be known. One that another thread is reading or writing is left alone, as the C
        // library does.
        unsafe {
            if ftrylockfile(stream) == 0 {
                fflush_unlocked(stream);
                funlockfile(stream);
            }
        }
    }
}

fn descriptor_in(cookie: *mut c_void) -> c_int {
    cookie as usize as c_int
}

unsafe extern "C" fn fill(cookie: *mut c_void, buffer: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library calls it with a buffer of this length.
    unsafe { read(descriptor_in(cookie), buffer.cast(), len) }
}

/// Writes all of it, unless that fails: what could be written then.
unsafe extern "C" fn drain(cookie: *mut c_void, buffer: *const c_char, len: size_t) -> ssize_t {
    let mut written = 0;
    while written < len {
        // SAFETY: the C library calls it with a buffer of this length, of which so much is left.
        let more = unsafe { write(descriptor_in(cookie), buffer.add(written).cast(), len - written) };
        match usize::try_from(more) {
            Ok(more) if more > 0 => written += more,
            _ => break,
        }
    }
    written as ssize_t
}

/// A socket has no place.
unsafe extern "C" fn seek(_: *mut c_void, _: *mut i64, _: c_int) -> c_int {
    errno::set(libc::ESPIPE);
    -1
}

unsafe extern "C" fn end(cookie: *mut c_void) -> c_int {
    let errno = errno::last();
    // SAFETY: a stream owns its descriptor.
    let closed = unsafe { close::close(descriptor_in(cookie)) };
    if closed == 0 {
        errno::set(errno);
    }
    closed
}
