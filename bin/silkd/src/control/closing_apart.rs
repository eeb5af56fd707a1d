//! What programs have sent, and what has been sent to the daemon by those it hangs up on, is closed by a thread of its own: whoever
//! is the last to have a socket may wait there for its peer, as long as the program says (`SO_LINGER`), and with the
//! control thread all programs would wait. The watchdog interrupts who waits for long.

use crate::threads::ringing::Ringers;
use silk_stream::mail::{Nothing, Sender, mail};
use silk_stream::wake;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::{self, Builder, Thread};
use std::time::{Duration, Instant};

/// More descriptors are not to wait there.
const MOST: usize = 1024;
/// At one that cannot be interrupted for so long it waits for ever, maybe: then nobody waits for that thread.
const STUCK: Duration = Duration::from_secs(2);

/// The way to that thread.
pub struct ClosingApart {
    descriptors: Sender<OwnedFd>,
    thread: Thread,
    crowd: Arc<Crowd>,
    /// How many were closed when this was looked at last while there were too many, and since when.
    seen: Cell<Option<(usize, Instant)>>,
}

/// What waits there.
#[derive(Default)]
struct Crowd {
    waiting: AtomicUsize,
    closed: AtomicUsize,
    /// The control thread is to be told when there is room again.
    is_awaited: AtomicBool,
}

impl ClosingApart {
    /// Begins it; the watchdog knows of it by `ringers`, and `event` wakes the control thread.
    ///
    /// # Errors
    /// The kernel has no thread for it.
    pub fn begin(ringers: Ringers, event: Arc<OwnedFd>) -> io::Result<Self> {
        let (descriptors, mut given) = mail::<OwnedFd>();
        let crowd = Arc::new(Crowd::default());
        let left = crowd.clone();
        let run = move || {
            let closing = ringers.join();
            loop {
                match given.receive() {
                    Ok(descriptor) => {
                        closing.during(|| drop(descriptor));
                        left.closed.fetch_add(1, SeqCst);
                        if left.waiting.fetch_sub(1, SeqCst) <= MOST + 1
                            && left.is_awaited.swap(false, SeqCst)
                        {
                            wake::notify(event.as_fd());
                        }
                    }
                    Err(Nothing::Yet) => thread::park(),
                    Err(Nothing::Ever) => return,
                }
            }
        };
        let thread = Builder::new().name("silk-closing".into()).spawn(run)?.thread().clone();
        Ok(Self { descriptors, thread, crowd, seen: Cell::default() })
    }

    /// Whether so much waits there that not everybody is to send more. When that is over the control thread is woken.
    pub fn is_crowded(&self) -> bool {
        let is_so = || self.crowd.waiting.load(SeqCst) > MOST;
        if !is_so() {
            return false;
        }
        self.crowd.is_awaited.store(true, SeqCst);
        let (closed, now) = (self.crowd.closed.load(SeqCst), Instant::now());
        let (_, since) = self.seen.get().filter(|(seen, _)| *seen == closed).unwrap_or((closed, now));
        self.seen.set(Some((closed, since)));
        // It may be over just now.
        is_so() && now.duration_since(since) < STUCK
    }

    /// The control thread is woken when something more is closed. `false`: there is nothing.
    pub fn calls_later(&self) -> bool {
        self.crowd.is_awaited.store(true, SeqCst);
        self.crowd.waiting.load(SeqCst) > 0
    }

    /// Has it closed.
    pub fn close(&self, descriptor: OwnedFd) {
        self.crowd.waiting.fetch_add(1, SeqCst);
        let _ = self.descriptors.send(descriptor);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn many_are_a_crowd_until_they_are_closed_or_one_of_them_cannot_be() {
        let (event, ringers) = (Arc::new(wake::event().unwrap()), Ringers::default());
        let closing = ClosingApart::begin(ringers, event).unwrap();
        let fill = || (0..=MOST).for_each(|_| closing.close(File::open("/dev/null").unwrap().into()));
        assert!(!closing.is_crowded());
        // Nobody interrupts it here, and the peer takes nothing.
        let (ours, peer) = lingering();
        closing.close(ours.into());
        fill();
        assert!(closing.is_crowded());
        while closing.is_crowded() {
            thread::yield_now();
        }
        assert!(closing.crowd.waiting.load(SeqCst) > MOST, "it was not waited for");
        drop(peer);
        while closing.crowd.waiting.load(SeqCst) > 0 {
            thread::yield_now();
        }
        fill();
        while closing.is_crowded() {
            thread::yield_now();
        }
        assert!(closing.crowd.waiting.load(SeqCst) <= MOST);
    }

    /// A connection that waits for its peer when it is closed, and the peer.
    fn lingering() -> (std::net::TcpStream, std::net::TcpStream) {
        use std::io::Write;
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = std::net::TcpStream::connect(listening.local_addr().unwrap()).unwrap();
        let peer = listening.accept().unwrap().0;
        ours.set_nonblocking(true).unwrap();
        while (&ours).write(&[0; 65_536]).is_ok() {}
        rustix::net::sockopt::set_socket_linger(&ours, Some(Duration::from_secs(3600))).unwrap();
        (ours, peer)
    }
}
