//! A call that waits while another thread closes its socket ends, and does not go on with the next socket, which has
//! its descriptor's number and the library's record at once.

use crate::host::Silk;
use crate::programs::within;
use silk_testkit::netns::SERVER;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Of two connections at a time the first is closed while a thread waits for text of it, and the second, which has
/// text, is accepted before that thread runs again.
const CLOSING: &str = "import errno, os, socket, threading, time
os.sched_setaffinity(0, {0})
listener = socket.create_server(('0.0.0.0', 9))
print('listening', flush=True)
for turn in range(20):
    first = listener.accept()[0]
    waits, heard = threading.Event(), []
    def wait():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        waits.set()
        try:
            heard.append(first.recv(64))
        except OSError as error:
            heard.append(errno.errorcode[error.errno])
    thread = threading.Thread(target=wait)
    thread.start()
    waits.wait()
    time.sleep(0.05)
    first.close()
    second = listener.accept()[0]
    thread.join()
    second.settimeout(5)
    print(heard[0], second.recv(64), flush=True)
    second.close()
print('done', flush=True)
";

const PEER: &str = "import socket, sys
for turn in range(20):
    first, second = (socket.create_connection((sys.argv[1], 9), timeout=20) for _ in range(2))
    second.sendall(b'second')
    second.recv(1)
";

#[test]
fn a_call_that_waits_for_a_closed_socket_does_not_hear_the_next() {
    let Some(silk) = Silk::start() else { return };
    silk.write("closing.py", CLOSING);
    silk.write("peer.py", PEER);
    let mut server = silk.start_logged(silk.on_paths("python3").arg("closing.py"), "closing");
    silk.until_says("closing", "listening");
    let peer = silk.on_peer("python3").args(["peer.py", &SERVER.to_string()]).output().unwrap();
    assert!(peer.status.success(), "{}", String::from_utf8_lossy(&peer.stderr));
    assert!(within(PATIENCE, || server.ended().is_some()));
    let heard = "EBADF b'second'\n".repeat(20);
    assert_eq!(silk.log("closing"), format!("listening\n{heard}done\n"));
}
