//! A clip as packets: the file's video, cut at its slices, and again from the beginning where it is
//! to be repeated.

use crate::demux::Demuxer;
use crate::trouble::Trouble;
use silk_media::alf::{Cutter, Packet, Part};
use silk_media::{Coding, Piece, Rate};
use silk_wire::rtp_mpv;
use std::path::{Path, PathBuf};

/// The packets of a clip.
pub struct Clip {
    file: PathBuf,
    limit: usize,
    again: bool,
    demuxer: Demuxer,
    cutter: Cutter,
    ended: bool,
    /// How often it has begun anew.
    pub rounds: u32,
}

/// A packet, its bytes its own.
pub struct Cut {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it belongs to.
    pub piece: Piece,
    part: Part,
    mpv: Option<rtp_mpv::Header>,
}

impl Cut {
    /// As the cutter gave it.
    pub fn packet(&self) -> Packet<'_> {
        let Piece { picture, kind, first, last } = self.piece;
        Packet { bytes: &self.bytes, picture, kind, first, last, part: self.part, mpv: self.mpv }
    }
}

impl Clip {
    /// Opens the file. Packets have at most `limit` bytes.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn open(file: &Path, limit: usize, again: bool) -> Result<Self, Trouble> {
        let demuxer = Demuxer::open(file)?;
        let cutter = Cutter::new(demuxer.coding(), limit);
        Ok(Self { file: file.to_owned(), limit, again, demuxer, cutter, ended: false, rounds: 0 })
    }

    /// Its own rate.
    pub fn rate(&self) -> Rate {
        let (pictures, seconds) = self.demuxer.rate();
        let millis = u64::from(pictures) * 1000 / u64::from(seconds.max(1));
        u32::try_from(millis).ok().and_then(Rate::from_millis).unwrap_or(Rate::USUAL)
    }

    /// How it is coded.
    pub fn coding(&self) -> Coding {
        self.demuxer.coding()
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// The stream in the file is no video, or cannot be read anew.
    pub fn next(&mut self) -> Result<Option<Cut>, Trouble> {
        loop {
            let cut = self.cutter.next().map_err(|error| Trouble::Stream(self.file.clone(), error))?;
            if let Some(Packet { bytes, picture, kind, first, last, part, mpv }) = cut {
                let piece = Piece { picture, kind, first, last };
                return Ok(Some(Cut { bytes: bytes.to_vec(), piece, part, mpv }));
            }
            if self.ended && !self.begin_again()? {
                return Ok(None);
            }
            match self.demuxer.next() {
                Some(coded) => self.cutter.push(coded.bytes()),
                None => {
                    self.ended = true;
                    self.cutter.finish();
                }
            }
        }
    }

    /// Begins anew where that is wished, and there was anything.
    fn begin_again(&mut self) -> Result<bool, Trouble> {
        if !self.again {
            return Ok(false);
        }
        self.demuxer = Demuxer::open(&self.file)?;
        self.cutter = Cutter::new(self.demuxer.coding(), self.limit);
        self.ended = false;
        self.rounds += 1;
        Ok(true)
    }
}
