//! HOST between a socket that the test plays and a program's buffers in memory.

mod rig;

use rig::{Handle, Host, Options, graph, ip, stream};
use silk_modules::host::{HostFault, HostSocket};
use silk_path::{Attr, Attrs, Bell, CreateError, Endpoint, Event, PathId, Report};
use std::collections::VecDeque;

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What Linux and the peer know of the socket.
#[derive(Default)]
struct Line {
    arriving: VecDeque<u8>,
    peer_finished: bool,
    failed: Option<Event>,
    sent: Vec<u8>,
    /// What Linux still takes.
    window: usize,
    finished: bool,
    reset: bool,
    options: Vec<Bell>,
}

#[derive(Clone, Default)]
struct Socket(Arc<Mutex<Line>>);

impl Socket {
    fn with<T>(&self, see: impl FnOnce(&mut Line) -> T) -> T {
        see(&mut self.0.lock().unwrap())
    }
}

impl HostSocket for Socket {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, HostFault> {
        self.with(|line| {
            let count = into.len().min(line.arriving.len());
            if count == 0 && !line.peer_finished {
                return Err(line.failed.map_or(HostFault::NotNow, HostFault::Over));
            }
            into.iter_mut().zip(line.arriving.drain(..count)).for_each(|(to, from)| *to = from);
            Ok(count)
        })
    }

    fn write(&mut self, from: [&[u8]; 2]) -> Result<usize, HostFault> {
        self.with(|line| {
            let bytes = from.concat();
            let count = bytes.len().min(line.window);
            if count == 0 {
                return Err(line.failed.map_or(HostFault::NotNow, HostFault::Over));
            }
            line.window -= count;
            line.sent.extend_from_slice(&bytes[..count]);
            Ok(count)
        })
    }

    fn finish(&mut self) {
        self.with(|line| line.finished = true);
    }

    fn reset(&mut self) {
        self.with(|line| line.reset = true);
    }

    fn set(&mut self, option: Bell) {
        self.with(|line| line.options.push(option));
    }
}

/// A path over a socket, with the program's buffers.
struct Rig {
    host: Host,
    path: PathId,
    socket: Socket,
    program: Handle,
}

fn attrs() -> Attrs {
    let at = |n, port| Endpoint::v4(ip(n), port);
    Attrs::new().with(Attr::Host(true)).with(Attr::Local(at(1, 80))).with(Attr::Remote(at(1, 4000)))
}

/// The program's receive buffer has room for `room` bytes; Linux takes `window`.
fn over_linux(room: usize, window: usize) -> Rig {
    let graph = graph().module("host", "host", &[]).link("socket.host", "host.up");
    let mut host = Host::with(1, Options { graph, ..Options::default() });
    let socket = Socket::default();
    socket.with(|line| line.window = window);
    let (buffers, program) = stream(room, 1 << 20);
    offer(&mut host, &socket);
    let path = host.try_create("socket", attrs(), Some(buffers)).unwrap();
    Rig { host, path, socket, program }
}

fn offer(host: &mut Host, socket: &Socket) {
    host.paths.module_mut::<silk_modules::host::Host>().unwrap().offer(Box::new(socket.clone()));
}

impl Rig {
    fn ready(&mut self) {
        let now = self.host.world.now;
        self.host.paths.report(self.path, now, &mut self.host.world, Report::Ready);
    }

    fn bell(&mut self, bell: Bell) {
        self.host.bell(self.path, bell);
    }

    fn events(&mut self) -> Vec<Event> {
        self.host.world.events.drain(..).map(|(_, event)| event).collect()
    }

    fn state(&self) -> &'static str {
        self.host.paths.path(self.path).unwrap().shown_state()
    }
}

#[test]
fn bytes_pass_both_ways_and_are_counted() {
    let mut rig = over_linux(1000, 1000);
    rig.socket.with(|line| line.arriving.extend(b"question"));
    rig.ready();
    assert_eq!(rig.program.read(), b"question");
    rig.program.write(b"the answer");
    rig.bell(Bell::Sent);
    assert_eq!(rig.socket.with(|line| line.sent.clone()), b"the answer");
    let account = rig.host.paths.path(rig.path).unwrap().state.account;
    assert_eq!((account.bytes_in, account.bytes_out), (8, 10));
    assert_eq!((account.packets_in, account.packets_out), (1, 1));
    assert_eq!((rig.state(), rig.events()), ("ESTABLISHED", vec![]));
}

#[test]
fn what_lies_there_already_is_read_when_the_path_begins() {
    let graph = graph().module("host", "host", &[]).link("socket.host", "host.up");
    let mut host = Host::with(1, Options { graph, ..Options::default() });
    let socket = Socket::default();
    socket.with(|line| line.arriving.extend(b"early"));
    let (buffers, program) = stream(100, 100);
    offer(&mut host, &socket);
    host.try_create("socket", attrs(), Some(buffers)).unwrap();
    assert_eq!(program.read(), b"early");
}

#[test]
fn a_program_that_does_not_read_leaves_the_rest_with_linux() {
    let mut rig = over_linux(10, 0);
    rig.socket.with(|line| line.arriving.extend([7; 25]));
    rig.ready();
    assert_eq!(rig.socket.with(|line| line.arriving.len()), 15);
    assert_eq!(rig.program.read().len(), 10);
    rig.bell(Bell::Read);
    assert_eq!((rig.program.read().len(), rig.socket.with(|line| line.arriving.len())), (10, 5));
}

#[test]
fn what_linux_does_not_take_stays_in_the_ring_until_it_does() {
    let mut rig = over_linux(10, 4);
    rig.program.write(b"slow reader");
    rig.bell(Bell::Sent);
    rig.bell(Bell::ShutdownWrite);
    assert_eq!(rig.socket.with(|line| (line.sent.clone(), line.finished)), (b"slow".to_vec(), false));
    rig.socket.with(|line| line.window = 100);
    rig.bell(Bell::Sent);
    assert_eq!(rig.socket.with(|line| line.sent.len()), 4, "Linux has not said that it takes more");
    rig.ready();
    assert_eq!(rig.socket.with(|line| (line.sent.clone(), line.finished)), (b"slow reader".to_vec(), true));
    assert_eq!(rig.state(), "FIN-WAIT");
}

#[test]
fn one_run_moves_no_more_than_its_share_and_asks_for_another() {
    let mut rig = over_linux(1 << 20, 1 << 20);
    rig.socket.with(|line| line.arriving.extend([1; 300 << 10]));
    rig.program.write(&[2; 300 << 10]);
    rig.ready();
    assert_eq!(rig.events(), [Event::Unfinished, Event::Unfinished]);
    assert_eq!((rig.program.read().len(), rig.socket.with(|line| line.sent.len())), (256 << 10, 256 << 10));
    rig.ready();
    assert_eq!(rig.events(), []);
    assert_eq!((rig.program.read().len(), rig.socket.with(|line| line.sent.len())), (44 << 10, 300 << 10));
}

#[test]
fn each_side_finishes_by_itself_and_then_it_is_over() {
    let mut rig = over_linux(100, 100);
    rig.socket.with(|line| {
        line.arriving.extend(b"last words");
        line.peer_finished = true;
    });
    rig.ready();
    assert_eq!((rig.events(), rig.state()), (vec![Event::PeerFinished], "CLOSE-WAIT"));
    rig.program.write(b"goodbye");
    rig.bell(Bell::Sent);
    rig.bell(Bell::ShutdownWrite);
    assert_eq!(rig.socket.with(|line| (line.sent.clone(), line.finished)), (b"goodbye".to_vec(), true));
    assert_eq!((rig.program.read(), rig.events()), (b"last words".to_vec(), vec![Event::Closed]));
    rig.host.destroy(rig.path);
    assert!(!rig.socket.with(|line| line.reset));
}

#[test]
fn what_a_program_wrote_before_it_closed_is_sent() {
    let mut rig = over_linux(100, 3);
    rig.program.write(b"abcdef");
    rig.bell(Bell::Close);
    assert_eq!((rig.events(), rig.socket.with(|line| line.sent.clone())), (vec![], b"abc".to_vec()));
    rig.socket.with(|line| line.window = 3);
    rig.ready();
    assert_eq!(
        (rig.events(), rig.socket.with(|line| line.sent.clone())),
        (vec![Event::Closed], b"abcdef".to_vec())
    );
    rig.host.destroy(rig.path);
    assert!(!rig.socket.with(|line| line.reset));
}

#[test]
fn a_peer_that_takes_nothing_after_the_close_is_reset_after_a_while() {
    let mut rig = over_linux(100, 3);
    rig.program.write(b"abcdef");
    rig.bell(Bell::Close);
    rig.host.advance(Duration::from_secs(59));
    rig.socket.with(|line| line.window = 1);
    rig.ready();
    rig.host.advance(Duration::from_secs(59));
    assert!(!rig.socket.with(|line| line.reset), "it has taken some");
    rig.host.advance(Duration::from_secs(2));
    assert!(rig.socket.with(|line| line.reset));
    assert_eq!(rig.events(), [Event::Closed]);
}

#[test]
fn a_dead_program_and_a_path_that_is_destroyed_reset_the_peer() {
    let mut rig = over_linux(100, 100);
    rig.bell(Bell::Abort);
    assert_eq!((rig.events(), rig.socket.with(|line| line.reset)), (vec![Event::Closed], true));
    let mut rig = over_linux(100, 100);
    rig.host.destroy(rig.path);
    assert!(rig.socket.with(|line| line.reset));
}

#[test]
fn what_came_before_an_error_is_read_and_the_error_is_told_once() {
    let mut rig = over_linux(100, 0);
    rig.socket.with(|line| {
        line.arriving.extend(b"before");
        line.failed = Some(Event::Reset);
    });
    rig.ready();
    rig.ready();
    assert_eq!((rig.program.read(), rig.events()), (b"before".to_vec(), vec![Event::Reset, Event::Closed]));
}

#[test]
fn a_program_that_reads_no_more_lets_the_peer_go_on() {
    let mut rig = over_linux(10, 0);
    rig.bell(Bell::ShutdownRead);
    rig.socket.with(|line| line.arriving.extend([7; 1000]));
    rig.ready();
    assert_eq!((rig.socket.with(|line| line.arriving.len()), rig.program.read().len()), (0, 0));
}

#[test]
fn options_are_passed_on() {
    let mut rig = over_linux(10, 0);
    rig.bell(Bell::NoDelay(true));
    rig.bell(Bell::Service(16));
    assert_eq!(rig.socket.with(|line| line.options.clone()), [Bell::NoDelay(true), Bell::Service(16)]);
}

#[test]
fn without_a_connection_there_is_no_path() {
    let mut rig = over_linux(10, 0);
    let (buffers, _) = stream(10, 10);
    assert_eq!(rig.host.try_create("socket", attrs(), Some(buffers)), Err(CreateError::Gone));
}
