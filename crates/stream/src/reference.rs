//! What stands in a send ring instead of a file's bytes: where they are to be found. It takes as many
//! places of the ring as it stands for, of which all but the first are never touched, so that indices,
//! room and acknowledgements are those of the bytes themselves.
//!
//! References are found from the newest ([`Slot::tx_reference`](crate::Slot::tx_reference)) to the one
//! before it, and so on. A program can write anything here: whoever reads it checks every field.

/// Bytes of a file, in a send ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// What [`Slot::tx_reference`](crate::Slot::tx_reference) said before this one.
    pub before: u32,
    /// For how many bytes it stands; at least [`Reference::SIZE`].
    pub len: u32,
    /// The file's place among the family's ([`SharedFile`](crate::SharedFile)).
    pub file: u32,
    /// Which use of that place.
    pub generation: u32,
    /// Where in the file the bytes begin.
    pub offset: u64,
}

impl Reference {
    /// Bytes that it takes itself, at the first of its places.
    pub const SIZE: usize = 24;

    /// As it stands in the ring.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let words = [self.before, self.len, self.file, self.generation];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes[16..].copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }

    /// What stands in the ring.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|n| bytes[at + n]));
        let offset = u64::from_ne_bytes(std::array::from_fn(|n| bytes[16 + n]));
        Self { before: word(0), len: word(4), file: word(8), generation: word(12), offset }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let reference = Reference { before: 1, len: 2, file: 3, generation: u32::MAX, offset: 1 << 40 };
        assert_eq!(Reference::from_bytes(&reference.to_bytes()), reference);
    }
}
