//! Threads that name one socket at the same moment: it gets one address and one connection, as on Linux, and each of them
//! hears what became of it.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::CLIENT;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Threads that have all come to the same place do the same thing.
const TOGETHER: &str = "import collections, errno, os, socket, sys, threading
peer, kind, threads = (sys.argv[1], 9), sys.argv[2], 4
def together(what):
    said, barrier = collections.Counter(), threading.Barrier(threads)
    def one():
        barrier.wait()
        try:
            what()
            said['done'] += 1
        except OSError as error:
            said[errno.errorcode[error.errno]] += 1
    running = [threading.Thread(target=one) for _ in range(threads)]
    [thread.start() for thread in running]
    [thread.join() for thread in running]
    return said
def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    together(lambda: s.sendto(b'first', peer))
    return [s.recv(16) for _ in range(threads)] == [b'first'] * threads
def stream(bound):
    s = socket.socket()
    if bound:
        s.bind(('0.0.0.0', 0))
    said = together(lambda: s.connect(peer))
    s.sendall(b'text')
    s.settimeout(10)
    return said['done'] >= 1 and set(said) <= {'done', 'EISCONN', 'EALREADY'} and s.recv(16) == b'text'
def binding():
    s = socket.socket()
    said = together(lambda: s.bind(('0.0.0.0', 0)))
    if said != {'done': 1, 'EINVAL': threads - 1}:
        print(said)
    return said == {'done': 1, 'EINVAL': threads - 1}
tries = {'datagrams': datagrams, 'fresh': lambda: stream(False), 'bound': lambda: stream(True), 'binding': binding}
print(sum(tries[kind]() for _ in range(int(sys.argv[3]))), 'of', sys.argv[3], 'as it should be')
";

/// Sends back what comes, and counts the connections.
const PEER: &str = "import socket, threading
listener = socket.create_server(('0.0.0.0', 9))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(('0.0.0.0', 9))
def answer():
    while True:
        datagrams.sendto(*datagrams.recvfrom(64))
threading.Thread(target=answer, daemon=True).start()
count = 0
print('listening', flush=True)
while True:
    connection, _ = listener.accept()
    count += 1
    print(count, flush=True)
    threading.Thread(target=lambda: connection.sendall(connection.recv(64)), daemon=True).start()
";

fn each_time(kind: &str, tries: &str, connections: &str) {
    let Some(silk) = Silk::start() else { return };
    silk.write("together.py", TOGETHER);
    silk.write("peer.py", PEER);
    let peer = silk.start_logged(silk.on_peer("python3").arg("peer.py"), "peer");
    silk.until_says("peer", "listening");
    let said = text(silk.on_paths("python3").args(["together.py", &CLIENT.to_string(), kind, tries]));
    assert_eq!(said, format!("{tries} of {tries} as it should be\n"));
    peer.stop(PATIENCE);
    assert_eq!(silk.log("peer").lines().last(), Some(connections));
}

#[test]
fn first_datagrams_of_several_threads_leave_from_one_port() {
    each_time("datagrams", "30", "listening");
}

#[test]
fn a_socket_that_several_threads_connect_has_one_connection() {
    each_time("fresh", "30", "30");
}

#[test]
fn a_bound_socket_that_several_threads_connect_has_one_connection() {
    each_time("bound", "30", "30");
}

#[test]
fn of_several_threads_that_bind_a_socket_one_does() {
    each_time("binding", "300", "listening");
}
