//! Executors that ring event sets are not kept waiting. What is written is an eventfd that the program has as well: it can let
//! its writers wait (`F_SETFL`), and fill it. Then the write ends when the program reads, or never, and
//! with it everybody's packets wait. So executors say that they are at it, and the watchdog interrupts who is for too long.
//! Once that has happened, whichever program it was, executors ring by what cannot let them wait, and costs more.

use crate::sys::{self, Signaller};
use crate::threads::thread_number;
use silk_stream::wake;
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};

/// What an executor says of itself.
#[derive(Debug, Default)]
struct Ringer {
    tid: u32,
    /// Odd while it rings; another number each time.
    turn: AtomicU32,
}

/// The executors; shared by them and the watchdog.
#[derive(Clone, Debug, Default)]
pub struct Ringers {
    all: Arc<Mutex<Vec<Arc<Ringer>>>>,
    /// One of them was kept waiting.
    wary: Arc<AtomicBool>,
}

/// One executor, which may ring; of whom the watchdog does not know, by default.
#[derive(Debug, Default)]
pub struct Ringing {
    own: Arc<Ringer>,
    wary: Arc<AtomicBool>,
    /// What it rings by when it is wary; `None` within: the kernel has no such thing, or no more of it.
    signaller: RefCell<Option<Option<Signaller>>>,
}

impl Ringers {
    /// The calling thread rings event sets from now on.
    pub fn join(&self) -> Ringing {
        let tid = thread_number::own();
        let own = Arc::new(Ringer { tid, turn: AtomicU32::new(0) });
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
        Ringing { own, wary: self.wary.clone(), signaller: RefCell::default() }
    }
}

impl Ringing {
    /// The same, with what it rings by when it is wary: any program may take all that the kernel has of that
    /// (`fs.aio-max-nr`), and then let executors wait again and again.
    pub fn prepared(self) -> Self {
        self.signaller.borrow_mut().get_or_insert_with(|| Signaller::new().ok());
        self
    }

    /// Rings in `ring`, and is interrupted if that takes too long.
    pub fn during<T>(&self, ring: impl FnOnce() -> T) -> T {
        let turn = self.own.turn.load(Relaxed).wrapping_add(1);
        self.own.turn.store(turn, Relaxed);
        let rung = ring();
        self.own.turn.store(turn.wrapping_add(1), Relaxed);
        rung
    }

    /// Makes the eventfd of an event set readable. `false`: it has let this executor wait, which was interrupted; none will wait again.
    pub fn notify(&self, event: BorrowedFd<'_>) -> bool {
        if self.wary.load(Relaxed) && self.signal(event) {
            return true;
        }
        let rung = wake::notify(event);
        if !rung {
            self.wary.store(true, Relaxed);
        }
        rung
    }

    #[cold]
    fn signal(&self, event: BorrowedFd<'_>) -> bool {
        let mut signaller = self.signaller.borrow_mut();
        let signaller = signaller.get_or_insert_with(|| Signaller::new().ok());
        signaller.as_mut().is_some_and(|signaller| signaller.signal(event))
    }
}

/// The watchdog's part.
#[derive(Debug, Default)]
pub struct Patience {
    ringers: Ringers,
    /// What each was at at the last look.
    seen: Vec<u32>,
}

impl Patience {
    /// With these executors.
    pub fn with(ringers: Ringers) -> Self {
        Self { ringers, seen: Vec::new() }
    }

    /// Interrupts who has rung all the time since the last look. Whether somebody rings now.
    ///
    /// Who did not run all that time, for others did, is interrupted in vain, and only sleeps less long the next time.
    pub fn look(&mut self) -> bool {
        let ringers = self.ringers.all.lock().unwrap_or_else(PoisonError::into_inner);
        self.seen.resize(ringers.len(), 0);
        let mut any = false;
        for (ringer, seen) in ringers.iter().zip(&mut self.seen) {
            let turn = ringer.turn.load(Relaxed);
            let rings = turn % 2 == 1;
            if rings && *seen == turn {
                sys::interrupt(ringer.tid);
            }
            *seen = turn;
            any |= rings;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn who_rings_what_lets_it_wait_is_interrupted() {
        sys::may_be_interrupted().unwrap();
        let event = wake::event().unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        assert!(wake::notify(event.as_fd()), "it is full, and does not let anybody wait");
        rustix::fs::fcntl_setfl(&event, rustix::fs::OFlags::empty()).unwrap();
        let ringers = Ringers::default();
        let mut patience = Patience::with(ringers.clone());
        let (told, done) = channel();
        let executor = std::thread::spawn(move || {
            let (ringing, others) = (ringers.join(), ringers.join());
            told.send(ringing.during(|| ringing.notify(event.as_fd()))).unwrap();
            // From then on nobody looks after it, nor after others.
            (0..1000).for_each(|_| assert!(ringing.notify(event.as_fd()) && others.notify(event.as_fd())));
            rustix::fs::fcntl_setfl(&event, rustix::fs::OFlags::NONBLOCK).unwrap();
            let mut count = [0; 8];
            rustix::io::read(&event, &mut count).unwrap();
            assert_eq!(u64::from_ne_bytes(count), u64::MAX, "it has rung, too");
        });
        let rung = loop {
            patience.look();
            if let Ok(rung) = done.recv_timeout(Duration::from_millis(1)) {
                break rung;
            }
        };
        assert!(!rung);
        executor.join().unwrap();
        assert!(!patience.look(), "nobody is at it any more");
    }

    #[test]
    fn who_rings_has_what_it_rings_by_when_it_is_wary_before_that() {
        let ringers = Ringers::default();
        let has = |ringing: &Ringing| ringing.signaller.borrow().as_ref().is_some_and(Option::is_some);
        assert!(!has(&ringers.join()), "who closes and hears rings nobody");
        assert!(has(&ringers.join().prepared()));
    }

    #[test]
    fn who_rings_again_and_again_is_not_interrupted() {
        let ringers = Ringers::default();
        // It would end this process, or be seen below.
        let ringing = ringers.join();
        let mut patience = Patience::with(ringers.clone());
        ringing.during(|| assert!(patience.look()));
        ringing.during(|| {
            let before = patience.seen[0];
            assert!(patience.look());
            assert_ne!(patience.seen[0], before, "it is another time");
        });
        assert!(!patience.look());
    }
}
