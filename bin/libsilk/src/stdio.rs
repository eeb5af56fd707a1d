//! Streams of the C library's stdio that are made of a socket: by `fdopen`, or because it became the descriptor of
//! standard input, output or error, as a program's that inetd starts. The C library reads and writes what is below a stream by calls of
//! its own, which do not pass here. So such a stream gets functions of ours instead (`fopencookie(3)`), and is told apart by its
//! address when its descriptor is asked for (`fileno`).

use crate::close;
use crate::errno;
use crate::exports::{read, write};
use crate::lock::{Guarded, Lock};
use crate::real;
use crate::succession::Legacy;
use crate::table::{self, Entry};
use libc::{FILE, c_char, c_int, c_void, size_t, ssize_t};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};

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
    /// The streams that these are at first.
    static mut _IO_2_1_stdin_: FILE;
    static mut _IO_2_1_stdout_: FILE;
    static mut _IO_2_1_stderr_: FILE;
}

/// A stream that is made of a socket.
struct Stream {
    at: usize,
    /// Its descriptor, which its functions are given as well; -1 once it has none.
    number: Arc<AtomicI32>,
    /// The buffer that it was given here.
    buffer: Vec<u8>,
}

static STREAMS: Guarded<Vec<Stream>> = Guarded::new(Vec::new());
/// Whether there has ever been one: programs without need not look further, nor take the lock in a signal handler.
static ANY: AtomicBool = AtomicBool::new(false);

/// To be held across a fork.
pub fn lock() -> &'static Lock {
    STREAMS.bare()
}

/// The streams that were put here in the places of the standard ones.
static PUT: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

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
    let number = Arc::new(AtomicI32::new(fd));
    let cookie = Arc::into_raw(number.clone());
    // SAFETY: the functions take such a cookie and live as long as the process; the mode as the caller promises.
    let stream = unsafe { fopencookie(cookie.cast_mut().cast(), mode, functions) };
    if stream.is_null() {
        // SAFETY: it was made above, and nobody has it.
        drop(unsafe { Arc::from_raw(cookie) });
        return stream;
    }
    let mut streams = STREAMS.lock();
    // One that was closed in another way than by `fclose` was there before.
    streams.retain(|known| known.at != stream as usize);
    streams.push(Stream { at: stream as usize, number, buffer: Vec::new() });
    ANY.store(true, SeqCst);
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
        let (place, first, put) = standard(fd);
        // What the program has put there may be closed, or have another descriptor: nobody can ask it.
        if descriptor(*place).is_some() || (*place != first && *place as usize != put.load(SeqCst)) {
            return;
        }
        let stream = open(fd, if fd == 0 { c"r" } else { c"w" }.as_ptr());
        if stream.is_null() {
            return;
        }
        let legacy = if *place == first { Legacy::take(first) } else { Legacy::default() };
        let buffer = legacy.give(stream, fd == 2);
        if let Some(known) = STREAMS.lock().iter_mut().find(|known| known.at == stream as usize) {
            known.buffer = buffer;
        }
        *place = stream;
        put.store(stream as usize, SeqCst);
    }
}

/// Where the program finds the standard stream of this descriptor, the stream that is there at first, and which one we have put there.
fn standard(fd: c_int) -> (*mut *mut FILE, *mut FILE, &'static AtomicUsize) {
    let [input, output, error] = &PUT;
    match fd {
        0 => (&raw mut stdin, &raw mut _IO_2_1_stdin_, input),
        1 => (&raw mut stdout, &raw mut _IO_2_1_stdout_, output),
        _ => (&raw mut stderr, &raw mut _IO_2_1_stderr_, error),
    }
}

/// The descriptor of a stream that is made of a socket.
pub fn descriptor(stream: *mut FILE) -> Option<c_int> {
    if !ANY.load(SeqCst) {
        return None;
    }
    let number = STREAMS.lock().iter().find(|known| known.at == stream as usize)?.number.load(SeqCst);
    if number < 0 {
        errno::set(libc::EBADF);
    }
    Some(number)
}

/// A stream ends: its address may soon be another's. The answer must outlive it: its buffer.
pub fn forget(stream: *mut FILE) -> Option<Vec<u8>> {
    if !ANY.load(SeqCst) {
        return None;
    }
    let mut streams = STREAMS.lock();
    let at = streams.iter().position(|known| known.at == stream as usize)?;
    Some(streams.swap_remove(at).buffer)
}

/// A stream of the C library's own with this descriptor, to take the place of one that is made of a socket: the first one, where
/// that is a standard stream. Null if there is none.
///
/// # Safety
/// The descriptor is one of the kernel's alone.
pub unsafe fn plain(stream: *mut FILE, fd: c_int) -> *mut FILE {
    // SAFETY: as for `take_over`.
    unsafe {
        let (place, first, _) = standard(fd);
        if *place == stream && real::fileno(first as usize) == fd {
            return first;
        }
        // Whatever it may be used for; a file that was open for writing alone, for that.
        let modes = [c"r", c"w"].into_iter();
        modes
            .map(|mode| real::fdopen(fd, mode.as_ptr()) as *mut FILE)
            .find(|made| !made.is_null())
            .unwrap_or(ptr::null_mut())
    }
}

/// `new` takes the place of `old`, whose functions serve this descriptor from now on.
pub fn supersede(old: *mut FILE, new: *mut FILE, fd: c_int) {
    STREAMS
        .lock()
        .iter()
        .filter(|known| known.at == old as usize)
        .for_each(|known| known.number.store(fd, SeqCst));
    for number in 0..=2 {
        let (place, _, put) = standard(number);
        // SAFETY: as for `take_over`.
        unsafe {
            if *place == old && !new.is_null() {
                *place = new;
                put.store(new as usize, SeqCst);
            }
        }
    }
}

/// The program ends: what it has written to streams goes to their sockets while there are any. The C library does the same later.
pub fn flush() {
    let streams: Vec<usize> = STREAMS.lock().iter().map(|known| known.at).collect();
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

/// What the functions of a stream are given.
///
/// # Safety
/// `cookie` is the one of a stream that has not been closed.
unsafe fn descriptor_in(cookie: *mut c_void) -> c_int {
    // SAFETY: it holds a share of the number until `end`.
    unsafe { &*cookie.cast::<AtomicI32>() }.load(SeqCst)
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

/// A socket has no place, but what the descriptor becomes later may have one.
unsafe extern "C" fn seek(cookie: *mut c_void, place: *mut i64, from: c_int) -> c_int {
    // SAFETY: the C library calls it with a place to move to, and to be told where that is.
    unsafe {
        let there = libc::lseek64(descriptor_in(cookie), *place, from);
        if there < 0 {
            return -1;
        }
        *place = there;
    }
    0
}

unsafe extern "C" fn end(cookie: *mut c_void) -> c_int {
    let errno = errno::last();
    // SAFETY: the stream's share, which it gives up here.
    let number = unsafe { Arc::from_raw(cookie.cast_const().cast::<AtomicI32>()) };
    // SAFETY: a stream owns its descriptor.
    let closed = unsafe { close::close(number.load(SeqCst)) };
    if closed == 0 {
        errno::set(errno);
    }
    closed
}
