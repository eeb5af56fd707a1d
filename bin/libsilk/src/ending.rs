//! The end of the process by its own will. Its connections are closed before it has ended ([`crate::close::everything`]), and are
//! sockets of Linux's then that nothing was ever connected to: other threads, which run on for that moment, would meet `SIGPIPE`
//! where on Linux they meet nothing. What they call waits instead, until it has ended.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

/// The thread that ends the process; 0: none.
static ENDER: AtomicI32 = AtomicI32::new(0);
/// How long others wait, in so many parts: the end takes less, unless it waits for one of them.
const PARTS: u32 = 100;
const PART: Duration = Duration::from_millis(10);

fn own() -> i32 {
    // SAFETY: asks for a number only.
    unsafe { libc::gettid() }
}

/// This thread ends the process.
pub fn begin() {
    ENDER.store(own(), SeqCst);
}

/// In the child of a fork, which does not end.
pub fn forget() {
    ENDER.store(0, SeqCst);
}

/// Of a call on what was a connection: where another thread ends the process it waits.
#[inline]
pub fn heed() {
    if ENDER.load(SeqCst) != 0 {
        wait();
    }
}

#[cold]
fn wait() {
    for _ in 0..PARTS {
        let ender = ENDER.load(SeqCst);
        if ender == 0 || ender == own() {
            return;
        }
        sleep(PART);
    }
}
