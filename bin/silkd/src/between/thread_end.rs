//! A program's thread as executors reach it.

use crate::threads::program_thread::ProgramThread;
use std::sync::Arc;

/// A thread that may be woken.
#[derive(Clone, Debug)]
pub struct ThreadEnd {
    /// Its process.
    pub process: u32,
    /// What the kernel knows of it.
    pub thread: Arc<ProgramThread>,
}
