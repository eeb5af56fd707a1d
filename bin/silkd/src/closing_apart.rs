//! What programs have sent, and what has been sent to the daemon by those it hangs up on, is closed by a thread of its own: whoever
//! is the last to have a socket may wait there for its peer, as long as the program says (`SO_LINGER`), and with the
//! control thread all programs would wait. The watchdog interrupts who waits for long.

use crate::ringing::Ringers;
use silk_stream::mail::{Nothing, Sender, mail};
use std::io;
use std::os::fd::OwnedFd;
use std::thread::{self, Builder, Thread};

/// The way to that thread.
pub struct ClosingApart {
    descriptors: Sender<OwnedFd>,
    thread: Thread,
}

impl ClosingApart {
    /// Begins it; the watchdog knows of it by `ringers`.
    ///
    /// # Errors
    /// The kernel has no thread for it.
    pub fn begin(ringers: Ringers) -> io::Result<Self> {
        let (descriptors, mut given) = mail::<OwnedFd>();
        let run = move || {
            let closing = ringers.join();
            loop {
                match given.receive() {
                    Ok(descriptor) => closing.during(|| drop(descriptor)),
                    Err(Nothing::Yet) => thread::park(),
                    Err(Nothing::Ever) => return,
                }
            }
        };
        let thread = Builder::new().name("silk-closing".into()).spawn(run)?.thread().clone();
        Ok(Self { descriptors, thread })
    }

    /// Has it closed.
    pub fn close(&self, descriptor: OwnedFd) {
        let _ = self.descriptors.send(descriptor);
        self.thread.unpark();
    }
}
