//! Pictures as PNG files in a folder: `000001.png` is the first that was shown.

use super::places::folder_for;
use super::rgb::rgb;
use super::{ScreenError, Shown, Sink};
use silk_media::{Picture, Screen};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// A folder that is being filled.
#[derive(Debug)]
pub struct Pngs {
    folder: PathBuf,
    shown: Shown,
    failed: Option<ScreenError>,
}

impl Pngs {
    /// Fills `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(folder: &Path) -> Result<Self, ScreenError> {
        fs::create_dir_all(folder)
            .map_err(|error| ScreenError::Unwritable(folder.display().to_string(), error))?;
        Ok(Self { folder: folder.to_owned(), shown: Shown::default(), failed: None })
    }

    /// Fills a folder of its own in `folder`, with the name of the stream.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create_for(folder: &Path, stream: &str) -> Result<Self, ScreenError> {
        let all = Self::create(folder)?;
        Ok(Self { folder: folder_for(folder, stream)?, ..all })
    }
}

impl Screen for Pngs {
    fn show(&mut self, picture: &dyn Picture) {
        self.shown.pictures += 1;
        if self.failed.is_some() {
            self.shown.replaced += 1;
            return;
        }
        let name = self.folder.join(format!("{:06}.png", self.shown.pictures));
        let written = write(&name, picture);
        self.failed =
            written.map_err(|error| ScreenError::Unwritable(name.display().to_string(), error)).err();
    }
}

impl Sink for Pngs {
    fn is_closed(&self) -> bool {
        self.failed.is_some()
    }

    fn is_paced(&self) -> bool {
        false
    }

    fn end(self: Box<Self>) -> Result<Shown, ScreenError> {
        self.failed.map_or(Ok(self.shown), Err)
    }

    fn discard(self: Box<Self>) {
        // A folder that is not empty stays.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn write(name: &Path, picture: &dyn Picture) -> io::Result<()> {
    let (width, height) = picture.size();
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(name)?), width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb(picture))?;
    Ok(writer.finish()?)
}
