//! Checksums that have been left to whoever reads the data ([`IntegratedLayers`](crate::IntegratedLayers)), where nobody
//! above is going to.

use silk_path::{DropReason, Message, Unsummed};
use silk_wire::checksum::{Sum, around, is_right};

/// Sums what a message's checksum covers, where nobody has: for a message that no stage above will read.
pub(crate) fn verify(msg: &mut Message<'_>) -> Result<(), DropReason> {
    msg.verify(|Unsummed { pseudo, before, bytes, behind }| {
        is_right(around(pseudo, before, Sum::ZERO.bytes(bytes), bytes.len(), behind))
    })
}

/// Why a message is dropped that would be for this reason if its checksum were right.
pub(crate) fn refused(msg: &mut Message<'_>, reason: DropReason) -> DropReason {
    verify(msg).err().unwrap_or(reason)
}
