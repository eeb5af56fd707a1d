//! What both sides know of a socket: where its rings are, and what one has that was made ready beforehand.

use silk_path::Endpoint;
use silk_stream::RingPlace;
use std::net::IpAddr;

/// The rings of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Towards the program.
    pub rx: RingPlace,
    /// From the program.
    pub tx: RingPlace,
}

/// A spare, as its executor has it.
#[derive(Clone, Copy, Debug)]
pub struct Spare {
    /// Its rings.
    pub rings: Rings,
    /// Where it will connect from.
    pub local: Endpoint,
    /// And to; the program says which port.
    pub remote: IpAddr,
}
