//! MPEG's share of integrated layer processing (Scout §4.1: "the UDP checksum is easily integrated with
//! the reading of the bit-stream"): where UDP has left its checksum to the stage that reads the data, it
//! is summed while the data are copied into the picture's buffer. Where the decoder has no room to offer,
//! the data are summed on their own.

use crate::decoder::{Decoder, Unit};
use silk_path::{DropReason, Message, Unsummed};
use silk_wire::checksum::{Sum, around, copy_and_sum, is_right};

/// Sees to it that the message's checksum is right. Whether its bytes have been copied into the room of the
/// decoder.
pub(crate) fn take(decoder: &mut dyn Decoder, msg: &mut Message<'_>) -> Result<bool, DropReason> {
    if msg.unsummed().is_none() {
        return Ok(false);
    }
    let length = msg.len();
    match decoder.room(&Unit::of(msg)).filter(|room| room.len() == length) {
        Some(room) => {
            msg.verify(|unsummed| is_sound(unsummed, |bytes| copy_and_sum(bytes, room)))?;
            Ok(true)
        }
        None => verify(msg).map(|()| false),
    }
}

/// Sees to it that the checksum of a message is right that nobody is to read.
pub(crate) fn verify(msg: &mut Message<'_>) -> Result<(), DropReason> {
    msg.verify(|unsummed| is_sound(unsummed, |bytes| Sum::ZERO.bytes(bytes)))
}

fn is_sound(unsummed: Unsummed<'_>, sum: impl FnOnce(&[u8]) -> Sum) -> bool {
    let Unsummed { pseudo, before, bytes, behind } = unsummed;
    is_right(around(pseudo, before, sum(bytes), bytes.len(), behind))
}
