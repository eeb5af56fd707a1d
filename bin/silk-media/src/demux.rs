//! Files of video: whatever libavformat can open, taken apart into the coded pictures of its first
//! video stream, MPEG-1/2 or H.264 with start codes. A file is hostile: it may not make the library
//! open anything but files (playlists name other hosts), and what is no video that paths carry is
//! refused with what it is and how to convert it.

use crate::avcodec;
use crate::sys::AnnexB;
use ffmpeg_next::codec::Id;
use ffmpeg_next::format::context::Input;
use ffmpeg_next::{Dictionary, Error, Packet, Rational, media};
use silk_media::Coding;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// So many packets in turn that cannot be read, and the file is given up.
const PATIENCE: u32 = 1000;

/// Why a file cannot be played.
#[derive(Debug)]
pub enum Unplayable {
    /// It cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Its name is not text, which libavformat needs.
    Nameless(PathBuf),
    /// libavformat knows no such file.
    NotVideo(PathBuf, Error),
    /// It has no video in it.
    NoVideo(PathBuf),
    /// It is coded otherwise: the name of the coding.
    Coded(PathBuf, String),
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(file, why) => write!(f, "`{}` cannot be read: {why}", file.display()),
            Self::Nameless(file) => write!(f, "the name of `{}` is not valid UTF-8", file.display()),
            Self::NotVideo(file, why) => write!(f, "`{}` is not a video file: {why}", file.display()),
            Self::NoVideo(file) => write!(f, "there is no video in `{}`", file.display()),
            Self::Coded(file, coding) => write!(
                f,
                "`{0}` is coded as {coding}; paths carry MPEG-1, MPEG-2 and H.264. To convert it:\n  \
                 ffmpeg -i {0} -an -c:v mpeg2video -q:v 3 -bf 2 converted.mpg",
                file.display()
            ),
        }
    }
}

impl std::error::Error for Unplayable {}

/// A file that is open.
pub struct Demuxer {
    input: Input,
    stream: usize,
    filter: Option<AnnexB>,
    coding: Coding,
    rate: Rational,
}

/// A coded picture.
pub struct Coded {
    packet: Packet,
    /// The type of picture: 1 I, 2 P, 3 B (ISO 13818-2 §6.3.9); 0 where it is not plain.
    pub kind: u8,
}

impl Coded {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.packet.data().unwrap_or_default()
    }
}

impl fmt::Debug for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coded").field("bytes", &self.bytes().len()).field("kind", &self.kind).finish()
    }
}

impl fmt::Debug for Demuxer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demuxer").field("coding", &self.coding).field("rate", &self.rate).finish()
    }
}

impl Demuxer {
    /// Opens `file` and finds its video.
    ///
    /// # Errors
    /// The file's fault, as it is to be told to a person.
    pub fn open(file: &Path) -> Result<Self, Unplayable> {
        avcodec::begin();
        // What the system says of a missing file is plainer than what the library does.
        fs::File::open(file).map_err(|error| Unplayable::Unreadable(file.to_owned(), error))?;
        let input = open(file)?;
        let stream =
            input.streams().best(media::Type::Video).ok_or_else(|| Unplayable::NoVideo(file.to_owned()))?;
        let parameters = stream.parameters();
        let coding = coding(parameters.id())
            .map_err(|other| Unplayable::Coded(file.to_owned(), other.name().to_owned()))?;
        let filter = (coding == Coding::H264).then(|| AnnexB::new(&parameters)).transpose();
        let filter = filter.map_err(|error| Unplayable::NotVideo(file.to_owned(), error))?;
        let rate = rate([stream.avg_frame_rate(), stream.rate()]);
        let stream = stream.index();
        Ok(Self { input, stream, filter, coding, rate })
    }

    /// How its video is coded.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Pictures in a second: numerator and denominator, both positive.
    pub fn rate(&self) -> (u32, u32) {
        (self.rate.numerator() as u32, self.rate.denominator() as u32)
    }

    /// The packet with start codes; `None` where it holds no picture.
    fn coded(&mut self, mut packet: Packet) -> Option<Coded> {
        let filtered = self.filter.as_mut().map_or(Ok(true), |filter| filter.filter(&mut packet));
        if !filtered.unwrap_or(false) || packet.size() == 0 {
            return None;
        }
        let bytes = packet.data().unwrap_or_default();
        let kind = match self.coding {
            Coding::Mpeg => mpeg_kind(bytes),
            Coding::H264 => u8::from(packet.is_key()),
        };
        Some(Coded { packet, kind })
    }
}

/// The coded pictures, in the order they are decoded, to the end of the file or of what of it can be
/// read.
impl Iterator for Demuxer {
    type Item = Coded;

    fn next(&mut self) -> Option<Coded> {
        let mut unreadable = 0;
        while unreadable < PATIENCE {
            let mut packet = Packet::empty();
            match packet.read(&mut self.input) {
                Ok(()) if packet.stream() == self.stream => {
                    if let Some(coded) = self.coded(packet) {
                        return Some(coded);
                    }
                }
                Ok(()) => {}
                Err(Error::InvalidData | Error::Other { errno: ffmpeg_next::error::EAGAIN }) => {
                    unreadable += 1
                }
                Err(_) => return None,
            }
        }
        None
    }
}

fn open(file: &Path) -> Result<Input, Unplayable> {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = absolute.to_str().ok_or_else(|| Unplayable::Nameless(file.to_owned()))?;
    let mut options = Dictionary::new();
    options.set("protocol_whitelist", "file");
    let url = format!("file:{name}");
    ffmpeg_next::format::input_with_dictionary(&url, options)
        .map_err(|error| Unplayable::NotVideo(file.to_owned(), error))
}

/// How a stream is coded, or what it is instead.
fn coding(id: Id) -> Result<Coding, Id> {
    match id {
        Id::MPEG1VIDEO | Id::MPEG2VIDEO => Ok(Coding::Mpeg),
        Id::H264 => Ok(Coding::H264),
        other => Err(other),
    }
}

/// The first rate that can be one.
fn rate(told: [Rational; 2]) -> Rational {
    let sane = |rate: &Rational| {
        let (n, d) = (i64::from(rate.numerator()), i64::from(rate.denominator()));
        n > 0 && d > 0 && (d..=d * 1000).contains(&n)
    };
    told.into_iter().find(sane).unwrap_or(Rational(25, 1))
}

/// The type in the first picture header (ISO 13818-2 §6.2.3: ten bits of temporal reference, then
/// three of type).
fn mpeg_kind(bytes: &[u8]) -> u8 {
    let header = bytes.windows(6).find(|six| six.starts_with(&[0, 0, 1, 0]));
    header.map_or(0, |six| six[5] >> 3 & 7).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_behind_the_temporal_reference() {
        let picture = |kind: u8| [0xb3, 0, 0, 1, 0, 0x12, 0xc0 | kind << 3, 0xff];
        assert_eq!([1, 2, 3].map(|kind| mpeg_kind(&picture(kind))), [1, 2, 3]);
        assert_eq!([mpeg_kind(&[0, 0, 1]), mpeg_kind(&[])], [0, 0]);
    }

    #[test]
    fn a_rate_that_cannot_be_is_not_believed() {
        let ntsc = Rational(30_000, 1001);
        assert_eq!(rate([Rational(0, 0), ntsc]), ntsc);
        assert_eq!(rate([Rational(90_000, 1), Rational(1, 2)]), Rational(25, 1));
    }
}
