//! Packets longer than a frame: large TCP messages, datagrams that were sent or merged as one, and jumbo frames.

use super::{OTHER, datagram_to, open, rig, two_domains};
use rig::{LEFT, PAYLOAD, PORT, RIGHT};
use silk_device::xdp::{Mode, Options};
use silk_device::{End, Offload, readable};
use silk_path::classify::{Belongs, Filter, Flow, Found, Framed, Protocol};
use std::net::SocketAddrV4;
use std::time::Duration;

/// A large TCP message from the left end, whose checksum and cutting are left to others.
fn send_large(left: &mut End, payload: &[u8]) -> Vec<u8> {
    let (headers, offload) = rig::tcp_headers(payload.len(), 1400);
    left.transmit.send(&headers, [payload, &[]], offload);
    left.transmit.flush();
    [&headers[..], payload].concat()
}

#[test]
fn a_large_message_arrives_whole_where_linux_receives() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(Options { mode: Mode::Generic, ..two_domains() });
        tables.own_port(Protocol::Tcp, None, PORT);
        let payload: Vec<u8> = (0..64_000u32).map(|at| (at % 251) as u8).collect();
        // More often than there are frames for it.
        for _ in 0..200 {
            let message = send_large(&mut left, &payload);
            let arrived = rig::arrivals(&mut device.ends[0], 1);
            assert!(matches!(&arrived[..], [(_, bytes)] if *bytes == message));
            let frame = arrived[0].0;
            assert_eq!(Belongs::from_hint(frame.path), Some(Belongs::Listen { domain: 0 }));
            assert_eq!((frame.checksum, frame.segment), (silk_device::Checksum::MaybePartial, 1400));
        }
        assert_eq!(device.ends[0].receive.received().bytes, 200 * 64_054);
    });
}

#[test]
fn few_large_messages_are_put_together_at_a_time() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) =
            open(Options { mode: Mode::Generic, ring: 2048, ..two_domains() });
        tables.own_port(Protocol::Tcp, None, PORT);
        (0..20).for_each(|_| drop(send_large(&mut left, &[9; 50_000])));
        let end = &mut device.ends[0];
        assert!(readable(end.receive.fd(), Duration::from_secs(2)).unwrap());
        // By then all are there, as a rule, and more could be taken at a time.
        std::thread::sleep(Duration::from_millis(50));
        let (mut frames, mut taken) = (Vec::new(), Vec::new());
        while frames.len() < 20 && readable(end.receive.fd(), Duration::from_secs(2)).unwrap() {
            taken.push(end.receive.receive(&mut frames, 64));
        }
        assert!(frames.len() == 20 && taken.iter().all(|taken| *taken <= 8), "{taken:?}");
        assert!(frames.iter().all(|frame| end.receive.bytes(*frame)[frame.range()].len() == 50_054));
        frames.drain(..).for_each(|frame| end.receive.release(frame));
    });
}

#[test]
fn large_messages_that_are_held_back_wait_in_the_ring_or_are_lost_and_counted() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) =
            open(Options { mode: Mode::Generic, ring: 2048, ..two_domains() });
        tables.own_port(Protocol::Tcp, None, PORT);
        let end = &mut device.ends[0];
        let payload = [7; 64_000];
        let mut held = Vec::new();
        for _ in 0..300 {
            send_large(&mut left, &payload);
            end.receive.receive(&mut held, 64);
        }
        assert_eq!(held.len(), 64, "as many as there are buffers");
        for frame in held.drain(..) {
            assert_eq!(end.receive.bytes(frame)[frame.range()][54..], payload);
            end.receive.release(frame);
        }
        let waited = rig::arrivals(end, usize::MAX).len() as u64;
        assert_eq!(waited, 2048 / 17, "as many as the ring has entries for");
        assert_eq!(64 + waited + end.receive.received().ring_full, 300);
    });
}

#[test]
fn datagrams_that_were_sent_in_one_call_arrive_one_by_one() {
    if !rig::root_of_the_machine() {
        return;
    }
    let (large, small): (Vec<u8>, Vec<u8>) = ((0..3500).map(|at| at as u8).collect(), (0..250).collect());
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        let batches = [(large.clone(), 1000u16), (small.clone(), 100)];
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            tables.own_port(Protocol::Udp, None, PORT);
            let mut expected = Vec::new();
            for (payload, size) in &batches {
                let (packet, mut offload) = rig::unsummed_datagram(payload);
                offload.segment = silk_device::Segment::Udp(*size);
                offload.header_len = PAYLOAD as u16;
                left.transmit.send(&packet, [&[], &[]], offload);
                left.transmit.flush();
                expected.extend(payload.chunks(usize::from(*size)).map(<[u8]>::to_vec));
            }
            rig::send(&mut left, &rig::datagram(b"alone"));
            expected.push(b"alone".to_vec());
            let arrived = rig::arrivals(&mut device.ends[0], expected.len());
            let payloads: Vec<_> = arrived.iter().map(|(_, bytes)| bytes[PAYLOAD..].to_vec()).collect();
            assert!(payloads == expected, "{mode:?}");
            let hint = |frame: &silk_device::Frame| Belongs::from_hint(frame.path);
            assert!(
                arrived.iter().all(|(frame, _)| hint(frame) == Some(Belongs::Listen { domain: 0 })),
                "{mode:?}"
            );
            assert_eq!(device.ends[0].receive.received().malformed, 0);
        });
    }
}

#[test]
fn of_datagrams_that_were_sent_in_one_call_none_is_discarded_for_another() {
    if !rig::root_of_the_machine() {
        return;
    }
    // Where the sender's device cuts, each is judged alone at interrupt time; else by whoever has told them apart.
    for (mode, arrive, discarded) in [(Mode::Native, 2, 1), (Mode::Generic, 3, 0), (Mode::Ingress, 3, 0)] {
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            let (local, remote) = (SocketAddrV4::new(RIGHT, PORT), SocketAddrV4::new(LEFT, 0x3039));
            let path = Found { domain: 1, index: 4711 };
            tables.flows.insert(&Flow { protocol: Protocol::Udp, local, remote }, path).unwrap();
            let no_b_pictures = Filter { types: 1 << 3, ..Filter::none(Framed::Mflow) };
            tables.discard(path, &no_b_pictures).unwrap();
            let picture = |flags, kind, number| {
                let mut bytes = [0; 100];
                (bytes[0], bytes[1], bytes[2], bytes[11]) = (0x10, flags, kind, number);
                bytes
            };
            // A B picture, another that asks for an advertisement, and an I picture.
            let all = [picture(0, 3, 1), picture(4, 3, 2), picture(0, 1, 3)];
            let (packet, mut offload) = rig::unsummed_datagram(&all.concat());
            offload.segment = silk_device::Segment::Udp(100);
            offload.header_len = PAYLOAD as u16;
            left.transmit.send(&packet, [&[], &[]], offload);
            left.transmit.flush();
            let arrived = rig::arrivals(&mut device.ends[1], arrive);
            let payloads: Vec<_> = arrived.iter().map(|(_, bytes)| bytes[PAYLOAD..].to_vec()).collect();
            assert_eq!(payloads, all[3 - arrive..], "{mode:?}");
            assert_eq!(
                (device.counts(1).discarded, tables.discarded(path)),
                (discarded, discarded),
                "{mode:?}"
            );
        });
    }
}

#[test]
fn datagrams_that_linux_keeps_in_a_list_arrive_one_by_one() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            rig::run("ethtool", "-K right gro on rx-gro-list on");
            // They come one by one, and Linux waits so long for more: 20 ms.
            std::fs::write("/sys/class/net/right/gro_flush_timeout", "20000000").unwrap();
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            tables.own_port(Protocol::Udp, None, PORT);
            let sent: Vec<Vec<u8>> = (0..32).map(|at| rig::datagram(&[at; 1000])).collect();
            for packet in &sent {
                left.transmit.send(packet, [&[], &[]], Offload::NONE);
            }
            left.transmit.flush();
            let arrived = rig::arrivals(&mut device.ends[0], sent.len());
            let payload = |packet: &[u8]| packet[PAYLOAD..].to_vec();
            let arrived: Vec<_> = arrived.iter().map(|(_, bytes)| payload(bytes)).collect();
            assert!(arrived == sent.iter().map(|packet| payload(packet)).collect::<Vec<_>>(), "{mode:?}");
            assert_eq!(device.ends[0].receive.received().malformed, 0);
        });
    }
}

#[test]
fn merged_datagrams_beyond_the_limit_come_with_the_next_call() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(Options { mode: Mode::Generic, ..two_domains() });
        tables.own_port(Protocol::Udp, None, PORT);
        let (packet, mut offload) = rig::unsummed_datagram(&[5; 1200]);
        offload.segment = silk_device::Segment::Udp(100);
        offload.header_len = PAYLOAD as u16;
        left.transmit.send(&packet, [&[], &[]], offload);
        left.transmit.flush();
        let end = &mut device.ends[0];
        assert!(readable(end.receive.fd(), Duration::from_secs(2)).unwrap());
        let mut frames = Vec::new();
        assert_eq!([(); 4].map(|()| end.receive.receive(&mut frames, 5)), [5, 5, 2, 0]);
        frames.drain(..).for_each(|frame| end.receive.release(frame));
    });
}

#[test]
fn a_datagram_is_one_whatever_was_lost_before_it() {
    if !rig::root_of_the_machine() {
        return;
    }
    rig::with_veth(|| {
        let (mut left, mut device, tables) = open(Options { mode: Mode::Generic, ring: 64, ..two_domains() });
        tables.own_port(Protocol::Udp, None, PORT);
        tables.own_port(Protocol::Udp, None, OTHER);
        let (packet, mut offload) = rig::unsummed_datagram(&[5; 1200]);
        offload.segment = silk_device::Segment::Udp(100);
        offload.header_len = PAYLOAD as u16;
        for _ in 0..100 {
            left.transmit.send(&packet, [&[], &[]], offload);
            left.transmit.flush();
        }
        // The interrupt may lag behind on a busy machine.
        std::thread::sleep(Duration::from_millis(50));
        assert!(device.ends[0].receive.received().ring_full > 0, "each of these was several");
        let alone = datagram_to(OTHER, &[6; 300]);
        rig::send(&mut left, &alone);
        let arrived: Vec<_> =
            rig::arrivals(&mut device.ends[1], 1).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(arrived, [alone]);
    });
}

#[test]
fn datagrams_as_long_as_an_mtu_that_was_raised_arrive() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            tables.own_port(Protocol::Udp, None, PORT);
            rig::ip("link set left mtu 9000");
            rig::ip("link set right mtu 9000");
            let whole = [1600, 3000, 8972].map(|len| rig::datagram(&vec![len as u8; len]));
            whole.iter().for_each(|packet| rig::send(&mut left, packet));
            let arrived: Vec<_> = rig::arrivals(&mut device.ends[0], 3).into_iter().map(|(_, b)| b).collect();
            assert!(arrived == whole, "{mode:?}: {:?}", arrived.iter().map(Vec::len).collect::<Vec<_>>());
            let (packet, mut offload) = rig::unsummed_datagram(&[5; 9000]);
            offload.segment = silk_device::Segment::Udp(3000);
            offload.header_len = PAYLOAD as u16;
            left.transmit.send(&packet, [&[], &[]], offload);
            left.transmit.flush();
            let arrived = rig::arrivals(&mut device.ends[0], 3);
            let lengths: Vec<_> = arrived.iter().map(|(_, bytes)| bytes.len() - PAYLOAD).collect();
            assert_eq!(lengths, [3000; 3], "{mode:?}");
        });
    }
}

#[test]
fn jumbo_frames_arrive_whole() {
    if !rig::root_of_the_machine() {
        return;
    }
    for mode in [Mode::Native, Mode::Generic, Mode::Ingress] {
        rig::with_veth(move || {
            rig::ip("link set left mtu 9000");
            rig::ip("link set right mtu 9000");
            let (mut left, mut device, tables) = open(Options { mode, ..two_domains() });
            tables.own_port(Protocol::Udp, None, PORT);
            let packets =
                [1500, 1760, 1800, 3800, 3900, 8972].map(|len| rig::datagram(&vec![len as u8; len]));
            packets.iter().for_each(|packet| rig::send(&mut left, packet));
            let arrived: Vec<_> = rig::arrivals(&mut device.ends[0], 6).into_iter().map(|(_, b)| b).collect();
            assert!(arrived == packets, "{mode:?}: {:?}", arrived.iter().map(Vec::len).collect::<Vec<_>>());
        });
    }
}
