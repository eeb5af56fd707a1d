//! What a thread leaves by a jump (`longjmp`): the frames of its stack that it has entered since `setjmp`. A signal's handler
//! leaves so what it has interrupted, or jumps within itself and returns to that.

use libc::c_void;
#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// A place on a stack, which grows downwards: what is entered later lies lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

impl Place {
    /// Below every other.
    pub const LOWEST: Self = Self(0);

    /// In the frame of the caller.
    #[inline(always)]
    pub fn here() -> Self {
        let here = 0u8;
        Self(ptr::from_ref(black_box(&here)).addr())
    }
}

/// A jump.
pub struct Jump {
    /// Where it leads; `None`: nobody knows.
    target: Option<Place>,
    /// The stack that handlers have for themselves (`sigaltstack(2)`), which may lie anywhere.
    handlers: Range<usize>,
}

impl Jump {
    /// That of `longjmp` with what `setjmp` has written.
    ///
    /// # Safety
    /// `to` is a `jmp_buf` that was set.
    pub unsafe fn by(to: *const c_void) -> Self {
        // SAFETY: as the caller promises.
        Self { target: unsafe { target(to) }, handlers: handlers() }
    }

    /// Whether the thread leaves the frame at `place`, and does not come back to it.
    pub fn leaves(&self, place: Place) -> bool {
        let Some(target) = self.target else { return true };
        let is_handlers = |place: Place| self.handlers.contains(&place.0);
        match (is_handlers(place), is_handlers(target)) {
            // It jumps within itself.
            (false, true) => false,
            (true, false) => true,
            _ => place.0 < target.0,
        }
    }
}

/// The stack pointer that glibc keeps in a `jmp_buf`: the seventh of eight words, mixed with a secret of the process's and turned.
#[cfg(target_arch = "x86_64")]
unsafe fn target(to: *const c_void) -> Option<Place> {
    const AT: usize = 6;
    const TURNED: u32 = 17;
    // SAFETY: as the caller promises of the words; the secret lies behind the thread's own pointer, where the C library reads it.
    unsafe {
        let word = to.cast::<u64>().add(AT).read_unaligned();
        let secret: u64;
        asm!("mov {}, qword ptr fs:[0x30]", out(reg) secret, options(nostack, readonly, preserves_flags));
        Some(Place((word.rotate_right(TURNED) ^ secret) as usize))
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn target(_: *const c_void) -> Option<Place> {
    None
}

fn handlers() -> Range<usize> {
    let mut now = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: asks only; the memory is of the right type, and zeroed it is a valid one.
    let now = unsafe {
        libc::sigaltstack(ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    let is_there = now.ss_flags & libc::SS_DISABLE == 0;
    let first = now.ss_sp.addr();
    first..first.saturating_add(if is_there { now.ss_size } else { 0 })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    unsafe extern "C" {
        /// `setjmp` and its kin, which are macros.
        fn __sigsetjmp(to: *mut c_void, mask: std::ffi::c_int) -> std::ffi::c_int;
    }

    impl Jump {
        /// One that leads to `place`.
        pub fn towards(place: Place) -> Self {
            Self { target: Some(place), handlers: 0..0 }
        }
    }

    /// Does something in frames that lie far lower, as those of a signal's handler do.
    #[inline(never)]
    pub fn far_below<T>(what: impl FnOnce() -> T) -> T {
        let room = black_box([0u8; 4096]);
        let done = what();
        black_box(&room);
        done
    }

    /// Somewhere in a handler.
    pub fn handlers_place() -> Place {
        far_below(|| far_below(Place::here))
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_was_entered_since_is_left_and_nothing_else() {
        let outside = Place::here();
        let (jump, inside) = far_below(|| {
            // As large as a `jmp_buf`.
            let mut words = [0u64; 32];
            let here = Place::here();
            // SAFETY: it is only looked at: nobody jumps.
            let jump = unsafe {
                __sigsetjmp(words.as_mut_ptr().cast(), 0);
                Jump::by(words.as_ptr().cast())
            };
            assert!(!jump.leaves(here), "it goes on there");
            (jump, handlers_place())
        });
        assert!(jump.leaves(inside) && !jump.leaves(outside));
    }

    #[test]
    fn a_stack_of_handlers_is_left_and_not_the_one_that_they_have_interrupted() {
        let within = |target| Jump { target: Some(Place(target)), handlers: 1000..2000 };
        // Wherever the thread's own lies.
        for own in [500, 5000] {
            let leaves = |target: usize, place| within(target).leaves(Place(place));
            assert!(!leaves(1500, own) && leaves(own, 1500));
            assert!(leaves(1500, 1400) && !leaves(1500, 1600));
            assert!(leaves(own, own - 1) && !leaves(own, own + 1));
        }
    }

    #[test]
    fn where_nobody_knows_where_it_leads_all_is_left() {
        assert!(Jump { target: None, handlers: 0..0 }.leaves(Place::here()));
    }
}
