//! Datagrams go to whom they were sent, whoever the socket is connected to a moment later, and whatever other threads send
//! with it.

use crate::host::{Silk, text, within};
use silk_testkit::netns::CLIENT;
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

/// To one, then connected to the other, who is sent to, then back to the first. Where the peer is must be known: what waits
/// for that does not outlive its path.
const CONNECTING: &str = "import socket, sys, time
known = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
known.sendto(b'9', (sys.argv[1], 9))
time.sleep(0.5)
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
    assert!(within(PATIENCE, || silk.log("peer").contains("listening")), "{}", silk.log("peer"));
    text(silk.on_paths("python3").args(["sender.py", &CLIENT.to_string()]));
    assert!(within(PATIENCE, || peer.ended().is_some()));
    let heard = silk.log("peer").lines().last().map(str::to_owned);
    let expected = if program == CONNECTING {
        "{'10 at 10': 50, '9 at 9': 101}"
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
