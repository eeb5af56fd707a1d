//! A host that speaks with itself: what it sends to its own addresses comes back by a device of its own. Nobody outside can say
//! that a packet is ours.

mod rig;

use core::time::Duration;
use rig::{Host, Options, ip, ip6, mac, stream};
use silk_modules::{Device, Setup};
use silk_path::{Attr, Attrs, Bell, Checksum, DropReason, Endpoint, Event, Outcome};
use silk_wire::{MacAddr, eth};

/// What comes back comes by this device.
const ITSELF: u8 = 1;

fn host() -> Host {
    let setup = |setup: &mut Setup| {
        setup.devices.push(Device::itself());
        setup.itself = Some(ITSELF);
    };
    let mut host = Host::with(1, Options { setup, ..Options::six() });
    // What it says to its neighbours when it begins.
    forget(&mut host);
    host
}

fn forget(host: &mut Host) {
    host.sent();
    host.world.over.clear();
}

/// Lets what it has sent come back until it is silent: how many frames that were.
fn come_back(host: &mut Host) -> usize {
    let mut all = 0;
    loop {
        let over: Vec<u8> = host.world.over.drain(..).collect();
        assert!(over.iter().all(|device| *device == ITSELF), "{over:?}");
        let frames = host.sent();
        if frames.is_empty() {
            return all;
        }
        all += frames.len();
        host.over = ITSELF;
        for frame in frames {
            assert_ne!(host.arrive_with(&frame, Checksum::Verified), None);
        }
    }
}

fn ends() -> [Endpoint; 2] {
    [Endpoint::v4(ip(1), 80), Endpoint::v6(ip6(1), 80)]
}

#[test]
fn a_connection_to_ourselves_carries_what_is_sent() {
    for here in ends() {
        let mut host = host();
        host.streams = || Some(stream(100_000, 4096));
        host.create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(here)));
        let (buffers, client) = stream(100_000, 4096);
        let from = if here.is_v6() { Endpoint::v6(ip6(1), 5000) } else { Endpoint::v4(ip(1), 5000) };
        let attrs = Attrs::new().with(Attr::ProtId(6)).with(Attr::Local(from)).with(Attr::Remote(here));
        let path = host.try_create("socket", attrs, Some(buffers)).unwrap();
        come_back(&mut host);
        assert!(host.world.events.contains(&(path, Event::Connected)));
        let server = host.handles[0].clone();
        client.write(&[7; 9000]);
        let mut got = 0;
        for _ in 0..100 {
            host.bell(path, Bell::Sent);
            come_back(&mut host);
            got += server.read().len();
            host.bell(host.created[0], Bell::Read);
            host.advance(Duration::from_millis(50));
        }
        assert_eq!(got, 9000);
    }
}

// RFC 9293 §3.5, simultaneous open.
#[test]
fn a_connection_from_a_port_to_itself_opens() {
    let mut host = host();
    let (buffers, handle) = stream(100_000, 4096);
    let [here, _] = ends();
    let attrs = Attrs::new().with(Attr::ProtId(6)).with(Attr::Local(here)).with(Attr::Remote(here));
    let path = host.try_create("socket", attrs, Some(buffers)).unwrap();
    come_back(&mut host);
    assert!(host.world.events.contains(&(path, Event::Connected)));
    handle.write(b"to myself");
    host.bell(path, Bell::Sent);
    come_back(&mut host);
    assert_eq!(handle.read(), b"to myself");
}

#[test]
fn a_datagram_to_ourselves_comes_from_ourselves_and_from_nobody_else() {
    for here in ends() {
        let mut host = host();
        let path = host.create("socket", Attrs::new().with(Attr::Local(here)));
        assert_eq!(host.send(path, here, b"hello"), Outcome::Done);
        let mut frame = host.sent().remove(0);
        host.over = ITSELF;
        host.arrive_with(&frame, Checksum::Verified);
        assert_eq!(host.world.delivered, [(path, here, b"hello".to_vec())]);
        // The same from outside: its source is impossible.
        eth::Header::new(MacAddr(mac(1)), MacAddr(mac(9)), eth::parse(&frame).unwrap().0.kind())
            .emit(&mut frame);
        host.over = 0;
        let outcome = host.arrive_with(&frame, Checksum::Verified);
        assert_eq!(outcome, Some(Outcome::Dropped(DropReason::IpBadSource)));
    }
}
