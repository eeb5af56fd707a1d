//! A sleep that begins by fetching packets. Who expects some within microseconds does the device's receive work itself while it waits
//! (NAPI busy polling): no receive thread has to be woken that then wakes it, which is two switches and two wake-ups for each packet.
//!
//! A socket's own busy polling needs a driver that tells which NAPI belongs to a queue, and veth does not; `io_uring` takes
//! the NAPI's number (Linux 6.13). What it is worth, and when it is worth nothing: `docs/design/anticipation.md`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys::{Napi, Uring};

/// Operations on the list of NAPIs that are polled.
const ADD: u8 = 1;
const REMOVE: u8 = 2;

/// Descriptors that a thread sleeps on, fetching packets for a moment before. Only the thread that made it can use it.
pub struct BusyPoll {
    ring: Uring,
    watched: Vec<Watched>,
    /// The NAPI that is polled.
    napi: u32,
}

struct Watched {
    fd: OwnedFd,
    is_ring: bool,
    armed: bool,
}

impl BusyPoll {
    /// Of `rings`, which whoever uses this reads until they are empty, and `events`, which nobody ever reads: what counts
    /// is that they are written to. Each sleep begins by polling `napi` for `patience`, where that has nothing else to do.
    ///
    /// # Errors
    /// The kernel cannot do it (before Linux 6.13), may not (`kernel.io_uring_disabled`), or lacks descriptors.
    pub fn new(
        napi: u32,
        patience: Duration,
        (rings, events): (&[BorrowedFd<'_>], &[BorrowedFd<'_>]),
    ) -> io::Result<Self> {
        let entries = u32::try_from(rings.len() + events.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ring = Uring::new(entries)?;
        let busy_poll = u32::try_from(patience.as_micros()).map_err(|_| io::ErrorKind::InvalidInput)?;
        ring.napi(Napi { busy_poll, parameter: 1, ..Napi::default() })?;
        ring.napi(Napi { operation: ADD, parameter: napi, ..Napi::default() })?;
        let kinds = rings.iter().map(|fd| (fd, true)).chain(events.iter().map(|fd| (fd, false)));
        let watch = |(fd, is_ring): (&BorrowedFd<'_>, _)| {
            Ok(Watched { fd: fd.try_clone_to_owned()?, is_ring, armed: false })
        };
        Ok(Self { ring, watched: kinds.map(watch).collect::<io::Result<_>>()?, napi })
    }

    /// Whose packets are fetched from now on: this NAPI's.
    ///
    /// # Errors
    /// The kernel's, such as a lack of memory. Then none is polled, or still the other.
    pub fn turn_to(&mut self, napi: u32) -> io::Result<()> {
        if napi == self.napi {
            return Ok(());
        }
        self.ring.napi(Napi { operation: REMOVE, parameter: self.napi, ..Napi::default() })?;
        self.ring.napi(Napi { operation: ADD, parameter: napi, ..Napi::default() })?;
        self.napi = napi;
        Ok(())
    }

    /// Sleeps until a ring has something, or an event has been written to since the last sleep; now and then it ends sooner. Calls
    /// `news` with the place of each that ended it: rings come first, then events, as they were given.
    ///
    /// # Errors
    /// The kernel's, such as a lack of memory: then it has not slept. A signal is none, it ends the sleep.
    pub fn sleep(&mut self, mut news: impl FnMut(usize)) -> io::Result<()> {
        for (name, watched) in self.watched.iter_mut().enumerate().filter(|(_, watched)| !watched.armed) {
            watched.armed = self.ring.watch(watched.fd.as_fd(), name as u64, watched.is_ring);
        }
        match self.ring.wait() {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for (name, more) in self.ring.news() {
            let name = name as usize;
            if let Some(watched) = self.watched.get_mut(name) {
                watched.armed = more;
                news(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Event;
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::{Arc, mpsc};
    use std::thread;

    /// No NAPI has it: polling finds nothing to do.
    const NOBODY: u32 = u32::MAX;

    /// Lets a thread sleep on a ring and an event. It must end.
    fn with(test: impl FnOnce(&mut BusyPoll, &Event, &Arc<Event>) + Send + 'static) {
        let (done, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (ring, event) = (Event::new().unwrap(), Arc::new(Event::new().unwrap()));
            match BusyPoll::new(NOBODY, Duration::from_micros(5), (&[ring.as_fd()], &[event.as_fd()])) {
                Ok(mut poll) => test(&mut poll, &ring, &event),
                Err(error) => {
                    let _ = writeln!(
                        io::stderr(),
                        "SKIPPED, tests nothing: io_uring cannot poll NAPIs here: {error}"
                    );
                }
            }
            done.send(()).unwrap();
        });
        match ended.recv_timeout(Duration::from_secs(30)) {
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it sleeps for ever"),
            _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }

    #[test]
    fn a_ring_ends_the_sleep_as_long_as_it_has_something() {
        with(|poll, ring, _| {
            ring.raise();
            (0..3).for_each(|_| assert_eq!(poll.ended_by(), [0]));
        });
    }

    #[test]
    fn an_event_ends_it_whenever_it_is_written_to_though_nobody_reads_it() {
        with(|poll, _, event| {
            for _ in 0..3 {
                event.raise();
                assert_eq!(poll.ended_by(), [1]);
            }
        });
    }

    #[test]
    fn it_does_not_end_without_a_reason_and_polls_no_longer_than_its_patience() {
        with(|poll, ring, event| {
            ring.raise();
            event.raise();
            let mut both = poll.ended_by();
            both.sort_unstable();
            assert_eq!(both, [0, 1]);
            ring.clear();
            let (raised, late) = (Arc::new(AtomicBool::new(false)), event.clone());
            let begun = cpu_time();
            let writer = thread::spawn({
                let raised = raised.clone();
                move || {
                    thread::sleep(Duration::from_millis(100));
                    raised.store(true, SeqCst);
                    late.raise();
                }
            });
            let mut sleeps = 0;
            while !raised.load(SeqCst) {
                assert_eq!(poll.ended_by(), [1]);
                sleeps += 1;
            }
            assert_eq!(sleeps, 1);
            assert!(cpu_time() - begun < Duration::from_millis(50), "it went on polling");
            writer.join().unwrap();
        });
    }

    impl BusyPoll {
        /// What ended a sleep.
        fn ended_by(&mut self) -> Vec<usize> {
            let mut news = Vec::new();
            self.sleep(|place| news.push(place)).unwrap();
            news
        }
    }

    /// CPU time of this thread.
    fn cpu_time() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    }
}
