//! Programs that speak to the daemon by themselves, without the library, and say and write whatever comes to their minds: a program
//! with faults, or one that means harm. The daemon answers each request, serves others meanwhile, and when such a
//! program is gone nothing is left of it.

mod program;
mod scribbling;

use crate::host::Silk;
use crate::named_paths::graph;
use crate::programs::{text, within};
use crate::python::{CLIENTS, ECHO};
use program::{Program, hear};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use scribbling::Memory;
use silk_control::{DESCRIPTORS, Kind, Lifeline, Received, Reply, Request, WireError};
use silk_stream::wake;
use silk_testkit::netns::{CLIENT, INTERFACE, PREFERRED, Running, SERVER, SERVER6, signal};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// As long as anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Some close a connection in order and leave its window closed, so that its end is not heard: soon it is not waited for.
const TCP: &str = "[tcp]
fin_wait = \"2s\"

";
/// What the programs bind to, if they say.
pub const PORTS: [u16; 4] = [4100, 4101, 4102, 4103];
/// What one of them does.
const STEPS: usize = 1200;

/// The peer: echoes, and knocks at the programs' ports all the time.
fn peer(silk: &Silk) -> [Running; 2] {
    // Who closes in order and reads nothing is not waited for.
    let echo =
        crate::churn::ECHO.replace("await writer.drain()", "await asyncio.wait_for(writer.drain(), 2)");
    silk.write("echo.py", echo.replace("        pass\n", "        writer.transport.abort()\n"));
    silk.write("knocking.py", include_str!("hostile/knocking.py"));
    let echo = silk.start_logged(silk.on_peer("python3").arg("echo.py"), "echo");
    silk.until_says("echo", "listening");
    let mut knocking = silk.on_peer("python3");
    let to = [SERVER.to_string(), SERVER6.to_string()];
    let from = [CLIENT.to_string(), PREFERRED.to_string()];
    knocking.arg("knocking.py").args(to).args(from).args(PORTS.map(|port| port.to_string()));
    [echo, silk.start_logged(&mut knocking, "knocking")]
}

/// What the daemon keeps: the paths, with what is charged to each, and bytes of rings. What listens keeps more or less as clients come.
fn kept(silk: &Silk) -> (Vec<String>, u64) {
    let report = silk.report();
    let paths = report["paths"].as_array().unwrap().iter();
    let described = paths.map(|path| {
        let charged = if path["state"] == "LISTEN" { 0 } else { path["memory"].as_u64().unwrap() };
        let at = ["local", "peer", "state"].map(|key| path[key].as_str().unwrap());
        format!("{} {}: {charged}", path["id"], at.join(" "))
    });
    (described.collect(), report["arena_bytes"].as_u64().unwrap())
}

/// Bytes of the daemon's own memory.
fn memory(silk: &mut Silk) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", silk.daemon().id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Runs programs of these seeds at the same time.
fn run(silk: &Silk, seeds: &[u64]) {
    let (tell, told) = channel();
    // These only exist.
    let sleepers: Vec<_> = (0..3)
        .map(|_| {
            let tell = tell.clone();
            thread::spawn(move || {
                tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
                thread::park();
            })
        })
        .collect();
    let threads: Vec<u32> = told.iter().take(sleepers.len()).collect();
    thread::scope(|scope| {
        for seed in seeds {
            let program = Program::new(*seed, silk.path("control.sock"), threads.clone());
            scope.spawn(move || {
                if let Err(why) = program.run(STEPS) {
                    panic!("seed {seed}: {why}");
                }
            });
        }
    });
    sleepers.into_iter().for_each(|sleeper| {
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    });
}

/// What a good program's client says when it was served.
fn is_served(silk: &Silk) -> bool {
    let mut clients = silk.on_peer("python3");
    text(clients.args(["echo_clients.py", &SERVER.to_string(), "4000", "2", "50000"])).trim()
        == "2 of 2 came back"
}

/// A daemon with everything that the programs may ask for, and a good program beside them that waits for clients.
fn start() -> Option<(Silk, Running, [Running; 2])> {
    let classes = format!(
        "{TCP}[[class]]\nname = \"preferred\"\npriority = 2\nsource = [\"{PREFERRED}/32\"]\n\n\
         [[class]]\nname = \"standard\"\npriority = 0\ndefault = true\n"
    );
    let device = format!("kind = \"xdp\"\ninterface = \"{INTERFACE}\"\n");
    let mut silk = Silk::without_daemon(&device, &classes)?;
    silk.write("graph.toml", graph([7, 9, 7]));
    silk.start_daemon();
    silk.write("echo_server.py", ECHO);
    silk.write("echo_clients.py", CLIENTS);
    silk.write("binding.py", include_str!("hostile/binding.py"));
    let good = silk.serve("python3", &["echo_server.py", "4000"], 4000);
    let peer = peer(&silk);
    assert!(is_served(&silk));
    assert!(within(PATIENCE, || kept(&silk).1 == 0), "{:#}", silk.report());
    Some((silk, good, peer))
}

/// A number that whoever runs the test by hand may set.
fn set(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|set| set.parse().ok()).unwrap_or(usual)
}

/// What the daemon said that it need not have said of such programs: what they asked for, and the two that a path cannot be of.
fn said(silk: &Silk) -> Vec<String> {
    let expected = ["left to Linux", "another path has the addresses"];
    let log = silk.log("silkd");
    let lines = log.lines().skip(1).filter(|line| !expected.iter().any(|what| line.contains(what)));
    lines.map(str::to_owned).collect()
}

/// `SILK_SEED=1000 SILK_ROUNDS=60 SILK_AT_ONCE=4` runs 240 programs, four at a time. Programs that damage what they share do so
/// from several threads, so that a seed does not do the same twice.
#[test]
fn programs_that_say_and_write_anything_leave_nothing_and_disturb_nobody() {
    let Some((mut silk, _good, _peer)) = start() else { return };
    let (first, rounds, at_once) = (set("SILK_SEED", 1), set("SILK_ROUNDS", 2), set("SILK_AT_ONCE", 2));
    let (before, mut used) = (kept(&silk), Vec::new());

    for round in 0..rounds {
        let seeds: Vec<u64> = (0..at_once).map(|n| first + round * at_once + n).collect();
        thread::scope(|scope| {
            let good = scope.spawn(|| is_served(&silk));
            run(&silk, &seeds);
            assert!(good.join().unwrap(), "seeds {seeds:?}: a good program was not served");
        });
        let returned = within(PATIENCE, || kept(&silk) == before);
        assert!(returned, "seeds {seeds:?}: {before:#?} before, {:#?} after", kept(&silk));
        assert!(is_served(&silk), "seeds {seeds:?}: a good program is not served");
        assert!(are_free(&silk), "seeds {seeds:?}: ports are not free");
        assert_eq!(said(&silk), [""; 0], "seeds {seeds:?}");
        used.push(memory(&mut silk));
        // Each program founds some families. What executors keep of one is 100 KB at least, so that a family for each round
        // would show in time; what the allocator keeps settles within two or three MB.
        assert!(used[round as usize] < used[0] + (8 << 20), "seeds {seeds:?}: {used:?} bytes");
    }
}

/// One answer, to a request that has one.
fn answer(lifeline: &Lifeline, request: &Request, descriptor: Option<OwnedFd>) -> Received<Reply> {
    let descriptors: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
    lifeline.send(request, &descriptors).unwrap();
    let heard = hear(lifeline).unwrap_or_else(|why| panic!("{why} to {request:?}"));
    heard.unwrap_or_else(|| panic!("hung up on after {request:?}"))
}

fn is_refused(lifeline: &Lifeline, request: &Request, descriptor: Option<OwnedFd>) -> bool {
    matches!(answer(lifeline, request, descriptor).message, Reply::Refused(_))
}

/// A process of a family of its own, and what it shares.
fn attached(silk: &Silk) -> (Lifeline, Memory) {
    let lifeline = Lifeline::connect(&silk.path("control.sock")).unwrap();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let request = Request::Attach { version, family: None, program: "one\nsilkd: panicked".into() };
    let mut got = answer(&lifeline, &request, None);
    assert!(matches!(got.message, Reply::Attached { .. }), "{:?}", got.message);
    let events = got.descriptors.split_off(1);
    (lifeline, Memory::new(got.descriptors.remove(0), events))
}

/// A connection to the peer's echo, and what was made ready beside it.
fn connected(lifeline: &Lifeline, bound: Option<(u32, u32)>) -> ((u32, u32), Vec<(u32, u32)>) {
    let peer = (CLIENT, 7).into();
    let request = Request::Connect { kind: Kind::Stream, bound, peer, service: 0, wishes: [0; 18] };
    match answer(lifeline, &request, None).message {
        Reply::Socket { slot, generation } => ((slot, generation), Vec::new()),
        Reply::Sockets { slot, generation, spares } => ((slot, generation), spares),
        other => panic!("not connected: {other:?}"),
    }
}

#[test]
fn what_such_programs_have_done_before_they_can_do_no_more() {
    let Some((silk, _good, _peer)) = start() else { return };
    let before = kept(&silk);
    // One asks much and hears nothing. All others would wait for it.
    let deaf = Lifeline::connect(&silk.path("control.sock")).unwrap();
    rustix::io::ioctl_fionbio(&deaf, true).unwrap();
    let asked = (0..2000).take_while(|_| deaf.send(&Request::Report, &[]).is_ok()).count();
    assert!(asked < 2000, "it was heard though it does not hear");
    let (lifeline, memory) = attached(&silk);
    // What is no lifeline never hangs up; what founds twice leaves once.
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for strange in [File::open("/dev/null").unwrap().into(), OwnedFd::from(udp)] {
        assert!(is_refused(&lifeline, &Request::Fork, Some(strange)));
    }
    assert!(is_refused(&lifeline, &Request::Found, None));
    // An executor would wait for whoever reads that.
    assert!(is_refused(&lifeline, &Request::Bell, program::full_pipe()));
    // One that is to connect no more, and does, and then another time.
    let spares = std::iter::repeat_with(|| connected(&lifeline, None).1).find(|spares| !spares.is_empty());
    let (slot, generation) = spares.unwrap()[0];
    let disconnect = |(slot, generation)| Request::Disconnect { slot, generation };
    assert_eq!(answer(&lifeline, &disconnect((slot, generation)), None).message, Reply::Done);
    memory.claim(slot, 7);
    connected(&lifeline, Some((slot, generation)));
    // One that is closed while it is taken apart.
    let (slot, generation) = connected(&lifeline, None).0;
    lifeline.send(&disconnect((slot, generation)), &[]).unwrap();
    lifeline.send(&Request::Release { slot, generation }, &[]).unwrap();
    assert!(hear(&lifeline).unwrap().is_some());
    // More than fits one message, and more than one line of the log.
    for n in 0..1100 {
        let what = format!("{n}\nsilkd: panicked {}", "x".repeat(n));
        lifeline.send(&Request::Unserved { what }, &[]).unwrap();
    }
    assert!(within(PATIENCE, || silk.report()["unserved"].as_array().is_some_and(|all| all.len() >= 1000)));
    drop((lifeline, deaf));
    assert!(within(PATIENCE, || kept(&silk) == before), "{before:#?} before, {:#?} after", kept(&silk));
    assert_eq!(said(&silk), [""; 0]);
    assert!(is_served(&silk));
}

/// Whether programs' ports are nobody's.
fn are_free(silk: &Silk) -> bool {
    let ports = PORTS.map(|port| port.to_string());
    let bound = silk.on_paths("python3").arg("binding.py").args(ports).output().unwrap();
    bound.stdout.trim_ascii() == b"all bound"
}

/// To be bound to a port.
fn binds(kind: Kind, port: u16) -> Request {
    Request::Bind {
        kind,
        local: (SERVER, port).into(),
        reuse_address: false,
        reuse_port: false,
        only_v6: false,
    }
}

/// A process of a family that is bound to a port.
fn bound(silk: &Silk, port: u16) -> Lifeline {
    let (lifeline, _) = attached(silk);
    assert!(matches!(answer(&lifeline, &binds(Kind::Stream, port), None).message, Reply::Socket { .. }));
    lifeline
}

#[test]
fn who_damages_a_socket_keeps_no_port_when_it_lets_go_of_that_and_nobody_waits() {
    let Some((silk, _good, _peer)) = start() else { return };
    let ((lifeline, memory), (other, _)) = (attached(&silk), attached(&silk));
    let binds = binds(Kind::Datagram, PORTS[0]);
    let Reply::Socket { slot, generation } = answer(&lifeline, &binds, None).message else {
        panic!("it has no socket")
    };
    assert!(is_refused(&other, &binds, None));
    memory.count(slot);
    lifeline.send(&Request::Release { slot, generation }, &[]).unwrap();
    // It is answered after what it has said before.
    assert!(matches!(answer(&lifeline, &Request::Bell, None).message, Reply::Refused(_)));
    assert!(matches!(answer(&other, &binds, None).message, Reply::Socket { .. }));
}

#[test]
fn nobody_keeps_a_family_whose_processes_are_gone() {
    let Some((silk, _good, _peer)) = start() else { return };
    assert!(are_free(&silk));
    // The daemon has both ends of a child's lifeline.
    let lifeline = bound(&silk, PORTS[0]);
    let (ours, daemons) = Lifeline::pair().unwrap();
    let forked = answer(&lifeline, &Request::Fork, Some(daemons.into_descriptor())).message;
    assert!(matches!(forked, Reply::Forked { .. }), "{forked:?}");
    assert!(is_refused(&lifeline, &Request::Fork, Some(ours.into_descriptor())));
    drop(lifeline);
    assert!(within(PATIENCE, || are_free(&silk)), "it has both ends");
    // It has one, and the other lies in what it does not hear, since nobody hears what it says.
    let lifeline = bound(&silk, PORTS[1]);
    rustix::io::ioctl_fionbio(&lifeline, true).unwrap();
    let asks = |_: &i32| lifeline.send(&Request::Fork, &[lifeline.as_fd()]).is_ok();
    assert!((0..20_000).take_while(asks).count() < 20_000, "it was heard though it does not hear");
    drop(lifeline);
    assert!(within(PATIENCE, || are_free(&silk)), "the other end lies before it");
    assert!(is_served(&silk));
}

/// A process whose event set lets executors wait when they ring it, for a connection that was refused.
fn rung(silk: &Silk) -> (Lifeline, OwnedFd) {
    let (lifeline, memory) = attached(silk);
    // As full as it can be.
    let event = wake::event().unwrap();
    rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let given = event.try_clone().unwrap();
    let Reply::Bell { bell } = answer(&lifeline, &Request::Bell, Some(given)).message else {
        panic!("it has no event set")
    };
    // Since the daemon has it.
    rustix::fs::fcntl_setfl(&event, OFlags::empty()).unwrap();
    let Reply::Socket { slot, generation } = answer(&lifeline, &binds(Kind::Stream, 0), None).message else {
        panic!("it has no socket")
    };
    memory.watch(slot, bell);
    // Where nobody listens.
    let request = Request::Connect {
        kind: Kind::Stream,
        bound: Some((slot, generation)),
        peer: (CLIENT, 9).into(),
        service: 0,
        wishes: [0; 18],
    };
    answer(&lifeline, &request, None);
    (lifeline, event)
}

#[test]
fn who_lets_executors_wait_at_an_event_set_is_told_of_nothing_any_more_and_no_other_can() {
    let Some((silk, _good, _peer)) = start() else { return };
    let before = kept(&silk);
    let (lifeline, _event) = rung(&silk);
    assert!(within(PATIENCE, || !said(&silk).is_empty()), "nobody has waited");
    assert!(said(&silk)[0].ends_with("its event sets are told of nothing any more"), "{:?}", said(&silk));
    assert!(is_refused(&lifeline, &Request::Bell, Some(wake::event().unwrap())));
    assert!(is_served(&silk));
    // The next program is told, and nobody waits for it.
    let (next, event) = rung(&silk);
    let is_fuller = || {
        let mut event = [PollFd::new(&event, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut event, Some(&at_once)).is_ok() && event[0].revents().contains(PollFlags::ERR)
    };
    assert!(within(PATIENCE, is_fuller), "it was not told");
    drop((lifeline, next));
    assert!(within(PATIENCE, || kept(&silk) == before), "{before:#?} before, {:#?} after", kept(&silk));
    assert_eq!(said(&silk).len(), 1);
}

/// A connection that waits when it is closed, far longer than anybody here has patience, for its peer to take what was written;
/// and that peer, which takes nothing. It is waited for by whoever closes it last.
fn lingering() -> (TcpStream, TcpStream) {
    let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ours = TcpStream::connect(listening.local_addr().unwrap()).unwrap();
    let theirs = listening.accept().unwrap().0;
    ours.set_nonblocking(true).unwrap();
    // What the kernel has room for grows for a moment.
    let has_room = || {
        let mut look = [PollFd::new(&ours, PollFlags::OUT)];
        let soon = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        poll(&mut look, Some(&soon)) != Ok(0)
    };
    while has_room() {
        while (&ours).write(&[0; 65_536]).is_ok() {}
    }
    rustix::net::sockopt::set_socket_linger(&ours, Some(PATIENCE * 5)).unwrap();
    (ours, theirs)
}

/// Does this while the daemon stands still: it has not taken yet, then, what has been sent to it.
fn while_stopped<T>(daemon: u32, what: impl FnOnce() -> T) -> T {
    signal(&[daemon], "STOP");
    let done = what();
    signal(&[daemon], "CONT");
    done
}

/// Sends something, and a socket beside it.
type Saying<'a> = &'a dyn Fn(&Lifeline, BorrowedFd<'_>) -> Result<(), WireError>;

#[test]
fn nobody_waits_until_what_others_have_sent_is_closed() {
    let Some((mut silk, _good, _peer)) = start() else { return };
    let daemon = silk.daemon().id();
    let before = kept(&silk);
    let other = Lifeline::connect(&silk.path("control.sock")).unwrap();
    let (lifeline, _) = attached(&silk);
    let way = Request::Way { to: (CLIENT, 7).into() };
    let nonsense = [0xffu8; 9];
    let cases: [Saying<'_>; 6] = [
        // Of these none was to come with the first, and another with the second.
        &|line, socket| line.send(&way, &[socket]),
        &|line, socket| line.send(&Request::Fork, &[socket]),
        &|line, socket| line.send(&Request::File, &[socket; DESCRIPTORS]),
        // These are no messages, and behind the last of them nothing is heard.
        &|line, socket| line.send(&nonsense, &[socket]),
        &|line, socket| line.send(&(), &[socket]),
        &|line, socket| line.send(&nonsense, &[]).and_then(|()| line.send(&way, &[socket])),
    ];
    let mut held = Vec::new();
    for (case, send) in cases.iter().enumerate() {
        let (ours, daemons) = Lifeline::pair().unwrap();
        let (socket, peer) = lingering();
        send(&ours, socket.as_fd()).unwrap();
        // From then on nobody has it but who receives that.
        drop(socket);
        // Nor has anybody else the line that it waits in.
        while_stopped(daemon, || {
            lifeline.send(&Request::Fork, &[daemons.as_fd()]).unwrap();
            drop(daemons);
        });
        let forked = hear(&lifeline).map(|got| got.map(|got| got.message));
        assert!(matches!(forked, Ok(Some(Reply::Forked { .. }))), "{case}: {forked:?}");
        for _ in 0..2 {
            assert!(is_refused(&other, &way, None), "{case}");
        }
        held.push((ours, peer));
    }
    assert!(is_served(&silk));
    drop((lifeline, held));
    assert!(within(PATIENCE, || kept(&silk) == before), "{before:#?} before, {:#?} after", kept(&silk));
}

/// How many descriptors the daemon has.
fn open(silk: &mut Silk) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", silk.daemon().id())).unwrap().count()
}

/// The peer of a lingering connection is gone, and nobody waits for it any more.
fn reset(peer: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
}

#[test]
fn who_sends_more_than_can_be_closed_is_not_heard_meanwhile_and_others_are() {
    let Some((mut silk, _good, _peer)) = start() else { return };
    let other = Lifeline::connect(&silk.path("control.sock")).unwrap();
    let way = Request::Way { to: (CLIENT, 7).into() };
    assert!(is_refused(&other, &way, None));
    let (lifeline, _) = attached(&silk);
    let (event, before) = (wake::event().unwrap(), open(&mut silk));
    let line = Lifeline::connect(&silk.path("control.sock")).unwrap();
    let (sockets, peers): (Vec<_>, Vec<_>) = (0..60).map(|_| lingering()).unzip();
    while_stopped(silk.daemon().id(), || {
        for socket in sockets {
            let mut beside = vec![socket.as_fd()];
            beside.extend([event.as_fd(); DESCRIPTORS - 1]);
            line.send(&Request::Unserved { what: String::new() }, &beside).unwrap();
        }
    });
    assert!(is_refused(&other, &way, None));
    // Who brings what is asked for is heard.
    let (child, daemons) = Lifeline::pair().unwrap();
    let forked = answer(&lifeline, &Request::Fork, Some(daemons.into_descriptor())).message;
    assert!(matches!(forked, Reply::Forked { .. }), "{forked:?}");
    drop(child);
    let most = (0..20).map(|_| {
        thread::sleep(Duration::from_millis(10));
        open(&mut silk)
    });
    let most = most.max().unwrap();
    assert!(most < before + 2000, "{most} descriptors, {before} before");
    assert!(is_served(&silk));
    peers.into_iter().for_each(reset);
    assert!(within(PATIENCE, || open(&mut silk) <= before + 1), "{} of {before}", open(&mut silk));
    // All of it was heard in the end.
    (0..60).for_each(|_| assert!(matches!(hear(&line), Ok(Some(_)))));
    drop(line);
    let late = Lifeline::connect(&silk.path("control.sock")).unwrap();
    assert!(is_refused(&late, &way, None));
}

/// The daemon may have so many descriptors.
fn limit(daemon: u32, most: usize) {
    text(Command::new("prlimit").args([format!("--pid={daemon}"), format!("--nofile={most}:")]));
}

/// It may have no more than it has.
fn leave_no_descriptor(daemon: u32) {
    let taken = || {
        let all = std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap();
        all.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect::<Vec<usize>>()
    };
    // What those leave who have just ended is closed by then.
    let rests = || {
        let before = taken();
        thread::sleep(Duration::from_millis(300));
        taken() == before
    };
    assert!(within(PATIENCE, rests));
    let taken = taken();
    limit(daemon, (0..).find(|number| !taken.contains(number)).unwrap());
}

#[test]
fn nobody_waits_for_what_somebody_has_sent_who_is_turned_away() {
    let Some((mut silk, _good, _peer)) = start() else { return };
    let other = Lifeline::connect(&silk.path("control.sock")).unwrap();
    let way = Request::Way { to: (CLIENT, 7).into() };
    assert!(is_refused(&other, &way, None));
    let daemon = silk.daemon().id();
    leave_no_descriptor(daemon);
    let (socket, peer) = lingering();
    let _late = while_stopped(daemon, || {
        let late = Lifeline::connect(&silk.path("control.sock")).unwrap();
        late.send(&way, &[socket.as_fd()]).unwrap();
        drop(socket);
        late
    });
    silk.until_says("silkd", "turned away");
    for _ in 0..3 {
        assert!(is_refused(&other, &way, None));
    }
    reset(peer);
    limit(daemon, 1024);
    let again = Lifeline::connect(&silk.path("control.sock")).unwrap();
    assert!(is_refused(&again, &way, None));
}

#[test]
fn nobody_waits_for_what_the_daemon_has_no_descriptor_left_to_take() {
    let Some((mut silk, _good, _peer)) = start() else { return };
    let [other, line] = [0; 2].map(|_| Lifeline::connect(&silk.path("control.sock")).unwrap());
    let way = Request::Way { to: (CLIENT, 7).into() };
    assert!([&other, &line].into_iter().all(|line| is_refused(line, &way, None)));
    let daemon = silk.daemon().id();
    leave_no_descriptor(daemon);
    let (socket, peer) = lingering();
    while_stopped(daemon, || {
        line.send(&way, &[socket.as_fd()]).unwrap();
        drop(socket);
    });
    for _ in 0..3 {
        assert!(is_refused(&other, &way, None));
    }
    reset(peer);
    limit(daemon, 1024);
    assert!(matches!(hear(&line), Ok(Some(_))));
}
