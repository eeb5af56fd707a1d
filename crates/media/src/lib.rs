//! Video on paths (Scout §4): the modules MPEG and DISPLAY, and what a source and a player need
//! around them. Nothing here decodes, opens a window or reads a clock: the decoder and the screen
//! are traits ([`Decoder`], [`Screen`]) that the program with the libraries implements, so a path
//! from device to display runs in a test in virtual time with recorded costs.
//!
//! | file | what | from |
//! |---|---|---|
//! | `alf` | the source's cutting at slices, MFLOW's and RTP's packets | Scout §4.1, RFC 2250, RFC 6184 |
//! | `h264` | NAL units put together from RTP | RFC 6184 |
//! | `picture`, `decoder`, `screen` | decoded pictures, who makes them, who shows them | Scout §4.1 |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod alf;
mod decoder;
pub mod h264;
mod picture;
mod screen;

pub use decoder::{Coding, DecodeError, Decoder, Unit};
pub use picture::{Picture, Plane};
pub use screen::Screen;
