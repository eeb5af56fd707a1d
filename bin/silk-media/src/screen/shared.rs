//! What a player and the thread of the windows share: the newest picture, and whether anybody looks.
//! The player never waits: it replaces a picture that was not shown yet, and counts it.

use super::Shown;
use silk_media::{Picture, Retrace};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A copy of a picture, whose memory is used again for the next. (The decoder's own must not wait
/// for a window.)
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Width and height in samples of luma.
    pub size: (usize, usize),
    /// The samples of Y, Cb and Cr, rows without anything between them. An odd last row or column of luma is there
    /// twice, for graphics systems halve chroma exactly.
    pub planes: [Vec<u8>; 3],
}

impl Copied {
    fn copy(&mut self, picture: &dyn Picture) {
        self.size = picture.size();
        let (width, height) = self.even();
        let sizes = [(width, height), (width / 2, height / 2), (width / 2, height / 2)];
        for ((to, from), (width, height)) in self.planes.iter_mut().zip(picture.planes()).zip(sizes) {
            to.clear();
            for row in from.bytes.chunks(from.stride).take(from.height) {
                to.extend_from_slice(&row[..from.width]);
                to.extend_from_slice(&row[from.width - (width - from.width)..from.width]);
            }
            to.extend_from_within(to.len() - (height - from.height) * width..);
        }
    }

    /// Samples of luma that are there: an even number in each direction.
    pub fn even(&self) -> (usize, usize) {
        (self.size.0.next_multiple_of(2), self.size.1.next_multiple_of(2))
    }
}

#[derive(Debug, Default)]
struct State {
    newest: Copied,
    /// `newest` has not been shown.
    waits: bool,
    /// The player has ended, or nobody looks any more.
    closed: bool,
    /// The window is not there any more.
    gone: bool,
    /// Why it cannot be had.
    failed: Option<String>,
    shown: Shown,
    retrace: Option<Retrace>,
}

/// The place where pictures change hands.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Somebody waits for the window to go.
    went: Condvar,
    bell: Arc<Bell>,
}

/// What wakes the thread of the windows.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// There is something to do.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until it rings, at most so long.
    pub fn wait(&self, patience: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, patience, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// What a window's thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Show the picture it was given.
    Show,
    /// Look after the window; nothing new has come.
    Nothing,
    /// End.
    End,
}

impl Shared {
    /// Nothing has been shown. `bell` rings whenever there is something to do for the window.
    pub fn new(bell: Arc<Bell>) -> Self {
        Self { bell, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A picture that was half copied when its player panicked is still a picture.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a picture for the window.
    pub fn leave(&self, picture: &dyn Picture) {
        let mut state = self.lock();
        state.shown.pictures += 1;
        if state.closed || state.waits {
            state.shown.replaced += 1;
        }
        if !state.closed {
            state.newest.copy(picture);
            state.waits = true;
            drop(state);
            self.bell.ring();
        }
    }

    /// Takes the newest picture into `mine`, if there is a new one.
    pub fn take(&self, mine: &mut Copied) -> Next {
        let mut state = self.lock();
        if state.closed {
            return Next::End;
        }
        if !mem::take(&mut state.waits) {
            return Next::Nothing;
        }
        mem::swap(mine, &mut state.newest);
        Next::Show
    }

    /// The window has seen one of its retraces.
    pub fn tell_retrace(&self, seen: Option<Retrace>) {
        let mut state = self.lock();
        state.retrace = match (state.retrace, seen) {
            (Some(known), Some(seen)) if known.period == seen.period => Some(known.seen(seen.at)),
            (_, seen) => seen,
        };
    }

    /// The window's retraces, as far as they are known.
    pub fn retrace(&self) -> Option<Retrace> {
        self.lock().retrace
    }

    /// Ends it for both.
    pub fn close(&self) {
        self.lock().closed = true;
        self.bell.ring();
    }

    /// There can be no window.
    pub fn fail(&self, why: String) {
        self.lock().failed = Some(why);
        self.close();
        self.go();
    }

    /// Why there could be no window.
    pub fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// The window is not there any more.
    pub fn go(&self) {
        self.lock().gone = true;
        self.went.notify_all();
    }

    /// Waits until the window has gone, at most so long.
    pub fn wait_gone(&self, patience: Duration) {
        // Whoever drew it may have died.
        let _ = self.went.wait_timeout_while(self.lock(), patience, |state| !state.gone);
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// What became of the pictures.
    pub fn shown(&self) -> Shown {
        self.lock().shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::still::Still;

    #[test]
    fn the_newest_picture_wins_and_the_one_before_is_counted() {
        let (shared, mut mine) = (Shared::default(), Copied::default());
        [1, 2, 3].iter().for_each(|luma| shared.leave(&Still::grey(4, 2, *luma)));
        assert_eq!(shared.take(&mut mine), Next::Show);
        assert_eq!((mine.size, mine.planes), ((4, 2), [vec![3; 8], vec![128; 2], vec![128; 2]]));
        assert_eq!(shared.take(&mut Copied::default()), Next::Nothing);
        assert_eq!(shared.shown(), Shown { pictures: 3, replaced: 2, sum: None });
    }

    #[test]
    fn of_a_picture_with_an_odd_side_the_last_samples_are_there_twice() {
        let shared = Shared::default();
        shared.leave(&Still::grey(3, 5, 7));
        let mut mine = Copied::default();
        assert_eq!(shared.take(&mut mine), Next::Show);
        assert_eq!((mine.size, mine.even()), ((3, 5), (4, 6)));
        assert_eq!(mine.planes, [vec![7; 24], vec![128; 6], vec![128; 6]]);
    }

    #[test]
    fn a_closed_window_takes_nothing() {
        let shared = Shared::default();
        shared.close();
        shared.leave(&Still::grey(4, 2, 1));
        assert_eq!(shared.take(&mut Copied::default()), Next::End);
        assert_eq!(shared.shown(), Shown { pictures: 1, replaced: 1, sum: None });
    }
}
