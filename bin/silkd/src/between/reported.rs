//! What the network has said of a packet, as it is passed between domains.

use silk_path::{Endpoint, Quoted, Report};

/// A report with the flow it belongs to, as it is passed between domains.
#[derive(Debug)]
pub struct Reported {
    /// Our side.
    pub local: Endpoint,
    /// The other side.
    pub remote: Endpoint,
    /// What the path is told.
    pub report: Report,
    /// What the program is told.
    pub quoted: Option<Box<Quoted>>,
    /// The domain of the datagram socket passes it to its lanes, of which only the paths hear it.
    pub to_lane: bool,
}
