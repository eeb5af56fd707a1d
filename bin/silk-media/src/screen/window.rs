//! A window, by SDL2, on a thread of its own: the graphics system may keep that one waiting, for the
//! vertical retrace or otherwise, and nobody else. The picture fills the window as far as its shape
//! allows.

use super::shared::{Copied, Next, Shared};
use super::{ScreenError, Shown, Sink};
use sdl2::EventPump;
use sdl2::event::Event;
use sdl2::keyboard::Keycode;
use sdl2::pixels::PixelFormatEnum;
use sdl2::rect::Rect;
use sdl2::render::{Texture, TextureCreator, WindowCanvas};
use sdl2::video::{WindowContext, WindowPos};
use silk_appliance::{Clock, Monotonic};
use silk_media::{Picture, Retrace, Screen};
use std::env;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The drivers of SDL that show nothing.
const UNSEEN: [&str; 3] = ["dummy", "offscreen", "evdev"];

/// The renderer's flag that says so.
const WAITS_FOR_RETRACE: u32 = sdl2::sys::SDL_RendererFlags::SDL_RENDERER_PRESENTVSYNC as u32;

/// The rate of a display that does not tell it, Hz: SDL supposes so too, and waits for that.
const SUPPOSED: u32 = 60;

/// How often a window without new pictures looks whether it was closed or moved.
const LOOK: Duration = Duration::from_millis(20);

/// A window.
#[derive(Debug)]
pub struct Window {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Window {
    /// Opens a window called `title`. It takes the size of the first picture.
    ///
    /// # Errors
    /// Where there is no screen, or SDL cannot use it.
    pub fn open(title: &str) -> Result<Self, ScreenError> {
        let shared = Arc::new(Shared::default());
        let (theirs, title) = (shared.clone(), title.to_owned());
        let (opened, answer) = mpsc::channel();
        let thread = thread::Builder::new().name("window".to_owned()).spawn(move || {
            match Drawing::open(&title) {
                Ok(drawing) => {
                    let _ = opened.send(Ok(()));
                    drawing.run(&theirs);
                }
                Err(why) => drop(opened.send(Err(why))),
            }
            theirs.close();
        });
        let thread = thread.map_err(|error| ScreenError::NoWindow(error.to_string()))?;
        let opened = answer.recv().unwrap_or_else(|_| Err("its thread died".to_owned()));
        opened.map_err(ScreenError::NoWindow)?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Screen for Window {
    fn show(&mut self, picture: &dyn Picture) {
        self.shared.leave(picture);
    }

    fn retrace(&self) -> Option<Retrace> {
        self.shared.retrace()
    }
}

impl Sink for Window {
    fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    fn end(self: Box<Self>) -> Result<Shown, ScreenError> {
        Ok(self.shared.shown())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.shared.close();
        // A thread that panicked has nothing to tell that it has not told.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What the window's thread has. SDL's things stay on the thread that made them.
struct Drawing {
    title: String,
    events: EventPump,
    canvas: WindowCanvas,
    textures: TextureCreator<WindowContext>,
}

impl Drawing {
    fn open(title: &str) -> Result<Self, String> {
        // Signals are the program's business, and a player is no reason to keep a screen saver away
        // from those who watch something else.
        sdl2::hint::set("SDL_NO_SIGNAL_HANDLERS", "1");
        sdl2::hint::set("SDL_RENDER_SCALE_QUALITY", "linear");
        let sdl = sdl2::init()?;
        let video = sdl.video()?;
        // SDL would rather draw where nobody sees it than say that there is no screen.
        let driver = video.current_video_driver();
        if UNSEEN.contains(&driver) && env::var_os("SDL_VIDEODRIVER").is_none() {
            return Err("there is no screen".to_owned());
        }
        let window = video.window(title, 704, 480).position_centered().resizable().hidden().build();
        let builder = window.map_err(|error| error.to_string())?.into_canvas();
        let canvas = builder.present_vsync().build().map_err(|error| error.to_string())?;
        let textures = canvas.texture_creator();
        Ok(Self { title: title.to_owned(), events: sdl.event_pump()?, canvas, textures })
    }

    fn run(mut self, shared: &Shared) {
        let textures = std::mem::replace(&mut self.textures, self.canvas.texture_creator());
        let (mut copied, mut texture, mut rate) = (Copied::default(), None, Rate::default());
        loop {
            match shared.take(&mut copied, LOOK) {
                Next::End => return,
                Next::Nothing => {}
                Next::Show => {
                    if self.load(&textures, &mut texture, &copied).is_err() {
                        return;
                    }
                    if let Some(fps) = rate.count(Instant::now()) {
                        let title = format!("{} – {fps:.1} pictures/s", self.title);
                        // A title with a zero in it stays as it was.
                        let _ = self.canvas.window_mut().set_title(&title);
                    }
                    self.draw(texture.as_ref(), copied.size);
                    // What was drawn is on the screen from a retrace on, and until then it was waited.
                    shared.tell_retrace(self.retrace(Monotonic.now()));
                }
            }
            match self.look() {
                Look::Close => return,
                Look::Redraw => self.draw(texture.as_ref(), copied.size),
                Look::Nothing => {}
            }
        }
    }

    /// Brings the picture's samples into the texture, a new one where the size is another.
    fn load<'t>(
        &mut self,
        textures: &'t TextureCreator<WindowContext>,
        texture: &mut Option<Texture<'t>>,
        copied: &Copied,
    ) -> Result<(), String> {
        let (width, height) = copied.size;
        let (width32, height32) = (width as u32, height as u32);
        let fits = texture.as_ref().map(Texture::query);
        if fits.is_none_or(|query| (query.width, query.height) != (width32, height32)) {
            let new = textures.create_texture_streaming(PixelFormatEnum::IYUV, width32, height32);
            *texture = Some(new.map_err(|error| error.to_string())?);
            self.shape(width32, height32);
        }
        let Some(texture) = texture else { return Ok(()) };
        let [y, cb, cr] = &copied.planes;
        let chroma = copied.chroma_width();
        texture.update_yuv(None, y, width, cb, chroma, cr, chroma).map_err(|error| error.to_string())
    }

    /// Gives the window the size of its pictures, twice as large where they are small.
    fn shape(&mut self, width: u32, height: u32) {
        let times = if width <= 400 { 2 } else { 1 };
        let window = self.canvas.window_mut();
        let _ = window.set_size(width * times, height * times);
        window.set_position(WindowPos::Centered, WindowPos::Centered);
        window.show();
    }

    fn draw(&mut self, texture: Option<&Texture<'_>>, (width, height): (usize, usize)) {
        let Some(texture) = texture else { return };
        let (out_width, out_height) = self.canvas.output_size().unwrap_or((width as u32, height as u32));
        let place = fitted((out_width, out_height), (width as u32, height as u32));
        self.canvas.clear();
        // What cannot be drawn now is drawn with the next picture.
        let _ = self.canvas.copy(texture, None, place);
        self.canvas.present();
    }

    /// The retraces of the display that the window is on, one of which was now; `None` where drawing waits for none.
    fn retrace(&self, now: silk_instant::Instant) -> Option<Retrace> {
        let waits = self.canvas.info().flags & WAITS_FOR_RETRACE != 0;
        let window = self.canvas.window();
        let mode = window.subsystem().current_display_mode(window.display_index().ok()?).ok()?;
        let hertz = u32::try_from(mode.refresh_rate).ok().filter(|hertz| *hertz > 0).unwrap_or(SUPPOSED);
        Retrace::new(now, hertz).filter(|_| waits)
    }

    fn look(&mut self) -> Look {
        let mut look = Look::Nothing;
        for event in self.events.poll_iter() {
            match event {
                Event::Quit { .. } | Event::KeyDown { keycode: Some(Keycode::Escape | Keycode::Q), .. } => {
                    return Look::Close;
                }
                Event::Window { .. } => look = Look::Redraw,
                _ => {}
            }
        }
        look
    }
}

/// What happened to the window.
enum Look {
    Nothing,
    Redraw,
    Close,
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
