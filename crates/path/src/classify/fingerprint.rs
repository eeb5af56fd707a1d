//! The name of an IPv6 flow in the flow table: a keyed fingerprint of 96 bits instead of the 288
//! bits of its addresses and ports, so that an entry of either family is two words, and a
//! lookup of IPv4 is what it would be without IPv6. The function is SipHash-1-3 with 128 bits of
//! output (Aumasson and Bernstein, 2012) over five words without a length block, since all inputs
//! are of one length. Who does not know the key can neither find two flows of one name nor a
//! packet that takes another flow's.

use super::layout::HASH_K1;

/// The name of a flow from its five words: remote address (two), local address (two), ports.
/// `key` is the settings' two seeds.
pub(super) const fn fingerprint(key: [u64; 2], words: [u64; 5]) -> (u64, u32) {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut n = 0;
    while n < words.len() {
        v[3] ^= words[n];
        v = round(v);
        v[0] ^= words[n];
        n += 1;
    }
    v[2] ^= 0xee;
    v = round(round(round(v)));
    let first = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    v = round(round(round(v)));
    (first, (v[0] ^ v[1] ^ v[2] ^ v[3]) as u32)
}

const fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
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
    [a, b, c, d]
}

/// The second half of the key where nobody has set one: a test's, or a table's in plain memory.
pub(super) const fn second_half(seed: u64) -> u64 {
    seed.rotate_left(32).wrapping_mul(HASH_K1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_is_the_one_written_down() {
        // Golden values, so that a change here cannot pass unnoticed by the C program.
        assert_eq!(fingerprint([0, 0], [0; 5]), GOLDEN[0]);
        assert_eq!(fingerprint([1, 2], [3, 4, 5, 6, 7]), GOLDEN[1]);
    }

    const GOLDEN: [(u64, u32); 2] = [(2286069711816849926, 3911082703), (14008554291999080610, 1389176851)];

    #[test]
    fn every_word_and_both_halves_of_the_key_count() {
        let name = fingerprint([1, 2], [3, 4, 5, 6, 7]);
        assert_ne!(fingerprint([2, 2], [3, 4, 5, 6, 7]), name);
        assert_ne!(fingerprint([1, 3], [3, 4, 5, 6, 7]), name);
        for n in 0..5 {
            let mut words = [3, 4, 5, 6, 7];
            words[n] ^= 1 << 63;
            assert_ne!(fingerprint([1, 2], words), name, "word {n}");
        }
    }
}
