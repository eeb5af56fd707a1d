//! What was heard of datagrams in fragments, kept as it came: the plainest reassembly there is, which
//! the target `reassembly` compares with that of both IPs.

use silk_instant::Instant;
use std::time::Duration;

/// What ties fragments together: IPv6 or not, who sent them, their number, and for IPv4 the protocol.
pub type Name = (bool, u8, u8, u8);

/// A fragment.
#[derive(Clone, PartialEq)]
pub struct Piece {
    pub offset: usize,
    pub more: bool,
    pub protocol: u8,
    pub ecn: u8,
    pub bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> usize {
        self.offset + self.bytes.len()
    }

    fn repeats(&self, other: &Self) -> bool {
        self.offset == other.offset && self.bytes == other.bytes
    }

    fn overlaps(&self, other: &Self) -> bool {
        let same_start = self.offset == other.offset;
        same_start || (self.offset < other.end() && other.offset < self.end())
    }
}

/// What pieces come to.
#[derive(Debug, PartialEq)]
pub enum Sum {
    /// Some are missing.
    Part,
    /// They contradict each other.
    Spoiled,
    /// Some know ECN, and some do not.
    Marked,
    /// The datagram: its protocol, and its bytes.
    Whole(u8, Vec<u8>),
}

/// What the pieces come to, in the order in which they came.
pub fn sum<'p>(pieces: impl Iterator<Item = &'p Piece>) -> Sum {
    let mut held: Vec<&Piece> = Vec::new();
    let mut total = None;
    for piece in pieces {
        if held.iter().any(|other| other.repeats(piece)) {
            continue;
        }
        let furthest = held.iter().map(|other| other.end()).max().unwrap_or(0).max(piece.end());
        if !piece.more {
            total = total.or(Some(piece.end()));
        }
        let beyond = total.is_some_and(|total| furthest > total || (!piece.more && piece.end() != total));
        if beyond || held.iter().any(|other| other.overlaps(piece)) {
            return Sum::Spoiled;
        }
        held.push(piece);
    }
    held.sort_by_key(|piece| piece.offset);
    let bytes = held.iter().map(|piece| &piece.bytes[..]).collect::<Vec<_>>().concat();
    let Some(first) = held.first().filter(|first| first.offset == 0 && total == Some(bytes.len())) else {
        return Sum::Part;
    };
    let unmarked = held.iter().filter(|piece| piece.ecn == 0).count();
    if unmarked > 0 && unmarked < held.len() { Sum::Marked } else { Sum::Whole(first.protocol, bytes) }
}

/// What came of one datagram, and when.
#[derive(Default)]
pub struct Heard {
    pieces: Vec<(Instant, Piece)>,
    /// They contradicted each other when so many had come.
    spoiled: Option<usize>,
}

impl Heard {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What comes of it with one more.
    pub fn add(&mut self, now: Instant, piece: Piece) -> Sum {
        self.pieces.push((now, piece));
        if self.spoiled.is_some() { Sum::Spoiled } else { sum(self.pieces.iter().map(|(_, piece)| piece)) }
    }

    /// It was refused.
    pub fn spoil(&mut self) {
        self.spoiled = Some(self.pieces.len());
    }

    /// Its bytes, if all that came is kept.
    pub fn kept(&self) -> usize {
        let pieces = self.pieces.iter().enumerate();
        let new = pieces
            .filter(|(at, (_, piece))| !self.pieces[..*at].iter().any(|(_, other)| other.repeats(piece)));
        if self.spoiled.is_some() { 0 } else { new.map(|(_, (_, piece))| piece.bytes.len()).sum() }
    }

    /// The most that holding it costs.
    pub fn cost(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.bytes.len() + 64 + 80).sum()
    }

    /// Whether some of the last pieces are exactly `whole`: those before were given up for want of room.
    pub fn ends_with(&self, whole: &Sum) -> bool {
        let from = self.spoiled.unwrap_or(0);
        let starts = (from..self.pieces.len()).rev();
        starts.map(|start| sum(self.pieces[start..].iter().map(|(_, piece)| piece))).any(|sum| sum == *whole)
    }

    /// What is too old has been given up. `exactly`: nothing was given up before its time.
    pub fn expire(&mut self, now: Instant, after: Duration, exactly: bool) {
        let over = |at: &Instant| *at + after <= now;
        if exactly && self.pieces.first().is_some_and(|(at, _)| over(at)) {
            *self = Self::default();
        }
        let old = self.pieces.iter().take_while(|(at, _)| over(at)).count();
        self.pieces.drain(..old);
        self.spoiled = self.spoiled.and_then(|spoiled| spoiled.checked_sub(old)).filter(|left| *left > 0);
    }
}
