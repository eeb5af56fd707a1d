//! Pictures in red, green and blue, for files and eyes that know nothing else (ITU-R BT.601: what
//! MPEG-1 and pictures of that time use).

use silk_media::Picture;

/// The samples of `picture`, three bytes each, row by row. Each sample of chroma serves four of luma.
pub(super) fn rgb(picture: &dyn Picture) -> Vec<u8> {
    let [y, cb, cr] = picture.planes();
    let convert = if picture.is_full_range() { full } else { studio };
    let mut pixels = Vec::with_capacity(y.width * y.height * 3);
    for row in 0..y.height {
        let luma = &y.bytes[row * y.stride..][..y.width];
        let blue = &cb.bytes[row / 2 * cb.stride..][..cb.width];
        let red = &cr.bytes[row / 2 * cr.stride..][..cr.width];
        for (column, &luma) in luma.iter().enumerate() {
            pixels.extend_from_slice(&convert(luma, blue[column / 2], red[column / 2]));
        }
    }
    pixels
}

/// Luma from 16 to 235, chroma from 16 to 240 (BT.601 §2.5.3), in units of 1/65 536.
fn studio(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    matrix((i32::from(y) - 16) * 76_309, cb, cr, [104_597, -53_279, -25_675, 132_201])
}

/// All samples from 0 to 255 (JFIF).
fn full(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    matrix(i32::from(y) * 65_536, cb, cr, [91_881, -46_802, -22_554, 116_130])
}

fn matrix(y: i32, cb: u8, cr: u8, factors: [i32; 4]) -> [u8; 3] {
    let (blue, red) = (i32::from(cb) - 128, i32::from(cr) - 128);
    let [red_red, green_red, green_blue, blue_blue] = factors;
    let clamp = |value: i32| ((value + 32_768) >> 16).clamp(0, 255) as u8;
    [clamp(y + red_red * red), clamp(y + green_red * red + green_blue * blue), clamp(y + blue_blue * blue)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colour bars of BT.801 at full amplitude: white, yellow, cyan, green, magenta, red, blue, black.
    #[test]
    fn colour_bars_have_their_colours() {
        let bars = [
            ([235, 128, 128], [255, 255, 255]),
            ([210, 16, 146], [255, 255, 0]),
            ([170, 166, 16], [0, 255, 255]),
            ([145, 54, 34], [0, 255, 0]),
            ([106, 202, 222], [255, 0, 255]),
            ([81, 90, 240], [255, 0, 0]),
            ([41, 240, 110], [0, 0, 255]),
            ([16, 128, 128], [0, 0, 0]),
        ];
        for ([y, cb, cr], colour) in bars {
            let near = studio(y, cb, cr).iter().zip(colour).all(|(is, bar)| is.abs_diff(bar) <= 2);
            assert!(near, "{colour:?}: {:?}", studio(y, cb, cr));
        }
    }

    #[test]
    fn grey_of_the_full_range_stays_what_it_is() {
        assert_eq!([0, 77, 255].map(|grey| full(grey, 128, 128)), [[0; 3], [77; 3], [255; 3]]);
    }
}
