//! One event set, and the table of all of them. What is done with them: [`crate::epoll`].

use crate::epoll_member::Inner;
use crate::lock::Guarded;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// Event sets one process can have at one time; further ones cannot hold sockets of ours.
const SETS: usize = 1024;

static TABLE: [Epoll; SETS] = [const { Epoll::new() }; SETS];
/// All sets that were ever used are below this: who looks at all of them, as a fork does, touches no more memory.
static BELOW: AtomicU32 = AtomicU32::new(0);

/// One event set.
pub struct Epoll {
    /// How many name it.
    pub descriptors: AtomicU32,
    /// How many sets it has been, that were closed.
    pub uses: AtomicU32,
    /// The descriptor it was made with.
    pub number: AtomicI32,
    /// Threads that sleep in it.
    pub sleepers: AtomicU32,
    /// Whether anybody ever watched it as a descriptor.
    pub watched: AtomicBool,
    /// How many sets are members of it.
    pub nested: AtomicU32,
    /// Something has changed that the members do not show: a signal's handler has changed it while its own thread was at
    /// work on them.
    pub outdated: AtomicBool,
    /// A fork holds it.
    pub held: AtomicBool,
    /// Its members.
    pub inner: Guarded<Inner>,
}

impl Epoll {
    const fn new() -> Self {
        Self {
            descriptors: AtomicU32::new(0),
            uses: AtomicU32::new(0),
            number: AtomicI32::new(-1),
            sleepers: AtomicU32::new(0),
            watched: AtomicBool::new(false),
            nested: AtomicU32::new(0),
            outdated: AtomicBool::new(false),
            held: AtomicBool::new(false),
            inner: Guarded::new(Inner::new()),
        }
    }

    /// Its place in the table.
    pub fn index(&self) -> u32 {
        let offset = std::ptr::from_ref(self).addr().wrapping_sub(TABLE.as_ptr().addr());
        (offset / size_of::<Self>()) as u32
    }

    /// One more descriptor names it, if any does: whether one did.
    pub fn add_descriptor_if_any(&self) -> bool {
        let more = |count: u32| (count > 0).then_some(count + 1);
        self.descriptors.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Whether it is still the set that it was at its use of that number.
    pub fn is_still(&self, uses: u32) -> bool {
        self.is_used() && self.uses.load(Ordering::SeqCst) == uses
    }

    /// Whether any descriptor names it.
    pub fn is_used(&self) -> bool {
        self.descriptors.load(Ordering::Acquire) > 0
    }
}

/// The set at `index`.
pub fn at(index: u32) -> Option<&'static Epoll> {
    TABLE.get(index as usize)
}

/// Those that were ever used.
pub fn known() -> &'static [Epoll] {
    TABLE.get(..BELOW.load(Ordering::Acquire) as usize).unwrap_or_default()
}

/// Those that are used now.
pub fn used() -> impl Iterator<Item = &'static Epoll> {
    known().iter().filter(|set| set.is_used())
}

/// One that is used from now on, if there is one left: one descriptor names it.
pub fn claim() -> Option<&'static Epoll> {
    let is_free =
        |set: &&Epoll| set.descriptors.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    // Rather not one that a thread still sleeps in, which has not noticed that it was closed, or never will: it was cancelled there.
    let is_empty = |set: &&Epoll| set.sleepers.load(Ordering::SeqCst) == 0 && is_free(set);
    TABLE.iter().find(is_empty).or_else(|| TABLE.iter().find(is_free)).inspect(|set| {
        set.sleepers.store(0, Ordering::SeqCst);
        BELOW.fetch_max(set.index() + 1, Ordering::AcqRel);
    })
}
