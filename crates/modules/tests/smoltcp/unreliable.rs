//! Datagrams and echoes between the two.

use core::time::Duration;

use silk_path::{Attr, Attrs, Event, Outcome, PathId};
use silk_tcp::Config;
use silk_testkit::emulator::{Conditions, Loss};
use smoltcp::wire::IpEndpoint;

use crate::ours;
use crate::pair::{FROM, PORT, Pair, pattern};
use crate::peer::{self, Terms};

/// A pair whose hosts have a datagram socket each: silk's at `FROM`, smoltcp's at `PORT`.
fn with_sockets(six: bool, way: &Conditions) -> (Pair, PathId) {
    let mut pair = Pair::over(&Config::default(), &Terms::default(), &[way.clone(), way.clone()], 7);
    pair.peer.udp().bind(ours::address(peer::NUMBER, six, PORT)).expect("an unused socket");
    let local = Attrs::new().with(Attr::Local(ours::at(ours::NUMBER, six, FROM)));
    let path = pair.ours.host.create("socket", local);
    (pair, path)
}

fn octets(len: usize, salt: u8) -> Vec<u8> {
    pattern(len, salt).into()
}

fn heard(pair: &mut Pair) -> Vec<Vec<u8>> {
    let socket = pair.peer.udp();
    core::iter::from_fn(|| socket.recv().ok().map(|(data, _)| data.to_vec())).collect()
}

fn fair() -> Conditions {
    Conditions { delay: Duration::from_millis(5), ..Conditions::default() }
}

#[test]
fn datagrams_of_every_length_go_both_ways() {
    for six in [false, true] {
        let (mut pair, path) = with_sockets(six, &fair());
        for len in [0, 1, 2, 511, 1_000, 1_452] {
            let sent = pair.ours.host.send(path, ours::at(peer::NUMBER, six, PORT), &octets(len, 0));
            assert_eq!(sent, Outcome::Done);
            let to: IpEndpoint = ours::address(ours::NUMBER, six, FROM).into();
            pair.peer.udp().send_slice(&octets(len, 1), to).expect("there is room");
            pair.pass(Duration::from_secs(2));
            assert_eq!(heard(&mut pair), [octets(len, 0)], "{len} octets");
            let delivered = std::mem::take(&mut pair.ours.host.world.delivered);
            assert_eq!(delivered, [(path, ours::at(peer::NUMBER, six, PORT), octets(len, 1))]);
        }
    }
}

#[test]
fn fragments_are_put_together_on_both_sides() {
    let (mut pair, path) = with_sockets(false, &fair());
    // The first would wait for an address in more packets than may.
    assert_eq!(pair.ours.host.send(path, ours::at(peer::NUMBER, false, PORT), b"hello"), Outcome::Done);
    pair.pass(Duration::from_secs(2));
    assert_eq!(heard(&mut pair), [b"hello"]);
    for len in [1_473, 3_000, 4_000] {
        pair.ours.host.send(path, ours::at(peer::NUMBER, false, PORT), &octets(len, 0));
        let to: IpEndpoint = ours::address(ours::NUMBER, false, FROM).into();
        pair.peer.udp().send_slice(&octets(len, 1), to).expect("there is room");
        pair.pass(Duration::from_secs(2));
        assert!(heard(&mut pair) == [octets(len, 0)], "{len} octets from silk");
        let delivered = std::mem::take(&mut pair.ours.host.world.delivered);
        assert!(delivered.len() == 1 && delivered[0].2 == octets(len, 1), "{len} octets from smoltcp");
    }
}

#[test]
fn what_arrives_on_a_bad_line_is_what_was_sent() {
    let way = Conditions {
        loss: Loss::random(0.2),
        corrupt: 0.2,
        duplicate: 0.2,
        reorder: 0.3,
        reorder_by: Duration::from_millis(50),
        ..fair()
    };
    for six in [false, true] {
        let (mut pair, path) = with_sockets(six, &way);
        let mut from_silk = Vec::new();
        for n in 0..200 {
            pair.ours.host.send(path, ours::at(peer::NUMBER, six, PORT), &octets(n, 0));
            let to: IpEndpoint = ours::address(ours::NUMBER, six, FROM).into();
            pair.peer.udp().send_slice(&octets(n, 1), to).expect("there is room");
            pair.pass(Duration::from_millis(20));
            from_silk.extend(heard(&mut pair));
        }
        let from_smoltcp: Vec<_> = std::mem::take(&mut pair.ours.host.world.delivered)
            .into_iter()
            .map(|(_, _, data)| data)
            .collect();
        for (salt, arrived) in [(0, from_silk), (1, from_smoltcp)] {
            assert!(arrived.iter().all(|data| *data == octets(data.len(), salt)));
            assert!((60..200).contains(&arrived.len()), "{} of 200", arrived.len());
        }
    }
}

#[test]
fn a_port_that_smoltcp_does_not_have_is_told() {
    for six in [false, true] {
        let (mut pair, _) = with_sockets(six, &fair());
        let local = Attr::Local(ours::at(ours::NUMBER, six, FROM + 1));
        let remote = Attr::Remote(ours::at(peer::NUMBER, six, PORT + 1));
        let path = pair.ours.host.create("socket", Attrs::new().with(local).with(remote));
        pair.ours.host.send(path, ours::at(peer::NUMBER, six, PORT + 1), b"anyone?");
        pair.pass(Duration::from_secs(2));
        assert_eq!(pair.ours.host.world.events, [(path, Event::Unreachable(111))]);
    }
}
