//! Video on paths (Scout §4): the modules MPEG and DISPLAY, and what a source and a player need
//! around them. Nothing here decodes, opens a window or reads a clock: the decoder and the screen
//! are traits ([`Decoder`], [`Screen`]) that the program with the libraries implements, so a path
//! from device to display runs in a test in virtual time with recorded costs.
//!
//! | file | what | from |
//! |---|---|---|
//! | `alf` | the source's cutting at slices, MFLOW's and RTP's packets | Scout §4.1, RFC 2250, RFC 6184 |
//! | `h264`, `h264_decoder` | NAL units put together from RTP, and a decoder fed with them | RFC 6184 |
//! | `source` | the sender over MFLOW: what may be sent, and when | §4.1, §4.2 |
//! | `picture`, `decoder`, `screen` | decoded pictures, who makes them, who shows them | Scout §4.1 |
//! | `blank` | pictures of nothing, for simulations | |
//! | `mpeg`, `display` | the modules | §4.1 |
//! | `summing` | checksums verified while the data are first read | §4.1 |
//! | `catalogue` | the kinds of modules in graph files | §3.1 |
//! | `attributes` | what a viewer wishes of a stream | §4.1 |
//! | `timing`, `output` | when each picture is due; the output queue and what became of each | §4.2 |
//! | `fall` | what may be discarded early where not all pictures are shown | §4.4 |
//! | `deadline` | how urgent a path is | §4.3 |
//! | `retrace` | the display's own clock | §4.2 |
//! | `cadence` | the rate of H.264 that does not tell it, by its stamps | RFC 6184 |
//! | `placing`, `reorder` | stamps put right that contradict the stream, or do not grow in the order of showing | RFC 2250 |
//! | `timeline` | what became of the pictures over time | §4.3 |
//! | `trace` | where a picture's time went, and the last missed deadlines | §4.2, §4.3 |
//! | `seen`, `smallest`, `model`, `admission` | what pictures were like; what the smallest one costs; what any one costs; which streams fit, and what else they may have | §4.4 |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod admission;
pub mod alf;
mod attributes;
mod blank;
mod cadence;
mod catalogue;
pub mod deadline;
mod decoder;
pub mod display;
mod fall;
pub mod h264;
mod h264_decoder;
mod model;
pub mod mpeg;
mod output;
mod picture;
mod placing;
mod reorder;
mod retrace;
mod screen;
mod seen;
mod smallest;
mod source;
mod summing;
mod timeline;
mod timing;
mod trace;

pub use admission::{Budget, Demand, Kind, Offer, Pictures, Showing};
pub use attributes::{DEFAULT_OUTPUT, Playing, Wish};
pub use blank::{Blank, Dark};
pub use catalogue::{Library, catalogue};
pub use decoder::{B_PICTURE, Coding, DecodeError, Decoder, I_PICTURE, Need, Unit};
pub use display::{Display, DisplayStage, Screens};
pub use fall::Fall;
pub use h264_decoder::FromRtp;
pub use model::{Costs, Model, Sample};
pub use mpeg::{Decoded, Decoders, Mpeg, MpegStage};
pub use output::{Output, OutputOptions, Pace, Shown};
pub use picture::{Picture, Plane};
pub use retrace::Retrace;
pub use screen::Screen;
pub use smallest::Smallest;
pub use source::{Act, Over, Piece, Sending, Source, SourceFigures, SourceOptions};
pub use timeline::{Stretch, Timeline};
pub use timing::{Rate, Slots, Stamps, Timing};
pub use trace::{Missed, Misses, Trace};
