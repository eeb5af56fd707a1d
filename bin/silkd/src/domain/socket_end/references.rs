//! What a program has written by reference: which bytes of its stream lie in which file, and where. The
//! places that they take in the send ring are free meanwhile, so that a file that is about to change
//! is copied there and nothing else is different.

use crate::domain::files::Files;
use silk_stream::{Bytes, Leased, Reference};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// References that one stream may have: as many as the largest ring holds of what is worth one.
const MOST: usize = 256;

/// The references of one stream, in order.
#[derive(Debug, Default)]
pub struct References {
    list: VecDeque<Referred>,
    /// The newest that is known, as [`silk_stream::Slot::tx_reference`] has it.
    pub newest: u32,
    /// Bytes were looked at before anybody had rung for them.
    pub unheard: bool,
    /// The program has referred to what there is not.
    pub nonsense: bool,
    /// Where bytes that lie in more than two pieces are put together.
    together: Vec<u8>,
}

/// One of them.
#[derive(Debug)]
struct Referred {
    /// The index at which it begins.
    at: u32,
    reference: Reference,
    file: Arc<Leased>,
}

impl Referred {
    /// Whether all of it lies before this index, which is no further away than a ring is long.
    fn is_before(&self, index: u32) -> bool {
        let behind = index.wrapping_sub(self.at);
        behind >= self.reference.len && behind <= u32::MAX / 2
    }

    fn bytes(&self, skip: u32, len: usize) -> &[u8] {
        self.file.bytes(self.reference.offset + u64::from(skip), len).unwrap_or_default()
    }
}

impl References {
    /// Takes in those that begin in `fresh`, which are found from `newest` backwards: first those that the program has
    /// not said to be written yet, which are taken when it has. What is wrong with one is wrong with the stream.
    pub fn take_in(&mut self, newest: u32, fresh: Range<u32>, ring: Bytes<'_>, files: &Files) {
        let (width, first) = (fresh.end.wrapping_sub(fresh.start), self.list.len());
        let (mut next, mut end, mut taken) = (newest, width, None);
        // Where the one followed last begins that is not said to be written, and how many more there may be of these.
        let (mut beyond, mut unsaid) = (ring.size(), MOST);
        while next != self.newest {
            let at = !next;
            let mut bytes = [0; Reference::SIZE];
            ring.read(at, &mut bytes);
            let reference = Reference::from_bytes(&bytes);
            let begins = at.wrapping_sub(fresh.start);
            if begins < width {
                let file = files.find(reference.file, reference.generation);
                let file = file.filter(|file| file.bytes(reference.offset, reference.len as usize).is_some());
                let fits = reference.len as usize >= Reference::SIZE
                    && begins.checked_add(reference.len).is_some_and(|behind| behind <= end);
                let Some(file) = file.filter(|_| fits && self.list.len() < MOST) else {
                    self.nonsense = true;
                    return;
                };
                self.list.insert(first, Referred { at, reference, file });
                (end, taken) = (begins, taken.or(Some(next)));
            } else if taken.is_none() && begins < beyond && unsaid > 0 {
                (beyond, unsaid) = (begins, unsaid - 1);
            } else {
                self.nonsense = true;
                return;
            }
            next = reference.before;
        }
        self.newest = taken.unwrap_or(self.newest);
    }

    /// Whether there are any.
    pub fn are_there(&self) -> bool {
        !self.list.is_empty()
    }

    /// What is before this index is done with.
    pub fn forget_before(&mut self, index: u32) {
        while self.list.front().is_some_and(|one| one.is_before(index)) {
            self.list.pop_front();
        }
        if self.list.is_empty() {
            self.together = Vec::new();
        }
    }

    /// The bytes at `at`, in at most two slices.
    pub fn peek<'a>(&'a mut self, at: u32, len: usize, ring: Bytes<'a>) -> [&'a [u8]; 2] {
        if self.pieces(at, len, ring).nth(2).is_some() {
            let mut together = std::mem::take(&mut self.together);
            together.clear();
            self.pieces(at, len, ring).for_each(|piece| together.extend_from_slice(piece));
            self.together = together;
            return [&self.together, &[]];
        }
        let mut pieces = self.pieces(at, len, ring);
        std::array::from_fn(|_| pieces.next().unwrap_or_default())
    }

    /// Where the bytes at `at` lie, piece by piece.
    fn pieces<'a>(&'a self, mut at: u32, mut left: usize, ring: Bytes<'a>) -> impl Iterator<Item = &'a [u8]> {
        std::iter::from_fn(move || {
            let piece = self.piece(at, left, ring);
            (at, left) = (at.wrapping_add(piece.len() as u32), left - piece.len());
            Some(piece).filter(|piece| !piece.is_empty())
        })
    }

    /// What lies in one piece at `at`: in a file, or in the ring up to the next reference.
    fn piece<'a>(&'a self, at: u32, left: usize, ring: Bytes<'a>) -> &'a [u8] {
        match self.list.iter().find(|one| !one.is_before(at)) {
            Some(one) if at.wrapping_sub(one.at) < one.reference.len => {
                let skip = at.wrapping_sub(one.at);
                one.bytes(skip, left.min((one.reference.len - skip) as usize))
            }
            next => {
                let until = next.map_or(left, |one| one.at.wrapping_sub(at) as usize);
                ring.peek(at, left.min(until))[0]
            }
        }
    }

    /// What of `all` lies in no file, piece by piece: where it begins and how long it is.
    pub fn between(this: Option<&Self>, all: (u32, u32)) -> impl Iterator<Item = (u32, u32)> {
        let (mut at, end) = all;
        std::iter::from_fn(move || {
            loop {
                let left = end.wrapping_sub(at);
                let next = this.and_then(|files| files.list.iter().find(|one| !one.is_before(at)));
                let (skip, until) = match next {
                    Some(one) if at.wrapping_sub(one.at) < one.reference.len => {
                        (one.reference.len - at.wrapping_sub(one.at), 0)
                    }
                    Some(one) => (0, one.at.wrapping_sub(at).min(left)),
                    None => (0, left),
                };
                if left <= skip {
                    return None;
                }
                let piece = (at, until);
                at = at.wrapping_add(skip + until);
                if until > 0 {
                    return Some(piece);
                }
            }
        })
    }

    /// Copies what lies in the file at this place, or in every one, into the ring, from `read` on: the
    /// places of what is before are free, and may have been written again.
    pub fn keep_copy_of(&mut self, place: Option<u32>, read: u32, ring: Bytes<'_>) {
        self.list.retain(|one| {
            let is_there = place.is_none_or(|place| one.reference.file == place);
            if is_there {
                let done =
                    if read.wrapping_sub(one.at) < one.reference.len { read.wrapping_sub(one.at) } else { 0 };
                let left = (one.reference.len - done) as usize;
                ring.write(one.at.wrapping_add(done), one.bytes(done, left));
            }
            !is_there
        });
    }
}
