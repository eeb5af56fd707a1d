//! Where several windows of one player go: beside each other from the left, in rows.

/// Between two windows, for their frames.
const GAP: i32 = 16;

/// The upper left corner of the window `number`, the first is 0, of this size in an area of that size. Those for
/// which there is no room begin again at the first place.
pub(super) fn tile(number: usize, size: (u32, u32), area: (u32, u32)) -> (i32, i32) {
    let places = |size: u32, area: u32| ((area + GAP as u32) / (size + GAP as u32)).max(1) as usize;
    let (columns, rows) = (places(size.0, area.0), places(size.1, area.1));
    let at = |place: usize, size: u32| place as i32 * (size as i32 + GAP);
    let number = number % (columns * rows);
    (at(number % columns, size.0), at(number / columns, size.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_beside_each_other_as_long_as_there_is_room() {
        let places = [0, 1, 2, 3, 4].map(|number| tile(number, (704, 480), (1424, 1000)));
        assert_eq!(places, [(0, 0), (720, 0), (0, 496), (720, 496), (0, 0)]);
        assert_eq!(tile(3, (704, 480), (640, 480)), (0, 0));
    }
}
