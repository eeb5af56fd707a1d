//! One specification, two classifiers: whatever the tables hold and whatever the packet is,
//! the XDP program and the classifier in user space must give the same answer.

mod rig;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use silk_device::xdp::{self, Mode, Tried};
use silk_path::Endpoint;
use silk_path::classify::{
    Belongs, Between, ClassRule, Domains, Filter, Found, Framed, Owned, Protocol, Refused, Tables, layout,
};

/// Few values, so that packets, flows, ports and rules meet often.
const ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(192, 0, 2, 77)];
/// The second differs from the first in its first half alone.
const ADDRESSES6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0x1234, 0x56ff, 0xfe78, 0x9abc),
];
/// The second is the first with its bytes turned round.
const PORTS: [u16; 2] = [80, 0x5000];
/// Numbers and time stamps of pictures: near each other, and half the circle apart.
const STAMPS: [u32; 9] = [0, 1, 2, 3, 6, u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x8000_0001];

fn address() -> impl Strategy<Value = Ipv4Addr> {
    select(&ADDRESSES[..])
}

fn address6() -> impl Strategy<Value = Ipv6Addr> {
    select(&ADDRESSES6[..])
}

fn either() -> impl Strategy<Value = IpAddr> {
    prop_oneof![address().prop_map(IpAddr::V4), address6().prop_map(IpAddr::V6)]
}

/// Groups, and everyone on a network.
const GROUPS: [Ipv4Addr; 2] = [Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::new(10, 0, 0, 255)];
const GROUPS6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1),
    Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x99),
];

fn group() -> impl Strategy<Value = IpAddr> {
    prop_oneof![select(&GROUPS[..]).prop_map(IpAddr::V4), select(&GROUPS6[..]).prop_map(IpAddr::V6), either()]
}

/// Two ends of one family.
fn ends() -> impl Strategy<Value = (Endpoint, Endpoint)> {
    let ips = prop_oneof![
        (address(), address()).prop_map(|(a, b)| (IpAddr::V4(a), IpAddr::V4(b))),
        (address6(), address6()).prop_map(|(a, b)| (IpAddr::V6(a), IpAddr::V6(b))),
    ];
    let port = || select(&PORTS[..]);
    (ips, port(), port()).prop_map(|((a, b), p, q)| (Endpoint::new(a, p), Endpoint::new(b, q)))
}

fn protocol() -> impl Strategy<Value = Protocol> {
    select(vec![Protocol::Tcp, Protocol::Udp])
}

/// What the tables are to hold.
#[derive(Clone, Debug)]
struct Setup {
    owned: Owned,
    domains: Domains,
    rules: Vec<ClassRule>,
    refused: Vec<(IpAddr, u8)>,
    addresses: Vec<IpAddr>,
    groups: Vec<IpAddr>,
    ports: Vec<(Protocol, Option<IpAddr>, u16)>,
    flows: Vec<(Between, Found, Option<Filter>)>,
}

/// Few values, as the packets have them.
fn filter() -> impl Strategy<Value = Filter> {
    let every = prop_oneof![2 => Just(1), 3 => 0..4u16, 1 => any::<u16>()];
    let types = prop_oneof![2 => Just(0), 2 => 0..16u8, 1 => any::<u8>()];
    let framed = select(vec![Framed::Mflow, Framed::RtpVideo]);
    let skips = prop_oneof![2 => Just(1 << 3), 2 => 0..16u8, 1 => any::<u8>()];
    let not_before = proptest::option::of(select(&STAMPS[..]));
    (framed, types, every, skips, not_before).prop_map(|(framed, types, every, skips, not_before)| Filter {
        framed,
        types,
        every,
        skips,
        not_before,
    })
}

fn setup() -> impl Strategy<Value = Setup> {
    let domain = 0..64u8;
    let owned = any::<[bool; 3]>().prop_map(|[arp, icmp, fragments]| Owned { arp, icmp, fragments });
    let domains = (domain.clone(), domain.clone(), domain.clone())
        .prop_map(|(default, fragment, control)| Domains { default, fragment, control });
    let source = || {
        prop_oneof![
            (address().prop_map(IpAddr::V4), select(vec![0, 8, 16, 31, 32])),
            (address6().prop_map(IpAddr::V6), select(vec![0, 7, 63, 64, 65, 127, 128])),
        ]
    };
    // Some of them, among others.
    let network = prop_oneof![
        1 => source().prop_filter("not everybody", |(_, length)| *length > 0),
        4 => any::<u32>().prop_map(|any| (IpAddr::V4(any.into()), 32)),
        4 => (any::<u16>(), any::<u64>()).prop_map(|(high, low)| {
            (IpAddr::V6((0xfd00u128 << 112 | u128::from(high) << 64 | u128::from(low)).into()), 128)
        }),
    ];
    let rule = (
        proptest::option::of(source()),
        proptest::option::of(select(vec![0, 10, 46])),
        proptest::option::of(select(&PORTS[..])),
        domain.clone(),
    )
        .prop_map(|(source, dscp, local_port, domain)| ClassRule { source, dscp, local_port, domain });
    let all = prop_oneof![Just(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), Just(IpAddr::V6(Ipv6Addr::UNSPECIFIED))];
    let port = (protocol(), proptest::option::of(prop_oneof![3 => either(), 1 => all]), select(&PORTS[..]));
    let index = prop_oneof![0..layout::INDEX_LISTEN, Just(layout::INDEX_LISTEN)];
    let flow = (protocol(), ends(), domain, index, proptest::option::weighted(0.7, filter())).prop_map(
        |(protocol, (local, remote), domain, index, filter)| {
            (Between { protocol, local, remote }, Found { domain, index }, filter)
        },
    );
    use proptest::collection::vec;
    (
        owned,
        domains,
        vec(rule, 0..=layout::RULES),
        prop_oneof![Just(Vec::new()), vec(network, 0..60)],
        (vec(address(), 0..=8usize), vec(address6(), 0..=layout::ADDRESSES6)).prop_map(|(four, six)| {
            four.into_iter().map(IpAddr::V4).chain(six.into_iter().map(IpAddr::V6)).collect()
        }),
        vec(group(), 0..5),
        vec(port, 0..6),
        vec(flow, 1..40),
    )
        .prop_map(|(owned, domains, rules, refused, addresses, groups, ports, flows)| Setup {
            owned,
            domains,
            rules,
            refused,
            addresses,
            groups,
            ports,
            flows,
        })
}

/// An IPv4 packet: nearly always well formed, with every field that is looked at.
fn ipv4(upper: impl Strategy<Value = (u8, Vec<u8>)>) -> impl Strategy<Value = Vec<u8>> {
    (
        (address(), prop_oneof![8 => address(), 2 => select(&GROUPS[..])]),
        prop_oneof![12 => Just(5u8), 1 => 0..16u8],
        select(vec![0u8, 0x28, 0xb8, 0xff]),
        prop_oneof![12 => select(vec![0u16, 0x4000]), 1 => select(vec![0x2000, 0x2001, 1, 0x1fff, 0x8000]), 1 => any::<u16>()],
        prop_oneof![12 => Just(0i16), 1 => -40..40i16],
        upper,
    )
        .prop_map(|((source, destination), ihl, tos, fragment, lie, (protocol, payload))| {
            let mut packet = vec![0x40 | ihl, tos, 0, 0, 0, 0];
            packet.extend(fragment.to_be_bytes());
            packet.extend([64, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.resize((usize::from(ihl) * 4).max(20), 0);
            packet.extend(payload);
            let total = (packet.len() as i16).wrapping_add(lie);
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            packet
        })
}

fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let len = prop_oneof![Just(8usize), Just(20), 4..40usize];
    (select(vec![2, 6, 17, 17, 6, 17, 17]), select(&PORTS[..]), select(&PORTS[..]), len).prop_map(
        |(protocol, source, destination, len)| {
            let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
            bytes.resize(len, 0);
            (protocol, bytes)
        },
    )
}

/// UDP with MFLOW, RTP, or nearly one of them behind it.
fn video() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let first =
        prop_oneof![3 => select(vec![0x10u8, 0x80]), 1 => select(vec![0xa0, 0x11, 0x20, 0x81, 0x90, 0x40])];
    let flags = prop_oneof![4 => 0..4u8, 1 => any::<u8>()];
    let kind = || prop_oneof![4 => 0..5u8, 1 => any::<u8>()];
    let length = prop_oneof![4 => Just(24usize), 2 => Just(40), 1 => 8..30usize];
    let stamp = || select(&STAMPS[..]);
    ((select(&PORTS[..]), select(&PORTS[..])), (first, flags, kind(), kind()), stamp(), stamp(), length)
        .prop_map(|((source, destination), (first, flags, mflow, rtp), early, late, length)| {
            let mut bytes = [source.to_be_bytes(), destination.to_be_bytes(), [0; 2], [0; 2]].concat();
            bytes.extend([first, flags, mflow, 0]);
            bytes.extend(early.to_be_bytes());
            bytes.extend(late.to_be_bytes());
            bytes.extend([0, 0, rtp, 0]);
            bytes.resize(length, 0);
            (17, bytes)
        })
}

/// An ICMP message; errors quote a packet, often one of a flow.
fn icmp() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (select(vec![0u8, 3, 8, 11, 12]), ipv4(transport()), 0..80usize).prop_map(|(kind, quote, keep)| {
        let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(&quote[..keep.min(quote.len())]);
        (1, bytes)
    })
}

/// Extension headers, mostly reasonable: the kind of the first, and all of them before what follows.
fn extensions() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let fields =
        prop_oneof![3 => Just([0u8, 0]), 1 => Just([0, 1]), 1 => Just([0, 6]), 1 => any::<[u8; 2]>()];
    let one = (select(vec![0u8, 43, 44, 60, 51]), select(vec![0u8, 0, 0, 1, 5, 15]), fields);
    let one = one.prop_map(|(kind, units, fields)| {
        let units = if kind == 44 { 0 } else { units };
        let mut bytes = vec![0; 8 * (usize::from(units) + 1)];
        (bytes[1], bytes[2], bytes[3]) = (units, fields[0], fields[1]);
        (kind, bytes)
    });
    prop_oneof![3 => Just(Vec::new()), 2 => proptest::collection::vec(one, 1..6)]
}

/// An IPv6 packet: nearly always well formed, with every field that is looked at.
fn ipv6(upper: impl Strategy<Value = (u8, Vec<u8>)>) -> impl Strategy<Value = Vec<u8>> {
    (
        (address6(), prop_oneof![8 => address6(), 2 => select(&GROUPS6[..])]),
        prop_oneof![12 => select(vec![0x6000u16, 0x6a00, 0x6b80, 0x6fff]), 1 => any::<u16>()],
        prop_oneof![12 => Just(0i16), 1 => -40..40i16],
        extensions(),
        upper,
    )
        .prop_map(|((source, destination), first, lie, extensions, (protocol, payload))| {
            let kinds = extensions.iter().map(|(kind, _)| *kind).chain([protocol]).collect::<Vec<_>>();
            let mut packet = [first.to_be_bytes(), [0, 0], [0, 0], [kinds[0], 64]].concat();
            packet.extend(source.octets());
            packet.extend(destination.octets());
            for ((_, bytes), next) in extensions.iter().zip(&kinds[1..]) {
                let at = packet.len();
                packet.extend(bytes);
                packet[at] = *next;
            }
            packet.extend(payload);
            let length = (packet.len() as i16 - 40).wrapping_add(lie);
            packet[4..6].copy_from_slice(&length.to_be_bytes());
            packet
        })
}

/// An ICMPv6 message; errors quote a packet, often one of a flow.
fn icmp6() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kind = select(vec![1u8, 2, 3, 4, 5, 128, 128, 129, 130, 132, 133, 135, 137, 138]);
    (kind, ipv6(transport()), 0..90usize).prop_map(|(kind, quote, keep)| {
        let mut bytes = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(&quote[..keep.min(quote.len())]);
        (58, bytes)
    })
}

fn noise() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60))
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let upper = prop_oneof![4 => transport(), 8 => video(), 2 => icmp(), 1 => noise()];
    let ether = prop_oneof![8 => Just([8, 0]), 1 => Just([8, 6]), 1 => any::<[u8; 2]>()];
    let upper6 = prop_oneof![4 => transport(), 8 => video(), 2 => icmp6(), 1 => noise()];
    let ether6 = prop_oneof![12 => Just([0x86, 0xdd]), 1 => Just([8, 0])];
    let packet = prop_oneof![(ether, ipv4(upper)).boxed(), (ether6, ipv6(upper6)).boxed()];
    (select(vec![2u8, 2, 2, 1, 0xff]), packet, 0..300usize, 0..8u8).prop_map(
        |(destination, (ether, packet), keep, whole)| {
            let mut bytes = vec![destination, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
            bytes.extend(ether);
            bytes.extend(packet);
            if whole == 0 {
                // The kernel's test run takes nothing shorter than an Ethernet header.
                bytes.truncate(keep.max(14));
            }
            bytes
        },
    )
}

/// What stands between a frame's addresses and its kind.
#[derive(Clone, Copy, Debug)]
enum Tagging {
    /// What its owner's virtual LAN asks for, with some priority.
    Right(u8),
    /// Whatever there was.
    None,
    /// Some tag, of this kind.
    One([u8; 2], u16),
    /// Its owner's behind another, or one that is cut short.
    Two(u16),
    Short(u16, usize),
}

/// Few values, as the tables have them.
const VLANS: [u16; 4] = [0, 1, 100, 4094];

fn tagging() -> impl Strategy<Value = Tagging> {
    let tci =
        || (select(vec![0u16, 1, 100, 101, 4094, 4095]), 0..16u16).prop_map(|(vid, high)| vid | high << 12);
    let kind = select(vec![[0x81, 0], [0x88, 0xa8]]);
    prop_oneof![
        16 => any::<u8>().prop_map(Tagging::Right),
        1 => Just(Tagging::None),
        2 => (kind, tci()).prop_map(|(kind, tci)| Tagging::One(kind, tci)),
        1 => tci().prop_map(Tagging::Two),
        1 => (tci(), 14..20usize).prop_map(|(tci, keep)| Tagging::Short(tci, keep)),
    ]
}

/// Gives a frame its tags.
fn tag(frame: &mut Vec<u8>, tagging: Tagging, vlan: u16) {
    let mut put =
        |kind: [u8; 2], tci: u16| drop(frame.splice(12..12, kind.into_iter().chain(tci.to_be_bytes())));
    match tagging {
        Tagging::Right(priority) if vlan != 0 || priority & 1 == 1 => {
            put([0x81, 0], vlan | u16::from(priority >> 4) << 12);
        }
        Tagging::Right(_) | Tagging::None => {}
        Tagging::One(kind, tci) => put(kind, tci),
        Tagging::Two(tci) => {
            put([0x81, 0], tci);
            put([0x81, 0], vlan);
        }
        Tagging::Short(tci, keep) => {
            put([0x81, 0], tci);
            frame.truncate(keep);
        }
    }
}

/// A flow of the frame's family, if there is one, and of the other otherwise: what is laid out for
/// one family is hardly ever video in the other.
fn flow_for<'a, T>(
    flows: &'a [(Between, Found, T)],
    nth: proptest::sample::Index,
    frame: &[u8],
) -> Option<&'a (Between, Found, T)> {
    let six = frame[12] == 0x86;
    let of_family = |flow: &&(Between, Found, T)| flow.0.local.is_v6() == six;
    match flows.iter().filter(of_family).count() {
        0 => Some(nth.get(flows)),
        count => flows.iter().filter(of_family).nth(nth.index(count)),
    }
}

/// Makes a frame one of a flow, where it is long enough, and what looks like video the video that
/// the flow's filter is about.
fn aim(frame: &mut [u8], flow: Option<&(Between, Found, Option<Filter>)>) {
    let Some((Between { protocol, local, remote }, _, filter)) = flow else { return };
    if let Some(first) = frame.get_mut(if local.is_v6() { 62 } else { 42 })
        && [0x10, 0x80].contains(first)
    {
        *first = if filter.is_some_and(|filter| filter.framed == Framed::Mflow) { 0x10 } else { 0x80 };
    }
    let protocol = if *protocol == Protocol::Udp { 17 } else { 6 };
    let ports = [remote.port().to_be_bytes(), local.port().to_be_bytes()].concat();
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = frame.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, &[2]);
    match (remote.ip(), local.ip()) {
        (IpAddr::V4(remote), IpAddr::V4(local)) => {
            put(12, &[8, 0, 0x45]);
            put(23, &[protocol]);
            put(26, &[remote.octets(), local.octets()].concat());
            put(34, &ports);
        }
        (IpAddr::V6(remote), IpAddr::V6(local)) => {
            put(12, &[0x86, 0xdd]);
            put(20, &[protocol]);
            put(22, &[remote.octets(), local.octets()].concat());
            put(54, &ports);
        }
        _ => {}
    }
}

fn clear(tables: &silk_device::Tables) {
    tables
        .flows
        .iter()
        .chain(tables.homes)
        .chain(tables.rules)
        .chain(tables.settings)
        .chain(tables.discards)
        .for_each(|word| word.store(0, Ordering::Relaxed));
    tables.ports.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

/// Both classifiers' tables, which are the same memory, as `setup` says.
fn prepare(shared: &silk_device::Tables, seed: u64, vlans: [u16; layout::DEVICES], setup: &Setup) -> Tables {
    clear(shared);
    shared.settings[layout::SETTINGS_SEED].store(seed, Ordering::Relaxed);
    shared.settings[layout::SETTINGS_SEED2].store(!seed, Ordering::Relaxed);
    // What a longer configuration before might have left behind the addresses in force.
    let stale = u64::from(u32::from_le_bytes(ADDRESSES[0].octets()));
    let addresses = &shared.settings[layout::SETTINGS_ADDRESSES..layout::SETTINGS_SEED2];
    addresses.iter().for_each(|word| word.store(stale | stale << 32, Ordering::Relaxed));
    let stale = u64::from_le_bytes(ADDRESSES6[0].octets()[..8].try_into().unwrap());
    shared.settings[layout::SETTINGS_ADDRESSES6..layout::SETTINGS_VLAN]
        .iter()
        .for_each(|word| word.store(stale, Ordering::Relaxed));
    shared.settings[layout::SETTINGS_VLAN].store(layout::vlans_word(vlans), Ordering::Relaxed);
    let tables = rig::classifier(shared);
    tables.configure(setup.owned, setup.domains, &setup.rules, &setup.addresses).expect("as many as fit");
    tables.refuse(&Refused::of(setup.refused.iter().copied())).expect("as many as fit");
    for &group in &setup.groups {
        // There may be no room.
        let _ = tables.hear(group);
    }
    for &(protocol, address, port) in &setup.ports {
        tables.own_port(protocol, address, port);
    }
    for (flow, found, filter) in &setup.flows {
        // Doubles and a full table are refused, and so is an entry that another has; the rest is
        // enough.
        let _ = tables.flows.insert(flow, *found);
        let _ = filter.map(|filter| tables.discard(*found, &filter));
    }
    tables
}

/// The program's answer in the words of the other; `None` is a discard, of which it says nothing
/// more.
fn belongs(tried: Tried) -> Option<Belongs> {
    match tried {
        Tried::Pass => Some(Belongs::Pass),
        Tried::Discarded => None,
        Tried::Taken { hint } => {
            let belongs = Belongs::from_hint(hint).expect("what it takes, it says why");
            let path = hint & layout::VALUE_VALID != 0;
            assert_eq!(path, matches!(belongs, Belongs::Path { .. }), "only a path's word is a flow's value");
            Some(belongs)
        }
    }
}

/// What is counted of the path of a packet, where it has one, or of its domain's refused ones.
fn counted(device: &xdp::Device, tables: &Tables, belongs: Belongs) -> Option<u64> {
    match belongs {
        Belongs::Refuse { domain } => Some(device.counts(domain.into()).refused),
        Belongs::Path { domain, index } | Belongs::Discard { domain, index } => {
            Some(tables.discarded(Found { domain, index }))
        }
        _ => None,
    }
}

#[test]
fn the_xdp_program_and_the_classifier_in_user_space_agree() {
    agree(Mode::Best, &["right"], 2600, 100);
}

#[test]
fn so_do_the_program_at_the_ingress_and_the_classifier() {
    agree(Mode::Ingress, &["right"], 2600, 40);
    agree(Mode::Ingress, &["right", "left"], 1300, 20);
}

#[test]
fn so_they_do_over_several_interfaces_each_with_a_vlan_of_its_own() {
    agree(Mode::Best, &["right", "left", "near", "far"], 1300, 40);
}

/// Whether the kernel runs a program on this frame as on a socket buffer: not where the network's header is cut short.
fn is_tried(frame: &[u8]) -> bool {
    let header = match frame.get(12..14) {
        Some([0x08, 0x00]) => 20,
        Some([0x86, 0xdd]) => 40,
        _ => 1,
    };
    frame.len() >= 14 + header
}

/// Asks both about as many frames over these interfaces, until of each kind of answer so many were given.
fn agree(mode: Mode, interfaces: &'static [&'static str], cases: u32, least: u32) {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(move || {
        rig::ip("link add near type veth peer name far");
        let options = xdp::Options { mode, domains: 8, ring: 64, buckets: 4, ..xdp::Options::default() };
        let named: Vec<_> = interfaces.iter().map(|name| (*name, options.clone())).collect();
        let device = xdp::open_all(&named).unwrap();
        assert_eq!(device.further.len() + 1, interfaces.len());
        // By family and kind.
        let mut seen = [[0u32; 7]; 2];
        let mut runner =
            TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
        let aimed = proptest::option::weighted(0.5, any::<proptest::sample::Index>());
        let over = 0..interfaces.len();
        let frames = proptest::collection::vec((frame(), aimed, tagging(), over), 60);
        // Of those with a tag, too.
        let mut tagged = [0u32; 7];
        let seen_ref = std::cell::RefCell::new((&mut seen, &mut tagged));
        runner
            .run(
                &(
                    any::<u64>(),
                    [select(&VLANS[..]), select(&VLANS[..]), select(&VLANS[..]), select(&VLANS[..])],
                    setup(),
                    frames,
                ),
                |(seed, vlans, setup, frames)| {
                    let tables = prepare(&device.tables, seed, vlans, &setup);
                    for (mut frame, of_flow, tagging, over) in frames {
                        let of_flow = of_flow.and_then(|nth| flow_for(&setup.flows, nth, &frame));
                        aim(&mut frame, of_flow);
                        let six = usize::from(frame[12] == 0x86);
                        tag(&mut frame, tagging, vlans[over]);
                        if mode == Mode::Ingress && !is_tried(&frame) {
                            continue;
                        }
                        let expected = tables.classify_over(&frame, over as u8);
                        let kind = match expected {
                            Belongs::Path { .. } => 0,
                            Belongs::Listen { .. } => 1,
                            Belongs::Fragment { .. } => 2,
                            Belongs::Control { .. } => 3,
                            Belongs::Pass => 4,
                            Belongs::Discard { .. } => 5,
                            Belongs::Refuse { .. } => 6,
                        };
                        seen_ref.borrow_mut().0[six][kind] += 1;
                        seen_ref.borrow_mut().1[kind] += u32::from(frame[12..14] == [0x81, 0]);
                        let before = counted(&device, &tables, expected);
                        let tried = device.try_frame_over(over, &frame).expect("the program runs");
                        let counted =
                            counted(&device, &tables, expected).map(|after| after - before.unwrap_or(0));
                        let (expected, once) = match expected {
                            Belongs::Discard { .. } | Belongs::Refuse { .. } => (None, Some(1)),
                            other => (Some(other), before.map(|_| 0)),
                        };
                        prop_assert_eq!((belongs(tried), counted), (expected, once), "frame {:x?}", frame);
                    }
                    Ok(())
                },
            )
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert!(
            seen.iter().flatten().all(|&count| count > least),
            "every kind of answer was asked for: {seen:?}"
        );
        assert!(tagged.iter().all(|&count| count > least / 5), "of tagged frames too: {tagged:?}");
    });
}
