//! A bell: how executors tell one event set, or one thread in `poll`, which sockets changed.
//! A set of marks in the arena, and an eventfd that is written only when somebody sleeps.

use crate::errno::Answer;
use crate::family;
use crate::internal;
use crate::thread;
use silk_control::{Reply, Request};
use silk_stream::{Slot, wake};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

/// The eventfd of a bell, which is there before it: a thread that shuts itself in (`seccomp(2)`) may make none afterwards.
pub struct Clapper {
    event: Option<OwnedFd>,
    process: u32,
}

impl Clapper {
    /// A new one, of this process.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn make() -> Answer<Self> {
        let event = wake::event().map_err(|e| e.raw_os_error().unwrap_or(libc::EMFILE))?;
        Ok(Self { event: Some(internal::keep(event)), process: family::process() })
    }

    /// Whether it is this process's, and not its parent's, which is woken by it too.
    pub fn is_mine(&self) -> bool {
        self.process == family::process()
    }
}

impl Drop for Clapper {
    fn drop(&mut self) {
        self.event.take().into_iter().for_each(internal::close);
    }
}

/// A bell of this process.
pub struct Bell {
    number: u32,
    clapper: Clapper,
}

impl Bell {
    /// A new bell.
    ///
    /// # Errors
    /// `ENOSPC` when the family has too many, `EMFILE`.
    pub fn make() -> Answer<Self> {
        Self::of(Clapper::make()?)
    }

    /// A new bell with an eventfd that is there already.
    ///
    /// # Errors
    /// `ENOSPC` when the family has too many.
    pub fn of(clapper: Clapper) -> Answer<Self> {
        let event = clapper.event.as_ref().ok_or(libc::EBADF)?;
        let Reply::Bell { bell: number } = family::ask(&Request::Bell, &[event.as_fd()])? else {
            return Err(libc::EPROTO);
        };
        let bell = Self { number, clapper };
        // What an earlier user of the number left there.
        bell.disarm();
        bell.take(|_| {});
        if let Some(shared) = bell.shared() {
            shared.sleepers.store(0, SeqCst);
            shared.crowded.store(0, SeqCst);
        }
        Ok(bell)
    }

    /// Whether it is this process's, and not its parent's.
    pub fn is_mine(&self) -> bool {
        self.clapper.is_mine()
    }

    fn event(&self) -> Option<&OwnedFd> {
        self.clapper.event.as_ref()
    }

    fn shared(&self) -> Option<&'static silk_stream::Bell> {
        family::joined()?.arena.bell(self.number)
    }

    /// The eventfd's number, for the kernel to watch.
    pub fn descriptor(&self) -> i32 {
        self.event().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// The sockets that changed since the last look.
    pub fn take(&self, each: impl FnMut(u32)) {
        if let Some(shared) = self.shared().filter(|shared| shared.set.is_marked()) {
            shared.set.take(each);
        }
    }

    /// From now on a change writes the eventfd. Whether something has changed before that.
    pub fn arm(&self) -> bool {
        let Some(shared) = self.shared() else { return true };
        shared.armed.store(1, SeqCst);
        // Pairs with the executor's: mark, then look whether the bell is armed.
        fence(SeqCst);
        shared.set.is_marked()
    }

    /// This thread is about to sleep until it is written: it follows what wakes it, among it datagrams or not; `None`: it does not.
    pub fn name_sleeper(&self, follows: Option<bool>) {
        if let Some(shared) = self.shared() {
            shared.thread.store(follows.map_or(0, thread::as_sleeper), Relaxed);
        }
    }

    /// Changes are only marked.
    pub fn disarm(&self) {
        if let Some(shared) = self.shared() {
            shared.armed.store(0, SeqCst);
        }
    }

    /// Marks a socket as an executor would.
    pub fn mark(&self, slot: u32) {
        if let (Some(shared), Some(event)) = (self.shared(), self.event()) {
            shared.set.mark(slot);
            wake::ring(&shared.armed, event.as_fd());
        }
    }

    /// Wakes a thread that sleeps with the bell's eventfd.
    pub fn wake(&self) {
        if let Some(event) = self.event() {
            wake::notify(event.as_fd());
        }
    }

    /// Makes the eventfd quiet again.
    pub fn hush(&self) {
        if let Some(event) = self.event() {
            wake::drain(event.as_fd());
        }
    }

    /// A thread is about to sleep where other processes may; whether it may still.
    pub fn enter(&self) -> bool {
        let Some(shared) = self.shared() else { return true };
        shared.sleepers.fetch_add(1, SeqCst);
        // Pairs with `crowd`: one of the two sees the other.
        let may = shared.crowded.load(SeqCst) == 0;
        if !may {
            self.leave();
        }
        may
    }

    /// It sleeps there no longer.
    pub fn leave(&self) {
        if let Some(shared) = self.shared() {
            shared.sleepers.fetch_sub(1, SeqCst);
        }
    }

    /// Whether another process waits where this bell's does.
    pub fn is_crowded(&self) -> bool {
        self.shared().is_some_and(|shared| shared.crowded.load(SeqCst) != 0)
    }

    /// Tells the process whose bell this is that another one waits there too. Whether nobody of
    /// it sleeps there any more.
    pub fn crowd(&self) -> bool {
        let Some(shared) = self.shared() else { return true };
        shared.crowded.store(1, SeqCst);
        shared.sleepers.load(SeqCst) == 0
    }

    /// Watches a socket, or no longer.
    pub fn watch(&self, slot: &Slot, on: bool) {
        let Some(word) = slot.bells.get(self.number as usize / 64) else { return };
        let bit = 1 << (self.number % 64);
        if on {
            word.fetch_or(bit, SeqCst)
        } else {
            word.fetch_and(!bit, SeqCst)
        };
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if self.is_mine() {
            family::tell(&Request::BellGone { bell: self.number });
        }
    }
}
