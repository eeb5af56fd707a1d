//! Threads that wait in `accept` and end there, killed or by an exec: what they were handed, and what comes for them
//! afterwards, is another's.

use crate::host::Silk;
use crate::programs::{text, within};
use silk_testkit::netns::{PREFERRED, SERVER};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A parent and its child wait for connections; the child is stopped, and killed when the first connection is there, which
/// the daemon has handed to it: it has waited for the shortest time.
const KILLED: &str = "import os, signal, socket, time
listener = socket.create_server(('0.0.0.0', 9))
parent, child = os.getpid(), os.fork()
if not child:
    # The parent comes first.
    time.sleep(0.5)
    listener.accept()
    os._exit(1)
watch = os.fork()
if not watch:
    time.sleep(1)
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.2)
    print('waiting', flush=True)
    while not os.path.exists('arrived'):
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os._exit(0)
for turn in range(3):
    connection, _ = listener.accept()
    connection.sendall(b'served')
    connection.close()
os.waitpid(watch, 0)
print('served', flush=True)
";

/// Two threads wait for connections when the process becomes another program, which serves them alone.
const RENEWED: &str = "import os, socket, sys, threading, time
if len(sys.argv) == 1:
    listener = socket.create_server(('0.0.0.0', 9))
    listener.set_inheritable(True)
    for n in range(2):
        threading.Thread(target=listener.accept, daemon=True).start()
    time.sleep(0.5)
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(listener.fileno())])
listener = socket.socket(fileno=int(sys.argv[1]))
print('waiting', flush=True)
for turn in range(3):
    connection, _ = listener.accept()
    time.sleep(0.1)
    connection.sendall(b'served')
    connection.close()
print('served', flush=True)
";

/// Three connections at once, each of which is to be served; the first is there before the others.
const PEER: &str = "import socket, sys, time
connect = lambda: socket.create_connection((sys.argv[1], 9), timeout=20, source_address=(sys.argv[2], 0))
first = connect()
time.sleep(0.5)
open('arrived', 'w').close()
for connection in [first, connect(), connect()]:
    print(connection.recv(16).decode())
";

fn all_are_served(server: &str) {
    let Some(silk) = Silk::start() else { return };
    silk.write("server.py", server);
    silk.write("peer.py", PEER);
    let mut running = silk.start_logged(silk.on_paths("python3").arg("server.py"), "server");
    silk.until_says("server", "waiting");
    let said = text(silk.on_peer("python3").args(["peer.py", &SERVER.to_string(), &PREFERRED.to_string()]));
    assert_eq!(said, "served\n".repeat(3), "{}", silk.log("server"));
    assert!(within(PATIENCE, || running.ended().is_some()));
    assert_eq!(silk.log("server"), "waiting\nserved\n");
}

#[test]
fn what_was_handed_to_a_thread_that_is_killed_is_anothers() {
    all_are_served(KILLED);
}

#[test]
fn nothing_is_handed_to_threads_that_an_exec_has_ended() {
    all_are_served(RENEWED);
}
