//! What a packet costs on its way through a path, in each direction, with and without transformation
//! rules.

use super::case::{Case, repeated};
use super::connection::Established;
use super::host::{HEADROOM, HERE, Host, NOW, PAYLOAD, Rules, THERE, between};
use super::row::Peers;
use silk_modules::Device;
use silk_path::{Message, Meta, PathId};
use silk_wire::checksum::pseudo;
use silk_wire::{MacAddr, eth, ipv4, udp};
use std::hint::black_box;
use std::time::Duration;

const PORT: u16 = 5001;

/// Packets of [`PAYLOAD`] bytes up and down a TCP and a UDP path. *Measure* looks at packets on their way
/// up alone.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let case = |what: &str, rules: Rules| format!("packet {what}, {}", rules.name());
    for rules in [Rules::None, Rules::Template, Rules::Measure] {
        cases.push(Case::new(case("up a TCP path", rules), Peers::NONE, Established::receiving(rules)));
    }
    for rules in [Rules::None, Rules::Template] {
        cases.push(Case::new(case("down a TCP path", rules), Peers::NONE, Established::sending(rules)));
    }
    for rules in [Rules::None, Rules::Template, Rules::Measure] {
        cases.push(Case::new(case("up a UDP path", rules), Peers::NONE, receiving(rules)));
    }
    for rules in [Rules::None, Rules::Template] {
        cases.push(Case::new(case("down a UDP path", rules), Peers::NONE, sending(rules)));
    }
    cases
}

fn receiving(rules: Rules) -> impl FnMut(u64) -> Duration {
    let (mut host, path) = connected(rules);
    let mut buffer = datagram();
    move |operations| {
        let before = host.world.passed;
        let took = repeated(operations, |_| _ = host.arrive_in_place(path, black_box(&mut buffer)));
        assert_eq!(host.world.passed - before, operations, "each datagram reaches the program");
        took
    }
}

fn sending(rules: Rules) -> impl FnMut(u64) -> Duration {
    let (mut host, path) = connected(rules);
    let payload = [7; PAYLOAD];
    move |operations| {
        let before = host.world.passed;
        let took = repeated(operations, |_| {
            let mut headroom = [0; HEADROOM];
            let mut msg = Message::outgoing(&mut headroom, [black_box(&payload), &[]], Meta::default());
            host.paths.down(path, NOW, &mut host.world, &mut msg);
        });
        assert_eq!(host.world.passed - before, operations, "each datagram leaves");
        took
    }
}

fn connected(rules: Rules) -> (Host, PathId) {
    let mut host = Host::new(rules);
    let path = host.create(host.module("socket"), between(PORT), None);
    (host, path)
}

/// A datagram from the peer, behind a headroom. Its checksum is partial, as on a veth.
fn datagram() -> Vec<u8> {
    let length = (udp::HEADER + PAYLOAD) as u16;
    let mut buffer = vec![7; HEADROOM + eth::HEADER + ipv4::HEADER + usize::from(length)];
    let frame = &mut buffer[HEADROOM..];
    eth::Header::new(MacAddr(Device::default().address), MacAddr([2, 0, 0, 0, 0, 2]), eth::IPV4).emit(frame);
    let ip = ipv4::Emit {
        protocol: ipv4::UDP,
        source: THERE,
        destination: HERE,
        payload_len: length,
        ..Default::default()
    };
    ip.emit(&mut frame[eth::HEADER..]);
    let partial = pseudo(THERE, HERE, ipv4::UDP, length).folded();
    udp::emit(9, PORT, PAYLOAD as u16, partial, &mut frame[eth::HEADER + ipv4::HEADER..]);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_gets_through() {
        for mut case in cases() {
            case.round(Duration::ZERO);
            assert!(case.row().is_some_and(|row| row.operations > 0));
        }
    }
}
