//! Decoding by libavcodec, on the thread that asks (SILK's paths pay for what is done for them, so
//! no thread of the library's): MPEG-1 and MPEG-2 video, H.264. Slices that are missing are made up
//! from their neighbours and the picture before; what cannot be decoded is an error, and the stream
//! goes on with the next picture. Whatever the bytes say, no picture becomes larger than the limits.
//!
//! Why the bytes of a picture are collected and decoded at its last packet:
//! `docs/design/decoding.md`.

mod library;
mod limits;
mod picture;
#[cfg(test)]
mod tests;

pub use library::{begin, version};
pub use limits::Limits;
pub use picture::AvPicture;

use ffmpeg_next::codec::{Context, threading};
use ffmpeg_next::{Dictionary, Error, Packet, codec, decoder, frame};
use silk_media::{Coding, DecodeError, Decoder, Picture, Unit};

/// When the library gets the bytes of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feeding {
    /// All at once, when the last has come.
    ByPicture,
    /// As they come, packet by packet (`AV_CODEC_FLAG2_CHUNKS`). H.264 only: of the pictures of MPEG
    /// the library makes one for each packet.
    ByPacket,
}

/// In a picture's stamp as the library carries it: something of it was lost on the way.
const GAP: i64 = 1 << 32;

/// A decoder of one stream.
pub struct AvDecoder {
    opened: decoder::Opened,
    coding: Coding,
    feeding: Feeding,
    limits: Limits,
    /// The bytes of the picture that is arriving, the first `filled`; what is behind them is left from
    /// others, so that room for more need not be cleared. Never more than `limits.bytes`.
    collected: Vec<u8>,
    filled: usize,
    /// The picture they belong to, as [`mark`] writes it.
    arriving: Option<i64>,
    /// The rest of the picture that is arriving is not wanted: there was too much of it.
    skipping: bool,
    /// The last picture's size, for the account.
    size: (usize, usize),
}

impl AvDecoder {
    /// A decoder that gives the library whole pictures.
    ///
    /// # Errors
    /// [`DecodeError::Unsupported`] where the library was built without this decoder.
    pub fn new(coding: Coding, limits: Limits) -> Result<Self, DecodeError> {
        Self::feeding(coding, limits, Feeding::ByPicture)
    }

    /// A decoder that gives the library its bytes as `feeding` says.
    ///
    /// # Errors
    /// [`DecodeError::Unsupported`] where the library was built without this decoder.
    pub fn feeding(coding: Coding, limits: Limits, feeding: Feeding) -> Result<Self, DecodeError> {
        begin();
        Ok(Self {
            opened: open(coding, limits, feeding).map_err(|_| DecodeError::Unsupported)?,
            coding,
            feeding,
            limits,
            collected: Vec::new(),
            filled: 0,
            arriving: None,
            skipping: false,
            size: (0, 0),
        })
    }

    /// Gives the library parameters that are not in the stream, with start codes (H.264). No picture is in
    /// them, which it complains of; what they are worth shows with the first picture.
    pub fn prepare(&mut self, parameters: &[u8]) {
        if !parameters.is_empty() {
            let _ = self.give(parameters, 0, &mut |_| {});
        }
    }

    /// Takes the bytes of `unit` to those of its picture.
    fn collect(&mut self, unit: Unit<'_>) -> Result<(), DecodeError> {
        self.arriving = Some(mark(&unit) | self.arriving.unwrap_or(0) & GAP);
        if self.skipping {
            return Ok(());
        }
        let Some(room) = self.room_for(unit.bytes.len()) else {
            self.filled = 0;
            self.skipping = true;
            return Err(DecodeError::TooLarge);
        };
        room.copy_from_slice(unit.bytes);
        self.filled += unit.bytes.len();
        Ok(())
    }

    /// Room for so many bytes more of the picture, if it may be so large.
    fn room_for(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let end = self.filled.checked_add(bytes).filter(|end| *end <= self.limits.bytes)?;
        if self.collected.len() < end {
            self.collected.resize(end, 0);
        }
        self.collected.get_mut(self.filled..end)
    }

    /// Whether the picture that was arriving ended without its last packet.
    fn is_cut_off(&self, unit: &Unit<'_>) -> bool {
        self.arriving.is_some_and(|mark| unit.first || mark & !GAP != i64::from(unit.stamp))
    }

    /// Decodes what was collected.
    fn submit(&mut self, lost: bool, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let Some(mark) = self.arriving.take() else { return Ok(()) };
        self.skipping = false;
        let (bytes, filled) = (std::mem::take(&mut self.collected), std::mem::take(&mut self.filled));
        let done = if filled == 0 {
            Ok(())
        } else {
            self.give(&bytes[..filled], mark | if lost { GAP } else { 0 }, shown)
        };
        self.collected = bytes;
        done
    }

    /// Gives bytes to the library and takes what it has ready.
    fn give(
        &mut self,
        bytes: &[u8],
        mark: i64,
        shown: &mut dyn FnMut(Box<dyn Picture>),
    ) -> Result<(), DecodeError> {
        // The library wants zeros behind the bytes, so it gets a copy of its own.
        let mut packet = Packet::new(bytes.len());
        let Some(data) = packet.data_mut().filter(|data| data.len() == bytes.len()) else {
            return Err(DecodeError::NoMemory);
        };
        data.copy_from_slice(bytes);
        packet.set_pts(Some(mark));
        let sent = self.opened.send_packet(&packet).map_err(|error| self.explain(error, bytes));
        let drained = self.drain(shown);
        sent.and(drained)
    }

    /// Takes the pictures that are ready.
    fn drain(&mut self, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        let mut result = Ok(());
        loop {
            let mut frame = frame::Video::empty();
            match self.opened.receive_frame(&mut frame) {
                Ok(()) => match self.accept(frame) {
                    Ok(picture) => shown(Box::new(picture)),
                    Err(error) => result = result.and(Err(error)),
                },
                Err(Error::Eof | Error::Other { errno: ffmpeg_next::error::EAGAIN }) => return result,
                // Each failed picture is taken from the library by asking: the next answer is new.
                Err(Error::Other { errno: ffmpeg_next::error::ENOMEM }) => return Err(DecodeError::NoMemory),
                Err(_) => return result.and(Err(DecodeError::Malformed)),
            }
        }
    }

    fn accept(&mut self, frame: frame::Video) -> Result<AvPicture, DecodeError> {
        let picture = AvPicture::new(frame).ok_or(DecodeError::Unsupported)?;
        self.size = picture.size();
        if self.size.0 * self.size.1 > self.limits.pixels {
            return Err(DecodeError::TooLarge);
        }
        Ok(picture)
    }

    /// Whose fault the library's refusal is.
    fn explain(&self, error: Error, bytes: &[u8]) -> DecodeError {
        match error {
            Error::Other { errno: ffmpeg_next::error::ENOMEM } => DecodeError::NoMemory,
            _ if self.limits.are_exceeded(self.coding, bytes) => DecodeError::TooLarge,
            Error::PatchWelcome => DecodeError::Unsupported,
            _ => DecodeError::Malformed,
        }
    }
}

impl Decoder for AvDecoder {
    fn decode(&mut self, unit: Unit<'_>, shown: &mut dyn FnMut(Box<dyn Picture>)) -> Result<(), DecodeError> {
        if self.feeding == Feeding::ByPacket {
            return self.give(unit.bytes, mark(&unit), shown);
        }
        let before = if self.is_cut_off(&unit) { self.submit(true, shown) } else { Ok(()) };
        let collected = self.collect(unit);
        let decoded = if unit.last { self.submit(false, shown) } else { Ok(()) };
        before.and(collected).and(decoded)
    }

    fn room(&mut self, unit: &Unit<'_>) -> Option<&mut [u8]> {
        if self.feeding == Feeding::ByPacket || self.skipping || self.is_cut_off(unit) {
            return None;
        }
        self.room_for(unit.bytes.len())
    }

    fn decode_copied(
        &mut self,
        unit: Unit<'_>,
        shown: &mut dyn FnMut(Box<dyn Picture>),
    ) -> Result<(), DecodeError> {
        self.arriving = Some(mark(&unit) | self.arriving.unwrap_or(0) & GAP);
        self.filled += unit.bytes.len();
        if unit.last { self.submit(false, shown) } else { Ok(()) }
    }

    fn finish(&mut self, shown: &mut dyn FnMut(Box<dyn Picture>)) {
        // Nobody can be told what the end of a stream that is over did wrong.
        let _ = self.submit(true, shown);
        if self.opened.send_eof().is_ok() {
            let _ = self.drain(shown);
        }
        self.opened.flush();
    }

    fn memory(&self) -> u64 {
        limits::decoder_bytes(self.coding, self.size) + self.collected.capacity() as u64
    }
}

impl std::fmt::Debug for AvDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AvDecoder")
            .field("coding", &self.coding)
            .field("feeding", &self.feeding)
            .field("arriving", &self.arriving)
            .finish_non_exhaustive()
    }
}

/// What the library carries for the picture of `unit`. What was lost before a picture's first packet was
/// another's.
fn mark(unit: &Unit<'_>) -> i64 {
    let lost = unit.gap && !unit.first;
    i64::from(unit.stamp) | if lost { GAP } else { 0 }
}

fn open(coding: Coding, limits: Limits, feeding: Feeding) -> Result<decoder::Opened, Error> {
    let id = match coding {
        // One decoder takes both: it follows the sequence header.
        Coding::Mpeg => codec::Id::MPEG2VIDEO,
        Coding::H264 => codec::Id::H264,
    };
    let codec = decoder::find(id).ok_or(Error::DecoderNotFound)?;
    let mut context = Context::new_with_codec(codec);
    context.set_threading(threading::Config { count: 1, ..threading::Config::kind(threading::Type::None) });
    let mut options = Dictionary::new();
    options.set("max_pixels", &limits.library_pixels().to_string());
    // Damaged pictures come out, with what is missing guessed from their neighbours.
    options.set("flags", "+output_corrupt");
    options.set("ec", "guess_mvs+deblock");
    if feeding == Feeding::ByPacket {
        options.set("flags2", "+chunks");
    }
    context.decoder().open_as_with(codec, options)
}
