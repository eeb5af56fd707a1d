//! What a program asks of its groups.

use silk_control::Membership;
use std::net::IpAddr;

/// An interface: an address of it, and its number; 0: any.
pub type Where = (Option<IpAddr>, u32);

/// What a program asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// About which group.
    pub group: IpAddr,
    /// At which interface.
    pub at: Where,
    /// What.
    pub change: Membership,
}
