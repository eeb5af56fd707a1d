//! What has come is told once by an edge-triggered event set, whenever it comes.

use crate::host::Silk;
use crate::programs::text;
use silk_testkit::netns::SERVER;

/// Looks all the time at a socket that it has just begun to watch, and reads what has come a moment after it was told.
const WATCHER: &str = "import select, socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind((sys.argv[1], 4000))
end.setblocking(False)
watched = select.epoll()
watched.register(end, select.EPOLLIN | select.EPOLLET)
print('listening', flush=True)
came = twice = 0
while came < int(sys.argv[2]):
    while not watched.poll(0):
        watched.modify(end, select.EPOLLIN | select.EPOLLET)
    told = 1 + len(watched.poll(0))
    before = came
    try:
        while True:
            end.recv(16)
            came += 1
    except BlockingIOError:
        twice += told > came - before
print(twice, 'twice', flush=True)
";

const SENDER: &str = "import socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.connect((sys.argv[1], 4000))
for n in range(int(sys.argv[2])):
    end.send(b'%d' % n)
    until = time.perf_counter() + 3e-4
    while time.perf_counter() < until:
        pass
";

#[test]
fn no_datagram_is_told_of_twice() {
    let Some(silk) = Silk::start() else { return };
    let here = SERVER.to_string();
    let mut watcher = silk.on_paths("python3");
    let _watcher = silk.start_logged(watcher.args(["-c", WATCHER, &here, "6000"]), "watcher");
    silk.until_says("watcher", "listening");
    text(silk.on_peer("python3").args(["-c", SENDER, &here, "6000"]));
    silk.until_says("watcher", " twice");
    assert_eq!(silk.log("watcher"), "listening\n0 twice\n");
}
