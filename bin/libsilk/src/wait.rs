//! Waiting on one slot (CM §4.2): say what is waited for and how much of it, look once more,
//! sleep on the slot's event word.

use crate::clock::now;
use crate::errno::Answer;
use crate::family::{self, PATIENCE};
use crate::signals;
use crate::socket::Socket;
use crate::state;
use crate::thread;
use silk_stream::wake::{self, WaitEntry, Woken};
use silk_stream::{Slot, waiting};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, fence};
use std::time::Duration;

/// Until when a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Duration>);

impl Deadline {
    /// No limit.
    pub const NEVER: Self = Self(None);

    /// From now on for `limit`, if there is one.
    pub fn after(limit: Option<Duration>) -> Self {
        Self(limit.and_then(|limit| now().checked_add(limit)))
    }

    /// Whether there is a limit.
    pub fn is_set(self) -> bool {
        self.0.is_some()
    }

    /// Whether what is waited for may take several sleeps as long as that.
    pub fn outlasts(self, nap: Duration) -> bool {
        self.0.is_none() || nap == PATIENCE
    }

    /// How long to sleep at once; `None` when the time is up.
    pub fn nap(self) -> Option<Duration> {
        let Some(end) = self.0 else { return Some(PATIENCE) };
        end.checked_sub(now()).filter(|left| !left.is_zero()).map(|left| left.min(PATIENCE))
    }
}

/// Which change is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At least so many bytes to read, or the end.
    Readable(u32),
    /// Room for at least so many bytes, or the end.
    Writable(u32),
}

/// Says in the slot that somebody waits.
pub fn announce(slot: &Slot, change: Change) {
    let bit = match change {
        Change::Readable(level) => {
            slot.wake_read.store(level.max(1), SeqCst);
            waiting::READ
        }
        Change::Writable(level) => {
            // The daemon counts what is free of the whole ring. While memory is short there is room once that is
            // empty.
            let size = slot.tx_size.load(Relaxed);
            let beyond = size.saturating_sub(state::send_limit(slot));
            let level = level.max(1).saturating_add(beyond);
            slot.wake_write.store(if state::reach(slot).is_some() { size } else { level }, SeqCst);
            waiting::WRITE
        }
    };
    if slot.waiting.load(SeqCst) & bit == 0 {
        slot.waiting.fetch_or(bit, SeqCst);
    }
}

/// The slot's event word as it is now, to sleep on until it moves; said in the slot. To be asked for before it is
/// announced what is waited for: the daemon takes back all that is said at once, what it finds there from
/// an earlier wait as well, and moves the word only if it was said that somebody sleeps.
pub fn word(slot: &Slot) -> (&AtomicU32, u32) {
    // First, so that it has moved where what is found to be said already is taken back just then.
    let seen = slot.event.load(SeqCst);
    if slot.waiting.load(SeqCst) & waiting::ASLEEP == 0 {
        slot.waiting.fetch_or(waiting::ASLEEP, SeqCst);
    }
    (&slot.event, seen)
}

/// Sleeps until the slot may have changed. The caller looks again and, if it must, comes back.
///
/// # Errors
/// `EAGAIN` when the time is up; `EINTR`.
pub fn sleep(
    socket: &Socket,
    slot: &Slot,
    change: Change,
    deadline: Deadline,
    ready: impl Fn(&Slot) -> bool,
) -> Answer<()> {
    let word = word(slot);
    announce(slot, change);
    let Some(limit) = deadline.nap() else {
        return if ready(slot) || !socket.is_served() { Ok(()) } else { Err(libc::EAGAIN) };
    };
    // Counted before the last look: who changes something then knows that somebody sleeps.
    let woken = asleep(|| {
        let is_over = ready(slot) || !socket.is_served();
        if is_over { Woken::Changed } else { nap(&[word], deadline.is_set(), limit) }
    });
    match woken {
        Woken::Changed | Woken::Refused => {
            thread::report_wake_if_known();
            Ok(())
        }
        Woken::Interrupted => Err(libc::EINTR),
        Woken::TimedOut => {
            if let Some(family) = family::joined() {
                family.feel_pulse();
            }
            Ok(())
        }
    }
}

/// Sleeps while the words are what they were, for at most `limit`. It is interrupted by any handler if
/// it `ends` so (of several words, by one that does not restart), else by one without `SA_RESTART`.
pub fn nap(words: &[(&AtomicU32, u32)], ends: bool, limit: Duration) -> Woken {
    if let [(word, seen)] = *words
        && (ends || !signals::may_end())
    {
        return match wake::wait(word, seen, Some(limit)) {
            Woken::Interrupted if !ends => Woken::Changed,
            other => other,
        };
    }
    let entries: Vec<_> = words.iter().map(|(word, seen)| WaitEntry::new(word, *seen)).collect();
    match wake::wait_any(&entries, Some(now() + limit)) {
        Woken::Refused => nap_on_first(words, limit),
        other => other,
    }
}

/// The kernel has refused to wait on several words.
static ONE_ONLY: AtomicBool = AtomicBool::new(false);

/// Whether the kernel waits on several words, as far as it has been asked.
pub fn may_be_on_several() -> bool {
    !ONE_ONLY.load(Relaxed)
}

/// How long to sleep at most on one of several words while the others are not looked at.
const MOMENT: Duration = Duration::from_millis(2);

/// As [`nap`], where the kernel refuses to wait on several words: on the first of them, for a moment only if there are others. Of
/// one word nobody tells which handler has come; a program that has any that ends calls knows `EINTR`.
#[cold]
fn nap_on_first(words: &[(&AtomicU32, u32)], limit: Duration) -> Woken {
    ONE_ONLY.store(true, Relaxed);
    let [(word, seen), others @ ..] = words else { return Woken::Refused };
    let limit = if others.is_empty() { limit } else { limit.min(MOMENT) };
    match wake::wait(word, *seen, Some(limit)) {
        Woken::TimedOut if !others.is_empty() => Woken::Refused,
        other => other,
    }
}

/// How many threads of this process sleep on slots.
static SLEEPERS: AtomicU32 = AtomicU32::new(0);

/// Looks for the last time and sleeps, counted.
pub fn asleep<T>(nap: impl FnOnce() -> T) -> T {
    SLEEPERS.fetch_add(1, SeqCst);
    // Pairs with `disturb` and `nameless::announce`: what they come after is seen by the last look, or they see who sleeps.
    fence(SeqCst);
    let woken = nap();
    SLEEPERS.fetch_sub(1, SeqCst);
    woken
}

/// Whether any thread of this process sleeps so.
pub fn has_sleepers() -> bool {
    SLEEPERS.load(SeqCst) != 0
}

/// Wakes the threads that sleep on a slot that is about to be let go, or of which something has changed. A bit
/// of `waiting` may be left from a wait that ended otherwise, so the count is asked first: a
/// process with one thread never needs the system call, unless others hold the socket too.
pub fn disturb(slot: &Slot) {
    // Pairs with `asleep`.
    fence(SeqCst);
    let others = slot.holders.load(Relaxed) > 1;
    if (others || has_sleepers()) && slot.waiting.load(SeqCst) & waiting::ASLEEP != 0 {
        slot.event.fetch_add(1, SeqCst);
        wake::wake(&slot.event, i32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn whoever_is_not_said_to_wait_any_more_has_been_woken() {
        let (slot, over) = (Slot::default(), AtomicBool::new(false));
        const BOTH: u32 = waiting::READ | waiting::ASLEEP;
        std::thread::scope(|scope| {
            // As an executor that has something for the socket at every moment.
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    if wake::take_sleepers(&slot.waiting, waiting::READ) {
                        slot.event.fetch_add(1, SeqCst);
                    }
                }
            });
            // Whether nobody has been woken who is not said to wait.
            let is_lost = |_: &u32| {
                let (event, seen) = word(&slot);
                announce(&slot, Change::Readable(1));
                if slot.waiting.load(SeqCst) & BOTH == BOTH {
                    return false;
                }
                let patience = Instant::now() + Duration::from_secs(20);
                while event.load(SeqCst) == seen && Instant::now() < patience {
                    std::thread::yield_now();
                }
                event.load(SeqCst) == seen
            };
            let lost = (0..).take_while(|_| slot.event.load(SeqCst) < 100_000).find(is_lost);
            over.store(true, SeqCst);
            assert_eq!(lost, None);
        });
    }
}
