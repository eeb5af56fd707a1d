//! What an interface filters it lets through where it is for a packet socket that is a station of its own.

mod rig;

use std::process::Command;

use rig::{RIGHT, arrivals, datagram, send};
use silk_device::packet;

/// What `ip` says of an interface's filters: how many want all that comes, and how many all groups.
fn wanted(interface: &str) -> [String; 2] {
    let said = Command::new("ip").args(["-d", "link", "show", interface]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let mut words = said.split_whitespace();
    ["promiscuity", "allmulti"].map(|name| {
        words.find(|word| *word == name).and_then(|_| words.next()).unwrap_or_default().to_owned()
    })
}

#[test]
fn groups_and_an_ethernet_address_of_silks_own() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_namespace(|| {
        rig::ip("link add left type veth peer name right");
        rig::up();
        // Interfaces of this sort take the groups alone that they were told of.
        rig::ip("link add link right name over type macvlan mode bridge");
        rig::ip("link set over up");
        assert_eq!(wanted("over"), ["0", "0"]);
        let mut left = packet::open("left", &packet::Options::default()).unwrap();
        let station = packet::Options { addresses: vec![RIGHT.into()], ..packet::Options::default() };
        let mut ours = packet::open("over", &station).unwrap();
        assert_eq!(wanted("over"), ["0", "1"]);
        let mut to_group = datagram(b"to a group");
        to_group[..6].copy_from_slice(&[1, 0, 0x5e, 1, 2, 3]);
        send(&mut left, &to_group);
        assert_eq!(arrivals(&mut ours, 1)[0].1, to_group);
        drop(ours);
        assert_eq!(wanted("over"), ["0", "0"]);
        // Of a veth, which knows no addresses beside its own, all is taken then.
        let own = packet::Options { mac: Some([2, 0, 0, 0, 0, 9]), ..station };
        rig::ip("link del over");
        assert_eq!(wanted("right"), ["0", "0"]);
        let ours = packet::open("right", &own).unwrap();
        assert_eq!(wanted("right"), ["1", "1"]);
        drop(ours);
        assert_eq!(wanted("right"), ["0", "0"]);
    });
}
