//! Any bytes as an Ethernet frame: every parser of `silk-wire` on it, and the classifier.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_path::classify::{Domains, Owned, Tables};
use silk_wire::{Accept, arp, checksum, eth, icmp, ipv4, tcp, udp};
use std::net::Ipv4Addr;
use std::sync::OnceLock;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let tables = Tables::with_room(64, 1);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[HERE]).expect("one address fits");
        tables
    })
}

fuzz_target!(|bytes: &[u8]| {
    let _ = tables().classify(bytes);
    let Ok((_, rest)) = eth::parse(bytes) else { return };
    let _ = arp::parse(rest);
    let Ok(packet) = ipv4::parse(rest) else { return };
    let (header, payload) = (packet.header, packet.payload);
    let (source, destination) = (header.source(), header.destination());
    for accept in [Accept::Full, Accept::FullOrPartial, Accept::Verified] {
        let pseudo = |protocol| move |length| checksum::pseudo(source, destination, protocol, length);
        let _ = udp::parse(payload, accept, pseudo(ipv4::UDP));
        if let Ok(segment) = tcp::parse(payload, accept, pseudo(ipv4::TCP)) {
            let _ = silk_tcp::Options::parse(segment.options);
        }
    }
    let _ = icmp::parse(payload);
});
