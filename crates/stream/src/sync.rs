//! The atomics and counted references, from the standard library or from loom when a test explores interleavings.

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
