//! Where Go's text makes system calls (package `runtime/internal/syscall`, `internal/runtime/syscall` since 1.23, `syscall`
//! before 1.19; and `runtime` for what it does itself).

use libc::c_long;

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `cmp rax, -4095`: what comes after a call of any number, which tells an error from a value.
const IS_ERROR: [u8; 6] = [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff];
/// `pop r12` before and `push r12` after: the return address is kept from a child that shares the stack.
const BEFORE_VFORK: [u8; 2] = [0x41, 0x5c];
const AFTER_VFORK: [u8; 2] = [0x41, 0x54];
/// `mov eax, …` and `mov rax, …`: the number is known.
const NUMBER: u8 = 0xb8;
const LONG_NUMBER: [u8; 3] = [0x48, 0xc7, 0xc0];
/// A place, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// `syscall; cmp rax, -4095`, of any number.
    Any(usize),
    /// `pop r12; syscall; push r12`: a `vfork`.
    Vfork(usize),
    /// `mov eax, number; syscall`.
    One(usize, u32),
}

/// Bytes of each.
pub const ANY_BYTES: usize = 8;
pub const VFORK_BYTES: usize = 6;
pub const ONE_BYTES: usize = 7;

/// The places of calls of any number, and of those with one of these numbers.
pub fn find(text: &[u8], numbers: &[c_long]) -> Vec<Site> {
    memchr::memmem::find_iter(text, &SYSCALL).filter_map(|at| site(text, at, numbers)).collect()
}

fn site(text: &[u8], at: usize, numbers: &[c_long]) -> Option<Site> {
    let (before, after) = (text.get(..at)?, text.get(at + SYSCALL.len()..)?);
    if before.ends_with(&BEFORE_VFORK) && after.starts_with(&AFTER_VFORK) {
        return Some(Site::Vfork(at - BEFORE_VFORK.len()));
    }
    if let [.., NUMBER, a, b, c, d] = *before {
        let number = u32::from_le_bytes([a, b, c, d]);
        return numbers.contains(&number.into()).then(|| Site::One(at - (ONE_BYTES - SYSCALL.len()), number));
    }
    let is_known = before.len() >= 7 && before.get(before.len() - 7..)?.starts_with(&LONG_NUMBER);
    (!is_known && after.starts_with(&IS_ERROR)).then_some(Site::Any(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_calls::OURS;

    fn find(text: &[u8]) -> Vec<Site> {
        super::find(text, &OURS)
    }

    const LEAD: [u8; 9] = [0x90; 9];

    fn text(parts: &[&[u8]]) -> Vec<u8> {
        [&LEAD[..], &parts.concat()[..]].concat()
    }

    #[test]
    fn a_call_of_any_number_is_told_by_the_look_at_its_answer() {
        assert_eq!(find(&text(&[&[0x48, 0x89, 0xdf], &SYSCALL, &IS_ERROR, &[0x76, 0x0b]])), [Site::Any(12)]);
        assert_eq!(find(&text(&[&[0x48, 0x89, 0xdf], &SYSCALL, &[0x48, 0x89, 0xc3]])), [], "no such look");
    }

    #[test]
    fn a_known_number_counts_if_it_concerns_sockets() {
        let with = |number: u8| find(&text(&[&[NUMBER, number, 0, 0, 0], &SYSCALL, &IS_ERROR]));
        assert_eq!(with(233), [Site::One(9, 233)]);
        assert_eq!(with(9), [], "mmap");
        let long = [&LONG_NUMBER[..], &[9, 0, 0, 0], &SYSCALL, &IS_ERROR].concat();
        assert_eq!(find(&text(&[&long])), []);
    }

    #[test]
    fn a_vfork_keeps_its_return_address_in_a_register() {
        let vfork = [&BEFORE_VFORK[..], &SYSCALL, &AFTER_VFORK, &IS_ERROR].concat();
        assert_eq!(find(&text(&[&vfork])), [Site::Vfork(9)]);
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        let whole = text(&[&[0x48, 0x89, 0xdf], &SYSCALL, &IS_ERROR]);
        for start in 0..whole.len() {
            for end in start..whole.len() {
                assert_eq!(find(&whole[start..end]), []);
            }
        }
        assert_eq!(find(&SYSCALL), []);
        assert_eq!(find(&[&SYSCALL[..], &IS_ERROR].concat()), [Site::Any(0)]);
    }
}
