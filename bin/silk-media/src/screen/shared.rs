//! What a player and the thread of its window share: the newest picture, and whether anybody looks.
//! The player never waits: it replaces a picture that was not shown yet, and counts it.

use super::Shown;
use silk_media::{Picture, Retrace};
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A copy of a picture, whose memory is used again for the next. (The decoder's own must not wait
/// for a window.)
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Width and height in samples of luma.
    pub size: (usize, usize),
    /// The samples of Y, Cb and Cr, rows without anything between them.
    pub planes: [Vec<u8>; 3],
}

impl Copied {
    fn copy(&mut self, picture: &dyn Picture) {
        self.size = picture.size();
        for (to, from) in self.planes.iter_mut().zip(picture.planes()) {
            to.clear();
            from.bytes
                .chunks(from.stride)
                .take(from.height)
                .for_each(|row| to.extend_from_slice(&row[..from.width]));
        }
    }

    /// Samples of chroma in a row.
    pub fn chroma_width(&self) -> usize {
        self.size.0.div_ceil(2)
    }
}

#[derive(Debug, Default)]
struct State {
    newest: Copied,
    /// `newest` has not been shown.
    waits: bool,
    /// The player has ended, or nobody looks any more.
    closed: bool,
    shown: Shown,
    retrace: Option<Retrace>,
}

/// The place where pictures change hands.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
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
            self.changed.notify_one();
        }
    }

    /// Takes the newest picture into `mine`, waiting for one at most so long.
    pub fn take(&self, mine: &mut Copied, patience: Duration) -> Next {
        let state = self.lock();
        let idle = |state: &mut State| !state.waits && !state.closed;
        let waited = self.changed.wait_timeout_while(state, patience, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
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
        self.changed.notify_all();
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
        assert_eq!(shared.take(&mut mine, Duration::ZERO), Next::Show);
        assert_eq!((mine.size, mine.planes), ((4, 2), [vec![3; 8], vec![128; 2], vec![128; 2]]));
        assert_eq!(shared.take(&mut Copied::default(), Duration::ZERO), Next::Nothing);
        assert_eq!(shared.shown(), Shown { pictures: 3, replaced: 2, sum: None });
    }

    #[test]
    fn a_closed_window_takes_nothing() {
        let shared = Shared::default();
        shared.close();
        shared.leave(&Still::grey(4, 2, 1));
        assert_eq!(shared.take(&mut Copied::default(), Duration::from_secs(60)), Next::End);
        assert_eq!(shared.shown(), Shown { pictures: 1, replaced: 1, sum: None });
    }
}
