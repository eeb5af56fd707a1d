//! One window of SDL2's: the picture fills it as far as its shape allows.

use super::shared::Copied;
use super::tile::tile;
use crate::sys::Planes;
use sdl2::VideoSubsystem;
use sdl2::rect::Rect;
use sdl2::render::WindowCanvas;
use sdl2::video::WindowPos;
use silk_media::Retrace;
use std::time::Instant;

/// The renderer's flag that says that drawing waits for the vertical retrace.
const WAITS_FOR_RETRACE: u32 = sdl2::sys::SDL_RendererFlags::SDL_RENDERER_PRESENTVSYNC as u32;
/// The rate of a display that does not tell it, Hz: SDL supposes so too, and waits for that.
const SUPPOSED: u32 = 60;

/// A window and the picture that it shows.
pub(super) struct Drawing {
    title: String,
    number: Option<usize>,
    texture: Option<Planes>,
    canvas: WindowCanvas,
    picture: Copied,
    /// The size of pictures that the window was given its own for.
    shaped: (usize, usize),
    rate: Rate,
}

impl Drawing {
    /// A hidden window: it is shown with the first picture, in the middle, or beside others where it is the
    /// `number`-th of several.
    pub fn open(video: &VideoSubsystem, title: &str, number: Option<usize>) -> Result<Self, String> {
        let window = video.window(title, 704, 480).position_centered().resizable().hidden().build();
        let mut builder = window.map_err(|error| error.to_string())?.into_canvas();
        // One thread draws several windows: it must not wait for the vertical retrace for each.
        if number.is_none() {
            builder = builder.present_vsync();
        }
        let canvas = builder.build().map_err(|error| error.to_string())?;
        let (picture, rate) = (Copied::default(), Rate::default());
        Ok(Self { title: title.to_owned(), number, texture: None, canvas, picture, shaped: (0, 0), rate })
    }

    /// What SDL calls it in its events.
    pub fn id(&self) -> u32 {
        self.canvas.window().id()
    }

    /// Where the next picture is put, for [`Self::show`].
    pub fn picture(&mut self) -> &mut Copied {
        &mut self.picture
    }

    /// Shows the picture that it was given.
    pub fn show(&mut self) -> Result<(), String> {
        self.load()?;
        if let Some(fps) = self.rate.count(Instant::now()) {
            let title = format!("{} – {fps:.1} pictures/s", self.title);
            // A title with a zero in it stays as it was.
            let _ = self.canvas.window_mut().set_title(&title);
        }
        self.draw();
        Ok(())
    }

    /// Draws its picture, if it has one yet.
    pub fn draw(&mut self) {
        let Some(texture) = &self.texture else { return };
        let (width, height) = self.picture.size;
        let size = (width as u32, height as u32);
        let place = fitted(self.canvas.output_size().unwrap_or(size), size);
        self.canvas.clear();
        // What cannot be drawn now is drawn with the next picture.
        let _ = self.canvas.copy(texture, Rect::new(0, 0, size.0, size.1), place);
        self.canvas.present();
    }

    /// Brings the picture's samples into the texture, a new one where the size is another.
    fn load(&mut self) -> Result<(), String> {
        let (width, height) = self.picture.even();
        if self.shaped != self.picture.size {
            self.texture = Some(Planes::new(&self.canvas, (width as u32, height as u32))?);
            self.shaped = self.picture.size;
            self.shape(self.shaped.0 as u32, self.shaped.1 as u32);
        }
        let (Some(texture), [y, cb, cr]) = (&mut self.texture, &self.picture.planes) else { return Ok(()) };
        let chroma = width / 2;
        texture.update_yuv(None, y, width, cb, chroma, cr, chroma).map_err(|error| error.to_string())
    }

    /// The retraces of the display that the window is on, one of which was now; `None` where drawing waits for none.
    pub fn retrace(&self, now: silk_instant::Instant) -> Option<Retrace> {
        let waits = self.canvas.info().flags & WAITS_FOR_RETRACE != 0;
        let window = self.canvas.window();
        let mode = window.subsystem().current_display_mode(window.display_index().ok()?).ok()?;
        let hertz = u32::try_from(mode.refresh_rate).ok().filter(|hertz| *hertz > 0).unwrap_or(SUPPOSED);
        Retrace::new(now, hertz).filter(|_| waits)
    }

    /// Gives the window the size of its pictures, twice as large where they are small.
    fn shape(&mut self, width: u32, height: u32) {
        let times = if width <= 400 { 2 } else { 1 };
        let size = (width * times, height * times);
        let window = self.canvas.window_mut();
        let _ = window.set_size(size.0, size.1);
        let area = window.display_index().and_then(|index| window.subsystem().display_usable_bounds(index));
        match (self.number, area) {
            (Some(number), Ok(area)) => {
                let (x, y) = tile(number, size, (area.width(), area.height()));
                window.set_position(WindowPos::Positioned(area.x() + x), WindowPos::Positioned(area.y() + y));
            }
            _ => window.set_position(WindowPos::Centered, WindowPos::Centered),
        }
        window.show();
    }
}

/// Where a picture goes in a window: as large as it fits, in the middle.
fn fitted(window: (u32, u32), picture: (u32, u32)) -> Rect {
    let (window_width, window_height) = (u64::from(window.0), u64::from(window.1));
    let (width, height) = (u64::from(picture.0.max(1)), u64::from(picture.1.max(1)));
    let (new_width, new_height) = if window_width * height <= window_height * width {
        (window_width, window_width * height / width)
    } else {
        (window_height * width / height, window_height)
    };
    let at = |window: u64, picture: u64| (window.saturating_sub(picture) / 2) as i32;
    let (x, y) = (at(window_width, new_width), at(window_height, new_height));
    Rect::new(x, y, new_width as u32, new_height as u32)
}

/// Counts the pictures of each second.
#[derive(Debug, Default)]
struct Rate {
    since: Option<Instant>,
    pictures: u32,
}

impl Rate {
    /// Counts one; answers the rate when a second is over.
    fn count(&mut self, now: Instant) -> Option<f64> {
        let since = *self.since.get_or_insert(now);
        let passed = now.duration_since(since).as_secs_f64();
        if passed < 1.0 {
            self.pictures += 1;
            return None;
        }
        let rate = f64::from(self.pictures) / passed;
        *self = Self { since: Some(now), pictures: 1 };
        Some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_picture_keeps_its_shape_in_any_window() {
        assert_eq!(fitted((704, 480), (352, 240)), Rect::new(0, 0, 704, 480));
        assert_eq!(fitted((1000, 480), (352, 240)), Rect::new(148, 0, 704, 480));
        assert_eq!(fitted((704, 1000), (352, 240)), Rect::new(0, 260, 704, 480));
    }

    #[test]
    fn the_rate_is_told_once_a_second() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let told: Vec<_> =
            (0..=60).filter_map(|n| rate.count(start + Duration::from_millis(n * 50))).collect();
        assert_eq!(told, [20.0; 3]);
    }
}
