//! Raw pictures in a file, in the form of YUV4MPEG2 that mpv, ffmpeg and others read. Such a file
//! has one size: pictures of another are left out and counted.

use super::places::file_for;
use super::{ScreenError, Shown, Sink};
use silk_media::{Picture, Screen};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
#[derive(Debug)]
pub struct Y4m {
    name: PathBuf,
    file: BufWriter<File>,
    /// Nothing of that name was there before.
    new: bool,
    /// Pictures in a second, for whoever reads the file.
    rate: (u32, u32),
    size: Option<(usize, usize)>,
    shown: Shown,
    failed: Option<io::Error>,
}

impl Y4m {
    /// Begins the file anew.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn create(name: &Path, rate: (u32, u32)) -> Result<Self, ScreenError> {
        let file =
            File::create(name).map_err(|error| ScreenError::Unwritable(name.display().to_string(), error))?;
        Ok(Self::into(name.to_owned(), file, rate))
    }

    /// Begins a file of its own beside `file`, with the name of the stream in it.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn create_for(file: &Path, stream: &str, rate: (u32, u32)) -> Result<Self, ScreenError> {
        let (name, file) = file_for(file, stream)?;
        Ok(Self { new: true, ..Self::into(name, file, rate) })
    }

    fn into(name: PathBuf, file: File, rate: (u32, u32)) -> Self {
        let (file, shown) = (BufWriter::new(file), Shown::default());
        Self { name, file, new: false, rate, size: None, shown, failed: None }
    }

    fn write(&mut self, picture: &dyn Picture) -> io::Result<()> {
        if self.size.is_none() {
            let ((width, height), (numerator, denominator)) = (picture.size(), self.rate);
            self.size = Some((width, height));
            let header =
                format!("YUV4MPEG2 W{width} H{height} F{numerator}:{denominator} Ip A1:1 C420mpeg2\n");
            self.file.write_all(header.as_bytes())?;
        }
        self.file.write_all(b"FRAME\n")?;
        for plane in picture.planes() {
            for row in plane.bytes.chunks(plane.stride).take(plane.height) {
                self.file.write_all(&row[..plane.width])?;
            }
        }
        Ok(())
    }
}

impl Screen for Y4m {
    fn show(&mut self, picture: &dyn Picture) {
        self.shown.pictures += 1;
        if self.failed.is_some() || self.size.is_some_and(|size| size != picture.size()) {
            self.shown.replaced += 1;
            return;
        }
        self.failed = self.write(picture).err();
    }
}

impl Sink for Y4m {
    fn is_closed(&self) -> bool {
        self.failed.is_some()
    }

    fn is_paced(&self) -> bool {
        false
    }

    fn end(mut self: Box<Self>) -> Result<Shown, ScreenError> {
        match self.failed.take().map_or_else(|| self.file.flush(), Err) {
            Ok(()) => Ok(self.shown),
            Err(error) => Err(ScreenError::Unwritable(self.name.display().to_string(), error)),
        }
    }

    fn discard(self: Box<Self>) {
        if self.new && self.shown.pictures == 0 {
            let _ = fs::remove_file(&self.name);
        }
    }
}
