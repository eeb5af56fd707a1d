//! Writing a slot before it is given out, and taking it back.

use crate::between::sockets::Rings;
use silk_control::SlotNumber;
use silk_path::Endpoint;
use silk_stream::{Arena, kind};
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;

/// Makes a slot as new and counts its use; the new generation.
pub fn clear(record: &silk_stream::Slot) -> u32 {
    let generation = record.generation.load(SeqCst).wrapping_add(1);
    begin_again(record);
    for word in [
        &record.waiting,
        &record.wake_read,
        &record.wake_write,
        &record.keep_idle,
        &record.keep_interval,
        &record.keep_count,
        &record.options,
        &record.send_limit,
        &record.receive_limit,
        &record.service,
    ] {
        word.store(0, SeqCst);
    }
    record.wishes.put_all(&Default::default());
    record.bells.iter().for_each(|word| word.store(0, SeqCst));
    record.generation.store(generation, SeqCst);
    generation
}

/// Forgets the connection that a slot had: what the program has set, and who watches, stays.
pub fn begin_again(record: &silk_stream::Slot) {
    for word in [
        &record.status,
        &record.rx_size,
        &record.tx_size,
        &record.rx_write,
        &record.tx_read,
        &record.rx_read,
        &record.tx_write,
        &record.rx_first,
        &record.tx_first,
        &record.tx_reference,
        &record.error,
        &record.request,
        &record.thread,
        &record.rx_note,
        &record.tx_sent,
        &record.congestion,
        &record.drops,
        &record.info,
        &record.error_write,
        &record.error_read,
        &record.path_mtu,
    ] {
        word.store(0, SeqCst);
    }
    record.rx_urgent.store(0, SeqCst);
}

/// Marks a slot as free.
pub fn retire(arena: &Arena, slot: SlotNumber) {
    if let Some(record) = arena.slot(slot) {
        record.owner.store(silk_stream::OWNER_NOBODY, SeqCst);
        record.kind.store(kind::FREE, SeqCst);
    }
}

/// Writes an address into a slot, one of IPv4 as its mapped IPv6 form.
pub fn store_address(shared: &silk_stream::SharedAddress, address: Endpoint) {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|i| octets[from + i]));
    shared.ip[0].store(half(0), SeqCst);
    shared.ip[1].store(half(8), SeqCst);
    shared.port.store(address.port().into(), SeqCst);
}

/// Says in a slot where its rings are.
pub fn place_rings(record: &silk_stream::Slot, rings: Rings) {
    record.rx_place.store(rings.rx.place, SeqCst);
    record.tx_place.store(rings.tx.place, SeqCst);
    record.rx_size.store(rings.rx.size, SeqCst);
    record.tx_size.store(rings.tx.size, SeqCst);
}
