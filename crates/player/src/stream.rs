//! What is asked of a stream, and what becomes of that: let in, refused, or offered less.

use silk_appliance::Dropped;
use silk_media::{Demand, Offer, Wish};
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
    /// What it will need, where its source has told.
    pub demand: Option<Demand>,
    /// Packets that may wait at the beginning; MFLOW goes on from there.
    pub input_queue: u16,
    /// It has deadlines; else it gets what the others leave (Scout §4.3).
    pub realtime: bool,
    /// Takes the counter-offer where it does not fit whole.
    pub accept_less: bool,
}

/// On what terms a stream was let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What it was offered.
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
            Self::Offered(Offer::References { every }) => {
                write!(f, "it does not fit whole: ask for every={every} (only pictures that others need)")
            }
            Self::Offered(Offer::Slower(rate)) => {
                write!(f, "it does not fit whole: ask for fps={:.1}", f64::from(rate.millis()) / 1000.0)
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
