//! Where devices and paths meet: neither crate knows the other, and whoever runs paths on a device, an
//! appliance or the daemon, says here what the one means to the other.

use rand_core::{OsRng, TryRngCore};
use silk_device::{Frame, Offload, Segment};
use silk_instant::Instant;
use silk_path::classify::layout::{DEVICES, SETTINGS_SEED, SETTINGS_SEED2, SETTINGS_VLAN, vlans_word};
use silk_path::classify::{Store32, Store64, Tables};
use silk_path::{Checksum, DropReason, Message, Ticket};
use silk_wire::{eth, udp};
use std::sync::atomic::Ordering;

/// 64 bits nobody else can guess.
pub fn random() -> u64 {
    // After boot the kernel's random numbers do not fail.
    OsRng.try_next_u64().unwrap_or(0x9e37_79b9_7f4a_7c15)
}

/// What paths are told of a frame's checksum.
pub fn checksum_of(frame: Frame) -> Checksum {
    match frame.checksum {
        silk_device::Checksum::Unknown => Checksum::Unknown,
        silk_device::Checksum::MaybePartial => Checksum::MaybePartial,
        silk_device::Checksum::Partial | silk_device::Checksum::Verified => Checksum::Verified,
    }
}

/// What waits in a queue for a frame.
pub fn ticket_of(frame: Frame, arrival: Instant) -> Ticket {
    let checksum = checksum_of(frame);
    let Frame { index, device, offset, len, .. } = frame;
    Ticket { frame: index, offset, len, device, checksum, arrival }
}

/// A ticket is a frame's name with less said about it.
pub fn frame_of(ticket: Ticket) -> Frame {
    Frame {
        index: ticket.frame,
        device: ticket.device,
        offset: ticket.offset,
        len: ticket.len,
        path: 0,
        segment: 0,
        checksum: silk_device::Checksum::Unknown,
    }
}

/// What the device is asked to do for a message.
pub fn offload(msg: &Message<'_>) -> Offload {
    let Checksum::Partial { start, field } = msg.meta.checksum else { return Offload::NONE };
    // The message counts from the start of its buffer, the device from the frame's.
    let transport = start.saturating_sub(msg.head() as u16);
    if msg.meta.gso_size == 0 {
        return Offload::checksum(transport, field - start);
    }
    if usize::from(field - start) == udp::CHECKSUM {
        return Offload {
            segment: Segment::Udp(msg.meta.gso_size),
            header_len: transport + udp::HEADER as u16,
            ..Offload::checksum(transport, field - start)
        };
    }
    let six = eth::frame(msg.bytes()).is_ok_and(|frame| frame.kind == eth::IPV6);
    Offload {
        segment: if six { Segment::Tcp6(msg.meta.gso_size) } else { Segment::Tcp4(msg.meta.gso_size) },
        header_len: msg.bytes().len() as u16,
        checksum_start: transport,
        checksum_offset: field - start,
    }
}

/// Why a frame that came over this device has no path: it is of another VLAN than the tables', or nobody's.
pub fn stranger(frame: &[u8], device: u8, tables: &Tables) -> DropReason {
    match eth::frame(frame) {
        Ok(frame) if frame.vid != tables.vlan(device) => DropReason::EthVlan,
        _ => DropReason::NoPath,
    }
}

/// The classifier's tables in the words of a device, with a key of their own, for frames of
/// these virtual LANs, one for each interface, 0: for those of none.
///
/// # Errors
/// The device has too few words.
pub fn tables_of(words: silk_device::Tables, vlans: [u16; DEVICES]) -> Result<Tables, String> {
    words.settings[SETTINGS_VLAN].store(vlans_word(vlans), Ordering::SeqCst);
    for word in [SETTINGS_SEED, SETTINGS_SEED2] {
        words.settings[word].store(random(), Ordering::SeqCst);
    }
    Tables::from_words(
        Store64::Lent(words.flows),
        Store64::Lent(words.homes),
        Store32::Lent(words.ports),
        Store64::Lent(words.rules),
        Store64::Lent(words.refused),
        Store64::Lent(words.settings),
        Store64::Lent(words.discards),
    )
    .ok_or_else(|| "the classifier's tables are too small".to_owned())
}
