//! Frames of one virtual LAN over every device: tags arrive and leave where Linux keeps them apart,
//! small frames and those of the full length, whole messages to be cut, and no other frames.

mod rig;

use std::sync::atomic::Ordering;

use rig::{PORT, RIGHT, arrivals, datagram, on_vlan, send};
use silk_device::netlink::Netlink;
use silk_device::xdp::{self, Mode};
use silk_device::{Checksum, End, Offload, link, packet, tap, vlan};
use silk_path::classify::layout;

const VLAN: u16 = 100;

/// The frames that are sent and arrive: the shortest, and the longest that the MTU allows.
fn frames() -> Vec<Vec<u8>> {
    [18, 600, 1472].map(|payload| on_vlan(&datagram(&vec![7; payload]), VLAN)).into()
}

/// What arrives at `to` of what is sent at `from`.
fn carried(from: &mut End, to: &mut End, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    frames.iter().for_each(|frame| send(from, frame));
    arrivals(to, frames.len()).into_iter().map(|(_, bytes)| bytes).collect()
}

/// A TCP message with a tag leaves whole and arrives as its packets, or whole with the size of them.
fn message_is_carried(from: &mut End, to: &mut End) {
    let payload = vec![0x5a; 5000];
    let (headers, offload) = rig::tcp_headers(payload.len(), 1000);
    let offload =
        Offload { checksum_start: offload.checksum_start + 4, header_len: offload.header_len + 4, ..offload };
    from.transmit.send(&on_vlan(&headers, VLAN), [&payload, &[]], offload);
    from.transmit.flush();
    assert_eq!(from.transmit.transmitted().dropped(), 0);
    let mut got = Vec::new();
    while got.len() < payload.len() {
        let Some((frame, bytes)) = arrivals(to, 1).pop() else { break };
        assert_eq!(bytes[12..18], [0x81, 0, 0, VLAN as u8, 8, 0]);
        assert!(
            frame.segment == 1000 || bytes.len() == 58 + 1000 || frame.checksum == Checksum::MaybePartial
        );
        got.extend_from_slice(&bytes[58..]);
    }
    assert_eq!(got, payload);
}

#[test]
fn packet() {
    rig::with_veth(|| {
        let mut plain = packet::open("left", &packet::Options::default()).unwrap();
        let options = packet::Options { vlan: VLAN, ..packet::Options::default() };
        let mut ours = packet::open("right", &options).unwrap();
        assert_eq!(carried(&mut plain, &mut ours, &frames()), frames());
        message_is_carried(&mut plain, &mut ours);
        // Untagged, of another VLAN, of another protocol, and then one that is ours.
        let mut foreign = on_vlan(&datagram(b"provider"), VLAN);
        foreign[12..14].copy_from_slice(&[0x88, 0xa8]);
        let strangers = [datagram(b"untagged"), on_vlan(&datagram(b"other"), 101), foreign];
        strangers.iter().for_each(|frame| send(&mut plain, frame));
        assert_eq!(carried(&mut plain, &mut ours, &frames()[..1]), frames()[..1]);
        // What it sends has its tag on the wire: Linux, at the other end, finds the VLAN in it.
        rig::ip(&format!("link add link left name left.{VLAN} type vlan id {VLAN}"));
        rig::ip(&format!("link set left.{VLAN} up"));
        let mut inside = packet::open(&format!("left.{VLAN}"), &packet::Options::default()).unwrap();
        let untagged: Vec<_> = [18, 600, 1472].map(|payload| datagram(&vec![7; payload])).into();
        assert_eq!(carried(&mut ours, &mut inside, &frames()), untagged);
    });
}

#[test]
fn a_priority_alone_is_no_vlan() {
    rig::with_veth(|| {
        let mut left = packet::open("left", &packet::Options::default()).unwrap();
        let mut right = packet::open("right", &packet::Options::default()).unwrap();
        let mut urgent = on_vlan(&datagram(b"urgent"), 1);
        urgent[14..16].copy_from_slice(&[0xe0, 0]);
        send(&mut left, &on_vlan(&datagram(b"other"), VLAN));
        assert_eq!(carried(&mut left, &mut right, &[urgent]), [datagram(b"urgent")]);
    });
}

#[test]
fn tap() {
    if !rig::root_of_the_machine() {
        return;
    }
    for kept in ["on", "off"] {
        rig::with_namespace(move || {
            let mut ours = tap::open("tap0", &tap::Options::default()).unwrap();
            rig::run("ethtool", &format!("-K tap0 txvlan {kept}"));
            rig::ip(&format!("link add link tap0 name tap0.{VLAN} type vlan id {VLAN}"));
            rig::ip("link set tap0 up");
            rig::ip(&format!("link set tap0.{VLAN} up"));
            let mut inside = packet::open(&format!("tap0.{VLAN}"), &packet::Options::default()).unwrap();
            let untagged: Vec<_> = [18, 600, 1472].map(|payload| datagram(&vec![7; payload])).into();
            assert_eq!(carried(&mut inside, &mut ours, &untagged), frames());
            assert_eq!(carried(&mut ours, &mut inside, &frames()), untagged);
        });
    }
}

#[test]
fn link() {
    for cut in [true, false] {
        let (mut a, mut b) = link::pair(&link::Options { cut, ..link::Options::default() }).unwrap();
        assert_eq!(carried(&mut a, &mut b, &frames()), frames());
        message_is_carried(&mut a, &mut b);
        send(&mut a, &datagram(&[0; 1473]));
        assert_eq!(a.transmit.transmitted().too_long, 1, "a tag makes room for itself alone");
    }
}

#[test]
fn xdp() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        for mode in [Mode::Native, Mode::Generic] {
            let mut linux = packet::open("left", &packet::Options::default()).unwrap();
            let mut device = xdp::open("right", &xdp::Options { mode, ..xdp::Options::default() }).unwrap();
            device.tables.settings[layout::SETTINGS_VLAN].store(VLAN.into(), Ordering::Relaxed);
            rig::own_port(&device.tables, 0);
            let mut ours = device.ends.pop().unwrap();
            send(&mut linux, &datagram(b"untagged"));
            send(&mut linux, &on_vlan(&datagram(b"other"), 101));
            assert_eq!(carried(&mut linux, &mut ours, &frames()), frames(), "{mode:?}");
            message_is_carried(&mut linux, &mut ours);
            assert!(device.passed() >= 2, "what is not ours is Linux's");
        }
    });
}

/// What a veth does with the tags of a VLAN interface at its other end: they are not in the frame unless
/// that end is told to write them.
#[test]
fn tags_are_seen_by_xdp_where_the_other_end_writes_them() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        for mode in [Mode::Native, Mode::Generic] {
            let mut device = xdp::open("right", &xdp::Options { mode, ..xdp::Options::default() }).unwrap();
            device.tables.settings[layout::SETTINGS_VLAN].store(VLAN.into(), Ordering::Relaxed);
            rig::own_port(&device.tables, 0);
            let mut ours = device.ends.pop().unwrap();
            let mut netlink = Netlink::open().unwrap();
            rig::ip(&format!("link add link left name left.{VLAN} type vlan id {VLAN}"));
            rig::ip(&format!("link set left.{VLAN} up"));
            let mut inside = packet::open(&format!("left.{VLAN}"), &packet::Options::default()).unwrap();

            rig::run("ethtool", "-K left txvlan on");
            let said = vlan::kept_apart(&mut netlink, &device.interface);
            assert!(said.is_some_and(|said| said.contains("`ethtool -K left txvlan off`")), "{mode:?}");
            let passed = device.passed();
            send(&mut inside, &datagram(&[7; 18]));
            assert_eq!(arrivals(&mut ours, 1), [], "{mode:?}: the tag is beside the frame");
            assert!(device.passed() > passed, "it is Linux's");

            rig::run("ethtool", "-K left txvlan off");
            assert_eq!(vlan::kept_apart(&mut netlink, &device.interface), None);
            send(&mut inside, &datagram(&[7; 18]));
            let arrived: Vec<_> = arrivals(&mut ours, 1).into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(arrived, frames()[..1], "{mode:?}");
            rig::ip(&format!("link delete left.{VLAN}"));
        }
    });
}

/// An interface for a VLAN, where Linux carries the tag.
#[test]
fn linux_finds_its_interface_for_a_vlan() {
    rig::with_veth(|| {
        rig::ip(&format!("link add link right name theirs type vlan id {VLAN}"));
        rig::ip("link add link right name provider type vlan proto 802.1ad id 200");
        let mut netlink = Netlink::open().unwrap();
        let right = netlink.interface("right").unwrap();
        let theirs = netlink.vlan(right.index, VLAN).unwrap().unwrap();
        assert_eq!((theirs.name.as_str(), theirs.vlan, theirs.below), ("theirs", VLAN, Some(right.index)));
        assert_eq!(
            (netlink.vlan(right.index, 200).unwrap(), netlink.vlan(right.index, 7).unwrap()),
            (None, None)
        );
        let left = netlink.interface_at(right.below.unwrap()).unwrap();
        assert_eq!((left.name.as_str(), left.vlan), ("left", 0));
    });
}

#[test]
fn an_address_of_a_vlan_is_filtered_as_others_are() {
    rig::with_veth(|| {
        let mut plain = packet::open("left", &packet::Options::default()).unwrap();
        let options =
            packet::Options { vlan: VLAN, addresses: vec![RIGHT.into()], ..packet::Options::default() };
        let mut ours = packet::open("right", &options).unwrap();
        let mut stranger = datagram(&[PORT as u8; 18]);
        stranger[33] = 77;
        send(&mut plain, &on_vlan(&stranger, VLAN));
        assert_eq!(carried(&mut plain, &mut ours, &frames()[..1]), frames()[..1]);
    });
}
