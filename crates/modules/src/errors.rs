//! What programs are told of errors that ICMP and ICMPv6 tell, or that are found here: a number of Linux's, and what
//! is quoted of the datagram (`IP_RECVERR`, ip(7)).

use alloc::boxed::Box;
use silk_path::{Message, Quoted};

/// `EHOSTUNREACH`, `ENETUNREACH`, … as Linux numbers them: what programs are told.
pub(crate) mod errno {
    pub const PROTO: i32 = 71;
    pub const NO_PROTOCOL: i32 = 92;
    pub const ACCESS: i32 = 13;
    pub const NETWORK: i32 = 101;
    pub const REFUSED: i32 = 111;
    pub const HOST: i32 = 113;
}

/// The error as the sender of the datagram may want to see it: `msg` is the message, `data` what it
/// quotes of the datagram's own bytes.
pub(crate) fn quoted(msg: &Message<'_>, data: &[u8]) -> Option<Box<Quoted>> {
    let [kind, code, _, _, a, b, c, d, ..] = *msg.bytes() else { return None };
    let data = data.get(..QUOTED).unwrap_or(data).to_vec();
    let offender = msg.meta.remote.ip();
    Some(Box::new(Quoted { kind: (kind, code), info: u32::from_be_bytes([a, b, c, d]), offender, data }))
}

/// Bytes of a datagram that are kept of what an error quotes.
pub(crate) const QUOTED: usize = 256;
