//! The header template changes what a path costs and nothing else: whatever two hosts say to
//! each other, byte for byte, they say with it and without it.

mod rig;

use core::time::Duration;
use proptest::prelude::*;
use rig::{Host, Options, ip, stream};
use silk_modules::{Device, HeaderTemplate};
use silk_path::transform::{Measure, Rule};
use silk_path::{Attr, Attrs, Bell, Checksum, DropReason, Endpoint, Event, PathId};
use silk_wire::icmp::Unreachable;

fn at(n: u8, port: u16) -> Endpoint {
    Endpoint::v4(ip(n), port)
}

fn host(n: u8, template: bool, offload: bool) -> Host {
    host_on(0, n, template, offload)
}

fn host_on(vlan: u16, n: u8, template: bool, offload: bool) -> Host {
    let rules: Vec<Box<dyn Rule>> = if template { vec![Box::new(HeaderTemplate)] } else { Vec::new() };
    let device = Device { checksum_offload: offload, ..Device::default() };
    Host::with(n, Options { rules, device, vlan, ..Options::default() })
}

fn udp(host: &mut Host, port: u16, to: Endpoint) -> PathId {
    let local = at(host.n, port);
    host.create("socket", Attrs::new().with(Attr::Local(local)).with(Attr::Remote(to)))
}

#[test]
fn a_connected_path_is_collapsed_to_two_stages() {
    let (mut with, mut without) = (host(1, true, true), host(1, false, true));
    let (a, b) = (udp(&mut with, 5000, at(2, 9)), udp(&mut without, 5000, at(2, 9)));
    assert_eq!(without.paths.path(b).unwrap().slots().len(), 4);
    assert_eq!(with.paths.path(a).unwrap().slots().len(), 2);
    let open = with.create("socket", Attrs::new().with(Attr::Local(at(1, 6000))));
    assert_eq!(with.paths.path(open).unwrap().slots().len(), 4, "without a peer nothing is fixed");
}

/// Something that happens to a host.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Arrive { data: Vec<u8>, change: Option<(usize, u8)>, cut: usize, pad: usize },
    Refuse(bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4000).prop_map(Step::Send),
        (bytes(), proptest::option::weighted(0.4, (0usize..60, any::<u8>())), 0usize..3, 0usize..20)
            .prop_map(|(data, change, cut, pad)| Step::Arrive { data, change, cut: cut * 20, pad }),
        any::<bool>().prop_map(Step::Refuse),
        (0u64..3000).prop_map(Step::Pass),
    ]
}

/// All that can be seen of the path afterwards.
fn play(
    vlan: u16,
    template: bool,
    offload: bool,
    steps: &[Step],
) -> impl PartialEq + core::fmt::Debug + use<> {
    let (mut here, mut there) = (host_on(vlan, 1, template, offload), host_on(vlan, 2, false, false));
    let path = udp(&mut here, 5000, at(2, 9));
    let peer = udp(&mut there, 9, at(1, 5000));
    let mut said = Vec::new();
    let mut last = Vec::new();
    for step in steps {
        match step {
            Step::Send(data) => _ = here.send(path, at(0, 0), data),
            Step::Pass(millis) => here.advance(Duration::from_millis(*millis)),
            Step::Refuse(port) if !last.is_empty() => {
                let why = if *port { Unreachable::Port } else { Unreachable::TooBig(600) };
                there.refuse(&last, why);
            }
            Step::Refuse(_) => {}
            Step::Arrive { data, change, cut, pad } => {
                there.send(peer, at(0, 0), data);
                for mut frame in there.sent() {
                    if let Some((at, value)) = change.filter(|(at, _)| *at < frame.len()) {
                        frame[at] = value;
                    }
                    frame.truncate(frame.len().saturating_sub(*cut));
                    frame.resize(frame.len() + pad, 0);
                    here.arrive(&frame);
                }
            }
        }
        for _ in 0..4 {
            for frame in here.sent() {
                there.arrive_with(&frame, Checksum::MaybePartial);
                last = frame.clone();
                said.push(frame);
            }
            there.sent().iter().for_each(|frame| _ = here.arrive(frame));
        }
    }
    let path = here.paths.path(path).unwrap();
    let drops: Vec<_> = path.state.drops.iter().collect();
    let account = path.state.account;
    let counts = (account.packets_in, account.bytes_in, account.packets_out, account.bytes_out);
    (said, here.world.delivered.clone(), here.world.events.clone(), drops, counts, here.passed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn with_and_without_are_the_same(
        steps in proptest::collection::vec(step(), 1..12),
        offload: bool,
        vlan in proptest::sample::select(vec![0u16, 0x164]),
    ) {
        prop_assert_eq!(play(vlan, true, offload, &steps), play(vlan, false, offload, &steps));
    }
}

#[test]
fn a_stream_over_a_template_is_the_same_stream() {
    [0, 100].into_iter().for_each(stream_on);
}

fn stream_on(vlan: u16) {
    let (mut client, mut server) = (host_on(vlan, 1, true, false), host_on(vlan, 2, true, true));
    server.streams = || Some(stream(100_000, 65_536));
    server.create("socket", Attrs::new().with(Attr::Listen(true)).with(Attr::Local(at(2, 80))));
    let (buffers, handle) = stream(100_000, 65_536);
    let attrs = Attrs::new().with(Attr::Local(at(1, 5000))).with(Attr::Remote(at(2, 80)));
    let path = client.try_create("socket", attrs, Some(buffers)).unwrap();
    assert_eq!(client.paths.path(path).unwrap().slots().len(), 3, "SOCKET, TCP and the template");
    let page: Vec<u8> = (0..50_000u32).map(|n| (n / 7) as u8).collect();
    handle.write(&page);
    for _ in 0..200 {
        client.sent().iter().for_each(|frame| _ = server.arrive(frame));
        server.sent().iter().for_each(|frame| _ = client.arrive_with(frame, Checksum::MaybePartial));
        client.bell(path, Bell::Sent);
        client.advance(Duration::from_millis(50));
        server.advance(Duration::from_millis(50));
    }
    assert_eq!(server.handles[0].read(), page);
    assert_eq!(client.drops(path, DropReason::NotForPath), 0);
    assert!(client.world.events.contains(&(path, Event::Connected)));
    for path in client.paths.iter().map(|path| path.id()).collect::<Vec<_>>() {
        client.destroy(path);
    }
    assert_eq!(client.paths.classes.of(0).memory(), 0);
}

#[test]
fn measuring_keeps_the_average_time_as_an_attribute() {
    let rules: Vec<Box<dyn Rule>> = vec![Box::new(Measure::default()), Box::new(HeaderTemplate)];
    let (mut here, mut there) = (Host::with(1, Options { rules, ..Options::default() }), Host::new(2));
    let path = udp(&mut here, 5000, at(2, 9));
    let peer = udp(&mut there, 9, at(1, 5000));
    rig::exchange(&mut here, &mut there);
    assert_eq!(here.paths.path(path).unwrap().state.attrs.process_time(), None);
    there.send(peer, at(0, 0), b"timed");
    rig::exchange(&mut here, &mut there);
    assert_eq!(here.paths.path(path).unwrap().state.attrs.process_time(), Some(1000));
}
