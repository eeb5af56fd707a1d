//! Memory so near to the program's text that a short call (`call rel32`) reaches it: from there it is a jump to anywhere. And
//! the text itself, as it is written to.

use super::PAGE;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice;

/// An instruction that does nothing.
pub const NOP: u8 = 0x90;
/// How far a short call reaches, with room for the text itself.
const REACH: usize = 1 << 30;
/// Bytes of the memory, more than all ways need.
const SIZE: usize = PAGE;
/// Between the places that are tried.
const STEP: usize = 1 << 16;
/// No program may use what lies below this.
const LOWEST: usize = 1 << 16;

/// Ways from the text to this library.
pub struct Near {
    start: *mut u8,
    /// Where all of them lead.
    entry: u64,
    code: Vec<u8>,
    /// Where each begins, by the number that it is for.
    ways: Vec<(Option<u32>, usize)>,
}

impl Near {
    /// Memory near to this text, for ways to `entry`; none if there is none.
    pub fn to(text: &Range<usize>, entry: u64) -> Option<Self> {
        let Range { start, end } = *text;
        let below = (LOWEST..start & !(STEP - 1)).rev().step_by(STEP).map(|at| at & !(STEP - 1));
        let above = (end.next_multiple_of(STEP)..).step_by(STEP);
        let within = |at: &usize| start.abs_diff(*at) < REACH && end.abs_diff(*at) < REACH;
        let mut places = below.take_while(within).chain(above.take_while(within));
        let start = places.find_map(map)?;
        Some(Self { start, entry, code: Vec::new(), ways: Vec::new() })
    }

    /// Where the way begins that makes the call of this number, or of that in `rax`.
    pub fn way(&mut self, number: Option<u32>) -> Option<usize> {
        if let Some((_, at)) = self.ways.iter().find(|(known, _)| *known == number) {
            return Some(self.start.addr() + at);
        }
        let at = self.code.len();
        if let Some(number) = number {
            self.code.push(0xb8);
            self.code.extend(number.to_le_bytes());
        }
        // jmp [rip + 0], and what it jumps to.
        self.code.extend([0xff, 0x25, 0, 0, 0, 0]);
        self.code.extend(self.entry.to_le_bytes());
        self.ways.push((number, at));
        (self.code.len() <= SIZE).then(|| self.start.addr() + at)
    }

    /// Puts the ways there. Whether they can be gone.
    pub fn finish(&self) -> bool {
        // SAFETY: the memory is ours, of this size, and nobody knows of it yet.
        unsafe {
            self.start.copy_from_nonoverlapping(self.code.as_ptr(), self.code.len().min(SIZE));
            libc::mprotect(self.start.cast(), SIZE, libc::PROT_READ | libc::PROT_EXEC) == 0
        }
    }
}

/// Memory just there, if nothing is.
fn map(at: usize) -> Option<*mut u8> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
    );
    let wanted = std::ptr::without_provenance_mut::<c_void>(at);
    // SAFETY: new memory, where there is none.
    let got = unsafe { libc::mmap(wanted, SIZE, protection, flags, -1, 0) };
    if got == wanted {
        return Some(got.cast());
    }
    if got != libc::MAP_FAILED {
        // A kernel that does not know the flag takes the address for a wish.
        // SAFETY: it was mapped just now.
        unsafe { libc::munmap(got, SIZE) };
    }
    None
}

/// `call to`, for an instruction at `from`; none if that is too far.
pub fn call(from: usize, to: usize) -> Option<[u8; 5]> {
    relative(0xe8, from, to)
}

/// `jmp to`, in the same way.
pub fn jump(from: usize, to: usize) -> Option<[u8; 5]> {
    relative(0xe9, from, to)
}

fn relative(code: u8, from: usize, to: usize) -> Option<[u8; 5]> {
    let [a, b, c, d] = i32::try_from(to as i64 - (from as i64 + 5)).ok()?.to_le_bytes();
    Some([code, a, b, c, d])
}

/// What lies there.
///
/// # Safety
/// The addresses are those of memory that is mapped, and nobody writes to it as long as the bytes are looked at.
pub unsafe fn bytes<'a>(range: &Range<usize>) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(with_exposed_provenance(range.start), range.len()) }
}

/// Writes these bytes over the text at their offsets, or nothing if it may not be written to. Whether they are there.
///
/// # Safety
/// Nothing of the text runs, and what is written does what was done there.
pub unsafe fn overwrite(text: &Range<usize>, parts: &[(usize, Vec<u8>)]) -> bool {
    let start: *mut u8 = with_exposed_provenance_mut(text.start);
    let first = start.wrapping_sub(text.start % PAGE);
    let length = text.end - first.addr();
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: whole pages of the program's text, which stay executable all the time: where a policy does not let what was
    // written to become so again, it does not let it be both, either. Each part lies within it, as the caller promises, and
    // nobody else looks at it.
    unsafe {
        if libc::mprotect(first.cast(), length, executable | libc::PROT_WRITE) != 0 {
            return false;
        }
        for (at, bytes) in parts {
            start.add(*at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        libc::mprotect(first.cast(), length, executable);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_from_its_end() {
        assert_eq!(call(100, 105), Some([0xe8, 0, 0, 0, 0]));
        assert_eq!(call(100, 100), Some([0xe8, 0xfb, 0xff, 0xff, 0xff]));
        assert_eq!(jump(100, 101), Some([0xe9, 0xfc, 0xff, 0xff, 0xff]));
        assert_eq!((call(0, 1 << 32), jump(1 << 32, 0)), (None, None));
    }

    #[test]
    fn a_way_is_made_once_and_in_reach() {
        let place = [0u8; 64].as_ptr().addr();
        let text = place..place + 64;
        let mut near = Near::to(&text, 0x1234).expect("somewhere within a gigabyte");
        let (any, one) = (near.way(None).unwrap(), near.way(Some(233)).unwrap());
        assert_eq!((near.way(None), near.way(Some(233)), one - any), (Some(any), Some(one), 14));
        assert!(call(text.start, one).is_some() && near.finish());
    }
}
