//! Messages from many threads to one, where nobody waits for anybody: a sender that was preempted in the
//! middle holds up neither the receiver nor another sender.
//!
//! The standard library's channel waits in such a moment, yielding the CPU. Between threads of different
//! real-time priorities on one CPU that is for ever: whoever yields is the most important one still, so the other
//! never goes on. Here a sender puts its letter on a stack with one compare-and-swap (Treiber, *Systems
//! Programming: Coping with Parallelism*, IBM RJ 5118, 1986) and the receiver takes all there are with one
//! swap and turns them round. As letters are never taken one by one, none can come back between
//! a sender's look and its swap.
//!
//! Letters of one sender arrive in the order in which they were sent. Nobody is woken: who sleeps
//! has something else to be woken by.

use crate::sync::{Arc, AtomicPtr, Ordering, fence};
use std::collections::VecDeque;
use std::fmt;
use std::ptr;

struct Letter<T> {
    what: T,
    // The one that was sent before it.
    before: *mut Letter<T>,
}

/// What stands for the letters once the receiver is gone. It is never followed.
fn gone<T>() -> *mut Letter<T> {
    ptr::dangling_mut()
}

struct Shared<T> {
    // The newest letter; null: none; or [`gone`].
    newest: AtomicPtr<Letter<T>>,
}

// SAFETY: a letter belongs to its sender until the swap that publishes it, and to the receiver after the swap
// that takes it; nobody looks into one in between. So letters move between threads, which `T: Send` allows, and are
// never shared.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above: what is shared is one atomic word.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The end of those who send.
pub struct Sender<T>(Arc<Shared<T>>);

/// The end of the one who receives.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    // Taken already, the oldest first.
    taken: VecDeque<T>,
}

/// The receiver is gone: what was to be sent.
pub struct Undelivered<T>(pub T);

impl<T> fmt::Debug for Undelivered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receiver is gone")
    }
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// There is nothing now.
    Yet,
    /// There is nothing, and every sender is gone.
    Ever,
}

/// A way for messages. Memory grows with what was sent and not received.
pub fn mail<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared { newest: AtomicPtr::new(ptr::null_mut()) });
    (Sender(shared.clone()), Receiver { shared, taken: VecDeque::new() })
}

impl<T> Sender<T> {
    /// Sends a message.
    ///
    /// # Errors
    /// The receiver is gone; the message comes back.
    pub fn send(&self, what: T) -> Result<(), Undelivered<T>> {
        let newest = &self.0.newest;
        let mut before = newest.load(Ordering::Relaxed);
        let letter = Box::into_raw(Box::new(Letter { what, before }));
        loop {
            if before == gone() {
                // SAFETY: it was made above and was not published, so it is ours alone.
                let letter = unsafe { Box::from_raw(letter) };
                return Err(Undelivered(letter.what));
            }
            // SAFETY: as above. Others see it after the swap.
            unsafe { (*letter).before = before };
            match newest.compare_exchange(before, letter, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                // Somebody else has got on: it is nobody's waiting.
                Err(now) => before = now,
            }
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Receiver<T> {
    /// The next message.
    ///
    /// # Errors
    /// There is none.
    pub fn receive(&mut self) -> Result<T, Nothing> {
        if self.taken.is_empty() {
            // Asked first: what the last sender has sent before it went is then seen below.
            let alone = Arc::strong_count(&self.shared) == 1;
            fence(Ordering::Acquire);
            self.take(ptr::null_mut());
            if self.taken.is_empty() && alone {
                return Err(Nothing::Ever);
            }
        }
        self.taken.pop_front().ok_or(Nothing::Yet)
    }

    /// Takes all there are and leaves `instead`.
    fn take(&mut self, instead: *mut Letter<T>) {
        let mut letter = self.shared.newest.swap(instead, Ordering::Acquire);
        while !letter.is_null() {
            // SAFETY: it was published by a sender, which made it of a box and does not touch it any more, and the
            // swap has taken it and all before it from everybody else. `gone` is never found here: it is left
            // by the receiver's end alone, after which nobody takes.
            let Letter { what, before } = *unsafe { Box::from_raw(letter) };
            self.taken.push_front(what);
            letter = before;
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // What is there now goes with the rest.
        self.taken.clear();
        self.take(gone());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_and_once() {
        let (sender, mut receiver) = mail();
        assert_eq!(receiver.receive(), Err(Nothing::Yet));
        (0..3).for_each(|n| sender.send(n).unwrap());
        assert_eq!(receiver.receive(), Ok(0));
        sender.clone().send(3).unwrap();
        assert_eq!([1, 2, 3].map(Ok), [(); 3].map(|()| receiver.receive()));
        assert_eq!(receiver.receive(), Err(Nothing::Yet));
        sender.send(4).unwrap();
        drop(sender);
        assert_eq!(receiver.receive(), Ok(4));
        assert_eq!(receiver.receive(), Err(Nothing::Ever));
    }

    #[test]
    fn what_is_not_received_ends_with_the_receiver_or_comes_back() {
        let what = std::sync::Arc::new(());
        let (sender, mut receiver) = mail();
        (0..3).for_each(|_| sender.send(what.clone()).unwrap());
        receiver.receive().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&what), 3);
        drop(receiver);
        assert_eq!(std::sync::Arc::strong_count(&what), 1);
        assert!(sender.send(what.clone()).is_err());
        assert_eq!(std::sync::Arc::strong_count(&what), 1);
    }

    #[test]
    fn each_of_many_senders_is_heard_in_its_order() {
        const SENDERS: usize = 4;
        const EACH: usize = 5_000;
        let (sender, mut receiver) = mail();
        let mut next = [0; SENDERS];
        std::thread::scope(|scope| {
            for who in 0..SENDERS {
                let sender = sender.clone();
                scope.spawn(move || (0..EACH).for_each(|n| sender.send((who, n)).unwrap()));
            }
            drop(sender);
            loop {
                match receiver.receive() {
                    Ok((who, n)) => {
                        assert_eq!(n, next[who]);
                        next[who] += 1;
                    }
                    Err(Nothing::Yet) => std::thread::yield_now(),
                    Err(Nothing::Ever) => break,
                }
            }
        });
        assert_eq!(next, [EACH; SENDERS]);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::thread;

    /// Two senders and a receiver that looks at any moment: nothing is lost, doubled or out of order, and
    /// what is left when it goes is freed or comes back.
    #[test]
    fn nothing_is_lost_between_two_senders_and_a_receiver() {
        loom::model(|| {
            let (sender, mut receiver) = mail();
            let other = sender.clone();
            let first = thread::spawn(move || {
                sender.send(1).unwrap();
                sender.send(2).unwrap();
            });
            let second = thread::spawn(move || other.send(10).unwrap());
            let mut heard = Vec::new();
            heard.extend(receiver.receive());
            first.join().unwrap();
            second.join().unwrap();
            while let Ok(what) = receiver.receive() {
                heard.push(what);
            }
            assert_eq!(receiver.receive(), Err(Nothing::Ever));
            heard.retain(|what| *what != 10);
            assert_eq!(heard, [1, 2]);
        });
    }

    #[test]
    fn a_message_is_received_or_comes_back_when_the_receiver_goes() {
        loom::model(|| {
            let (sender, receiver) = mail();
            let what = loom::sync::Arc::new(());
            let sent = what.clone();
            let thread = thread::spawn(move || drop(sender.send(sent)));
            drop(receiver);
            thread.join().unwrap();
            assert_eq!(loom::sync::Arc::strong_count(&what), 1);
        });
    }
}
