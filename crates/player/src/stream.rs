//! What is asked of a stream, and what becomes of that: let in, perhaps on trial, refused, or offered less.

use silk_appliance::Dropped;
use silk_instant::Instant;
use silk_media::{Coding, Demand, Kind, Need, Offer, Pictures, Playing, Rate, Showing, Wish};
use silk_path::{CreateError, Endpoint, PathId};
use std::fmt;

/// What carries a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// MFLOW: with flow control (Scout §4.1).
    Mflow,
    /// RTP (RFC 3550).
    Rtp,
}

/// What is asked of the player.
#[derive(Clone, Debug)]
pub struct Order {
    /// What people call the stream.
    pub name: String,
    /// What carries it.
    pub carrier: Carrier,
    /// Where it arrives: the address may be unspecified.
    pub local: Endpoint,
    /// Whom it comes from; `None`: whoever sends first.
    pub remote: Option<Endpoint>,
    /// How it is to be shown.
    pub wish: Wish,
    /// What its pictures are like, where somebody has told; else it is let in on trial.
    pub told: Option<Told>,
    /// Packets that may wait at the beginning; MFLOW goes on from there.
    pub input_queue: u16,
    /// It has deadlines; else it gets what the others leave (Scout §4.3).
    pub realtime: bool,
    /// Takes the counter-offer where it does not fit whole.
    pub accept_less: bool,
}

/// What is told of a stream beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// What its pictures are like.
    pub pictures: Pictures,
    /// Luma samples in a row, and rows.
    pub size: (usize, usize),
}

impl Told {
    /// Pictures of this size, by the bits that all have on average.
    pub fn alike(size: (usize, usize), bits: f64) -> Self {
        Self { pictures: Pictures::alike(macroblocks(size), bits), size }
    }

    /// Pictures of this size, by how many I, P and B pictures there are to each other, and the bits of one.
    pub fn group(size: (usize, usize), kinds: [(f64, f64); 3]) -> Self {
        let kinds = kinds.map(|(count, bits)| Kind { count, bits });
        Self { pictures: Pictures { macroblocks: macroblocks(size), kinds }, size }
    }
}

/// Squares of 16 by 16 samples in a picture, those at the edges whole.
pub(crate) fn macroblocks((width, height): (usize, usize)) -> f64 {
    width.div_ceil(16) as f64 * height.div_ceil(16) as f64
}

impl Order {
    /// The rate that it is judged by. One that plays as fast as it can is taken for one at the usual rate, and so is one at its own until
    /// its first picture has told that.
    pub(crate) fn rate(&self) -> Rate {
        if let Playing::At(rate) = self.wish.playing { rate } else { Rate::USUAL }
    }

    /// What it will need, where a decoder and a picture need so much memory.
    pub(crate) fn demand(&self, told: &Told, need: Need) -> Demand {
        let demand = self.demand_at(self.rate(), self.wish.showing());
        Demand { pictures: told.pictures, memory: self.wish.memory(need), ..demand }
    }

    /// What it asks for at this rate, where so many of its pictures are shown, whatever they are like.
    pub(crate) fn demand_at(&self, rate: Rate, showing: Showing) -> Demand {
        Demand {
            rate,
            pictures: Pictures::default(),
            showing,
            waits: self.carrier == Carrier::Mflow,
            measured: None,
            memory: 0,
        }
    }
}

/// On what terms a stream was let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What it was offered. Those of a stream on trial are not known yet: it is promised nothing.
    pub offer: Offer,
    /// Of the processor, promised.
    pub share: f64,
    /// Bytes of memory, promised.
    pub memory: u64,
}

/// A stream that was let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Begun {
    /// Its path.
    pub path: PathId,
    /// On what terms.
    pub terms: Terms,
}

/// A stream that was let in, as the player knows it.
pub(crate) struct Stream {
    pub(crate) order: Order,
    pub(crate) terms: Terms,
    /// Nothing was told of it: it has to show what it needs.
    pub(crate) trial: Option<Trial>,
    /// What its memory was granted for, if that is known: luma samples in a row and rows, and the coding.
    pub(crate) granted: Option<((usize, usize), Coding)>,
    /// The rate that its share of the processor was promised for.
    pub(crate) at: Rate,
    /// Since when its film has told one that does not fit.
    pub(crate) too_fast: Option<Instant>,
    /// It did not fit, and is to end.
    pub(crate) refused: bool,
}

/// How far a stream's trial has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Periods of its pictures when it was last looked at, and what it had used of the processor then, ns.
    /// Nothing before the first look: a stream's first pictures, for which all memory is new, cost more.
    pub(crate) looked: Option<(u64, u64)>,
    /// Times it was found not to fit.
    pub(crate) strikes: u32,
}

/// What became of a stream that was let in on trial and does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Its name.
    pub name: String,
    /// Of the processor, what it needs.
    pub needs: f64,
    /// Of the processor, what is free.
    pub free: f64,
    /// What would fit.
    pub offer: Offer,
    /// It plays with that; else it is ended.
    pub accepted: bool,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, needs, free, offer, accepted } = self;
        if *offer == Offer::NoMemory {
            return write!(f, "{name} needs more memory than is free, and is ended");
        }
        let (needs, free) = (needs * 100.0, free * 100.0);
        write!(f, "{name} needs {needs:.1} % of the CPU and {free:.1} % is free: it ")?;
        match (accepted, offer.is_less()) {
            (true, _) => write!(f, "goes on with {}", Words(*offer)),
            (false, true) => write!(f, "is ended; with {} it would fit", Words(*offer)),
            (false, false) => f.write_str("is ended"),
        }
    }
}

/// Why a stream was not let in.
#[derive(Debug)]
pub enum Refusal {
    /// It does not fit whole; this would.
    Offered(Offer),
    /// The path could not be made.
    Create(CreateError),
    /// The scheduling policy cannot keep the terms.
    Schedule(String),
    /// There is a stream of that name already.
    NameTaken,
    /// The graph has no module of this kind.
    NoModule(&'static str),
}

impl From<Dropped> for Refusal {
    fn from(dropped: Dropped) -> Self {
        match dropped {
            Dropped::Create(error) => Self::Create(error),
            Dropped::Terms(refused) => Self::Schedule(format!("the schedule refuses it: {refused:?}")),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offered(Offer::NoMemory) => f.write_str("there is not enough memory for its pictures"),
            Self::Offered(Offer::NoTime) => f.write_str("the processor has no time left for it"),
            Self::Offered(less @ (Offer::Every(_) | Offer::WithoutB | Offer::Slower(_))) => {
                write!(f, "it does not fit whole; with {} it would", Words(*less))
            }
            Self::Offered(Offer::Whole) => f.write_str("it fits"),
            Self::Create(error) => error.fmt(f),
            Self::Schedule(why) => f.write_str(why),
            Self::NameTaken => f.write_str("there is a stream of that name already"),
            Self::NoModule(kind) => write!(f, "the graph has no module of the kind {kind}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What is offered, in the words of SHELL's `mpeg_decode`: whoever orders a stream with them gets that.
/// Nothing where it is all or nothing.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub Offer);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Offer::Every(every) => write!(f, "every={every}"),
            Offer::WithoutB => f.write_str("without=b"),
            Offer::Slower(rate) => write!(f, "fps={}.{:03}", rate.millis() / 1000, rate.millis() % 1000),
            Offer::Whole | Offer::NoMemory | Offer::NoTime => Ok(()),
        }
    }
}
