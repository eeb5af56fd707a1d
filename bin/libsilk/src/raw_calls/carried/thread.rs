//! The threads of a carried program. One that it makes is made by the C library, and becomes the program's as soon as it runs: with the
//! registers, the stack and the thread-local memory that the program has given it. When that thread ends it is the C library's again, and ends as those do.

use super::record::Record;
use crate::real;
use libc::{c_int, c_long, c_void};
use silk_stream::wake;
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Bytes of the stack on which its calls are answered.
const STACK: usize = 256 << 10;

/// What a new thread has to know.
struct Beginning {
    record: Record,
    /// Where it goes on: behind the call that made it.
    address: usize,
    /// Where its number is waited for: the thread that made it may be gone as soon as it is there.
    number: *const AtomicU32,
}

/// Makes a thread for the program, by whose thread with this `record` `clone` was called, with these flags, this stack and this
/// thread-local memory. Its number, or a negated error.
///
/// # Safety
/// The program keeps the contract of `clone(2)`, and lets no signal arrive that it handles before its new thread does (as Go does).
pub unsafe fn begin(record: &Record, flags: usize, stack: usize, base: usize) -> c_long {
    let own_base = flags & libc::CLONE_SETTLS as usize != 0;
    // SAFETY: the call has left its return address there.
    let address = unsafe { *with_exposed_provenance::<usize>(record.registers.rsp) };
    let record = Record::new(record.registers.on(stack), if own_base { base } else { record.base });
    let number = AtomicU32::new(0);
    let beginning = Box::into_raw(Box::new(Beginning { record, address, number: &raw const number }));
    // SAFETY: it is the new thread's, if there is one.
    unsafe {
        if let Err(errno) = make(beginning) {
            drop(Box::from_raw(beginning));
            return -c_long::from(errno);
        }
    }
    while number.load(SeqCst) == 0 {
        wake::wait(&number, 0, None);
    }
    number.load(SeqCst).into()
}

/// # Safety
/// `beginning` is one, which is the new thread's from now on, but for what it waits for.
unsafe fn make(beginning: *mut Beginning) -> Result<(), c_int> {
    // SAFETY: the C library's calls, with what they want.
    unsafe {
        let mut attributes = std::mem::zeroed();
        let mut thread = 0;
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        let result = libc::pthread_create(&raw mut thread, &raw const attributes, run, beginning.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        if result == 0 { Ok(()) } else { Err(result) }
    }
}

extern "C" fn run(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: it was made for this thread. Its maker waits for the number, and then nobody has to be there to be woken: of the
    // word only the address is asked for.
    unsafe {
        let mut beginning = Box::from_raw(beginning.cast::<Beginning>());
        let told = &*beginning.number;
        told.store(number(), SeqCst);
        wake::wake(told, 1);
        let address = beginning.address;
        beginning.record.become_it(address);
    }
    null_mut()
}

fn number() -> u32 {
    // SAFETY: asks for a number.
    unsafe { real::syscall(libc::SYS_gettid, 0, 0, 0, 0, 0, 0) as u32 }
}

/// Has the C library make what it needs for threads, among it a handler for a signal that is the program's from then on.
pub fn prepare() {
    let _ = std::thread::spawn(|| {}).join();
}

/// Whether the calling thread is the one that the process began with.
pub fn is_first() -> bool {
    number() == std::process::id()
}
