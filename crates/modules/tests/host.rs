//! HOST between a socket that the test plays and a program's buffers in memory.

mod rig;

use rig::{Handle, Host, Options, graph, ip, stream};
use silk_modules::host::{HostDatagrams, HostFault, HostSocket};
use silk_path::{
    Attr, Attrs, Bell, Cork, CreateError, DropReason, Endpoint, Event, Message, Meta, Outcome, PathId, Report,
};
use silk_wire::ipv4;
use std::collections::VecDeque;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What Linux and the peer know of the socket.
#[derive(Default)]
struct Line {
    arriving: VecDeque<u8>,
    /// How much of that lies before an urgent byte, if there is one.
    before_urgent: Option<usize>,
    /// An urgent byte that comes as soon as somebody has seen that there is none.
    late: Option<u8>,
    peer_finished: bool,
    failed: Option<Event>,
    sent: Vec<u8>,
    /// Which of them were urgent.
    sent_urgently: Vec<usize>,
    /// What Linux still takes.
    window: usize,
    finished: bool,
    /// What both have sent is acknowledged.
    over: bool,
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
            // As Linux's, a read ends before an urgent byte or begins with it.
            let until = line.before_urgent.filter(|before| *before > 0).unwrap_or(usize::MAX);
            let count = into.len().min(line.arriving.len()).min(until);
            if count == 0 && !line.peer_finished {
                return Err(line.failed.map_or(HostFault::NotNow, HostFault::Over));
            }
            into.iter_mut().zip(line.arriving.drain(..count)).for_each(|(to, from)| *to = from);
            line.before_urgent = line.before_urgent.and_then(|before| before.checked_sub(count));
            Ok(count)
        })
    }

    fn is_at_urgent(&mut self) -> Result<bool, HostFault> {
        self.with(|line| {
            if line.before_urgent != Some(0) && line.arriving.is_empty() && !line.peer_finished {
                let nothing = Err(line.failed.map_or(HostFault::NotNow, HostFault::Over));
                if let Some(late) = line.late.take() {
                    (line.arriving, line.before_urgent) = ([late].into(), Some(0));
                }
                return nothing;
            }
            Ok(line.before_urgent == Some(0))
        })
    }

    fn write(&mut self, from: [&[u8]; 2], urgent: bool) -> Result<usize, HostFault> {
        self.with(|line| {
            let bytes = from.concat();
            let count = bytes.len().min(line.window);
            if count == 0 {
                return Err(line.failed.map_or(HostFault::NotNow, HostFault::Over));
            }
            line.window -= count;
            line.sent.extend_from_slice(&bytes[..count]);
            if urgent {
                let last = line.sent.len() - 1;
                line.sent_urgently.push(last);
            }
            Ok(count)
        })
    }

    fn fault(&mut self) -> Option<Event> {
        self.with(|line| line.failed.take())
    }

    fn is_over(&self) -> bool {
        self.with(|line| line.over || line.failed.is_some())
    }

    fn info(&self, into: &mut [u8]) {
        into.fill(7);
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
fn urgent_bytes_are_urgent_at_the_other_side() {
    let mut rig = over_linux(8, 1000);
    rig.socket.with(|line| {
        line.arriving.extend(b"before!after");
        line.before_urgent = Some(6);
    });
    rig.ready();
    assert_eq!((rig.program.read(), rig.program.marks()), (b"before!a".to_vec(), vec![6]));
    assert_eq!(rig.events(), [Event::Urgent]);
    rig.bell(Bell::Read);
    assert_eq!(rig.program.read(), b"fter");
    // One that is still to come is told of once.
    rig.socket.with(|line| line.before_urgent = Some(0));
    rig.ready();
    rig.ready();
    assert_eq!((rig.program.marks(), rig.events()), (vec![6, 12], vec![Event::Urgent]));
    rig.socket.with(|line| line.arriving.extend(b"?"));
    rig.ready();
    assert_eq!(rig.program.read(), b"?");
    // One that comes just after the look is not read as if it were any other.
    rig.events();
    rig.socket.with(|line| line.late = Some(b'!'));
    rig.ready();
    assert_eq!((rig.program.read(), rig.events()), (vec![], vec![]));
    rig.ready();
    assert_eq!((rig.program.read(), rig.program.marks()), (b"!".to_vec(), vec![6, 12, 13]));
    assert_eq!(rig.events(), [Event::Urgent]);

    rig.program.write(b"say it!and more");
    rig.bell(Bell::Urgent(7));
    rig.bell(Bell::Sent);
    assert_eq!(rig.socket.with(|line| line.sent.clone()), b"say it!and more");
    assert_eq!(rig.socket.with(|line| line.sent_urgently.clone()), [6]);
    // Of two the later counts, wherever Linux takes a pause.
    rig.socket.with(|line| line.window = 2);
    rig.program.write(b"one");
    rig.bell(Bell::Urgent(3));
    rig.program.write(b"two");
    rig.bell(Bell::Urgent(4));
    rig.socket.with(|line| line.window = 100);
    rig.ready();
    assert_eq!(rig.socket.with(|line| (line.sent.len(), line.sent_urgently.clone())), (21, vec![6, 20]));
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
    assert_eq!((rig.program.read(), rig.events(), rig.state()), (b"last words".to_vec(), vec![], "LAST-ACK"));
    rig.socket.with(|line| line.over = true);
    rig.ready();
    rig.ready();
    assert_eq!(rig.events(), [Event::Closed]);
    rig.host.destroy(rig.path);
    assert!(!rig.socket.with(|line| line.reset));
}

/// A connection that both have ended, our end not acknowledged yet.
fn ended_by_both() -> Rig {
    let mut rig = over_linux(10, 100);
    rig.socket.with(|line| line.peer_finished = true);
    rig.ready();
    rig.bell(Bell::ShutdownWrite);
    assert_eq!((rig.state(), rig.events()), ("LAST-ACK", vec![Event::PeerFinished]));
    rig
}

#[test]
fn a_reset_is_told_until_our_end_is_acknowledged_though_both_have_ended() {
    let mut rig = ended_by_both();
    rig.socket.with(|line| line.failed = Some(Event::Reset));
    rig.ready();
    rig.ready();
    assert_eq!(rig.events(), [Event::Reset, Event::Closed]);
    // Also where Linux has not told of it yet, as of one that is the answer to our end.
    let mut rig = ended_by_both();
    rig.socket.with(|line| line.failed = Some(Event::Reset));
    rig.bell(Bell::Read);
    assert_eq!(rig.events(), [Event::Reset, Event::Closed]);
}

#[test]
fn what_was_said_last_still_arrives_when_the_program_is_gone_before_it_is_acknowledged() {
    for bell in [Some(Bell::Close), Some(Bell::Abort), None] {
        let mut rig = ended_by_both();
        if let Some(bell) = bell {
            rig.bell(bell);
            assert_eq!(rig.events(), [Event::Closed]);
        }
        rig.host.destroy(rig.path);
        assert!(!rig.socket.with(|line| line.reset));
    }
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
fn a_reset_behind_the_peers_end_is_heard_though_nothing_is_read_any_more() {
    let mut rig = over_linux(10, 100);
    rig.socket.with(|line| line.peer_finished = true);
    rig.ready();
    rig.program.write(b"x");
    rig.bell(Bell::Sent);
    assert_eq!((rig.state(), rig.events()), ("CLOSE-WAIT", vec![Event::PeerFinished]));
    rig.socket.with(|line| line.failed = Some(Event::Reset));
    rig.bell(Bell::Read);
    assert_eq!(rig.events(), [], "Linux has not told of anything");
    rig.ready();
    assert_eq!(rig.events(), [Event::Reset, Event::Closed]);
}

#[test]
fn what_linux_knows_of_the_connection_can_be_asked() {
    let rig = over_linux(10, 100);
    let mut bytes = [0; 4];
    let path = rig.host.paths.path(rig.path).unwrap();
    path.stage::<silk_modules::host::HostStage>().unwrap().info(&mut bytes);
    assert_eq!(bytes, [7; 4]);
}

#[test]
fn options_are_passed_on() {
    let mut rig = over_linux(10, 0);
    rig.bell(Bell::NoDelay(true));
    rig.bell(Bell::Service(16));
    assert_eq!(rig.socket.with(|line| line.options.clone()), [Bell::NoDelay(true), Bell::Service(16)]);
}

#[test]
fn what_follows_is_written_before_the_cork_is_pulled() {
    let mut rig = over_linux(10, 100);
    rig.program.write(b" and body");
    rig.bell(Bell::Cork(Cork::Loose));
    assert_eq!(rig.socket.with(|line| line.sent.clone()), b"");
    rig.bell(Bell::Cork(Cork::Out));
    assert_eq!(rig.socket.with(|line| line.sent.clone()), b" and body");
    assert_eq!(
        rig.socket.with(|line| line.options.clone()),
        [Bell::Cork(Cork::Loose), Bell::Cork(Cork::Out)]
    );
}

#[test]
fn without_a_connection_there_is_no_path() {
    let mut rig = over_linux(10, 0);
    let (buffers, _) = stream(10, 10);
    assert_eq!(rig.host.try_create("socket", attrs(), Some(buffers)), Err(CreateError::Gone));
}

/// What Linux was given; it takes datagrams that are not empty.
#[derive(Default)]
struct Given {
    datagrams: Vec<(IpAddr, Endpoint, Vec<u8>)>,
    options: Vec<Bell>,
}

#[derive(Clone, Default)]
struct Mail(Arc<Mutex<Given>>);

impl Mail {
    fn with<T>(&self, see: impl FnOnce(&mut Given) -> T) -> T {
        see(&mut self.0.lock().unwrap())
    }
}

impl HostDatagrams for Mail {
    fn send(&mut self, from: IpAddr, to: Endpoint, pieces: [&[u8]; 3]) -> bool {
        let bytes = pieces.concat();
        let takes = !bytes.is_empty();
        if takes {
            self.with(|given| given.datagrams.push((from, to, bytes)));
        }
        takes
    }

    fn set(&mut self, option: Bell) {
        self.with(|given| given.options.push(option));
    }
}

/// A path of datagrams over Linux, of a socket that hears `remote` alone, or everybody.
fn datagrams(remote: Option<Endpoint>) -> (Host, PathId, Mail) {
    let graph = graph().module("host", "host", &[]).link("socket.host_net", "host.net");
    let mut host = Host::with(1, Options { graph, ..Options::default() });
    let mail = Mail::default();
    let module = host.paths.module_mut::<silk_modules::host::Host>().unwrap();
    module.offer_datagrams(Box::new(mail.clone()));
    let mut attrs = Attrs::new()
        .with(Attr::Host(true))
        .with(Attr::ProtId(ipv4::UDP.into()))
        .with(Attr::Local(Endpoint::v4(ip(1), 53)));
    if let Some(remote) = remote {
        attrs = attrs.with(Attr::Remote(remote));
    }
    let path = host.try_create("socket", attrs, None).unwrap();
    (host, path, mail)
}

fn arrives(host: &mut Host, path: PathId, from: Endpoint, data: &mut [u8]) -> Outcome {
    let (now, length) = (host.world.now, data.len());
    let meta = Meta { remote: from, ..Meta::default() };
    host.paths.up(path, now, &mut host.world, &mut Message::new(data, 0, length, meta))
}

fn leaves(host: &mut Host, path: PathId, to: Endpoint, data: [&[u8]; 2]) -> Outcome {
    let meta = Meta { local: Endpoint::v4(ip(9), 0), remote: to, ..Meta::default() };
    let now = host.world.now;
    host.paths.down(path, now, &mut host.world, &mut Message::outgoing(&mut [], data, meta))
}

#[test]
fn datagrams_pass_both_ways_with_their_senders_and_are_counted() {
    let (mut host, path, mail) = datagrams(None);
    let peer = Endpoint::v4(ip(1), 4000);
    assert_eq!(arrives(&mut host, path, peer, &mut b"question".to_vec()), Outcome::Done);
    assert_eq!(host.world.delivered, [(path, peer, b"question".to_vec())]);
    assert_eq!(leaves(&mut host, path, peer, [b"the ", b"answer"]), Outcome::Done);
    assert_eq!(mail.with(|given| given.datagrams.clone()), [(ip(9).into(), peer, b"the answer".to_vec())]);
    let account = host.paths.path(path).unwrap().state.account;
    assert_eq!((account.packets_in, account.packets_out), (1, 1));
    assert_eq!((account.bytes_in, account.bytes_out), (8, 10));
    host.bell(path, Bell::Service(0x48));
    assert_eq!(mail.with(|given| given.options.clone()), [Bell::Service(0x48)]);
}

/// As on Linux: `connect` says who is heard, and whom it is to that is sent without an address.
#[test]
fn who_has_one_peer_hears_nobody_else_and_speaks_to_whom_it_names() {
    let [peer, other] = [4000, 4001].map(|port| Endpoint::v4(ip(1), port));
    let (mut host, path, mail) = datagrams(Some(peer));
    let heard = [peer, other].map(|from| arrives(&mut host, path, from, &mut b"x".to_vec()));
    assert_eq!(heard, [Outcome::Done, Outcome::Dropped(DropReason::NotForPath)]);
    let nobody = Endpoint::v4(core::net::Ipv4Addr::UNSPECIFIED, 0);
    for to in [other, peer, nobody] {
        leaves(&mut host, path, to, [b"y", b""]);
    }
    let sent = [other, peer, peer].map(|to| (ip(9).into(), to, b"y".to_vec()));
    assert_eq!(mail.with(|given| given.datagrams.clone()), sent);
}

#[test]
fn what_linux_does_not_take_is_dropped_and_counted() {
    let (mut host, path, _) = datagrams(None);
    let peer = Endpoint::v4(ip(1), 4000);
    assert_eq!(leaves(&mut host, path, peer, [b"", b""]), Outcome::Dropped(DropReason::HostDatagram));
    let path = host.paths.path(path).unwrap();
    assert_eq!((path.state.drops.of(DropReason::HostDatagram), path.state.account.packets_out), (1, 0));
}

#[test]
fn a_path_of_datagrams_is_not_made_over_a_connection() {
    let graph = graph().module("host", "host", &[]).link("socket.host_net", "host.net");
    let mut host = Host::with(1, Options { graph, ..Options::default() });
    offer(&mut host, &Socket::default());
    let attrs = attrs().with(Attr::ProtId(ipv4::UDP.into()));
    assert_eq!(host.try_create("socket", attrs, None).unwrap_err(), CreateError::Gone);
}
