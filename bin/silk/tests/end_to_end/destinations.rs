//! Datagrams go to whom they were sent, whoever the socket is connected to a moment later, whatever other threads send
//! with it, and whether or not the socket, or its program, is still there when the neighbour's address is known.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{CLIENT, INTERFACE};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Counts at two ports what comes there, until nothing has come for a while.
const PEER: &str = "import collections, select, socket
ports = {}
for port in (9, 10):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(('0.0.0.0', port))
    ports[s] = port
heard = collections.Counter()
print('listening', flush=True)
while ready := select.select(ports, [], [], 5 if heard else 50)[0]:
    for s in ready:
        heard[f'{s.recv(64).decode()} at {ports[s]}'] += 1
print(dict(sorted(heard.items())), flush=True)
";

/// To one, then connected to the other, who is sent to, then back to the first. Where the peer is, is not known at first.
const CONNECTING: &str = "import socket, sys
for turn in range(50):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(('0.0.0.0', 0))
    s.sendto(b'9', (sys.argv[1], 9))
    s.connect((sys.argv[1], 10))
    s.send(b'10')
    s.connect((sys.argv[1], 9))
    s.send(b'9')
    s.close()
";

/// Four threads send the first datagrams of a socket at the same moment, two of them to each.
const TOGETHER: &str = "import socket, sys, threading
for turn in range(50):
    s, barrier = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), threading.Barrier(4)
    def send(port):
        barrier.wait()
        s.sendto(str(port).encode(), (sys.argv[1], port))
    threads = [threading.Thread(target=send, args=[9 + n % 2]) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    s.close()
";

fn arrive_where_they_are_sent(program: &str) {
    let Some(silk) = Silk::start() else { return };
    silk.write("sender.py", program);
    silk.write("peer.py", PEER);
    let mut peer = silk.start_logged(silk.on_peer("python3").arg("peer.py"), "peer");
    silk.until_says("peer", "listening");
    text(silk.on_paths("python3").args(["sender.py", &CLIENT.to_string()]));
    assert!(within(PATIENCE, || peer.ended().is_some()));
    let heard = silk.log("peer").lines().last().map(str::to_owned);
    let expected = if program == CONNECTING {
        "{'10 at 10': 50, '9 at 9': 100}"
    } else {
        "{'10 at 10': 100, '9 at 9': 100}"
    };
    assert_eq!(heard.as_deref(), Some(expected));
}

#[test]
fn what_was_sent_before_a_connect_goes_where_it_was_sent() {
    arrive_where_they_are_sent(CONNECTING);
}

#[test]
fn first_datagrams_of_several_threads_go_where_they_are_sent() {
    arrive_where_they_are_sent(TOGETHER);
}

/// Two datagrams to each of the stations it is told, which nobody has spoken to, of a socket that is closed then; and it is
/// done.
const LAST_WORDS: &str = "import socket, sys
for station in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ':' in station else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b'9', (station, 9))
    s.sendto(b'9', (station, 9))
    s.close()
";

fn last_words_arrive(silk: Option<Silk>, networks: &[&str]) {
    let Some(silk) = silk else { return };
    silk.write("sender.py", LAST_WORDS);
    silk.write("peer.py", PEER.replace("AF_INET,", "AF_INET6,").replace("'0.0.0.0'", "'::'"));
    let stations: Vec<_> =
        networks.iter().flat_map(|network| (20..30).map(move |n| format!("{network}{n}"))).collect();
    for station in &stations {
        let length = if station.contains(':') { 64 } else { 24 };
        let there = format!("{station}/{length}");
        let flags: &[&str] = if station.contains(':') { &["nodad"] } else { &[] };
        let mut add = silk.rig.client.command("ip");
        text(add.args(["address", "add", &there, "dev", INTERFACE]).args(flags));
    }
    let mut peer = silk.start_logged(silk.on_peer("python3").arg("peer.py"), "peer");
    silk.until_says("peer", "listening");
    text(silk.on_paths("python3").arg("sender.py").args(&stations));
    assert!(within(PATIENCE, || peer.ended().is_some()));
    let expected = format!("{{'9 at 9': {}}}", 2 * stations.len());
    assert_eq!(silk.log("peer").lines().last(), Some(expected.as_str()));
}

#[test]
fn last_words_to_stations_nobody_knows_arrive() {
    last_words_arrive(Silk::start(), &["10.99.0.", "fd99::"]);
}

#[test]
fn so_they_do_where_silk_asks_for_them_itself() {
    last_words_arrive(crate::devices::start(), &["10.99.0."]);
}
