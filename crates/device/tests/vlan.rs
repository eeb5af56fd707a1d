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
    for (frame, bytes) in
        std::iter::repeat_with(|| arrivals(to, 1)).take_while(|some| !some.is_empty()).flatten()
    {
        assert_eq!(bytes[12..18], [0x81, 0, 0, VLAN as u8, 8, 0]);
        assert!(
            frame.segment == 1000 || bytes.len() == 58 + 1000 || frame.checksum == Checksum::MaybePartial
        );
        got.extend_from_slice(&bytes[58..]);
        if got.len() >= payload.len() {
            break;
        }
    }
    assert!(got == payload, "{} bytes", got.len());
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
        let mut other = packet::open("left", &options).unwrap();
        assert_eq!(carried(&mut ours, &mut other, &frames()), frames());
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
    rig::with_namespace(|| {
        let mut ours = tap::open("tap0", &tap::Options::default()).unwrap();
        rig::ip("link set tap0 up");
        let mut plain = packet::open("tap0", &packet::Options::default()).unwrap();
        assert_eq!(carried(&mut plain, &mut ours, &frames()), frames());
        let mut linux = packet::open("tap0", &packet::Options { vlan: VLAN, ..Default::default() }).unwrap();
        assert_eq!(carried(&mut ours, &mut linux, &frames()), frames());
    });
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
        for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
            let mut linux = packet::open("left", &packet::Options::default()).unwrap();
            let mut device =
                xdp::open("right", &xdp::Options { mode, vlan: VLAN, ..Default::default() }).unwrap();
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

#[test]
fn the_other_end_of_a_veth_is_seen_to_keep_tags_apart() {
    rig::with_veth(|| {
        let mut netlink = Netlink::open().unwrap();
        let right = netlink.interface("right").unwrap();
        let left = netlink.interface_at(right.below.unwrap()).unwrap();
        assert_eq!((left.name.as_str(), left.vlan, left.veth), ("left", 0, true));
        rig::run("ethtool", "-K left txvlan on");
        let said = vlan::kept_apart(&mut netlink, &right);
        assert!(said.is_some_and(|said| said.contains("`ethtool -K left txvlan off`")));
        rig::run("ethtool", "-K left txvlan off");
        assert_eq!(vlan::kept_apart(&mut netlink, &right), None);
        assert_eq!(netlink.vlan(right.index, VLAN).unwrap(), None);
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
