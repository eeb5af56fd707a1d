//! The tag of a virtual LAN (IEEE 802.1Q), which Linux takes out of a frame and tells beside it.

use crate::HEADROOM;
use silk_wire::eth;

/// Puts the tag back that Linux has taken out of the frame of `len` bytes behind the headroom: addresses
/// move into the headroom. Where the frame begins now, and its length.
pub(super) fn tagged(buffer: &mut [u8], len: usize, vlan: u16) -> (u32, u32) {
    const ADDRESSES: usize = 12;
    if vlan == 0 || len < eth::HEADER {
        return (HEADROOM as u32, len as u32);
    }
    let start = HEADROOM - eth::TAG;
    buffer.copy_within(HEADROOM..HEADROOM + ADDRESSES, start);
    let tag = &mut buffer[start + ADDRESSES..HEADROOM + ADDRESSES];
    tag[..2].copy_from_slice(&eth::TAGGED.to_be_bytes());
    tag[2..].copy_from_slice(&vlan.to_be_bytes());
    (start as u32, (len + eth::TAG) as u32)
}
