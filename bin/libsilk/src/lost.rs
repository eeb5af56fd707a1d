//! What a program is answered once the daemon has gone. Servers that cannot accept mostly try again at once, for ever, and write a line
//! about it each time: 43 gigabytes of them in twenty minutes. So the first answers come at once, enough for each
//! socket to be closed, and further ones after a pause. A thread that ran at a path's priority is an ordinary one from then on.

use crate::{socket, thread};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many come at once, and so many more for each socket that there ever was.
const AT_ONCE: (usize, usize) = (64, 8);
/// How long the others take.
const PAUSE: Duration = Duration::from_millis(100);

static ANSWERS: AtomicUsize = AtomicUsize::new(0);

/// To be called with each answer that the daemon's death is the reason of.
#[cold]
pub fn answer() {
    thread::step_down();
    let (some, each) = AT_ONCE;
    if ANSWERS.fetch_add(1, Relaxed) > some + each * socket::used().len() {
        std::thread::sleep(PAUSE);
    }
}
