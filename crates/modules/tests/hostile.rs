//! Whatever comes in from the network: nothing panics, memory stays bounded, the tables and
//! the modules agree on every packet, and afterwards every byte is given back.

mod rig;

use core::time::Duration;
use proptest::prelude::*;
use rig::{Host, Options, ip, mac, stream};
use silk_modules::HeaderTemplate;
use silk_path::transform::Rule;
use silk_path::{Attr, Attrs, Bell, Checksum, Endpoint, PathId};
use silk_wire::checksum::{Sum, pseudo};
use silk_wire::{MacAddr, eth, ipv4};

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

/// A host with paths of every sort: listeners, connected and open sockets, a connection.
fn busy(template: bool) -> (Host, Vec<PathId>) {
    let rules: Vec<Box<dyn Rule>> = if template { vec![Box::new(HeaderTemplate)] } else { Vec::new() };
    let mut host = Host::with(1, Options { rules, ..Options::default() });
    host.streams = || Some(stream(20_000, 4096));
    let listen = Attrs::new().with(Attr::Listen(true)).with(Attr::Backlog(8));
    let mut paths = vec![
        host.create("socket", listen.with(Attr::Local(at(1, 80)))),
        host.create("echo", Attrs::new()),
        host.create("socket", Attrs::new().with(Attr::Local(at(1, 53))).with(Attr::Remote(at(2, 53)))),
    ];
    let open = Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Remote(at(2, 81)));
    paths.push(host.try_create("socket", open, Some(stream(20_000, 4096).0)).unwrap());
    host.sent();
    (host, paths)
}

/// A packet that is nearly right: the lengths and sums of some layers put right, so that it
/// gets as far as the next.
#[derive(Clone, Debug)]
struct Nearly {
    kind: u16,
    protocol: u8,
    fragment: u16,
    ports: (u16, u16),
    payload: Vec<u8>,
    repair: bool,
    change: Option<(usize, u8)>,
    cut: usize,
    checksum: u8,
}

fn nearly() -> impl Strategy<Value = Nearly> {
    let port = || prop_oneof![Just(7u16), Just(53), Just(80), Just(81), Just(5000), any::<u16>()];
    let fragment = prop_oneof![6 => Just(0u16), 1 => Just(0x2000), 1 => any::<u16>()];
    (
        (
            prop_oneof![8 => Just(eth::IPV4), 2 => Just(eth::ARP), 1 => any::<u16>()],
            prop_oneof![Just(1u8), Just(6), Just(17), any::<u8>()],
        ),
        fragment,
        (port(), port()),
        proptest::collection::vec(any::<u8>(), 0..120),
        proptest::bool::weighted(0.8),
        proptest::option::weighted(0.3, (0usize..80, any::<u8>())),
        prop_oneof![6 => Just(0usize), 1 => 0usize..60],
        0u8..3,
    )
        .prop_map(|((kind, protocol), fragment, ports, payload, repair, change, cut, checksum)| Nearly {
            kind,
            protocol,
            fragment,
            ports,
            payload,
            repair,
            change,
            cut,
            checksum,
        })
}

impl Nearly {
    fn frame(&self) -> Vec<u8> {
        let mut bytes = vec![0; eth::HEADER + ipv4::HEADER];
        eth::Header::new(MacAddr(mac(1)), MacAddr(mac(2)), self.kind).emit(&mut bytes);
        let mut payload = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        payload.extend_from_slice(&self.payload);
        if self.repair {
            self.mend(&mut payload);
        }
        let header = ipv4::Emit {
            protocol: self.protocol,
            source: ip(2),
            destination: ip(1),
            payload_len: payload.len() as u16,
            ..Default::default()
        };
        header.emit(&mut bytes[eth::HEADER..]);
        bytes.extend_from_slice(&payload);
        let ip_header = &mut bytes[eth::HEADER..eth::HEADER + ipv4::HEADER];
        ip_header[6..8].copy_from_slice(&self.fragment.to_be_bytes());
        ip_header[10..12].fill(0);
        let sum = Sum::ZERO.bytes(ip_header).checksum();
        ip_header[10..12].copy_from_slice(&sum.to_be_bytes());
        if let Some((at, value)) = self.change.filter(|(at, _)| *at < bytes.len()) {
            bytes[at] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(self.cut));
        bytes
    }

    /// Puts the transport's lengths and sums right.
    fn mend(&self, payload: &mut Vec<u8>) {
        let (least, field) = match self.protocol {
            1 => (8, 2),
            6 => (20, 16),
            17 => (8, 6),
            _ => return,
        };
        payload.resize(payload.len().max(least), 0);
        let length = payload.len() as u16;
        match self.protocol {
            1 => payload[0] = [0, 3, 8, 11, 12][usize::from(payload[0]) % 5],
            6 => payload[12] = (5 + payload[12] % 4).min((length / 4) as u8) << 4,
            _ => payload[4..6].copy_from_slice(&length.to_be_bytes()),
        }
        payload[field..field + 2].fill(0);
        let start = if self.protocol == 1 { Sum::ZERO } else { pseudo(ip(2), ip(1), self.protocol, length) };
        let sum = start.bytes(payload).checksum();
        payload[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn any_packets_leave_the_books_in_order(packets in proptest::collection::vec(nearly(), 1..60), template: bool) {
        let (mut host, mut paths) = busy(template);
        for (n, packet) in packets.iter().enumerate() {
            let checksum = [Checksum::Unknown, Checksum::MaybePartial, Checksum::Verified][usize::from(packet.checksum)];
            host.arrive_with(&packet.frame(), checksum);
            if n % 8 == 7 { host.advance(Duration::from_millis(700)); }
            let class = host.paths.classes.of(0);
            let memory: u64 = host.paths.iter().map(|path| path.state.account.memory()).sum();
            prop_assert_eq!(class.memory(), memory, "the class is the sum of its paths");
            prop_assert!(memory < 1 << 20);
        }
        paths.append(&mut host.created);
        for path in &paths {
            host.bell(*path, Bell::Abort);
            prop_assert!(host.paths.path(*path).is_some(), "only its maker destroys a path");
        }
        for path in host.paths.iter().map(|path| path.id()).collect::<Vec<_>>() {
            host.destroy(path);
        }
        let class = host.paths.classes.of(0);
        prop_assert_eq!((host.paths.len(), class.paths(), class.memory()), (0, 0, 0));
        prop_assert!(host.world.timers.is_empty());
    }

    #[test]
    fn random_bytes_are_classified_alike_and_break_nothing(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..20)) {
        let (mut host, _) = busy(false);
        let before = host.paths.len();
        // The rig itself compares the tables' answer with the modules' for every frame.
        frames.iter().for_each(|frame| _ = host.arrive(frame));
        prop_assert_eq!(host.paths.len(), before);
    }
}
