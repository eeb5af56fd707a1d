//! A video player as an appliance (Scout §4): streams come in over MFLOW or RTP and leave on
//! screens, each a path of its own, admitted by what it will cost and scheduled by its deadlines.
//! What decodes and shows comes from outside ([`silk_media::Library`]), so a player runs in a test
//! in virtual time.
//!
//! | file | what | from |
//! |---|---|---|
//! | `player` | streams as paths: begun, changed, ended, reported | Scout §4.1 |
//! | `stream` | what is asked of a stream, and what it became | §4.1 |
//! | `trial` | what becomes of a stream of which nothing was told | §4.4 |
//! | `discard` | what is not to be shown is dropped where it is classified | §4.4 |
//! | `obey` | what SHELL is told | §4.1 |
//! | `figures` | everything measured of one stream | §4.2 to §4.4 |
#![forbid(unsafe_code)]

mod discard;
mod figures;
mod obey;
mod player;
mod stream;
mod trial;

pub use figures::Figures;
pub use player::{Player, PlayerOptions, Rule, Schedule, rules};
pub use stream::{Begun, Carrier, Judgement, Order, Refusal, Terms, Told, Words};

/// The graph of a video appliance.
pub const GRAPH: &str = include_str!("../../../graphs/video.toml");
