//! TCP's part of a connection's path: segments from below go to the state machine, what it
//! wants to send goes down by reference, and what became true goes up.

use super::segment::{HEADROOM, meta, parse, push};
use super::{Four, HEADERS, Tcp};
use core::time::Duration;
use silk_instant::Instant;
use silk_path::{
    Bell, CreateError, Cx, Down, DropReason, Event, Incoming, Message, Outgoing, Report, Stage, Verdict,
};
use silk_tcp::{Connection, Info, KeepaliveConfig, Progress, RecvBuffer, SendBuffer, SeqNumber, State};

/// The stage.
pub struct ConnectionStage {
    connection: Connection,
    four: Four,
    // In the classifier.
    entered: bool,
    // The end has been told.
    ended: bool,
    // Bytes charged to the path beside the stage itself: text out of order, the scoreboard.
    charged: usize,
}

/// The program's buffers as the state machine sees them.
struct Tx<'a>(&'a mut dyn Outgoing);
struct Rx<'a>(&'a mut dyn Incoming);

impl SendBuffer for Tx<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn consume(&mut self, octets: usize) {
        self.0.consume(octets);
    }
}

impl RecvBuffer for Rx<'_> {
    fn room(&self) -> usize {
        self.0.room()
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        self.0.write(bytes)
    }
}

/// What each bit of progress is to the program's end.
const EVENTS: [(Progress, Event); 7] = [
    (Progress::ESTABLISHED, Event::Connected),
    (Progress::READABLE, Event::Readable),
    (Progress::WRITABLE, Event::Writable),
    (Progress::PEER_FIN, Event::PeerFinished),
    (Progress::RESET, Event::Reset),
    (Progress::REFUSED, Event::Refused),
    (Progress::TIMED_OUT, Event::TimedOut),
];

impl ConnectionStage {
    pub(super) fn new(connection: Connection, four: Four) -> Self {
        Self { connection, four, entered: false, ended: false, charged: 0 }
    }

    /// What there is to know about the connection.
    pub fn info(&self) -> Info {
        self.connection.info()
    }

    /// Runs the state machine with the program's buffers, then sends what it wants sent.
    fn run(
        &mut self,
        cx: &mut Cx<'_, '_>,
        work: impl FnOnce(&mut Connection, &mut Tx<'_>, &mut Rx<'_>) -> Result<Progress, DropReason>,
    ) -> Result<(), DropReason> {
        let now = cx.now();
        // Without offload, a segment at a time; with it, as much as one message may carry.
        let gso = cx.attrs().gso().unwrap_or(0) as usize;
        let gso = gso.saturating_sub(HEADROOM);
        let Some((stream, mut down)) = cx.stream_and_down() else {
            return Err(DropReason::NoReceiver);
        };
        let (incoming, outgoing) = stream.split();
        let (mut tx, mut rx) = (Tx(outgoing), Rx(incoming));
        let result = work(&mut self.connection, &mut tx, &mut rx);
        self.transmit(now, &tx, &rx, gso, &mut down);
        self.after(cx, *result.as_ref().unwrap_or(&Progress::NONE));
        result.map(drop)
    }

    fn transmit(&mut self, now: Instant, tx: &Tx<'_>, rx: &Rx<'_>, gso: usize, down: &mut Down<'_, '_>) {
        while let Some(out) = self.connection.poll_transmit(now, tx, rx, gso) {
            let mut headroom = [0; HEADROOM];
            let mut msg = Message::outgoing(&mut headroom, tx.0.peek(out.offset, out.len), meta(self.four));
            msg.meta.gso_size = out.gso_size;
            if push(&mut msg, &out.header, self.four).is_ok() {
                // A drop on the way down is counted there; TCP sends again.
                let _ = down.send(&mut msg);
            }
        }
    }

    /// After every run of the state machine: timers, events, memory, the end.
    fn after(&mut self, cx: &mut Cx<'_, '_>, progress: Progress) {
        for (bit, event) in EVENTS {
            if progress.intersects(bit) {
                cx.raise(event);
            }
        }
        self.account(cx);
        if !self.ended {
            self.end(cx);
        }
        let deadline = if self.ended { None } else { self.connection.poll_timeout() };
        cx.arm(deadline.unwrap_or(Instant::FAR));
    }

    /// Says once that the connection is over, if it is.
    fn end(&mut self, cx: &mut Cx<'_, '_>) {
        match self.connection.state() {
            State::Closed => {
                self.ended = true;
                cx.raise(Event::Closed);
            }
            State::TimeWait => {
                self.ended = true;
                if let Some(rest) = self.connection.time_wait() {
                    let (now, four) = (cx.now(), self.four);
                    cx.module::<Tcp>().begin_time_wait(now, four, rest);
                    // The flow is the TIME-WAIT's now.
                    self.entered = false;
                }
                cx.raise(Event::TimeWait);
            }
            _ => {}
        }
    }

    /// Charges what the state machine holds beside itself. A connection that the path's limit
    /// cannot hold is reset.
    fn account(&mut self, cx: &mut Cx<'_, '_>) {
        let held = self.connection.memory() - size_of::<Connection>();
        if held < self.charged {
            cx.release(self.charged - held);
        } else if held > self.charged
            && let Err(reason) = cx.charge(held - self.charged)
        {
            cx.count_drop(reason);
            self.connection.abort();
            cx.release(self.charged);
            self.charged = 0;
            return;
        }
        self.charged = held;
    }

    fn keep_alive(&mut self, now: Instant, wanted: Option<(u32, u32, u8)>) {
        let config = wanted.map(|(idle, interval, probes)| KeepaliveConfig {
            idle: Duration::from_secs(idle.into()),
            interval: Duration::from_secs(interval.into()),
            probes,
        });
        self.connection.set_keepalive(now, config);
    }
}

impl Stage for ConnectionStage {
    fn establish(&mut self, cx: &mut Cx<'_, '_>) -> Result<(), CreateError> {
        let (four, path) = (self.four, cx.path());
        cx.module::<Tcp>().enter(four, path)?;
        self.entered = true;
        if let Some(mtu) = cx.attrs().mtu() {
            self.connection.set_path_mtu(mtu.saturating_sub(HEADERS));
        }
        Ok(())
    }

    fn up(&mut self, cx: &mut Cx<'_, '_>, msg: &mut Message<'_>) -> Verdict {
        let (four, segment) = match parse(msg) {
            Ok(parsed) => parsed,
            Err(reason) => return reason.into(),
        };
        if four != self.four {
            return Verdict::Drop(DropReason::NotForPath);
        }
        let now = cx.now();
        match self.run(cx, |connection, tx, rx| {
            connection.on_segment(now, &segment, tx, rx).map_err(super::listen::reason)
        }) {
            Ok(()) => Verdict::Consumed,
            Err(reason) => reason.into(),
        }
    }

    fn down(&mut self, _: &mut Cx<'_, '_>, _: &mut Message<'_>) -> Verdict {
        // Bytes come through the buffers, with a bell.
        Verdict::Drop(DropReason::Unexpected)
    }

    fn timer(&mut self, cx: &mut Cx<'_, '_>) {
        let now = cx.now();
        // Running without a stream is the only failure, and there is one.
        let _ = self.run(cx, |connection, _, _| Ok(connection.on_timeout(now)));
    }

    fn bell(&mut self, cx: &mut Cx<'_, '_>, bell: Bell) -> bool {
        let now = cx.now();
        if let Bell::KeepAlive(wanted) = bell {
            self.keep_alive(now, wanted);
        }
        let _ = self.run(cx, |connection, _, rx| {
            match bell {
                Bell::Read => {
                    connection.on_read(now, rx);
                }
                Bell::ShutdownWrite => connection.shutdown_write(),
                Bell::ShutdownRead => connection.shutdown_read(),
                Bell::Close => connection.close(now),
                Bell::Abort => connection.abort(),
                Bell::NoDelay(on) => connection.set_nodelay(on),
                Bell::Cork(on) => connection.set_cork(on),
                Bell::UserTimeout(seconds) => {
                    let timeout = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
                    connection.set_user_timeout(timeout);
                }
                _ => {}
            }
            Ok(Progress::NONE)
        });
        false
    }

    fn report(&mut self, cx: &mut Cx<'_, '_>, report: Report) -> bool {
        match report {
            // RFC 5927 §4.1: only an error that quotes something outstanding is believed.
            Report::PathMtu { mtu, sequence } if self.connection.is_outstanding(SeqNumber::new(sequence)) => {
                let _ = self.run(cx, |connection, _, _| {
                    connection.set_path_mtu(mtu.saturating_sub(HEADERS));
                    Ok(Progress::NONE)
                });
            }
            // RFC 9293 §3.9.2.2: a hard error ends an attempt; an established connection is
            // left to its time-outs (RFC 5461 §4).
            Report::Unreachable { errno, sequence, .. }
                if self.connection.state() == State::SynSent
                    && self.connection.is_outstanding(SeqNumber::new(sequence)) =>
            {
                cx.raise(Event::Unreachable(errno));
                let _ = self.run(cx, |connection, _, _| {
                    connection.abort();
                    Ok(Progress::NONE)
                });
            }
            _ => {}
        }
        true
    }

    fn destroy(&mut self, cx: &mut Cx<'_, '_>) {
        if core::mem::take(&mut self.entered) {
            let four = self.four;
            cx.module::<Tcp>().leave(four);
        }
        cx.release(core::mem::take(&mut self.charged));
    }

    fn state(&self) -> &'static str {
        self.connection.state().name()
    }
}
