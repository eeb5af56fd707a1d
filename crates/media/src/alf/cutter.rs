//! Cuts a stream at its start codes and packs what lies between them. The buffer is seen as
//! ```text
//!  | packet: whole units, waiting | unit in progress .. | not looked at yet |
//!  packet                         unit                  scan                end
//! ```
//! A packet leaves when the next unit does not fit behind it, or its picture ends. In front of a
//! picture nothing leaves until its first slice begins: only then is it known which picture it is.

use super::{Class, Info, LOOKED_AT, NotVideo, Packet, Part, Sequence, Syntax, annexb, mpeg};
use crate::Coding;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a start code's prefix, 00 00 01.
const PREFIX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Looking for the stream's beginning.
    Start {
        /// A start code was seen.
        seen: bool,
    },
    /// In front of a picture's first slice.
    Headers,
    /// In a picture.
    Picture,
}

/// Cuts one stream into packets.
///
/// ```
/// # use silk_media::{Coding, alf::Cutter};
/// # fn send(_: &[u8]) {}
/// # let file: &[&[u8]] = &[&[0, 0, 1, 0xb3, 0x16, 1, 0x20, 0x13, 0xff, 0xff, 0xe0, 0x18], &[0, 0, 1, 1, 9, 9]];
/// let mut cutter = Cutter::new(Coding::Mpeg, 1400);
/// for bytes in file {
///     cutter.push(bytes);
///     while let Some(packet) = cutter.next()? {
///         send(packet.bytes);
///     }
/// }
/// cutter.finish();
/// while let Some(packet) = cutter.next()? {
///     send(packet.bytes);
/// }
/// # Ok::<(), silk_media::alf::NotVideo>(())
/// ```
#[derive(Debug)]
pub struct Cutter {
    syntax: Syntax,
    // The most bytes of a packet.
    limit: usize,
    buffer: Vec<u8>,
    // packet <= unit <= scan, all in the buffer.
    packet: usize,
    unit: usize,
    // No start code that has not been dealt with begins before here.
    scan: usize,
    phase: Phase,
    // Headers in front of the picture end here; start codes before it begin no picture.
    lead: usize,
    // The unit in progress has been cut: what is left of it is its end.
    cut: bool,
    // What waits is such an end: nothing joins it.
    sealed: bool,
    ended: bool,
    info: Info,
    // The next packet is the first of its picture.
    first: bool,
    // Bytes in front of the stream's beginning.
    skipped: u64,
}

impl Cutter {
    /// Cuts a stream of this coding into packets of at most `limit` bytes, 16 at least.
    pub fn new(coding: Coding, limit: usize) -> Self {
        let syntax = match coding {
            Coding::Mpeg => Syntax::Mpeg(mpeg::Mpeg::default()),
            Coding::H264 => Syntax::H264(annexb::H264::default()),
        };
        Self {
            syntax,
            limit: limit.max(16),
            buffer: Vec::new(),
            packet: 0,
            unit: 0,
            scan: 0,
            phase: Phase::Start { seen: false },
            lead: 0,
            cut: false,
            sealed: false,
            ended: false,
            info: Info::default(),
            first: true,
            skipped: 0,
        }
    }

    /// What the last sequence header told; nothing for H.264.
    pub fn sequence(&self) -> Option<Sequence> {
        match &self.syntax {
            Syntax::Mpeg(mpeg) => mpeg.sequence(),
            Syntax::H264(_) => None,
        }
    }

    /// Bytes in front of the stream's beginning, which are in no packet.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next bytes of the stream. Take all packets before the next bytes: what has not been taken
    /// stays in memory.
    pub fn push(&mut self, bytes: &[u8]) {
        let gone = core::mem::take(&mut self.packet);
        self.buffer.drain(..gone);
        self.unit -= gone;
        self.scan -= gone;
        self.lead = self.lead.saturating_sub(gone);
        self.buffer.extend_from_slice(bytes);
    }

    /// The stream ends here.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// Bytes it holds.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.packet
    }

    /// The next packet; none while more bytes are needed, or behind the end.
    ///
    /// # Errors
    /// What was pushed is not video. The cutter is of no use then.
    #[expect(clippy::should_implement_trait, reason = "the packet borrows the cutter")]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, NotVideo> {
        Ok(self.step()?.map(|(range, part, last)| self.leave(range, part, last)))
    }

    /// Goes on until a packet is complete.
    fn step(&mut self) -> Result<Option<(Range<usize>, Part, bool)>, NotVideo> {
        loop {
            let found = self.find();
            let at = found.unwrap_or(if self.ended { self.buffer.len() } else { self.scan });
            let known = found.is_some() || self.ended;
            let out = match self.phase {
                Phase::Start { seen } => {
                    self.look_for_start(found, seen)?;
                    None
                }
                _ if self.packet == self.buffer.len() => return Ok(None),
                Phase::Headers if known => {
                    self.headers_until(at);
                    None
                }
                Phase::Headers if at - self.packet > LOOKED_AT => return Err(NotVideo::EndlessHeaders),
                Phase::Headers => None,
                Phase::Picture if known => self.units_until(at),
                Phase::Picture => self.overlong(at),
            };
            if out.is_some() || !known {
                return Ok(out);
            }
        }
    }

    /// The next start code with what has to be known behind it. Moves `scan` there, or as far as
    /// there can be none.
    fn find(&mut self) -> Option<usize> {
        let ahead = if self.ended { 1 } else { self.syntax.lookahead() };
        let whole = self.buffer.len().saturating_sub(PREFIX + ahead - 1);
        while self.scan < whole {
            // The third byte says where the next prefix can begin.
            match self.buffer[self.scan..][..PREFIX] {
                [0, 0, 1] => return Some(self.scan),
                [_, _, 0] => self.scan += 1,
                _ => self.scan += PREFIX,
            }
        }
        None
    }

    fn look_for_start(&mut self, found: Option<usize>, seen: bool) -> Result<(), NotVideo> {
        if let Some(other) = multiplex(&self.buffer) {
            return Err(other);
        }
        let not_here = if seen || found.is_some() { NotVideo::NoSequence } else { NotVideo::NoStartCode };
        let Some(at) = found else {
            return if self.ended || self.scan > LOOKED_AT { Err(not_here) } else { Ok(()) };
        };
        if self.syntax.begins(&self.buffer[at + PREFIX..]) {
            self.skipped = at as u64;
            (self.packet, self.unit, self.scan) = (at, at, at + PREFIX);
            self.phase = Phase::Headers;
            return Ok(());
        }
        self.scan = at + PREFIX;
        self.phase = Phase::Start { seen: true };
        if self.scan > LOOKED_AT { Err(not_here) } else { Ok(()) }
    }

    /// A header ends at `at`. When a slice begins there, the picture is known: what waits is then
    /// packed like everything else.
    fn headers_until(&mut self, at: usize) {
        if at > self.unit {
            self.syntax.header(&self.buffer[self.unit + PREFIX..at]);
            self.unit = at;
        }
        let next = self.buffer.get(at + PREFIX..).unwrap_or(&[]);
        let slice = matches!(self.syntax.class(next), Class::Slice | Class::FirstSlice);
        if !slice && at < self.buffer.len() {
            self.scan = at + PREFIX;
            return;
        }
        self.info = self.syntax.picture(next);
        self.first = !self.info.second_field;
        self.phase = Phase::Picture;
        (self.lead, self.unit, self.scan) = (at, self.packet, (self.packet + PREFIX).min(at));
    }

    /// A unit of a picture ends at `at`, where another start code is, or the stream's end.
    fn units_until(&mut self, at: usize) -> Option<(Range<usize>, Part, bool)> {
        if let Some(out) = self.overlong(at) {
            return Some(out);
        }
        if at > self.unit {
            self.sealed = core::mem::take(&mut self.cut);
            self.unit = at;
        }
        self.scan = (at + PREFIX).min(self.buffer.len());
        let ends = at == self.buffer.len() || (at > self.lead && self.begins_picture(at));
        if !ends {
            return None;
        }
        // What begins there is looked at again: it may be the picture's first slice already.
        self.phase = Phase::Headers;
        self.scan = at;
        (self.packet < at).then(|| self.waiting(true))
    }

    fn begins_picture(&self, at: usize) -> bool {
        matches!(self.syntax.class(&self.buffer[at + PREFIX..]), Class::Header | Class::FirstSlice)
    }

    /// What has to leave because the unit in progress, known as far as `to`, does not fit behind it,
    /// or into a packet at all.
    fn overlong(&mut self, to: usize) -> Option<(Range<usize>, Part, bool)> {
        let to = to.max(self.unit);
        let waiting = self.unit - self.packet;
        if waiting > 0 && (self.sealed && to > self.unit || to - self.packet > self.limit) {
            return Some(self.waiting(false));
        }
        if waiting == 0 && to - self.unit > self.limit {
            let part = if core::mem::replace(&mut self.cut, true) { Part::Middle } else { Part::Begin };
            let range = self.unit..self.unit + self.limit;
            self.packet = range.end;
            self.unit = range.end;
            self.scan = self.scan.max(range.end);
            return Some((range, part, false));
        }
        None
    }

    /// What waits leaves.
    fn waiting(&mut self, last: bool) -> (Range<usize>, Part, bool) {
        let range = self.packet..self.unit;
        self.packet = self.unit;
        let part = if core::mem::take(&mut self.sealed) { Part::End } else { Part::Whole };
        (range, part, last)
    }

    fn leave(&mut self, range: Range<usize>, part: Part, last: bool) -> Packet<'_> {
        let mpv = self.info.mpv.map(|mut mpv| {
            // Where the first slice of the packet is, if it begins with headers.
            let slice = self.lead.max(range.start);
            let headed = matches!(part, Part::Whole | Part::Begin);
            mpv.begins_slice = headed
                && slice + PREFIX < range.end
                && mpeg::class(&self.buffer[slice + PREFIX..]) == Class::Slice;
            mpv.ends_slice = matches!(part, Part::Whole | Part::End) && range.end > self.lead;
            mpv.sequence &= self.first && headed;
            mpv
        });
        Packet {
            picture: self.info.number,
            kind: self.info.kind,
            first: core::mem::take(&mut self.first),
            last: last && !self.info.first_field,
            part,
            mpv,
            bytes: &self.buffer[range],
        }
    }
}

/// The multiplex that begins like this: a pack header (ISO 13818-1 §2.5.3.3), or three packets of a
/// transport stream in a row (§2.4.3.2).
fn multiplex(bytes: &[u8]) -> Option<NotVideo> {
    const PACKET: usize = 188;
    if bytes.starts_with(&[0, 0, 1, 0xba]) {
        return Some(NotVideo::ProgramStream);
    }
    let transport = [0, PACKET, 2 * PACKET].iter().all(|at| bytes.get(*at) == Some(&0x47));
    transport.then_some(NotVideo::TransportStream)
}
