//! SipHash-2-4 (Aumasson and Bernstein 2012): a keyed hash that an outsider cannot predict, used
//! for initial sequence numbers (RFC 6528 §3 asks for a keyed pseudorandom function) and against
//! attacks on the buckets of the tables. `core` has none that is not deprecated.

use core::hash::Hasher;

/// A [`Hasher`] that computes SipHash-2-4 of the bytes written.
#[derive(Clone, Debug)]
pub struct SipHasher {
    v: [u64; 4],
    /// Bytes not yet mixed in, little end first.
    tail: u64,
    /// Bytes written.
    length: u64,
}

impl SipHasher {
    /// A hasher for the 128-bit `key`.
    pub const fn new(key: [u64; 2]) -> Self {
        let [k0, k1] = key;
        let v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        Self { v, tail: 0, length: 0 }
    }

    const fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.v = [a, b, c, d];
    }

    /// Takes the `len` low bytes of a word, 1 to 8, the others being zero.
    const fn take(&mut self, word: u64, len: u64) {
        let held = self.length % 8;
        self.tail |= word << (8 * held);
        self.length += len;
        if held + len >= 8 {
            self.mix(self.tail);
            self.tail = if held == 0 { 0 } else { word >> (8 * (8 - held)) };
        }
    }

    const fn mix(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }
}

impl Hasher for SipHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let word = part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.take(word, part.len() as u64);
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.take(u64::from(number), 2);
    }

    fn write_u32(&mut self, number: u32) {
        self.take(u64::from(number), 4);
    }

    fn write_u64(&mut self, number: u64) {
        self.take(number, 8);
    }

    fn finish(&self) -> u64 {
        let mut last = self.clone();
        last.mix(self.tail | self.length << 56);
        last.v[2] ^= 0xff;
        (0..4).for_each(|_| last.round());
        last.v.iter().fold(0, |hash, word| hash ^ word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The reference implementation's first vectors for the key 00 01 … 0f.
    const VECTORS: [u64; 4] =
        [0x726f_db47_dd0e_0e31, 0x74f8_39c5_93dc_67fd, 0x0d6c_8009_d9a9_4f5a, 0x8567_6696_d7fb_7e2d];

    fn hash(bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        hasher.write(bytes);
        hasher.finish()
    }

    #[test]
    fn how_the_bytes_are_split_does_not_matter() {
        let bytes: Vec<u8> = (0..41).collect();
        for split in 0..41 {
            let mut hasher = SipHasher::new([3, 4]);
            hasher.write(&bytes[..split]);
            hasher.write_u16(0x2A29);
            hasher.write(&bytes[split..]);
            let mut whole = SipHasher::new([3, 4]);
            whole.write(&[&bytes[..split], &[0x29, 0x2A], &bytes[split..]].concat());
            assert_eq!(hasher.finish(), whole.finish());
        }
    }

    #[test]
    fn it_agrees_with_the_published_vectors() {
        let hashes: Vec<u64> = (0..4u8).map(|len| hash(&(0..len).collect::<Vec<_>>())).collect();
        assert_eq!(hashes, VECTORS);
        // The paper's own example, fifteen bytes long.
        assert_eq!(hash(&(0..15).collect::<Vec<_>>()), 0xa129_ca61_49be_45e5);
    }
}
