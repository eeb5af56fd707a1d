//! Bits of a header, the most significant first.

/// A reader of bits that reads zeros beyond the end.
pub struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    /// From the first bit of `bytes` on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next bit.
    pub fn flag(&mut self) -> bool {
        let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        bit != 0
    }

    /// The next `count` bits, at most 32, as a number.
    pub fn number(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |number, _| number << 1 | u32::from(self.flag()))
    }

    /// Steps over `count` bits.
    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// An unsigned Exp-Golomb number (ISO 14496-10 §9.1); none of more than 32 bits.
    pub fn golomb(&mut self) -> Option<u32> {
        let zeros = (0..32).take_while(|_| !self.flag()).count() as u32;
        if zeros == 32 {
            return None;
        }
        Some((1 << zeros) - 1 + self.number(zeros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_over_bytes_and_zeros_beyond_the_end() {
        let mut bits = Bits::new(&[0b1010_0000, 0b1100_0000]);
        assert_eq!((bits.number(3), bits.number(6), bits.flag()), (5, 1, true));
        assert_eq!((bits.number(32), bits.golomb()), (0, None));
    }

    #[test]
    fn exp_golomb_numbers_are_those_of_the_table() {
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        let read = [bits.golomb(), bits.golomb(), bits.golomb(), bits.golomb(), bits.golomb()];
        assert_eq!(read, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    }
}
