//! Packet sockets and taps for several domains: Linux asks the classifier whose a packet is.

mod rig;

use std::net::SocketAddrV4;
use std::sync::atomic::Ordering;

use rig::{LEFT, PAYLOAD, PORT, RIGHT};
use silk_device::{End, Steered, packet, tap};
use silk_path::classify::{Belongs, ClassRule, Domains, Flow, Found, Owned, Protocol, layout};

const DOMAINS: u32 = 3;

#[test]
fn packet() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let left = packet::open("left", &packet::Options::default()).unwrap();
        let options = packet::Options { addresses: vec![RIGHT.into()], ..packet::Options::default() };
        every_domain_gets_its_own(left, packet::open_domains("right", DOMAINS, 64, &options).unwrap(), 0);
    });
}

#[test]
fn tap() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        let ours = tap::open_domains("tap0", DOMAINS, 64, &tap::Options::default()).unwrap();
        rig::ip("link set tap0 up");
        let linux = packet::open("tap0", &packet::Options::default()).unwrap();
        every_domain_gets_its_own(linux, ours, 0);
    });
}

const VLAN: u16 = 100;

#[test]
fn packets_of_one_vlan() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let left = packet::open("left", &packet::Options::default()).unwrap();
        let options =
            packet::Options { addresses: vec![RIGHT.into()], vlan: VLAN, ..packet::Options::default() };
        let right = packet::open_domains("right", DOMAINS, 64, &options).unwrap();
        right.tables.settings[layout::SETTINGS_VLAN].store(VLAN.into(), Ordering::Relaxed);
        every_domain_gets_its_own(left, right, VLAN);
    });
}

#[test]
fn a_tap_with_one_vlan() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        let ours = tap::open_domains("tap0", DOMAINS, 64, &tap::Options::default()).unwrap();
        ours.tables.settings[layout::SETTINGS_VLAN].store(VLAN.into(), Ordering::Relaxed);
        rig::ip("link set tap0 up");
        every_domain_gets_its_own(packet::open("tap0", &packet::Options::default()).unwrap(), ours, VLAN);
    });
}

/// With `tag`, what is sent from Linux's side has that tag already.
fn every_domain_gets_its_own(mut linux: End, mut ours: Steered, tag: u16) {
    let vlan = ours.tables.settings[layout::SETTINGS_VLAN].load(Ordering::Relaxed) as u16;
    let tables = rig::classifier(&ours.tables);
    let rule = ClassRule { source: Some((LEFT.into(), 32)), dscp: None, local_port: Some(PORT), domain: 1 };
    let domains = Domains { control: 0, ..Domains::default() };
    tables.configure(Owned { arp: true, ..Owned::default() }, domains, &[rule], &[RIGHT]).unwrap();
    let mut domain_of = |packet: &[u8]| {
        rig::send(&mut linux, &rig::on_vlan(packet, tag));
        let packet = rig::on_vlan(packet, vlan);
        let mut of = Vec::new();
        for _ in 0..200 {
            // Once more where it has come: others are not to have it, too.
            let has_come = !of.is_empty();
            std::thread::sleep(std::time::Duration::from_millis(10));
            for (domain, end) in ours.ends.iter_mut().enumerate() {
                let mut frames = Vec::new();
                end.receive.receive(&mut frames, 8);
                for frame in frames {
                    assert_eq!(end.receive.bytes(frame)[frame.range()], packet);
                    end.receive.release(frame);
                    of.push(domain);
                }
            }
            if has_come {
                break;
            }
        }
        of
    };

    let packet = rig::datagram(b"whose?");
    assert_eq!(tables.classify(&rig::on_vlan(&packet, vlan)), Belongs::Pass);
    assert_eq!(domain_of(&packet), [0], "nobody's go to the control domain");
    tables.own_port(Protocol::Udp, None, PORT);
    assert_eq!(domain_of(&packet), [1], "a class rule");
    let flow = Flow {
        protocol: Protocol::Udp,
        local: SocketAddrV4::new(RIGHT, PORT),
        remote: SocketAddrV4::new(LEFT, 0x3039),
    };
    tables.flows.insert(&flow, Found { domain: 2, index: 7 }).unwrap();
    assert_eq!(domain_of(&packet), [2], "a flow");
    assert_eq!(domain_of(&rig::datagram(&[1; 1400])), [2], "a long packet");
    tables.flows.replace(&flow, Found { domain: 60, index: 7 });
    assert_eq!(domain_of(&packet), [0], "a domain that is not there");
    let mut arp = vec![0xff; 6];
    arp.extend([2, 0, 0, 0, 0, 1, 8, 6]);
    arp.resize(PAYLOAD, 0);
    assert_eq!(domain_of(&arp), [0], "ARP");
}
