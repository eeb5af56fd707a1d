//! Pictures of windows, as they are on a display: found by what they are called, read, and packed for a page.

use super::screen::Display;
use crate::trouble::Trouble;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jpeg_encoder::{ColorType, Encoder};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, ImageFormat, Window};

/// Bytes of a title that are read.
const TITLE: u32 = 64;
/// How well pictures are kept, up to 100.
const QUALITY: u8 = 82;

/// A picture of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Width and height.
    pub size: (u16, u16),
    /// Blue, green, red and nothing for each of its points, row after row.
    pub points: Vec<u8>,
}

impl Display {
    /// The window whose title begins with `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<Window, Trouble> {
        let mut unseen: Vec<Window> =
            self.connection.setup().roots.iter().map(|screen| screen.root).collect();
        // A window manager puts windows into others of its own.
        while let Some(window) = unseen.pop() {
            // One that has just gone has no title and no children.
            if self.title(window).is_ok_and(|title| title.starts_with(name.as_bytes())) {
                return Ok(window);
            }
            unseen.extend(self.children(window).unwrap_or_default());
        }
        Err(Trouble::Program(format!("there is no window `{name}`")))
    }

    fn title(&self, window: Window) -> Result<Vec<u8>, ReplyError> {
        let (name, any) = (AtomEnum::WM_NAME, AtomEnum::ANY);
        Ok(self.connection.get_property(false, window, name, any, 0, TITLE / 4)?.reply()?.value)
    }

    fn children(&self, window: Window) -> Result<Vec<Window>, ReplyError> {
        Ok(self.connection.query_tree(window)?.reply()?.children)
    }

    /// A window as it is now.
    ///
    /// # Errors
    /// The display does not let it be seen.
    pub fn look(&self, window: Window) -> Result<Look, Trouble> {
        let read = self.read(window);
        read.map_err(|error| Trouble::Program(format!("a window cannot be seen: {error}")))
    }

    fn read(&self, window: Window) -> Result<Look, Box<dyn std::error::Error>> {
        let place = self.connection.get_geometry(window)?.reply()?;
        let (width, height) = (place.width, place.height);
        let image = self
            .connection
            .get_image(ImageFormat::Z_PIXMAP, window, 0, 0, width, height, u32::MAX)?
            .reply()?;
        if image.data.len() != usize::from(width) * usize::from(height) * 4 {
            return Err(format!("its points have a depth of {}", image.depth).into());
        }
        Ok(Look { size: (width, height), points: image.data })
    }
}

impl Look {
    /// The same, a `times`-th as wide and high: each point the mean of those that it stands for.
    pub fn smaller(&self, times: u16) -> Self {
        let size = (self.size.0 / times, self.size.1 / times);
        let (times, row) = (usize::from(times), usize::from(self.size.0) * 4);
        let mut points = Vec::with_capacity(usize::from(size.0) * usize::from(size.1) * 4);
        for y in 0..usize::from(size.1) {
            for x in 0..usize::from(size.0) {
                for colour in 0..4 {
                    let rows = (y * times..(y + 1) * times).map(|y| y * row);
                    let at = |y: usize| (0..times).map(move |dx| y + (x * times + dx) * 4 + colour);
                    let sum: usize = rows.flat_map(at).map(|at| usize::from(self.points[at])).sum();
                    points.push((sum / (times * times)) as u8);
                }
            }
        }
        Self { size, points }
    }

    /// As a JPEG file in the text of a page.
    pub fn data(&self) -> String {
        let mut file = Vec::new();
        // Writing into memory fails only where there is none, and a picture of no size is none.
        let _ =
            Encoder::new(&mut file, QUALITY).encode(&self.points, self.size.0, self.size.1, ColorType::Bgra);
        format!("data:image/jpeg;base64,{}", STANDARD.encode(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_look_has_the_mean_of_its_points() {
        let row = |values: [u8; 4]| values.iter().flat_map(|value| [*value, 0, 255, 0]).collect::<Vec<u8>>();
        let look = Look { size: (4, 2), points: [row([10, 20, 0, 0]), row([30, 40, 8, 8])].concat() };
        assert_eq!(look.smaller(2), Look { size: (2, 1), points: vec![25, 0, 255, 0, 4, 0, 255, 0] });
        assert!(look.data().starts_with("data:image/jpeg;base64,/9j/"));
    }
}
