//! A texture of SDL's that goes when it is dropped: those of its bindings that a struct can hold beside its window stay
//! until that goes, and a stream may change the size of its pictures as often as it likes.

use sdl2::pixels::PixelFormatEnum;
use sdl2::render::{Texture, TextureCreator, WindowCanvas};
use sdl2::video::WindowContext;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// The samples of a picture, in planes, where the graphics system draws from.
pub struct Planes {
    texture: ManuallyDrop<Texture>,
    /// It keeps the renderer alive.
    _creator: TextureCreator<WindowContext>,
}

impl Planes {
    /// Planes for pictures of this size in a window.
    ///
    /// # Errors
    /// What the graphics system says.
    pub fn new(canvas: &WindowCanvas, (width, height): (u32, u32)) -> Result<Self, String> {
        let creator = canvas.texture_creator();
        let texture = creator.create_texture_streaming(PixelFormatEnum::IYUV, width, height);
        let texture = ManuallyDrop::new(texture.map_err(|error| error.to_string())?);
        Ok(Self { texture, _creator: creator })
    }
}

impl Deref for Planes {
    type Target = Texture;

    fn deref(&self) -> &Texture {
        &self.texture
    }
}

impl DerefMut for Planes {
    fn deref_mut(&mut self) -> &mut Texture {
        &mut self.texture
    }
}

impl Drop for Planes {
    fn drop(&mut self) {
        // SAFETY: the texture is not used again, and nobody else has it. Its renderer lives, for the creator that
        // made it holds it, and goes after this.
        unsafe { ManuallyDrop::take(&mut self.texture).destroy() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address space of this process, bytes (proc(5)).
    fn memory() -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
    }

    #[test]
    fn planes_that_are_not_needed_any_more_take_no_memory() {
        sdl2::hint::set("SDL_VIDEODRIVER", "dummy");
        let video = sdl2::init().and_then(|sdl| sdl.video()).unwrap();
        let window = video.window("planes", 64, 64).hidden().build().unwrap();
        let canvas = window.into_canvas().software().build().unwrap();
        let mut planes = Planes::new(&canvas, (1024, 1024)).unwrap();
        let before = memory();
        (0..2000).for_each(|n| planes = Planes::new(&canvas, (1024, 1024 + n % 2 * 2)).unwrap());
        // All of them together are 3 GB.
        assert!(memory() < before + (1 << 30));
        drop(canvas);
        assert_eq!((planes.query().width, planes.query().height), (1024, 1026));
    }
}
