//! Coded pictures cut as a source cuts them: packets of whole slices as far as they fit, and parts of
//! slices where they do not.

use silk_media::Unit;

/// Bytes of video in a packet: what an Ethernet packet holds beside IP, UDP and MFLOW, and a few.
pub const PACKET: usize = 1400;

/// The packets of one coded picture.
pub fn packets(picture: &[u8], stamp: u32) -> Vec<Unit<'_>> {
    let mut ranges = Vec::new();
    let (mut from, mut cut) = (0, 0);
    for start in starts(picture).chain([picture.len()]) {
        if start - from > PACKET && cut > from {
            ranges.push((from, cut));
            from = cut;
        }
        while start - from > PACKET {
            ranges.push((from, from + PACKET));
            from += PACKET;
        }
        cut = start;
    }
    if from < picture.len() {
        ranges.push((from, picture.len()));
    }
    let last = ranges.len().saturating_sub(1);
    let unit = |(index, &(from, to)): (usize, &(usize, usize))| Unit {
        bytes: &picture[from..to],
        stamp,
        first: index == 0,
        last: index == last,
        gap: false,
    };
    ranges.iter().enumerate().map(unit).collect()
}

/// Where a packet may begin: at each start code of a slice of MPEG (01 to af), or of any unit of
/// H.264, which has no other start codes.
fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    bytes.windows(4).enumerate().filter(|(_, four)| slice_begins(four)).map(|(at, _)| at)
}

fn slice_begins(four: &[u8]) -> bool {
    four.starts_with(&[0, 0, 1]) && (1..=0xaf).contains(&four[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(sizes: &[usize]) -> Vec<u8> {
        sizes.iter().flat_map(|&size| [vec![0, 0, 1, 1], vec![9; size - 4]].concat()).collect()
    }

    #[test]
    fn packets_hold_whole_slices_where_these_fit_and_everything_in_order() {
        let picture = slices(&[600, 600, 600, 3000, 10]);
        let cut = packets(&picture, 7);
        assert_eq!(cut.iter().map(|unit| unit.bytes.len()).collect::<Vec<_>>(), [1200, 600, 1400, 1400, 210]);
        assert_eq!(cut.iter().flat_map(|unit| unit.bytes).copied().collect::<Vec<_>>(), picture);
        let ends: Vec<_> = cut.iter().map(|unit| (unit.first, unit.last, unit.stamp)).collect();
        assert_eq!((ends[0], ends[2], ends[4]), ((true, false, 7), (false, false, 7), (false, true, 7)));
    }

    #[test]
    fn a_small_picture_is_one_packet_and_nothing_is_none() {
        assert_eq!(packets(&slices(&[100, 100]), 0).len(), 1);
        assert_eq!(packets(&[], 0).len(), 0);
    }
}
