//! Any bytes as an Ethernet frame: every parser of `silk-wire` on it, and the classifier.
#![no_main]

use libfuzzer_sys::fuzz_target;
use silk_path::classify::{Domains, Owned, Tables};
use silk_wire::{Accept, arp, checksum, eth, icmp, icmpv6, ipv4, ipv6, ndp, tcp, udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const HERE6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let tables = Tables::with_room(64, 1);
        let owned = Owned { arp: true, icmp: true, fragments: true };
        tables.configure(owned, Domains::default(), &[], &[HERE, HERE6]).expect("two addresses fit");
        tables
    })
}

fuzz_target!(|bytes: &[u8]| {
    let _ = tables().classify(bytes);
    let Ok((_, rest)) = eth::parse(bytes) else { return };
    let _ = arp::parse(rest);
    if let Ok(packet) = ipv6::parse(rest) {
        let (header, payload) = (packet.header, packet.payload);
        upper(header.source().into(), header.destination().into(), payload);
        for accept in [Accept::Full, Accept::Verified] {
            let pseudo =
                checksum::pseudo6(header.source(), header.destination(), ipv6::ICMP, payload.len() as u16);
            let _ = icmpv6::parse(payload, accept, pseudo);
        }
        if ndp::parse(header.hop_limit, payload).is_ok() {
            ndp::prefixes(payload).for_each(|prefix| assert!(prefix.length <= 128));
            ndp::routes(payload).for_each(|route| assert!(route.length <= 128));
        }
    }
    let _ = ipv6::parse_quoted(rest);
    let Ok(packet) = ipv4::parse(rest) else { return };
    let (header, payload) = (packet.header, packet.payload);
    upper(header.source().into(), header.destination().into(), payload);
    let _ = icmp::parse(payload);
});

/// What is carried, as UDP and as TCP.
fn upper(source: IpAddr, destination: IpAddr, payload: &[u8]) {
    for accept in [Accept::Full, Accept::FullOrPartial, Accept::Verified] {
        let pseudo = |protocol| move |length| checksum::pseudo_of(source, destination, protocol, length);
        let _ = udp::parse(payload, accept, pseudo(ipv4::UDP));
        if let Ok(segment) = tcp::parse(payload, accept, pseudo(ipv4::TCP)) {
            let _ = silk_tcp::Options::parse(segment.options);
        }
    }
}
