//! Packet headers in place: each file is one protocol's header, drawn, parsed into a typed
//! view of the bytes and written into bytes that the caller owns. Nothing here copies a
//! payload, allocates, keeps state or decides what a packet means; every length in a packet
//! is hostile until its parser has checked it, and no input panics.
//!
//! Parsing answers a view or a [`ParseError`], one variant per fault, which the stages count
//! as the reason of a drop.
#![no_std]
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
mod error;
pub mod eth;
pub mod extension;
pub mod icmp;
pub mod icmpv6;
pub mod igmp;
pub mod ipv4;
pub mod ipv6;
mod mac;
pub mod mflow;
pub mod mld;
pub mod ndp;
pub mod rtp;
pub mod rtp_h264;
pub mod rtp_mpv;
pub mod tcp;
pub mod udp;

pub use checksum::Accept;
pub use error::ParseError;
pub use mac::MacAddr;

/// Splits a header of type `T` off the front of `bytes`, or says which fault it is.
fn split<T>(bytes: &[u8], fault: ParseError) -> Result<(&T, &[u8]), ParseError>
where
    T: zerocopy::FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    T::ref_from_prefix(bytes).map_err(|_| fault)
}

/// Writes `header` at the front of `bytes`.
///
/// # Panics
/// When `bytes` is shorter than the header: the caller makes the room, a packet never does.
fn put<T: zerocopy::IntoBytes + zerocopy::Immutable>(header: &T, bytes: &mut [u8]) {
    bytes[..size_of::<T>()].copy_from_slice(header.as_bytes());
}
