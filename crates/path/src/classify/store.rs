//! Where a table's words live: memory of our own, or memory that somebody else maps and lends
//! for good (a BPF array). Both are atomics; nothing here is unsafe.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The words of a table.
#[derive(Debug)]
pub enum Store<T: 'static> {
    /// Lent for good.
    Lent(&'static [T]),
    /// Our own.
    Own(Arc<[T]>),
}

/// A table of 64-bit words.
pub type Store64 = Store<AtomicU64>;
/// A table of 32-bit words.
pub type Store32 = Store<AtomicU32>;

impl<T: Default> Store<T> {
    /// `words` words of zero.
    pub fn zeroed(words: usize) -> Self {
        let words: Vec<T> = (0..words).map(|_| T::default()).collect();
        Self::Own(words.into())
    }
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Lent(words) => Self::Lent(words),
            Self::Own(words) => Self::Own(words.clone()),
        }
    }
}

impl<T> Deref for Store<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Lent(words) => words,
            Self::Own(words) => words,
        }
    }
}
